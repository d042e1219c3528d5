//! Masks for threads of others. No system call takes a thread by anything but its id, which may be a
//! stranger's by the time of the call: so it is looked at again afterwards.
use std::fs;
use std::io;

use hither_sys::affinity::CpuMask;
use hither_sys::proc_text::proc_field;
use hither_sys::{Pid, Tid};
use nix::libc;

use super::procfs::{self, StartTime};

/// Gives a mask to the thread of a process that began at `start_time`; false if that one is gone. Whoever has its id now,
/// in no time after the kernel has dealt out all others, gets back what its creator has.
///
/// # Errors
/// As [`CpuMask::set_affinity`], but for a thread that is gone.
pub fn set_affinity_of(
    (pid, tid): (Pid, Tid),
    start_time: StartTime,
    mask: &CpuMask,
) -> io::Result<bool> {
    let is_there = || procfs::start_time(pid, tid) == Some(start_time);
    if !is_there() {
        return Ok(false);
    }
    give(tid, mask, is_there)
}

fn give(tid: Tid, mask: &CpuMask, is_there: impl Fn() -> bool) -> io::Result<bool> {
    match mask.set_affinity(tid) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
        done => done?,
    }
    if is_there() {
        return Ok(true);
    }
    let inherited = creator_of(tid).and_then(|creator| CpuMask::of_thread(creator).ok());
    if let Some(inherited) = inherited {
        // It may be gone as well, or have chosen another mask meanwhile.
        if CpuMask::of_thread(tid).is_ok_and(|now| now == *mask) {
            let _ = inherited.set_affinity(tid);
        }
    }
    Ok(false)
}

/// The first thread of its process, or of the first thread the parent.
fn creator_of(tid: Tid) -> Option<Tid> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let field = |name| proc_field(&status, name)?.parse().ok();
    let leader = field("Tgid").filter(|&leader| leader != tid);
    leader.or_else(|| field("PPid"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> (Child, Pid) {
        let child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let pid = Pid::try_from(child.id()).expect("pid");
        (child, pid)
    }

    fn end(mut child: Child) {
        child.kill().expect("kill");
        child.wait().expect("wait");
    }

    #[test]
    fn the_thread_that_was_meant_gets_its_mask() {
        let (child, pid) = sleeper();
        let start_time = procfs::start_time(pid, pid).expect("it lives");
        let own = CpuMask::of_thread(0).expect("mask");
        let one = CpuMask::single(own.cpus().next().expect("a unit"));
        assert!(set_affinity_of((pid, pid), start_time, &one).expect("set"));
        assert_eq!(CpuMask::of_thread(pid).expect("mask"), one);
        let earlier = StartTime(start_time.0 - 1);
        assert!(!set_affinity_of((pid, pid), earlier, &own).expect("set"));
        assert_eq!(CpuMask::of_thread(pid).expect("mask"), one);
        end(child);
        assert!(!set_affinity_of((pid, pid), start_time, &own).expect("set"));
    }

    #[test]
    fn a_stranger_with_its_id_gets_back_what_it_had() {
        let (child, pid) = sleeper();
        let own = CpuMask::of_thread(0).expect("mask");
        let one = CpuMask::single(own.cpus().next().expect("a unit"));
        assert!(!give(pid, &one, || false).expect("set"));
        assert_eq!(CpuMask::of_thread(pid).expect("mask"), own);
        end(child);
    }
}
