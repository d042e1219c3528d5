//! The rows of the `slices` table as they grow, and which slices are traced.
use hither_model::rng::Rng;
use hither_profile::Slice;

/// Which slices `--sample` traces: of each group of 1/p slices exactly one, chosen at
/// random, so that totals are unbiased and no stretch of the run goes unseen.
pub struct SamplingSchedule {
    group: u32,
    chosen: u32,
    rng: Rng,
}

impl SamplingSchedule {
    pub fn new(share: Option<f64>, seed: u64) -> SamplingSchedule {
        let group = share.map_or(1.0, |p| (1.0 / p.clamp(0.0001, 1.0)).round()) as u32;
        let mut schedule = SamplingSchedule {
            group,
            chosen: 0,
            rng: Rng::new(seed),
        };
        schedule.choose_next();
        schedule
    }

    fn choose_next(&mut self) {
        self.chosen = self.rng.below(self.group as usize) as u32;
    }

    /// Whether a slice is traced; ask once per slice, in order.
    pub fn is_traced(&mut self, slice: u32) -> bool {
        if slice > 0 && slice.is_multiple_of(self.group) {
            self.choose_next();
        }
        slice % self.group == self.chosen
    }
}

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

    /// Relative standard error of a total that was scaled up from the traced slices:
    /// s / (mean √n), with the finite-population factor √(1 - n/N) (Cochran 1977, 2.6).
    pub fn sampling_error(&self) -> f64 {
        let traced: Vec<f64> = self
            .rows
            .iter()
            .filter(|r| r.traced)
            .map(|r| r.accesses as f64)
            .collect();
        let n = traced.len() as f64;
        let mean = traced.iter().sum::<f64>() / n;
        if traced.len() < 2 || mean == 0.0 {
            return 1.0;
        }
        let variance = traced.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let unseen = 1.0 - n / self.rows.len() as f64;
        (variance / n * unseen).sqrt() / mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slice_of_each_group_is_traced() {
        let mut schedule = SamplingSchedule::new(Some(0.1), 42);
        let traced: Vec<bool> = (0..1000).map(|s| schedule.is_traced(s)).collect();
        assert!(traced
            .chunks(10)
            .all(|group| group.iter().filter(|&&t| t).count() == 1));
        let mut all = SamplingSchedule::new(None, 42);
        assert!((0..100).all(|s| all.is_traced(s)));
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
