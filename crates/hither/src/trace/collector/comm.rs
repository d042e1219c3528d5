//! Communication rows of the segment -> events and coherence events per pair and slice.
//!
//! M[i][j] = what i's row credits j + what j's row credits i, each pair kept once with i < j.
use hither_profile::binned::{sort_and_sum, CountRow};
use hither_sys::{wire, Segment};
use std::collections::{BTreeSet, HashMap};

/// Groups of 64 columns per row; those from 64 on share dirty bits with the first.
const COLUMN_GROUPS: u32 = wire::MAX_THREADS.div_ceil(64);

/// The key of a pair of threads, given by slots or both by their keys.
pub fn pair_key(a: u32, b: u32) -> u64 {
    let (i, j) = (a.min(b), a.max(b));
    u64::from(i) << 32 | u64::from(j)
}

/// What a key was made of by [`pair_key`].
pub fn pair_of(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

#[derive(Default)]
pub struct CommReader {
    /// What was read last, by (row, group).
    seen: HashMap<(u32, u32), Box<[[u64; 2]; 64]>>,
    pairs: PairSums,
    /// Events of threads that have left their slots since.
    settled: Vec<CountRow<2>>,
}

impl CommReader {
    /// Reads the rows of one parity that changed into the sums of the current slice.
    pub fn read_dirty_rows(&mut self, segment: &Segment, parity: u32) {
        let threads = segment.next_thread();
        for thread in 1..threads {
            let dirty = segment.take_comm_dirty(thread, parity);
            if dirty == 0 {
                continue;
            }
            let groups = (0..COLUMN_GROUPS).filter(|g| dirty >> (g % 64) & 1 == 1);
            for group in groups.take_while(|g| g * 64 < threads) {
                self.read_group(segment, thread, parity, group);
            }
        }
    }

    /// Reads what ever was flagged in rows of this parity, when the target has stopped: a
    /// thread sets a flag only if it finds it clear, which may race with our taking it.
    pub fn read_flagged_rows(&mut self, segment: &Segment, parity: u32) {
        self.read_dirty_rows(segment, parity);
        let seen: Vec<(u32, u32)> = self.seen.keys().copied().collect();
        for (row, group) in seen {
            if row & 1 == parity & 1 {
                self.read_group(segment, row / 2, parity, group);
            }
        }
    }

    fn read_group(&mut self, segment: &Segment, thread: u32, parity: u32, group: u32) {
        let now = segment.comm_group(thread, parity, group);
        let key = (thread * 2 + (parity & 1), group);
        let before = self
            .seen
            .entry(key)
            .or_insert_with(|| Box::new([[0; 2]; 64]));
        let other = (group * 64..).zip(now.iter().zip(before.iter()));
        for (column, (now, before)) in other {
            let grown = [0, 1].map(|at| now[at].saturating_sub(before[at]));
            if grown != [0; 2] && column > 0 && column < wire::MAX_THREADS {
                self.pairs.add(thread, column, grown);
            }
        }
        **before = now;
    }

    /// Adds credit that the target did not live to write into its rows.
    pub fn add_credit(&mut self, thread: u32, other: u32, events: [u64; 2]) {
        if events != [0; 2] && other > 0 && other < wire::MAX_THREADS {
            self.pairs.add(thread, other, events);
        }
    }

    /// Slots are about to change their threads: reads what was added to their columns, and gives what is
    /// known to the threads that are in the slots.
    pub fn settle(&mut self, segment: &Segment, slots: &[u32], key: impl Fn(u32) -> u32) {
        let groups: BTreeSet<u32> = slots.iter().map(|slot| slot / 64).collect();
        let seen: Vec<(u32, u32)> = self.seen.keys().copied().collect();
        for (row, group) in seen {
            if groups.contains(&group) || slots.binary_search(&(row / 2)).is_ok() {
                self.read_group(segment, row / 2, row & 1, group);
            }
        }
        let rows = self.pairs.take();
        self.settled
            .extend(rows.into_iter().map(|row| keyed(row, &key)));
    }

    /// Forgets the rows of slots, which are zero again.
    pub fn forget_rows(&mut self, slots: &[u32]) {
        self.seen
            .retain(|(row, _), _| slots.binary_search(&(row / 2)).is_err());
    }

    /// The events and coherence events since the last call, by pairs of keys.
    pub fn take_events(&mut self, key: impl Fn(u32) -> u32) -> Vec<CountRow<2>> {
        let mut rows = std::mem::take(&mut self.settled);
        let latest = self.pairs.take();
        rows.extend(latest.into_iter().map(|row| keyed(row, &key)));
        rows.retain(|(pair, _)| {
            let (i, j) = pair_of(*pair);
            i != 0 && i != j
        });
        sort_and_sum(&mut rows);
        rows
    }
}

/// A row of a pair of slots as one of the threads there.
fn keyed((slots, counts): CountRow<2>, key: impl Fn(u32) -> u32) -> CountRow<2> {
    let (a, b) = pair_of(slots);
    (pair_key(key(a), key(b)), counts)
}

/// Sums over unordered pairs of slots, in a triangle that grows with the threads seen.
#[derive(Default)]
struct PairSums {
    events: Vec<[u64; 2]>,
    touched: Vec<u64>,
}

impl PairSums {
    fn cell(key: u64) -> usize {
        let (i, j) = pair_of(key);
        (j as usize * (j as usize).saturating_sub(1)) / 2 + i as usize
    }

    fn add(&mut self, a: u32, b: u32, events: [u64; 2]) {
        if a == b {
            return;
        }
        let key = pair_key(a, b);
        let cell = Self::cell(key);
        if cell >= self.events.len() {
            self.events.resize(cell + 1, [0; 2]);
        }
        let sum = &mut self.events[cell];
        if *sum == [0; 2] {
            self.touched.push(key);
        }
        *sum = [0, 1].map(|at| sum[at].saturating_add(events[at]));
    }

    fn take(&mut self) -> Vec<CountRow<2>> {
        let mut sum = |key| std::mem::take(&mut self.events[Self::cell(key)]);
        self.touched.drain(..).map(|key| (key, sum(key))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_of_a_pair_are_summed() {
        let mut pairs = PairSums::default();
        pairs.add(2, 1, [5, 3]);
        pairs.add(1, 2, [2, 1]);
        pairs.add(3, 3, [60, 0]);
        assert_eq!(pairs.take(), [(pair_key(1, 2), [7, 4])]);
        assert_eq!(pairs.take(), []);
    }
}
