//! Page faults of other programs by programs of our own in the kernel (bpf(2)): where
//! perf_event_open(2) is forbidden but this is not. The same records as `faults` has, of
//! whole processes and all that they start.
//!
//! ```text
//!  page_fault_user, page_fault_kernel   \\
//!  sched_process_fork, _exec, _exit     --> program --> ring --> drain
//!                                              |
//!                                           followed processes, filter
//! ```
mod btf;
mod fault_filter;
mod program;

pub use fault_filter::{filter_bit, page_hash, FaultFilter, FILTER_BITS};

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::errno::{check, owned_fd};
use crate::faults::{KernelEvent, PageFault};
use program::{assemble, ProgramRelocations, TracepointKind, RECORD_BYTES};

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const BPF_MAP_TYPE_HASH: u32 = 1;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_RINGBUF: u32 = 27;
const BPF_PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
/// A map whose values can be mapped.
const BPF_F_MMAPABLE: u32 = 1 << 10;
/// The programs may be used under either; the kernel asks for the second.
const LICENSE: &CStr = c"Dual MIT/GPL";

const PAGE_SIZE: usize = hither_profile::PAGE_SIZE as usize;
const RING_BYTES: usize = 4 << 20;
/// Processes that can be followed at a time.
const MAX_FOLLOWED_PROCESSES: u32 = 1 << 16;
const BPF_RINGBUF_BUSY_BIT: u32 = 1 << 31;
const BPF_RINGBUF_DISCARD_BIT: u32 = 1 << 30;
/// The inode of the namespace that all process ids are known in (PROC_PID_INIT_INO).
const PROC_PID_INIT_INO: u64 = 0xEFFF_FFFC;

/// What the tracepoints are called, and what happens there.
const TRACEPOINTS: [(&CStr, TracepointKind); 5] = [
    (c"page_fault_user", TracepointKind::Fault),
    (c"page_fault_kernel", TracepointKind::Fault),
    (c"sched_process_fork", TracepointKind::Fork),
    (c"sched_process_exec", TracepointKind::Exec),
    (c"sched_process_exit", TracepointKind::Exit),
];

/// Programs at work, and their ring.
#[derive(Debug)]
pub struct BpfFaultMonitor {
    followed: OwnedFd,
    lost: OwnedFd,
    ring: BpfRingBuffer,
    filter: Option<FaultFilter>,
    /// What keeps the programs where they are.
    _links: Vec<OwnedFd>,
    records: Vec<(u64, KernelEvent)>,
}

impl BpfFaultMonitor {
    /// Loads and attaches the programs; no process is followed yet.
    ///
    /// # Errors
    /// EPERM without CAP_BPF and CAP_PERFMON or where a container forbids it; in words where
    /// the kernel lacks something.
    pub fn new() -> io::Result<BpfFaultMonitor> {
        if std::fs::metadata("/proc/self/ns/pid")?.ino() != PROC_PID_INIT_INO {
            let message = "BPF counts processes otherwise than this container does";
            return Err(io::Error::other(message));
        }
        let followed = create_map(BPF_MAP_TYPE_HASH, 4, 4, MAX_FOLLOWED_PROCESSES, 0)?;
        let lost = create_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0)?;
        let ring = create_map(BPF_MAP_TYPE_RINGBUF, 0, 0, RING_BYTES as u32, 0)?;
        let (filter_map, filter) = FaultFilter::new()?;
        let types = std::fs::read("/sys/kernel/btf/vmlinux")?;
        let types = btf::BtfTypes::parse(&types);
        let offset = |structure, member| {
            let offset = types
                .as_ref()
                .and_then(|t| t.member_offset(structure, member));
            let message = "the kernel does not say what its tasks look like (BTF)";
            offset
                .and_then(|offset| i32::try_from(offset).ok())
                .ok_or_else(|| io::Error::other(message))
        };
        let around = ProgramRelocations {
            followed: followed.as_raw_fd(),
            ring: ring.as_raw_fd(),
            lost: lost.as_raw_fd(),
            filter: filter_map.as_raw_fd(),
            task_pid_offset: offset("task_struct", "pid")?,
            task_tgid_offset: offset("task_struct", "tgid")?,
            task_signal_offset: offset("task_struct", "signal")?,
            signal_live_offset: offset("signal_struct", "live")?,
        };
        let links = TRACEPOINTS.map(|(name, kind)| load_and_attach(name, kind, &around));
        Ok(BpfFaultMonitor {
            ring: BpfRingBuffer::new(&ring)?,
            filter: Some(filter),
            _links: links.into_iter().collect::<io::Result<_>>()?,
            followed,
            lost,
            records: Vec::new(),
        })
    }

    /// Follows a process and what it starts from now on.
    ///
    /// # Errors
    /// As bpf(2): E2BIG when too many are followed.
    pub fn follow(&self, pid: i32) -> io::Result<()> {
        map_element(BPF_MAP_UPDATE_ELEM, &self.followed, &pid, &mut pid.clone())
    }

    /// Which faults there are records of; `None` after the first call.
    pub fn take_filter(&mut self) -> Option<FaultFilter> {
        self.filter.take()
    }

    /// What happened since the last call, in order of time (nanoseconds since the machine
    /// was started).
    pub fn drain(&mut self) -> &[(u64, KernelEvent)] {
        self.records.clear();
        self.ring.drain(&mut self.records);
        self.records.sort_by_key(|&(at, _)| at);
        &self.records
    }

    /// Records that found no room so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let mut lost = 0u64;
        let read = map_element(BPF_MAP_LOOKUP_ELEM, &self.lost, &0i32, &mut lost);
        read.map_or(0, |()| lost)
    }
}

/// bpf(2) that makes a descriptor.
fn bpf_fd<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads the attributes, whose size it is told, and what they point to,
    // which the callers keep until this returns. It writes nothing for these commands.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            &raw const *attributes,
            size_of::<T>(),
        )
    };
    owned_fd(fd)
}

fn create_map(kind: u32, key: u32, value: u32, entries: u32, flags: u32) -> io::Result<OwnedFd> {
    bpf_fd(BPF_MAP_CREATE, &[kind, key, value, entries, flags])
}

/// Reads or writes an element of a map whose keys and values are of these sizes.
fn map_element<V>(command: libc::c_int, map: &OwnedFd, key: &i32, value: &mut V) -> io::Result<()> {
    #[repr(C)]
    struct BpfMapElemAttr {
        map: u64,
        key: u64,
        value: u64,
        flags: u64,
    }
    let attributes = BpfMapElemAttr {
        map: map.as_raw_fd().unsigned_abs().into(),
        key: (&raw const *key).addr() as u64,
        value: (&raw mut *value).expose_provenance() as u64,
        flags: 0,
    };
    let size = size_of::<BpfMapElemAttr>();
    // SAFETY: the kernel reads four bytes of the key and reads or writes as many of the value
    // as the map's values have: 4 where V is i32, 8 where it is u64, as the callers see to.
    let done = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const attributes, size) };
    check(done).map(drop)
}

/// Loads a program and has it run at a tracepoint as long as the descriptor is open.
fn load_and_attach(
    name: &CStr,
    kind: TracepointKind,
    around: &ProgramRelocations,
) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct BpfProgLoadAttr {
        kind: u32,
        count: u32,
        instructions: u64,
        license: u64,
        log_level: u32,
        log_size: u32,
        log: u64,
    }
    #[repr(C)]
    struct BpfRawTracepointAttr {
        name: u64,
        program: u64,
    }
    let instructions = assemble(kind, around);
    let loaded = bpf_fd(
        BPF_PROG_LOAD,
        &BpfProgLoadAttr {
            kind: BPF_PROG_TYPE_RAW_TRACEPOINT,
            count: instructions.len() as u32,
            instructions: instructions.as_ptr().expose_provenance() as u64,
            license: LICENSE.as_ptr().expose_provenance() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
        },
    )?;
    let open = BpfRawTracepointAttr {
        name: name.as_ptr().expose_provenance() as u64,
        program: loaded.as_raw_fd().unsigned_abs().into(),
    };
    bpf_fd(BPF_RAW_TRACEPOINT_OPEN, &open)
}

/// The ring: a page with our position, then a page with the kernel's, then the data, twice in
/// a row, so that no record is ever in two parts.
#[derive(Debug)]
struct BpfRingBuffer {
    ours: *mut u8,
    theirs: *mut u8,
}

impl BpfRingBuffer {
    fn new(map: &OwnedFd) -> io::Result<BpfRingBuffer> {
        let ours = map_shared(map, PAGE_SIZE, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let theirs = map_shared(
            map,
            PAGE_SIZE + 2 * RING_BYTES,
            libc::PROT_READ,
            PAGE_SIZE as i64,
        );
        if theirs.is_err() {
            // SAFETY: made above, and no reference to it exists.
            unsafe { libc::munmap(ours.cast(), PAGE_SIZE) };
        }
        Ok(BpfRingBuffer {
            ours,
            theirs: theirs?,
        })
    }

    fn drain(&mut self, into: &mut Vec<(u64, KernelEvent)>) {
        // SAFETY: both positions are at the start of a mapped page, aligned, and are only
        // ever accessed atomically; the mappings live as long as `self`. The kernel's page is
        // not writable and is only read.
        let (ours, theirs) = unsafe {
            (
                AtomicU64::from_ptr(self.ours.cast()),
                &*self.theirs.cast::<AtomicU64>(),
            )
        };
        let end = theirs.load(Ordering::Acquire);
        let mut at = ours.load(Ordering::Relaxed);
        while at < end {
            let offset = PAGE_SIZE + (at % RING_BYTES as u64) as usize;
            // SAFETY: records start at multiples of 8 within the first of the two views of the
            // data, and end within the second. A head is written atomically by the kernel.
            let head = unsafe { &*self.theirs.add(offset).cast::<AtomicU32>() };
            let head = head.load(Ordering::Acquire);
            if head & BPF_RINGBUF_BUSY_BIT != 0 {
                break;
            }
            let length = head & !BPF_RINGBUF_DISCARD_BIT;
            if length == RECORD_BYTES as u32 {
                let mut words = [0u64; RECORD_BYTES as usize / 8];
                // SAFETY: a record that is not busy is written no more until our position has
                // passed it, and has this length.
                unsafe {
                    let from = self.theirs.add(offset + 8);
                    std::ptr::copy_nonoverlapping(
                        from,
                        words.as_mut_ptr().cast(),
                        RECORD_BYTES as usize,
                    );
                }
                into.extend(parse_record(words).map(|record| (words[0], record)));
            }
            at += u64::from(length + 8).next_multiple_of(8);
        }
        ours.store(at, Ordering::Release);
    }
}

impl Drop for BpfRingBuffer {
    fn drop(&mut self) {
        // SAFETY: the mappings are of these lengths and no reference outlives `self`.
        unsafe {
            libc::munmap(self.ours.cast(), PAGE_SIZE);
            libc::munmap(self.theirs.cast(), PAGE_SIZE + 2 * RING_BYTES);
        }
    }
}

fn map_shared(map: &OwnedFd, length: usize, prot: libc::c_int, offset: i64) -> io::Result<*mut u8> {
    let null = std::ptr::null_mut();
    let fd = map.as_raw_fd();
    // SAFETY: a new mapping at an address that the kernel picks overlaps nothing of ours.
    let at = unsafe { libc::mmap(null, length, prot, libc::MAP_SHARED, fd, offset) };
    match at {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        at => Ok(at.cast()),
    }
}

/// A record as the programs lay it out; `None` of faults on the kernel's own addresses.
fn parse_record(words: [u64; RECORD_BYTES as usize / 8]) -> Option<KernelEvent> {
    let low = |word: u64| (word as u32).cast_signed();
    let high = |word: u64| low(word >> 32);
    let [_, address, who, which, other] = words;
    let (tid, pid) = (low(who), high(who));
    let is = |kind: TracepointKind| high(which) == kind as i32;
    if is(TracepointKind::Fault) {
        let cpu = low(which).cast_unsigned();
        let fault = PageFault {
            pid,
            tid,
            address,
            cpu,
        };
        return (address >> 63 == 0).then_some(KernelEvent::Fault(fault));
    }
    if is(TracepointKind::Fork) {
        return Some(KernelEvent::Fork {
            pid: high(other),
            tid: low(other),
            parent: pid,
            creator: tid,
        });
    }
    match is(TracepointKind::Exec) {
        true => Some(KernelEvent::Exec { pid }),
        false => is(TracepointKind::Exit).then_some(KernelEvent::Exit { pid, tid }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_this_process_starts_is_seen_from_fork_to_end() {
        let mut tracer = match BpfFaultMonitor::new() {
            Ok(tracer) => tracer,
            Err(e) => {
                println!("skipped: no BPF here: {e}");
                return;
            }
        };
        // A process that is not followed faults.
        assert!(Command::new("true").status().expect("true").success());
        assert_eq!(tracer.drain(), []);
        let own = std::process::id().cast_signed();
        tracer.follow(own).expect("follow");
        let mut child = Command::new("sh")
            .args(["-c", "(:); :"])
            .spawn()
            .expect("sh");
        let pid = child.id().cast_signed();
        child.wait().expect("wait");
        let records = tracer.drain().to_vec();
        assert!(records.is_sorted_by_key(|r| r.0), "in order");
        let of_child =
            |r: &&(u64, KernelEvent)| matches!(r.1, KernelEvent::Fault(f) if f.pid == pid);
        assert!(records.iter().filter(of_child).count() > 10, "{records:?}");
        let has = |wanted: KernelEvent| records.iter().any(|r| r.1 == wanted);
        assert!(has(KernelEvent::Exec { pid }), "{records:?}");
        assert!(has(KernelEvent::Exit { pid, tid: pid }), "{records:?}");
        let made = |wanted: i32| {
            let is = |r: &(u64, KernelEvent)| matches!(r.1, KernelEvent::Fork { pid, parent, .. } if parent == wanted && pid != wanted);
            records.iter().any(is)
        };
        assert!(made(own) && made(pid), "{records:?}");
        assert_eq!(tracer.lost(), 0);
        // It is gone, and so is its entry.
        let mut value = 0;
        let known = map_element(BPF_MAP_LOOKUP_ELEM, &tracer.followed, &pid, &mut value);
        assert_eq!(known.expect_err("gone").raw_os_error(), Some(libc::ENOENT));
    }

    /// Pages of a fresh mapping that are recorded when each is accessed once.
    fn recorded(monitor: &mut BpfFaultMonitor, pages: usize) -> (u64, Vec<usize>) {
        let length = pages * PAGE_SIZE;
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_ANONYMOUS);
        let null = std::ptr::null_mut();
        // SAFETY: a new mapping at an address that the kernel picks overlaps nothing of ours.
        let at = unsafe { libc::mmap(null, length, prot, libc::MAP_PRIVATE | flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        monitor.drain();
        for page in 0..pages {
            // SAFETY: within the mapping, which nobody else knows.
            unsafe { at.cast::<u8>().add(page * PAGE_SIZE).write_volatile(1) };
        }
        // SAFETY: made above, and no reference to it exists.
        unsafe { libc::munmap(at, length) };
        let start = at.addr();
        let of = start as u64..(start + length) as u64;
        let page = |r: &(u64, KernelEvent)| match r.1 {
            KernelEvent::Fault(f) if of.contains(&f.address) => {
                Some((f.address as usize - start) / PAGE_SIZE)
            }
            _ => None,
        };
        (
            start as u64,
            monitor.drain().iter().filter_map(page).collect(),
        )
    }

    #[test]
    fn the_kernel_leaves_out_what_the_filter_says() {
        const PAGES: usize = 200;
        let Ok(mut monitor) = BpfFaultMonitor::new() else {
            println!("skipped: no BPF here");
            return;
        };
        let own = std::process::id().cast_signed();
        monitor.follow(own).expect("follow");
        let filter = monitor.take_filter().expect("a filter");
        assert_eq!(recorded(&mut monitor, PAGES).1.len(), PAGES);
        assert_eq!(filter.left_out(), 0);
        filter.set_share(0.25);
        let (start, some) = recorded(&mut monitor, PAGES);
        let hash = |start: u64, page: &usize| page_hash(own, start + (page * PAGE_SIZE) as u64);
        let quarter = |page: &usize| hash(start, page) >> 62 == 0;
        assert_eq!(some, (0..PAGES).filter(quarter).collect::<Vec<_>>());
        assert!(filter.left_out() >= (PAGES - some.len()) as u64);
        // About every other bit of one bitmap, without a pattern, and of the other none.
        const BITS: u64 = 0x9E37_79B9_7F4A_7C15;
        filter.set_share(0.0);
        (0..FILTER_BITS / 64).for_each(|word| filter.store(1, word, BITS));
        let (start, some) = recorded(&mut monitor, PAGES);
        let is_set = |page: &usize| filter_bit(hash(start, page)).1 & BITS != 0;
        assert_eq!(some, (0..PAGES).filter(is_set).collect::<Vec<_>>());
    }

    #[test]
    fn a_full_ring_counts_what_it_lost() {
        let Ok(mut tracer) = BpfFaultMonitor::new() else {
            println!("skipped: no BPF here");
            return;
        };
        tracer
            .follow(std::process::id().cast_signed())
            .expect("follow");
        // 131072 pages; a record takes 48 bytes.
        let line = "head -c 512M /dev/zero | tail -c 512M | wc -c";
        let output = Command::new("sh").args(["-c", line]).output().expect("sh");
        assert!(output.status.success());
        let seen = tracer.drain().len();
        assert!(seen > RING_BYTES / 48 / 2, "{seen}");
        assert!(tracer.lost() > 10_000, "{seen} + {}", tracer.lost());
        // And goes on.
        assert!(Command::new("true").status().expect("true").success());
        assert!(!tracer.drain().is_empty());
    }
}
