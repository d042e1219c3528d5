//! Places threads by a rule, without a profile: each new thread goes to the first unit of
//! an order that has the fewest of the program's threads alive. So the n-th thread of a
//! team gets the n-th unit, and a team that ends leaves its units to the next one.
//!
//! A process that starts another program (a shell, `mpirun`) waits for it most of the
//! time: from then on its threads do not count, and the program begins where it began.
//! A rank of an MPI job takes the unit of its number, since ranks start in no order.
use super::guide::{
    ActivePhases, ExecImage, InitialPlacement, PageBind, PhaseChange, PlacementGuide,
    RecognisedRegion,
};
use crate::follow::proc_maps::MemoryMapping;
use hither_model::topology::PuList;
use hither_sys::{Cpu, Pid, Tid};
use std::collections::BTreeMap;

/// Deals out the units of an order.
#[derive(Default)]
pub struct RuleGuide {
    order: Vec<Cpu>,
    /// Threads to leave alone, numbered from 0 in order of creation.
    skip: Option<PuList>,
    /// Whether ranks are told apart here; false where hither is started once per rank.
    ranks: bool,
    /// Counted threads alive at each place of the order.
    alive: Vec<u32>,
    threads: BTreeMap<Tid, RuleThread>,
    /// Processes that have not run another program since they were forked, and by whom.
    forked: BTreeMap<Pid, Pid>,
    /// Threads created so far.
    created: u32,
    /// Most counted threads that were alive at once.
    most: u32,
}

struct RuleThread {
    process: Pid,
    /// Its place in the order, if it is counted there.
    position: Option<usize>,
    /// It is one of those to leave alone.
    skipped: bool,
}

impl RuleGuide {
    /// `order` empty: no thread is placed.
    #[must_use]
    pub fn new(order: Vec<Cpu>, skip: Option<PuList>, ranks: bool) -> RuleGuide {
        RuleGuide {
            alive: vec![0; order.len()],
            order,
            skip,
            ranks,
            ..RuleGuide::default()
        }
    }

    /// A thread that was made just now.
    fn add_thread(&mut self, process: Pid, tid: Tid, rank: Option<u32>) -> InitialPlacement {
        let skipped = self.skip.as_ref();
        let skipped = skipped.is_some_and(|list| list.contains(self.created));
        self.created = self.created.saturating_add(1);
        // The kernel reuses ids, and the end of a thread may have been missed.
        self.thread_ended(tid);
        let thread = RuleThread {
            process,
            position: None,
            skipped,
        };
        self.threads.insert(tid, thread);
        self.assign_pu(tid, rank)
    }

    /// Gives a thread without a place one.
    fn assign_pu(&mut self, tid: Tid, rank: Option<u32>) -> InitialPlacement {
        let Some(thread) = self.threads.get_mut(&tid).filter(|t| !t.skipped) else {
            return InitialPlacement::default();
        };
        let rank = rank.filter(|_| self.ranks && !self.order.is_empty());
        let least = (0..self.order.len()).min_by_key(|at| self.alive[*at]);
        let place = rank.map(|rank| rank as usize % self.order.len()).or(least);
        if let Some(at) = place {
            self.alive[at] += 1;
            self.most = self.most.max(self.alive.iter().sum());
        }
        thread.position = place;
        InitialPlacement {
            cpu: place.map(|at| self.order[at]),
            ..InitialPlacement::default()
        }
    }

    fn stand_up(&mut self, tid: Tid) {
        let thread = self.threads.get_mut(&tid);
        if let Some(at) = thread.and_then(|t| t.position.take()) {
            self.alive[at] -= 1;
        }
    }

    fn threads_of(&self, process: Pid) -> Vec<Tid> {
        let of = self.threads.iter().filter(|(_, t)| t.process == process);
        of.map(|(tid, _)| *tid).collect()
    }

    fn process_of(&self, tid: Tid) -> Pid {
        self.threads.get(&tid).map_or(tid, |t| t.process)
    }
}

impl PlacementGuide for RuleGuide {
    fn program_started(&mut self, pid: Pid, image: &ExecImage) -> InitialPlacement {
        self.add_thread(pid, pid, image.rank)
    }

    fn thread_created(&mut self, creator: Tid, tid: Tid, _: u64) -> InitialPlacement {
        self.add_thread(self.process_of(creator), tid, None)
    }

    fn process_forked(&mut self, creator: Tid, pid: Pid, _: bool) -> InitialPlacement {
        self.forked.insert(pid, self.process_of(creator));
        self.add_thread(pid, pid, None)
    }

    fn process_execed(&mut self, pid: Pid, tid: Tid, image: &ExecImage) -> InitialPlacement {
        let skipped = self.threads.get(&tid).is_some_and(|t| t.skipped);
        for gone in self.threads_of(pid) {
            self.thread_ended(gone);
        }
        if let Some(launcher) = self.forked.remove(&pid) {
            for waiting in self.threads_of(launcher) {
                self.stand_up(waiting);
            }
        }
        let thread = RuleThread {
            process: pid,
            position: None,
            skipped,
        };
        self.threads.insert(pid, thread);
        self.assign_pu(pid, image.rank)
    }

    fn thread_ended(&mut self, tid: Tid) {
        self.stand_up(tid);
        self.threads.remove(&tid);
    }

    fn mapped(&mut self, _: Tid, _: &MemoryMapping) -> Vec<PageBind> {
        Vec::new()
    }

    fn unmapped(&mut self, _: Tid, _: u64, _: u64) -> Vec<PageBind> {
        Vec::new()
    }

    fn remapped(&mut self, _: Tid, _: (u64, u64), _: (u64, u64)) -> Vec<PageBind> {
        Vec::new()
    }

    fn heap_moved(&mut self, _: Tid, _: u64) -> Vec<PageBind> {
        Vec::new()
    }

    fn phase_count(&self) -> usize {
        1
    }

    fn enter_phases(&mut self, _: ActivePhases) -> PhaseChange {
        PhaseChange::default()
    }

    fn recognised_regions(&self, _: Pid) -> Vec<RecognisedRegion> {
        Vec::new()
    }

    fn smallest_mapping(&self) -> Option<u64> {
        None
    }

    fn notes(&self) -> Vec<String> {
        let units = self.order.len();
        if units == 0 || self.most as usize <= units {
            return Vec::new();
        }
        let units = match units {
            1 => "1 PU, which they shared".to_owned(),
            n => format!("{n} PUs, so some shared one"),
        };
        vec![format!(
            "{} threads were alive at once on {units}",
            self.most
        )]
    }
}

#[cfg(test)]
mod tests;
