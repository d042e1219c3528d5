//! When a resource that serves one request at a time is free: a link, a memory channel, a bank.

/// How many busy stretches are remembered.
const KEPT: usize = 8;

/// Busy stretches, in order and apart. Requests come in the order in which cores made them, which
/// is not the order in which they arrive; so a request that arrives before one that is served
/// later takes the gap before it, if it fits.
#[derive(Clone, Copy, Default)]
pub struct BusyIntervals {
    busy: [(f64, f64); KEPT],
    used: usize,
}

impl BusyIntervals {
    /// Serves a request of `length` that arrives at `at`; when that begins.
    pub fn reserve(&mut self, at: f64, length: f64) -> f64 {
        let mut n = self.used;
        // The first stretch that ends after `at`.
        while n > 0 && self.busy[n - 1].1 > at {
            n -= 1;
        }
        let mut start = at;
        while n < self.used && self.busy[n].0 < start + length {
            start = start.max(self.busy[n].1);
            n += 1;
        }
        self.insert(n, start, start + length);
        start
    }

    fn insert(&mut self, n: usize, start: f64, end: f64) {
        let joins_before = n > 0 && self.busy[n - 1].1 >= start;
        let joins_after = n < self.used && self.busy[n].0 <= end;
        match (joins_before, joins_after) {
            (true, true) => {
                self.busy[n - 1].1 = self.busy[n].1;
                self.busy.copy_within(n + 1..self.used, n);
                self.used -= 1;
            }
            (true, false) => self.busy[n - 1].1 = end,
            (false, true) => self.busy[n].0 = start,
            (false, false) if self.used < KEPT => {
                self.busy.copy_within(n..self.used, n + 1);
                self.busy[n] = (start, end);
                self.used += 1;
            }
            // The oldest is dropped: nothing will arrive that early any more.
            (false, false) if n == KEPT => {
                self.busy.copy_within(1..KEPT, 0);
                self.busy[KEPT - 1] = (start, end);
            }
            (false, false) if n > 0 => {
                self.busy.copy_within(1..n, 0);
                self.busy[n - 1] = (start, end);
            }
            (false, false) => {}
        }
    }
}
