//! Places threads by a rule, without a profile: each new thread goes to the first unit of
//! an order that has the fewest of the program's threads alive. So the n-th thread of a
//! team gets the n-th unit, and a team that ends leaves its units to the next one.
//!
//! A process that starts another program (a shell, `mpirun`) waits for it most of the
//! time: from then on its threads do not count, and the program begins where it began.
//! A rank of an MPI job takes the unit of its number, since ranks start in no order.
use super::guide::{Bind, Change, Found, Guide, Holding, Image, Seat};
use crate::follow::proc_maps::Mapping;
use hither_model::topology::PuList;
use hither_sys::{Cpu, Pid, Tid};
use std::collections::BTreeMap;

/// Deals out the units of an order.
#[derive(Default)]
pub struct Rule {
    order: Vec<Cpu>,
    /// Threads to leave alone, numbered from 0 in order of creation.
    skip: Option<PuList>,
    /// Whether ranks are told apart here, rather than by who starts hither once per rank.
    ranks: bool,
    /// Counted threads alive at each place of the order.
    alive: Vec<u32>,
    threads: BTreeMap<Tid, Thread>,
    /// Processes that have not run another program since they were forked, and by whom.
    forked: BTreeMap<Pid, Pid>,
    /// Threads created so far.
    created: u32,
    /// Most counted threads that were alive at once.
    most: u32,
}

struct Thread {
    process: Pid,
    /// Its place in the order, if it is counted there.
    seat: Option<usize>,
    /// It is one of those to leave alone.
    skipped: bool,
}

impl Rule {
    /// `order` empty: no thread is placed.
    #[must_use]
    pub fn new(order: Vec<Cpu>, skip: Option<PuList>, ranks: bool) -> Rule {
        Rule {
            alive: vec![0; order.len()],
            order,
            skip,
            ranks,
            ..Rule::default()
        }
    }

    /// A thread that was made just now.
    fn arrive(&mut self, process: Pid, tid: Tid, rank: Option<u32>) -> Seat {
        let skipped = self.skip.as_ref();
        let skipped = skipped.is_some_and(|list| list.contains(self.created));
        self.created = self.created.saturating_add(1);
        // The kernel reuses ids, and the end of a thread may have been missed.
        self.ended(tid);
        let thread = Thread {
            process,
            seat: None,
            skipped,
        };
        self.threads.insert(tid, thread);
        self.sit(tid, rank)
    }

    /// Gives a thread without seat one.
    fn sit(&mut self, tid: Tid, rank: Option<u32>) -> Seat {
        let Some(thread) = self.threads.get_mut(&tid).filter(|t| !t.skipped) else {
            return Seat::default();
        };
        let rank = rank.filter(|_| self.ranks && !self.order.is_empty());
        let least = (0..self.order.len()).min_by_key(|at| self.alive[*at]);
        let place = rank.map(|rank| rank as usize % self.order.len()).or(least);
        if let Some(at) = place {
            self.alive[at] += 1;
            self.most = self.most.max(self.alive.iter().sum());
        }
        thread.seat = place;
        Seat {
            cpu: place.map(|at| self.order[at]),
            ..Seat::default()
        }
    }

    fn stand_up(&mut self, tid: Tid) {
        let thread = self.threads.get_mut(&tid);
        if let Some(at) = thread.and_then(|t| t.seat.take()) {
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

impl Guide for Rule {
    fn started(&mut self, pid: Pid, image: &Image) -> Seat {
        self.arrive(pid, pid, image.rank)
    }

    fn thread(&mut self, creator: Tid, tid: Tid, _: u64) -> Seat {
        self.arrive(self.process_of(creator), tid, None)
    }

    fn forked(&mut self, creator: Tid, pid: Pid, _: bool) -> Seat {
        self.forked.insert(pid, self.process_of(creator));
        self.arrive(pid, pid, None)
    }

    fn execed(&mut self, pid: Pid, tid: Tid, image: &Image) -> Seat {
        let skipped = self.threads.get(&tid).is_some_and(|t| t.skipped);
        for gone in self.threads_of(pid) {
            self.ended(gone);
        }
        if let Some(launcher) = self.forked.remove(&pid) {
            for waiting in self.threads_of(launcher) {
                self.stand_up(waiting);
            }
        }
        let thread = Thread {
            process: pid,
            seat: None,
            skipped,
        };
        self.threads.insert(pid, thread);
        self.sit(pid, image.rank)
    }

    fn ended(&mut self, tid: Tid) {
        self.stand_up(tid);
        self.threads.remove(&tid);
    }

    fn mapped(&mut self, _: Tid, _: &Mapping) -> Vec<Bind> {
        Vec::new()
    }

    fn unmapped(&mut self, _: Tid, _: u64, _: u64) -> Vec<Bind> {
        Vec::new()
    }

    fn remapped(&mut self, _: Tid, _: (u64, u64), _: (u64, u64)) -> Vec<Bind> {
        Vec::new()
    }

    fn brk(&mut self, _: Tid, _: u64) -> Vec<Bind> {
        Vec::new()
    }

    fn phases(&self) -> usize {
        1
    }

    fn enter(&mut self, _: Holding) -> Change {
        Change::default()
    }

    fn found(&self, _: Pid) -> Vec<Found> {
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
