//! Page faults of other programs as they happen: a software event of perf_event_open(2)
//! per processor, whose records the kernel writes into a ring buffer that we read.
//!
//! ```text
//!  programs --fault--> event of the processor it happens on --record--> ring of it --> drain
//! ```
//! The events are inherited by all threads and processes created later, so none has to be
//! stopped to be followed. The same rings report their creation and exit.
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::{
    perf_event_mmap_page, PERF_COUNT_SW_PAGE_FAULTS, PERF_RECORD_COMM, PERF_RECORD_EXIT,
    PERF_RECORD_FORK, PERF_RECORD_LOST, PERF_RECORD_MISC_COMM_EXEC, PERF_RECORD_SAMPLE,
    PERF_SAMPLE_ADDR, PERF_SAMPLE_CPU, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE,
};
use perf_event_open_sys::ioctls;

use crate::errno::check;
use crate::perf;

/// What a sample holds, in this order: process and thread, time, address, processor.
const FAULT_SAMPLE_TYPE: u32 =
    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU;

/// Bytes of a ring without its first page: what every user may have per processor
/// (perf_event_mlock_kb is 516 by default), and the least to try where other
/// processes of the user have used that up.
const RING_BYTES: usize = 512 << 10;
const MIN_RING_BYTES: usize = 16 << 10;
const PAGE_SIZE: usize = hither_profile::PAGE_SIZE as usize;
/// Offsets in the first page of a ring.
const DATA_HEAD_OFFSET: usize = offset_of!(perf_event_mmap_page, data_head);
const DATA_TAIL_OFFSET: usize = offset_of!(perf_event_mmap_page, data_tail);

/// A page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFault {
    pub pid: i32,
    pub tid: i32,
    pub address: u64,
    /// The processor it happened on, by the kernel's number.
    pub cpu: u32,
}

/// What the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelEvent {
    Fault(PageFault),
    /// A thread or, where the process ids differ, a process was made.
    Fork {
        pid: i32,
        tid: i32,
        parent: i32,
        creator: i32,
    },
    Exit {
        pid: i32,
        tid: i32,
    },
    /// The process runs another program now.
    Exec {
        pid: i32,
    },
    /// The thread has this name now, padded with zeros.
    Comm {
        tid: i32,
        name: [u8; 16],
    },
}

/// Events on all processors and their rings.
#[derive(Debug)]
pub struct PerfFaultMonitor {
    rings: Vec<PerfRingBuffer>,
    /// Events that write into a ring of another, and each thread's anchor.
    others: Vec<File>,
    records: Vec<(u64, KernelEvent)>,
    lost: u64,
    /// Faults that the kernel raises on a program's behalf, in system calls, are not told.
    pub user_only: bool,
}

impl PerfFaultMonitor {
    /// Observes what this thread starts from now on, each from its exec on.
    ///
    /// # Errors
    /// As perf_event_open(2) and mmap(2): EACCES or EPERM where perf_event_paranoid or a
    /// container forbids it, EMFILE, ENOMEM.
    pub fn of_children(cpus: &[u32]) -> io::Result<PerfFaultMonitor> {
        let mut faults = PerfFaultMonitor::open_on_cpus(0, cpus, FirstEnabled::AtExec)?;
        faults.records.reserve(1 << 12);
        Ok(faults)
    }

    /// Observes threads that run already, and what they start.
    ///
    /// # Errors
    /// As [`PerfFaultMonitor::of_children`]; ESRCH when none of them lives any more.
    pub fn of_threads(tids: &[i32], cpus: &[u32]) -> io::Result<PerfFaultMonitor> {
        let mut faults: Option<PerfFaultMonitor> = None;
        for &tid in tids {
            let done = match &mut faults {
                None => PerfFaultMonitor::open_on_cpus(tid, cpus, FirstEnabled::Now)
                    .map(|f| faults = Some(f)),
                Some(faults) => faults.add_thread(tid, cpus),
            };
            match done {
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                done => done?,
            }
        }
        faults.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
    }

    /// Observes one more thread that runs already.
    ///
    /// # Errors
    /// As [`PerfFaultMonitor::of_threads`].
    pub fn add_thread(&mut self, tid: i32, cpus: &[u32]) -> io::Result<()> {
        self.others.push(perf::open_dummy_event(tid)?);
        for (ring, &cpu) in self.rings.iter().zip(cpus) {
            let event = open_fault_event(tid, cpu, FirstEnabled::Now, self.user_only)?;
            // SAFETY: this request takes a descriptor as an integer, no pointer.
            check(unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), ring.event.as_raw_fd()) })?;
            self.others.push(event);
        }
        Ok(())
    }

    fn open_on_cpus(tid: i32, cpus: &[u32], enabled: FirstEnabled) -> io::Result<PerfFaultMonitor> {
        let mut faults = PerfFaultMonitor {
            rings: Vec::new(),
            others: vec![perf::open_dummy_event(tid)?],
            records: Vec::new(),
            lost: 0,
            user_only: false,
        };
        for &cpu in cpus {
            let event = match open_fault_event(tid, cpu, enabled, faults.user_only) {
                Err(e) if is_forbidden(&e) && !faults.user_only => {
                    faults.user_only = true;
                    open_fault_event(tid, cpu, enabled, true)
                }
                event => event,
            };
            faults.rings.push(PerfRingBuffer::new(event?)?);
        }
        Ok(faults)
    }

    /// What happened since the last call, in order of time (nanoseconds of the monotonic
    /// clock).
    pub fn drain(&mut self) -> &[(u64, KernelEvent)] {
        self.records.clear();
        for ring in &mut self.rings {
            self.lost += ring.drain(&mut self.records);
        }
        self.records.sort_by_key(|&(at, _)| at);
        &self.records
    }

    /// Records that found no room in a ring so far: those of which the kernel has told, which
    /// it does before the next record in the same ring.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// When an event begins to count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstEnabled {
    Now,
    AtExec,
}

fn open_fault_event(
    tid: i32,
    cpu: u32,
    enabled: FirstEnabled,
    user_only: bool,
) -> io::Result<File> {
    let mut attributes = perf::event_attributes(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
    attributes.__bindgen_anon_1.sample_period = 1;
    attributes.sample_type = FAULT_SAMPLE_TYPE.into();
    attributes.__bindgen_anon_2.wakeup_watermark = RING_BYTES as u32;
    attributes.clockid = libc::CLOCK_MONOTONIC;
    attributes.set_disabled((enabled == FirstEnabled::AtExec).into());
    attributes.set_enable_on_exec((enabled == FirstEnabled::AtExec).into());
    attributes.set_exclude_kernel(user_only.into());
    attributes.set_inherit(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_task(1);
    attributes.set_watermark(1);
    attributes.set_sample_id_all(1);
    attributes.set_use_clockid(1);
    perf::perf_event_open(attributes, tid, libc::c_int::try_from(cpu).unwrap_or(-1))
}

/// A ring buffer shared with the kernel: it writes at the head, we read from the tail.
#[derive(Debug)]
struct PerfRingBuffer {
    event: File,
    at: *mut u8,
    /// Bytes of it without its first page, a power of two.
    size: usize,
    bytes: Vec<u8>,
}

impl PerfRingBuffer {
    fn new(event: File) -> io::Result<PerfRingBuffer> {
        let mut size = RING_BYTES;
        let at = loop {
            match map_ring(event.as_raw_fd(), size) {
                Err(e) if size > MIN_RING_BYTES && is_forbidden(&e) => size /= 2,
                at => break at?,
            }
        };
        Ok(PerfRingBuffer {
            event,
            at,
            size,
            bytes: Vec::new(),
        })
    }

    fn ring_position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both positions lie in the first page of the mapping, aligned to 8 bytes,
        // and are only ever accessed atomically; the mapping lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.at.add(offset).cast()) }
    }

    /// Appends the records with their times. How many were lost.
    fn drain(&mut self, into: &mut Vec<(u64, KernelEvent)>) -> u64 {
        let head = self.ring_position(DATA_HEAD_OFFSET).load(Ordering::Acquire);
        let tail = self.ring_position(DATA_TAIL_OFFSET).load(Ordering::Relaxed);
        let length = usize::try_from(head.wrapping_sub(tail))
            .unwrap_or(self.size)
            .min(self.size);
        let from = (tail % self.size as u64) as usize;
        let first = length.min(self.size - from);
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(length, 0);
        // SAFETY: the data start one page behind the start of the mapping and are `size` bytes
        // long; `from + first` and `length - first` are at most that. The kernel writes only
        // between head and tail, which is the other part of the ring.
        unsafe {
            let data = self.at.add(PAGE_SIZE);
            std::ptr::copy_nonoverlapping(data.add(from), bytes.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr().add(first), length - first);
        }
        self.ring_position(DATA_TAIL_OFFSET)
            .store(head, Ordering::Release);
        let lost = parse_records(&bytes, into);
        self.bytes = bytes;
        lost
    }
}

impl Drop for PerfRingBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is of this length and no reference outlives `self`.
        unsafe { libc::munmap(self.at.cast(), PAGE_SIZE + self.size) };
    }
}

fn map_ring(fd: RawFd, size: usize) -> io::Result<*mut u8> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel picks overlaps nothing of ours.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE_SIZE + size,
            prot,
            libc::MAP_SHARED,
            fd,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(at.cast())
}

/// Reads records off their bytes. How many the kernel says were lost.
fn parse_records(mut bytes: &[u8], into: &mut Vec<(u64, KernelEvent)>) -> u64 {
    let mut lost = 0;
    while let Some((kind, misc, length)) = record_header(bytes) {
        let Some(body) = bytes.get(8..length) else {
            break;
        };
        let half = |at: usize| i32::from_ne_bytes(four_bytes(body, at));
        match kind {
            PERF_RECORD_SAMPLE => into.push((
                u64_at(body, 8),
                KernelEvent::Fault(PageFault {
                    pid: half(0),
                    tid: half(4),
                    address: u64_at(body, 16),
                    cpu: u32::from_ne_bytes(four_bytes(body, 24)),
                }),
            )),
            PERF_RECORD_FORK => into.push((
                u64_at(body, 16),
                KernelEvent::Fork {
                    pid: half(0),
                    parent: half(4),
                    tid: half(8),
                    creator: half(12),
                },
            )),
            PERF_RECORD_EXIT => into.push((
                u64_at(body, 16),
                KernelEvent::Exit {
                    pid: half(0),
                    tid: half(8),
                },
            )),
            // At the end of this one: process and thread, time, processor.
            PERF_RECORD_COMM => {
                let at = u64_at(body, body.len().saturating_sub(16));
                if u32::from(misc) & PERF_RECORD_MISC_COMM_EXEC != 0 {
                    into.push((at, KernelEvent::Exec { pid: half(0) }));
                }
                let (tid, name) = (half(4), comm_of(body));
                into.push((at, KernelEvent::Comm { tid, name }));
            }
            PERF_RECORD_LOST => lost += u64_at(body, 8),
            _ => {}
        }
        bytes = &bytes[length..];
    }
    lost
}

/// What a record of a name tells, between the ids of the thread and 24 bytes at the end.
fn comm_of(body: &[u8]) -> [u8; 16] {
    let mut name = [0; 16];
    let told = body
        .get(8..body.len().saturating_sub(24))
        .unwrap_or_default();
    for (to, from) in name.iter_mut().zip(told.iter().take_while(|b| **b != 0)) {
        *to = *from;
    }
    name
}

/// Kind, flags and length in bytes of the record that comes next.
fn record_header(bytes: &[u8]) -> Option<(u32, u16, usize)> {
    let head = bytes.first_chunk::<8>()?;
    let kind = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
    let misc = u16::from_ne_bytes([head[4], head[5]]);
    let length = usize::from(u16::from_ne_bytes([head[6], head[7]]));
    (length >= 8).then_some((kind, misc, length))
}

fn four_bytes(bytes: &[u8], at: usize) -> [u8; 4] {
    let found = bytes.get(at..).and_then(|b| b.first_chunk::<4>());
    found.copied().unwrap_or_default()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|b| b.first_chunk::<8>());
    u64::from_ne_bytes(found.copied().unwrap_or_default())
}

#[cfg(test)]
mod tests;
