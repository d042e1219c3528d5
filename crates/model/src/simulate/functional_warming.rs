//! Functional warming, as in SMARTS (Wunderlich and others, 2003): caches, directory, homes of pages and open rows of DRAM
//! become what last uses of lines leave behind. Nothing waits, is prefetched or counted.
//!
//! What a thread used so long ago that it has used several times as many other lines since as a cache below the last level
//! holds is in none of those any more. It goes into the last level alone, where it ends up anyway: most of what fills a
//! large last level is such, and to take each line through all levels takes several times as long.
use super::cache_tree::DEPTH;
use super::counts::ActivityCounts;
use super::hierarchy::{looks_ahead, CacheHierarchy};
use super::line_request::LineRequest;
use super::simulated_machine::SimulatedMachine;
use super::tag_array::{tag_entry, DIRTY, WRITABLE};
use super::{Simulation, SimulationError, WindowSetup};

/// How many times as many lines as a cache holds surely drive a line out: with eight ways and sets met by chance, all but
/// one of 10^7 lines.
const SURELY_EVICTED: u64 = 4;

/// Lines side by side on a page that a thread used last at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LineRun {
    /// A position in `WindowSetup::units`.
    pub thread: u32,
    /// Of the first line.
    pub address: u64,
    /// How many there are.
    pub lines: u32,
    /// How many of them, the first, were written.
    pub written: u32,
}

impl Simulation<'_> {
    /// Fills the caches with what was used before a window, the last uses of lines from the oldest to the youngest.
    ///
    /// # Errors
    /// As [`Simulation::play_window`].
    pub fn warm_caches<'u>(
        &mut self,
        uses: impl Iterator<Item = &'u LineRun> + Clone,
        setup: &WindowSetup,
    ) -> Result<(), SimulationError> {
        let mut left = vec![0u64; setup.units.len()];
        for run in uses.clone() {
            self.check_unit(run.thread, setup)?;
            left[run.thread as usize] += u64::from(run.lines);
        }
        self.hierarchy.clear_counts(self.machine);
        self.hierarchy.begin_functional_warming();
        self.hierarchy.pages.refresh_homes(setup.next_touch);
        let below_last = self.lines_below_last();
        let warmed = uses.into_iter().try_for_each(|run| {
            let left = &mut left[run.thread as usize];
            let old = below_last.is_some_and(|lines| *left > lines.saturating_mul(SURELY_EVICTED));
            *left -= u64::from(run.lines);
            self.warm_run(run, old, setup)
        });
        self.hierarchy
            .end_functional_warming(self.machine, self.timed);
        warmed
    }

    /// Lines that a cache below the last level holds at most; `None` where there is none, or no last level that cores share.
    fn lines_below_last(&self) -> Option<u64> {
        let tree = &self.hierarchy.tree;
        let below = &self.machine.levels[..tree.depth - 1];
        let lines = below.iter().map(|l| l.bytes / u64::from(self.machine.line));
        lines.max().filter(|_| tree.private < tree.depth)
    }

    fn warm_run(
        &mut self,
        run: &LineRun,
        old: bool,
        setup: &WindowSetup,
    ) -> Result<(), SimulationError> {
        let unit = &self.machine.units[setup.units[run.thread as usize] as usize];
        let (l1, node) = (unit.caches[0] as usize, unit.node);
        for nth in 0..run.lines {
            let address = run.address + u64::from(nth) * u64::from(self.machine.line);
            let pages = &mut self.hierarchy.pages;
            let line = pages.line_of_address(address, node, setup.home);
            let line = line.ok_or(SimulationError::TooManyPages)?;
            let write = nth < run.written;
            match old {
                true => self.hierarchy.warm_last_level(l1, line, write),
                false => {
                    self.hierarchy.access(l1, line, write, self.now);
                }
            }
        }
        Ok(())
    }
}

impl CacheHierarchy {
    fn begin_functional_warming(&mut self) {
        self.set_timed(false);
        self.looks_ahead = false;
    }

    fn end_functional_warming(&mut self, machine: &SimulatedMachine, timed: bool) {
        self.set_timed(timed);
        self.looks_ahead = looks_ahead(machine);
        self.pages.moved = 0;
        self.first_use = false;
        self.last = ActivityCounts::default();
    }

    /// A private hierarchy used a line that has since been driven out of all levels but the last.
    fn warm_last_level(&mut self, l1: usize, line: u32, write: bool) {
        self.lines.reserve(line);
        let last = self.tree.depth - 1;
        let mut request = LineRequest {
            l1,
            line,
            write,
            first: last,
            ahead: false,
            now: self.now,
            sets: [0; DEPTH],
        };
        let dirty = u32::from(write) * DIRTY;
        if let Some(at) = self.look_up(&mut request, last) {
            self.serve_in_domain(&request, last, at);
            self.caches[last].set_flags(at, dirty);
        } else {
            let flags = match self.lines.owner(line) {
                None if !self.lines.has_sharers_below(line, self.tree.depth) => {
                    self.read_alone(l1, line)
                }
                _ => self.serve_by_directory(&request).last,
            };
            let entry = tag_entry(line, flags | dirty);
            self.insert_entry(l1, last, request.sets[last], entry);
        }
        self.lines.add_holder(line, l1);
    }

    /// What comes of a request for a line that no cache holds: the flags that it gets.
    fn read_alone(&mut self, l1: usize, line: u32) -> u32 {
        self.lines.own_writable(line, l1);
        let (home, number) = self.pages.home_of_line(line);
        let counts = &mut self.counts.nodes[home];
        self.memory.access_line(home, number, self.now, counts);
        WRITABLE
    }
}
