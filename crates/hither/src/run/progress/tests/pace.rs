use super::phase;
use crate::run::progress::phase_pace::PhasePace;
use hither_profile::PlacedPhase;

/// `steps`: milliseconds of the run, counts, and the phase then reached.
#[track_caller]
fn check(phases: &[PlacedPhase], steps: &[(u64, [Option<u64>; 4], usize)]) -> PhasePace {
    let mut pace = PhasePace::new(phases);
    for (ms, counts, expected) in steps {
        let got = pace.advance(ms * 1_000_000, counts);
        assert_eq!(got, *expected, "at {ms} ms with {counts:?}");
    }
    pace
}

fn barriers(n: u64) -> [Option<u64>; 4] {
    [Some(n), None, None, None]
}

#[test]
fn a_phase_is_reached_by_its_count_and_not_by_time() {
    let phases = [
        phase(0, [0; 4]),
        phase(2, [80, 0, 0, 0]),
        phase(4, [160, 0, 0, 0]),
    ];
    let pace = check(
        &phases,
        &[
            (0, barriers(0), 0),
            (100, barriers(79), 0),
            (9_000, barriers(79), 0),
            (9_001, barriers(80), 1),
            (9_100, barriers(159), 1),
            (9_101, barriers(400), 2),
        ],
    );
    assert_eq!(pace.reached_by(), (true, false));
    assert!(pace.is_last());
}

#[test]
fn phases_in_between_are_passed_over() {
    let phases = [
        phase(0, [0; 4]),
        phase(2, [8, 0, 0, 0]),
        phase(4, [16, 0, 0, 0]),
    ];
    check(&phases, &[(10, barriers(16), 2)]);
}

#[test]
fn every_kind_has_to_be_reached() {
    let phases = [phase(0, [0; 4]), phase(1, [8, 40, 10, 4])];
    let counts = |a, b, c, d| [Some(a), Some(b), Some(c), Some(d)];
    check(
        &phases,
        &[
            (1, counts(8, 39, 10, 4), 0),
            (2, counts(8, 40, 10, 3), 0),
            (3, counts(8, 40, 10, 4), 1),
        ],
    );
}

#[test]
fn a_kind_that_cannot_be_counted_is_not_waited_for() {
    let phases = [phase(0, [0; 4]), phase(1, [8, 0, 10, 0])];
    check(
        &phases,
        &[
            (1, [None, None, Some(9), None], 0),
            (2, [None, None, Some(10), None], 1),
        ],
    );
}

/// Eight threads took part in each barrier, now four do: the parallel regions, which are
/// counted once, are the clock; a quarter of 100 beyond 100 is 125.
#[test]
fn a_kind_that_stays_behind_is_waited_for_a_quarter_of_the_phase() {
    let phases = [phase(0, [0; 4]), phase(1, [0, 800, 100, 0])];
    let counts = |regions: u64| [None, Some(regions * 4), Some(regions), None];
    check(
        &phases,
        &[
            (1, counts(100), 0),
            (2, counts(124), 0),
            (3, counts(125), 1),
        ],
    );
}

/// Three barriers at the start are no clock for a thousand of the other kind.
#[test]
fn the_clock_is_what_is_passed_most() {
    let phases = [phase(0, [0; 4]), phase(1, [3, 0, 2, 1000])];
    let counts = |mpi| [Some(0), None, Some(2), Some(mpi)];
    check(&phases, &[(1, counts(1249), 0), (2, counts(1250), 1)]);
}

#[test]
fn without_counts_phases_start_as_in_the_traced_run() {
    let phases = [phase(0, [0; 4]), phase(2, [0; 4]), phase(3, [0; 4])];
    let none = [None; 4];
    let pace = check(
        &phases,
        &[
            (1_999, none, 0),
            (2_000, none, 1),
            (2_999, none, 1),
            (3_000, none, 2),
        ],
    );
    assert_eq!((pace.reached_by(), pace.ratio()), ((false, true), None));
}

/// Two seconds of the traced run took 200 ms; one second more takes 100 ms.
#[test]
fn phases_without_points_between_them_follow_at_the_pace_so_far() {
    let phases = [
        phase(0, [0; 4]),
        phase(2, [8, 0, 0, 0]),
        phase(3, [8, 0, 0, 0]),
    ];
    let pace = check(
        &phases,
        &[
            (200, barriers(8), 1),
            (299, barriers(8), 1),
            (300, barriers(8), 2),
        ],
    );
    assert_eq!(pace.reached_by(), (true, true));
}

/// The traced run took 1.2 s to start, this one 10 ms: the first barrier tells that it has.
#[test]
fn a_phase_that_begins_before_a_barrier_has_begun_once_it_is_passed() {
    let phases = [
        phase(0, [0; 4]),
        phase(2, [0; 4]),
        phase(3, [8, 0, 0, 0]),
        phase(4, [8, 0, 0, 0]),
    ];
    let steps = [
        (9, barriers(0), 0),
        (10, barriers(1), 1),
        (300, barriers(7), 1),
        (301, barriers(8), 2),
        (330, barriers(8), 2),
        (331, barriers(9), 3),
    ];
    let pace = check(&phases, &steps);
    assert_eq!(pace.reached_by(), (true, false));
}

#[test]
fn a_single_phase_stays() {
    check(
        &[phase(0, [0; 4])],
        &[(0, barriers(0), 0), (1 << 40, barriers(9), 0)],
    );
}
