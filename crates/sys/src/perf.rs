//! perf_event_open(2), and counting with it how often other programs enter a function,
//! without stopping them: a hardware breakpoint on its first instruction.
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

use crate::errno::{check, owned_fd};
use perf_event_open_sys::bindings::{self, perf_event_attr};
use perf_event_open_sys::ioctls;

/// Hardware breakpoints per thread on x86 (DR0 to DR3).
pub const HBP_NUM: usize = 4;

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
    pub fn breakpoint(tid: i32, address: u64, inherit: InheritScope) -> io::Result<PerfCounter> {
        let attributes = |newer: bool| {
            let mut attributes = event_attributes(bindings::PERF_TYPE_BREAKPOINT, 0);
            attributes.bp_type = bindings::HW_BREAKPOINT_X;
            attributes.__bindgen_anon_3.bp_addr = address;
            attributes.__bindgen_anon_4.bp_len = size_of::<libc::c_long>() as u64;
            attributes.set_inherit(1);
            attributes.set_exclude_kernel(1);
            // Both since Linux 5.13.
            attributes.set_remove_on_exec(newer.into());
            attributes.set_inherit_thread((newer && inherit == InheritScope::Threads).into());
            attributes
        };
        let open = |newer| perf_event_open(attributes(newer), tid, ANY_CPU);
        let event = match open(true) {
            // Older kernels know neither flag: what they count besides is little.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => open(false)?,
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
        let change = if on { ioctls::ENABLE } else { ioctls::DISABLE };
        // SAFETY: these requests take an integer, no pointer, and the descriptor is ours.
        let done = unsafe { change(self.event.as_raw_fd(), 0) };
        check(done).map(drop)
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

pub(crate) const ANY_CPU: libc::c_int = -1;

/// An event that counts nothing and is not inherited. It keeps the inherited events of a
/// thread with it: where two threads have the same ones, the kernel may give each the other's
/// instead of taking them off a processor and putting them on (perf_event_context_sched_out).
/// Then the events that others are copied from end with a thread that was made later, and from
/// then on (Linux 6.18) no new thread gets any.
///
/// # Errors
/// As perf_event_open(2).
pub(crate) fn open_dummy_event(tid: i32) -> io::Result<File> {
    let mut attributes =
        event_attributes(bindings::PERF_TYPE_SOFTWARE, bindings::PERF_COUNT_SW_DUMMY);
    attributes.set_disabled(1);
    attributes.set_exclude_kernel(1);
    perf_event_open(attributes, tid, ANY_CPU)
}

/// An event of the kernel's type and number, not of a hypervisor. Kernels that know a shorter
/// structure take this one while the rest is zero.
pub(crate) fn event_attributes(kind: u32, config: u32) -> perf_event_attr {
    let mut attributes = perf_event_attr {
        type_: kind,
        size: size_of::<perf_event_attr>() as u32,
        config: config.into(),
        ..perf_event_attr::default()
    };
    attributes.set_exclude_hv(1);
    attributes
}

/// Opens an event on a thread (0: this one) and a processor, or any.
pub(crate) fn perf_event_open(
    mut attributes: perf_event_attr,
    tid: i32,
    cpu: libc::c_int,
) -> io::Result<File> {
    const NO_GROUP: libc::c_int = -1;
    let flags = bindings::PERF_FLAG_FD_CLOEXEC.into();
    // SAFETY: the kernel reads `size` bytes of the attributes, which live until the call
    // returns, and writes at most their size field.
    let fd = unsafe {
        perf_event_open_sys::perf_event_open(&raw mut attributes, tid, cpu, NO_GROUP, flags)
    };
    owned_fd(fd).map(File::from)
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
    fn counter(inherit: InheritScope) -> Option<PerfCounter> {
        let function: extern "C" fn(u64) -> u64 = counted;
        match PerfCounter::breakpoint(0, function as usize as u64, inherit) {
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
