//! Page ids that are used again once their pages have ended.
use super::fake::{Fake, MIB};
use super::{pages_of, NoNames};
use hither_profile::{PageNo, Profile, ThreadIx};
use hither_sys::wire::{self, SegmentHeader};
use std::collections::BTreeMap;
use std::mem::offset_of;

const ADDRESS: u64 = 0x7f00_0000_0000;
const GROUP: u64 = 64 * 4096;
/// More than it takes until ids are used again.
const MANY: u64 = 1 << 20;

/// One thread that has mapped a group of pages and touched the first.
fn one_mapping() -> Fake {
    let mut f = Fake::with_thread();
    f.map(1, 1, ADDRESS, GROUP);
    f.page(64, ADDRESS, 1, 1);
    f.count(1, 1, 64, 5, 0);
    f
}

/// All pages of a group of ids have ended, and `pages` in all.
fn end_group(f: &Fake, group: u32, pages: u64) {
    let segment = &f.engine.segment;
    segment.store_u64(segment.layout().ended + u64::from(group) * 8, u64::MAX);
    segment.store_u64(offset_of!(SegmentHeader, ended_pages) as u64, pages);
}

/// Groups of page ids that were given back to the target.
fn free_groups(f: &Fake) -> Vec<u32> {
    let segment = &f.engine.segment;
    let tail = segment.load_u64(offset_of!(SegmentHeader, free_tail) as u64);
    let slot = |n: u64| segment.load_u32(segment.layout().free_groups + n * 4);
    (0..tail).map(slot).collect()
}

fn slices(f: &mut Fake, n: u32) {
    for _ in 0..n {
        f.engine.end_slice();
    }
}

/// (region, page), reads and writes of a thread, over all slices.
fn totals(p: &Profile, thread: u32) -> Vec<((u32, u32), [u64; 2])> {
    let mut sums: BTreeMap<(u32, u32), [u64; 2]> = BTreeMap::new();
    for (region, page, reads, writes) in pages_of(p, thread) {
        let sum = sums.entry((region, page)).or_default();
        *sum = [sum[0] + reads, sum[1] + writes];
    }
    sums.into_iter().collect()
}

#[test]
fn what_an_id_counted_before_stays_with_the_page_that_it_was() {
    let mut f = one_mapping();
    slices(&mut f, 2);
    f.next_generation();
    f.unmap(1, 1, ADDRESS, GROUP);
    end_group(&f, 1, MANY);
    slices(&mut f, 1);
    f.count(1, 1, 64, 7, 2);
    assert!(free_groups(&f).is_empty());
    slices(&mut f, 2);
    assert_eq!(free_groups(&f), [1]);
    assert_eq!(f.engine.segment.page(64).first_thread, 0);
    f.next_generation();
    f.map(1, 1, ADDRESS, GROUP);
    f.page(64, ADDRESS + 0x3000, 1, 1);
    f.count(1, 1, 64, 17, 2);
    let p = f.finish(&mut NoNames);
    assert_eq!(totals(&p, 0), [((0, 0), [7, 2]), ((1, 3), [10, 0])]);
    assert_eq!((p.threads[0].reads, p.threads[0].writes), (17, 2));
    assert_eq!(p.first_touch.row_count(), 2);
    assert_eq!(p.slices.iter().map(|s| s.accesses).sum::<u64>(), 19);
}

#[test]
fn ids_of_lines_that_a_sleeping_thread_holds_are_not_used_again() {
    let mut f = one_mapping();
    f.thread(2, 1, 1);
    f.entry(2, 3, 64, (11, 0), &[]);
    f.page(128, ADDRESS + 0x1000, 1, 1);
    f.count(2, 1, 128, 1, 0);
    end_group(&f, 1, MANY);
    end_group(&f, 2, MANY);
    slices(&mut f, 5);
    assert_eq!(free_groups(&f), [2]);
    let p = f.finish(&mut NoNames);
    assert_eq!(totals(&p, 0), [((0, 0), [5, 0]), ((0, 1), [1, 0])]);
    assert_eq!(totals(&p, 1), [((0, 0), [11, 0])]);
}

/// A slice may be as long as it takes to touch all memory there is.
#[test]
fn ids_are_used_again_within_a_slice_where_many_pages_end() {
    let mut f = one_mapping();
    f.entry(1, 3, 64, (1, 0), &[]);
    f.page(128, ADDRESS + 0x1000, 1, 1);
    f.count(2, 1, 128, 9, 0);
    end_group(&f, 1, MANY);
    end_group(&f, 2, MANY);
    f.engine.drain_events();
    f.engine.reuse_pages();
    f.engine.reuse_pages();
    assert!(free_groups(&f).is_empty());
    end_group(&f, 2, 2 * MANY);
    f.engine.reuse_pages();
    assert_eq!(free_groups(&f), [2], "a line of the other is held");
    let p = f.finish(&mut NoNames);
    assert_eq!(totals(&p, 0), [((0, 0), [6, 0]), ((0, 1), [9, 0])]);
    assert_eq!(p.slices.iter().map(|s| s.accesses).sum::<u64>(), 15);
}

#[test]
fn few_ended_pages_are_left_as_they_are() {
    let mut f = one_mapping();
    end_group(&f, 1, 1000);
    slices(&mut f, 5);
    assert!(free_groups(&f).is_empty());
}

#[test]
fn pages_that_had_one_name_in_turn_are_one() {
    let mut f = one_mapping();
    let line = |n| wire::LineObservation {
        page: 64,
        site: 0,
        at: 0,
        kind: wire::OBSERVED_WRITE,
        n,
    };
    f.thread(2, 1, 1);
    f.seen(1, line(8));
    f.seen(2, line(8));
    end_group(&f, 1, MANY);
    slices(&mut f, 3);
    f.page(64, ADDRESS, 1, 2);
    f.count(1, 1, 64, 6, 0);
    f.seen(2, line(4));
    end_group(&f, 1, 2 * MANY);
    slices(&mut f, 4);
    assert_eq!(free_groups(&f), [1, 1]);
    let p = f.finish(&mut NoNames);
    assert_eq!(totals(&p, 0), [((0, 0), [6, 0])]);
    let first: Vec<_> = p.first_touch.iter().map(|t| (t.page, t.thread)).collect();
    assert_eq!(first, [(PageNo(0), ThreadIx(0))]);
    let lines: Vec<_> = p.lines.iter().map(|l| (l.thread, l.seen)).collect();
    assert_eq!(lines, [(ThreadIx(0), 1), (ThreadIx(1), 2)]);
}

/// 300 mappings of 1 MiB in turn are more than 256 MiB.
#[test]
fn mappings_without_end_follow_one_another_in_a_region() {
    let mut f = Fake::with_thread();
    for n in 0..300 {
        f.map(1, 1, ADDRESS, MIB);
        f.page(64 + n, ADDRESS, 1, 1);
        f.count(1 + n / 64, 1, 64 + n, 1, 0);
        f.next_generation();
        f.unmap(1, 1, ADDRESS, MIB);
        f.next_generation();
    }
    let p = f.finish(&mut NoNames);
    assert_eq!(p.regions.len(), 257);
    let pages = totals(&p, 0);
    assert_eq!(pages.iter().map(|p| p.1[0]).sum::<u64>(), 300);
    assert_eq!(pages[0], ((0, 0), [2, 0]));
    let said = "43 mappings count together with an earlier one of the same size and thread";
    assert!(
        p.meta.limits.iter().any(|l| l.starts_with(said)),
        "{:?}",
        p.meta.limits
    );
}

/// A sentence about one is a sentence too.
#[test]
fn one_mapping_counts_together() {
    let mut f = Fake::with_thread();
    for _ in 0..258 {
        f.map(1, 1, ADDRESS, MIB);
        f.next_generation();
        f.unmap(1, 1, ADDRESS, MIB);
        f.next_generation();
    }
    let p = f.finish(&mut NoNames);
    let said = "1 mapping counts together with an earlier one of";
    assert!(
        p.meta.limits.iter().any(|l| l.starts_with(said)),
        "{:?}",
        p.meta.limits
    );
}

/// As of the kernel's pages with the clock. Their ids could not be used again, nor those of their groups.
#[test]
fn pages_of_no_mapping_have_a_name_once_their_process_has_ended() {
    let mut f = Fake::with_thread();
    f.page(64, ADDRESS, 1, 1);
    f.count(1, 1, 64, 5, 0);
    f.engine.end_slice();
    f.engine.end_slice();
    for (process, unnamed) in [(2, 1), (1, 0)] {
        let engine = &mut f.engine;
        let (segment, regions) = (&engine.segment, &mut engine.target_state.regions);
        let reader = &mut engine.page_reader;
        reader.name_rest_of(segment, regions, &[process].into());
        assert_eq!(reader.unnamed_groups().len(), unnamed, "{process}");
    }
}
