//! Page faults of other programs as they happen: a software event of perf_event_open(2)
//! per processor, whose records the kernel writes into a ring buffer that we read.
//!
//! ```text
//!  programs --fault--> event of the processor it happens on --record--> ring of it --> drain
//! ```
//! The events are inherited by all threads and processes that are made later, so nobody
//! has to be stopped to be followed. The same rings tell of their beginnings and ends.
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::perf::{self, Attributes};

const TYPE_SOFTWARE: u32 = 1;
const COUNT_PAGE_FAULTS: u64 = 2;
/// What a sample holds, in this order: process and thread, time, address, processor.
const SAMPLE: u64 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 7;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const COMM: u64 = 1 << 9;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const DISABLED: u64 = 1;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCK: u64 = 1 << 25;
/// _IO('$', 5)
const SET_OUTPUT: libc::c_ulong = 0x2405;

/// Bytes of a ring without its first page: what every user may have per processor
/// (perf_event_mlock_kb is 516 by default), and the least to do with where somebody has that
/// already.
const RING: usize = 512 << 10;
const SMALL_RING: usize = 16 << 10;
const PAGE: usize = 4096;
/// Offsets in the first page of a ring (struct perf_event_mmap_page).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

const RECORD_LOST: u32 = 2;
const RECORD_COMM: u32 = 3;
const RECORD_EXIT: u32 = 4;
const RECORD_FORK: u32 = 7;
const RECORD_SAMPLE: u32 = 9;
const MISC_COMM_EXEC: u16 = 1 << 13;

/// A page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub pid: i32,
    pub tid: i32,
    pub address: u64,
    /// The processor it happened on, by the kernel's number.
    pub cpu: u32,
}

/// What the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    Fault(Fault),
    /// A thread or, where the process ids differ, a process was made.
    Started {
        pid: i32,
        tid: i32,
        parent: i32,
        creator: i32,
    },
    Ended {
        pid: i32,
        tid: i32,
    },
    /// The process runs another program now.
    Exec {
        pid: i32,
    },
    /// The thread has this name now, padded with zeros.
    Named {
        tid: i32,
        name: [u8; 16],
    },
}

/// Events on all processors and their rings.
#[derive(Debug)]
pub struct Faults {
    rings: Vec<Ring>,
    /// Events that write into a ring of another, and each thread's anchor.
    others: Vec<File>,
    records: Vec<(u64, Record)>,
    lost: u64,
    /// Faults that the kernel raises on a program's behalf, in system calls, are not told.
    pub user_only: bool,
}

impl Faults {
    /// Observes what this thread starts from now on, each from its exec on.
    ///
    /// # Errors
    /// As perf_event_open(2) and mmap(2): EACCES or EPERM where perf_event_paranoid or a
    /// container forbids it, EMFILE, ENOMEM.
    pub fn of_children(cpus: &[u32]) -> io::Result<Faults> {
        let mut faults = Faults::on(0, cpus, DISABLED | ENABLE_ON_EXEC)?;
        faults.records.reserve(1 << 12);
        Ok(faults)
    }

    /// Observes threads that run already, and what they start.
    ///
    /// # Errors
    /// As [`Faults::of_children`]; ESRCH when none of them lives any more.
    pub fn of_threads(tids: &[i32], cpus: &[u32]) -> io::Result<Faults> {
        let mut faults: Option<Faults> = None;
        for &tid in tids {
            let done = match &mut faults {
                None => Faults::on(tid, cpus, 0).map(|f| faults = Some(f)),
                Some(faults) => faults.add(tid, cpus),
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
    /// As [`Faults::of_threads`].
    pub fn add(&mut self, tid: i32, cpus: &[u32]) -> io::Result<()> {
        self.others.push(perf::anchor(tid)?);
        for (ring, &cpu) in self.rings.iter().zip(cpus) {
            let event = open(tid, cpu, 0, self.user_only)?;
            // SAFETY: this request takes a descriptor as an integer, no pointer.
            let done =
                unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, ring.event.as_raw_fd()) };
            if done < 0 {
                return Err(io::Error::last_os_error());
            }
            self.others.push(event);
        }
        Ok(())
    }

    fn on(tid: i32, cpus: &[u32], flags: u64) -> io::Result<Faults> {
        let mut faults = Faults {
            rings: Vec::new(),
            others: vec![perf::anchor(tid)?],
            records: Vec::new(),
            lost: 0,
            user_only: false,
        };
        for &cpu in cpus {
            let event = match open(tid, cpu, flags, faults.user_only) {
                Err(e) if is_forbidden(&e) && !faults.user_only => {
                    faults.user_only = true;
                    open(tid, cpu, flags, true)
                }
                event => event,
            };
            faults.rings.push(Ring::new(event?)?);
        }
        Ok(faults)
    }

    /// What happened since the last call, in order of time (nanoseconds of the monotonic
    /// clock).
    pub fn drain(&mut self) -> &[(u64, Record)] {
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

fn open(tid: i32, cpu: u32, flags: u64, user_only: bool) -> io::Result<File> {
    let hidden = if user_only { EXCLUDE_KERNEL } else { 0 };
    let attributes = Attributes {
        kind: TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: COUNT_PAGE_FAULTS,
        period: 1,
        sample: SAMPLE,
        flags: INHERIT
            | EXCLUDE_HYPERVISOR
            | COMM
            | TASK
            | WATERMARK
            | SAMPLE_ID_ALL
            | COMM_EXEC
            | USE_CLOCK
            | hidden
            | flags,
        clock: libc::CLOCK_MONOTONIC,
        wakeup: RING as u32,
        ..Attributes::default()
    };
    perf::open(attributes, tid, libc::c_int::try_from(cpu).unwrap_or(-1))
}

/// A ring buffer shared with the kernel: it writes at the head, we read from the tail.
#[derive(Debug)]
struct Ring {
    event: File,
    at: *mut u8,
    /// Bytes of it without its first page, a power of two.
    size: usize,
    bytes: Vec<u8>,
}

impl Ring {
    fn new(event: File) -> io::Result<Ring> {
        let mut size = RING;
        let at = loop {
            match map(event.as_raw_fd(), size) {
                Err(e) if size > SMALL_RING && is_forbidden(&e) => size /= 2,
                at => break at?,
            }
        };
        Ok(Ring {
            event,
            at,
            size,
            bytes: Vec::new(),
        })
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both positions lie in the first page of the mapping, aligned to 8 bytes,
        // and are only ever accessed atomically; the mapping lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.at.add(offset).cast()) }
    }

    /// Appends the records with their times. How many were lost.
    fn drain(&mut self, into: &mut Vec<(u64, Record)>) -> u64 {
        let head = self.position(DATA_HEAD).load(Ordering::Acquire);
        let tail = self.position(DATA_TAIL).load(Ordering::Relaxed);
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
            let data = self.at.add(PAGE);
            std::ptr::copy_nonoverlapping(data.add(from), bytes.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr().add(first), length - first);
        }
        self.position(DATA_TAIL).store(head, Ordering::Release);
        let lost = read(&bytes, into);
        self.bytes = bytes;
        lost
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is of this length and nobody else knows it.
        unsafe { libc::munmap(self.at.cast(), PAGE + self.size) };
    }
}

fn map(fd: RawFd, size: usize) -> io::Result<*mut u8> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel picks overlaps nothing of ours.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE + size,
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
fn read(mut bytes: &[u8], into: &mut Vec<(u64, Record)>) -> u64 {
    let mut lost = 0;
    while let Some((kind, misc, length)) = header(bytes) {
        let Some(body) = bytes.get(8..length) else {
            break;
        };
        let half = |at: usize| i32::from_ne_bytes(four(body, at));
        match kind {
            RECORD_SAMPLE => into.push((
                word(body, 8),
                Record::Fault(Fault {
                    pid: half(0),
                    tid: half(4),
                    address: word(body, 16),
                    cpu: u32::from_ne_bytes(four(body, 24)),
                }),
            )),
            RECORD_FORK => into.push((
                word(body, 16),
                Record::Started {
                    pid: half(0),
                    parent: half(4),
                    tid: half(8),
                    creator: half(12),
                },
            )),
            RECORD_EXIT => into.push((
                word(body, 16),
                Record::Ended {
                    pid: half(0),
                    tid: half(8),
                },
            )),
            // At the end of this one: process and thread, time, processor.
            RECORD_COMM => {
                let at = word(body, body.len().saturating_sub(16));
                if misc & MISC_COMM_EXEC != 0 {
                    into.push((at, Record::Exec { pid: half(0) }));
                }
                let (tid, name) = (half(4), name(body));
                into.push((at, Record::Named { tid, name }));
            }
            RECORD_LOST => lost += word(body, 8),
            _ => {}
        }
        bytes = &bytes[length..];
    }
    lost
}

/// What a record of a name tells, between the ids of the thread and 24 bytes at the end.
fn name(body: &[u8]) -> [u8; 16] {
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
fn header(bytes: &[u8]) -> Option<(u32, u16, usize)> {
    let head = bytes.first_chunk::<8>()?;
    let kind = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
    let misc = u16::from_ne_bytes([head[4], head[5]]);
    let length = usize::from(u16::from_ne_bytes([head[6], head[7]]));
    (length >= 8).then_some((kind, misc, length))
}

fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    let found = bytes.get(at..).and_then(|b| b.first_chunk::<4>());
    found.copied().unwrap_or_default()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|b| b.first_chunk::<8>());
    u64::from_ne_bytes(found.copied().unwrap_or_default())
}

#[cfg(test)]
mod tests;
