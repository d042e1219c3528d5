//! Plays a window: threads advance together in simulated time, each on its unit.
use super::core::{Misses, Stream};
use super::hierarchy::Hierarchy;
use super::machine::Machine;
use super::outcome::Share;
use super::wheel::Wheel;
use super::{Error, Setup, Source};
use hither_profile::bursts::{Access, Piece};
use std::collections::VecDeque;

/// Cycles (or instructions, without timing) after which threads of one unit take turns. Linux
/// gives each some milliseconds; windows are not long enough for that.
const SLICE: f64 = 100_000.0;

/// How many accesses ahead a thread's piece is glanced at.
const SOON: usize = 4;

/// Cycles of an instruction without timing: with one quantum of four cycles threads come to their
/// turns every eight instructions.
const UNTIMED: f64 = 0.5;

struct Thread {
    /// Its position in `Setup::units`.
    number: u32,
    unit: usize,
    core: usize,
    branch: usize,
    node: u32,
    piece: Vec<Access>,
    /// The next access of the piece, whether it has entered the window, and when it may issue.
    next: usize,
    entered: bool,
    ready: f64,
    stream: Stream,
    share: Share,
}

#[derive(Default)]
struct Unit {
    running: Option<usize>,
    waiting: VecDeque<usize>,
    slice_end: f64,
}

struct Core {
    /// Units of it that run a thread, since when one has, and how long that was before.
    running: u32,
    since: f64,
    busy: f64,
    /// What each of them has: cycles per instruction, and its part of the window.
    step: f64,
    window: u64,
    misses: Misses,
}

/// What a window gave besides the hierarchy's counts.
pub struct Played {
    pub end: f64,
    pub busy: f64,
    pub reads: u64,
    /// With the time at which each was done.
    pub threads: Vec<(u32, Share, f64)>,
    pub groups: Vec<Share>,
}

pub struct Replay<'a, S: Source + ?Sized> {
    machine: &'a Machine,
    hierarchy: &'a mut Hierarchy,
    setup: &'a Setup<'a>,
    source: &'a mut S,
    timed: bool,
    threads: Vec<Thread>,
    units: Vec<Unit>,
    cores: Vec<Core>,
    wheel: Wheel,
    /// By thread: when, in the recorded run, the piece that it plays was complete; the end of
    /// time when it has no more.
    ends: Vec<u64>,
    /// Threads that wait for others, with the time up to which others must have come.
    blocked: Vec<(usize, u64)>,
    /// The latest time that any thread has come to.
    latest: f64,
    reads: u64,
    groups: Vec<Share>,
    /// Of what was read only so that this computer's caches have it when it is needed: a thread's
    /// next access comes when all others have had theirs, and this computer can fetch meanwhile.
    glanced: u64,
}

impl<'a, S: Source + ?Sized> Replay<'a, S> {
    /// For a checked machine and units that it has. `begins`: when each thread goes on; no time is
    /// after `now`.
    pub fn new(
        machine: &'a Machine,
        hierarchy: &'a mut Hierarchy,
        setup: &'a Setup<'a>,
        source: &'a mut S,
        (timed, now): (bool, f64),
        begins: impl Fn(u32) -> f64,
    ) -> Self {
        let threads: Vec<Thread> = source
            .threads()
            .iter()
            .map(|&number| {
                let unit = setup.units[number as usize] as usize;
                let of = &machine.units[unit];
                Thread {
                    number,
                    unit,
                    core: of.core as usize,
                    branch: of.caches[0] as usize,
                    node: of.node,
                    piece: Vec::new(),
                    next: 0,
                    entered: false,
                    ready: begins(number),
                    stream: Stream::new(),
                    share: Share::default(),
                }
            })
            .collect();
        let first = threads.iter().fold(now, |first, t| first.min(t.ready));
        let cores = machine.units.iter().map(|u| u.core + 1).max().unwrap_or(0);
        let core = |_| Core {
            running: 0,
            since: now,
            busy: 0.0,
            step: 1.0 / machine.core.width,
            window: u64::from(machine.core.window),
            misses: Misses::new(machine.core.misses),
        };
        Replay {
            units: machine.units.iter().map(|_| Unit::default()).collect(),
            cores: (0..cores).map(core).collect(),
            wheel: Wheel::new(threads.len(), first),
            ends: vec![0; threads.len()],
            threads,
            machine,
            hierarchy,
            setup,
            source,
            timed,
            blocked: Vec::new(),
            latest: now,
            reads: 0,
            groups: Vec::new(),
            glanced: 0,
        }
    }

    /// Plays all accesses.
    pub fn play(mut self) -> Result<Played, Error> {
        let mut ready = Vec::new();
        for t in 0..self.threads.len() {
            let piece = self.fetch(t);
            ready.push(piece);
        }
        for (t, piece) in ready.into_iter().enumerate() {
            if let Some(piece) = piece {
                if !self.must_wait(t, &piece) {
                    self.join(t, self.threads[t].ready);
                }
            }
        }
        loop {
            match self.wheel.pop() {
                Some((t, until)) => self.run(t, until)?,
                None => {
                    // Pieces that all wait for one another: no run leaves these, so any may go.
                    let first = self.blocked.iter().min_by_key(|b| (b.1, b.0)).copied();
                    let Some((t, _)) = first else { break };
                    self.blocked.retain(|b| b.0 != t);
                    self.join(t, self.latest);
                }
            }
        }
        std::hint::black_box(self.glanced);
        Ok(Played {
            end: self.latest,
            busy: self.cores.iter().map(|c| c.busy).sum(),
            reads: self.reads,
            threads: self
                .threads
                .iter()
                .map(|t| (t.number, t.share, t.ready))
                .collect(),
            groups: self.groups,
        })
    }

    /// Plays a thread up to a time, or until it must stop.
    fn run(&mut self, t: usize, until: f64) -> Result<(), Error> {
        loop {
            while self.advance(t, until)? {}
            let thread = &self.threads[t];
            if thread.next < thread.piece.len() {
                let (unit, ready) = (thread.unit, thread.ready);
                self.later(t, unit, ready);
                return Ok(());
            }
            if !self.next_piece(t) {
                return Ok(());
            }
        }
    }

    /// Plays a thread's next access, if it has one in this piece that issues before `until`.
    #[inline]
    fn advance(&mut self, t: usize, until: f64) -> Result<bool, Error> {
        let thread = &mut self.threads[t];
        let Some(&access) = thread.piece.get(thread.next) else {
            return Ok(false);
        };
        let core = &mut self.cores[thread.core];
        if !thread.entered {
            thread.entered = true;
            thread.ready = if self.timed {
                let stream = &mut thread.stream;
                stream.enter(access.after, access.depends, core.step, core.window)
            } else {
                thread.ready + f64::from(access.after) * UNTIMED
            };
            let soon = thread.piece.get(thread.next + SOON);
            self.glanced ^= soon.map_or(0, |a| a.address);
        }
        let ready = thread.ready;
        if ready >= until {
            return Ok(false);
        }
        let hierarchy = &mut *self.hierarchy;
        let line = hierarchy
            .pages
            .line(access.address, thread.node, self.setup.home)
            .ok_or(Error::TooManyPages)?;
        if self.timed && core.misses.free() > ready && !hierarchy.has(thread.branch, line) {
            thread.ready = core.misses.free();
            return Ok(true);
        }
        let (mut done, mut missed) = hierarchy.access(thread.branch, line, access.write, ready);
        if missed > 0 && self.timed {
            core.misses.begin(done);
        }
        let within = access.address & u64::from(self.machine.line - 1);
        if within + u64::from(access.bytes) > u64::from(self.machine.line) {
            let rest = self.rest(t, &access, missed)?;
            done = done.max(rest.0);
            missed = missed.max(rest.1);
        }
        if missed > 0 || self.hierarchy.first_use {
            self.note(t, &access, done);
        }
        let thread = &mut self.threads[t];
        thread.next += 1;
        thread.entered = false;
        let share = &mut thread.share;
        share.accesses += 1;
        share.instructions += u64::from(access.after);
        if self.timed {
            if !access.write {
                share.read_time += done - ready;
            }
            let step = self.cores[thread.core].step;
            let stream = &mut thread.stream;
            stream.leave(access.after, step, ready, done, access.write);
        }
        self.reads += u64::from(!access.write);
        Ok(true)
    }

    /// This computer fetches what it will need for a thread's next access, if that is likely to be
    /// much: threads miss in a row.
    fn expect(&self, t: usize) {
        let thread = &self.threads[t];
        let next = thread.piece.get(thread.next + 1);
        let line = next.and_then(|next| self.hierarchy.pages.known(next.address));
        if let Some(line) = line {
            self.hierarchy.expect(thread.branch, line);
        }
    }

    /// An access missed, or was the first use of a line fetched ahead, which has others fetched.
    #[inline(never)]
    fn note(&mut self, t: usize, access: &Access, done: f64) {
        self.hierarchy.first_use = false;
        self.expect(t);
        let thread = &mut self.threads[t];
        let last = std::mem::take(&mut self.hierarchy.last);
        thread.share.add_events(&last);
        let Some(group) = self.setup.group else {
            return;
        };
        let at = group(access.address) as usize;
        if at >= self.groups.len() {
            self.groups.resize(at + 1, Share::default());
        }
        self.groups[at].add_events(&last);
        if !access.write && self.timed {
            self.groups[at].read_time += done - thread.ready;
        }
    }

    /// A thread's quantum is over: it goes on at `ready`, or another of its unit does.
    fn later(&mut self, t: usize, unit: usize, ready: f64) {
        if ready >= self.units[unit].slice_end && !self.units[unit].waiting.is_empty() {
            self.leave(t, ready);
            self.join(t, ready);
        } else {
            self.wheel.push(t, ready);
        }
    }

    /// The further lines of an access. One that needs no more than two is one access and one miss
    /// at each level that either line misses; a longer one counts each line. Each line that misses
    /// is one under way.
    #[cold]
    fn rest(
        &mut self,
        t: usize,
        access: &Access,
        mut missed: usize,
    ) -> Result<(f64, usize), Error> {
        let thread = &self.threads[t];
        let (branch, ready, node) = (thread.branch, thread.ready, thread.node);
        let under_way = &mut self.cores[thread.core].misses;
        let line = u64::from(self.machine.line);
        let end = access.address.saturating_add(u64::from(access.bytes));
        let mut at = (access.address / line)
            .saturating_mul(line)
            .saturating_add(line);
        let pair = end - at <= line;
        let mut done = ready;
        while at < end {
            let hierarchy = &mut *self.hierarchy;
            let number = hierarchy
                .pages
                .line(at, node, self.setup.home)
                .ok_or(Error::TooManyPages)?;
            let issued = if self.timed && !hierarchy.has(branch, number) {
                ready.max(under_way.free())
            } else {
                ready
            };
            let (then, levels) = hierarchy.access(branch, number, access.write, issued);
            if levels > 0 && self.timed {
                under_way.begin(then);
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

    /// A thread's piece is at its end: whether it goes on with the next.
    fn next_piece(&mut self, t: usize) -> bool {
        let time = if self.timed {
            self.threads[t].stream.end()
        } else {
            self.threads[t].ready
        };
        self.latest = self.latest.max(time);
        self.threads[t].ready = time;
        let piece = self.fetch(t);
        let goes_on = piece.is_some_and(|piece| !self.must_wait(t, &piece));
        if !goes_on {
            self.leave(t, time);
        }
        self.release(time);
        goes_on
    }

    fn fetch(&mut self, t: usize) -> Option<Piece> {
        let thread = &mut self.threads[t];
        thread.next = 0;
        let piece = self.source.next(thread.number, &mut thread.piece);
        if piece.is_none() {
            thread.piece.clear();
        }
        self.ends[t] = piece.map_or(u64::MAX, |p| p.end);
        piece
    }

    /// Whether others must come first, and if so notes it.
    fn must_wait(&mut self, t: usize, piece: &Piece) -> bool {
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

    /// The thread that has come least far, and how far all others have.
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

    /// Lets those go on whom nobody holds up any more: all others have come past their time.
    fn release(&mut self, time: f64) {
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
            self.join(t, time);
        }
    }

    /// A thread wants to run on its unit from `time` on.
    fn join(&mut self, t: usize, time: f64) {
        let unit = self.threads[t].unit;
        if self.units[unit].running.is_some() {
            self.units[unit].waiting.push_back(t);
        } else {
            self.start(t, time);
        }
    }

    fn start(&mut self, t: usize, time: f64) {
        let thread = &mut self.threads[t];
        thread.ready = thread.ready.max(time);
        thread.stream.restart(thread.ready);
        let core = &mut self.cores[thread.core];
        if core.running == 0 {
            core.since = time;
        }
        core.running += 1;
        core.share(self.machine);
        let unit = &mut self.units[thread.unit];
        unit.running = Some(t);
        unit.slice_end = time + SLICE;
        self.wheel.push(t, thread.ready);
    }

    /// A thread gives up its unit, to the next that waits for it.
    fn leave(&mut self, t: usize, time: f64) {
        let thread = &self.threads[t];
        let core = &mut self.cores[thread.core];
        core.running -= 1;
        if core.running == 0 {
            core.busy += (time - core.since).max(0.0);
        }
        core.share(self.machine);
        let unit = &mut self.units[thread.unit];
        unit.running = None;
        if let Some(next) = unit.waiting.pop_front() {
            self.start(next, time);
        }
    }
}

impl Core {
    /// Divides the core among those of its units that run.
    fn share(&mut self, machine: &Machine) {
        let parts = self.running.max(1);
        self.step = f64::from(parts) / machine.core.width;
        self.window = u64::from((machine.core.window / parts).max(1));
    }
}
