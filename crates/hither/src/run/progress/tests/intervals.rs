use super::moves;
use crate::run::guide::ActivePhases;
use crate::run::progress::change_intervals::ChangeIntervals;
use hither_profile::PlacedPhase;

const MS: u64 = 1_000_000;

/// `steps`: milliseconds, the phase reached, and what holds: threads, pages.
#[track_caller]
fn check(phases: &[PlacedPhase], steps: &[(u64, usize, (usize, usize))]) -> ChangeIntervals {
    let mut intervals = ChangeIntervals::new(phases, 1_000 * MS, 10_000 * MS);
    for &(ms, reached, (threads, pages)) in steps {
        let got = intervals.active_phases(ms * MS, reached);
        assert_eq!(
            got,
            ActivePhases { threads, pages },
            "at {ms} ms in {reached}"
        );
    }
    intervals
}

#[test]
fn threads_move_once_a_second() {
    let phases = [0, 1, 0, 1].map(|unit| moves(unit, false));
    let last = check(
        &phases,
        &[
            (0, 0, (0, 0)),
            (100, 1, (1, 0)),
            (500, 2, (1, 0)),
            // Phase 2 is over before its time has come, and 3 is as 1 is.
            (1_200, 3, (1, 0)),
        ],
    );
    assert!(last.is_settled());
}

#[test]
fn a_change_is_made_up_for_while_its_phase_lasts() {
    let phases = [0, 1, 2].map(|unit| moves(unit, false));
    let last = check(
        &phases,
        &[(100, 1, (1, 0)), (200, 2, (1, 0)), (1_099, 2, (1, 0))],
    );
    assert!(!last.is_settled());
    check(&phases, &[(100, 1, (1, 0)), (1_100, 2, (2, 0))]);
}

#[test]
fn pages_move_once_in_ten_seconds_and_threads_do_not_wait_for_them() {
    let phases = [
        moves(0, true),
        moves(1, true),
        moves(2, true),
        moves(2, false),
    ];
    check(
        &phases,
        &[
            (0, 0, (0, 0)),
            (2_000, 1, (1, 1)),
            (4_000, 2, (2, 1)),
            (11_999, 3, (2, 1)),
            // The moves of phase 2 are made up for in phase 3.
            (12_000, 3, (2, 3)),
        ],
    );
}

#[test]
fn nothing_changes_where_nothing_differs() {
    let phases = [moves(0, true), moves(0, false), moves(0, false)];
    let last = check(&phases, &[(0, 0, (0, 0)), (5, 2, (0, 0))]);
    assert!(last.is_settled());
}
