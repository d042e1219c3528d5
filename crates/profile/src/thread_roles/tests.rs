use super::*;
use crate::ids::{PageNo, RegionIx};
use crate::tables::{PageFirstTouch, PageUse, PairComm};

/// Threads by their families, and before which thread each is gone.
fn check_roles(threads: &[(char, u32)], want: &[u32]) {
    let mut finder = RoleFinder::default();
    let numbered = (0..).map(ThreadIx).zip(threads);
    let role = |(thread, &(family, _)): (ThreadIx, &(char, u32))| {
        let is_gone = |other: ThreadIx| threads[other.at()].1 <= thread.0;
        finder.role_of(family, thread, is_gone).0
    };
    assert_eq!(numbered.map(role).collect::<Vec<_>>(), want);
}

#[test]
fn generations_have_the_roles_of_the_first() {
    check_roles(
        &[('a', 2), ('a', 2), ('a', 4), ('a', 4), ('a', 9)],
        &[0, 1, 0, 1, 0],
    );
    // One more worker in the second generation.
    check_roles(&[('a', 1), ('a', 9), ('a', 9)], &[0, 0, 2]);
}

#[test]
fn a_thread_takes_no_role_of_one_that_lives_or_of_another_family() {
    check_roles(&[('a', 9), ('b', 2), ('a', 9), ('b', 9)], &[0, 1, 2, 1]);
}

/// Whoever takes the place of one that was late, the next generation is in order again.
#[test]
fn one_that_is_late_confuses_one_generation_only() {
    check_roles(
        &[
            ('a', 3),
            ('a', 4),
            ('a', 3),
            ('a', 6),
            ('a', 6),
            ('a', 6),
            ('a', 9),
            ('a', 9),
            ('a', 9),
        ],
        &[0, 1, 2, 0, 1, 2, 0, 1, 2],
    );
    check_roles(
        &[('a', 2), ('a', 3), ('a', 4), ('a', 4), ('a', 9), ('a', 9)],
        &[0, 1, 0, 1, 0, 1],
    );
}

/// `main` and two workers, made anew in every slice; both share with each other, with `main` and
/// with those before and after them.
fn pool(generations: u32) -> Profile {
    let thread = |n: u32| Thread {
        creator: (n > 0).then_some(ThreadIx(0)),
        start: u64::from(n.saturating_sub(1) / 2) * 100,
        end: match n {
            0 => u64::from(generations) * 100,
            _ => u64::from(n.div_ceil(2)) * 100,
        },
        instructions: 10,
        reads: 5,
        role: (n > 2).then_some(ThreadIx(2 - n % 2)),
        ..Thread::default()
    };
    let pair = |slice: u32, i: u32, j: u32, events: u64| PairComm {
        slice: SliceIx(slice),
        i: ThreadIx(i),
        j: ThreadIx(j),
        events,
        coherence: events / 5,
    };
    let pairs = |slice: u32| {
        let (one, two) = (1 + 2 * slice, 2 + 2 * slice);
        let mut pairs = vec![pair(slice, 0, one, 10), pair(slice, one, two, 90)];
        if slice > 0 {
            pairs.push(pair(slice, one - 2, one, 70));
            pairs.push(pair(slice, one - 2, two, 5));
        }
        pairs
    };
    let slice = |n: u32| Slice {
        start: u64::from(n) * 100,
        length: 100,
        threads: 3,
        amount: pairs(n).iter().map(|p| p.events as f64).sum::<f64>() * 2.0 / 9.0,
        heterogeneity: 1.0,
        traced: true,
        ..Slice::default()
    };
    let used = |thread: u32| PageUse {
        page: PageNo(7),
        thread: ThreadIx(thread),
        reads: 3,
        writes: 1,
        ..PageUse::default()
    };
    Profile {
        threads: (0..=2 * generations).map(thread).collect(),
        slices: (0..generations).map(slice).collect(),
        comm: (0..generations).flat_map(pairs).collect(),
        pages: (1..=2 * generations).map(used).collect(),
        first_touch: vec![PageFirstTouch {
            region: RegionIx(0),
            page: PageNo(7),
            following: 0,
            thread: ThreadIx(4),
            slice: SliceIx(1),
        }]
        .into(),
        ..Profile::default()
    }
}

/// The second generation runs where the first did: as threads of their own the two would be one half of
/// the threads each, which seem to work at the same time.
#[test]
fn one_thread_that_follows_another_makes_a_role() {
    assert_eq!(pool(1).by_roles(), pool(1));
    assert_eq!(pool(2).by_roles().threads.len(), 3);
}

#[test]
fn tables_go_by_roles() {
    let all = pool(6).by_roles();
    assert_eq!(all.roles[..6], [0, 1, 2, 1, 2, 1].map(ThreadIx));
    let threads = all.threads.iter();
    let work: Vec<_> = threads
        .map(|t| (t.start, t.end, t.instructions, t.reads))
        .collect();
    assert_eq!(work, [(0, 600, 10, 5), (0, 600, 60, 30), (0, 600, 60, 30)]);
    assert_eq!(all.threads[2].creator, Some(ThreadIx(0)));
    let matrix = all.matrix();
    let cells = [(0, 1), (0, 2), (1, 2), (1, 1)].map(|(i, j)| matrix.get(i, j));
    assert_eq!(cells, [60, 0, 6 * 90, 0]);
    let coherence: u64 = all.comm.iter().map(|p| p.coherence).sum();
    assert_eq!(coherence, 12 + 6 * 18);
    let uses: Vec<_> = all
        .pages
        .iter()
        .map(|u| (u.thread.0, u.reads, u.writes))
        .collect();
    assert_eq!(uses, [(1, 18, 6), (2, 18, 6)]);
    assert_eq!(all.first_touch.rows().next().unwrap().thread, ThreadIx(2));
}

#[test]
fn slices_have_the_metrics_of_their_roles() {
    let all = pool(6).by_roles();
    for (at, slice) in all.slices.iter().enumerate() {
        let mut matrix = crate::CommMatrix::new(3);
        for pair in all.comm.iter().filter(|p| p.slice.at() == at) {
            matrix.add(pair.i.at(), pair.j.at(), pair.events);
        }
        assert_eq!(slice.threads, 3);
        assert!((slice.amount - matrix.amount()).abs() < 1e-9, "{slice:?}");
        let difference = slice.heterogeneity - matrix.heterogeneity();
        assert!(difference.abs() < 1e-9, "{slice:?}");
    }
}

/// Three generations in a slice share lines with those before: each access counts once with a role.
#[test]
fn an_access_counts_with_a_role_once() {
    let pair = |(i, j, events)| PairComm {
        i: ThreadIx(i),
        j: ThreadIx(j),
        events,
        ..PairComm::default()
    };
    let check = |pairs: &[(u32, u32, u64)], roles: &[u32], want: &[(u32, u32, u64)]| {
        let pairs: Vec<PairComm> = pairs.iter().copied().map(pair).collect();
        let roles: Vec<ThreadIx> = roles.iter().copied().map(ThreadIx).collect();
        // Threads 1 and 2 live together, then 3 and 4, then 5 and 6.
        let generation = |t: ThreadIx| t.0.div_ceil(2);
        let together = |a: ThreadIx, b| a.0 == 0 || generation(a) == generation(b);
        let got = pairs_of_roles(&pairs, &roles, together);
        let got: Vec<_> = got.iter().map(|p| (p.i.0, p.j.0, p.events)).collect();
        assert_eq!(got, want);
    };
    let partners = [(1, 2, 90), (3, 4, 90), (5, 6, 90)];
    let ghosts = [(1, 4, 45), (2, 3, 45), (1, 6, 45), (4, 5, 45)];
    let all = [&partners[..], &ghosts].concat();
    check(&all, &[0, 1, 2, 1, 2, 1, 2], &[(1, 2, 270)]);
    // Of the first generation only the end is in the slice; the second counts with it all the same.
    let end = [(1, 2, 5), (3, 4, 90), (1, 4, 45), (2, 3, 45)];
    check(&end, &[0, 1, 2, 1, 2], &[(1, 2, 95)]);
    check(&end[1..3], &[0, 1, 2, 1, 2], &[(1, 2, 90)]);
    // One generation leaves something to the next.
    check(&end[2..], &[0, 1, 2, 1, 2], &[(1, 2, 90)]);
    // A master serves one worker after the other.
    check(
        &[(0, 1, 7), (0, 2, 8), (0, 3, 9)],
        &[0, 1, 1, 1],
        &[(0, 1, 23)],
    );
    // What it does after a worker has ended counts with that one still.
    check(
        &[(0, 1, 160), (0, 2, 90), (0, 3, 20)],
        &[0, 1, 1, 1],
        &[(0, 1, 200)],
    );
}

/// Pairs that are kept for two slices together leave each its share of the events, up to what is
/// estimated between generations.
#[test]
fn merged_slices_keep_their_amounts() {
    let mut coarse = pool(6);
    coarse.meta.comm_slices = 2;
    coarse.comm.iter_mut().for_each(|p| p.slice.0 &= !1);
    let (fine, coarse) = (pool(6).by_roles(), coarse.by_roles());
    let sum = |p: &Profile| p.slices.iter().map(|s| s.amount).sum::<f64>();
    let change = sum(&coarse) / sum(&fine) - 1.0;
    assert!(change.abs() < 0.03, "{change}");
}

#[test]
fn a_role_that_is_no_earlier_thread_is_none() {
    let mut odd = pool(6);
    odd.threads[3].role = Some(ThreadIx(9));
    odd.threads[0].role = Some(ThreadIx(0));
    let all = odd.by_roles();
    assert_eq!(all.threads.len(), 4);
}
