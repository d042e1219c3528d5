use super::*;
use crate::{ObjectIx, PageNo, SliceIx, ThreadIx};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn used(page: u32, thread: u32, reads: u64) -> PageUse {
    PageUse {
        page: PageNo(page),
        thread: ThreadIx(thread),
        reads,
        ..PageUse::default()
    }
}

fn touched(page: u32, thread: u32) -> PageFirstTouch {
    PageFirstTouch {
        page: PageNo(page),
        thread: ThreadIx(thread),
        ..PageFirstTouch::default()
    }
}

/// Each page's users, with what each reads of it; the first is who touched it.
fn profile(pages: &[(u32, &[(u32, u64)])]) -> Profile {
    let uses = |&(page, users): &(u32, &[(u32, u64)])| {
        let uses = users
            .iter()
            .map(move |&(thread, reads)| used(page, thread, reads));
        uses.collect::<Vec<_>>()
    };
    Profile {
        pages: pages.iter().flat_map(uses).collect(),
        first_touch: pages
            .iter()
            .map(|(page, users)| touched(*page, users[0].0))
            .collect(),
        ..Profile::default()
    }
}

/// (first page, last, thread, reads) of each row.
fn rows(profile: &Profile) -> Vec<(u32, u32, u32, u64)> {
    let row = |u: PageUse| (u.page.0, u.pages().last(), u.thread.0, u.reads);
    profile.pages.rows().map(row).collect()
}

fn budget(rows: usize) -> PageBudget {
    PageBudget {
        rows,
        bytes: u64::MAX,
    }
}

#[test]
fn what_keeps_within_the_budget_stays() {
    let mut p = profile(&[(0, &[(0, 1)]), (1, &[(0, 1)])]);
    let before = p.clone();
    assert_eq!(p.merge_pages(budget(2)), None);
    assert_eq!(p, before);
}

#[test]
fn like_neighbours_come_first_then_those_of_64_kib() {
    // Pages 0 to 2 are alike, 3 has the same user and far more accesses, 5 is not beside them, and
    // 16 lies in the next unit.
    let pages: [(u32, &[(u32, u64)]); 7] = [
        (0, &[(0, 10)]),
        (1, &[(0, 10)]),
        (2, &[(0, 12)]),
        (3, &[(0, 90)]),
        (4, &[(1, 3)]),
        (6, &[(0, 10)]),
        (16, &[(0, 10)]),
    ];
    let merged = |budget_rows| {
        let mut p = profile(&pages);
        let said = p.merge_pages(budget(budget_rows)).unwrap();
        (rows(&p), said)
    };
    let (alike, said) = merged(5);
    let rest = [(4, 4, 1, 3), (6, 6, 0, 10), (16, 16, 0, 10)];
    assert_eq!(alike, [&[(0, 2, 0, 32), (3, 3, 0, 90)], &rest[..]].concat());
    assert!(said.starts_with("There are 5 rows of page use in place of 7: neighbouring pages with the same users and like counts are"), "{said}");
    let (same_users, said) = merged(4);
    assert_eq!(same_users, [&[(0, 3, 0, 122)], &rest[..]].concat());
    assert!(said.contains("up to 64 KiB of them"), "{said}");
    // What is not side by side is bridged last.
    let (all, said) = merged(3);
    assert_eq!(all, [(0, 16, 0, 142), (0, 16, 1, 3)]);
    assert!(
        said.contains("with those between that nobody used"),
        "{said}"
    );
}

#[test]
fn structures_are_not_merged_with_their_neighbours() {
    let pages: Vec<(u32, &[(u32, u64)])> = (0..64).map(|p| (p, &[(0, 1)][..])).collect();
    let mut p = profile(&pages);
    // Of pages 20 to 39, and not on whole pages.
    p.object_ranges = vec![ObjectRange {
        object: ObjectIx(0),
        region: RegionIx(0),
        offset: 20 * PAGE_SIZE + 100,
        length: 20 * PAGE_SIZE - 200,
    }];
    p.merge_pages(budget(3)).unwrap();
    let ends: Vec<_> = rows(&p).iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(ends, [(0, 19), (20, 39), (40, 63)]);
}

#[test]
fn who_touched_most_of_a_unit_counts() {
    let mut p = profile(&[
        (0, &[(3, 1)]),
        (1, &[(1, 1)]),
        (2, &[(1, 1)]),
        (3, &[(2, 1)]),
    ]);
    p.merge_pages(budget(2)).unwrap();
    let touch = p.first_touch.rows().next().unwrap();
    assert_eq!(
        (p.first_touch.row_count(), touch.following, touch.thread.0),
        (1, 3, 1)
    );
    // Uses by the three of them.
    assert_eq!(rows(&p), [(0, 3, 1, 2), (0, 3, 2, 1), (0, 3, 3, 1)]);
}

#[test]
fn small_files_are_a_budget_too() {
    let pages: Vec<(u32, Vec<(u32, u64)>)> = (0..5000)
        .map(|p| (p, vec![(0, u64::from(p * p % 4999))]))
        .collect();
    let pages: Vec<(u32, &[(u32, u64)])> = pages.iter().map(|(p, u)| (*p, &u[..])).collect();
    let mut p = profile(&pages);
    let bytes = encoded_bytes(&p.pages) + encoded_bytes(&p.first_touch);
    let half = PageBudget {
        rows: usize::MAX,
        bytes: bytes / 2,
    };
    p.merge_pages(half).unwrap();
    assert!(encoded_bytes(&p.pages) + encoded_bytes(&p.first_touch) <= bytes / 2);
    assert_eq!(p.first_touch.single_pages(), 5000);
}

proptest! {
    #[test]
    fn totals_and_pages_stay(
        uses in prop::collection::btree_map((0u32..3, 0u32..2, 0u32..900, 0u32..3), 1u64..30, 1..200),
        most in 6usize..80,
    ) {
        let mut p = Profile::default();
        let mut first = BTreeMap::new();
        for (&(slice, region, page, thread), &reads) in &uses {
            p.pages.push(PageUse {
                slice: SliceIx(slice),
                region: RegionIx(region),
                ..used(page, thread, reads)
            });
            first.entry((region, page)).or_insert(thread);
        }
        for (&(region, page), &thread) in &first {
            p.first_touch.push(PageFirstTouch { region: RegionIx(region), ..touched(page, thread) });
        }
        let totals = |p: &Profile| {
            let mut sums: BTreeMap<_, u64> = BTreeMap::new();
            p.pages.iter().for_each(|u| *sums.entry((u.slice, u.region, u.thread)).or_default() += u.reads);
            sums
        };
        let (before, pages) = (totals(&p), first.len() as u64);
        // A row for each slice, region and thread remains.
        let said = p.merge_pages(budget(most.max(before.len())));
        prop_assert!(p.pages.row_count() <= most.max(before.len()));
        prop_assert_eq!(totals(&p), before);
        let bridged = said.is_some_and(|s| s.contains("nobody used"));
        if !bridged {
            prop_assert_eq!(p.first_touch.single_pages(), pages);
            let used: BTreeSet<_> = p.pages.iter().map(|u| (u.region.0, u.page.0)).collect();
            prop_assert_eq!(used, first.into_keys().collect());
        }
    }
}
