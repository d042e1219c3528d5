//! perf_event_open(2), and counting with it how often other programs enter a function,
//! without stopping them: a hardware breakpoint on its first instruction.
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

/// Hardware breakpoints per thread on x86 (DR0 to DR3).
pub const HBP_NUM: usize = 4;

const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_SW_DUMMY: u64 = 9;
const PERF_TYPE_BREAKPOINT: u32 = 5;
const HW_BREAKPOINT_X: u32 = 4;
const ATTR_DISABLED: u64 = 1;
const ATTR_INHERIT: u64 = 1 << 1;
const ATTR_EXCLUDE_KERNEL: u64 = 1 << 5;
const ATTR_EXCLUDE_HV: u64 = 1 << 6;
/// Linux 5.13.
const ATTR_INHERIT_THREAD: u64 = 1 << 35;
const ATTR_REMOVE_ON_EXEC: u64 = 1 << 36;
/// _IO('$', 0) and _IO('$', 1)
const PERF_EVENT_IOC_ENABLE: libc::c_ulong = 0x2400;
const PERF_EVENT_IOC_DISABLE: libc::c_ulong = 0x2401;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// The fourth published layout of perf_event_attr (PERF_ATTR_SIZE_VER3, Linux 4.1).
#[repr(C)]
#[derive(Default)]
pub(crate) struct PerfEventAttr {
    pub type_: u32,
    pub size: u32,
    pub config: u64,
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub wakeup_watermark: u32,
    pub bp_type: u32,
    /// config1 and config2.
    pub bp_addr: u64,
    pub bp_len: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    /// Of the times in records, with the flag that says so.
    pub clockid: i32,
}

/// Which threads are counted besides the one that the counter is opened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InheritScope {
    /// Threads that it makes later, and theirs.
    Threads,
    /// Processes too, until they call exec.
    Processes,
}

/// A software event in counting mode. It keeps its value after the counted thread exits.
#[derive(Debug)]
pub struct PerfCounter {
    event: File,
    _anchor: File,
}

impl PerfCounter {
    /// Counts the times that thread `tid` and its heirs execute the instruction at
    /// `address` of their process, until exec.
    ///
    /// # Errors
    /// As perf_event_open(2): EACCES or EPERM where perf_event_paranoid or a container
    /// forbids it, ENOSPC when the thread's breakpoints are used up, ENODEV or EOPNOTSUPP
    /// on a machine without.
    pub fn breakpoint(tid: i32, address: u64, heirs: InheritScope) -> io::Result<PerfCounter> {
        let only_threads = match heirs {
            InheritScope::Threads => ATTR_INHERIT_THREAD,
            InheritScope::Processes => 0,
        };
        let attributes = |newer: u64| PerfEventAttr {
            type_: PERF_TYPE_BREAKPOINT,
            size: size_of::<PerfEventAttr>() as u32,
            flags: ATTR_INHERIT | ATTR_EXCLUDE_KERNEL | ATTR_EXCLUDE_HV | newer,
            bp_type: HW_BREAKPOINT_X,
            bp_addr: address,
            bp_len: size_of::<libc::c_long>() as u64,
            ..PerfEventAttr::default()
        };
        let open = |newer| perf_event_open(attributes(newer), tid, ANY_CPU);
        let event = match open(ATTR_REMOVE_ON_EXEC | only_threads) {
            // Older kernels know neither flag: what they count besides is little.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => open(0)?,
            other => other?,
        };
        Ok(PerfCounter {
            event,
            _anchor: open_dummy_event(tid)?,
        })
    }

    /// Stops or goes on, for all that are counted.
    ///
    /// # Errors
    /// As ioctl(2).
    pub fn set_enabled(&self, on: bool) -> io::Result<()> {
        let request = if on {
            PERF_EVENT_IOC_ENABLE
        } else {
            PERF_EVENT_IOC_DISABLE
        };
        // SAFETY: these requests take an integer, no pointer, and the descriptor is ours.
        let done = unsafe { libc::ioctl(self.event.as_raw_fd(), request, 0) };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The sum over all that are or were counted.
    ///
    /// # Errors
    /// As read(2).
    pub fn value(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        (&self.event).read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

const ANY_CPU: libc::c_int = -1;

/// An event that counts nothing and is not inherited. It keeps the inherited events of a
/// thread with it: where two threads have the same ones, the kernel may give each the other's
/// instead of taking them off a processor and putting them on (perf_event_context_sched_out).
/// Then the events that others are copied from end with a thread that was made later, and from
/// then on (Linux 6.18) no new thread gets any.
///
/// # Errors
/// As perf_event_open(2).
pub(crate) fn open_dummy_event(tid: i32) -> io::Result<File> {
    let attributes = PerfEventAttr {
        type_: PERF_TYPE_SOFTWARE,
        size: size_of::<PerfEventAttr>() as u32,
        config: PERF_COUNT_SW_DUMMY,
        flags: ATTR_DISABLED | ATTR_EXCLUDE_KERNEL | ATTR_EXCLUDE_HV,
        ..PerfEventAttr::default()
    };
    perf_event_open(attributes, tid, ANY_CPU)
}

/// Opens an event on a thread (0: this one) and a processor, or any.
pub(crate) fn perf_event_open(
    mut attributes: PerfEventAttr,
    tid: i32,
    cpu: libc::c_int,
) -> io::Result<File> {
    const NO_GROUP: libc::c_int = -1;
    // SAFETY: the kernel reads `size` bytes of the attributes, which live until the call
    // returns, and writes at most their size field.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw mut attributes,
            tid,
            cpu,
            NO_GROUP,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us and nobody else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[inline(never)]
    extern "C" fn counted(n: u64) -> u64 {
        std::hint::black_box(n + 1)
    }

    fn call(times: u64) {
        let function: extern "C" fn(u64) -> u64 = std::hint::black_box(counted);
        (0..times).for_each(|n| {
            function(n);
        });
    }

    /// Where the machine has breakpoints at all.
    fn counter(heirs: InheritScope) -> Option<PerfCounter> {
        let function: extern "C" fn(u64) -> u64 = counted;
        match PerfCounter::breakpoint(0, function as usize as u64, heirs) {
            Ok(counter) => Some(counter),
            Err(e) => {
                let errno = e.raw_os_error();
                let refused = [libc::EACCES, libc::EPERM, libc::ENODEV, libc::EOPNOTSUPP];
                assert!(errno.is_some_and(|n| refused.contains(&n)), "{e}");
                println!("skipped: no breakpoints here: {e}");
                None
            }
        }
    }

    #[test]
    fn calls_of_this_thread_and_of_later_ones_count() {
        let Some(counter) = counter(InheritScope::Threads) else {
            return;
        };
        call(100);
        assert_eq!(counter.value().expect("value"), 100);
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| call(50))).collect();
        for thread in threads {
            thread.join().expect("join");
        }
        assert_eq!(counter.value().expect("value"), 300);
    }

    #[test]
    fn a_counter_that_is_off_stands_still() {
        let Some(counter) = counter(InheritScope::Threads) else {
            return;
        };
        call(3);
        counter.set_enabled(false).expect("off");
        call(5);
        // The counter of a thread created while it is off is off, too.
        std::thread::spawn(|| call(5)).join().expect("join");
        assert_eq!(counter.value().expect("value"), 3);
        counter.set_enabled(true).expect("on");
        call(5);
        assert_eq!(counter.value().expect("value"), 8);
    }

    #[test]
    fn exec_ends_the_count_of_who_calls_it_only() {
        let Some(counter) = counter(InheritScope::Processes) else {
            return;
        };
        call(7);
        let status = Command::new("true").status().expect("true");
        assert!(status.success());
        call(7);
        assert_eq!(counter.value().expect("value"), 14);
    }

    #[test]
    fn breakpoints_run_out() {
        let counters: Vec<_> = (0..HBP_NUM)
            .map(|_| counter(InheritScope::Threads))
            .collect();
        if counters.iter().any(Option::is_none) {
            return;
        }
        let function: extern "C" fn(u64) -> u64 = counted;
        let more = PerfCounter::breakpoint(0, function as usize as u64, InheritScope::Threads);
        let errno = more.expect_err("a fifth breakpoint").raw_os_error();
        assert_eq!(errno, Some(libc::ENOSPC));
    }
}
