//! What threads saw of shared lines: records in, rows out.
use super::fake::{Fake, MIB};
use super::NoNames;
use hither_profile::{LineUse, Profile, RegionIx};
use hither_sys::wire::{self, LineObservation};

const BASE: u64 = 0x7f00_0000_0000;

/// A run of three threads with two pages.
fn fake(line: u32) -> Fake {
    let mut f = Fake::new(|options| options.line = line);
    f.process(1, 0);
    for thread in 1..=3 {
        f.thread(thread, 1, 0);
    }
    f.map(1, 1, BASE, MIB);
    f.page(64, BASE + 0x1000, 1, 1);
    f.page(65, BASE + 0x3000, 1, 2);
    f.count(1, 1, 64, 10, 3);
    f.count(2, 2, 65, 7, 0);
    f
}

fn at(page: u32, at: u16, site: u32, kind: u16, n: u32) -> LineObservation {
    LineObservation {
        page,
        site,
        at,
        kind,
        n,
    }
}

fn rows(f: Fake) -> Vec<(u64, u32, u64, u64, u64, u64)> {
    let p: Profile = f.finish(&mut NoNames);
    let row = |l: &LineUse| {
        assert_eq!(l.region, RegionIx(0));
        (
            l.offset,
            l.thread.0,
            l.seen,
            l.read_mask,
            l.write_mask,
            l.accesses,
        )
    };
    p.lines.iter().map(row).collect()
}

#[test]
fn masks_of_sites_and_ranges() {
    let mut f = fake(64);
    f.site(1, 0x1000);
    f.site_touches(1, 0, [0xff, 0], [0xf00, 0]);
    f.site(2, 0x1004);
    // From the lowest address on: reads 8 bytes, and 8 more 16 above, where the second starts.
    f.site_touches(2, 16, [0xff << 16 | 0xff, 0], [0, 0]);
    f.seen(1, at(64, 64, 1, wire::OBSERVED_LOW, 0));
    // 8 bytes before the end of a line: the rest belongs to the next, which has its own record.
    f.seen(1, at(64, 128 - 8, 2, wire::OBSERVED_LOW, 0));
    f.seen(1, at(64, 128 - 8 + 16, 2, wire::OBSERVED_UPPER, 0));
    f.seen(2, at(64, 64 + 20, 0, wire::OBSERVED_WRITE, 4));
    f.seen(2, at(64, 128 + 60, 0, wire::OBSERVED_WRITE, 400));
    f.seen(2, at(64, 64, 0, wire::OBSERVED_COUNT, 2048));
    let high = 0xff << 56;
    assert_eq!(
        rows(f),
        [
            (0x1040, 0, 2, 0xff | high, 0xf00, 2),
            (0x1040, 1, 1, 0, 0xf << 20, 2048),
            (0x1080, 0, 1, 0xff << 8, 0, 1),
            (0x1080, 1, 1, 0, 0xf << 60, 1),
        ]
    );
}

#[test]
fn writes_are_as_many_of_all_as_of_those_seen() {
    let mut f = fake(64);
    for kind in [
        wire::OBSERVED_READ,
        wire::OBSERVED_READ,
        wire::OBSERVED_READ,
        wire::OBSERVED_WRITE,
    ] {
        f.seen(1, at(64, 0, 0, kind, 8));
    }
    f.seen(1, at(64, 0, 0, wire::OBSERVED_COUNT, 2048));
    f.seen(2, at(64, 16, 0, wire::OBSERVED_READ, 8));
    let lines = f.finish(&mut NoNames).lines;
    let found: Vec<_> = lines.iter().map(|l| (l.accesses, l.writes)).collect();
    assert_eq!(found, [(2048, 512), (1, 0)]);
}

#[test]
fn long_lines_have_parts_of_several_bytes() {
    let mut f = fake(256);
    f.seen(1, at(65, 0x105, 0, wire::OBSERVED_READ, 1));
    f.seen(2, at(65, 0x1f0, 0, wire::OBSERVED_WRITE, 100));
    assert_eq!(
        rows(f),
        [(0x3100, 0, 1, 2, 0, 1), (0x3100, 1, 1, 0, 0xf << 60, 1)]
    );
}

#[test]
fn only_lines_of_several_threads_that_one_writes() {
    let mut f = fake(64);
    f.seen(1, at(64, 0, 0, wire::OBSERVED_WRITE, 8));
    f.seen(1, at(64, 64, 0, wire::OBSERVED_READ, 8));
    f.seen(2, at(64, 64, 0, wire::OBSERVED_READ, 8));
    assert_eq!(rows(f), []);
}

#[test]
fn strays_are_left_out() {
    let mut f = fake(64);
    for n in 0..600 {
        let byte = if n % 300 == 0 { 32 } else { 0 };
        f.seen(1, at(64, byte, 0, wire::OBSERVED_WRITE, 8));
    }
    f.seen(2, at(64, 16, 0, wire::OBSERVED_READ, 8));
    assert_eq!(
        rows(f),
        [
            (0x1000, 0, 600, 0, 0xff, 600),
            (0x1000, 1, 1, 0xff << 16, 0, 1)
        ]
    );
}

#[test]
fn counts_survive_a_full_counter() {
    let mut f = fake(64);
    for _ in 0..60 {
        for _ in 0..2000 {
            f.seen(1, at(64, 0, 0, wire::OBSERVED_WRITE, 8));
        }
        f.engine.end_slice();
    }
    f.seen(2, at(64, 16, 0, wire::OBSERVED_READ, 8));
    assert_eq!(rows(f)[0], (0x1000, 0, 120_000, 0, 0xff, 120_000));
}

#[test]
fn many_lines_leave_those_used_most() {
    let mut f = fake(64);
    for page in 66..2166 {
        f.page(page, BASE + 0x8000 + u64::from(page) * 4096, 1, 1);
    }
    let mut lines = (66..2166).flat_map(|page| (0..64).map(move |line| (page, line * 64)));
    f.seen(1, at(64, 0, 0, wire::OBSERVED_COUNT, 1 << 20));
    f.seen(1, at(64, 0, 0, wire::OBSERVED_WRITE, 8));
    f.seen(2, at(64, 0, 0, wire::OBSERVED_READ, 8));
    for _ in 0..50 {
        for (page, line) in lines.by_ref().take(1900) {
            f.seen(1, at(page, line, 0, wire::OBSERVED_WRITE, 8));
        }
        f.engine.end_slice();
    }
    assert_eq!(rows(f)[0].5, 1 << 20);
}

#[test]
fn what_a_killed_thread_left_is_counted() {
    let mut f = fake(64);
    f.seen(1, at(64, 0x40, 0, wire::OBSERVED_WRITE, 8));
    f.seen(2, at(64, 0x40, 0, wire::OBSERVED_READ, 8));
    f.engine.end_slice();
    // The line at 0x40 of its page, shared with thread 2 from the start.
    f.entry(1, 3, 64, (80, 20), &[2]);
    assert_eq!(rows(f)[0], (0x1040, 0, 1, 0, 0xff, 100));
}

/// All accesses are to `left`; `right` is there for its line alone.
#[test]
fn variables_in_shared_lines_are_kept() {
    let check = |shared: bool| {
        let mut f = Fake::with_thread();
        f.thread(2, 1, 1);
        f.module(1, 0x400000, 0x40a000, "/bin/app");
        f.page(64, 0x406000, 1, 1);
        f.count(1, 1, 64, 10, 0);
        f.object(2, wire::OBJECT_VARIABLE, 1, 0x406000, 64);
        f.object_count(1, 2, [10, 0]);
        if shared {
            f.seen(1, at(64, 0x40, 0, wire::OBSERVED_WRITE, 8));
            f.seen(2, at(64, 0x48, 0, wire::OBSERVED_WRITE, 8));
        }
        let p = f.finish(&mut super::Names);
        let right = p.objects.iter().find(|o| o.name == "right");
        assert_eq!(right.map(|o| o.reads), shared.then_some(0));
        assert_eq!(p.object_ranges.len(), 1 + usize::from(shared));
        assert_eq!(p.lines.len(), 2 * usize::from(shared));
    };
    check(true);
    check(false);
}

#[test]
fn nonsense_is_left_out() {
    let mut f = fake(64);
    for (page, offset, site, kind, n) in [
        (0, 0, 0, wire::OBSERVED_WRITE, 8),
        (u32::MAX, 0, 0, wire::OBSERVED_WRITE, 8),
        (64, u16::MAX, u32::MAX, wire::OBSERVED_LOW, 8),
        (64, u16::MAX, u32::MAX, wire::OBSERVED_UPPER, 8),
        (64, 0, 0, 77, 8),
        (64, 0, 0, wire::OBSERVED_READ, 0),
        (64, u16::MAX, 0, wire::OBSERVED_COUNT, u32::MAX),
    ] {
        f.seen(1, at(page, offset, site, kind, n));
        f.seen(2, at(page, offset, site, kind, n));
    }
    assert_eq!(rows(f), []);
}
