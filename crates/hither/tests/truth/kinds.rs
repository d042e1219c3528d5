//! Coherence events, by the line cache and by `--oracle`, against arithmetic: on a line that one writes
//! n times and another accesses as often, n of the events can find the line changed; on a line that
//! is only read none.
use hither_profile::{CommMatrix, Profile};

use crate::run::run;
use crate::threads::CREATION;
use crate::view::*;

const WAYS: [&str; 2] = ["--line 64", "--oracle"];

fn in_one_slice(line: &str, way: &str) -> Profile {
    let profile = run(line).with("--slice 60s").with(way).profile();
    assert!(profile.meta.has_coherence);
    profile
}

pub fn coherence(profile: &Profile) -> CommMatrix {
    let mut matrix = CommMatrix::new(profile.threads.len());
    for c in &profile.comm {
        matrix.add(c.i.at(), c.j.at(), c.coherence);
    }
    matrix
}

/// One writes R x W times what the next reads as often.
#[test]
fn producers_and_consumers() {
    let (n, r, w) = (8, 400, 512);
    for way in WAYS {
        let events = coherence(&in_one_slice(&format!("ring {n} {r} {w}"), way));
        check_matrix(&events, |i, j| {
            let next = i.abs_diff(j) == 1 || i.abs_diff(j) == n - 1;
            let expected = if next { (r * w) as u64 } else { 0 };
            (expected - expected / 50, expected + 2 * CREATION)
        });
        // Two such pages for each worker: its task and its result.
        let events = coherence(&in_one_slice(&format!("master {n} {r} {w}"), way));
        check_matrix(&events, |i, _| {
            let expected = if i == 0 { (2 * r * w) as u64 } else { 0 };
            (expected - expected / 50, expected + 2 * CREATION)
        });
    }
}

/// Thread 0 writes each of W words once, and all read them R times: W events with thread 0, none among
/// the others, of (2R - 1) W each.
#[test]
fn readers() {
    for n in [3, 8, 32] {
        let (r, w) = (200, 64);
        for way in WAYS {
            let profile = in_one_slice(&format!("rotation {n} {r} {w}"), way);
            assert!(profile.matrix().get(1, 2) >= (2 * r - 1) * w);
            check_matrix(&coherence(&profile), |i, _| {
                let written = if i == 0 { w } else { 0 };
                (written, written + CREATION)
            });
        }
    }
}

/// What a thread did with a line before others joined it counts with them: each reader finds a line
/// as often changed as thread 0 writes it in all.
#[test]
fn readers_that_come_late() {
    let (n, r, w) = (6, 200, 64);
    for way in WAYS {
        let events = coherence(&in_one_slice(&format!("late_readers {n} {r} {w}"), way));
        check_matrix(&events, |i, _| {
            let expected = if i == 0 { (n - 1) * r * w } else { 0 };
            (expected - expected / 50, expected + CREATION)
        });
    }
}

/// Lines that leave the line caches of many users and come back are settled each time, once for each pair. Of 80
/// threads some have smaller line caches than the others.
#[test]
fn sweeps_over_more_than_the_line_caches_hold() {
    for (n, r, pages) in [(8, 4, 16_384), (80, 2, 2048)] {
        let creation = CREATION * (2 + n / 8);
        for way in WAYS {
            let profile = in_one_slice(&format!("sweep {n} {r} {pages}"), way);
            check_matrix(&profile.matrix(), |i, _| {
                let events = (2 * r - u64::from(i != 0)) * pages;
                (events - events / 50, events + creation)
            });
            // Two that settle a line at the same moment may find each other twice, or not at all.
            let found = coherence(&profile).total() as f64;
            let expected = (n * (n - 1) / 2 * r * pages) as f64;
            assert!(
                (0.95 * expected..1.25 * expected).contains(&found),
                "{n} threads, {way}: {found} events, expected {expected}"
            );
        }
    }
}

/// Also between processes, and where lines are evicted and entered again while others have them.
#[test]
fn the_same_as_the_oracle() {
    for line in [
        "pairs 8 4 200 512",
        "pipeline 8 400 512",
        "shm fork 4 400",
        "shm posix 4 400",
        "shm posix 4 400 512 1024",
        "stencil2d 128 100",
    ] {
        let [fast, oracle] = WAYS.map(|way| coherence(&in_one_slice(line, way)));
        assert_within(fast.total(), oracle.total(), 0.05, line);
        let correlation = crate::oracle::correlation(&fast, &oracle);
        assert!(
            correlation >= 0.98,
            "{line}: correlation {correlation}\n{}{}",
            show(&fast),
            show(&oracle)
        );
    }
}
