//! The phases that are still to come, and what is left to do for the one that holds.
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use hither_sys::{Pid, Tid};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::follow::proc_maps::Mapping;
use crate::run::guide::{Bind, Holding, Image};
use crate::run::page_moves::Moves;
use crate::run::progress::Progress;

/// The phases that are still to come.
pub struct Ticks<'a> {
    pub(super) progress: Option<&'a mut (dyn Progress + 'static)>,
    pub(super) holding: Holding,
    /// SIGCHLD, which is held back in this process.
    pub(super) children: Option<SignalFd>,
    /// Pages to bind as soon as this thread stands still.
    pub moves: HashMap<Tid, Vec<Bind>>,
    /// Pages with memory that are yet to be moved, by process.
    pub pending: VecDeque<(Pid, Moves)>,
    pub(super) looked: Instant,
}

impl<'a> Ticks<'a> {
    pub fn new(progress: Option<&'a mut (dyn Progress + 'static)>, phases: usize) -> Self {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ticks {
            progress: progress.filter(|_| phases > 1),
            holding: Holding::default(),
            children: SignalFd::with_flags(&SigSet::from(Signal::SIGCHLD), flags).ok(),
            moves: HashMap::new(),
            pending: VecDeque::new(),
            looked: Instant::now(),
        }
    }

    /// A program is at its first instruction.
    pub fn image(&mut self, pid: Pid, image: &Image) {
        if let Some(progress) = &mut self.progress {
            progress.image(pid, image);
        }
    }

    /// A process mapped something.
    pub fn mapped(&mut self, pid: Pid, mapping: &Mapping) {
        if let Some(progress) = &mut self.progress {
            progress.mapped(pid, mapping);
        }
    }

    /// Whether nothing is left to look up for.
    pub fn are_over(&self) -> bool {
        let over = self.progress.as_ref().is_none_or(|p| p.is_over());
        over && self.pending.is_empty()
    }

    /// How progress was followed.
    pub fn note(&self) -> Option<String> {
        self.progress.as_ref()?.note()
    }
}
