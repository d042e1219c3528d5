//! A thread's turn: its accesses up to the end of a quantum, each in its core's window and through
//! the hierarchy.
use super::counts::ActivityCounts;
use super::first_level::FirstLevelPlace;
use super::hierarchy::CacheHierarchy;
use super::instruction_window::{later, CoreShare, InstructionWindow, MshrSlots};
use super::simulated_machine::SimulatedMachine;
use super::{SimulationError, WindowSetup};
use hither_profile::bursts::BurstAccess;
use hither_table::prefetch;

/// How many accesses ahead the host prefetches what a thread's access will need, each step using
/// the one before: the access; its page; its sets, and the state of its line; the state of the
/// lines that it will evict, and its owner's sets. A thread's turn may last only three accesses.
const PIECE_AHEAD: usize = 9;
const PAGE_AHEAD: usize = 6;
const SETS_AHEAD: usize = 3;
const OTHERS_AHEAD: usize = 2;

/// Cycles of an instruction without timing: with one quantum of four cycles threads come to their
/// turns every eight instructions.
const UNTIMED: f64 = 0.5;

pub struct SimThread {
    /// Its position in `WindowSetup::units`.
    pub number: u32,
    pub unit: usize,
    pub core: usize,
    pub l1: usize,
    pub node: u32,
    pub piece: Vec<BurstAccess>,
    /// The next access of the piece, whether it has entered the window, and when it may issue.
    pub next: usize,
    pub entered: bool,
    pub ready: f64,
    /// The latest time at which it could play on in a turn.
    pub latest: f64,
    pub stream: InstructionWindow,
    pub reads: u64,
    pub share: ActivityCounts,
}

pub struct SimCore {
    /// Units of it that run a thread, since when one has, and how long that was before.
    pub running: u32,
    pub since: f64,
    pub busy: f64,
    /// What each of them has.
    pub share: CoreShare,
    pub misses: MshrSlots,
}

/// A thread in its turn, and what it needs.
pub struct ThreadTurn<'a> {
    pub thread: &'a mut SimThread,
    pub core: &'a mut SimCore,
    pub hierarchy: &'a mut CacheHierarchy,
    pub setup: &'a WindowSetup<'a>,
    pub groups: &'a mut Vec<ActivityCounts>,
    /// Bytes of a line.
    pub line: u64,
    pub timed: bool,
}

impl ThreadTurn<'_> {
    /// Plays the accesses of the thread's piece that issue before `until`.
    #[inline]
    pub fn play(&mut self, until: f64) -> Result<(), SimulationError> {
        while let Some(&access) = self.thread.piece.get(self.thread.next) {
            if !self.enter_window(&access, until) {
                break;
            }
            self.thread.latest = later(self.thread.latest, self.thread.ready);
            self.issue_access(&access)?;
        }
        Ok(())
    }

    /// An access enters its core's window; whether it issues before `until`.
    #[inline]
    fn enter_window(&mut self, access: &BurstAccess, until: f64) -> bool {
        let thread = &mut *self.thread;
        if !thread.entered {
            thread.entered = true;
            thread.ready = if self.timed {
                let core = &self.core;
                let stream = &mut thread.stream;
                stream.enter(access.after, access.depends, &core.share)
            } else {
                thread.ready + f64::from(access.after) * UNTIMED
            };
            prefetch(&thread.piece, thread.next + PIECE_AHEAD);
        }
        thread.ready < until
    }

    /// An access issues, or has to wait for room among its core's misses.
    #[inline]
    fn issue_access(&mut self, access: &BurstAccess) -> Result<(), SimulationError> {
        let thread = &mut *self.thread;
        let hierarchy = &mut *self.hierarchy;
        let ready = thread.ready;
        let line = hierarchy
            .pages
            .line_of_address(access.address, thread.node, self.setup.home)
            .ok_or(SimulationError::TooManyPages)?;
        if hierarchy.pages.moved > 0 {
            let moved = std::mem::take(&mut hierarchy.pages.moved);
            if self.timed && self.setup.page_move > 0.0 {
                thread.ready += f64::from(moved) * self.setup.page_move;
                // The kernel moves it at a fault, which empties the window.
                thread.stream.restart(thread.ready);
                return Ok(());
            }
        }
        let (mut done, mut missed) =
            match hierarchy.plain_access(thread.l1, line, access.write, ready) {
                Ok(done) => (done, 0),
                Err(found) => match self.access_past_l1(found, line, access.write) {
                    Some(played) => played,
                    None => return Ok(()),
                },
            };
        let within = access.address & (self.line - 1);
        if within + u64::from(access.bytes) > self.line {
            let rest = self.further_lines(access, missed)?;
            done = done.max(rest.0);
            missed = missed.max(rest.1);
        }
        if missed > 0 || self.hierarchy.first_use {
            self.record_miss(access, done);
        }
        let thread = &mut *self.thread;
        thread.next += 1;
        thread.entered = false;
        thread.share.accesses += 1;
        thread.share.instructions += u64::from(access.after);
        if self.timed {
            if !access.write {
                thread.share.read_time += done - ready;
            }
            let step = self.core.share.step;
            thread
                .stream
                .retire(access.after, step, ready, done, access.write);
        }
        thread.reads += u64::from(!access.write);
        Ok(())
    }

    /// An access that is no plain hit: when it is done, and how many levels it missed; `None` if it has to wait for room among
    /// its core's misses.
    fn access_past_l1(
        &mut self,
        found: FirstLevelPlace,
        line: u32,
        write: bool,
    ) -> Option<(f64, usize)> {
        let thread = &mut *self.thread;
        let misses = &mut self.core.misses;
        if self.timed && found.at.is_none() && misses.free_from() > thread.ready {
            thread.ready = misses.free_from();
            return None;
        }
        let (l1, now) = (thread.l1, thread.ready);
        let (done, missed) = self.hierarchy.access_past_l1(found, l1, line, write, now);
        if missed > 0 && self.timed {
            misses.allocate(done);
        }
        Some((done, missed))
    }

    /// The host prefetches what the thread's next accesses will need, if they are likely to miss:
    /// misses come in sequences.
    fn prefetch_next_accesses(&self) {
        let thread = &self.thread;
        let line = |ahead: usize| {
            let access = thread.piece.get(thread.next + ahead)?;
            self.hierarchy.pages.recent_line(access.address)
        };
        if let Some(access) = thread.piece.get(thread.next + PAGE_AHEAD) {
            self.hierarchy.pages.prefetch_recent(access.address);
        }
        if let Some(line) = line(SETS_AHEAD) {
            self.hierarchy.prefetch_line_state(thread.l1, line);
        }
        if let Some(line) = line(OTHERS_AHEAD) {
            self.hierarchy.prefetch_victim_state(thread.l1, line);
        }
    }

    /// An access missed, or was the first use of a prefetched line, which triggers the prefetchers.
    #[inline(never)]
    fn record_miss(&mut self, access: &BurstAccess, done: f64) {
        self.hierarchy.first_use = false;
        self.prefetch_next_accesses();
        let last = std::mem::take(&mut self.hierarchy.last);
        self.thread.share.add_events(&last);
        let Some(group) = self.setup.group else {
            return;
        };
        let at = group(access.address) as usize;
        if at >= self.groups.len() {
            self.groups.resize(at + 1, ActivityCounts::default());
        }
        self.groups[at].add_events(&last);
        if !access.write && self.timed {
            self.groups[at].read_time += done - self.thread.ready;
        }
    }

    /// The further lines of an access. One that needs no more than two is one access and one miss
    /// at each level that either line misses; a longer one counts each line. Each line that misses
    /// is one outstanding miss.
    #[cold]
    fn further_lines(
        &mut self,
        access: &BurstAccess,
        mut missed: usize,
    ) -> Result<(f64, usize), SimulationError> {
        let (l1, ready) = (self.thread.l1, self.thread.ready);
        let misses = &mut self.core.misses;
        let hierarchy = &mut *self.hierarchy;
        let line = self.line;
        let end = access.address.saturating_add(u64::from(access.bytes));
        let mut at = (access.address / line)
            .saturating_mul(line)
            .saturating_add(line);
        let pair = end - at <= line;
        let mut done = ready;
        while at < end {
            let number = hierarchy
                .pages
                .line_of_address(at, self.thread.node, self.setup.home)
                .ok_or(SimulationError::TooManyPages)?;
            let issued = if self.timed && !hierarchy.first_level_has(l1, number) {
                ready.max(misses.free_from())
            } else {
                ready
            };
            let (then, levels) = hierarchy.access(l1, number, access.write, issued);
            if levels > 0 && self.timed {
                misses.allocate(then);
            }
            if pair {
                hierarchy.count_once(missed, levels);
            }
            done = done.max(then);
            missed = missed.max(levels);
            at = at.saturating_add(line);
        }
        Ok((done, missed))
    }
}

impl SimCore {
    /// Divides the core among those of its units that run.
    pub fn divide(&mut self, machine: &SimulatedMachine) {
        let core = &machine.core;
        self.share = CoreShare::of_core(core.width, core.window, self.running.max(1));
    }
}
