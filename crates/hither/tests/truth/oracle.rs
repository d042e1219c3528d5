//! The line cache against the definition: each workload traced once as usual and once with
//! `--oracle`, a call per access. The bounds are those that the project set itself.
//!
//! The oracle is slower, so a slice of wall time holds less of the program. Where the whole
//! run is one slice, nothing of this is left, and what is counted depends little on time.
use hither_profile::{CommMatrix, Profile};

use crate::run::run;
use crate::threads::CREATION;
use crate::view::*;

const ONE_SLICE: &str = "--slice 60s";

struct Both {
    fast: Profile,
    oracle: Profile,
}

fn both(line: &str) -> Both {
    let fast = run(line).with(ONE_SLICE).profile();
    let oracle = run(line).with(ONE_SLICE).with("--oracle").profile();
    Both { fast, oracle }
}

fn accesses(p: &Profile) -> Counts {
    p.threads
        .iter()
        .fold((0, 0), |sum, t| (sum.0 + t.reads, sum.1 + t.writes))
}

fn upper(m: &CommMatrix) -> Vec<f64> {
    let n = m.threads();
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    pairs.map(|(i, j)| m.get(i, j) as f64).collect()
}

/// Pearson's, of the cells above the diagonal.
pub fn correlation(a: &CommMatrix, b: &CommMatrix) -> f64 {
    let (a, b) = (upper(a), upper(b));
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (ma, mb) = (mean(&a), mean(&b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| {
        a.iter()
            .zip(&b)
            .map(|(x, y)| f(x - ma, y - mb))
            .sum::<f64>()
    };
    sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt()
}

/// Reads and writes within 0.1 %, but for `own` accesses that depend on who waits for whom
/// in libgomp or is the first to call a library's function.
fn check_accesses(line: &str, b: &Both, own: u64) {
    let (fast, oracle) = (accesses(&b.fast), accesses(&b.oracle));
    for (what, f, o) in [("reads", fast.0, oracle.0), ("writes", fast.1, oracle.1)] {
        let off = f.abs_diff(o);
        assert!(
            off <= o / 1000 + own,
            "{line}: {f} {what}, the oracle has {o}"
        );
    }
}

/// The largest difference of a pair's share, and relative to the oracle's.
fn check_shares(line: &str, fast: &CommMatrix, oracle: &CommMatrix) {
    for (f, o) in upper(fast).into_iter().zip(upper(oracle)) {
        let (f, o) = (f / fast.total() as f64, o / oracle.total() as f64);
        let off = (f - o).abs();
        assert!(
            off <= 0.01 || off <= 0.1 * o,
            "{line}: a share of {f}, the oracle has {o}\n{}{}",
            show(fast),
            show(oracle)
        );
    }
}

#[test]
fn structured_patterns() {
    for line in [
        "ring 8 400 512",
        "pairs 8 4 200 512",
        "pipeline 8 400 512",
        "shm threads 4 400",
        "shm fork 4 400",
        "shm posix 4 400",
        "stencil2d 128 100",
        "ondes 32 60",
        "ondes -p 32 60",
        "common 40",
        "cpp_structs 4096 40",
    ] {
        let b = both(line);
        check_accesses(line, &b, 1000);
        let (fast, oracle) = (b.fast.matrix(), b.oracle.matrix());
        assert_within(fast.total(), oracle.total(), 0.05, line);
        let correlation = correlation(&fast, &oracle);
        assert!(
            correlation >= 0.99,
            "{line}: correlation {correlation}\n{}{}",
            show(&fast),
            show(&oracle)
        );
        check_shares(line, &fast, &oracle);
        let (f, o) = (fast.heterogeneity(), oracle.heterogeneity());
        assert!(
            (f - o).abs() <= 0.05 * o,
            "{line}: C_H {f}, the oracle has {o}"
        );
    }
}

#[test]
fn nothing_shared() {
    for line in [
        "independent 4 20 64",
        "counted 4 100000",
        "many_threads at-once 20",
        "false_sharing 8 5000 padded",
    ] {
        let b = both(line);
        check_accesses(line, &b, 1000);
        // In one slice all that libc ever shares comes together.
        check_matrix(&b.fast.matrix(), |_, _| (0, 3 * CREATION));
        check_matrix(&b.oracle.matrix(), |_, _| (0, 3 * CREATION));
    }
}

/// Half the sum of the differences of the shares: 0 alike, 1 nothing in common.
fn distance(a: &CommMatrix, b: &CommMatrix) -> f64 {
    let shares = |m: &CommMatrix| -> Vec<f64> {
        upper(m).into_iter().map(|c| c / m.total() as f64).collect()
    };
    shares(a)
        .iter()
        .zip(shares(b))
        .map(|(a, b)| (a - b).abs())
        .sum::<f64>()
        / 2.0
}

/// Runs of each kind: 6 pairs within one, 16 between them.
const RUNS: usize = 4;
/// By simulation of 4 and 4 runs with the same law and six cells, one comparison in 3000
/// is beyond it.
const CHANCE: f64 = 1.5;

/// Part of all communication that may lie elsewhere whatever the spreads are: single runs
/// that the machine disturbed are rarer than a law of six cells says, and larger. On a quiet
/// machine `between` was 0.9 to 1.3 times what is expected, once in thirty 1.51 times 0.013.
const SMALL: f64 = 0.05;

/// Root mean square of the distances between the matrices of each pair.
fn spread<'m>(pairs: impl Iterator<Item = (&'m CommMatrix, &'m CommMatrix)>) -> f64 {
    let squares: Vec<_> = pairs.map(|(a, b)| distance(a, b).powi(2)).collect();
    (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
}

fn spread_within(m: &[CommMatrix]) -> f64 {
    spread((0..m.len()).flat_map(|i| (i + 1..m.len()).map(move |j| (&m[i], &m[j]))))
}

/// Where the pattern is nearly uniform two runs of the oracle differ as well, since it
/// depends on time which two of many sharers were the last. If ours scatter around the
/// same matrix, the square distance between a run of ours and one of the oracle is the
/// mean of those between two of ours and between two of the oracle's.
///
/// With one law for both that is no further from the oracle than its runs are from each
/// other: measured (five runs of each, mean distances) 0.013 between, 0.010 among the
/// oracle's, 0.011 among ours for `all_to_all 4`; 0.075, 0.065, 0.081 for `all_to_all 8`;
/// 0.11, 0.10, 0.10 for `is static`; 0.088, 0.089, 0.095 for `is cyclic`. `is dynamic` is two
/// laws: 0.25, 0.08, 0.34. Slowed down by the oracle all threads take buckets in turn; at our
/// speed one takes many before another has a processor, and how many differs from run to
/// run. With `false_sharing packed` not even the mean is the same: at our speed a thread is
/// done with its counter before most of the others begin.
#[test]
fn near_uniform_patterns() {
    for line in [
        "all_to_all 4 1000 64",
        "all_to_all 8 500 64",
        "is static 14 10",
        "is cyclic 14 10",
        "is dynamic 14 10",
    ] {
        let traced = |options| run(line).with(ONE_SLICE).with(options).profile().matrix();
        let (mut ours, mut oracles) = (Vec::new(), Vec::new());
        // In turn, so that both see the same load of the machine.
        for _ in 0..RUNS {
            ours.push(traced("--line 64"));
            oracles.push(traced("--oracle"));
        }
        let between = spread(
            ours.iter()
                .flat_map(|m| oracles.iter().map(move |o| (m, o))),
        );
        let (among_ours, among_oracles) = (spread_within(&ours), spread_within(&oracles));
        let expected = ((among_ours.powi(2) + among_oracles.powi(2)) / 2.0).sqrt();
        assert!(
            between <= CHANCE * expected + SMALL,
            "{line}: {between} between, {among_ours} among ours, {among_oracles} among the oracle's"
        );
        // How often a bucket changes its thread, and so is shared, depends on speed too.
        if !line.starts_with("is dynamic") {
            let sum = |m: &[CommMatrix]| m.iter().map(CommMatrix::total).sum();
            assert_within(sum(&ours), sum(&oracles), 0.05, line);
        }
    }
}
