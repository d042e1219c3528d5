use super::{close, nodes, table, uses};
use crate::metrics::exclusivity::{exclusivity, page_exclusivity};
use crate::metrics::page_access::{first_toucher_of_pages, PageAccessTable};
use crate::metrics::page_id::{PageId, PageSize};
use crate::metrics::placement_accuracy::{accuracy_of, page_migrations};
use hither_profile::*;
use proptest::prelude::*;

#[test]
fn opt_5_page_exclusivity() {
    let check = |per_node: &[u64], want| assert_eq!(page_exclusivity(per_node), want);
    check(&[6, 2], Some(0.75));
    check(&[5, 5, 5, 5], Some(0.25)); // the least: 1/N
    check(&[0, 9], Some(1.0)); // the most
    check(&[0, 0], None);
    check(&[], None);
}

/// Threads 0, 1 on node 0 and 2 on node 1. Page 0: 6 + 0 | 2: E = 6/8 of 8 accesses;
/// page 1: 1 + 1 | 2: E = 2/4 of 4. E_app = (6 + 2) / 12, mean E_page = (0.75 + 0.5) / 2.
#[test]
fn opt_6_application_exclusivity() {
    let t = table(&[&[6, 0, 2], &[1, 1, 2]]);
    let e = exclusivity(&t, 2, &nodes(&[0, 0, 1])).unwrap();
    close(e.app, 8.0 / 12.0);
    close(e.page_mean, 0.625);
    // kMAF figure 2: 0.75 rounds to 80 %, 0.5 is 50 %.
    assert_eq!((e.histogram_pages[8], e.histogram_pages[5]), (1, 1));
    assert_eq!((e.histogram_accesses[8], e.histogram_accesses[5]), (8, 4));
    assert_eq!(exclusivity(&table(&[]), 2, &[]), None);
}

/// As above, pages first touched by thread 2 (node 1). Page 0 is used most by node 0: 0;
/// page 1 is used alike by both: 1. Acc_page = 1/2, Acc_app = 4/12; local 2 + 2 of 12.
#[test]
fn opt_8_9_accuracy_of_first_touch() {
    let t = table(&[&[6, 0, 2], &[1, 1, 2]]);
    let of = nodes(&[0, 0, 1]);
    let a = accuracy_of(&t, 0..2, 2, &of, |_| Some(NodeIx(1))).unwrap();
    close(a.page, 0.5);
    close(a.app, 4.0 / 12.0);
    close(a.local, 4.0 / 12.0);
    // A page with no known place does not count.
    let known = |id: PageId| (id == PageId::of_region(RegionIx(0), 1)).then_some(NodeIx(1));
    let a = accuracy_of(&t, 0..2, 2, &of, known).unwrap();
    assert_eq!((a.page, a.app, a.pages), (1.0, 1.0, 1));
    assert_eq!(accuracy_of(&t, 0..2, 2, &of, |_| None), None);
}

/// Page 0 begins on node 0 (thread 0 touched it), is used most by node 1 in slice 5 (it
/// moves), alike in slice 10 (it stays), by node 0 in slice 15 (it moves back).
/// E of slice 5: 3/4; slice 10: 2/4; slice 15: 4/4.
#[test]
fn opt_5_2_2_migrations_start_from_first_touch() {
    let mut profile = Profile {
        threads: vec![Thread::default(); 2],
        first_touch: vec![PageFirstTouch::default()].into(),
        ..Profile::default()
    };
    for (slice, row) in [(15, [4, 0]), (5, [1, 3]), (10, [2, 2])] {
        profile.pages.extend(uses(slice, &[&row]));
    }
    let touchers = first_toucher_of_pages(&profile.first_touch, &[], PageSize::K4);
    let table = PageAccessTable::from_rows(&profile.pages, &profile.regions, PageSize::K4);
    let whole = (&table, PageSize::K4);
    let t = page_migrations(&profile, whole, 2, &nodes(&[0, 1]), &touchers);
    let got: Vec<_> = t
        .slices
        .iter()
        .map(|s| (s.first.0, s.exclusivity, s.migrations))
        .collect();
    assert_eq!(got, [(5, 0.75, 1), (10, 0.5, 0), (15, 1.0, 1)]);
    assert_eq!((t.migrations, t.moved_once, t.moved_more), (2, 0, 1));
}

/// A region of process 0.
fn region(address: u64) -> Region {
    Region {
        address,
        ..Region::default()
    }
}

/// Region at 3 MiB - 4 KiB: the boundary of 2 MiB behind it, 4 MiB, is its page 257, and 64 MiB
/// its page 61 x 256 + 1 = 15617.
#[test]
fn large_pages_follow_the_address() {
    let regions = [region((3 << 20) - 4096)];
    let page = |size: PageSize, page| size.page_of(&regions, RegionIx(0), PageNo(page)).number();
    assert_eq!(
        [0, 256, 257, 768, 769].map(|p| page(PageSize::M2, p)),
        [1, 1, 2, 2, 3]
    );
    assert_eq!([0, 256].map(|p| page(PageSize::K4, p)), [0, 256]);
    assert_eq!([0, 15616, 15617].map(|p| page(PageSize::M64, p)), [0, 0, 1]);
    // Nothing known about the region: from its start.
    let unknown = PageSize::M2.page_of(&[], RegionIx(0), PageNo(512));
    assert_eq!(unknown, PageId::of_region(RegionIx(0), 1));
}

/// Regions at 5, 1 and 4 MiB, of one page each: those at 5 and 4 MiB share the 2 MiB from 4 MiB
/// on. One of another process at 1 MiB, and memory that processes share,
/// lie apart.
#[test]
fn regions_side_by_side_share_a_large_page() {
    let other = Region {
        process: ProcessIx(1),
        ..region(1 << 20)
    };
    let shared = Region {
        kind: RegionKind::Shared,
        ..region(1 << 20)
    };
    let at = [5, 1, 4].map(|mib: u64| region(mib << 20));
    let regions: Vec<Region> = at.into_iter().chain([other, shared]).collect();
    let rows: Vec<PageUse> = (0..5)
        .map(|r| PageUse {
            region: RegionIx(r),
            thread: ThreadIx(r),
            reads: 10,
            ..PageUse::default()
        })
        .collect();
    let table = PageAccessTable::from_rows(&rows.iter().copied().collect(), &regions, PageSize::M2);
    let users: Vec<Vec<u32>> = (0..table.len())
        .map(|p| table.uses(p).iter().map(|u| u.thread().0).collect())
        .collect();
    assert_eq!(users, [vec![4], vec![1], vec![0, 2], vec![3]]);
    let small = PageAccessTable::from_rows(&rows.iter().copied().collect(), &regions, PageSize::K4);
    assert_eq!(small.len(), 5);
    assert_eq!(small.merge_into(&regions, PageSize::M2), table);
}

#[test]
fn a_large_page_is_placed_by_its_earliest_touch() {
    let touch = |page, thread, slice| PageFirstTouch {
        region: RegionIx(0),
        page: PageNo(page),
        thread: ThreadIx(thread),
        slice: SliceIx(slice),
        ..PageFirstTouch::default()
    };
    let rows = [
        touch(0, 3, 9),
        touch(7, 1, 2),
        touch(8, 2, 2),
        touch(600, 4, 0),
    ];
    let first = first_toucher_of_pages(&rows.iter().copied().collect(), &[], PageSize::M2);
    let of = |number| first.get(PageId::of_region(RegionIx(0), number));
    assert_eq!((of(0), of(1)), (Some(&ThreadIx(1)), Some(&ThreadIx(4))));
    let row = |region| PageFirstTouch {
        region: RegionIx(region),
        ..touch(0, region, 1)
    };
    let rows = [
        row(1),
        row(0),
        touch(0, 5, 1),
        touch(0, 6, 0),
        touch(0, 7, 0),
    ];
    let first = first_toucher_of_pages(&rows.iter().copied().collect(), &[], PageSize::K4);
    let all: Vec<_> = first.iter().map(|(id, t)| (id, t.0)).collect();
    let page = |region| PageId::of_region(RegionIx(region), 0);
    assert_eq!(all, [(page(0), 6), (page(1), 1)]);
}

#[test]
fn rows_of_all_slices_add_up() {
    let mut rows = uses(7, &[&[1, 2], &[0, 0]]);
    rows.extend(uses(3, &[&[10, 0]]));
    let t = PageAccessTable::from_rows(&rows.iter().copied().collect(), &[], PageSize::K4);
    assert_eq!(t.len(), 1, "a page without accesses is not used");
    let counts: Vec<u64> = t.uses(0).iter().map(|u| u.accesses()).collect();
    assert_eq!(counts, [11, 2]);
}

#[test]
fn absurd_counts_do_not_panic() {
    let most = u64::MAX;
    let mut rows = uses(0, &[&[most, most], &[most, 1]]);
    rows[0].writes = most;
    rows.extend(uses(1, &[&[most, most]]));
    let t = PageAccessTable::from_rows(&rows.iter().copied().collect(), &[], PageSize::K4);
    let e = exclusivity(&t, 2, &nodes(&[0, 1])).unwrap();
    assert!((0.5..=1.0).contains(&e.app));
    assert_eq!(e.histogram_pages[5] + e.histogram_pages[10], 2);
}

proptest! {
    #[test]
    fn exclusivity_is_between_one_nth_and_one(
        rows in prop::collection::vec(prop::collection::vec(0u64..100, 6), 1..20),
        of in prop::collection::vec(0u32..4, 6),
    ) {
        let rows: Vec<&[u64]> = rows.iter().map(Vec::as_slice).collect();
        if let Some(e) = exclusivity(&table(&rows), 4, &nodes(&of)) {
            prop_assert!((0.25..=1.0).contains(&e.app));
            prop_assert!((0.25..=1.0).contains(&e.page_mean));
        }
    }

    #[test]
    fn larger_pages_hold_the_same_accesses_and_are_not_more_exclusive(
        rows in prop::collection::vec((0u32..4, 0u32..2000, 0u32..4, 0u64..100), 1..100),
        addresses in prop::collection::vec(0u64..1 << 28, 3),
    ) {
        let rows: Vec<PageUse> = rows.iter().map(|&(region, page, thread, reads)| PageUse {
            region: RegionIx(region), page: PageNo(page), thread: ThreadIx(thread), reads,
            ..PageUse::default()
        }).collect();
        let regions: Vec<Region> = addresses.iter().map(|a| region(a & !0xfff)).collect();
        let of = nodes(&[0, 1, 0, 1]);
        let mut last = f64::INFINITY;
        let mut totals = Vec::new();
        for size in [PageSize::K4, PageSize::M2, PageSize::M64] {
            let t = PageAccessTable::from_rows(&rows.iter().copied().collect(), &regions, size);
            let small = PageAccessTable::from_rows(&rows.iter().copied().collect(), &regions, PageSize::K4);
            prop_assert_eq!(&small.merge_into(&regions, size), &t);
            totals.push((0..t.len()).flat_map(|p| t.uses(p)).map(|u| u.accesses()).sum::<u64>());
            if let Some(e) = exclusivity(&t, 2, &of) {
                prop_assert!(e.app <= last + 1e-12);
                last = e.app;
            }
        }
        prop_assert!(totals.iter().all(|t| *t == totals[0]));
    }
}

/// Rows of several pages stand for what rows of each would.
#[test]
fn merged_rows_are_read_as_their_pages_are() {
    let row = |page, thread, reads| PageUse {
        page: PageNo(page),
        thread: ThreadIx(thread),
        reads,
        ..PageUse::default()
    };
    let touch = |page| PageFirstTouch {
        page: PageNo(page),
        thread: ThreadIx(page / 400),
        ..PageFirstTouch::default()
    };
    let single = Profile {
        pages: (0..700)
            .flat_map(|page| [row(page, 0, 8), row(page, 1, 3)])
            .collect(),
        first_touch: (0..700).map(touch).collect(),
        regions: vec![Region {
            address: (2 << 20) + 100 * PAGE_SIZE,
            size: 700 * PAGE_SIZE,
            ..Region::default()
        }],
        ..Profile::default()
    };
    let mut merged = single.clone();
    let budget = PageBudget {
        rows: 2,
        bytes: u64::MAX,
    };
    assert!(merged.merge_pages(budget).is_some());
    assert_eq!(
        (merged.pages.row_count(), merged.first_touch.row_count()),
        (2, 2)
    );
    for size in [PageSize::K4, PageSize::M2] {
        let [one, other] = [&single, &merged].map(|p| {
            let table = PageAccessTable::from_rows(&p.pages, &p.regions, size);
            (
                table,
                first_toucher_of_pages(&p.first_touch, &p.regions, size),
            )
        });
        assert_eq!(one, other);
    }
}
