//! The rows of the `slices` table as they grow.
use super::sampling::{scaled, stage_start};
use hither_profile::Slice;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct SliceRows {
    pub rows: Vec<Slice>,
    /// First slice that got no page counts yet.
    uncounted: usize,
}

impl SliceRows {
    /// Spreads accesses evenly over the traced slices up to `last` that have none yet:
    /// a page pass may cover several, and which of them is not known.
    pub fn spread_accesses(&mut self, last: usize, accesses: u64) {
        let end = (last + 1).min(self.rows.len());
        let start = self.uncounted.min(end.saturating_sub(1));
        let rows = &mut self.rows[start..end];
        let traced = rows.iter().filter(|row| row.traced).count() as u64;
        let share = accesses.checked_div(traced).unwrap_or(0);
        let mut rest = accesses - share * traced;
        for row in rows.iter_mut().filter(|row| row.traced).rev() {
            row.accesses = row.accesses.saturating_add(share).saturating_add(rest);
            rest = 0;
        }
        if let Some(row) = rows.last_mut().filter(|_| rest > 0) {
            row.accesses = row.accesses.saturating_add(rest);
        }
        self.uncounted = end;
    }

    /// A slice may begin after the last thread's end. Where what threads had not counted
    /// themselves goes to it, they are its threads: those of the last slice that had any.
    pub fn give_threads(&mut self, slice: usize) {
        let before = self.rows.iter().take(slice).rev();
        let threads = before.map(|row| row.threads).find(|&threads| threads > 0);
        if let Some(row) = self.rows.get_mut(slice).filter(|row| row.threads == 0) {
            row.threads = threads.unwrap_or(0);
        }
    }

    /// Lets traced slices stand for those that sampling skipped, as pairs and pages do; each
    /// factor holds from its slice on.
    pub fn scale_up(&mut self, factors: &[(u32, f64)]) {
        for (slice, row) in (0..).zip(&mut self.rows) {
            let at = factors.partition_point(|&(first, _)| first <= slice);
            let factor = factors[..at].last().map_or(1.0, |f| f.1);
            row.accesses = scaled(row.accesses, factor);
            row.amount *= factor;
        }
    }

    /// Relative standard error of a total that was scaled up from the traced slices, stage by
    /// stage: the root of the sum of N² s²/n (1 - n/N), over the total (Cochran 1977, 5.3).
    /// 1 where a stage has too few traced slices to tell.
    pub fn sampling_error(&self, share: f64) -> f64 {
        let mut stages: BTreeMap<u32, (f64, Vec<f64>)> = BTreeMap::new();
        for (slice, row) in (0..).zip(&self.rows) {
            let stage = stages.entry(stage_start(slice, share)).or_default();
            stage.0 += 1.0;
            stage.1.extend(row.traced.then_some(row.accesses as f64));
        }
        let (mut total, mut variance) = (0.0, 0.0);
        for (all, traced) in stages.into_values() {
            let n = traced.len() as f64;
            if traced.is_empty() || (n < 2.0 && n < all) {
                return 1.0;
            }
            let mean = traced.iter().sum::<f64>() / n;
            let squares: f64 = traced.iter().map(|x| (x - mean).powi(2)).sum();
            total += all * mean;
            variance += all * all * squares / (n - 1.0).max(1.0) / n * (1.0 - n / all);
        }
        if total == 0.0 {
            return 1.0;
        }
        variance.sqrt() / total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_after_the_last_thread_has_those_before() {
        let row = |threads| Slice {
            threads,
            ..Slice::default()
        };
        let check = |threads: &[u32], want: &[u32]| {
            let mut slices = SliceRows {
                rows: threads.iter().map(|&t| row(t)).collect(),
                uncounted: 0,
            };
            slices.give_threads(threads.len() - 1);
            let got: Vec<u32> = slices.rows.iter().map(|r| r.threads).collect();
            assert_eq!(got, want);
        };
        check(&[0, 4, 0, 0], &[0, 4, 0, 4]);
        check(&[4, 2], &[4, 2]);
        check(&[0], &[0]);
    }

    #[test]
    fn spreading_keeps_the_total() {
        let row = |traced| Slice {
            traced,
            ..Slice::default()
        };
        let mut slices = SliceRows {
            rows: [true, true, false, true, true].map(row).to_vec(),
            uncounted: 0,
        };
        slices.spread_accesses(3, 100);
        slices.spread_accesses(4, 7);
        slices.spread_accesses(4, 1);
        let accesses: Vec<u64> = slices.rows.iter().map(|r| r.accesses).collect();
        assert_eq!(accesses, [33, 33, 0, 34, 8]);
    }
}
