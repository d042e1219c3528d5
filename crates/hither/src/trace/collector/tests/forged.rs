//! A target that writes nonsense on purpose: what that costs the collector is bounded.
use super::fake::Fake;
use super::Names;
use hither_sys::wire::{BlockOwner, SegmentHeader, SegmentThread};
use std::mem::offset_of;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

#[test]
fn an_arena_that_many_threads_claim_is_read_once() {
    let mut f = Fake::new(|_| {});
    f.process(1, 0);
    f.thread(1, 1, 0);
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
    let mut f = Fake::new(|_| {});
    f.process(1, 0);
    f.thread(1, 1, 0);
    f.page(64, 0x7f00_0000_0000, 1, 1);
    let segment = Arc::clone(&f.engine.segment);
    let owners = segment.layout().owners;
    for block in 1..OWNERS {
        let at = owners + u64::from(block) * size_of::<BlockOwner>() as u64;
        segment.store_u32(at + offset_of!(BlockOwner, thread) as u64, 1);
        segment.store_u32(at + offset_of!(BlockOwner, page_block) as u64, 1);
    }
    segment.store_u32(offset_of!(SegmentHeader, next_block) as u64, OWNERS);
    let memory = || {
        let file = std::fs::metadata(segment.attach_path());
        file.expect("the segment").blocks() * 512
    };
    let before = memory();
    let target = &mut f.engine.target_state;
    let rows = f.engine.page_reader.read_all_blocks(&segment, target);
    assert_eq!(rows, []);
    assert!(memory() - before < 1 << 20, "{} bytes", memory() - before);
}
