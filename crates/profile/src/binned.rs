//! Counts per key over time, kept within a budget of rows: when there are more, bins of
//! time are merged pairwise. Totals per key never change.

/// A key with N counters; lists of them are sorted by key, keys once.
pub type CountRow<const N: usize> = (u64, [u64; N]);

/// Counts by key and time; see the module.
#[derive(Debug)]
pub struct BinnedCounts<const N: usize> {
    /// Slices per bin.
    factor: u32,
    budget: usize,
    rows: usize,
    bins: Vec<TimeBin<N>>,
}

#[derive(Debug)]
struct TimeBin<const N: usize> {
    /// First slice divided by the factor.
    number: u32,
    rows: Vec<CountRow<N>>,
}

impl<const N: usize> BinnedCounts<N> {
    /// No rows yet; at most `budget`, but for those of a single bin.
    #[must_use]
    pub fn new(budget: usize) -> Self {
        BinnedCounts {
            factor: 1,
            budget,
            rows: 0,
            bins: Vec::new(),
        }
    }

    /// Rows in all bins.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// Slices per bin: 1, 2, 4...
    #[must_use]
    pub fn factor(&self) -> u32 {
        self.factor
    }

    /// Adds sorted rows to the bin of `slice`.
    pub fn add_rows(&mut self, slice: u32, mut rows: Vec<CountRow<N>>) {
        if rows.is_empty() {
            return;
        }
        // They stay to the end of the run.
        rows.shrink_to_fit();
        let number = slice / self.factor;
        match self.bins.binary_search_by_key(&number, |bin| bin.number) {
            Ok(at) => {
                let bin = &mut self.bins[at];
                self.rows -= bin.rows.len();
                bin.rows = merge_rows(std::mem::take(&mut bin.rows), rows);
                self.rows += bin.rows.len();
            }
            Err(at) => {
                self.rows += rows.len();
                self.bins.insert(at, TimeBin { number, rows });
            }
        }
        while self.rows > self.budget && self.bins.len() > 1 {
            self.coarsen();
        }
    }

    /// Doubles the length of the bins.
    pub fn coarsen(&mut self) {
        self.factor = self.factor.saturating_mul(2);
        let mut merged: Vec<TimeBin<N>> = Vec::with_capacity(self.bins.len() / 2 + 1);
        for bin in self.bins.drain(..) {
            let number = bin.number / 2;
            match merged.last_mut() {
                Some(last) if last.number == number => {
                    last.rows = merge_rows(std::mem::take(&mut last.rows), bin.rows);
                }
                _ => merged.push(TimeBin { number, ..bin }),
            }
        }
        self.rows = merged.iter().map(|bin| bin.rows.len()).sum();
        self.bins = merged;
    }

    /// Gives other keys to what `new_key` knows; counts that come to have one key are added up.
    pub fn change_keys(&mut self, new_key: impl Fn(u64) -> Option<u64>) {
        for bin in &mut self.bins {
            let mut changed = false;
            for (key, _) in &mut bin.rows {
                if let Some(new) = new_key(*key) {
                    *key = new;
                    changed = true;
                }
            }
            if changed {
                self.rows -= bin.rows.len();
                sort_and_sum(&mut bin.rows);
                self.rows += bin.rows.len();
            }
        }
    }

    /// (first slice of the bin, its rows), in order of time.
    pub fn into_bins(self) -> impl Iterator<Item = (u32, Vec<CountRow<N>>)> {
        let factor = self.factor;
        self.bins
            .into_iter()
            .map(move |bin| (bin.number.saturating_mul(factor), bin.rows))
    }
}

/// Sorts rows and adds up those of the same key.
pub fn sort_and_sum<const N: usize>(rows: &mut Vec<CountRow<N>>) {
    rows.sort_unstable_by_key(|row| row.0);
    rows.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            add_counts(&mut kept.1, next.1);
        }
        same
    });
}

fn add_counts<const N: usize>(sum: &mut [u64; N], more: [u64; N]) {
    for (s, m) in sum.iter_mut().zip(more) {
        *s = s.saturating_add(m);
    }
}

/// In place: there may be millions.
fn merge_rows<const N: usize>(
    mut a: Vec<CountRow<N>>,
    mut b: Vec<CountRow<N>>,
) -> Vec<CountRow<N>> {
    let mut at = 0;
    b.retain(|row| {
        at += a[at..].iter().take_while(|other| other.0 < row.0).count();
        let same = a.get_mut(at).filter(|other| other.0 == row.0);
        let is_new = same.is_none();
        if let Some(same) = same {
            add_counts(&mut same.1, row.1);
        }
        is_new
    });
    insert_rows(&mut a, &b);
    a
}

/// Rows of other keys, from the last to the first.
fn insert_rows<const N: usize>(rows: &mut Vec<CountRow<N>>, mut new: &[CountRow<N>]) {
    let mut left = rows.len();
    rows.reserve_exact(new.len());
    rows.extend_from_slice(new);
    while let Some((last, others)) = new.split_last() {
        let to = left + others.len();
        if left > 0 && rows[left - 1].0 > last.0 {
            left -= 1;
            rows[to] = rows[left];
        } else {
            rows[to] = *last;
            new = others;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn totals(rows: impl Iterator<Item = CountRow<2>>) -> BTreeMap<u64, [u64; 2]> {
        let mut sums = BTreeMap::new();
        for (key, counts) in rows {
            add_counts(sums.entry(key).or_insert([0; 2]), counts);
        }
        sums
    }

    proptest! {
        #[test]
        fn budgets_keep_totals(
            added in prop::collection::vec((0u32..200, 0u64..20, 0u64..9, 0u64..9), 0..300),
            budget in 1usize..60,
        ) {
            let mut binned = BinnedCounts::<2>::new(budget);
            for &(slice, key, reads, writes) in &added {
                binned.add_rows(slice, vec![(key, [reads, writes])]);
            }
            let factor = binned.factor();
            let bins: Vec<_> = binned.into_bins().collect();
            let rows: usize = bins.iter().map(|bin| bin.1.len()).sum();
            prop_assert!(rows <= budget || bins.len() == 1);
            prop_assert!(bins.iter().all(|bin| bin.0 % factor == 0));
            let expected = totals(added.iter().map(|a| (a.1, [a.2, a.3])));
            prop_assert_eq!(totals(bins.into_iter().flat_map(|bin| bin.1)), expected);
        }
    }

    #[test]
    fn keys_that_become_one_are_added_up() {
        let mut binned = BinnedCounts::new(10);
        binned.add_rows(0, vec![(1, [5]), (2, [6]), (3, [7])]);
        binned.add_rows(1, vec![(3, [9])]);
        binned.change_keys(|key| (key < 3).then_some(8));
        assert_eq!(binned.row_count(), 3);
        let bins: Vec<_> = binned.into_bins().collect();
        let first = vec![(3, [7]), (8, [11])];
        assert_eq!(bins, [(0, first), (1, vec![(3, [9])])]);
    }

    #[test]
    fn collapse_adds_equal_keys() {
        let mut rows = vec![(3, [1]), (1, [2]), (3, [u64::MAX])];
        sort_and_sum(&mut rows);
        assert_eq!(rows, [(1, [2]), (3, [u64::MAX])]);
    }
}
