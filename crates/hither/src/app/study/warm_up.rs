//! What only warms the caches: a share of each window or, where no share does, windows that were
//! recorded before it; so much that twice as much would change the results by less than 1 %.
use anyhow::Result;

use super::replay::{side_by_side, ReplayResult, WindowParts};
use super::run_recording::{RunRecording, SimWindow, FEW_WINDOWS};
use hither_model::simulate::counts::SimulationCounts;
use hither_model::simulate::simulated_machine::SimulatedMachine;

/// Shares of a window that are tried, each twice the one before; the last is what the largest
/// one is compared with.
const SHARES: [f64; 5] = [1.0 / 32.0, 1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 2.0];
/// Windows before each one that are tried, each twice the number before.
const BEFORE: [usize; 4] = [1, 2, 4, 8];
/// A change that is none.
const SETTLED: f64 = 0.01;
/// Accesses played for warm-up, at most, as a multiple of the accesses that count.
const MOST: f64 = 2.5;

/// Fewer windows than this are too few to spend every second one on warming up.
const LEAST_WINDOWS: usize = 4;

/// What lines are to the machine.
#[derive(Clone, Copy)]
pub struct LineTraffic {
    /// Bytes.
    pub length: f64,
    /// Cycles that a read of the farthest memory takes with nothing else under way.
    pub latency: f64,
}

impl LineTraffic {
    pub fn of_machine(machine: &SimulatedMachine) -> LineTraffic {
        let arrays = machine.nodes.iter().map(|node| {
            let dram = &node.dram;
            dram.controller + dram.rcd + dram.cas + dram.burst
        });
        let links = &machine.links;
        let way = |route: &Vec<u32>| {
            let route = route.iter().filter_map(|at| links.links.get(*at as usize));
            2.0 * route.map(|link| link.latency).sum::<f64>()
        };
        let ways = links.routes.iter().flatten().map(way);
        let caches = machine.levels.last().map_or(0, |level| level.latency);
        let latency = f64::from(caches) + arrays.fold(0.0, f64::max) + ways.fold(0.0, f64::max);
        LineTraffic {
            length: f64::from(machine.line),
            latency,
        }
    }
}

/// Relative changes of time, misses of the last level and traffic.
pub type WarmUpChanges = [f64; 3];

/// What warms up, and what twice as much changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WarmUp {
    /// Of each window.
    pub share: f64,
    /// Windows before each one.
    pub before: usize,
    /// `None` where that was not tried.
    pub changes: Option<WarmUpChanges>,
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

/// Found by playing windows, of at most `limit` accesses, up to `jobs` simulations at a time.
///
/// # Errors
/// As `play`.
pub fn find_warm_up(
    recording: &RunRecording,
    limit: Option<u64>,
    jobs: Option<u32>,
    line: LineTraffic,
    play: impl Fn(&[SimWindow], WindowParts) -> Result<ReplayResult> + Sync,
) -> Result<WarmUp> {
    let ends = SHARES.iter().chain([&1.0]);
    let parts: Vec<(f64, bool)> = ends.map(|end| (*end, true)).collect();
    let played = |windows: &[SimWindow]| Ok::<_, anyhow::Error>(play(windows, &parts)?.windows);
    if recording.window_count() < LEAST_WINDOWS {
        return Ok(choose_warm_up(
            &played(&recording.windows(limit, Some(0)))?,
            line,
        ));
    }
    let mut found: Vec<WarmUp> = Vec::new();
    for before in BEFORE {
        if before > 1 && !is_affordable(recording, limit, before) {
            break;
        }
        // Of the same windows: the last as they are, the others with half of that before each.
        let all: &[usize] = if before > 1 {
            &[before, 2 * before]
        } else {
            &[0, 1, 2]
        };
        let played = side_by_side(all.len(), jobs, |at| {
            let windows = recording.windows(limit, Some(2 * before));
            let halves = (all.len() - 1 - at) as u32;
            played(&RunRecording::warmed_by(windows, all[at], halves))
        })?;
        let warm = match &played[..] {
            [none, one, two] => smallest_share(none, one, two, line),
            [once, twice] => more_windows_before(before, once, twice, line),
            _ => WarmUp::default(),
        };
        found.push(warm);
        if warm.is_settled() {
            break;
        }
    }
    let change = |warm: &WarmUp| warm.change().unwrap_or(0.0);
    let best = found
        .into_iter()
        .min_by(|a, b| change(a).total_cmp(&change(b)));
    Ok(best.unwrap_or_default())
}

/// Whether `before` windows can be played before each without playing far more than is wanted, or
/// leaving too few that count, and twice as many were recorded to compare with.
fn is_affordable(recording: &RunRecording, limit: Option<u64>, before: usize) -> bool {
    let windows = |before| recording.windows(limit, Some(before));
    let (wanted, fewer) = (windows(before), windows(before / 2));
    let accesses: f64 = wanted
        .iter()
        .map(|w| w.accesses_with_warm_up() as f64)
        .sum();
    let most = limit.map_or(f64::INFINITY, |limit| limit as f64 * MOST);
    accesses <= most
        && wanted.len() >= FEW_WINDOWS.min(fewer.len())
        && windows(2 * before).len() > 1
}

/// Of the same windows, played with none, one and two before each: the smallest share for which one
/// more before changes nothing in what follows, else one before.
fn smallest_share(
    none: &[Vec<SimulationCounts>],
    one: &[Vec<SimulationCounts>],
    two: &[Vec<SimulationCounts>],
    line: LineTraffic,
) -> WarmUp {
    let shares = SHARES.iter().enumerate().take(SHARES.len() - 1);
    let mut within = shares.map(|(at, share)| WarmUp {
        share: *share,
        before: 0,
        changes: Some(changes(
            figures(&counts_after_warm_up(none, at), line),
            figures(&counts_after_warm_up(one, at), line),
        )),
    });
    let found = within.find(|warm| warm.is_settled());
    found.unwrap_or_else(|| more_windows_before(1, one, two, line))
}

/// The same windows, played with `before` windows before each and with twice as many.
fn more_windows_before(
    before: usize,
    once: &[Vec<SimulationCounts>],
    twice: &[Vec<SimulationCounts>],
    line: LineTraffic,
) -> WarmUp {
    let whole = |windows: &[Vec<SimulationCounts>]| figures(&sum(windows.iter().flatten()), line);
    WarmUp {
        share: 0.0,
        before,
        changes: Some(changes(whole(once), whole(twice))),
    }
}

/// What is counted when a share of each window warms up.
fn counts_after_warm_up(windows: &[Vec<SimulationCounts>], share: usize) -> SimulationCounts {
    sum(windows
        .iter()
        .flat_map(|parts| parts.iter().skip(share + 1)))
}

fn sum<'a>(all: impl Iterator<Item = &'a SimulationCounts>) -> SimulationCounts {
    all.fold(SimulationCounts::default(), |mut sum, counts| {
        sum += counts;
        sum
    })
}

/// Of windows that are too few for [`smallest_share`]: the smallest share for which twice as much changes
/// nothing.
fn choose_warm_up(windows: &[Vec<SimulationCounts>], line: LineTraffic) -> WarmUp {
    let all = 0..SHARES.len();
    let all: Vec<_> = all
        .map(|at| figures(&counts_after_warm_up(windows, at), line))
        .collect();
    let tried = (0..SHARES.len() - 1).map(|at| WarmUp {
        share: SHARES[at],
        before: 0,
        changes: Some(changes(all[at], all[at + 1])),
    });
    let tried: Vec<WarmUp> = tried.collect();
    let found = tried.iter().find(|warm| warm.is_settled()).or(tried.last());
    found.copied().unwrap_or_default()
}

/// Time, misses of the last level and traffic in lines, for each instruction, and what is as good
/// as none: a line in the time that one takes at most. A hundredth of that changes time by less
/// than 1 %, whichever thread waits for it.
fn figures(counts: &SimulationCounts, line: LineTraffic) -> [(f64, f64); 3] {
    let instructions = counts.instructions.max(1) as f64;
    let misses = counts.levels.last().map_or(0, |l| l.misses.iter().sum());
    let bytes: u64 = counts.link_bytes.iter().sum();
    let lines: u64 = counts
        .nodes
        .iter()
        .map(|n| n.local_reads + n.remote_reads + n.local_writes + n.remote_writes)
        .sum();
    let traffic = lines as f64 + bytes as f64 / line.length.max(1.0);
    let cycles = counts.cycles / instructions;
    let few = cycles / line.latency.max(1.0);
    [
        (cycles, 0.0),
        (misses as f64 / instructions, few),
        (traffic / instructions, few),
    ]
}

fn changes(once: [(f64, f64); 3], twice: [(f64, f64); 3]) -> WarmUpChanges {
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
    use crate::app::study::sim_machine;
    use hither_model::simulate::counts::LevelCounts;

    const LINE: LineTraffic = LineTraffic {
        length: 64.0,
        latency: 100.0,
    };

    /// A window whose parts of 1/32, 1/32, 1/16, 1/8, 1/4, 1/2 have this many misses each, and
    /// `scale` instructions for each 1/32.
    fn window(misses: [u64; 6], scale: u64) -> Vec<SimulationCounts> {
        let sizes = [1, 1, 2, 4, 8, 16];
        let part = |(size, misses): (u64, u64)| SimulationCounts {
            instructions: size * scale,
            cycles: (size * scale) as f64,
            levels: vec![LevelCounts {
                misses: [misses, 0, 0, 0],
                ..LevelCounts::default()
            }],
            ..SimulationCounts::default()
        };
        sizes.into_iter().zip(misses).map(part).collect()
    }

    #[test]
    fn the_smallest_share_that_settles_is_taken() {
        let check = |misses, share, settled| {
            let found = choose_warm_up(&[window(misses, 1000)], LINE);
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
            let found = smallest_share(&none, &one, &two, LINE);
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
    fn twice_the_windows_before_are_compared() {
        let few = [10, 10, 20, 40, 80, 160];
        let check = |once: [u64; 6], twice: [u64; 6], expected| {
            let [once, twice] = [once, twice].map(|misses| [window(misses, 1000)]);
            let found = more_windows_before(4, &once, &twice, LINE);
            assert_eq!((found.share, found.before), (0.0, 4));
            assert_eq!(found.change(), Some(expected), "{once:?}");
        };
        check(few, few, 0.0);
        check(few, few.map(|misses| misses / 2), 0.5);
        // 320 of 32,000 instructions, a cycle each: one in the time that a line takes. A change
        // of fewer is judged by what it can cost.
        check(few.map(|misses| misses / 10), [0; 6], 0.1);
        check([0; 6], few.map(|misses| misses / 10), 0.1);
    }

    #[test]
    fn a_program_without_misses_is_warm() {
        let found = choose_warm_up(&[window([0, 0, 0, 0, 0, 1], 100_000)], LINE);
        assert_eq!((found.share, found.is_settled()), (1.0 / 32.0, true));
    }

    /// 136 ns to the nearest memory and two ways of 31 ns to another, at 2 GHz.
    #[test]
    fn a_line_takes_as_long_as_from_the_farthest_memory() {
        let names = vec![Some("xeon-x7550x4".to_owned())];
        let line = LineTraffic::of_machine(&sim_machine::models(names, None).unwrap()[0].machine);
        let nanoseconds = line.latency / 2.0;
        assert!((nanoseconds - 198.0).abs() < 1.0, "{nanoseconds}");
    }
}
