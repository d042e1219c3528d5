use super::super::region_table::{RegionTable, RegionTableConfig};
use super::*;

const SECOND: u64 = 1_000_000_000;

/// Accesses (thread, byte, millisecond) and the events that they make.
#[track_caller]
fn check(settings: RegionTableConfig, accesses: &[(u16, u64, u64)], expected: &[(u16, u16, u32)]) {
    let mut table = RegionTable::new(settings);
    let mut matrix = SharingMatrix::default();
    for &(who, at, ms) in accesses {
        table.access(&access(who, 0, at, ms), &mut matrix);
    }
    assert_eq!(events(&matrix), expected);
}

/// Figure 3: thread 0 accesses a page, later thread 1 does, and cell (0, 1) is incremented.
#[test]
fn the_example_of_figure_3() {
    check(
        RegionTableConfig::default(),
        &[(0, 8, 0), (1, 16, 500)],
        &[(0, 1, 1)],
    );
}

#[test]
fn every_access_communicates_with_all_sharers_in_the_window() {
    let settings = RegionTableConfig::default();
    check(settings, &[(0, 0, 0), (0, 0, 1), (0, 0, 2)], &[]);
    check(settings, &[(0, 0, 0), (1, 0, 1), (1, 0, 2)], &[(0, 1, 2)]);
    check(
        settings,
        &[(0, 0, 0), (1, 0, 1), (2, 0, 2)],
        &[(0, 1, 1), (0, 2, 1), (1, 2, 1)],
    );
    check(settings, &[(0, 0, 0), (1, 4096, 1)], &[]);
}

/// III.C.2: accesses that are too far apart are no communication.
#[test]
fn the_window_keeps_out_false_communication_over_time() {
    let settings = RegionTableConfig {
        window: SECOND / 10,
        ..RegionTableConfig::default()
    };
    check(settings, &[(0, 0, 0), (1, 0, 100)], &[(0, 1, 1)]);
    check(settings, &[(0, 0, 0), (1, 0, 101)], &[]);
    // A thread's last access counts, not its first.
    check(
        settings,
        &[(0, 0, 0), (0, 0, 90), (1, 0, 150)],
        &[(0, 1, 1)],
    );
}

/// Times are kept in 32 bits: on a machine that is up for 49 days and longer the window is
/// what it is elsewhere.
#[test]
fn the_window_is_the_same_when_the_machine_is_up_for_long() {
    let settings = RegionTableConfig {
        window: SECOND / 10,
        ..RegionTableConfig::default()
    };
    for up in [(1 << 32) - 50, 1 << 32, 5 << 32] {
        check(settings, &[(0, 0, up), (1, 0, up + 100)], &[(0, 1, 1)]);
        check(settings, &[(0, 0, up), (1, 0, up + 101)], &[]);
        // Records of two processors may come a little out of order.
        check(settings, &[(0, 0, up + 2), (1, 0, up)], &[(0, 1, 1)]);
    }
}

/// III.C.1: the size of a region is not that of a page.
#[test]
fn granularity_may_be_finer_and_coarser_than_pages() {
    let of = |granularity| RegionTableConfig {
        granularity,
        ..RegionTableConfig::default()
    };
    let accesses = [(0, 0, 0), (1, 64, 1), (2, 127, 2), (3, 8192, 3)];
    check(of(64), &accesses, &[(1, 2, 1)]);
    check(of(4096), &accesses, &[(0, 1, 1), (0, 2, 1), (1, 2, 1)]);
    check(of(1 << 20), &accesses[2..], &[(2, 3, 1)]);
}

#[test]
fn regions_that_collide_overwrite_one_another() {
    let one = RegionTableConfig {
        elements: 1,
        ..RegionTableConfig::default()
    };
    check(one, &[(0, 0, 0), (1, 4096, 1), (2, 0, 2)], &[]);
    check(one, &[(0, 0, 0), (1, 0, 1)], &[(0, 1, 1)]);
}

#[test]
fn the_oldest_sharer_makes_room() {
    let mut accesses: Vec<_> = (0..9).map(|i| (i, 0, u64::from(i))).collect();
    accesses.push((9, 0, 9));
    let mut table = RegionTable::new(RegionTableConfig::default());
    let mut matrix = SharingMatrix::default();
    for (who, at, ms) in accesses {
        table.access(&access(who, 0, at, ms), &mut matrix);
    }
    let of_nine: Vec<_> = events(&matrix).into_iter().filter(|e| e.1 == 9).collect();
    // Threads 1 to 8 are remembered, 0 is not.
    let expected: Vec<_> = (1..9).map(|i| (i, 9, 1)).collect();
    assert_eq!(of_nine, expected);
}

#[test]
fn what_is_gone_is_forgotten() {
    let mut table = RegionTable::new(RegionTableConfig::default());
    let mut matrix = SharingMatrix::default();
    table.access(&access(0, 0, 0, 0), &mut matrix);
    table.access(&access(1, 0, 4096, 0), &mut matrix);
    assert_eq!(table.footprint().entries, 2);
    table.forget_sharers(&[SharerId(0)]);
    table.access(&access(2, 0, 0, 1), &mut matrix);
    assert_eq!(events(&matrix), []);
    table.forget_objects(&[MemoryObject(0)]);
    assert_eq!(table.footprint().entries, 2);
    let seen = table.access(&access(2, 0, 4096, 1), &mut matrix);
    assert!(!seen.known);
    assert_eq!(events(&matrix), []);
}
