//! What changes while it runs: threads, memory, the matrix, counts and costs; and what is
//! said of them.
use std::time::Instant;

use hither_profile::Nanos;
use hither_sys::affinity::Mask;
use hither_sys::faults::Fault;
use hither_sys::{Cpu, Pid, Tid};

use super::address_spaces::Memory;
use super::analysis::matrix::{SharingMatrix, EVENT};
use super::analysis::{Access, Detector, PAGE};
use super::event_log::{Line, ThreadNow};
use super::outcome::Cost;
use super::page_migration::{Pages, Place};
use super::profile_builder::{monotonic, Record as Kept, Tally};
use super::remap_trigger::Evidence;
use super::request::Machine;
use super::sample_candidates::Present;
use super::thread_table::Roster;
use crate::follow::cpu_time::{own_time, Clocks};

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) faults: u64,
    pub(super) extra: u64,
    /// On pages that have faulted before.
    pub(super) known: u64,
    pub(super) mappings: u64,
    pub(super) threads_moved: u64,
}

/// What changes while it runs.
pub struct State {
    pub(super) roster: Roster,
    pub(super) memory: Memory,
    pub(super) record: Kept,
    /// Of the record, at the last interval.
    pub(super) tally: Tally,
    pub(super) matrix: SharingMatrix,
    pub(super) pages: Pages,
    pub(super) present: Present,
    pub(super) counts: Counts,
    pub(super) cost: Cost,
    /// Where threads may run without us.
    pub(super) ours: Mask,
    pub(super) clocks: Clocks,
    pub(super) began: Instant,
    pub(super) own_before: Nanos,
    pub(super) interval: Instant,
    /// At the last interval.
    pub(super) before: Counts,
    pub(super) lost: u64,
    /// Records lost when threads were last looked for.
    pub(super) missed: u64,
    pub(super) evidence: Evidence,
    /// Intervals since a window of time began.
    pub(super) turns: u32,
    pub(super) own: Pid,
    pub(super) notes: Vec<String>,
}

impl State {
    pub fn new() -> State {
        State {
            roster: Roster::default(),
            memory: Memory::default(),
            record: Kept::new(monotonic()),
            tally: Tally::default(),
            matrix: SharingMatrix::default(),
            pages: Pages::default(),
            present: Present::new(),
            counts: Counts::default(),
            cost: Cost::default(),
            ours: Mask::of(0).unwrap_or_default(),
            clocks: Clocks::default(),
            began: Instant::now(),
            own_before: own_time(),
            interval: Instant::now(),
            before: Counts::default(),
            lost: 0,
            missed: 0,
            evidence: Evidence::default(),
            turns: 0,
            own: std::process::id().cast_signed(),
            notes: Vec::new(),
        }
    }

    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn spent(&self) -> Nanos {
        own_time().saturating_sub(self.own_before) + self.cost.faulting
    }

    /// Takes in a fault. Whether it is one that a sampler caused.
    pub(super) fn fault(
        &mut self,
        at: Nanos,
        fault: Fault,
        machine: &Machine,
        detector: &mut dyn Detector,
        pages: bool,
    ) -> bool {
        let Some(page) = self.memory.page(fault.pid, fault.address) else {
            return false;
        };
        let Some(who) = self.roster.seen(fault.tid, fault.pid, Cpu(fault.cpu)) else {
            return false;
        };
        let access = Access {
            who,
            node: machine.node_of(Cpu(fault.cpu)),
            page,
            offset: (fault.address % PAGE) as u16,
            at,
        };
        self.record.access(at, &fault, who, page, access.node);
        self.record.belongs(&fault, page, &self.memory);
        let seen = detector.access(&access, &mut self.matrix);
        let at = (fault.pid, fault.address);
        self.present.accessed(at, &access, seen, detector);
        for (a, b) in self.matrix.take_fresh() {
            self.record.shared(a, b);
            self.evidence.event(a, b);
        }
        if pages {
            let place = seen.belongs.map(|node| Place {
                pid: fault.pid,
                address: fault.address,
                node,
            });
            self.pages.belongs(page, place);
        }
        seen.known
    }

    /// A thread ended.
    pub(super) fn gone(&mut self, at: Nanos, pid: Pid, tid: Tid) {
        if let Some(member) = self.roster.ended(tid) {
            self.matrix.clear(member);
            self.evidence.clear(member);
        }
        let last = self.roster.of(pid).is_empty();
        if last {
            self.record.mapped(pid, &self.memory);
        }
        self.record.ended(at, tid);
        if last {
            self.memory.forget(pid);
            self.pages.forget(pid);
            self.present.forget(pid);
            self.clocks.gone(pid);
        }
    }

    /// What is mapped now, and which pages were moved.
    pub(super) fn keep(&mut self, machine: &Machine) {
        for pid in self.memory.processes() {
            self.record.mapped(pid, &self.memory);
        }
        let at = monotonic();
        for (page, home) in self.pages.fresh.drain(..) {
            if let Some(&node) = machine.nodes.get(home.at()) {
                self.record.moved(at, page, home, node);
            }
        }
    }

    /// A process begins: whoever had its id before has ended.
    pub(super) fn forget(&mut self, at: Nanos, pid: Pid) {
        if self.roster.size(pid) > 0 {
            for tid in self.roster.of(pid) {
                self.gone(at, pid, tid);
            }
        }
    }

    /// What is so now, after what was done.
    pub(super) fn tell(&mut self, machine: &Machine, line: &mut Line) {
        let tally = self.record.tally();
        line.known = tally.known - self.tally.known;
        line.remote = tally.remote - self.tally.remote;
        self.tally = tally;
        line.all_threads_moved = self.counts.threads_moved;
        line.all_pages_moved = self.pages.moved;
        let threads = self.roster.live().map(|(tid, thread)| ThreadNow {
            pid: thread.pid,
            tid,
            name: self.record.name(tid).to_owned(),
            cpu: thread.ran,
            node: thread.ran.map(|cpu| machine.number_of(cpu)),
            seat: thread.seat,
            chose_itself: thread.chose,
        });
        line.threads = threads.collect();
        line.threads.sort_by_key(|thread| (thread.pid, thread.tid));
        self.cost.target = self.clocks.read();
        self.cost.cpu = own_time().saturating_sub(self.own_before);
        line.cost = self.cost.clone();
    }

    pub(super) fn describe(&self, line: &mut Line) {
        let tid = |member| self.roster.by_member(member).map(|(tid, _)| tid);
        let pairs = self.matrix.pairs().filter_map(|(i, j, weight)| {
            Some((tid(i)?, tid(j)?, f64::from(weight) / f64::from(EVENT)))
        });
        line.pairs = pairs.collect();
    }
}
