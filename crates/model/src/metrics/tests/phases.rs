use crate::metrics::partner_changes::partner_phases;
use crate::metrics::partner_shares::PartnerShares;
use crate::metrics::phase_detection::{
    communication_phases, partner_window, window_of_half_a_second,
};
use crate::metrics::stable_phases::stable_phases;
use hither_profile::{PairComm, Profile, Slice, SliceClock, SliceIx, Thread, ThreadIx};
use proptest::prelude::*;
use std::ops::Range;

fn slices(values: &[f64]) -> Vec<Slice> {
    let slice = |&v: &f64| Slice {
        heterogeneity: v.max(0.0),
        traced: v >= 0.0,
        ..Slice::default()
    };
    values.iter().map(slice).collect()
}

fn steps(parts: &[(usize, f64)]) -> Vec<f64> {
    let each = parts.iter().map(|&(n, v)| vec![v; n]);
    each.collect::<Vec<_>>().concat()
}

fn check(values: &[f64], window: usize, want: &[Range<usize>]) {
    assert_eq!(communication_phases(&slices(values), window, 0.2), want);
}

/// n = 3. At t = 6 recent = (5+5+10)/3 with a step at 5: |20/3 - 15/3| / (20/3) = 0.25,
/// detected; the difference is largest at t = 8, where recent is slices 5..8.
#[test]
fn opt_4_a_step_is_a_phase_change() {
    check(&steps(&[(5, 5.0), (7, 10.0)]), 3, &[0..5, 5..12]);
}

/// 100 to 120 is 20/120 = 0.167 < 0.2; 100 to 130 is 30/130 = 0.23; 120 to 100 is
/// 20/100 = 0.2, which is enough: the difference counts against the recent mean.
#[test]
fn the_difference_is_relative_to_the_recent_mean() {
    check(
        &steps(&[(50, 100.0), (50, 120.0)]),
        50,
        std::slice::from_ref(&(0..100)),
    );
    check(&steps(&[(50, 100.0), (50, 130.0)]), 50, &[0..50, 50..100]);
    check(&steps(&[(50, 120.0), (50, 100.0)]), 50, &[0..50, 50..100]);
}

#[test]
fn alternating_phases_are_all_found() {
    let values = steps(&[(60, 500.0), (70, 100.0), (60, 500.0), (80, 100.0)]);
    check(&values, 50, &[0..60, 60..130, 130..190, 190..270]);
}

#[test]
fn to_and_from_silence_is_a_change() {
    check(&steps(&[(50, 0.0), (50, 10.0)]), 50, &[0..50, 50..100]);
    check(&steps(&[(50, 10.0), (50, 0.0)]), 50, &[0..50, 50..100]);
    check(&[0.0; 120], 50, std::slice::from_ref(&(0..120)));
}

/// n = 50. A slow rise before the step at 130: eq. 4 holds from slice 100 on, the windows differ most
/// at 180.
#[test]
fn the_boundary_is_sought_wherever_the_condition_holds() {
    let values = steps(&[(50, 100.0), (40, 126.0), (40, 170.0), (100, 900.0)]);
    check(&values, 50, &[0..130, 130..230]);
}

/// The second step is larger, and its windows reach the first: both are boundaries.
#[test]
fn a_small_change_before_a_large_one_is_found() {
    let values = steps(&[(100, 100.0), (60, 200.0), (100, 1000.0)]);
    check(&values, 50, &[0..100, 100..160, 160..260]);
}

#[test]
fn a_short_run_is_one_phase() {
    check(
        &steps(&[(49, 0.0), (50, 900.0)]),
        50,
        std::slice::from_ref(&(0..99)),
    );
    check(&[1.0], 50, std::slice::from_ref(&(0..1)));
    check(&[], 50, &[]);
}

/// Every second slice untraced (-1): the step at slice 10 is found over traced ones.
#[test]
fn slices_not_traced_are_skipped() {
    let values: Vec<f64> = (0..20)
        .map(|s| match s {
            s if s % 2 == 1 => -1.0,
            s if s < 10 => 100.0,
            _ => 400.0,
        })
        .collect();
    check(&values, 3, &[0..10, 10..20]);
}

proptest! {
    #[test]
    fn phases_partition_the_run(
        values in prop::collection::vec(-100.0..2500.0f64, 0..300),
        window in 1usize..30,
    ) {
        let found = communication_phases(&slices(&values), window, 0.2);
        let mut next = 0;
        for phase in &found {
            prop_assert_eq!(phase.start, next);
            prop_assert!(phase.end > phase.start);
            next = phase.end;
        }
        prop_assert_eq!(next, values.len());
        // At least one window of traced slices each, as in the paper.
        if found.len() > 1 {
            for phase in &found {
                let traced = values[phase.clone()].iter().filter(|v| **v >= 0.0).count();
                prop_assert!(traced >= window, "{:?}", phase);
            }
        }
    }
}

/// As long as OPT's 50 slices of 10 ms, however finely the run was cut.
#[test]
fn a_window_is_half_a_second() {
    let check = |milliseconds: u64, window: usize| {
        let slice = Slice {
            length: milliseconds * 1_000_000,
            traced: true,
            ..Slice::default()
        };
        assert_eq!(window_of_half_a_second(&vec![slice; 20]), window);
    };
    check(10, 50);
    check(1, 500);
    check(100, 5);
    check(1000, 4);
    assert_eq!(window_of_half_a_second(&[]), 50);
}

/// The same program has the same phases on a machine that is ten times as slow, or busy: slices by instructions last longer
/// there and are as many. By the wall clock a window is half a second.
#[test]
fn the_window_of_slices_by_instructions_does_not_depend_on_the_machine() {
    let [one, other] = [[(0, 1), (2, 3)], [(0, 2), (1, 3)]];
    let found = |clock, milliseconds: u64| {
        let mut profile = run((0..40).map(|at| (500.0, [one, other][at / 10 % 2])));
        profile.meta.options.slice = 10_000_000;
        profile.meta.options.slice_clock = clock;
        for slice in &mut profile.slices {
            slice.length = milliseconds * 1_000_000;
        }
        let window = partner_window(&profile);
        (window, stable_phases(&profile, window, 0.2).len())
    };
    for milliseconds in [12, 40, 400] {
        assert_eq!(found(SliceClock::Instructions, milliseconds), (5, 4));
    }
    assert_eq!(found(SliceClock::Wall, 12), (41, 1));
    let mut fine = Profile::default();
    fine.meta.options.slice_clock = SliceClock::Instructions;
    for (milliseconds, window) in [(1, 50), (100, 4)] {
        fine.meta.options.slice = milliseconds * 1_000_000;
        assert_eq!(partner_window(&fine), window);
    }
}

/// 4 threads; by slice its heterogeneity and the pairs that communicate.
fn run(slices: impl Iterator<Item = (f64, [(u32, u32); 2])>) -> Profile {
    let mut profile = Profile {
        threads: vec![Thread::default(); 4],
        ..Profile::default()
    };
    for (at, (heterogeneity, pairs)) in (0u32..).zip(slices) {
        profile.slices.push(Slice {
            heterogeneity,
            traced: true,
            ..Slice::default()
        });
        profile.comm.extend(pairs.map(|(i, j)| PairComm {
            slice: SliceIx(at),
            i: ThreadIx(i),
            j: ThreadIx(j),
            events: 100,
            ..PairComm::default()
        }));
    }
    profile
}

/// With whom threads communicate differs between the phases and not within them; where it changes all the time,
/// heterogeneity alone makes phases (NPB LU: 800), which are no other ones in their halves.
#[test]
fn phases_are_stable_where_their_halves_are_alike() {
    let [one, other] = [[(0, 1), (2, 3)], [(0, 2), (1, 3)]];
    let found = |run: &Profile| -> Vec<(Range<usize>, bool)> {
        let found = stable_phases(run, 20, 0.2);
        found.into_iter().map(|p| (p.slices, p.stable)).collect()
    };
    let step = |at: usize| {
        if (at / 60).is_multiple_of(2) {
            500.0
        } else {
            1000.0
        }
    };
    let stable = run((0..120).map(|at| (step(at), [one, other][at / 60])));
    assert_eq!(found(&stable), [(0..60, true), (60..120, true)]);
    let chance = run((0..240).map(|at| (step(at), [one, other][at * at / 7 % 2])));
    assert_eq!(communication_phases(&chance.slices, 20, 0.2).len(), 4);
    assert_eq!(found(&chance), [(0..240, false)]);
    // The same pairs, more unevenly.
    let alike = run((0..120).map(|at| (step(at), one)));
    assert_eq!(found(&alike), [(0..120, false)]);
    // A phase in which the same pairs first communicate more evenly.
    let level = |at: usize| if at < 60 { 200.0 } else { step(at) };
    let uneven = run((0..180).map(|at| (level(at), [one, other][at / 120])));
    assert_eq!(communication_phases(&uneven.slices, 20, 0.2).len(), 3);
    assert_eq!(found(&uneven), [(0..120, true), (120..180, true)]);
    // The usual pattern is that of the whole run, and what lies around the other one.
    let usual = |length| {
        let other_from_600 = 600..600 + length;
        run((0..3000).map(move |at| match other_from_600.contains(&at) {
            true => (1000.0, other),
            false => (500.0, one),
        }))
    };
    let expected = [(0..600, false), (600..660, true), (660..3000, false)];
    assert_eq!(found(&usual(60)), expected);
    // Less than a hundredth of the run.
    assert_eq!(communication_phases(&usual(29).slices, 20, 0.2).len(), 3);
    assert_eq!(found(&usual(29)), [(0..3000, false)]);
    // The program begins with a few events that are no phase.
    let mut begins =
        run((0..160).map(|at| (500.0, if (40..100).contains(&at) { one } else { other })));
    let of_start = begins.comm.iter_mut().filter(|c| c.slice.at() < 40);
    of_start.for_each(|c| c.events = 1);
    assert_eq!(partner_phases(&begins, 20, 0.2), [0..40, 40..100, 100..160]);
    assert_eq!(found(&begins), [(0..100, true), (100..160, true)]);
}

/// Eight threads that work, on so many processing units: events by slice and pair, in 1200 slices with a step of
/// heterogeneity at 600 and at 660.
fn crowd(units: u32, events: impl Fn(bool, u32, u32) -> u64) -> Vec<(Range<usize>, bool)> {
    const THREADS: u32 = 8;
    let works = Thread {
        instructions: 1000,
        ..Thread::default()
    };
    let mut profile = Profile {
        threads: vec![works; THREADS as usize],
        ..Profile::default()
    };
    profile.meta.machine.processing_units = units;
    for at in 0..1200 {
        let other = (600..660).contains(&at);
        profile.slices.push(Slice {
            heterogeneity: if other { 1000.0 } else { 500.0 },
            traced: true,
            ..Slice::default()
        });
        let pairs = (0..THREADS).flat_map(|i| (i + 1..THREADS).map(move |j| (i, j)));
        profile.comm.extend(pairs.map(|(i, j)| PairComm {
            slice: SliceIx(at),
            i: ThreadIx(i),
            j: ThreadIx(j),
            events: events(other, i, j),
            ..PairComm::default()
        }));
    }
    let found = stable_phases(&profile, 20, 0.2);
    found.into_iter().map(|p| (p.slices, p.stable)).collect()
}

/// NPB LU, 8 threads that spin on 2 processors: for 1.2 s one of them was the partner of all, since it ran while the
/// others waited for a processor. Which one and when is another in the next trace.
#[test]
fn who_runs_while_threads_take_turns_makes_no_phase() {
    let one_runs = |other, _, j| if other && j == 7 { 400 } else { 100 };
    assert_eq!(crowd(2, one_runs), [(0..1200, false)]);
    let phase = [(0..600, false), (600..660, true), (660..1200, false)];
    // With a processor each, the program does it.
    assert_eq!(crowd(8, one_runs), phase);
    assert_eq!(crowd(0, one_runs), phase);
    // Other partners are the program's, even if one runs more.
    let other_partners = |other, i, j| match (other, i ^ j) {
        (false, 1) | (true, 2) => 1000,
        _ if other && j == 7 => 40,
        _ => 10,
    };
    assert_eq!(crowd(2, other_partners), phase);
}

/// What each thread communicates is taken over, and with whom stays.
#[test]
fn partners_are_fitted_to_what_threads_communicate() {
    let cells = |of: [f64; 3]| {
        let pairs = [(0, 1), (0, 2), (1, 2)].into_iter().zip(of);
        let both = pairs.flat_map(|((i, j), n)| [((i, j), n), ((j, i), n)]);
        let mut cells: Vec<_> = both.collect();
        cells.sort_by_key(|c| c.0);
        PartnerShares::of_cells(cells, 3)
    };
    // Of three threads what each communicates says with whom: 30 = 10 + 20, 40 = 10 + 30, 50 = 20 + 30.
    let (alike, uneven) = (cells([10.0; 3]), cells([10.0, 20.0, 30.0]));
    let fitted = alike.with_events_of(&uneven);
    for (found, wanted) in fitted.events.iter().zip([30.0, 40.0, 50.0]) {
        assert!((found - wanted).abs() < 0.01, "{:?}", fitted.events);
    }
    assert!(fitted.overlap(&uneven) > 0.999);
    assert!(alike.overlap(&uneven) < 0.9);
    // Who communicates with nobody has no partners.
    assert!(alike
        .with_events_of(&cells([10.0, 0.0, 0.0]))
        .shares
        .iter()
        .all(|((i, j), share)| *i + *j == 1 || *share < 0.01));
}

/// Eq. 4 sees none of these: the heterogeneity stays. With whom threads communicate changes at 70, and back at 100.
#[test]
fn other_partners_are_another_phase_whatever_the_heterogeneity() {
    let [one, other] = [[(0, 1), (2, 3)], [(0, 2), (1, 3)]];
    let at = |at: usize| (500.0, if (70..100).contains(&at) { other } else { one });
    let changes = run((0..150).map(at));
    assert_eq!(communication_phases(&changes.slices, 20, 0.2).len(), 1);
    assert_eq!(
        partner_phases(&changes, 20, 0.2),
        [0..70, 70..100, 100..150]
    );
    let found = stable_phases(&changes, 20, 0.2);
    assert!(
        found.iter().all(|phase| phase.stable) && found.len() == 3,
        "{found:?}"
    );
    // Too few slices to compare, and none.
    assert_eq!(partner_phases(&run((0..39).map(at)), 20, 0.2).len(), 1);
    assert!(partner_phases(&Profile::default(), 20, 0.2).is_empty());
    // Slices that sampling skipped are no slices of a window; those without communication go before the change.
    let mut sparse = run((0..300).map(|s| at(s / 2)));
    for slice in sparse.slices.iter_mut().skip(1).step_by(2) {
        slice.traced = false;
    }
    sparse
        .comm
        .retain(|c| c.slice.at() % 2 == 0 && !(134..150).contains(&c.slice.at()));
    assert_eq!(
        partner_phases(&sparse, 20, 0.2),
        [0..150, 150..200, 200..300]
    );
}

/// Which two of three pairs communicate is another matter in every few slices: the halves of a window differ as much as
/// the windows do.
#[test]
fn what_changes_all_the_time_begins_no_phase() {
    let pairs = [[(0, 1), (2, 3)], [(0, 2), (1, 3)], [(0, 3), (1, 2)]];
    // By sevens windows are alike; by tens they differ by half, and their halves in all.
    for each in [7, 10] {
        let turns = run((0..400).map(|at| (500.0, pairs[at / each % 3])));
        assert_eq!(
            partner_phases(&turns, 20, 0.2),
            std::slice::from_ref(&(0..400)),
            "{each}"
        );
    }
}
