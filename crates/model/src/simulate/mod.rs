//! Predicting what a placement does: burst traces, a machine and a placement -> counts, time and
//! energy. Pure: the same input and seed give the same output.
//!
//! `replay` plays the threads of a window together, turn by turn (`thread_turn`), each in its core's
//! window (`instruction_window`), in the order of simulated time (`timing_wheel`). Each access goes
//! through the `hierarchy` of caches (`first_level`, `tag_array`, `cache_fill`) and the directory (`coherence`,
//! `directory`, `sharer_sets`, `cache_tree`) over the interconnect (`interconnect`) to memory
//! (`dram`), with prefetchers beside it (`prefetcher`); lines that have not arrived yet are waited
//! for (`outstanding_misses`). `software_prefetch` only makes the simulator itself faster.
//! `functional_warming` fills caches with what was used before.
//!
//! `replay_input/` is the input: where a placement has threads and pages over time, windows in
//! parts. `machine_file/` makes the machine of a topology and a machine file.
mod busy_intervals;
mod cache_fill;
mod cache_tree;
mod coherence;
pub mod counts;
mod directory;
mod dram;
pub mod energy;
mod first_level;
mod frame_table;
pub mod functional_warming;
mod hierarchy;
mod instruction_window;
mod interconnect;
mod line_request;
mod machine_check;
pub mod machine_file;
mod outstanding_misses;
mod prefetcher;
mod replay;
pub mod replay_input;
mod sharer_sets;
pub mod simulated_machine;
mod software_prefetch;
pub mod symmetric;
mod tag_array;
#[cfg(test)]
mod tests;
mod thread_turn;
mod timing_wheel;

use counts::{ActivityCounts, SimulationCounts};
use hierarchy::CacheHierarchy;
use hither_profile::bursts::{BurstAccess, BurstPiece};
use replay::WindowReplay;
use simulated_machine::SimulatedMachine;

/// The accesses of a window's threads, decoded a piece at a time. One for each simulation: several
/// read the same trace at the same time.
pub trait AccessSource {
    /// Threads that have pieces in this window, each a position in `WindowSetup::units`.
    fn threads(&self) -> &[u32];
    /// The next piece of a thread of [`AccessSource::threads`], its accesses in `into` (which is cleared
    /// first): addresses are of one address space for all processes (shared memory has one
    /// address, other processes' memory lies apart). `None` at the end.
    fn next_piece(&mut self, thread: u32, into: &mut Vec<BurstAccess>) -> Option<BurstPiece>;
}

/// Where things are.
pub struct WindowSetup<'a> {
    /// By thread of the profile: its unit, a position in `Machine::units`. Several threads of one
    /// unit alternate.
    pub units: &'a [u32],
    /// The node of the page (address / 4096) that holds an address, called once for each page in
    /// each window; `None`, or a node that the machine does not have: it stays where it is, and its
    /// home is the node of the first thread to touch it.
    pub home: &'a dyn Fn(u64) -> Option<u32>,
    /// Pages move to the node of the first thread to touch them in each window or part, whatever
    /// `home` says.
    pub next_touch: bool,
    /// Cycles for which a thread waits at a page that has gone to another node since it was last
    /// touched: 0 where that happened before.
    pub page_move: f64,
    /// A group for each address, such as a data structure, numbered from 0 on: asked at misses of
    /// the first level only.
    pub group: Option<&'a dyn Fn(u64) -> u32>,
}

/// Why something cannot be simulated.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulationError {
    /// The description of the machine contradicts itself.
    #[error("the machine cannot be simulated: {0}")]
    Machine(String),
    /// A thread has no unit, or one that the machine does not have.
    #[error("thread {0} has no unit of the machine to run on")]
    Unit(u32),
    /// Tables for the lines touched would grow beyond their limit.
    #[error("the windows touch more memory than can be simulated at once (32 GiB with lines of 64 bytes); simulate fewer windows")]
    TooManyPages,
}

/// A window's outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowOutcome {
    /// Sums over all threads.
    pub counts: SimulationCounts,
    /// By position in `WindowSetup::units`; zero for threads that were not in the window.
    pub threads: Vec<ActivityCounts>,
    /// By number; empty without `WindowSetup::group`. Only what happens at misses: accesses and
    /// instructions are 0, and read time is that of reads that missed.
    pub groups: Vec<ActivityCounts>,
}

/// A machine and its state after the windows so far: caches, homes of pages, open rows.
pub struct Simulation<'a> {
    machine: &'a SimulatedMachine,
    hierarchy: CacheHierarchy,
    timed: bool,
    /// Cycles so far, and when the window began that is played.
    now: f64,
    began: f64,
    /// By thread: when it was done with the parts of the window so far.
    done: Vec<f64>,
}

impl<'a> Simulation<'a> {
    /// A machine with empty caches. Without `timed`, caches and traffic only: a thread's time is
    /// the number of its instructions.
    ///
    /// # Errors
    /// [`SimulationError::Machine`].
    pub fn new(machine: &'a SimulatedMachine, timed: bool) -> Result<Self, SimulationError> {
        machine_check::check_machine(machine)?;
        Ok(Simulation {
            machine,
            hierarchy: CacheHierarchy::new(machine, timed),
            timed,
            now: 0.0,
            began: 0.0,
            done: Vec::new(),
        })
    }

    /// Plays a window, or its first part: all its threads begin at the same time. Without `counted`
    /// it only warms up: all counts are 0.
    ///
    /// # Errors
    /// [`SimulationError::Unit`] for a thread without a unit, [`SimulationError::TooManyPages`].
    pub fn play_window(
        &mut self,
        source: &mut dyn AccessSource,
        setup: &WindowSetup,
        counted: bool,
    ) -> Result<WindowOutcome, SimulationError> {
        self.began = self.now;
        self.done.clear();
        self.play_part(source, setup, counted)
    }

    /// Plays a further part of the window: each thread continues when it has finished the parts
    /// before. The part's time is what it adds to the window's.
    ///
    /// # Errors
    /// As [`Simulation::play_window`].
    pub fn play_part(
        &mut self,
        source: &mut dyn AccessSource,
        setup: &WindowSetup,
        counted: bool,
    ) -> Result<WindowOutcome, SimulationError> {
        for &thread in source.threads() {
            self.check_unit(thread, setup)?;
        }
        let begin = self.now;
        self.hierarchy.clear_counts(self.machine);
        self.hierarchy.pages.refresh_homes(setup.next_touch);
        let time = (self.timed, begin);
        let begins = |thread: u32| self.done.get(thread as usize).map_or(self.began, |at| *at);
        let replay = WindowReplay::new(
            self.machine,
            &mut self.hierarchy,
            setup,
            source,
            time,
            begins,
        );
        let played = replay.play()?;
        self.now = played.end;
        self.done.resize(setup.units.len(), self.began);
        for (thread, _, at) in &played.threads {
            self.done[*thread as usize] = *at;
        }
        let mut outcome = WindowOutcome {
            threads: vec![ActivityCounts::default(); setup.units.len()],
            ..WindowOutcome::default()
        };
        if counted {
            for (thread, share, _) in &played.threads {
                outcome.threads[*thread as usize] = *share;
            }
            outcome.groups = played.groups;
            outcome.counts = self.counts(&outcome.threads);
            outcome.counts.reads = played.reads;
            if self.timed {
                outcome.counts.cycles = played.end - begin;
                outcome.counts.busy = played.busy;
            }
        }
        Ok(outcome)
    }

    /// Whether a thread has a unit of the machine.
    fn check_unit(&self, thread: u32, setup: &WindowSetup) -> Result<(), SimulationError> {
        let unit = setup.units.get(thread as usize).copied();
        let known = unit.filter(|unit| (*unit as usize) < self.machine.units.len());
        known.map(|_| ()).ok_or(SimulationError::Unit(thread))
    }

    /// What the hierarchy counted, and the threads' sums.
    fn counts(&mut self, threads: &[ActivityCounts]) -> SimulationCounts {
        let counts = std::mem::take(&mut self.hierarchy.counts);
        let mut levels = counts.levels[..self.machine.levels.len()].to_vec();
        for level in &mut levels {
            level.touches += level.accesses;
        }
        SimulationCounts {
            instructions: threads.iter().map(|t| t.instructions).sum(),
            accesses: threads.iter().map(|t| t.accesses).sum(),
            levels,
            invalidations: counts.invalidations,
            transfers_inside: counts.transfers_inside,
            transfers_between: counts.transfers_between,
            link_bytes: counts.link_bytes,
            nodes: counts.nodes,
            read_time: threads.iter().map(|t| t.read_time).sum(),
            ..SimulationCounts::default()
        }
    }
}
