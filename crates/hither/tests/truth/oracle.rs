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

/// An access counts with all that used the line before, however many and whoever was last. Once
/// all have, each access counts with each other, so that the cells follow from arithmetic.
#[test]
fn many_users_of_a_line() {
    for n in [3, 7, 64] {
        let (r, w) = (200, 64);
        for oracle in ["--line 64", "--oracle"] {
            let cells = |line: &str, events: u64, first_round: u64| {
                let p = run(line).with(ONE_SLICE).with(oracle).profile();
                check_matrix(&p.matrix(), |_, _| {
                    (events - first_round, events + CREATION * (2 + n / 8))
                });
            };
            let all = 2 * n * r * w;
            cells(&format!("all_to_all {n} {r} {w}"), all, 2 * n * w);
            cells(&format!("rotation {n} {r} {w}"), (2 * r - 1) * w, 0);
        }
    }
}

/// A thread that has looked anew for the users of a line learns of those that join after that, too.
#[test]
fn users_that_come_one_after_the_other() {
    let (n, r, w) = (24, 5, 512);
    for oracle in ["--line 64", "--oracle"] {
        let line = format!("late_readers {n} {r} {w}");
        let p = run(&line).with(ONE_SLICE).with(oracle).profile();
        check_matrix(&p.matrix(), |i, j| {
            let writes = if i == 0 { n - 1 - j as u64 } else { 0 };
            let events = (n - 1 + writes) * r * w;
            (events, events + CREATION * (2 + n / 8))
        });
    }
}

/// Of more users than are remembered, an access counts with those that came last.
#[test]
fn more_users_of_a_line_than_are_remembered() {
    let (n, remembered, w) = (600usize, 516, 8);
    let p = run(&format!("late_readers {n} 1 {w}"))
        .with(ONE_SLICE)
        .profile();
    let said = p.meta.limits.iter().any(|l| l.contains("516 users"));
    assert!(said, "{:?}", p.meta.limits);
    let (m, all) = (p.matrix(), (n as u64 - 1) * w);
    for reader in 2..n {
        // The writer comes anew once it has lost its place.
        let first = reader.saturating_sub(remembered);
        for other in 1..first {
            let events = m.get(other, reader);
            assert!(events < all / 10, "{other} {reader}: {events}");
        }
        for other in first + 3..reader {
            let events = m.get(other, reader);
            assert!(events >= all, "{other} {reader}: {events}");
        }
    }
}

/// Where threads take turns as the machine lets them, the cells are still the oracle's, but for
/// who came first.
#[test]
fn near_uniform_patterns() {
    for line in ["is static 14 10", "is cyclic 14 10"] {
        let b = both(line);
        let (fast, oracle) = (b.fast.matrix(), b.oracle.matrix());
        assert_within(fast.total(), oracle.total(), 0.05, line);
        for (f, o) in upper(&fast).into_iter().zip(upper(&oracle)) {
            assert!(
                (f - o).abs() <= 0.05 * o,
                "{line}: {f}, the oracle has {o}\n{}{}",
                show(&fast),
                show(&oracle)
            );
        }
    }
}
