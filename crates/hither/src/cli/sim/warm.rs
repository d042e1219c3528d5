//! What only warms the caches: a share of each window or, where no share does, the windows that were
//! recorded before it; so much that twice as much would change the results by less than 1 %.
use anyhow::Result;

use super::recorded::{Recording, Window};
use super::replay::{Parts, Run};
use crate::simulate::outcome::Counts;

/// Shares of a window that are tried, each twice the one before; the last is what the largest
/// one is compared with.
const SHARES: [f64; 5] = [1.0 / 32.0, 1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0];
/// A change that is none.
const SETTLED: f64 = 0.01;
/// Less than this many misses per instruction, or lines of traffic, are as good as none: a line
/// costs some hundred cycles, and these are a hundredth of one.
const FEW: f64 = 1e-4;

/// Fewer windows than this are too few to spend every second one on warming up.
const LEAST_WINDOWS: usize = 4;

/// Relative changes of time, misses of the last level and traffic.
pub type Changes = [f64; 3];

/// What warms up, and what twice as much changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WarmUp {
    /// Of each window.
    pub share: f64,
    /// Windows before each one.
    pub before: usize,
    /// `None` where that was not tried.
    pub changes: Option<Changes>,
}

impl WarmUp {
    pub fn is_settled(self) -> bool {
        self.change().is_none_or(|change| change < SETTLED)
    }

    /// The largest.
    pub fn change(self) -> Option<f64> {
        let changes = self.changes?.into_iter();
        Some(changes.fold(0.0, f64::max))
    }
}

/// Found by playing windows, of so many accesses at most, on a machine with lines of so many bytes.
///
/// # Errors
/// As `play`.
pub fn find(
    recording: &Recording,
    limit: Option<u64>,
    line: f64,
    play: impl Fn(&[Window], Parts) -> Result<Run>,
) -> Result<WarmUp> {
    let ends = SHARES.iter().chain([&1.0]);
    let parts: Vec<(f64, bool)> = ends.map(|end| (*end, true)).collect();
    let played = |windows: &[Window]| Ok::<_, anyhow::Error>(play(windows, &parts)?.windows);
    if recording.recorded() < LEAST_WINDOWS {
        return Ok(choose(&played(&recording.windows(limit, 0))?, line));
    }
    let mut windows = recording.windows(limit, 2);
    let two = played(&windows)?;
    let mut drop_first = || {
        for window in &mut windows {
            window.before.remove(0);
        }
        played(&windows)
    };
    let (one, none) = (drop_first()?, drop_first()?);
    Ok(compare(&none, &one, &two, line))
}

/// Of the same windows, played with none, one and two before each: the smallest share for which one
/// more before changes nothing in what follows, else one before.
fn compare(none: &[Vec<Counts>], one: &[Vec<Counts>], two: &[Vec<Counts>], line: f64) -> WarmUp {
    let shares = SHARES.iter().enumerate().take(SHARES.len() - 1);
    let mut within = shares.map(|(at, share)| WarmUp {
        share: *share,
        before: 0,
        changes: Some(changes(
            figures(&behind(none, at), line),
            figures(&behind(one, at), line),
        )),
    });
    let whole = |windows: &[Vec<Counts>]| figures(&sum(windows.iter().flatten()), line);
    within.find(|warm| warm.is_settled()).unwrap_or(WarmUp {
        share: 0.0,
        before: 1,
        changes: Some(changes(whole(one), whole(two))),
    })
}

/// What is counted when a share of each window warms up.
fn behind(windows: &[Vec<Counts>], share: usize) -> Counts {
    sum(windows
        .iter()
        .flat_map(|parts| parts.iter().skip(share + 1)))
}

fn sum<'a>(all: impl Iterator<Item = &'a Counts>) -> Counts {
    all.fold(Counts::default(), |mut sum, counts| {
        sum += counts;
        sum
    })
}

/// Of windows that are too few for [`compare`]: the smallest share for which twice as much changes
/// nothing.
fn choose(windows: &[Vec<Counts>], line: f64) -> WarmUp {
    let all = 0..SHARES.len();
    let all: Vec<_> = all.map(|at| figures(&behind(windows, at), line)).collect();
    let tried = (0..SHARES.len() - 1).map(|at| WarmUp {
        share: SHARES[at],
        before: 0,
        changes: Some(changes(all[at], all[at + 1])),
    });
    let tried: Vec<WarmUp> = tried.collect();
    let found = tried.iter().find(|warm| warm.is_settled()).or(tried.last());
    found.copied().unwrap_or_default()
}

/// Time, misses of the last level and traffic in lines, for each instruction, and how small each
/// may be.
fn figures(counts: &Counts, line: f64) -> [(f64, f64); 3] {
    let instructions = counts.instructions.max(1) as f64;
    let misses = counts.levels.last().map_or(0, |l| l.misses.iter().sum());
    let bytes: u64 = counts.link_bytes.iter().sum();
    let lines: u64 = counts
        .nodes
        .iter()
        .map(|n| n.local_reads + n.remote_reads + n.local_writes + n.remote_writes)
        .sum();
    let traffic = lines as f64 + bytes as f64 / line.max(1.0);
    [
        (counts.cycles / instructions, 0.0),
        (misses as f64 / instructions, FEW),
        (traffic / instructions, FEW),
    ]
}

fn changes(once: [(f64, f64); 3], twice: [(f64, f64); 3]) -> Changes {
    std::array::from_fn(|at| {
        let ((a, few), (b, _)) = (once[at], twice[at]);
        let base = a.max(few);
        if base > 0.0 {
            (a - b).abs() / base
        } else {
            0.0
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::outcome::LevelCounts;

    /// A window whose parts of 1/32, 1/32, 1/16, 1/8, 1/4, 1/2 have so many misses each, and
    /// `scale` instructions for each 1/32.
    fn window(misses: [u64; 6], scale: u64) -> Vec<Counts> {
        let sizes = [1, 1, 2, 4, 8, 16];
        let part = |(size, misses): (u64, u64)| Counts {
            instructions: size * scale,
            cycles: (size * scale) as f64,
            levels: vec![LevelCounts {
                misses: [misses, 0, 0, 0],
                ..LevelCounts::default()
            }],
            ..Counts::default()
        };
        sizes.into_iter().zip(misses).map(part).collect()
    }

    #[test]
    fn the_smallest_share_that_settles_is_taken() {
        let check = |misses, share, settled| {
            let found = choose(&[window(misses, 1000)], 64.0);
            assert_eq!(
                (found.share, found.is_settled()),
                (share, settled),
                "{misses:?}"
            );
        };
        let even = [10, 10, 20, 40, 80, 160];
        check(even, 1.0 / 32.0, true);
        // Cold misses in the first sixteenth.
        check([500, 100, 20, 40, 80, 160], 1.0 / 16.0, true);
        check([500, 500, 700, 40, 80, 160], 1.0 / 8.0, true);
        // It never ends.
        check([900, 900, 900, 900, 900, 160], 1.0 / 4.0, false);
    }

    #[test]
    fn a_share_is_enough_if_a_window_before_changes_nothing() {
        let even = [10, 10, 20, 40, 80, 160];
        let check = |none, one, two, expected| {
            let [none, one, two] = [none, one, two].map(|misses| [window(misses, 1000)]);
            let found = compare(&none, &one, &two, 64.0);
            assert_eq!((found.share, found.before, found.is_settled()), expected);
        };
        check(even, even, even, (1.0 / 32.0, 0, true));
        check(
            [500, 50, 20, 40, 80, 160],
            even,
            even,
            (1.0 / 16.0, 0, true),
        );
        // Cold from end to end, which no share tells by itself.
        let cold = even.map(|misses| 4 * misses);
        check(cold, even, even, (0.0, 1, true));
        check(cold, even.map(|misses| 2 * misses), even, (0.0, 1, false));
    }

    #[test]
    fn a_program_without_misses_is_warm() {
        let found = choose(&[window([0, 0, 0, 0, 0, 1], 100_000)], 64.0);
        assert_eq!((found.share, found.is_settled()), (1.0 / 32.0, true));
    }
}
