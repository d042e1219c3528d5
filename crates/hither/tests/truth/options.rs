//! Options that change what is counted: `--line`, `--sharers`, `--max-size`.
use hither_profile::{CommMatrix, RegionIx, PAGE_SIZE};
use std::collections::BTreeSet;

use crate::run::run;
use crate::threads::{about, CREATION};
use crate::view::*;

/// Cells of pairs for which `which` holds.
fn sum(m: &CommMatrix, which: impl Fn(usize, usize) -> bool) -> u64 {
    let n = m.threads();
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    pairs
        .filter(|&(i, j)| which(i, j))
        .map(|(i, j)| m.get(i, j))
        .sum()
}

/// Counters of eight bytes: as many threads share a line as fit in it.
#[test]
fn longer_lines_are_shared_by_more() {
    let (n, additions) = (34, 300_000);
    for line in [64, 128, 256] {
        let p = run(&format!("false_sharing {n} {additions} packed"))
            .with(&format!("--line {line}"))
            .profile();
        assert_eq!(p.meta.options.line, line);
        let (m, to_a_line) = (p.matrix(), line as usize / 8);
        // Thread 0 creates and joins all the others.
        let creation = |i| CREATION + if i == 0 { 30 * n } else { 0 };
        check_matrix(&m, |i, j| match i / to_a_line == j / to_a_line {
            true => (0, 8 * additions),
            false => (0, creation(i)),
        });
        // Those that met in this line and could not in one half as long. Which of them run
        // at the same time is up to the machine, but they run long enough to overlap: one
        // after the other, neighbours alone would meet, one pair in 31 across the halves.
        let half = to_a_line / 2;
        let only_here = sum(&m, |i, j| {
            i / to_a_line == j / to_a_line && i / half != j / half
        });
        assert!(
            only_here > m.total() / 50,
            "{line}: {only_here} of {}\n{}",
            m.total(),
            show(&m)
        );
    }
}

/// An access is one event, however long the line, where each line has the same two users.
#[test]
fn longer_lines_count_the_same_accesses() {
    let (n, r, w) = (4, 1000, 512);
    for line in [128, 256, 4096] {
        let p = run(&format!("ring {n} {r} {w}"))
            .with(&format!("--line {line}"))
            .profile();
        let users = |page: u64| {
            let next = (page as usize + 1) % n;
            vec![(page as usize, (0, r * w)), (next, (r * w, 0))]
        };
        check_pages(&p, "box", users, n as u64);
        check_matrix(&p.matrix(), |i, j| match j - i {
            1 | 3 => about(&p, 2 * r * w, 2 * w),
            _ => (0, CREATION),
        });
    }
}

/// Of two users of a line of 8 words, each is the last other one to the first of the
/// 8 accesses of the other. With K = 1 that is all, as then the thread itself is the last;
/// with more the other one stays known to the remaining 7.
#[test]
fn sharers_of_lines_with_two_users() {
    let (n, r, w) = (4, 300, 512);
    for (k, events) in [(1, 2 * r * w / 8), (3, 2 * r * w), (4, 2 * r * w)] {
        let p = run(&format!("ring {n} {r} {w}"))
            .with(&format!("--slice 60s --oracle --sharers {k}"))
            .profile();
        assert_eq!(p.meta.options.sharers, Some(k));
        check_matrix(&p.matrix(), |i, j| match j - i {
            1 | 3 => (events * 99 / 100, events + CREATION),
            _ => (0, CREATION),
        });
    }
}

/// Where K users share every line, all others are always known: each access counts one
/// event with each of them, whatever the order. A pair makes 2 N R W accesses.
#[test]
fn as_many_sharers_as_users() {
    let (r, w) = (300, 64);
    for k in [3, 4] {
        let p = run(&format!("all_to_all {k} {r} {w}"))
            .with(&format!("--slice 60s --oracle --sharers {k}"))
            .profile();
        let events = 2 * k * r * w;
        let first_round = 2 * k * w;
        check_matrix(&p.matrix(), |_, _| {
            (events - first_round, events + CREATION)
        });
    }
    // Fewer than users: an access sees at least K - 1 of the others and at most K.
    let (n, k) = (4, 3);
    let p = run(&format!("all_to_all {n} {r} {w}"))
        .with(&format!("--slice 60s --oracle --sharers {k}"))
        .profile();
    let (accesses, total) = (n * n * r * w, p.matrix().total());
    let first_round = k * n * n * w;
    assert!(
        total >= (k - 1) * accesses - first_round && total <= k * accesses + 6 * CREATION,
        "{total} events of {accesses} accesses"
    );
}

/// More pages than fit in the smallest budget there is: neighbours share rows.
#[test]
fn pages_are_kept_within_the_budget() {
    let (n, pages) = (4, 150_000);
    let (p, out, bytes) = run(&format!("uneven {n} {pages}"))
        .with("--max-size 1M")
        .measured();
    assert!(out.status.success(), "{:?}", out.status);
    assert!(bytes <= 1 << 20, "{bytes} bytes");
    let said = |limit: &String| limit.contains("rows of page use in place of 600");
    assert!(p.meta.limits.iter().any(said), "{:?}", p.meta.limits);
    assert!(p.pages.row_count() < 100_000, "{}", p.pages.row_count());
    // All pages are there, each with its thread, and accesses are what they were.
    let size = n * pages * PAGE_SIZE;
    let array = p.regions.iter().position(|r| r.size == size);
    let array = RegionIx(array.expect("the mapping") as u32);
    let (mut used, mut reads) = (BTreeSet::new(), vec![0; n as usize]);
    for u in p.pages.iter().filter(|u| u.region == array && u.reads > 0) {
        assert_eq!(u64::from(u.thread.0), u64::from(u.page.0) / pages, "{u:?}");
        used.insert(u.page);
        reads[u.thread.at()] += u.reads;
    }
    let touched = p.first_touch.iter().filter(|t| t.region == array);
    assert_eq!(
        (used.len() as u64, touched.count() as u64),
        (n * pages, n * pages)
    );
    for (thread, reads) in reads.iter().enumerate() {
        let first = thread as u64 * pages;
        let expected: u64 = (first..first + pages).map(|p| 1 + scatter(p) % 256).sum();
        assert_within(
            *reads,
            expected,
            0.001,
            &format!("reads of thread {thread}"),
        );
    }
}

/// As in the workload.
fn scatter(page: u64) -> u64 {
    let mut p = page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    p ^= p >> 32;
    p.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
}

/// The smallest budget there is, and more pairs and slices than fit in it.
#[test]
fn a_budget_for_the_profile_is_kept() {
    let (n, r, w) = (64, 400, 64);
    let budget = 1 << 20;
    let (p, out, bytes) = run(&format!("all_to_all {n} {r} {w}"))
        .with("--slice 100us --max-size 1M")
        .measured();
    assert!(out.status.success(), "{:?}", out.status);
    assert!(bytes <= budget, "{bytes} bytes");
    let merged = p.meta.comm_slices;
    assert!(
        merged > 1,
        "{} rows, {} slices",
        p.comm.len(),
        p.slices.len()
    );
    let said = format!("Communication over time is kept for groups of {merged} slices");
    assert!(
        p.meta.limits.iter().any(|l| l.starts_with(&said)),
        "{:?}",
        p.meta.limits
    );
    for c in &p.comm {
        assert_eq!(c.slice.at() % merged as usize, 0, "{c:?}");
    }
    // Coarser in time, but nothing is lost: neither of the pages nor of the pairs.
    let users = |page: u64| {
        let counts = |t| if t == page { (0, r * w) } else { (r * w, 0) };
        (0..n).map(|t| (t as usize, counts(t))).collect()
    };
    check_pages(&p, "box", users, n);
    let events = p.slices.iter().map(|s| {
        let cells = f64::from(s.threads).powi(2);
        s.amount * cells / 2.0
    });
    assert_within(
        events.sum::<f64>().round() as u64,
        p.matrix().total(),
        0.001,
        "events of the slices, against the matrix",
    );
}
