//! The states of tasks, by their letters in proc(5), and what the kernel does for them.
use hither_sys::proc_text::stat_field;
use std::fs;

/// Of thread `tid` of process `pid`; `None` where it is gone.
pub fn state(pid: i32, tid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    stat_field(&stat, 3)?.chars().next()
}

/// Whether a thread of the process runs or waits for nothing but a processor.
pub fn is_runnable(pid: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let mut ids = tasks.into_iter().flatten().flatten().filter_map(|task| {
        let name = task.file_name();
        name.to_str()?.parse().ok()
    });
    ids.any(|tid| state(pid, tid) == Some('R'))
}

/// Processor time that the kernel has used for all threads of the process, in nanoseconds, counted in ticks; `None` where
/// it is gone.
pub fn kernel_time(pid: i32) -> Option<u64> {
    const STIME: usize = 15;
    /// 100 a second to all programs, whatever the kernel's own are (proc(5), USER_HZ of x86).
    const TICK_NS: u64 = 10_000_000;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let ticks: u64 = stat_field(&stat, STIME)?.parse().ok()?;
    Some(ticks.saturating_mul(TICK_NS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_time_of_the_kernel_is_told_from_the_programs_own() {
        // Writes that end in the kernel; a shell that counts does hardly call it.
        let asks = [
            "sh",
            "-c",
            "exec dd if=/dev/zero of=/dev/null bs=1M count=20000",
        ];
        let counts = [
            "sh",
            "-c",
            "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done",
        ];
        let time = |line: [&str; 3]| {
            let mut child = Command::new(line[0]);
            let child = child.args(&line[1..]).stderr(Stdio::null());
            let mut child = child.spawn().expect("sh");
            let pid = child.id() as i32;
            while state(pid, pid) != Some('Z') {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let time = kernel_time(pid);
            child.wait().expect("its end");
            assert_eq!(kernel_time(pid), None);
            time.expect("a time")
        };
        let (kernel, own) = (time(asks), time(counts));
        assert!(kernel >= 100_000_000, "{kernel}");
        assert!(own < kernel / 4, "{own}, {kernel}");
    }

    #[test]
    fn who_waits_is_not_runnable() {
        let own = std::process::id() as i32;
        assert!(is_runnable(own));
        let mut cat = Command::new("cat");
        let mut cat = cat.stdin(Stdio::piped()).spawn().expect("cat");
        let pid = cat.id() as i32;
        while state(pid, pid) != Some('S') {
            std::thread::yield_now();
        }
        assert!(!is_runnable(pid));
        drop(cat.stdin.take());
        while state(pid, pid) != Some('Z') {
            std::thread::yield_now();
        }
        cat.wait().expect("its end");
        assert_eq!(state(pid, pid), None);
        assert!(!is_runnable(pid));
    }
}
