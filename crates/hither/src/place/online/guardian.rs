//! A small process that undoes what hither did to the system and to other processes, when
//! hither has ended, however it ended.
//!
//! ```text
//!  hither --pipe: what to undo--> guardian (its own session, all signals blocked)
//!     |                              |
//!     X killed: the pipe closes ---> undoes all, ends
//! ```
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result};
use hither_sys::affinity::Mask;
use hither_sys::{launch, process};
use nix::sys::signal::SigSet;
use nix::sys::wait::waitpid;
use serde::{Deserialize, Serialize};

use super::knobs::Knobs;
use crate::place::run::guide::{Pid, Tid};
use crate::place::run::task;

/// A thread was put on a unit: where it may run without us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    pub pid: Pid,
    pub tid: Tid,
    pub cpu: u32,
    pub natural: Vec<u32>,
}

/// The way to tell it. Dropping it has everything undone.
#[derive(Debug)]
pub struct Guardian {
    pipe: Option<PipeWriter>,
    pid: nix::unistd::Pid,
}

impl Guardian {
    /// Splits it off; `knobs` are let go by it. To be called before anything is changed and
    /// while this process has one thread.
    ///
    /// # Errors
    /// When the kernel makes no process or pipe.
    pub fn new(knobs: Option<&Knobs>) -> Result<Guardian> {
        let (theirs, ours) = std::io::pipe().context("cannot make a pipe")?;
        let end = ours.as_raw_fd();
        let pid = process::fork_off(|| {
            let mut kept = vec![theirs.as_raw_fd()];
            kept.extend(knobs.map(|knobs| knobs.file().as_raw_fd()));
            debug_assert!(!kept.contains(&end));
            let _ = SigSet::all().thread_block();
            let _ = nix::sys::prctl::set_name(c"hither-guardian");
            if launch::let_go(&kept).is_err() {
                return 1;
            }
            watch(theirs, knobs);
            0
        });
        Ok(Guardian {
            pipe: Some(ours),
            pid: pid.context("cannot split off the process that undoes what was changed")?,
        })
    }

    /// Has a thread put back at the end.
    pub fn pinned(&mut self, pinned: &Pinned) {
        if let (Some(pipe), Ok(mut line)) = (&mut self.pipe, serde_json::to_vec(pinned)) {
            line.push(b'\n');
            // Whoever killed the guardian wanted it so.
            let _ = pipe.write_all(&line);
        }
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = waitpid(self.pid, None);
    }
}

/// Reads to the end of the pipe, then undoes.
fn watch(pipe: PipeReader, knobs: Option<&Knobs>) {
    let mut all: HashMap<Pid, Vec<Pinned>> = HashMap::new();
    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
        if let Ok(pinned) = serde_json::from_str::<Pinned>(&line) {
            let of = all.entry(pinned.pid).or_default();
            of.retain(|known| known.tid != pinned.tid || known.cpu != pinned.cpu);
            of.push(pinned);
        }
    }
    if let Some(knobs) = knobs {
        let _ = knobs.let_go();
    }
    for (pid, pinned) in all {
        free(pid, &pinned);
    }
}

/// Gives the threads of a process that have a mask of ours the one they would have. A thread
/// made since inherited its creator's.
fn free(pid: Pid, pinned: &[Pinned]) {
    let units: HashSet<u32> = pinned.iter().map(|p| p.cpu).collect();
    for tid in task::threads(pid) {
        let Ok(mask) = Mask::of(tid) else {
            continue;
        };
        let cpus: Vec<u32> = mask.cpus().take(2).collect();
        let ours = matches!(cpus[..], [cpu] if units.contains(&cpu));
        let own = pinned.iter().find(|p| p.tid == tid);
        if let (true, Some(before)) = (ours, own.or(pinned.first())) {
            let _ = before.natural.iter().copied().collect::<Mask>().give(tid);
        }
    }
}
