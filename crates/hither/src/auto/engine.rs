//! The loop: every 10 ms faults are taken in and more are caused, every 100 ms threads are
//! mapped and pages moved (kMAF 3.4).
use std::time::{Duration, Instant};

use hither_profile::{Nanos, Profile, RunEnd};
use hither_sys::faults::{Fault, Record};

use super::affinity_proxy::Answers;
use super::analysis::controller::{Controller, Standing};
use super::analysis::{self, Detector, Member};
use super::event_log::{Journal, Line, Watch};
use super::observer::Observer;
use super::outcome::{Outcome, ThreadReport};
use super::profile_builder::monotonic;
use super::request::{Machine, Mapper, Mechanism, Parts, Question};
use super::restore_helper::Guardian;
use super::sampler::{self, Sampler, View};
use super::state::State;
use crate::follow::cpu_time::{nanos, own_time};
use crate::follow::procfs;
use hither_sys::{Cpu, Pid, Tid};

/// Between two mappings (kMAF 3.4).
const INTERVAL: Duration = Duration::from_millis(100);
/// Intervals that make a window of time.
const WINDOW: u32 = 20;
/// What a record costs the program, in nanoseconds.
const RECORD: Nanos = 120;

pub struct Engine {
    pub mechanism: Mechanism,
    pub observer: Box<dyn Observer>,
    pub samplers: Vec<Box<dyn Sampler>>,
    pub detector: Box<dyn Detector>,
    pub mapper: Box<dyn Mapper>,
    pub machine: Machine,
    pub parts: Parts,
    pub controller: Controller,
    pub guardian: Guardian,
    /// Hides from the program where its threads were put, if it was started by us.
    pub answers: Option<Answers>,
    pub budget: f64,
    pub journal: Journal,
    pub watch: Option<Box<dyn Watch>>,
    pub state: State,
}

impl Engine {
    /// Takes in threads that run already.
    pub fn adopt(&mut self, pid: Pid) {
        self.state.roster.look_at_the_clock();
        for tid in procfs::threads(pid) {
            self.state.roster.started(tid, pid, 0);
            self.state.roster.keep_mask(tid);
        }
        self.state.memory.join(pid);
        self.state.clocks.joined(pid);
    }

    /// What is due. Returns how long to wait for the next time.
    pub fn tick(&mut self) -> Duration {
        let began = own_time();
        self.take_in();
        self.state.cost.detecting += own_time().saturating_sub(began);
        self.inject();
        let passed = self.state.interval.elapsed();
        if passed >= INTERVAL {
            self.state.interval = Instant::now();
            let intervals = passed.as_millis() / INTERVAL.as_millis();
            self.turn(intervals.min(100) as u32);
        }
        Duration::from_nanos(self.controller.pause())
    }

    fn take_in(&mut self) {
        let (state, machine) = (&mut self.state, &self.machine);
        state.roster.look_at_the_clock();
        let detector = &mut *self.detector;
        let price = self.samplers.iter().map(|s| s.price()).max().unwrap_or(0);
        let own = state.own;
        let pages = self.parts.pages && (state.evidence.placed() || !self.parts.threads);
        let samplers = &self.samplers;
        for &(at, record) in self.observer.drain() {
            match record {
                Record::Fault(Fault { tid, .. }) | Record::Started { tid, .. }
                    if samplers.iter().any(|s| s.owns(tid)) => {}
                Record::Fault(fault) if fault.pid != own => {
                    state.counts.faults += 1;
                    state.cost.faulting += RECORD;
                    let known = state.fault(at, fault, machine, detector, pages);
                    state.counts.known += u64::from(known);
                }
                Record::Started {
                    pid,
                    tid,
                    creator,
                    parent,
                } if pid != own => {
                    if pid != parent {
                        state.forget(at, pid);
                    }
                    state.clocks.born(pid);
                    state.roster.started(tid, pid, creator);
                    state.record.started(at, (pid, tid), (parent, creator));
                }
                Record::Ended { pid, tid } => state.gone(at, pid, tid),
                Record::Named { tid, name } => state.record.named(tid, name),
                Record::Exec { pid } => {
                    for tid in state.roster.execed(pid) {
                        state.gone(at, pid, tid);
                    }
                    state.record.mapped(pid, &state.memory);
                    state.record.execed(at, pid);
                    state.memory.forget(pid);
                    state.present.forget(pid);
                    state.clocks.born(pid);
                }
                _ => {}
            }
        }
        let caused = sampler::caused(samplers, state.counts.known);
        let caused = caused.saturating_sub(state.counts.extra);
        state.counts.extra += caused;
        state.cost.faulting += caused * price;
    }

    /// Causes more faults, as many as are allowed.
    fn inject(&mut self) {
        let began = own_time();
        let standing = Standing {
            at: nanos(self.state.began.elapsed()),
            threads: self.state.roster.live().count(),
            natural: self.state.counts.faults - self.state.counts.extra,
            extra: self.state.counts.extra,
            events: self.state.matrix.events(),
            target: self.state.clocks.read(),
            spent: self.state.spent(),
        };
        let price = self.samplers.iter().map(|s| s.price()).max().unwrap_or(0);
        let wanted = self.controller.wanted(standing, price);
        let view = View {
            picks: &[],
            memory: &self.state.memory,
            roster: &self.state.roster,
            extra: self.state.counts.extra,
        };
        let samplers = &self.samplers;
        let may = |at| samplers.iter().any(|sampler| sampler.may_take(at, &view));
        let picks = self.state.present.pick(wanted, may);
        let view = View {
            picks: &picks,
            ..view
        };
        let mut broken = Vec::new();
        self.samplers.retain_mut(|sampler| {
            let done = sampler.take(wanted, &view);
            if let Err(error) = &done {
                broken.push(format!("sampler {} stopped: {error}", sampler.name()));
            }
            done.is_ok()
        });
        broken.into_iter().for_each(|note| self.state.note(note));
        for sampler in &mut self.samplers {
            for (pid, tid) in sampler.take_entered() {
                self.state.gone(monotonic(), pid, tid);
                self.state.record.disown(tid);
            }
        }
        self.state.cost.injecting += own_time().saturating_sub(began);
    }

    /// Maps threads and moves pages.
    fn turn(&mut self, intervals: u32) {
        self.state.memory.refresh();
        self.state.keep(&self.machine);
        self.state.turns += intervals;
        if self.state.turns >= WINDOW {
            self.state.turns = 0;
            self.detector.window();
            let gone = self.state.memory.take_gone();
            self.detector.forget_objects(&gone);
            self.miss();
        }
        let gone = self.state.roster.reuse();
        if !gone.is_empty() {
            self.detector.forget_members(&gone);
        }
        let mut line = Line {
            at: nanos(self.state.began.elapsed()) / 1_000_000,
            ..Line::default()
        };
        let told = self.journal.is_wanted() || self.watch.is_some();
        if told {
            self.state.describe(&mut line);
        }
        line.lost =
            self.observer.lost() - std::mem::replace(&mut self.state.lost, self.observer.lost());
        let (now, before) = (self.state.counts, self.state.before);
        line.seated = self.map_threads(intervals, now.faults > before.faults);
        if self.parts.pages && (self.state.evidence.placed() || !self.parts.threads) {
            let began = own_time();
            let nodes = &self.machine.nodes;
            match self.state.pages.move_some(nodes, &mut *self.detector) {
                Ok(moved) => line.pages_moved = moved,
                Err(error) => {
                    self.parts.pages = false;
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
            self.state.tell(&self.machine, &mut line);
        }
        if let Some(watch) = &mut self.watch {
            watch.show(&line);
        }
        if line.faults + line.lost + line.pages_moved > 0 || !line.seated.is_empty() {
            self.journal.write(&line);
        }
    }

    /// This process is about to stop, or goes on.
    pub fn pause(&mut self, stopping: bool) -> Option<Duration> {
        if let Some(watch) = &mut self.watch {
            watch.pause(stopping);
        }
        None
    }

    /// Has the threads mapped if there is news enough, and puts them where they belong.
    fn map_threads(&mut self, intervals: u32, faults: bool) -> Vec<(Tid, Cpu)> {
        let began = own_time();
        let state = &mut self.state;
        let matrix = &mut state.matrix;
        let due = state.evidence.turn(matrix, intervals, faults);
        let (Some((pairs, news)), true) = (due, self.parts.threads) else {
            return Vec::new();
        };
        let of = |member: usize| state.roster.by_member(Member(member as u16));
        let current = (0..state.matrix.members()).map(|m| of(m).and_then(|(_, t)| t.seat));
        let current: Vec<Option<Cpu>> = current.collect();
        let question = Question {
            pairs: &pairs,
            news: &news,
            seats: &current,
        };
        let answer = self.mapper.map(&question);
        state.cost.mapping += own_time().saturating_sub(began);
        let Some(answer) = answer else {
            return Vec::new();
        };
        let began = own_time();
        state.counts.mappings += 1;
        state.evidence.mapped();
        let mut seated = Vec::new();
        for (member, cpu) in answer {
            let Some((tid, _)) = state.roster.by_member(member) else {
                continue;
            };
            let (guardian, answers) = (&mut self.guardian, &mut self.answers);
            match state.roster.seat(tid, cpu, &state.ours, |pinned| {
                if let Some(answers) = answers {
                    answers.expect(&pinned);
                }
                guardian.expect(pinned)
            }) {
                Ok(true) => seated.push((tid, cpu)),
                Ok(false) => {}
                Err(error) => state.note(format!("threads could not be pinned ({error})")),
            }
        }
        for &(tid, cpu) in &seated {
            let number = self.machine.number_of(cpu);
            state.record.seated(monotonic(), tid, cpu.0, number);
        }
        if !self.guardian.hears() {
            state.note("threads were not pinned any more: the process that would free them again was killed".to_owned());
        }
        state.counts.threads_moved += seated.len() as u64;
        state.cost.migrating += own_time().saturating_sub(began);
        seated
    }

    /// Looks for threads that ended without our being told, where records were lost: whatever
    /// comes with the id of one that is gone is not to be taken for it.
    fn miss(&mut self) {
        let lost = self.observer.lost();
        if std::mem::replace(&mut self.state.missed, lost) == lost {
            return;
        }
        for (pid, tid) in self.state.roster.missing() {
            self.state.gone(monotonic(), pid, tid);
        }
    }

    /// Everything is over: how it went, and what is kept of it.
    pub fn finish(mut self, end: RunEnd, command: Vec<String>) -> (Outcome, Profile) {
        self.take_in();
        self.state.keep(&self.machine);
        let mut state = self.state;
        state.cost.target = state.clocks.read();
        state.cost.cpu = own_time().saturating_sub(state.own_before);
        if let Some(note) = self.observer.note() {
            state.note(note.to_owned());
        }
        state
            .notes
            .extend(self.samplers.iter().filter_map(|s| s.note()));
        let table = self.detector.storage();
        let threads = state.roster.live().map(|(tid, thread)| ThreadReport {
            pid: thread.pid,
            tid,
            cpu: thread.seat,
            chose_itself: thread.chose,
        });
        let outcome = Outcome {
            command,
            end,
            duration: nanos(state.began.elapsed()),
            mechanism: self.mechanism.name().to_owned(),
            samplers: self.samplers.iter().map(|s| s.name().to_owned()).collect(),
            faults: state.counts.faults,
            extra: state.counts.extra,
            lost: self.observer.lost(),
            events: state.matrix.events(),
            mappings: state.counts.mappings,
            threads_moved: state.counts.threads_moved,
            pages_moved: state.pages.moved,
            pages_refused: state.pages.refused,
            threads: threads.collect(),
            entries: table.entries,
            entry_bytes: table.entry_bytes,
            table_bytes: table.table_bytes,
            matrix_bytes: analysis::of_matrix(state.matrix.members()),
            cost: state.cost,
            notes: state.notes,
        };
        let profile = state.record.finish(&outcome);
        (outcome, profile)
    }
}
