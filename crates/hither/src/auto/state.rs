//! What changes while it runs: threads, memory, the matrix, counts and costs; and what is
//! said of them.
use std::time::Instant;

use hither_profile::{Nanos, PAGE_SIZE};
use hither_sys::affinity::CpuMask;
use hither_sys::faults::{KernelEvent, PageFault};
use hither_sys::{Cpu, Pid, Tid};

use super::address_spaces::AddressSpaces;
use super::analysis::sharing_matrix::{SharingMatrix, EVENT_WEIGHT};
use super::analysis::{FaultAccess, ObjectPage, SharerId, SharingDetector};
use super::event_log::{IntervalEvent, ThreadSnapshot};
use super::memory_peak::MemoryPeak;
use super::observed_runs::{ObservedRun, ObservedRuns};
use super::observer::FaultObserver;
use super::outcome::AutoOverhead;
use super::page_migration::{PageMigrator, PageTarget};
use super::profile_builder::{ProfileBuilder as Kept, RemoteFaultCounts};
use super::remap_trigger::RemapTrigger;
use super::request::CpuNodeMap;
use super::sample_candidates::SampleCandidates;
use super::taken_pages::TakenPages;
use super::thread_table::ThreadTable;
use crate::follow::cpu_time::{own_time, CpuClocks, RunQueueWaits};
use crate::program::clock::monotonic_ns;

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OnlineCounts {
    pub(super) faults: u64,
    pub(super) extra: u64,
    /// On pages that have faulted before.
    pub(super) known: u64,
    /// Not looked at, to keep the budget.
    pub(super) left_out: u64,
    /// Records that found no room in an observer that is no more.
    pub(super) lost_before: u64,
    pub(super) decisions: u64,
    pub(super) mappings: u64,
    pub(super) threads_moved: u64,
}

impl OnlineCounts {
    /// Faults that nothing is known of.
    pub(super) fn lost(&self, observer: &FaultObserver) -> u64 {
        observer.lost_records() + self.lost_before + self.left_out
    }
}

/// What a page fault tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    FirstTouch,
    /// The page was taken since it was accessed last.
    KnownPage,
    /// The program gave the page back and takes it again.
    NewMemory,
}

/// What changes while it runs.
pub struct OnlineState {
    pub(super) threads: ThreadTable,
    pub(super) address_spaces: AddressSpaces,
    pub(super) profile: Kept,
    /// Of the record, at the last interval.
    pub(super) remote_faults: RemoteFaultCounts,
    pub(super) matrix: SharingMatrix,
    pub(super) page_migrator: PageMigrator,
    /// Of mechanisms that conclude from pages that were seen to those between them.
    pub(super) observed_runs: Option<ObservedRuns>,
    pub(super) candidates: SampleCandidates,
    pub(super) counts: OnlineCounts,
    pub(super) cost: AutoOverhead,
    /// Where threads may run without us.
    pub(super) original_mask: CpuMask,
    pub(super) clocks: CpuClocks,
    pub(super) began: Instant,
    pub(super) own_before: Nanos,
    run_queue_waits: RunQueueWaits,
    /// Of the samplers, as far as it was charged.
    fixed_cost: Nanos,
    memory: MemoryPeak,
    pub(super) interval: Instant,
    /// At the last interval.
    pub(super) before: OnlineCounts,
    pub(super) lost: u64,
    /// Records lost when threads were last looked for.
    pub(super) lost_at_reap: u64,
    pub(super) remap_trigger: RemapTrigger,
    /// Intervals since a window of time began.
    pub(super) window_intervals: u32,
    pub(super) own_pid: Pid,
    /// Threads that began, with the unit that the last one of their role was on.
    pub(super) returned: Vec<(Tid, Cpu)>,
    /// And those of them that were put there, since the last interval.
    pub(super) pinned: Vec<(Tid, Cpu)>,
    pub(super) notes: Vec<String>,
}

impl OnlineState {
    pub fn new() -> OnlineState {
        OnlineState {
            threads: ThreadTable::default(),
            address_spaces: AddressSpaces::default(),
            profile: Kept::new(monotonic_ns()),
            remote_faults: RemoteFaultCounts::default(),
            matrix: SharingMatrix::default(),
            page_migrator: PageMigrator::default(),
            observed_runs: None,
            candidates: SampleCandidates::new(),
            counts: OnlineCounts::default(),
            cost: AutoOverhead::default(),
            original_mask: CpuMask::of_thread(0).unwrap_or_default(),
            clocks: CpuClocks::default(),
            began: Instant::now(),
            own_before: own_time(),
            run_queue_waits: RunQueueWaits::new(),
            fixed_cost: 0,
            memory: MemoryPeak::default(),
            interval: Instant::now(),
            before: OnlineCounts::default(),
            lost: 0,
            lost_at_reap: 0,
            remap_trigger: RemapTrigger::default(),
            window_intervals: 0,
            own_pid: std::process::id().cast_signed(),
            returned: Vec::new(),
            pinned: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Looks how much memory the processes have, if it is time.
    pub(super) fn look_at_memory(&mut self) {
        self.memory.look(self.address_spaces.processes());
    }

    /// Bytes that they had at most.
    pub(super) fn peak_memory(&self) -> u64 {
        self.memory.bytes
    }

    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn cpu_spent(&self) -> Nanos {
        own_time().saturating_sub(self.own_before) + self.cost.faulting
    }

    /// How many threads wait for a unit.
    pub(super) fn look_for_waiting(&mut self) -> Option<f64> {
        let threads = self.threads.live().map(|(tid, thread)| (thread.pid, tid));
        self.run_queue_waits.look(threads)
    }

    /// What the samplers took of the program's time since its start, besides the faults.
    pub(super) fn charge_fixed_cost(&mut self, fixed_cost: Nanos) {
        self.cost.faulting += fixed_cost.saturating_sub(self.fixed_cost);
        self.fixed_cost = self.fixed_cost.max(fixed_cost);
    }

    /// A thread or process began, ended or became another.
    pub(super) fn handle_task_event(&mut self, at: Nanos, event: KernelEvent) {
        match event {
            KernelEvent::Fork {
                pid,
                tid,
                creator,
                parent,
            } if pid != self.own_pid => {
                self.thread_started(at, (pid, tid), (parent, creator));
            }
            KernelEvent::Exit { pid, tid } => self.thread_ended(at, pid, tid),
            KernelEvent::Comm { tid, name } => self.profile.named(tid, name),
            KernelEvent::Exec { pid } => {
                for tid in self.threads.process_execed(pid) {
                    self.thread_ended(at, pid, tid);
                }
                self.forget_sharers(|threads| threads.abandon_roles(pid));
                self.profile.mapped(pid, &self.address_spaces);
                self.profile.execed(at, pid);
                self.address_spaces.remove_process(pid);
                self.candidates.remove_process(pid);
                self.clocks.process_started(pid);
            }
            KernelEvent::Fork { .. } | KernelEvent::Fault(_) => {}
        }
    }

    /// Takes in a fault. Whether it is one that a sampler caused.
    pub(super) fn handle_fault(
        &mut self,
        at: Nanos,
        fault: PageFault,
        machine: &CpuNodeMap,
        detector: &mut dyn SharingDetector,
        (pages, taken): (bool, &mut TakenPages),
    ) -> FaultKind {
        let Some(page) = self.address_spaces.page_at(fault.pid, fault.address) else {
            return FaultKind::FirstTouch;
        };
        let Some(who) = self
            .threads
            .find_or_add(fault.tid, fault.pid, Cpu(fault.cpu))
        else {
            return FaultKind::FirstTouch;
        };
        let is_private = self.address_spaces.is_private(fault.pid, page.object);
        let access = FaultAccess {
            thread: who,
            node: machine.node_of(Cpu(fault.cpu)),
            page,
            offset: (fault.address % PAGE_SIZE) as u16,
            at,
            was_taken: taken.page_faulted(fault.pid, fault.address) || !is_private,
        };
        self.profile.access(at, &fault, who, page, access.node);
        self.profile.belongs(&fault, page, &self.address_spaces);
        let seen = detector.access(&access, &mut self.matrix);
        let at = (fault.pid, fault.address);
        let threads = self.threads.thread_count(fault.pid);
        self.candidates
            .observe_access(at, &access, seen, detector, threads);
        for (a, b) in self.matrix.take_fresh() {
            self.profile.shared(a, b);
            self.remap_trigger.add_event(a, b);
        }
        if pages {
            let place = seen.belongs.map(|node| PageTarget {
                pid: fault.pid,
                address: fault.address,
                node,
            });
            self.page_migrator.set_target(page, place);
        }
        if let (true, true, Some(runs)) = (pages, seen.known, &mut self.observed_runs) {
            let threads = &self.threads;
            let node_of = |sharer| Some(machine.node_of(threads.unit_of(sharer)?));
            let told = runs.observe(page, who, node_of);
            self.target_runs(told);
        }
        match (seen.known, seen.is_new_memory) {
            (true, _) => FaultKind::KnownPage,
            (false, true) => FaultKind::NewMemory,
            (false, false) => FaultKind::FirstTouch,
        }
    }

    /// Threads were mapped anew, and pages that they use belong where they are.
    pub(super) fn follow_threads(&mut self, machine: &CpuNodeMap) {
        if let Some(runs) = &mut self.observed_runs {
            let threads = &self.threads;
            let node_of = |sharer| Some(machine.node_of(threads.unit_of(sharer)?));
            let told = runs.threads_mapped(node_of);
            self.target_runs(told);
        }
    }

    fn target_runs(&mut self, runs: Vec<ObservedRun>) {
        for ObservedRun {
            object,
            pages,
            node,
        } in runs
        {
            let at = |number| {
                self.address_spaces
                    .address_of(ObjectPage { object, number })
            };
            let (Some((pid, first)), Some((other, last))) = (at(*pages.start()), at(*pages.end()))
            else {
                continue;
            };
            // All of it is in one mapping.
            if pid != other || last - first != (pages.end() - pages.start()) * PAGE_SIZE {
                continue;
            }
            for number in pages.clone() {
                let address = first + (number - pages.start()) * PAGE_SIZE;
                let place = PageTarget { pid, address, node };
                let page = ObjectPage { object, number };
                self.page_migrator.set_target(page, Some(place));
            }
        }
    }

    /// A thread or process begins.
    pub(super) fn thread_started(&mut self, at: Nanos, of: (Pid, Tid), by: (Pid, Tid)) {
        let (pid, tid) = of;
        if pid != by.0 {
            self.reset_process(at, pid);
        }
        self.clocks.process_started(pid);
        let role = self.profile.started(at, of, by);
        let assigned = self.threads.thread_started(tid, pid, by.1, role);
        self.returned.extend(assigned.map(|cpu| (tid, cpu)));
    }

    /// Clears the rows of those who are gone.
    pub(super) fn forget_sharers(&mut self, gone: impl FnOnce(&mut ThreadTable) -> Vec<SharerId>) {
        for sharer in gone(&mut self.threads) {
            self.matrix.clear(sharer);
            self.remap_trigger.forget_thread(sharer);
        }
    }

    /// A thread ended.
    pub(super) fn thread_ended(&mut self, at: Nanos, pid: Pid, tid: Tid) {
        self.forget_sharers(|threads| threads.thread_ended(tid));
        let last = self.threads.thread_count(pid) == 0;
        if last {
            self.profile.mapped(pid, &self.address_spaces);
        }
        self.profile.ended(at, tid);
        if last {
            self.address_spaces.remove_process(pid);
            self.page_migrator.remove_process(pid);
            self.candidates.remove_process(pid);
            self.clocks.process_ended(pid);
        }
    }

    /// What is mapped now, and which pages were moved.
    pub(super) fn record_mappings(&mut self, machine: &CpuNodeMap) {
        for pid in self.address_spaces.processes() {
            self.profile.mapped(pid, &self.address_spaces);
        }
        let at = monotonic_ns();
        for (page, home) in self.page_migrator.fresh.drain(..) {
            if let Some(&node) = machine.nodes.get(home.at()) {
                self.profile.moved(at, page, home, node);
            }
        }
    }

    /// A process begins: an earlier process with this pid has ended.
    pub(super) fn reset_process(&mut self, at: Nanos, pid: Pid) {
        if self.threads.thread_count(pid) > 0 {
            for tid in self.threads.threads_of(pid) {
                self.thread_ended(at, pid, tid);
            }
        }
    }

    /// What is so now, after what was done.
    pub(super) fn fill_totals(&mut self, machine: &CpuNodeMap, line: &mut IntervalEvent) {
        let remote_faults = self.profile.remote_faults();
        line.known = remote_faults.known - self.remote_faults.known;
        line.remote = remote_faults.remote - self.remote_faults.remote;
        self.remote_faults = remote_faults;
        line.all_threads_moved = self.counts.threads_moved;
        line.all_pages_moved = self.page_migrator.moved;
        let threads = self.threads.live().map(|(tid, thread)| ThreadSnapshot {
            pid: thread.pid,
            tid,
            name: self.profile.name(tid).to_owned(),
            cpu: thread.last_cpu,
            node: thread.last_cpu.map(|cpu| machine.number_of(cpu)),
            assigned_cpu: thread.assigned_cpu,
            chose_itself: thread.chose,
        });
        line.threads = threads.collect();
        line.threads.sort_by_key(|thread| (thread.pid, thread.tid));
        self.cost.target = self.clocks.read();
        self.cost.cpu = own_time().saturating_sub(self.own_before);
        line.cost = self.cost.clone();
    }

    pub(super) fn fill_pairs(&self, line: &mut IntervalEvent) {
        let tid = |sharer| self.threads.by_sharer(sharer).map(|(tid, _)| tid);
        let pairs = self.matrix.pairs().filter_map(|(i, j, weight)| {
            Some((
                tid(i)?,
                tid(j)?,
                f64::from(weight) / f64::from(EVENT_WEIGHT),
            ))
        });
        line.pairs = pairs.collect();
    }
}
