//! The phases that are still to come, and what is left to do for the one that holds.
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use hither_sys::{Pid, Tid};

use crate::follow::proc_maps::MemoryMapping;
use crate::run::guide::{ActivePhases, ExecImage, PageBind};
use crate::run::page_moves::{PageMoveQueue, RefusedPages};
use crate::run::progress::PhaseFollower;

/// The phases that are still to come.
pub struct PhaseTicker<'a> {
    pub(super) progress: Option<&'a mut PhaseFollower>,
    pub(super) active: ActivePhases,
    /// Pages to bind as soon as this thread stands still.
    pub moves: HashMap<Tid, Vec<PageBind>>,
    /// Pages with memory that are yet to be moved, by process.
    pub pending: VecDeque<(Pid, PageMoveQueue)>,
    /// Pages that could not be moved, to be tried again.
    pub refused: RefusedPages,
    pub(super) looked: Instant,
}

impl<'a> PhaseTicker<'a> {
    pub fn new(progress: Option<&'a mut PhaseFollower>, phases: usize) -> Self {
        PhaseTicker {
            progress: progress.filter(|_| phases > 1),
            active: ActivePhases::default(),
            moves: HashMap::new(),
            pending: VecDeque::new(),
            refused: RefusedPages::default(),
            looked: Instant::now(),
        }
    }

    /// A program is at its first instruction.
    pub fn image_started(&mut self, pid: Pid, image: &ExecImage) {
        if let Some(progress) = &mut self.progress {
            progress.image_started(pid, image);
        }
    }

    /// A process mapped something.
    pub fn mapped(&mut self, pid: Pid, mapping: &MemoryMapping) {
        if let Some(progress) = &mut self.progress {
            progress.mapped(pid, mapping);
        }
    }

    /// Whether nothing is left to look up for.
    pub fn are_over(&self) -> bool {
        let over = self.progress.as_ref().is_none_or(|p| p.is_over());
        over && self.pending.is_empty() && self.refused.is_empty()
    }

    /// How progress was followed.
    pub fn note(&self) -> Option<String> {
        self.progress.as_ref()?.note()
    }
}
