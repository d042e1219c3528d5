//! The sharing matrix (kMAF 3.2 and 3.4.2): how often each pair of threads was seen to share.
use super::SharerId;

/// What an event adds. kMAF ages by M - (M >> 2), which leaves values below 4 as they are;
/// with this unit what stays for ever is less than a hundredth of an event.
pub const EVENT_WEIGHT: u32 = 1024;
/// What is left of an event after ten times of ageing: from there on it is forgotten. Else
/// pairs that met once would together outweigh those that talk now.
pub const MIN_WEIGHT: u32 = EVENT_WEIGHT / 16;

/// M\[i\]\[j\] = M\[j\]\[i\], in units of 1 / EVENT events; the diagonal is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharingMatrix {
    /// Rows that exist and that there is room for.
    sharers: usize,
    side: usize,
    cells: Vec<u32>,
    events: u64,
    /// Events since they were taken last, as far as they are kept.
    fresh: Vec<(SharerId, SharerId)>,
}

/// Fresh events that are kept until they are taken: one access makes few.
const MAX_FRESH_EVENTS: usize = 1024;

impl SharingMatrix {
    /// Rows that were ever used.
    #[must_use]
    pub fn sharers(&self) -> usize {
        self.sharers
    }

    /// Rows that there is memory for.
    #[cfg(test)]
    pub fn side(&self) -> usize {
        self.side
    }

    /// Events since the start, whatever became of them.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Weight of the events between two threads; 0 of one with itself.
    #[must_use]
    pub fn get(&self, a: SharerId, b: SharerId) -> u32 {
        if a.at().max(b.at()) >= self.side {
            return 0;
        }
        self.cells[a.at() * self.side + b.at()]
    }

    /// Records a sharing event of two different threads.
    pub fn share(&mut self, a: SharerId, b: SharerId) {
        if a == b {
            return;
        }
        self.reach(a.at().max(b.at()) + 1);
        for at in [a.at() * self.side + b.at(), b.at() * self.side + a.at()] {
            self.cells[at] = self.cells[at].saturating_add(EVENT_WEIGHT);
        }
        self.events += 1;
        if self.fresh.len() < MAX_FRESH_EVENTS {
            self.fresh.push((a, b));
        }
    }

    /// The events since the last call.
    pub fn take_fresh(&mut self) -> impl Iterator<Item = (SharerId, SharerId)> + '_ {
        self.fresh.drain(..)
    }

    /// Multiplies all by what is left of them, 0.75 in kMAF (3.4.2).
    pub fn age(&mut self, left: f64) {
        for cell in &mut self.cells {
            *cell -= (f64::from(*cell) * (1.0 - left)) as u32;
        }
    }

    /// A thread is gone, and so is what it shared.
    pub fn clear(&mut self, sharer: SharerId) {
        if sharer.at() >= self.side {
            return;
        }
        for other in 0..self.side {
            self.cells[sharer.at() * self.side + other] = 0;
            self.cells[other * self.side + sharer.at()] = 0;
        }
    }

    /// Pairs i < j that share, with the weight of their events.
    pub fn pairs(&self) -> impl Iterator<Item = (SharerId, SharerId, u32)> + '_ {
        let rows = 0..u16::try_from(self.sharers).unwrap_or(u16::MAX);
        let all = rows.clone().flat_map(move |i| {
            let above = i + 1..rows.end;
            above.map(move |j| (SharerId(i), SharerId(j), self.get(SharerId(i), SharerId(j))))
        });
        all.filter(|&(_, _, weight)| weight >= MIN_WEIGHT)
    }

    fn reach(&mut self, sharers: usize) {
        self.sharers = self.sharers.max(sharers);
        if sharers <= self.side {
            return;
        }
        let side = sharers.next_power_of_two().max(16);
        let mut cells = vec![0; side * side];
        for row in 0..self.side {
            let old = &self.cells[row * self.side..(row + 1) * self.side];
            cells[row * side..row * side + self.side].copy_from_slice(old);
        }
        (self.side, self.cells) = (side, cells);
    }
}
