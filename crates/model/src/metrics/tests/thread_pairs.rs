//! Pairs of threads that never run at the same time, or hardly work, are no reason to place threads.
use super::{close, four_nodes, uses};
use crate::metrics::communication::residual_heterogeneity;
use crate::metrics::thread_pairs::{pairs_apart, LightThreads};
use crate::metrics::verdict::MappingVerdict;
use crate::metrics::MetricsReport;
use hither_profile::*;

const SLICES: u32 = 20;

/// Eight threads that execute `work` instructions in all and access memory in the slices in which `runs(thread, slice)`;
/// pairs communicate in them as given, each event a coherence event.
fn run(
    work: [u64; 8],
    runs: impl Fn(usize, u32) -> bool,
    pairs: impl Fn(u32) -> Vec<(u32, u32, u64)>,
) -> Profile {
    let thread = |instructions| Thread {
        instructions,
        reads: instructions,
        ..Thread::default()
    };
    let mut profile = Profile {
        threads: work.map(thread).to_vec(),
        ..Profile::default()
    };
    profile.meta.has_coherence = true;
    profile.meta.duration = u64::from(SLICES) * 10_000_000;
    profile.meta.page_slices = SLICES;
    for s in 0..SLICES {
        profile.slices.push(Slice {
            start: u64::from(s) * 10_000_000,
            length: 10_000_000,
            traced: true,
            ..Slice::default()
        });
        let row: Vec<u64> = (0..8)
            .map(|t| if runs(t, s) { work[t] } else { 0 })
            .collect();
        let used = uses(s, &[&row]).into_iter().filter(|u| u.reads > 0);
        used.for_each(|u| profile.pages.push(u));
        let comm = pairs(s).into_iter().map(|(i, j, events)| PairComm {
            slice: SliceIx(s),
            i: ThreadIx(i),
            j: ThreadIx(j),
            events,
            coherence: events,
        });
        profile.comm.extend(comm);
    }
    profile
}

fn all_of(threads: std::ops::Range<u32>, events: u64) -> Vec<(u32, u32, u64)> {
    let end = threads.end;
    threads
        .flat_map(|i| (i + 1..end).map(move |j| (i, j, events)))
        .collect()
}

fn verdict(profile: &Profile) -> MappingVerdict {
    MetricsReport::from_profile(profile, four_nodes()).verdict
}

fn in_order(s: u32, first: u32) -> u32 {
    u32::from(s >= first)
}

/// The first four share alike, then the others do. Who can share has no choice; if all run at the same time, two
/// groups have to be kept apart.
#[test]
fn threads_that_follow_others_share_with_none_of_them() {
    let half = SLICES / 2;
    let turn = |t: usize, s: u32| t as u32 / 4 == in_order(s, half);
    let share = |s: u32| match in_order(s, half) {
        0 => all_of(0..4, 1000),
        _ => all_of(4..8, 1000),
    };
    let one_after_another = run([1_000_000; 8], turn, share);
    let apart = pairs_apart(&one_after_another, &[true; 8]);
    assert_eq!(apart.len(), 16);
    assert!(apart.is_sorted() && apart.iter().all(|(i, j)| i / 4 < j / 4));
    let matrix = one_after_another.matrix();
    close(residual_heterogeneity(&matrix, &apart).round(), 0.0);
    assert!(residual_heterogeneity(&matrix, &[]) > 100.0);
    let v = verdict(&one_after_another);
    assert!(!v.thread_mapping && !v.threads_undecided, "{v:?}");
    let together = run([1_000_000; 8], |_, _| true, share);
    assert_eq!(pairs_apart(&together, &[true; 8]), []);
    let v = verdict(&together);
    assert!(v.thread_mapping, "{v:?}");
}

/// Of three, the first works alone, then the others do: they are the only pair.
#[test]
fn a_pair_that_is_left_has_no_choice() {
    let turn = |t: usize, s: u32| (t > 0) == (s >= SLICES / 2);
    let share = |_: u32| vec![(1, 2, 1000), (0, 1, 10)];
    let work = [1_000_000, 1_000_000, 1_000_000, 0, 0, 0, 0, 0];
    let v = verdict(&run(work, turn, share));
    assert!(!v.thread_mapping && !v.threads_undecided, "{v:?}");
    assert!(verdict(&run(work, |_, _| true, share)).thread_mapping);
}

/// Numbers are those among the chosen threads.
#[test]
fn pairs_apart_are_numbered_among_the_chosen() {
    let turn = |t: usize, s: u32| t as u32 / 4 == in_order(s, SLICES / 2);
    let profile = run([1000; 8], turn, |_| Vec::new());
    let chosen = [true, false, false, true, false, true, true, false];
    let apart = pairs_apart(&profile, &chosen);
    assert_eq!(apart, [(0, 2), (0, 3), (1, 2), (1, 3)]);
    let none = [false; 8];
    assert_eq!(pairs_apart(&profile, &none), []);
}

/// Events that are pairs' at four threads which do one per cent of the work.
#[test]
fn pairs_that_hardly_work_are_no_reason_to_place_threads() {
    const BUSY: u64 = 10_000_000;
    let pairs = |_: u32| {
        vec![
            (4, 5, 1000),
            (6, 7, 1000),
            (0, 1, 10),
            (2, 3, 10),
            (0, 2, 10),
            (1, 3, 10),
            (0, 3, 10),
            (1, 2, 10),
        ]
    };
    let with = |little: u64| {
        let work = [BUSY, BUSY, BUSY, BUSY, little, little, little, little];
        run(work, |_, _| true, pairs)
    };
    let v = verdict(&with(BUSY / 100));
    assert!(!v.thread_mapping && !v.threads_undecided, "{v:?}");
    let why = "without what those have between them that hardly work (0.99 % of the instructions together)";
    assert!(v.reasons[0].contains(why), "{v:?}");
    // They do their part.
    let v = verdict(&with(BUSY / 2));
    assert!(v.thread_mapping, "{v:?}");
}

/// A thread that works waits for the one that serves it, however little that does.
#[test]
fn who_serves_a_thread_that_works_is_worth_being_near() {
    let served = |_: u32| (0..4).map(|t| (t, t + 4, 1000)).collect();
    let work = [
        10_000_000, 10_000_000, 10_000_000, 10_000_000, 100_000, 100_000, 100_000, 100_000,
    ];
    let profile = run(work, |_, _| true, served);
    let little = LightThreads::of(&profile, &[true; 8]);
    assert_eq!(
        little.pairs(&[true; 8]),
        [(4, 5), (4, 6), (4, 7), (5, 6), (5, 7), (6, 7)]
    );
    assert!(!little.both(ThreadIx(0), ThreadIx(4)));
    close(little.share, 0.4 / 40.4);
    let v = verdict(&profile);
    assert!(v.thread_mapping, "{v:?}");
}
