//! Pthread programs: who shares what with whom, exactly as their source says.
use hither_profile::{CommMatrix, ObjectKind, Profile};

use crate::run::{memory_of_segment, run};
use crate::view::*;

/// Events that creating a team costs a pair: libc's lists of threads and stacks.
pub const CREATION: u64 = 500;

/// Bounds of a cell that `expected` events should reach, less `round` per slice.
pub fn about(profile: &Profile, expected: u64, round: u64) -> (u64, u64) {
    let lost = profile.slices.len() as u64 * round;
    (expected.saturating_sub(lost), expected + CREATION)
}

/// Names of the program's and the team's threads, in order of creation.
fn check_team(profile: &Profile, program: &str, n: usize) {
    let names: Vec<_> = profile.threads.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names.len(), n);
    assert_eq!(names[0], program);
    for (i, thread) in profile.threads.iter().enumerate().skip(1) {
        assert_eq!(thread.name, format!("w{i:03}"));
        assert_eq!(thread.creator.map(|c| c.at()), Some(0));
        assert!(
            thread.start >= profile.threads[i - 1].start,
            "thread {i} started early"
        );
        assert!(thread.end > thread.start);
    }
    assert_eq!(profile.meta.processes.len(), 1);
}

/// One static object with its declaration.
fn check_static(profile: &Profile, name: &str, type_name: &str, at: (&str, &str)) {
    let (_, object) = named(profile, name)[0];
    assert_eq!(object.type_name, type_name, "{name}");
    assert_eq!(object.kind, ObjectKind::Static, "{name}");
    assert!(object.file.ends_with(at.0), "{name} is in {}", object.file);
    assert_eq!(object.line, line_of(at.0, at.1), "{name}");
}

/// Chain or ring neighbours have `expected` events, all others none.
fn check_neighbours(profile: &Profile, expected: u64, round: u64, wraps: bool) {
    let m = profile.matrix();
    let last = m.threads() - 1;
    check_matrix(&m, |i, j| match j - i {
        1 => about(profile, expected, round),
        d if wraps && d == last => about(profile, expected, round),
        _ => (0, CREATION),
    });
}

#[test]
fn ring() {
    let (n, r, w) = (4, 3000, 512);
    let p = run(&format!("ring {n} {r} {w}")).profile();
    check_team(&p, "ring", n);
    check_static(
        &p,
        "box",
        "volatile cell [1024][512]",
        ("ring.c", "static cell box["),
    );
    let users = |page: u64| {
        let next = (page as usize + 1) % n;
        vec![(page as usize, (0, r * w)), (next, (r * w, 0))]
    };
    check_pages(&p, "box", users, n as u64);
    check_first_touch(&p, "box", |page| page as usize, n as u64);
    check_neighbours(&p, 2 * r * w, 2 * w, true);
}

#[test]
fn pipeline() {
    let (n, r, w) = (4, 3000, 512);
    let p = run(&format!("pipeline {n} {r} {w}")).profile();
    check_static(
        &p,
        "link",
        "volatile cell [1024][512]",
        ("pipeline.c", "static cell link["),
    );
    let users = |page: u64| vec![(page as usize, (0, r * w)), (page as usize + 1, (r * w, 0))];
    check_pages(&p, "link", users, n as u64 - 1);
    check_first_touch(&p, "link", |page| page as usize, n as u64 - 1);
    check_neighbours(&p, 2 * r * w, 2 * w, false);
    let ends = p.threads[0].accesses() as f64 / p.threads[1].accesses() as f64;
    // Half, and the start of the program and of the system calls' arguments.
    assert!(
        (0.5..0.53).contains(&ends),
        "ends make {ends} of what the middle makes"
    );
}

#[test]
fn pairs_and_their_phases() {
    let (n, phases, r, w) = (4usize, 4, 4000, 512);
    let p = run(&format!("pairs {n} {phases} {r} {w}")).profile();
    let half = phases / 2 * r * w;
    check_team(&p, "pairs", n);
    check_pages(
        &p,
        "near",
        |q| vec![(2 * q as usize, (0, half)), (2 * q as usize + 1, (half, 0))],
        2,
    );
    check_pages(
        &p,
        "far",
        |q| vec![(q as usize, (0, half)), (q as usize + n / 2, (half, 0))],
        2,
    );
    check_first_touch(&p, "near", |q| 2 * q as usize, 2);
    check_first_touch(&p, "far", |q| q as usize, 2);
    check_matrix(&p.matrix(), |i, j| match (i, j) {
        (0, 1) | (2, 3) | (0, 2) | (1, 3) => about(&p, 2 * half, 2 * w),
        _ => (0, CREATION),
    });
    assert_eq!(kinds_of_slices(&p), ["near", "far", "near", "far"]);
}

/// What each run of slices is made of, in order; a slice with both counts as the larger.
fn kinds_of_slices(profile: &Profile) -> Vec<&'static str> {
    let mut slices = vec![(0, 0); profile.slices.len()];
    for c in &profile.comm {
        let sums = &mut slices[c.slice.at()];
        match c.i.at() ^ c.j.at() {
            1 => sums.0 += c.events,
            2 => sums.1 += c.events,
            _ => (),
        }
    }
    let busy = slices.into_iter().filter(|s| s.0 + s.1 > CREATION);
    let mut kinds: Vec<_> = busy
        .map(|s| if s.0 > s.1 { "near" } else { "far" })
        .collect();
    kinds.dedup();
    kinds
}

#[test]
fn all_to_all() {
    let (n, r, w) = (4u64, 1000, 64);
    let p = run(&format!("all_to_all {n} {r} {w}")).profile();
    let users = |page: u64| {
        let counts = |t| if t == page { (0, r * w) } else { (r * w, 0) };
        (0..n).map(|t| (t as usize, counts(t))).collect()
    };
    check_pages(&p, "box", users, n);
    check_first_touch(&p, "box", |page| page as usize, n);
    let m = p.matrix();
    assert!(m.heterogeneity() < chain(n as usize).heterogeneity());
    // Each of the N R W accesses of both counts with the other, but for the first round of a slice.
    check_matrix(&m, |_, _| about(&p, 2 * n * r * w, 2 * w * n));
}

fn chain(n: usize) -> CommMatrix {
    let mut m = CommMatrix::new(n);
    (1..n).for_each(|i| m.add(i - 1, i, 1));
    m
}

#[test]
fn independent() {
    let (n, r, pages) = (4, 100, 64);
    let p = run(&format!("independent {n} {r} {pages}")).profile();
    let blocks = named(&p, "block");
    assert_eq!(blocks.iter().map(|(_, o)| o.count).sum::<u64>(), n);
    assert_eq!(
        blocks.iter().map(|(_, o)| o.size).sum::<u64>(),
        n * pages * 4096
    );
    for (_, block) in blocks {
        assert_eq!(block.type_name, "cell");
        assert_eq!(
            (block.kind, block.function.as_str()),
            (ObjectKind::Heap, "body")
        );
        assert_eq!(block.line, line_of("independent.c", "cell *block ="));
    }
    let found = pages_of_one(&p, "block");
    assert_eq!(found.len() as u64, n * pages);
    // The first page of a block is read once more, and malloc keeps its notes there.
    let odd: Vec<_> = found
        .iter()
        .filter(|c| **c != (512 * r, 512 * (r + 1)))
        .collect();
    assert_eq!(odd.len() as u64, n, "{odd:?}");
    assert!(
        odd.iter()
            .all(|c| c.0 - 512 * r < 20 && c.1 - 512 * (r + 1) < 20),
        "{odd:?}"
    );
    check_matrix(&p.matrix(), |_, _| (0, CREATION));
}

/// Counts of each page of an object that has one user per page.
fn pages_of_one(profile: &Profile, name: &str) -> Vec<Counts> {
    let pages = pages(profile, name);
    let one = |(page, users): (&u64, &Users)| {
        assert_eq!(users.len(), 1, "{name}, page {page}: {users:?}");
        *users.values().next().expect("one")
    };
    pages.iter().map(one).collect()
}

#[test]
fn false_sharing() {
    let (n, additions) = (10, 20_000);
    let once = (additions + 1, additions);
    let p = run(&format!("false_sharing {n} {additions} packed")).profile();
    check_pages(&p, "packed", |_| (0..n).map(|t| (t, once)).collect(), 1);
    // Threads that never met in a slice share nothing, so only the sum has a lower bound.
    let m = p.matrix();
    check_matrix(&m, |i, j| match i / 8 == j / 8 {
        true => (0, 8 * additions),
        false => (0, CREATION),
    });
    assert!(m.total() > n as u64 * additions / 2, "{}", show(&m));

    let p = run(&format!("false_sharing {n} {additions} padded")).profile();
    check_pages(&p, "padded", |page| vec![(page as usize, once)], n as u64);
    check_matrix(&p.matrix(), |_, _| (0, CREATION));
}

#[test]
fn generations_have_the_roles_of_the_first() {
    let (n, g, r, w) = (4usize, 25u64, 40, 512);
    let p = run(&format!("generations {n} {g} {r} {w}")).profile();
    assert_eq!(p.threads.len(), 1 + n * g as usize);
    for (at, thread) in p.threads.iter().enumerate() {
        let first = (at > n).then(|| (at - 1) % n + 1);
        assert_eq!(thread.role.map(|r| r.at()), first, "thread {at}");
    }
    let p = p.by_roles();
    assert_eq!(p.threads.len(), 1 + n);
    let pairs = n as u64 / 2;
    let (writer, reader) = (|q: u64| 1 + 2 * q as usize, |q: u64| 2 + 2 * q as usize);
    let users = |q| vec![(writer(q), (0, g * r * w)), (reader(q), (g * r * w, 0))];
    check_pages(&p, "box", users, pairs);
    check_first_touch(&p, "box", writer, pairs);
    // The first round of a generation is new to both, and creating a thread costs each time.
    let (low, high) = about(&p, 2 * g * r * w, 2 * w);
    check_matrix(&p.matrix(), |i, j| match (i, j) {
        (1, 2) | (3, 4) => (low - 2 * g * w, high + g * CREATION),
        _ => (0, g * CREATION),
    });
    assert!(p.matrix().heterogeneity() > 1200.0);
    let most = p.slices.iter().map(|s| s.threads).max();
    assert_eq!(most, Some(1 + n as u32));
}

#[test]
fn many_threads() {
    let (n, w) = (100, 512);
    // What thread 0 accesses of libc's lists of stacks to create a thread counts with all before
    // that used them: at once 5 accesses, or more where threads end meanwhile; in sequence, where
    // each next thread has the same stack, some 90.
    for (how, creator) in [("at-once", 10 * n as u64), ("in-sequence", 100 * n as u64)] {
        let p = run(&format!("many_threads {how} {n} {w}")).profile();
        assert_eq!(p.threads.len(), n + 1);
        assert!(p.threads[1..]
            .iter()
            .all(|t| t.creator.map(|c| c.at()) == Some(0)));
        let users = |page: u64| match page {
            0 => vec![],
            page => vec![(page as usize, (w, w))],
        };
        check_pages(&p, "page_of", users, n as u64 + 1);
        let again = p
            .objects
            .iter()
            .any(|o| o.name.ends_with(", then of others"));
        assert_eq!(again, how == "in-sequence");
        check_matrix(&p.matrix(), |i, _| match i {
            0 => (0, creator),
            _ => (0, CREATION),
        });
    }
}

/// 256 MiB that one thread uses: a word for each of their lines would take 32.
#[test]
fn pages_of_one_thread_take_little_memory() {
    let bytes = memory_of_segment("reuse 1 65536");
    let share = bytes as f64 / f64::from(256 << 20);
    assert!((0.01..0.06).contains(&share), "{share} of the memory used");
}

/// The line caches of 300 threads that touch each part of them: full ones would take 2.5 MiB each.
#[test]
fn many_threads_have_small_line_caches() {
    let threads = 300;
    let bytes = memory_of_segment(&format!("sweep {threads} 1 1024"));
    let mean = bytes as f64 / f64::from(1 << 20) / f64::from(threads);
    assert!((1.0..1.6).contains(&mean), "{mean} MiB for each thread");
}
