//! Packing and merging: nothing is lost, and what is hot stays hot.
use super::unpack;
use crate::report::sparse_table::SparseTable;
use proptest::prelude::*;

fn table(rows: u32, columns: &[&[(u32, u64)]]) -> SparseTable {
    let mut table = SparseTable::new(rows);
    for column in columns {
        table.push(column.iter().copied());
    }
    table
}

#[test]
fn counts_come_back_to_the_last_digit() {
    let full = table(
        4,
        &[&[(0, 1), (3, 5_000_000_000)], &[], &[(2, 128), (3, 0)]],
    );
    let grid = full.pack(true);
    assert_eq!((grid.columns, grid.rows, grid.cells), (3, 4, 3));
    assert_eq!((grid.max, grid.step, grid.merged), (5_000_000_000, 0.0, 1));
    assert_eq!(
        unpack(&grid),
        [(0, 0, 1), (0, 3, 5_000_000_000), (2, 2, 128)]
    );
    assert_eq!(unpack(&SparseTable::new(4).pack(true)), []);
}

#[test]
fn halving_keeps_the_larger_of_two() {
    let full = table(3, &[&[(0, 7), (2, 1)], &[(0, 3), (1, 9)], &[(2, 4)]]);
    let half = full.merge_columns().pack(true);
    assert_eq!((half.columns, half.merged, half.max), (2, 2, 9));
    assert_eq!(unpack(&half), [(0, 0, 7), (0, 1, 9), (0, 2, 1), (1, 2, 4)]);
    let quarter = full.merge_columns().merge_columns().pack(true);
    assert_eq!((quarter.columns, quarter.merged), (1, 4));
    assert_eq!(unpack(&quarter), [(0, 0, 7), (0, 1, 9), (0, 2, 4)]);
}

#[test]
fn planted_hot_cells_are_there_at_every_level() {
    const PAGES: u32 = 1000;
    let hot = [(0, 3), (17, 0), (499, 7), (500, 7), (999, 5)];
    let mut level = SparseTable::new(8);
    for page in 0..PAGES {
        let count = |thread| {
            if hot.contains(&(page, thread)) {
                90_000
            } else {
                10
            }
        };
        level.push((0..8).map(|thread| (thread, count(thread))));
    }
    let mut width = 1;
    while level.columns() > 1 {
        for exact in [true, false] {
            let cells = unpack(&level.pack(exact));
            for (page, thread) in hot {
                let hottest = cells.iter().find(|c| (c.0, c.1) == (page / width, thread));
                assert_eq!(
                    hottest.map(|c| c.2),
                    Some(90_000),
                    "page {page} at 1/{width}"
                );
            }
            let count = cells.iter().filter(|c| c.2 == 90_000).count();
            assert!(count <= hot.len(), "{count} hot cells at 1/{width}");
        }
        level = level.merge_columns();
        width *= 2;
    }
}

proptest! {
    /// A byte holds any count to a few per cent, and the largest exactly.
    #[test]
    fn bytes_keep_the_magnitude(counts in proptest::collection::vec(1u64..1 << 44, 1..50)) {
        let mut table = SparseTable::new(counts.len() as u32);
        table.push((0..).zip(counts.iter().copied()));
        let grid = table.pack(false);
        let cells = unpack(&grid);
        let most = counts.iter().copied().max().unwrap_or(0) as f64;
        let tolerance = (most.ln() / 255.0 / 2.0).exp() - 1.0;
        for (cell, count) in cells.iter().zip(&counts) {
            let (is, was) = (cell.2 as f64, *count as f64);
            prop_assert!((is - was).abs() <= was * tolerance + 0.51, "{is} for {was}");
        }
    }

    /// However columns are merged, a row's largest count is its largest count.
    #[test]
    fn merging_keeps_the_largest(
        cells in proptest::collection::vec(
            proptest::collection::btree_map(0u32..6, 1u64..1000, 0..5), 1..40)
    ) {
        let mut table = SparseTable::new(6);
        for column in &cells {
            table.push(column.iter().map(|(row, count)| (*row, *count)));
        }
        let largest = |table: &SparseTable| {
            let mut most = [0; 6];
            for (_, row, count) in unpack(&table.pack(true)) {
                most[row as usize] = count.max(most[row as usize]);
            }
            most
        };
        let expected = largest(&table);
        while table.columns() > 1 {
            table = table.merge_columns();
            prop_assert_eq!(largest(&table), expected);
        }
    }

    /// A table that is merged while it is filled is the one that is merged at the end.
    #[test]
    fn merging_may_come_before_the_last_column(
        cells in proptest::collection::vec(
            proptest::collection::btree_map(0u32..6, 1u64..1000, 0..5), 1..40),
        at in proptest::collection::btree_set(0usize..40, 0..4),
    ) {
        let column = |at: usize| cells[at].iter().map(|(row, count)| (*row, *count));
        let (mut early, mut late) = (SparseTable::new(6), SparseTable::new(6));
        let mut merges = 0;
        for push in 0..cells.len() {
            early.push(column(push));
            late.push(column(push));
            if at.contains(&push) {
                early = early.merge_columns();
                merges += 1;
            }
        }
        for _ in 0..merges {
            late = late.merge_columns();
        }
        prop_assert_eq!(early.pack(true), late.pack(true));
    }
}
