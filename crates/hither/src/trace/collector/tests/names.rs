//! Which mapping a page belongs to while mappings are still being reported, and what shared memory is called.
use super::fake::{Fake, MIB};
use super::{pages_of, Names, NoNames};
use crate::trace::collector::regions::RegionMap;
use hither_profile::{ObjectKind, RegionKind};

/// The loader maps a library's segments before the tracer tells that it is one, and a page
/// pass may come in between.
#[test]
fn a_segment_touched_before_its_module_is_known_belongs_to_it() {
    let mut f = Fake::with_thread();
    f.map(1, 1, 0x7f00_0000_0000, 0x4000);
    f.map(1, 1, 0x7f00_0000_4000, 0x2000);
    f.page(64, 0x7f00_0000_5000, 1, 1);
    f.count(1, 1, 64, 5, 0);
    f.engine.end_slice();
    f.engine.end_slice();
    f.module(1, 0x7f00_0000_0000, 0x7f00_0000_6000, "/lib/x.so");
    f.page(65, 0x7f00_0000_4000, 1, 1);
    f.count(1, 1, 65, 6, 0);
    let p = f.finish(&mut NoNames);
    let kinds: Vec<_> = p.regions.iter().map(|r| r.kind).collect();
    assert_eq!(kinds, [RegionKind::Elf]);
    assert_eq!(pages_of(&p, 0), [(0, 5, 5, 0), (0, 4, 6, 0)]);
}

/// The tracer goes on between the drain of its events and the pass over its pages.
#[test]
fn a_page_of_a_mapping_that_is_not_known_yet_waits_for_it() {
    let address = 0x7f00_0000_0000;
    let mut f = Fake::with_thread();
    f.map(1, 1, address, 0x1000);
    f.page(64, address, 1, 1);
    f.count(1, 1, 64, 5, 0);
    f.engine.end_slice();
    f.next_generation();
    f.page(65, address, 1, 1);
    f.count(1, 1, 65, 6, 0);
    f.engine.end_slice();
    f.unmap(1, 1, address, 0x1000);
    f.map(1, 1, address, 0x1000);
    let p = f.finish(&mut NoNames);
    assert_eq!(pages_of(&p, 0), [(0, 0, 5, 0), (1, 0, 6, 0)]);
}

/// Memory without a name that processes share is the structure of the call that maps it, and a forked child's use of it
/// counts there; what nothing is known of has a number.
#[test]
fn shared_memory_is_called_after_the_call_that_maps_it() {
    let mut f = Fake::with_thread();
    f.module(1, 0x400000, 0x40_9000, "/bin/app");
    for (n, address) in [0x7f00_2000_0000, 0x7f00_3000_0000].into_iter().enumerate() {
        f.shared_anonymous(2, 1, (address, 5 + n as u64), 0x401234);
    }
    f.process(2, 1);
    f.thread(2, 2, 1);
    for (id, thread, ino) in [(66, 2, 5), (67, 1, 6), (68, 1, 9)] {
        f.shared_page(id, 0x7f00_2000_1000, thread, thread, ino, 1);
    }
    f.count(2, 2, 66, 7, 1);
    f.count(3, 1, 66, 8, 0);
    f.count(3, 1, 67, 20, 0);
    f.count(3, 1, 68, 2, 0);
    let p = f.finish(&mut Names);
    let shared = p.objects.iter().filter(|o| o.kind == ObjectKind::Shared);
    let shared: Vec<_> = shared
        .map(|o| (&*o.name, o.count, o.size, o.reads, o.writes))
        .collect();
    let expected = [
        ("buffer", 2, 2 * MIB, 35, 1),
        ("shared memory #1", 1, 2 * 4096, 2, 0),
    ];
    assert_eq!(shared, expected);
    assert_eq!(p.allocation_paths.len(), 1);
    assert_eq!(p.allocation_paths[0].reads, 35);
}

/// The kernel goes on from where the heap ended, whatever lies there by now.
#[test]
fn a_heap_that_grows_leaves_what_was_mapped_over_its_end() {
    let mut f = Fake::with_thread();
    f.brk(1, 1, 0x100_0800, 0x100_4000);
    f.map(1, 1, 0x100_2000, 0x2000);
    f.brk(1, 1, 0x100_0800, 0x100_8000);
    f.brk(1, 1, 0x100_0800, 0x100_6000);
    f.brk(1, 1, 0x100_0800, 0x100_7000);
    for (id, address) in [
        (64, 0x100_1000),
        (65, 0x100_3000),
        (66, 0x100_4000),
        (67, 0x100_6fff),
    ] {
        f.page(id, address, 1, 1);
        f.count(1, 1, id, u64::from(id), 0);
    }
    let p = f.finish(&mut NoNames);
    let kinds: Vec<_> = p.regions.iter().map(|r| r.kind).collect();
    assert_eq!(kinds, [RegionKind::Brk, RegionKind::Mmap]);
    let expected = [(0, 0, 64, 0), (0, 3, 66, 0), (0, 5, 67, 0), (1, 1, 65, 0)];
    assert_eq!(pages_of(&p, 0), expected);
}

#[test]
fn a_forked_child_goes_on_with_its_parents_heap() {
    let mut f = Fake::with_thread();
    f.brk(1, 1, 0x100_0000, 0x100_4000);
    f.process(2, 1);
    f.thread(2, 2, 1);
    f.brk(2, 2, 0x100_0000, 0x100_6000);
    for (id, address) in [(64, 0x100_1000), (65, 0x100_5000)] {
        f.page(id, address, 2, 2);
        f.count(1, 2, id, u64::from(id), 0);
    }
    let p = f.finish(&mut NoNames);
    let kinds: Vec<_> = p.regions.iter().map(|r| r.kind).collect();
    assert_eq!(kinds, [RegionKind::Brk]);
    assert_eq!(pages_of(&p, 1), [(0, 1, 64, 0), (0, 5, 65, 0)]);
}

/// Ten million blocks of 1 KiB took a third of the processor time for the steps by which their heap grew.
#[test]
fn a_heap_that_grows_in_many_steps_is_not_looked_through() {
    let mut regions = RegionMap::default();
    let steps = 200_000;
    for step in 1..=steps {
        regions.set_brk(1, 0x100_0000, 0x100_0000 + u64::from(step) * 0x1000, step);
    }
    let last = regions.spaces[&1].interval_at(0x1000 + u64::from(steps) - 1, steps);
    assert_eq!(last.map(|i| i.offset), Some(u64::from(steps) - 1));
}
