//! Plays a window: threads advance together in simulated time, each on its unit.
use super::counts::ActivityCounts;
use super::hierarchy::CacheHierarchy;
use super::instruction_window::{CoreShare, InstructionWindow, MshrSlots};
use super::simulated_machine::SimulatedMachine;
use super::thread_turn::{SimCore, SimThread, ThreadTurn};
use super::timing_wheel::TimingWheel;
use super::{AccessSource, SimulationError, WindowSetup};
use hither_profile::bursts::BurstPiece;
use std::collections::VecDeque;

/// Cycles (or instructions, without timing) after which threads of one unit alternate. Linux gives
/// each some milliseconds, for which windows are too short.
const SLICE: f64 = 100_000.0;

#[derive(Default)]
struct PuRunQueue {
    running: Option<usize>,
    waiting: VecDeque<usize>,
    slice_end: f64,
}

/// The results of a window besides the hierarchy's counts.
pub struct PlayedWindow {
    pub end: f64,
    pub busy: f64,
    pub reads: u64,
    /// With the time at which each was done.
    pub threads: Vec<(u32, ActivityCounts, f64)>,
    pub groups: Vec<ActivityCounts>,
}

pub struct WindowReplay<'a> {
    machine: &'a SimulatedMachine,
    hierarchy: &'a mut CacheHierarchy,
    setup: &'a WindowSetup<'a>,
    source: &'a mut dyn AccessSource,
    timed: bool,
    threads: Vec<SimThread>,
    units: Vec<PuRunQueue>,
    cores: Vec<SimCore>,
    wheel: TimingWheel,
    /// By thread: when, in the recorded run, the piece that it plays was complete; the end of
    /// time when it has no more.
    ends: Vec<u64>,
    /// Threads that wait for others, with the time that the others must reach.
    blocked: Vec<(usize, u64)>,
    /// The latest time that any thread has reached.
    latest: f64,
    groups: Vec<ActivityCounts>,
}

impl<'a> WindowReplay<'a> {
    /// For a checked machine and units that it has. `begins`: when each thread goes on; no time is
    /// after `now`.
    pub fn new(
        machine: &'a SimulatedMachine,
        hierarchy: &'a mut CacheHierarchy,
        setup: &'a WindowSetup<'a>,
        source: &'a mut dyn AccessSource,
        (timed, now): (bool, f64),
        begins: impl Fn(u32) -> f64,
    ) -> Self {
        let threads: Vec<SimThread> = source
            .threads()
            .iter()
            .map(|&number| {
                let unit = setup.units[number as usize] as usize;
                let of = &machine.units[unit];
                SimThread {
                    number,
                    unit,
                    core: of.core as usize,
                    l1: of.caches[0] as usize,
                    node: of.node,
                    piece: Vec::new(),
                    next: 0,
                    entered: false,
                    ready: begins(number),
                    latest: 0.0,
                    stream: InstructionWindow::new(),
                    reads: 0,
                    share: ActivityCounts::default(),
                }
            })
            .collect();
        let first = threads.iter().fold(now, |first, t| first.min(t.ready));
        let cores = machine.units.iter().map(|u| u.core + 1).max().unwrap_or(0);
        let core = |_| SimCore {
            running: 0,
            since: now,
            busy: 0.0,
            share: CoreShare::of_core(machine.core.width, machine.core.window, 1),
            misses: MshrSlots::new(machine.core.misses),
        };
        WindowReplay {
            units: machine
                .units
                .iter()
                .map(|_| PuRunQueue::default())
                .collect(),
            cores: (0..cores).map(core).collect(),
            wheel: TimingWheel::new(threads.len(), first),
            ends: vec![0; threads.len()],
            threads,
            machine,
            hierarchy,
            setup,
            source,
            timed,
            blocked: Vec::new(),
            latest: now,
            groups: Vec::new(),
        }
    }

    /// Plays all accesses.
    pub fn play(mut self) -> Result<PlayedWindow, SimulationError> {
        let mut ready = Vec::new();
        for t in 0..self.threads.len() {
            let piece = self.fetch_piece(t);
            ready.push(piece);
        }
        for (t, piece) in ready.into_iter().enumerate() {
            if let Some(piece) = piece {
                if !self.block_if_early(t, &piece) {
                    self.enqueue_on_unit(t, self.threads[t].ready);
                }
            }
        }
        loop {
            match self.wheel.pop() {
                Some(t) => self.run_thread(t)?,
                None => {
                    // All pieces wait for one another: no real run records that, so any may
                    // continue.
                    let first = self.blocked.iter().min_by_key(|b| (b.1, b.0)).copied();
                    let Some((t, _)) = first else { break };
                    self.blocked.retain(|b| b.0 != t);
                    self.enqueue_on_unit(t, self.latest);
                }
            }
        }
        Ok(PlayedWindow {
            end: self.latest,
            busy: self.cores.iter().map(|c| c.busy).sum(),
            reads: self.threads.iter().map(|t| t.reads).sum(),
            threads: self
                .threads
                .iter()
                .map(|t| (t.number, t.share, t.ready))
                .collect(),
            groups: self.groups,
        })
    }

    /// Plays a thread until another one is next, or until it must stop.
    fn run_thread(&mut self, t: usize) -> Result<(), SimulationError> {
        loop {
            let others_wait = !self.units[self.threads[t].unit].waiting.is_empty();
            let until = self.wheel.until(others_wait);
            self.turn(t).play(until)?;
            let thread = &self.threads[t];
            self.wheel.advance_to(thread.latest);
            if thread.next < thread.piece.len() {
                let (unit, ready) = (thread.unit, thread.ready);
                self.requeue(t, unit, ready);
                return Ok(());
            }
            if !self.next_piece(t) {
                return Ok(());
            }
        }
    }

    #[inline]
    fn turn(&mut self, t: usize) -> ThreadTurn<'_> {
        let thread = &mut self.threads[t];
        ThreadTurn {
            core: &mut self.cores[thread.core],
            thread,
            hierarchy: self.hierarchy,
            setup: self.setup,
            groups: &mut self.groups,
            line: u64::from(self.machine.line),
            timed: self.timed,
        }
    }

    /// A thread's quantum is over: it goes on at `ready`, or another of its unit does.
    fn requeue(&mut self, t: usize, unit: usize, ready: f64) {
        if ready >= self.units[unit].slice_end && !self.units[unit].waiting.is_empty() {
            self.leave_unit(t, ready);
            self.enqueue_on_unit(t, ready);
        } else {
            self.wheel.push(t, ready);
        }
    }

    /// A thread's piece is at its end: whether it goes on with the next.
    fn next_piece(&mut self, t: usize) -> bool {
        let time = if self.timed {
            self.threads[t].stream.last_retired()
        } else {
            self.threads[t].ready
        };
        self.latest = self.latest.max(time);
        self.threads[t].ready = time;
        let piece = self.fetch_piece(t);
        let goes_on = piece.is_some_and(|piece| !self.block_if_early(t, &piece));
        if !goes_on {
            self.leave_unit(t, time);
        }
        self.release_blocked(time);
        goes_on
    }

    fn fetch_piece(&mut self, t: usize) -> Option<BurstPiece> {
        let thread = &mut self.threads[t];
        thread.next = 0;
        let piece = self.source.next_piece(thread.number, &mut thread.piece);
        if piece.is_none() {
            thread.piece.clear();
        }
        self.ends[t] = piece.map_or(u64::MAX, |p| p.end);
        piece
    }

    /// Whether others must come first, and if so notes it.
    fn block_if_early(&mut self, t: usize, piece: &BurstPiece) -> bool {
        if !piece.waited {
            return false;
        }
        let (slowest, [first, second]) = self.slowest();
        let waits = piece.start >= if t == slowest { second } else { first };
        if waits {
            self.blocked.push((t, piece.start));
        }
        waits
    }

    /// The thread that is furthest behind, and the time that all others have reached.
    fn slowest(&self) -> (usize, [u64; 2]) {
        let (mut slowest, mut first, mut second) = (usize::MAX, u64::MAX, u64::MAX);
        for (t, &end) in self.ends.iter().enumerate() {
            if end < first {
                (slowest, second, first) = (t, first, end);
            } else {
                second = second.min(end);
            }
        }
        (slowest, [first, second])
    }

    /// Lets blocked threads go on whose time all others have passed.
    fn release_blocked(&mut self, time: f64) {
        if self.blocked.is_empty() {
            return;
        }
        let (slowest, [first, second]) = self.slowest();
        let mut free = Vec::new();
        self.blocked.retain(|&(t, until)| {
            let others = if t == slowest { second } else { first };
            let held_up = others <= until;
            if !held_up {
                free.push(t);
            }
            held_up
        });
        for t in free {
            self.enqueue_on_unit(t, time);
        }
    }

    /// A thread wants to run on its unit from `time` on.
    fn enqueue_on_unit(&mut self, t: usize, time: f64) {
        let unit = self.threads[t].unit;
        if self.units[unit].running.is_some() {
            self.units[unit].waiting.push_back(t);
        } else {
            self.start_on_unit(t, time);
        }
    }

    fn start_on_unit(&mut self, t: usize, time: f64) {
        let thread = &mut self.threads[t];
        thread.ready = thread.ready.max(time);
        thread.stream.restart(thread.ready);
        let core = &mut self.cores[thread.core];
        if core.running == 0 {
            core.since = time;
        }
        core.running += 1;
        core.divide(self.machine);
        let unit = &mut self.units[thread.unit];
        unit.running = Some(t);
        unit.slice_end = time + SLICE;
        self.wheel.push(t, thread.ready);
    }

    /// A thread gives up its unit, to the next that waits for it.
    fn leave_unit(&mut self, t: usize, time: f64) {
        let thread = &self.threads[t];
        let core = &mut self.cores[thread.core];
        core.running -= 1;
        if core.running == 0 {
            core.busy += (time - core.since).max(0.0);
        }
        core.divide(self.machine);
        let unit = &mut self.units[thread.unit];
        unit.running = None;
        if let Some(next) = unit.waiting.pop_front() {
            self.start_on_unit(next, time);
        }
    }
}
