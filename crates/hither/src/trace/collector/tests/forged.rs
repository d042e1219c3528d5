//! A target that writes nonsense on purpose: what that costs the collector is bounded.
use super::super::deadline::Deadline;
use super::fake::Fake;
use super::{check_limit, Names, NoNames};
use crate::program::clock::clock_ns;
use hither_sys::wire::{self, BlockOwner, SegmentHeader, SegmentThread};
use hither_sys::Segment;
use nix::time::ClockId;
use std::mem::offset_of;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn an_arena_that_many_threads_claim_is_read_once() {
    let mut f = Fake::with_thread();
    f.page(64, 0x7f00_0000_0000, 1, 1);
    f.entry(1, 3, 64, (80, 20), &[]);
    for slot in 2..=200 {
        f.thread(slot, 1, 1);
        let segment = &f.engine.segment;
        let size = size_of::<SegmentThread>() as u64;
        let at = segment.layout().threads + u64::from(slot) * size;
        segment.store_u32(at + offset_of!(SegmentThread, arena) as u64, 1);
        segment.store_u32(at + offset_of!(SegmentThread, owns_arena) as u64, 1);
        segment.store_u64(at + offset_of!(SegmentThread, used) as u64, 1);
    }
    let p = f.finish(&mut Names);
    let reads: u64 = p.pages.iter().map(|row| row.reads).sum();
    assert_eq!(reads, 80);
}

#[test]
fn forged_owners_of_blocks_take_no_memory() {
    const OWNERS: u32 = 100_000;
    let mut f = Fake::with_thread();
    f.page(64, 0x7f00_0000_0000, 1, 1);
    let segment = Arc::clone(&f.engine.segment);
    let owners = segment.layout().owners;
    for block in 1..OWNERS {
        let at = owners + u64::from(block) * size_of::<BlockOwner>() as u64;
        segment.store_u32(at + offset_of!(BlockOwner, thread) as u64, 1);
        segment.store_u32(at + offset_of!(BlockOwner, page_block) as u64, 1);
    }
    segment.store_u32(offset_of!(SegmentHeader, next_block) as u64, OWNERS);
    let before = memory(&segment);
    let target = &mut f.engine.target_state;
    let rows = f
        .engine
        .page_reader
        .read_all_blocks(&segment, target, &Deadline::default());
    assert_eq!(rows, []);
    let more = memory(&segment) - before;
    assert!(more < 1 << 20, "{more} bytes");
}

/// What the segment takes, in bytes.
fn memory(segment: &Segment) -> u64 {
    let file = std::fs::metadata(segment.attach_path());
    file.expect("the segment").blocks() * 512
}

/// Processor time: on a busy machine all takes long.
fn thread_time() -> Duration {
    Duration::from_nanos(clock_ns(ClockId::CLOCK_THREAD_CPUTIME_ID))
}

/// A few hundred bytes each say that there are caches, rows, objects and pages.
#[test]
fn what_was_never_written_takes_no_memory_when_it_is_read() {
    const THREADS: u32 = 2000;
    let mut f = Fake::with_thread();
    f.page(64, 0x7f00_0000_0000, 1, 1);
    f.count(1, 1, 64, 10, 3);
    let segment = Arc::clone(&f.engine.segment);
    let l = *segment.layout();
    for slot in 2..THREADS {
        f.thread(slot, 1, 1);
        let at = l.threads + u64::from(slot) * size_of::<SegmentThread>() as u64;
        let all = |field: usize, words: u64| {
            (0..words).for_each(|n| segment.store_u64(at + field as u64 + n * 8, u64::MAX));
        };
        segment.store_u32(at + offset_of!(SegmentThread, arena) as u64, slot);
        segment.store_u32(at + offset_of!(SegmentThread, owns_arena) as u64, 1);
        all(offset_of!(SegmentThread, used), 8);
        all(offset_of!(SegmentThread, comm_dirty), 2);
        all(offset_of!(SegmentThread, sample_head), 1);
        let seen = offset_of!(SegmentThread, observation_head);
        segment.store_u32(at + seen as u64, u32::MAX);
        let used = u64::from(wire::PROCESS_OBJECTS / wire::OBJECT_GROUP / 64);
        let row = l.object_used + u64::from(slot) * used * 8;
        (0..used).for_each(|n| segment.store_u64(row + n * 8, u64::MAX));
    }
    for (field, most) in [
        (offset_of!(SegmentHeader, next_object), wire::MAX_OBJECTS),
        (offset_of!(SegmentHeader, next_process), wire::MAX_PROCESSES),
        (offset_of!(SegmentHeader, next_page), wire::MAX_PAGES),
    ] {
        segment.store_u32(field as u64, most);
    }
    let before = memory(&segment);
    let began = thread_time();
    f.engine.end_slice();
    f.engine.end_slice();
    let p = f.finish(&mut NoNames);
    let took = thread_time() - began;
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!((p.threads[0].reads, p.threads[0].writes), (10, 3));
    let more = memory(&segment).saturating_sub(before);
    assert!(more < 16 << 20, "{more} bytes");
}

/// Each child takes its parent's mappings over and changes one.
#[test]
fn forged_forks_take_memory_within_a_budget() {
    const BUDGET: u64 = 16 << 20;
    let mut f = Fake::with_thread();
    for n in 0..5000 {
        f.map(1, 1, 0x7f00_0000_0000 + n * 8192, 4096);
        if n % 1000 == 0 {
            f.engine.end_slice();
        }
    }
    f.page(64, 0x7f00_0000_0000, 1, 1);
    f.count(1, 1, 64, 10, 3);
    f.engine.target_state.regions.budget.most = BUDGET;
    for child in 2..2000 {
        f.process(child, 1);
        f.map(child, 1, 0x7f00_0000_0000, 8192);
        if child % 100 == 0 {
            f.engine.end_slice();
        }
    }
    f.engine.end_slice();
    let spaces = f.engine.target_state.regions.spaces.values();
    let taken: u64 = spaces.map(|space| space.bytes()).sum();
    assert!(taken < 2 * BUDGET, "{taken} bytes");
    let p = f.finish(&mut NoNames);
    assert_eq!((p.threads[0].reads, p.threads[0].writes), (10, 3));
    check_limit(&p, "would have taken too much memory");
}

/// Each entry of each cache was used by thousands of threads before.
#[test]
fn what_would_take_long_to_read_is_left_at_the_end() {
    const THREADS: u32 = 2000;
    const USERS: u64 = 4000;
    let mut f = Fake::with_thread();
    f.page(64, 0x7f00_0000_0000, 1, 1);
    let segment = Arc::clone(&f.engine.segment);
    let l = *segment.layout();
    for slot in 2..THREADS {
        f.thread(slot, 1, 1);
        let arena = l.arenas + u64::from(slot) * l.arena_size;
        for index in 0..l.cache_entries {
            f.entry(slot, index, 64, (9, 9), &[1, 2]);
        }
        // A list of as many as it may be.
        segment.store_u32(arena + l.lists + 4, USERS as u32 | (3 << 16));
        for word in 1..USERS / 2 {
            segment.store_u32(
                arena + l.lists + 4 + word * 4,
                (word as u32 * 2) | (7 << 16),
            );
        }
    }
    f.engine.deadline.arm_after(Duration::from_millis(20));
    let began = thread_time();
    let p = f.finish(&mut NoNames);
    let took = thread_time() - began;
    assert!(took < Duration::from_secs(5), "{took:?}");
    check_limit(&p, "too long to read");
}
