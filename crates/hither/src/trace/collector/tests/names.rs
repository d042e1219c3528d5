//! Which mapping a page belongs to while mappings are still being reported.
use super::fake::Fake;
use super::{pages_of, NoNames};
use hither_profile::RegionKind;

/// The loader maps a library's segments before the tracer tells that it is one, and a page
/// pass may come in between.
#[test]
fn a_segment_touched_before_its_module_is_known_belongs_to_it() {
    let mut f = Fake::new(|_| {});
    f.process(1, 0);
    f.thread(1, 1, 0);
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
    let mut f = Fake::new(|_| {});
    f.process(1, 0);
    f.thread(1, 1, 0);
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
