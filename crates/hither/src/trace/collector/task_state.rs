//! The states of tasks, by their letters in proc(5).
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

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
