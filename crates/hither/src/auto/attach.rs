//! Taking in processes that run already: all threads of one and of the processes that come
//! from it, those too that are made while we look.
use std::collections::BTreeSet;
use std::io;

use nix::libc;

use super::observer::{Means, Observer};
use crate::follow::procfs;
use hither_sys::{Pid, Tid};

/// Rounds of looking for those that were made meanwhile by ones not yet observed.
const ROUNDS: usize = 100;

/// Processes that were joined.
pub struct Joined {
    pub observer: Box<dyn Observer>,
    pub processes: Vec<Pid>,
    /// Descendants that belong to somebody else.
    pub refused: Vec<Pid>,
}

/// Observes all threads of a process and its descendants.
///
/// # Errors
/// As the means', for the process itself; ESRCH when it is gone.
pub fn join(pid: Pid, cpus: &[u32], means: Means) -> io::Result<Joined> {
    let mut known: BTreeSet<Tid> = procfs::threads(pid).into_iter().collect();
    let first: Vec<Tid> = known.iter().copied().collect();
    let mut joined = Joined {
        observer: means.of_threads(pid, &first, cpus)?,
        processes: vec![pid],
        refused: Vec::new(),
    };
    // A thread made before its creator was observed inherits nothing.
    for _ in 0..ROUNDS {
        let mut news = false;
        for pid in family(pid) {
            if joined.refused.contains(&pid) {
                continue;
            }
            for tid in procfs::threads(pid) {
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

/// A process and those that come from it.
fn family(pid: Pid) -> Vec<Pid> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(&pid) = all.get(at) {
        at += 1;
        for tid in procfs::threads(pid) {
            for child in procfs::children(pid, tid) {
                if !all.contains(&child) {
                    all.push(child);
                }
            }
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
        let family = family(pid);
        hither_sys::process::send(-pid, libc::SIGKILL).expect("kill");
        parent.wait().expect("wait");
        assert_eq!((family.len(), family[0]), (3, pid));
    }
}
