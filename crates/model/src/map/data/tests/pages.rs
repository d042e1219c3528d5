use super::*;
use hither_profile::{PageBudget, PageFirstTouch, PageUse, ProcessIx, Profile, Region, RegionKind};

fn row(slice: u32, page: u32, thread: u32, reads: u64, writes: u64) -> PageUse {
    PageUse {
        slice: SliceIx(slice),
        region: RegionIx(0),
        page: PageNo(page),
        thread: ThreadIx(thread),
        reads,
        writes,
        ..PageUse::default()
    }
}

fn touch(page: u32, thread: u32, slice: u32) -> PageFirstTouch {
    PageFirstTouch {
        region: RegionIx(0),
        page: PageNo(page),
        thread: ThreadIx(thread),
        slice: SliceIx(slice),
        ..PageFirstTouch::default()
    }
}

/// A region of 1024 pages at an address 100 pages past a boundary of 2 MiB.
fn profile() -> Profile {
    Profile {
        regions: vec![Region {
            size: 1024 * 4096,
            address: (2 << 20) + 100 * 4096,
            ..Region::default()
        }],
        pages: vec![
            row(0, 0, 1, 3, 4),
            row(0, 411, 1, 1, 0),
            row(0, 412, 0, 2, 0),
            row(5, 412, 1, 0, 6),
            row(0, 900, 0, 0, 0),
        ]
        .into(),
        first_touch: vec![touch(0, 1, 2), touch(411, 0, 1), touch(1000, 1, 3)].into(),
        ..Profile::default()
    }
}

fn uses(pages: &PlaceablePages, at: usize) -> Vec<PageSliceUse> {
    pages.uses(at).collect()
}

#[test]
fn small_pages_are_those_of_the_profile() {
    let pages = PlaceablePages::from_profile(&profile(), PlacementPageSize::K4);
    let firsts: Vec<u32> = (0..pages.len()).map(|p| pages.page(p).first.0).collect();
    assert_eq!(firsts, [0, 411, 412, 900, 1000]);
    assert_eq!(uses(&pages, 0), [used(0, 1, 7)]);
    assert_eq!(uses(&pages, 2), [used(0, 0, 2), used(5, 1, 6)]);
    assert_eq!(uses(&pages, 3), []);
    assert_eq!(pages.page(2).touch, None);
    assert_eq!(pages.page(4).touch.map(|t| t.thread), Some(ThreadIx(1)));
    assert!((0..5).all(|p| pages.page(p).bytes() == 4096));
}

/// The region begins 100 pages into a block of 512: its first block has pages 0..412, the
/// next 412..924, the last 924..1024, where the region ends. Of the two touches in the first
/// block the earlier counts.
#[test]
fn large_pages_are_cut_by_address() {
    let pages = PlaceablePages::from_profile(&profile(), PlacementPageSize::M2);
    let cut: Vec<(u32, u32)> = (0..pages.len())
        .map(|p| (pages.page(p).first.0, pages.page(p).count))
        .collect();
    assert_eq!(cut, [(0, 412), (412, 512), (924, 100)]);
    assert_eq!(uses(&pages, 0), [used(0, 1, 8)]);
    assert_eq!(uses(&pages, 1), [used(0, 0, 2), used(5, 1, 6)]);
    let numbers: Vec<u32> = (0..3).map(|p| pages.page(p).number).collect();
    assert_eq!(numbers, [0, 1, 2]);
    let touchers: Vec<_> = (0..3)
        .map(|p| pages.page(p).touch.map(|t| t.thread))
        .collect();
    assert_eq!(touchers, [Some(ThreadIx(0)), None, Some(ThreadIx(1))]);
}

/// The second region begins where the first ends, within its last large page, of which the user of the second
/// decides then. A region of another process at the same address does not count.
#[test]
fn regions_that_share_a_large_page_have_one_answer() {
    let mut shared = profile();
    let next = Region {
        size: 600 * 4096,
        address: (2 << 20) + (100 + 1024) * 4096,
        ..Region::default()
    };
    let other = Region {
        process: ProcessIx(1),
        ..next.clone()
    };
    shared.regions.extend([next, other]);
    let of = |region, row: PageUse| PageUse {
        region: RegionIx(region),
        ..row
    };
    shared.pages.push(row(5, 1000, 0, 3, 0));
    shared.pages.extend([
        of(1, row(5, 0, 1, 9, 0)),
        of(1, row(5, 599, 0, 1, 0)),
        of(2, row(5, 0, 0, 99, 0)),
    ]);
    let pages = PlaceablePages::from_profile(&shared, PlacementPageSize::M2);
    let all: Vec<(u32, u32)> = (0..pages.len())
        .map(|p| (pages.page(p).region.0, pages.page(p).first.0))
        .collect();
    assert_eq!(all, [(0, 0), (0, 412), (0, 924), (1, 412), (2, 0)]);
    let parts: Vec<(u32, u32, u32)> = pages
        .parts(2)
        .iter()
        .map(|p| (p.region.0, p.first.0, p.count))
        .collect();
    assert_eq!(parts, [(1, 0, 412)]);
    assert_eq!(uses(&pages, 2), [used(5, 0, 3), used(5, 1, 9)]);
    assert!([0, 1, 3, 4].iter().all(|p| pages.parts(*p).is_empty()));
    // A structure in the second region's part is in that page as well.
    let part = pages.parts(2)[0];
    let held: Vec<_> = pages.held(part.region, part.range()).collect();
    assert_eq!(held, [(2, part.bytes())]);
    let small = PlaceablePages::from_profile(&shared, PlacementPageSize::K4);
    assert!((0..small.len()).all(|p| small.parts(p).is_empty()));
}

#[test]
fn spans_are_by_bytes() {
    let pages = PlaceablePages::from_profile(&profile(), PlacementPageSize::M2);
    let check = |bytes: std::ops::Range<u64>, expected| {
        assert_eq!(
            pages.page_range(RegionIx(0), bytes.clone()),
            expected,
            "{bytes:?}"
        );
    };
    check(0..1, 0..1);
    check(412 * 4096 - 1..412 * 4096, 0..1);
    check(412 * 4096 - 1..412 * 4096 + 1, 0..2);
    check(412 * 4096..u64::MAX, 1..3);
    assert!(pages.page_range(RegionIx(1), 0..u64::MAX).is_empty());
}

/// Counts of a damaged profile do not overflow, and rows of unknown regions do no harm.
#[test]
fn a_damaged_profile_is_survived() {
    let mut damaged = profile();
    damaged
        .pages
        .extend([row(0, 0, 1, u64::MAX, 9), row(0, 0, 0, u64::MAX, u64::MAX)]);
    damaged.pages.push(PageUse {
        region: RegionIx(77),
        page: PageNo(u32::MAX),
        thread: ThreadIx(9),
        reads: 1,
        ..PageUse::default()
    });
    for size in [PlacementPageSize::K4, PlacementPageSize::M2] {
        let pages = PlaceablePages::from_profile(&damaged, size);
        for policy in &data_policies() {
            let got = place(&**policy, &two(), &pages, &[9999, 9999]).unwrap();
            assert_eq!(got.len(), pages.len());
        }
    }
}

/// Rows of several pages stand for what rows of each would.
#[test]
fn merged_rows_are_placed_as_their_pages_are() {
    let users = |page| [row(0, page, 0, 6, 2), row(0, page, 1, 3, 1)];
    let single = Profile {
        pages: (0..700).flat_map(users).collect(),
        first_touch: (0..700).map(|page| touch(page, 1, 0)).collect(),
        ..profile()
    };
    let mut merged = single.clone();
    let budget = PageBudget {
        rows: 2,
        bytes: u64::MAX,
    };
    assert!(merged.merge_pages(budget).is_some());
    assert_eq!(merged.pages.row_count(), 2);
    for size in [PlacementPageSize::K4, PlacementPageSize::M2] {
        let [one, other] = [&single, &merged].map(|p| PlaceablePages::from_profile(p, size));
        assert_eq!(one.len(), other.len());
        for at in 0..one.len() {
            assert_eq!(one.page(at), other.page(at));
            assert_eq!(uses(&one, at), uses(&other, at));
        }
    }
}

/// Code and constants of a program up to the first page that any process writes, all of a shared mapping of a
/// file, and what nobody writes of a private one.
#[test]
fn pages_of_files_lie_in_the_page_cache() {
    let region = |kind, file: &str, process| Region {
        kind,
        file: file.to_owned(),
        process: ProcessIx(process),
        size: 8 * 4096,
        ..Region::default()
    };
    let row = |region, page, reads, writes| PageUse {
        region: RegionIx(region),
        ..row(0, page, 0, reads, writes)
    };
    let mut profile = Profile {
        regions: vec![
            region(RegionKind::Elf, "/bin/app", 0),
            region(RegionKind::Elf, "/bin/app", 1),
            region(RegionKind::Mmap, "/data/table", 0),
            region(RegionKind::Mmap, "", 0),
            region(RegionKind::Shared, "/data/table", 0),
            region(RegionKind::Shared, "/dev/shm/table", 0),
            region(RegionKind::Shared, "", 0),
        ],
        pages: vec![
            row(0, 0, 9, 0),
            row(0, 2, 9, 0),
            row(0, 3, 9, 1),
            row(0, 4, 9, 0),
            row(1, 1, 9, 0),
            row(1, 2, 1, 1),
            row(2, 0, 9, 0),
            row(2, 1, 9, 1),
            row(3, 0, 9, 0),
            row(4, 0, 9, 1),
            row(5, 0, 9, 0),
            row(6, 0, 9, 0),
        ]
        .into(),
        ..Profile::default()
    };
    let cached = |profile: &Profile, size| {
        let pages = PlaceablePages::from_profile(profile, size);
        let cached = cached_pages(profile, &pages);
        let cached = (0..pages.len()).filter(|&p| cached[p]);
        let name = |p: usize| (pages.page(p).region.0, pages.page(p).first.0);
        cached.map(name).collect::<Vec<_>>()
    };
    let small = [(0, 0), (1, 1), (2, 0), (4, 0)];
    assert_eq!(cached(&profile, PlacementPageSize::K4), small);
    assert_eq!(cached(&profile, PlacementPageSize::M2), [(4, 0)]);
    profile.meta.online = Some(Default::default());
    assert_eq!(cached(&profile, PlacementPageSize::K4), [(4, 0)]);
}
