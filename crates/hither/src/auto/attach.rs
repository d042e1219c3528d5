//! Taking in processes that run already: all threads of one and of the processes that come
//! from it, those too that are made while we look.
use std::collections::BTreeSet;
use std::io;

use nix::libc;

use super::observer::{FaultObserver, ObserverBackend};
use crate::follow::procfs;
use hither_sys::{Pid, Tid};

/// Rounds of looking for threads that were created by threads not yet observed.
const ROUNDS: usize = 100;

/// Processes that were joined.
pub struct AttachedProcesses {
    pub observer: FaultObserver,
    pub processes: Vec<Pid>,
    /// Descendants that belong to another user.
    pub refused: Vec<Pid>,
}

/// Observes all threads of a process and its descendants.
///
/// # Errors
/// As the means', for the process itself; ESRCH when it is gone.
pub fn attach_tree(
    pid: Pid,
    cpus: &[u32],
    means: ObserverBackend,
) -> io::Result<AttachedProcesses> {
    let mut known: BTreeSet<Tid> = procfs::thread_ids(pid).into_iter().collect();
    let first: Vec<Tid> = known.iter().copied().collect();
    let mut joined = AttachedProcesses {
        observer: means.of_threads(pid, &first, cpus)?,
        processes: vec![pid],
        refused: Vec::new(),
    };
    // A thread made before its creator was observed inherits nothing.
    for _ in 0..ROUNDS {
        let mut news = false;
        for (pid, _) in process_tree(pid) {
            if joined.refused.contains(&pid) {
                continue;
            }
            for tid in procfs::thread_ids(pid) {
                if known.contains(&tid) {
                    continue;
                }
                match joined
                    .observer
                    .add(pid, tid, cpus)
                    .map_err(|e| (e.raw_os_error(), e))
                {
                    Ok(()) => {}
                    Err((Some(libc::ESRCH), _)) => continue,
                    Err((Some(libc::EACCES | libc::EPERM), _)) => {
                        joined.refused.push(pid);
                        break;
                    }
                    Err((_, error)) => return Err(error),
                }
                news = true;
                known.insert(tid);
                if !joined.processes.contains(&pid) {
                    joined.processes.push(pid);
                }
            }
        }
        if !news {
            break;
        }
    }
    Ok(joined)
}

/// Processes and how far below the first each is.
pub type ProcessTree = Vec<(Pid, usize)>;

/// A process and those that come from it, each behind the one that it comes from.
#[must_use]
pub fn process_tree(pid: Pid) -> ProcessTree {
    let mut all = Vec::new();
    let mut found = vec![(pid, 0)];
    let mut seen = BTreeSet::from([pid]);
    while let Some((pid, depth)) = found.pop() {
        all.push((pid, depth));
        for tid in procfs::thread_ids(pid) {
            let children = procfs::child_pids(pid, tid).into_iter();
            found.extend(
                children
                    .filter(|child| seen.insert(*child))
                    .map(|child| (child, depth + 1)),
            );
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn families_reach_grandchildren() {
        let mut command = Command::new("sh");
        command.args(["-c", "sh -c 'sleep 60 & echo ready; wait' & wait"]);
        let piped = command.stdout(Stdio::piped()).process_group(0);
        let mut parent = piped.spawn().expect("sh");
        let mut line = String::new();
        let mut out = BufReader::new(parent.stdout.take().expect("stdout"));
        out.read_line(&mut line).expect("a line");
        let pid = i32::try_from(parent.id()).expect("pid");
        let family = process_tree(pid);
        hither_sys::process::send_signal(-pid, libc::SIGKILL).expect("kill");
        parent.wait().expect("wait");
        let depths: Vec<usize> = family.iter().map(|(_, depth)| *depth).collect();
        assert_eq!((family[0].0, &depths[..]), (pid, &[0, 1, 2][..]));
    }
}
