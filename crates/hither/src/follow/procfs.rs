//! What /proc says of a thread: its name, where it ran last, where it may run.
use crate::program::mpi;
use hither_sys::affinity::Mask;
use hither_sys::{Cpu, Pid, Tid};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Read;

/// A thread at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
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
pub fn look(pid: Pid, tid: Tid) -> Option<Look> {
    // One read gives all of such a file.
    let mut bytes = [0; 4096];
    let mut read = |file: &str| {
        let mut file = fs::File::open(format!("/proc/{pid}/task/{tid}/{file}")).ok()?;
        let length = file.read(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    };
    let mut look = stat(&read("stat")?)?;
    look.allowed = Mask::of(tid).ok().map(|mask| mask.to_string());
    look.migrations = read("sched").and_then(|s| {
        let line = s.lines().find(|l| l.starts_with("se.nr_migrations"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    });
    Some(look)
}

/// `TID (name) state ...`: the name may hold anything, the processor is the 39th field.
fn stat(text: &str) -> Option<Look> {
    let (before, after) = text.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    let processor = after.split_whitespace().nth(36);
    Some(Look {
        name: name.to_owned(),
        ran: processor.and_then(|p| p.parse().ok()).map(Cpu),
        ..Look::default()
    })
}

/// When a process or thread began, in clock ticks since the machine did: with its id, what
/// tells it from a later one of the same id.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Birth(pub u64);

/// When thread `tid` of process `pid` began; `None` when it is gone.
#[must_use]
pub fn birth(pid: Pid, tid: Tid) -> Option<Birth> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    Some(Birth(after_name(&stat, 22)?.parse().ok()?))
}

/// Who made a process, as far as that lives, its process group, and when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    pub parent: Pid,
    pub group: Pid,
    pub born: Birth,
}

/// `None` when the process is gone.
#[must_use]
pub fn family(pid: Pid) -> Option<Family> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(Family {
        parent: after_name(&stat, 4)?.parse().ok()?,
        group: after_name(&stat, 5)?.parse().ok()?,
        born: Birth(after_name(&stat, 22)?.parse().ok()?),
    })
}

/// Whether a process is one of the kernel's own.
#[must_use]
pub fn is_of_kernel(pid: Pid) -> bool {
    const PF_KTHREAD: u64 = 0x0020_0000;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let flags = after_name(&stat, 9).and_then(|flags| flags.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & PF_KTHREAD != 0)
}

/// A field of a stat file, counted from 1 as proc(5) does, behind the name, which may hold
/// anything.
fn after_name(stat: &str, field: usize) -> Option<&str> {
    stat.rsplit_once(") ")?.1.split_whitespace().nth(field - 3)
}

/// The threads of a process in order of their ids; none when it is gone.
#[must_use]
pub fn threads(pid: Pid) -> Vec<Tid> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
    let mut tids: Vec<Tid> = names.filter_map(|name| name.parse().ok()).collect();
    tids.sort_unstable();
    tids
}

/// The processes that a thread has made and that are still its children.
#[must_use]
pub fn children(pid: Pid, tid: Tid) -> Vec<Pid> {
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
pub fn command(pid: Pid) -> Vec<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).into_owned();
    let words = words.trim_end_matches('\0').split('\0');
    words.map(str::to_owned).collect()
}

/// The number of process `pid` among the ranks on this host, by its environment.
#[must_use]
pub fn rank(pid: Pid) -> Option<u32> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let environment = String::from_utf8_lossy(&environment).into_owned();
    mpi::local_rank(|name| {
        let mut all = environment.split('\0');
        let value = all.find_map(|v| v.strip_prefix(name)?.strip_prefix('='));
        value.map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_parentheses() {
        let numbers: Vec<String> = (4..=52).map(|n| n.to_string()).collect();
        let text = format!("17 (a) R (b) S {}\n", numbers.join(" "));
        let look = stat(&text).expect("a thread");
        assert_eq!((look.name.as_str(), look.ran), ("a) R (b", Some(Cpu(39))));
        assert_eq!(stat("17"), None);
        assert_eq!(
            stat("17 (a) S 1"),
            Some(Look {
                name: "a".to_owned(),
                ..Look::default()
            })
        );
    }

    #[test]
    fn a_child_is_born_after_its_parent() {
        let own = nix::unistd::getpid().as_raw();
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("60").spawn().expect("sleep");
        let pid = i32::try_from(child.id()).expect("pid");
        let (ours, its) = (family(own).expect("alive"), family(pid).expect("alive"));
        assert_eq!((its.parent, its.group), (own, ours.group));
        assert!(its.born >= ours.born);
        assert_eq!(birth(pid, pid), Some(its.born));
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert_eq!((family(pid), birth(pid, pid)), (None, None));
        assert!(!is_of_kernel(own) && !is_of_kernel(pid));
        let kthreadd = fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n");
        assert_eq!(is_of_kernel(2), kthreadd);
    }

    #[test]
    fn this_thread_can_be_looked_at() {
        let (pid, tid) = (nix::unistd::getpid(), nix::unistd::gettid());
        let look = look(pid.as_raw(), tid.as_raw()).expect("this thread");
        assert!(look.ran.is_some() && look.allowed.is_some());
        assert!(super::look(pid.as_raw(), i32::MAX - 1).is_none());
    }
}
