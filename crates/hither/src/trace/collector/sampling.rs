//! `--sample`: which slices are traced, and what their counts stand for.
//!
//! A share of few slices says nothing, so a run begins with all of them and goes on with one of
//! two, of four... until the share asked for is reached. Such a stage is a stratum: what was
//! counted in it is multiplied by the accesses that its threads executed in it over those of
//! them that were traced (a separate ratio estimate, Cochran 1977, 6.10).
use hither_model::rng::Rng;
use hither_sys::wire::ObjectCount;
use std::collections::BTreeMap;

/// Slices at the start of a run that are all traced.
const FULL_SLICES: u32 = 50;

/// One slice of so many is traced in the end.
fn largest_group(share: f64) -> u32 {
    (1.0 / share.clamp(0.0001, 1.0)).round() as u32
}

/// 1, 2, 4... : one slice of so many is traced, but for the last stage, which ends at the share.
fn doubled_group(slice: u32, share: f64) -> u32 {
    let most = largest_group(share).next_power_of_two();
    (slice / FULL_SLICES + 1).next_power_of_two().min(most)
}

/// The first slice of the stage that a slice is in.
pub fn stage_start(slice: u32, share: f64) -> u32 {
    match doubled_group(slice, share) {
        1 => 0,
        group => FULL_SLICES * (group / 2),
    }
}

/// Which slices are traced: of each group of a stage exactly one, chosen at random, so that
/// totals are unbiased and no stretch of the run goes unseen.
pub struct SamplingSchedule {
    share: f64,
    chosen: u32,
    rng: Rng,
}

impl SamplingSchedule {
    pub fn new(share: Option<f64>, seed: u64) -> SamplingSchedule {
        SamplingSchedule {
            share: share.unwrap_or(1.0),
            chosen: 0,
            rng: Rng::new(seed),
        }
    }

    /// Whether a slice is traced; ask once per slice, in order.
    pub fn is_traced(&mut self, slice: u32) -> bool {
        let group = doubled_group(slice, self.share).min(largest_group(self.share));
        let place = (slice - stage_start(slice, self.share)) % group;
        if place == 0 {
            self.chosen = self.rng.below(group as usize) as u32;
        }
        place == self.chosen
    }

    pub fn begins_stage(&self, slice: u32) -> bool {
        slice > 0 && stage_start(slice, self.share) == slice
    }
}

/// Accesses by the key of a thread, process and id of the structure.
pub type ObjectCounts = BTreeMap<(u32, u32, u32), ObjectCount>;

/// Everything counted from the start of the run to the start of a stage.
#[derive(Default)]
pub struct StageStart {
    pub first: u32,
    /// Traced, untraced, by their instructions (a rep counts once); by the key of the thread.
    pub executed: Vec<[u64; 2]>,
    /// Reads, writes; by the key of the thread.
    pub accesses: Vec<[u64; 2]>,
    pub objects: ObjectCounts,
}

fn grown(later: &[[u64; 2]], earlier: &[[u64; 2]], slot: usize) -> [u64; 2] {
    let at = |counts: &[[u64; 2]]| counts.get(slot).copied().unwrap_or_default();
    let (to, from) = (at(later), at(earlier));
    [0, 1].map(|i| to[i].saturating_sub(from[i]))
}

/// What sampling left out: a count is multiplied by the factor of its thread in its stage.
pub struct SamplingScale {
    /// The factors by the key of the thread, and where the stage began.
    stages: Vec<(Vec<f64>, StageStart)>,
    end: StageStart,
    /// Share of the accesses of threads in stages in which none of theirs were traced.
    pub unseen: f64,
}

impl SamplingScale {
    /// Of a run that has ended, from where its stages began but for the first.
    pub fn new(mut starts: Vec<StageStart>, end: StageStart, sampled: bool) -> SamplingScale {
        starts.insert(0, StageStart::default());
        let mut factors: Vec<Vec<f64>> = Vec::new();
        let (mut all, mut unseen) = (0.0, 0.0);
        for at in 0..starts.len() {
            let later = starts.get(at + 1).unwrap_or(&end);
            let factor = |slot| {
                let [traced, untraced] = grown(&later.executed, &starts[at].executed, slot);
                all += (traced as f64) + (untraced as f64);
                if traced == 0 {
                    unseen += untraced as f64;
                    return 1.0;
                }
                1.0 + untraced as f64 / traced as f64
            };
            let slots = 0..if sampled { end.executed.len() } else { 0 };
            factors.push(slots.map(factor).collect());
        }
        SamplingScale {
            stages: factors.into_iter().zip(starts).collect(),
            end,
            unseen: if all > 0.0 { unseen / all } else { 0.0 },
        }
    }

    pub fn has_stages(&self) -> bool {
        self.stages.len() > 1
    }

    /// Of a thread, by its key, in the stage of a slice.
    fn factor(&self, key: u32, slice: u32) -> f64 {
        let at = self
            .stages
            .partition_point(|(_, start)| start.first <= slice);
        let (factors, _) = &self.stages[at.saturating_sub(1)];
        factors.get(key as usize).copied().unwrap_or(1.0)
    }

    /// The first slice of each stage, and the factor of all threads together in it.
    pub fn stage_factors(&self) -> Vec<(u32, f64)> {
        let factor = |factors: &[f64], start: &StageStart, end: &StageStart| {
            let (mut all, mut counted) = (0.0, 0.0);
            for slot in 0..end.accesses.len() {
                let [reads, writes] = grown(&end.accesses, &start.accesses, slot);
                let own = reads as f64 + writes as f64;
                counted += own;
                all += own * factors.get(slot).copied().unwrap_or(1.0);
            }
            if counted > 0.0 {
                all / counted
            } else {
                1.0
            }
        };
        let spans = self.spans();
        let stages = spans.map(|(factors, start, end)| (start.first, factor(factors, start, end)));
        stages.collect()
    }

    pub fn scale_count(&self, key: u32, slice: u32, count: u64) -> u64 {
        scaled(count, self.factor(key, slice))
    }

    /// Pairs grow by the geometric mean of both threads' factors.
    pub fn scale_pair(&self, a: u32, b: u32, slice: u32, count: u64) -> u64 {
        scaled(
            count,
            (self.factor(a, slice) * self.factor(b, slice)).sqrt(),
        )
    }

    /// Reads and writes of a thread, by its key, in the whole run.
    pub fn thread_accesses(&self, key: u32) -> [u64; 2] {
        let mut sum = [0u64; 2];
        for (factors, earlier, later) in self.spans() {
            let factor = factors.get(key as usize).copied().unwrap_or(1.0);
            let counts = grown(&later.accesses, &earlier.accesses, key as usize);
            for (sum, count) in sum.iter_mut().zip(counts) {
                *sum = sum.saturating_add(scaled(count, factor));
            }
        }
        sum
    }

    /// What a thread did in the whole run over what was counted, where the stage is not known.
    pub fn mean_factor(&self, key: u32) -> f64 {
        let counted = self
            .end
            .accesses
            .get(key as usize)
            .copied()
            .unwrap_or_default();
        ratio(self.thread_accesses(key), counted)
    }

    /// The same for all threads together.
    pub fn overall_factor(&self) -> f64 {
        let slots = 0..self.end.accesses.len() as u32;
        let add = |a: [u64; 2], b: [u64; 2]| [0, 1].map(|i| a[i].saturating_add(b[i]));
        let scaled = slots
            .map(|slot| self.thread_accesses(slot))
            .fold([0; 2], add);
        ratio(scaled, self.end.accesses.iter().copied().fold([0; 2], add))
    }

    /// Accesses in the whole run.
    pub fn object_counts(&self) -> ObjectCounts {
        let mut sums = ObjectCounts::new();
        for (factors, earlier, later) in self.spans() {
            for (key, to) in &later.objects {
                let from = earlier.objects.get(key).copied().unwrap_or_default();
                let factor = factors.get(key.0 as usize).copied().unwrap_or(1.0);
                let grown = |to: u64, from: u64| scaled(to.saturating_sub(from), factor);
                *sums.entry(*key).or_default() += ObjectCount {
                    reads: grown(to.reads, from.reads),
                    writes: grown(to.writes, from.writes),
                    fetches: grown(to.fetches, from.fetches),
                };
            }
        }
        sums
    }

    /// Factors, start and end of each stage.
    fn spans(&self) -> impl Iterator<Item = (&[f64], &StageStart, &StageStart)> {
        let ends = self.stages.iter().skip(1).map(|(_, start)| start);
        let ends = ends.chain(std::iter::once(&self.end));
        let stages = self.stages.iter().zip(ends);
        stages.map(|((factors, start), end)| (factors.as_slice(), start, end))
    }
}

fn ratio(all: [u64; 2], counted: [u64; 2]) -> f64 {
    let sum = |counts: [u64; 2]| counts[0].saturating_add(counts[1]);
    match sum(counted) {
        0 => 1.0,
        counted => sum(all) as f64 / counted as f64,
    }
}

pub fn scaled(count: u64, factor: f64) -> u64 {
    if factor == 1.0 {
        count
    } else {
        (count as f64 * factor).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_halve_until_they_are_what_was_asked_for() {
        let mut schedule = SamplingSchedule::new(Some(0.05), 42);
        let traced: Vec<bool> = (0..4000).map(|s| schedule.is_traced(s)).collect();
        let stages = [
            (0, 50, 1),
            (50, 100, 2),
            (100, 200, 4),
            (200, 400, 8),
            (400, 800, 16),
            (800, 4000, 20),
        ];
        for (first, end, group) in stages {
            let mut groups = traced[first..end].chunks_exact(group);
            assert!(groups.all(|g| g.iter().filter(|&&t| t).count() == 1));
            assert!(schedule.begins_stage(first as u32) == (first > 0));
            assert!(!schedule.begins_stage(first as u32 + 1));
            assert_eq!(stage_start(end as u32 - 1, 0.05), first as u32);
        }
        let mut all = SamplingSchedule::new(None, 42);
        assert!((0..1000).all(|s| all.is_traced(s) && !all.begins_stage(s)));
    }
}
