//! What /proc says of a thread: its name, where it ran last, where it may run.
use hither_profile::{Nanos, PAGE_SIZE};
use hither_sys::affinity::CpuMask;
use hither_sys::proc_text::{proc_field, stat_field};
use hither_sys::sandbox::FileRights;
use hither_sys::{Cpu, Pid, Tid};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

/// A thread at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStatus {
    pub name: String,
    /// The unit that it ran on last.
    pub ran: Option<Cpu>,
    /// Its affinity mask as the kernel writes it: `0-3,8`.
    pub allowed: Option<String>,
    /// Times that it was moved to another unit, where the kernel counts that.
    pub migrations: Option<u64>,
}

/// Thread `tid` of process `pid`; `None` when it is gone.
#[must_use]
pub fn read_thread_status(pid: Pid, tid: Tid) -> Option<ThreadStatus> {
    // One read gives all of such a file.
    let mut bytes = [0; 4096];
    let mut read = |file: &str| {
        let mut file = fs::File::open(format!("/proc/{pid}/task/{tid}/{file}")).ok()?;
        let length = file.read(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    };
    let mut look = parse_stat(&read("stat")?)?;
    look.allowed = CpuMask::of_thread(tid).ok().map(|mask| mask.to_string());
    look.migrations = read("sched").and_then(|s| {
        let line = s.lines().find(|l| l.starts_with("se.nr_migrations"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    });
    Some(look)
}

/// `TID (name) state ...`: the name may hold anything.
fn parse_stat(text: &str) -> Option<ThreadStatus> {
    let (_, name) = text.rsplit_once(") ")?.0.split_once('(')?;
    let processor = stat_field(text, 39);
    Some(ThreadStatus {
        name: name.to_owned(),
        ran: processor.and_then(|p| p.parse().ok()).map(Cpu),
        ..ThreadStatus::default()
    })
}

/// Clock ticks of /proc are always this long.
pub const CLOCK_TICK: Nanos = 10_000_000;

/// When a process or thread began, in clock ticks since the machine did: with its id, what
/// tells it from a later one of the same id.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct StartTime(pub u64);

/// When thread `tid` of process `pid` began; `None` when it is gone.
#[must_use]
pub fn start_time(pid: Pid, tid: Tid) -> Option<StartTime> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    Some(StartTime(stat_field(&stat, 22)?.parse().ok()?))
}

/// Parent of a process (if it is alive), process group, and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessOrigin {
    pub parent: Pid,
    pub group: Pid,
    pub start_time: StartTime,
}

/// `None` when the process is gone.
#[must_use]
pub fn process_origin(pid: Pid) -> Option<ProcessOrigin> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(ProcessOrigin {
        parent: stat_field(&stat, 4)?.parse().ok()?,
        group: stat_field(&stat, 5)?.parse().ok()?,
        start_time: StartTime(stat_field(&stat, 22)?.parse().ok()?),
    })
}

/// Whether a process is one of the kernel's own.
#[must_use]
pub fn is_kernel_thread(pid: Pid) -> bool {
    const PF_KTHREAD: u64 = 0x0020_0000;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let flags = stat_field(&stat, 9).and_then(|flags| flags.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & PF_KTHREAD != 0)
}

/// Whether a process is stopped, by a signal or a debugger.
#[must_use]
pub fn is_stopped(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    matches!(stat_field(&stat, 3), Some("T" | "t"))
}

/// What a process may do with files; `None` when it is gone.
#[must_use]
pub fn file_rights(pid: Pid) -> Option<FileRights> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    // Real, effective, saved, of the file system.
    let last = |name| {
        let ids = proc_field(&status, name)?;
        ids.split_whitespace().nth(3)?.parse().ok()
    };
    let groups = proc_field(&status, "Groups")?.split_whitespace();
    Some(FileRights {
        user: last("Uid")?,
        group: last("Gid")?,
        groups: groups.filter_map(|group| group.parse().ok()).collect(),
    })
}

/// Memory of a process that is there, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResidentMemory {
    pub own: u64,
    /// Pages of files and of shared memory, which other processes may have as well.
    pub shared: u64,
}

/// `None` when it is gone.
#[must_use]
pub fn resident_memory(pid: Pid) -> Option<ResidentMemory> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut pages = statm.split_whitespace().skip(1);
    let mut bytes = || Some(pages.next()?.parse::<u64>().ok()?.saturating_mul(PAGE_SIZE));
    let (all, shared) = (bytes()?, bytes()?);
    Some(ResidentMemory {
        own: all.saturating_sub(shared),
        shared,
    })
}

/// The threads of a process in order of their ids; none when it is gone.
#[must_use]
pub fn thread_ids(pid: Pid) -> Vec<Tid> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let mut tids: Vec<Tid> = names.filter_map(|name| name.parse().ok()).collect();
    tids.sort_unstable();
    tids
}

/// How many threads a process has: the folder of its threads says so without being read.
#[must_use]
pub fn thread_count(pid: Pid) -> Option<usize> {
    let folder = fs::metadata(format!("/proc/{pid}/task")).ok()?;
    // Itself and its parent count as links too.
    usize::try_from(folder.nlink().checked_sub(2)?).ok()
}

/// The processes that a thread has made and that are still its children.
#[must_use]
pub fn child_pids(pid: Pid, tid: Tid) -> Vec<Pid> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace()
        .filter_map(|p| p.parse().ok())
        .collect()
}

/// The program that a process runs, links resolved; empty where that is not ours to know.
#[must_use]
pub fn executable(pid: Pid) -> String {
    let link = fs::read_link(format!("/proc/{pid}/exe"));
    link.map_or_else(
        |_| String::new(),
        |path| path.to_string_lossy().into_owned(),
    )
}

/// What a process was started as; its name where it does not tell.
#[must_use]
pub fn command_line(pid: Pid) -> Vec<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).into_owned();
    let words = words.trim_end_matches('\0').split('\0');
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_parentheses() {
        let numbers: Vec<String> = (4..=52).map(|n| n.to_string()).collect();
        let text = format!("17 (a) R (b) S {}\n", numbers.join(" "));
        let look = parse_stat(&text).expect("a thread");
        assert_eq!((look.name.as_str(), look.ran), ("a) R (b", Some(Cpu(39))));
        assert_eq!(parse_stat("17"), None);
        assert_eq!(
            parse_stat("17 (a) S 1"),
            Some(ThreadStatus {
                name: "a".to_owned(),
                ..ThreadStatus::default()
            })
        );
    }

    #[test]
    fn a_child_is_born_after_its_parent() {
        let own = nix::unistd::getpid().as_raw();
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("60").spawn().expect("sleep");
        let pid = i32::try_from(child.id()).expect("pid");
        let (ours, its) = (
            process_origin(own).expect("alive"),
            process_origin(pid).expect("alive"),
        );
        assert_eq!((its.parent, its.group), (own, ours.group));
        assert!(its.start_time >= ours.start_time);
        assert_eq!(start_time(pid, pid), Some(its.start_time));
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert_eq!((process_origin(pid), start_time(pid, pid)), (None, None));
        assert!(!is_kernel_thread(own) && !is_kernel_thread(pid));
        let kthreadd = fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n");
        assert_eq!(is_kernel_thread(2), kthreadd);
    }

    #[test]
    fn this_thread_can_be_looked_at() {
        let (pid, tid) = (nix::unistd::getpid(), nix::unistd::gettid());
        let look = read_thread_status(pid.as_raw(), tid.as_raw()).expect("this thread");
        assert!(look.ran.is_some() && look.allowed.is_some());
        assert!(super::read_thread_status(pid.as_raw(), i32::MAX - 1).is_none());
    }
}
