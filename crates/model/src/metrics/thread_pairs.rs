//! Which pairs of threads can be a reason to place threads: those that run at the same time and do the work.
use super::placement_accuracy::rows_by_page_slice;
use hither_profile::{Profile, ThreadIx};

/// What part of the accesses of the thread that does less must be at a time when the other makes some, for them to
/// run together. Ours: the ends of two generations of threads overlap a little.
const TOGETHER: f64 = 0.1;
/// Page slices from which it shows when a thread works. Ours.
const LEAST_SLICES: usize = 5;
/// Pairs apart that are looked at, so that thousands of threads take no time; with more, none is.
const MOST_APART: usize = 1 << 16;
/// Of the mean of the threads at work, the instructions below which what two threads have between them does not
/// decide. Ours: all such threads together do less than a tenth of the work.
const LITTLE_WORK: f64 = 0.1;

/// The pairs of chosen threads, numbered and ordered among these, that hardly ever run at the same time, by what they
/// access when: with a\[t\]\[s\] the accesses of thread t in page slice s, and A\[t\] the sum over s,
///
/// ```text
///   sum over s of min(a[i][s], a[j][s]) < TOGETHER x min(A[i], A[j])
/// ```
#[must_use]
pub fn pairs_apart(profile: &Profile, chosen: &[bool]) -> Vec<(u32, u32)> {
    let numbered = (0..chosen.len()).filter(|t| chosen[*t]);
    let threads: Vec<usize> = numbered.collect();
    let by_slice = rows_by_page_slice(profile);
    if by_slice.len() < LEAST_SLICES || threads.len() < 3 {
        return Vec::new();
    }
    let mut accesses = vec![vec![0f64; by_slice.len()]; profile.threads.len()];
    for (slice, rows) in by_slice.values().enumerate() {
        for row in rows.rows() {
            if let Some(thread) = accesses.get_mut(row.thread.at()) {
                thread[slice] += row.reads as f64 + row.writes as f64;
            }
        }
    }
    let sum = |of: &[f64]| of.iter().sum::<f64>();
    let mut apart = Vec::new();
    for (i, &first) in (0..).zip(&threads) {
        for (j, &second) in (0..).zip(&threads).skip(i as usize + 1) {
            let (a, b) = (&accesses[first], &accesses[second]);
            let both: f64 = a.iter().zip(b).map(|(a, b)| a.min(*b)).sum();
            if both < TOGETHER * sum(a).min(sum(b)) {
                apart.push((i, j));
            }
        }
        if apart.len() > MOST_APART {
            return Vec::new();
        }
    }
    apart
}

/// Threads at work that do little of it, by their instructions.
#[derive(Clone, Debug)]
pub struct LightThreads {
    does_little: Vec<bool>,
    /// What they execute together, of all instructions of the threads at work.
    pub share: f64,
}

impl LightThreads {
    /// Of the threads that work. None does little where instructions were not counted.
    #[must_use]
    pub fn of(profile: &Profile, working: &[bool]) -> LightThreads {
        let threads = profile.threads.iter().zip(working);
        let at_work = || threads.clone().filter(|(_, works)| **works);
        let all: f64 = at_work().map(|(t, _)| t.instructions as f64).sum();
        let mean = all / at_work().count().max(1) as f64;
        let little = |instructions: u64| (instructions as f64) < mean * LITTLE_WORK;
        let does_little: Vec<bool> = threads
            .map(|(t, &works)| works && little(t.instructions))
            .collect();
        let of_little = profile
            .threads
            .iter()
            .zip(&does_little)
            .filter(|(_, little)| **little);
        let theirs: f64 = of_little.map(|(t, _)| t.instructions as f64).sum();
        LightThreads {
            does_little,
            share: theirs / all.max(1.0),
        }
    }

    /// Whether both do little: what they share delays nobody who does more.
    #[must_use]
    pub fn both(&self, i: ThreadIx, j: ThreadIx) -> bool {
        let little = |t: ThreadIx| self.does_little.get(t.at()).copied().unwrap_or(false);
        little(i) && little(j)
    }

    /// The pairs of which both do little, numbered and ordered among the chosen threads.
    #[must_use]
    pub fn pairs(&self, chosen: &[bool]) -> Vec<(u32, u32)> {
        let among = self
            .does_little
            .iter()
            .zip(chosen)
            .filter(|(_, chosen)| **chosen);
        let numbered = (0..).zip(among).filter(|(_, (little, _))| **little);
        let numbers: Vec<u32> = numbered.map(|(number, _)| number).collect();
        let pairs = numbers.iter().enumerate();
        let pairs = pairs.flat_map(|(at, &i)| numbers[at + 1..].iter().map(move |&j| (i, j)));
        pairs.collect()
    }
}
