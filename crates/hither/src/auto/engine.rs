//! The loop: every 10 ms faults are taken in and more are caused, every 100 ms threads are
//! mapped and pages moved (kMAF 3.4).
use std::time::{Duration, Instant};

use hither_profile::{Nanos, Profile, RunEnd};
use hither_sys::faults::{KernelEvent, PageFault};

use super::affinity_proxy::AffinityProxy;
use super::analysis::fault_rate::{ControllerInput, FaultRateController};
use super::analysis::{self, SharerId, SharingDetector};
use super::event_log::{EventLog, IntervalEvent, LiveView};
use super::filter_trigger::FilterTrigger;
use super::mechanism::{DetectionMechanism, MechanismParameters};
use super::observer::{FaultObserver, FILTERED_RECORD};
use super::outcome::{AutoOutcome, AutoThreadOutcome};
use super::page_migration::MOVE_COST;
use super::pinned_threads::PinnedThread;
use super::request::{CpuNodeMap, MappingQuery, OnlineMapper, PlacementScope};
use super::restore_helper::RestoreHelper;
use super::sampler::{self, FaultSampler, SamplerContext};
use super::state::{FaultKind, OnlineState};
use super::taken_pages::TakenPages;
use crate::follow::cpu_time::{own_time, to_nanos};
use crate::follow::procfs;
use crate::program::clock::monotonic_ns;
use hither_sys::{Cpu, Pid, Tid};

/// Intervals that make a window of time.
const WINDOW: u32 = 20;

pub struct OnlineEngine {
    pub mechanism: DetectionMechanism,
    pub parameters: MechanismParameters,
    pub observer: FaultObserver,
    pub samplers: Vec<Box<dyn FaultSampler>>,
    pub detector: Box<dyn SharingDetector>,
    pub mapper: Box<dyn OnlineMapper>,
    pub machine: CpuNodeMap,
    pub scope: PlacementScope,
    pub controller: FaultRateController,
    pub taken_pages: TakenPages,
    pub filter_trigger: FilterTrigger,
    pub restore_helper: RestoreHelper,
    /// Hides from the program where its threads were put, if it was started by us.
    pub affinity_proxy: Option<AffinityProxy>,
    pub budget: f64,
    pub event_log: EventLog,
    pub live_view: Option<Box<dyn LiveView>>,
    pub state: OnlineState,
}

impl OnlineEngine {
    /// Takes in threads that run already.
    pub fn attach_process(&mut self, pid: Pid) {
        self.state.threads.read_clock();
        for tid in procfs::thread_ids(pid) {
            self.state.threads.thread_started(tid, pid, 0, None);
            self.state.threads.keep_mask(tid);
        }
        self.state.address_spaces.add_running(pid);
        self.state.clocks.process_attached(pid);
    }

    /// What is due. Returns how long to wait for the next time.
    pub fn tick(&mut self) -> Duration {
        let began = own_time();
        self.drain_records();
        self.state.cost.detecting += own_time().saturating_sub(began);
        self.pin_returned_roles();
        self.cause_faults();
        let passed = self.state.interval.elapsed();
        let interval = self.parameters.interval();
        if passed >= interval {
            self.state.interval = Instant::now();
            let intervals = passed.as_millis() / interval.as_millis();
            self.end_interval(intervals.min(100) as u32);
        }
        Duration::from_nanos(self.controller.next_wait())
    }

    fn drain_records(&mut self) {
        let price = self.fault_price();
        let (state, machine) = (&mut self.state, &self.machine);
        state.threads.read_clock();
        let detector = &mut *self.detector;
        let own = state.own_pid;
        let pages = self.scope.pages
            && (self.mechanism == DetectionMechanism::Adaptive
                || state.remap_trigger.pages_may_move()
                || !self.scope.threads);
        let samplers = &self.samplers;
        let reading = own_time();
        let record_cost = self.observer.record_cost();
        let records = self.observer.take_records();
        let is_fault = |record: &&(Nanos, KernelEvent)| matches!(record.1, KernelEvent::Fault(_));
        let count = records.iter().filter(is_fault).count() as u64;
        let (before, mut repeats, began) = (state.counts.faults, 0, own_time());
        let taken = &mut self.taken_pages;
        let filtered = taken.take_left_out();
        state.counts.left_out += filtered;
        state.cost.faulting += filtered * FILTERED_RECORD;
        let share = self.controller.share_of_records(count + filtered, before);
        taken.set_share(share);
        for &(at, record) in records {
            match record {
                KernelEvent::Fault(fault)
                    if !taken.is_looked_at(fault.pid, fault.address, share) =>
                {
                    state.counts.left_out += 1;
                    state.cost.faulting += record_cost;
                    repeats += 1;
                }
                KernelEvent::Fault(PageFault { tid, .. }) | KernelEvent::Fork { tid, .. }
                    if samplers.iter().any(|s| s.is_own_thread(tid)) => {}
                KernelEvent::Fault(fault) if fault.pid != own => {
                    state.counts.faults += 1;
                    state.cost.faulting += record_cost;
                    match state.handle_fault(at, fault, machine, detector, (pages, taken)) {
                        FaultKind::KnownPage => state.counts.known += 1,
                        FaultKind::NewMemory => repeats += 1,
                        FaultKind::FirstTouch => {}
                    }
                }
                KernelEvent::Fault(_) => {}
                event => state.handle_task_event(at, event),
            }
        }
        let looked = state.counts.faults - before;
        let ended = own_time();
        self.controller
            .looked_at(looked, ended.saturating_sub(began));
        let caused = sampler::faults_caused(samplers, state.counts.known);
        let caused = caused.saturating_sub(state.counts.extra);
        let all = ended.saturating_sub(reading) + record_cost * count;
        let filtering = filtered * FILTERED_RECORD;
        self.controller
            .repeats_cost(all * repeats / count.max(1) + filtering);
        state.counts.extra += caused;
        state.cost.faulting += caused * price;
    }

    /// Has the kernel leave out records that nobody looks at, where that is allowed and it does not yet.
    fn filter_records_if_due(&mut self) {
        if !matches!(self.observer, FaultObserver::Perf(_)) {
            return;
        }
        let cost = self.state.counts.left_out * self.observer.record_cost();
        let target = self.controller.target();
        if !self.filter_trigger.is_due(cost, target, self.budget) {
            return;
        }
        let threads = self.state.threads.live();
        let seen = self.state.address_spaces.processes();
        let processes = seen.chain(threads.map(|(_, thread)| thread.pid));
        let Ok(mut observer) = FaultObserver::filtering(processes) else {
            return;
        };
        if let Some(filter) = observer.take_filter() {
            self.taken_pages.filter_in_kernel(filter);
        }
        // What the other has of the time before.
        self.drain_records();
        self.state.counts.lost_before += self.observer.lost_records();
        self.observer = observer;
    }

    /// What a fault that a sampler causes costs the program.
    fn fault_price(&self) -> Nanos {
        let costs = self
            .samplers
            .iter()
            .map(|s| (s.cost_per_fault(), s.delay_per_fault()));
        let prices = costs.map(|(cost, delay)| self.controller.price(cost, delay));
        prices.max().unwrap_or(0)
    }

    /// Causes more faults, as many as are allowed.
    fn cause_faults(&mut self) {
        let began = own_time();
        let target = self.state.clocks.read();
        // The program's agents may report anything.
        let fixed_cost = self.samplers.iter().map(|s| s.fixed_cost());
        let fixed_cost = fixed_cost.fold(0, Nanos::saturating_add).min(target);
        self.state.charge_fixed_cost(fixed_cost);
        let input = ControllerInput {
            at: to_nanos(self.state.began.elapsed()),
            threads: self.state.threads.live().count(),
            units: self.state.original_mask.cpus().count(),
            waiting: self.state.look_for_waiting(),
            natural: self.state.counts.faults - self.state.counts.extra,
            extra: self.state.counts.extra,
            events: self.state.matrix.events(),
            target,
            spent: self.state.cpu_spent(),
        };
        let price = self.fault_price();
        let wanted = self.controller.pages_to_take(input, price);
        let view = SamplerContext {
            picks: &[],
            address_spaces: &self.state.address_spaces,
            threads: &self.state.threads,
            extra: self.state.counts.extra,
        };
        let samplers = &self.samplers;
        let may = |at| samplers.iter().any(|sampler| sampler.may_take(at, &view));
        let picks = self.state.candidates.pick(monotonic_ns(), wanted, may);
        let view = SamplerContext {
            picks: &picks,
            ..view
        };
        let taken = &mut self.taken_pages;
        let mut broken = Vec::new();
        self.samplers.retain_mut(|sampler| {
            let done = sampler.take_pages(wanted, &view, taken);
            if let Err(error) = &done {
                broken.push(format!("sampler {} stopped: {error}", sampler.name()));
            }
            done.is_ok()
        });
        broken.into_iter().for_each(|note| self.state.note(note));
        for sampler in &mut self.samplers {
            for (pid, tid) in sampler.new_own_threads() {
                self.state.thread_ended(monotonic_ns(), pid, tid);
                self.state.profile.disown(tid);
            }
        }
        self.state.cost.injecting += own_time().saturating_sub(began);
    }

    /// Maps threads and moves pages.
    fn end_interval(&mut self, intervals: u32) {
        self.state.address_spaces.refresh();
        self.state.candidates.drop_gone();
        self.state.record_mappings(&self.machine);
        self.state.look_at_memory();
        self.state.window_intervals += intervals;
        if self.state.window_intervals >= WINDOW {
            self.state.window_intervals = 0;
            let gone = self.state.address_spaces.take_gone();
            self.detector.forget_objects(&gone);
            if let Some(runs) = &mut self.state.observed_runs {
                runs.forget_objects(&gone);
            }
            self.reap_missing_threads();
        }
        let gone = self.state.threads.release_rows();
        if !gone.is_empty() {
            self.detector.forget_sharers(&gone);
        }
        let mut line = IntervalEvent {
            at: to_nanos(self.state.began.elapsed()) / 1_000_000,
            ..IntervalEvent::default()
        };
        let told = self.event_log.is_wanted() || self.live_view.is_some();
        if told {
            self.state.fill_pairs(&mut line);
        }
        self.filter_records_if_due();
        let lost = self.state.counts.lost(&self.observer);
        line.lost = lost - std::mem::replace(&mut self.state.lost, lost);
        let (now, before) = (self.state.counts, self.state.before);
        line.pinned = std::mem::take(&mut self.state.pinned);
        let mapped = self.map_threads(intervals, now.faults > before.faults);
        line.pinned.extend(mapped);
        if self.scope.pages && self.state.page_migrator.has_targets() {
            let began = own_time();
            let nodes = &self.machine.nodes;
            let affordable = self.controller.affordable(MOVE_COST);
            match self
                .state
                .page_migrator
                .migrate_batch(nodes, affordable, &mut *self.detector)
            {
                Ok(moved) => line.pages_moved = moved,
                Err(error) => {
                    self.scope.pages = false;
                    self.state.note(format!(
                        "pages were not moved any more: move_pages is not allowed ({error})"
                    ));
                }
            }
            self.state.cost.migrating += own_time().saturating_sub(began);
        }
        line.faults = now.faults - before.faults;
        line.extra = now.extra - before.extra;
        self.state.before = now;
        if told {
            line.budget = self.budget;
            self.state.fill_totals(&self.machine, &mut line);
        }
        if let Some(watch) = &mut self.live_view {
            watch.show_interval(&line);
        }
        if line.faults + line.lost + line.pages_moved > 0 || !line.pinned.is_empty() {
            self.event_log.write(&line);
        }
    }

    /// This process is about to stop, or goes on.
    pub fn suspend_view(&mut self, stopping: bool) -> Option<Duration> {
        if let Some(watch) = &mut self.live_view {
            watch.suspend(stopping);
        }
        None
    }

    /// Has the threads mapped if there is news enough, and puts them where they belong.
    fn map_threads(&mut self, intervals: u32, faults: bool) -> Vec<(Tid, Cpu)> {
        let began = own_time();
        let state = &mut self.state;
        let matrix = &mut state.matrix;
        let due = state.remap_trigger.end_interval(matrix, intervals, faults);
        state.counts.decisions += u64::from(due.is_some());
        let (Some(input), true) = (due, self.scope.threads) else {
            return Vec::new();
        };
        let sharers = (0..state.matrix.sharers()).map(|m| SharerId(m as u16));
        let current: Vec<Option<Cpu>> = sharers.map(|m| state.threads.cpu_of(m)).collect();
        let question = MappingQuery {
            pairs: &input.pairs,
            new_events: &input.news,
            intervals: input.intervals,
            assigned: &current,
        };
        let answer = self.mapper.place_threads(&question);
        state.cost.mapping += own_time().saturating_sub(began);
        if let Some(error) = self.mapper.take_error() {
            state.note(format!("threads could not be mapped: {error}"));
        }
        let Some(answer) = answer else {
            return Vec::new();
        };
        state.counts.mappings += 1;
        state.remap_trigger.threads_mapped();
        let mut moves = Vec::new();
        for (sharer, cpu) in answer {
            match state.threads.by_sharer(sharer) {
                Some((tid, _)) => moves.push((tid, cpu)),
                None => state.threads.reserve_cpu(sharer, cpu),
            }
        }
        let moved = self.pin_threads(moves);
        if self.scope.pages && !moved.is_empty() {
            self.state.follow_threads(&self.machine);
        }
        moved
    }

    /// Puts threads that began since on the units where the last ones of their roles were.
    fn pin_returned_roles(&mut self) {
        let returned = std::mem::take(&mut self.state.returned);
        if self.scope.threads && !returned.is_empty() {
            self.controller.roles_returned();
            let pinned = self.pin_threads(returned);
            self.state.pinned.extend(pinned);
        }
    }

    /// Those of the threads that were not on their units before and are now.
    fn pin_threads(&mut self, moves: Vec<(Tid, Cpu)>) -> Vec<(Tid, Cpu)> {
        let began = own_time();
        let state = &mut self.state;
        let (helper, answers) = (&mut self.restore_helper, &mut self.affinity_proxy);
        let mut announce = |pinned: PinnedThread| {
            if let Some(answers) = answers {
                answers.announce(&pinned);
            }
            helper.announce(pinned)
        };
        let mut pinned = Vec::new();
        for (tid, cpu) in moves {
            let ours = &state.original_mask;
            match state.threads.pin_thread(tid, cpu, ours, &mut announce) {
                Ok(true) => pinned.push((tid, cpu)),
                Ok(false) => {}
                Err(error) => state.note(format!("threads could not be pinned ({error})")),
            }
        }
        for &(tid, cpu) in &pinned {
            let number = self.machine.number_of(cpu);
            state
                .profile
                .thread_pinned(monotonic_ns(), tid, cpu.0, number);
        }
        if !self.restore_helper.is_alive() {
            state.note("threads were not pinned any more: the process that would free them again was killed".to_owned());
        }
        state.counts.threads_moved += pinned.len() as u64;
        state.cost.migrating += own_time().saturating_sub(began);
        pinned
    }

    /// Looks for threads that ended without our being told, where records were lost: whatever
    /// comes with the id of one that is gone is not to be taken for it.
    fn reap_missing_threads(&mut self) {
        let lost = self.observer.lost_records();
        if std::mem::replace(&mut self.state.lost_at_reap, lost) == lost {
            return;
        }
        for (pid, tid) in self.state.threads.missing_threads() {
            self.state.thread_ended(monotonic_ns(), pid, tid);
        }
    }

    /// Everything is over: how it went, and what is kept of it.
    pub fn finish(mut self, end: RunEnd, command: Vec<String>) -> (AutoOutcome, Profile) {
        self.drain_records();
        self.state.record_mappings(&self.machine);
        let mut state = self.state;
        state.cost.target = state.clocks.read();
        state.cost.cpu = own_time().saturating_sub(state.own_before);
        if let Some(note) = self.observer.note() {
            state.note(note.to_owned());
        }
        state
            .notes
            .extend(self.samplers.iter().filter_map(|s| s.note()));
        let table = self.detector.footprint();
        let threads = state.threads.live().map(|(tid, thread)| AutoThreadOutcome {
            pid: thread.pid,
            tid,
            cpu: thread.assigned_cpu,
            chose_itself: thread.chose,
        });
        let outcome = AutoOutcome {
            command,
            end,
            duration: to_nanos(state.began.elapsed()),
            mechanism: self.mechanism.name().to_owned(),
            policy: self.mapper.policy().to_owned(),
            parameters: self.parameters.named(),
            samplers: self.samplers.iter().map(|s| s.name().to_owned()).collect(),
            faults: state.counts.faults,
            extra: state.counts.extra,
            lost: state.counts.lost(&self.observer),
            events: state.matrix.events(),
            decisions: state.counts.decisions,
            mappings: state.counts.mappings,
            threads_moved: state.counts.threads_moved,
            pages_moved: state.page_migrator.moved,
            pages_refused: state.page_migrator.refused,
            memory: state.peak_memory(),
            memory_seen: state.profile.memory_seen(),
            threads: threads.collect(),
            entries: table.entries,
            entry_bytes: table.entry_bytes,
            table_bytes: table.table_bytes,
            matrix_bytes: analysis::of_matrix(state.matrix.sharers()),
            cost: state.cost,
            notes: state.notes,
        };
        let profile = state.profile.finish(&outcome);
        (outcome, profile)
    }
}
