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

/// Where the pattern is nearly uniform two runs of the oracle differ as well, since it
/// depends on time which two of many sharers were the last: the mean distance of ours to
/// three of them is no more than the largest between two of them, and a tenth, since
/// three runs do not show all there is.
#[test]
fn near_uniform_patterns() {
    for line in [
        "all_to_all 4 1000 64",
        "all_to_all 8 500 64",
        "is static 14 10",
        "is cyclic 14 10",
    ] {
        let fast = run(line).profile();
        let oracles = [(); 3].map(|()| run(line).with("--oracle").profile());
        let (fast, oracles) = (fast.matrix(), oracles.map(|p| p.matrix()));
        let apart = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| distance(&oracles[a], &oracles[b]));
        let most = apart.into_iter().fold(0.0, f64::max);
        let mean = oracles.iter().map(|o| distance(&fast, o)).sum::<f64>() / 3.0;
        assert!(
            mean <= most + 0.1,
            "{line}: {mean}, the oracle's runs are {apart:?} apart"
        );
        if line.starts_with("all_to_all") {
            assert_within(fast.total(), oracles[0].total(), 0.05, line);
        }
    }
}
