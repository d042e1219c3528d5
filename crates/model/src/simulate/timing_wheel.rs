//! Which thread is next: a timing wheel.
//!
//! Threads advance in simulated time by quanta of a few cycles: with longer ones a line would go
//! to the thread with the lower number first, whichever is nearer.

/// Cycles (or instructions, without timing) that a thread may be ahead of others.
pub const QUANTUM: f64 = 4.0;
const SLOTS: u64 = 512;
const NONE: u32 = u32::MAX;

/// Threads by the quantum in which they go on, first in, first out.
pub struct TimingWheel {
    /// By slot: first and last thread.
    slots: Vec<(u32, u32)>,
    /// By slot: whether there is a thread in it.
    used: [u64; SLOTS as usize / 64],
    /// By thread: the next in its slot.
    next: Vec<u32>,
    /// The quantum that is being played.
    tick: u64,
}

impl TimingWheel {
    pub fn new(threads: usize, now: f64) -> Self {
        TimingWheel {
            slots: vec![(NONE, NONE); SLOTS as usize],
            used: [0; SLOTS as usize / 64],
            next: vec![NONE; threads],
            tick: (now / QUANTUM) as u64,
        }
    }

    /// A thread goes on at `time`, but not in the past. One that goes on later than the wheel
    /// reaches comes up too early, and is to be pushed again.
    #[inline]
    pub fn push(&mut self, thread: usize, time: f64) {
        let tick = ((time / QUANTUM) as u64).clamp(self.tick, self.tick + SLOTS - 1);
        let slot = (tick % SLOTS) as usize;
        self.next[thread] = NONE;
        let (first, last) = &mut self.slots[slot];
        if *first == NONE {
            *first = thread as u32;
            self.used[slot / 64] |= 1 << (slot % 64);
        } else {
            self.next[*last as usize] = thread as u32;
        }
        *last = thread as u32;
    }

    /// The next thread.
    #[inline]
    pub fn pop(&mut self) -> Option<usize> {
        let slot = self.next_slot()?;
        let (first, _) = self.slots[slot];
        let next = self.next[first as usize];
        self.slots[slot].0 = next;
        if next == NONE {
            self.used[slot / 64] &= !(1 << (slot % 64));
        }
        self.tick += (slot as u64).wrapping_sub(self.tick) % SLOTS;
        Some(first as usize)
    }

    /// When the turn of a thread is over that was popped: with its quantum or, unless it is to be only `one`, with the last
    /// quantum after which it would be popped again.
    #[inline]
    pub fn until(&self, one: bool) -> f64 {
        let quanta = match self.next_slot() {
            _ if one => 1,
            Some(slot) => ((slot as u64).wrapping_sub(self.tick) % SLOTS).max(1),
            None => SLOTS,
        };
        (self.tick + quanta) as f64 * QUANTUM
    }

    /// The quantum of this time is being played, unless a later one is.
    #[inline]
    pub fn advance_to(&mut self, time: f64) {
        self.tick = self.tick.max((time / QUANTUM) as u64);
    }

    fn next_slot(&self) -> Option<usize> {
        let words = self.used.len();
        let now = (self.tick % SLOTS) as usize;
        let here = self.used[now / 64] & (u64::MAX << (now % 64));
        if here != 0 {
            return Some(now / 64 * 64 + here.trailing_zeros() as usize);
        }
        // The last round sees the first word's lower slots, which come last.
        (1..=words).find_map(|n| {
            let word = (now / 64 + n) % words;
            let bits = self.used[word];
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        })
    }
}
