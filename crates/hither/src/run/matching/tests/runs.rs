use super::super::page_runs::*;
use crate::run::guide::PageBind;
use hither_sys::Node;

fn runs(of: &[(u64, u64, u32)]) -> Vec<NodeRun> {
    let run = |r: &(u64, u64, u32)| NodeRun {
        first: r.0,
        end: r.1,
        node: Node(r.2),
    };
    of.iter().map(run).collect()
}

#[test]
fn what_lies_on_top_counts() {
    let check = |under: &[_], over: &[_], expected: &[_]| {
        assert_eq!(overlay(&runs(under), &runs(over)), runs(expected));
    };
    check(&[], &[(1, 2, 0)], &[(1, 2, 0)]);
    check(&[(1, 2, 0)], &[], &[(1, 2, 0)]);
    check(
        &[(0, 10, 0)],
        &[(3, 5, 1)],
        &[(0, 3, 0), (3, 5, 1), (5, 10, 0)],
    );
    check(
        &[(0, 4, 0), (6, 9, 0)],
        &[(2, 7, 1)],
        &[(0, 2, 0), (2, 7, 1), (7, 9, 0)],
    );
    check(&[(0, 4, 0)], &[(4, 6, 0)], &[(0, 6, 0)]);
    check(&[(0, 2, 0), (4, 6, 0)], &[(2, 4, 0)], &[(0, 6, 0)]);
    check(
        &[(0, 9, 0)],
        &[(1, 2, 1), (3, 4, 1)],
        &[(0, 1, 0), (1, 2, 1), (2, 3, 0), (3, 4, 1), (4, 9, 0)],
    );
}

#[test]
fn only_what_changes_is_bound_anew() {
    let check = |old: &[_], new: &[_], expected: &[_]| {
        assert_eq!(changed_runs(&runs(old), &runs(new)), runs(expected));
    };
    check(&[(0, 10, 0)], &[(0, 10, 0)], &[]);
    check(&[(0, 10, 0)], &[(0, 10, 1)], &[(0, 10, 1)]);
    check(
        &[(0, 4, 0), (4, 8, 1)],
        &[(0, 5, 0), (5, 8, 1)],
        &[(4, 5, 0)],
    );
    // On one node in the end: from the first to the last page that was not.
    check(
        &[(0, 9, 0)],
        &[(0, 2, 1), (2, 4, 0), (4, 9, 1)],
        &[(0, 2, 1), (4, 9, 1)],
    );
    check(
        &[(2, 4, 1), (6, 9, 0)],
        &[(0, 4, 1), (5, 9, 1)],
        &[(0, 9, 1)],
    );
    check(&[], &[(3, 4, 0)], &[(3, 4, 0)]);
}

/// Pages of a region in a piece of memory of `pages` pages at page 100, the first of which
/// is the region's page `offset`.
#[track_caller]
fn bound(
    of: &[(u64, u64, u32)],
    fit: RegionFit,
    offset: u64,
    pages: u64,
    expected: &[(u64, u64, u32)],
) {
    let piece = AreaPiece {
        offset,
        pages,
        at: 100,
    };
    let mut binds = Vec::new();
    append_binds(&runs(of), fit, piece, GapRule::Fill, &mut binds);
    let run = |b: &PageBind| {
        (
            b.start >> PAGE_BITS,
            (b.start + b.length) >> PAGE_BITS,
            b.node.0,
        )
    };
    assert_eq!(binds.iter().map(run).collect::<Vec<_>>(), expected);
}

#[test]
fn pages_in_a_piece() {
    let two = [(0, 4, 0), (6, 8, 1)];
    bound(
        &two,
        RegionFit::SAME,
        0,
        10,
        &[(100, 104, 0), (106, 108, 1)],
    );
    bound(&two, RegionFit::SAME, 2, 5, &[(100, 102, 0), (104, 105, 1)]);
    bound(&two, RegionFit::SAME, 8, 5, &[]);
    bound(
        &two,
        RegionFit::Shift(3),
        0,
        10,
        &[(103, 107, 0), (109, 110, 1)],
    );
    bound(
        &two,
        RegionFit::Shift(-3),
        0,
        10,
        &[(100, 101, 0), (103, 105, 1)],
    );
    bound(
        &two,
        RegionFit::Scale { from: 8, to: 16 },
        0,
        16,
        &[(100, 108, 0), (112, 116, 1)],
    );
    // 4 of 8 pages become 1.5 of 3: rounded down on both sides, so nothing overlaps.
    bound(
        &[(0, 4, 0), (4, 8, 1)],
        RegionFit::Scale { from: 8, to: 3 },
        0,
        3,
        &[(100, 101, 0), (101, 103, 1)],
    );
    bound(
        &[(0, 1, 0), (1, 2, 1)],
        RegionFit::Scale { from: 8, to: 4 },
        0,
        4,
        &[(100, 101, 1)],
    );
    // Pages between two on one node, not touched in the profile.
    bound(
        &[(0, 1, 0), (5, 6, 0), (8, 9, 1)],
        RegionFit::SAME,
        0,
        9,
        &[(100, 106, 0), (108, 109, 1)],
    );
}

#[test]
fn blocks_go_where_most_of_them_belongs() {
    let check = |of: &[_], block, expected: &[_]| {
        assert_eq!(majority_runs(&runs(of), block), runs(expected));
    };
    check(&[(0, 3, 0), (3, 8, 1)], 4, &[(0, 4, 0), (4, 8, 1)]);
    check(&[(1, 2, 0), (9, 10, 0)], 4, &[(0, 4, 0), (8, 12, 0)]);
    // Page by page in turn: half of the blocks to each.
    let turns: Vec<(u64, u64, u32)> = (0..16).map(|p| (p, p + 1, (p % 2) as u32)).collect();
    check(
        &turns,
        2,
        &[
            (0, 2, 0),
            (2, 4, 1),
            (4, 6, 0),
            (6, 8, 1),
            (8, 10, 0),
            (10, 12, 1),
            (12, 14, 0),
            (14, 16, 1),
        ],
    );
}

#[test]
fn coarsening_stops_when_there_are_few_enough() {
    let turns: Vec<(u64, u64, u32)> = (0..64).map(|p| (p, p + 1, (p % 4) as u32)).collect();
    let (blocks, block) = coarsen(&runs(&turns), 8);
    assert_eq!((count_stretches(&blocks), block), (8, 8));
    let mut pages = [0; 4];
    blocks
        .iter()
        .for_each(|b| pages[b.node.0 as usize] += b.end - b.first);
    assert_eq!(pages, [16; 4], "every node gets its share");
    assert_eq!(
        count_stretches(&runs(&[(0, 1, 0), (5, 6, 0), (6, 7, 1)])),
        2
    );
}
