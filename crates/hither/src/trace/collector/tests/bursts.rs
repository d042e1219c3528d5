//! What threads recorded, from the segment to the file.
use super::fake::{Fake, MIB};
use super::{check_limit, NoNames};
use crate::program::clock::monotonic_ns;
use hither_profile::bursts::{BurstTrace, NamedPages, MAX_PLACES};
use hither_profile::BurstWriter;
use hither_profile::{write_with_bursts, BurstOptions, ProcessIx, Profile, RegionKind, ThreadIx};
use hither_sys::wire::{self, ChunkAlias, RecordedBlock, SegmentHeader, SegmentPiece, SharedChunk};
use proptest::prelude::*;
use std::mem::offset_of;
use std::path::Path;
use std::time::Duration;

/// A run of one thread that records with these options into a folder.
fn recording(dir: &Path, options: BurstOptions, max_size: u64) -> Fake {
    let mut f = Fake::new(|o| (o.bursts, o.max_size) = (Some(options), max_size));
    f.process(1, 0);
    f.thread(1, 1, 0);
    f.engine.record_bursts(BurstWriter::create(dir).unwrap());
    f
}

/// The profile and its bursts as others read them.
fn written(f: Fake, dir: &Path) -> (Profile, BurstTrace) {
    let mut collected = f.collected(&mut NoNames);
    write_with_bursts(
        &mut collected.profile,
        dir,
        collected.bursts.expect("bursts"),
    )
    .unwrap();
    let bursts = BurstTrace::open(dir).unwrap().expect("bursts");
    (collected.profile, bursts)
}

/// Lays a piece of thread 1 into a place; `code` bytes that are not decoded.
fn piece(f: &Fake, place: u32, head: &SegmentPiece) {
    let s = &f.engine.segment;
    let at = s.layout().pieces + u64::from(place) * u64::from(wire::PIECE_BYTES);
    for (offset, value) in [
        (offset_of!(SegmentPiece, thread), head.thread),
        (offset_of!(SegmentPiece, process), head.process),
        (offset_of!(SegmentPiece, window), head.window),
        (offset_of!(SegmentPiece, sequence), head.sequence),
        (offset_of!(SegmentPiece, accesses), head.accesses),
        (offset_of!(SegmentPiece, length), head.length),
        (offset_of!(SegmentPiece, state), head.state),
    ] {
        s.store_u32(at + offset as u64, value);
    }
    let now = monotonic_ns();
    s.store_u64(at + offset_of!(SegmentPiece, start_ns) as u64, now);
    s.store_u64(at + offset_of!(SegmentPiece, end_ns) as u64, now);
    let busy = offset_of!(SegmentHeader, piece_busy) as u64 + u64::from(place / 64) * 8;
    s.store_u64(busy, s.load_u64(busy) | 1 << (place % 64));
}

fn whole(window: u32, sequence: u32, length: u32) -> SegmentPiece {
    SegmentPiece {
        state: wire::PIECE_WHOLE,
        thread: 1,
        process: 1,
        window,
        sequence,
        accesses: 1,
        length,
        ..SegmentPiece::default()
    }
}

fn is_busy(f: &Fake, place: u32) -> bool {
    let busy = offset_of!(SegmentHeader, piece_busy) as u64 + u64::from(place / 64) * 8;
    f.engine.segment.load_u64(busy) >> (place % 64) & 1 == 1
}

/// Pieces come in any order; where the budget ends none of those before the last is missing,
/// nothing follows, and the threads' window is closed.
#[test]
fn the_budget_ends_a_window_without_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let mut f = recording(dir.path(), BurstOptions::default(), 40_000);
    for pair in 0..10 {
        piece(&f, 0, &whole(1, 2 * pair + 1, 4000));
        piece(&f, 1, &whole(1, 2 * pair, 4000));
        f.engine.drain_events();
        assert!(!is_busy(&f, 0) && !is_busy(&f, 1));
    }
    piece(&f, 0, &whole(1, 20, 1));
    f.engine.drain_events();
    let open = offset_of!(SegmentHeader, record_open) as u64;
    assert_eq!(f.engine.segment.load_u32(open), 0);
    f.engine.end_slice();
    let (profile, bursts) = written(f, dir.path());
    assert_eq!(bursts.broken(), None);
    let window = &bursts.windows()[0];
    assert!(window.cut);
    assert!((5..9).contains(&window.pieces.len()), "{window:?}");
    check_limit(&profile, "--max-size");
    let info = profile.meta.bursts.as_ref().unwrap();
    assert!(info.bytes <= 30_000, "{info:?}");
    assert_eq!(info.accesses, bursts.accesses());
}

/// Descriptions that lie on one another, as many as there may be.
#[test]
fn blocks_are_within_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let mut f = recording(dir.path(), BurstOptions::default(), 40_000);
    let s = &f.engine.segment;
    let blocks = 2000;
    for n in 1..=blocks {
        let at = s.layout().record_blocks + n * size_of::<RecordedBlock>() as u64;
        s.store_u32(at + offset_of!(RecordedBlock, length) as u64, 200 << 10);
        s.store_u32(at + offset_of!(RecordedBlock, ready) as u64, 1);
    }
    let next = offset_of!(SegmentHeader, next_record_block) as u64;
    s.store_u32(next, u32::MAX);
    piece(&f, 7, &whole(1, 0, 1));
    f.engine.end_slice();
    f.engine.end_slice();
    let (profile, bursts) = written(f, dir.path());
    assert_eq!(bursts.broken(), None);
    assert!(profile.meta.bursts.unwrap().bytes <= 30_000);
}

/// What a process was filling when it died is free for others.
#[test]
fn pieces_of_the_dead_are_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut f = recording(dir.path(), BurstOptions::default(), MIB);
    f.process(2, 1);
    for (place, process) in [(3, 1), (100, 2)] {
        let filling = SegmentPiece {
            state: wire::PIECE_FILLING,
            process,
            ..whole(1, 0, 0)
        };
        piece(&f, place, &filling);
    }
    f.engine.end_slice();
    assert!(is_busy(&f, 3) && is_busy(&f, 100));
    let mut child = std::process::Command::new("true").spawn().unwrap();
    f.set_pid(2, child.id() as i32);
    child.wait().unwrap();
    f.engine
        .threads
        .find_dead_processes(&f.engine.segment, monotonic_ns());
    f.engine.end_slice();
    assert!(is_busy(&f, 3), "the other lives");
    assert!(!is_busy(&f, 100));
}

/// With a byte of the budget left the next window is further away than times go.
#[test]
fn windows_become_as_rare_as_can_be() {
    let dir = tempfile::tempdir().unwrap();
    let options = BurstOptions {
        length: 1,
        every: 50_000_000,
    };
    let mut f = recording(dir.path(), options, 1_400_000);
    f.clock.pass(Duration::from_millis(25));
    f.engine.end_slice();
    // Three quarters of it, without the file's head, a place and the heads of the pieces.
    let mut left = 1_050_000 - 1 - 12 - 16;
    for sequence in 0.. {
        let length = (left - 57).min(16_000);
        piece(&f, 0, &whole(1, sequence, length));
        f.engine.drain_events();
        left -= 57 + length;
        if left == 0 {
            break;
        }
    }
    for _ in 0..3 {
        f.clock.pass(Duration::from_millis(1));
        f.engine.end_slice();
    }
    let window = offset_of!(SegmentHeader, record_window) as u64;
    assert_eq!(f.engine.segment.load_u32(window), 1);
    let (profile, _) = written(f, dir.path());
    check_limit(&profile, "rarer");
}

/// Windows of next to nothing, opened and closed by one tick each.
const SHORT: BurstOptions = BurstOptions {
    length: 1,
    every: 1,
};

fn kind(profile: &Profile, bursts: &BurstTrace, process: u32, address: u64) -> Option<RegionKind> {
    let (region, _) = bursts.page_name(0, ProcessIx(process), address >> 12)?;
    Some(profile.regions[region.at()].kind)
}

/// A library's segment that a window saw as a mapping bears the library's name, and what was
/// mapped just after the window closed has one too if a thread still recorded.
#[test]
fn places_have_the_names_that_pages_get() {
    let dir = tempfile::tempdir().unwrap();
    let mut f = recording(dir.path(), SHORT, MIB);
    let (library, late) = (0x7f00_0000_0000, 0x7f00_1000_0000);
    f.map(1, 1, library, 0x4000);
    f.map(1, 1, library + 0x4000, 0x2000);
    f.page(64, library + 0x5000, 1, 1);
    f.count(1, 1, 64, 5, 0);
    f.clock.pass(Duration::from_millis(25));
    f.engine.end_slice();
    piece(&f, 0, &whole(1, 0, 1));
    f.engine.end_slice();
    f.map(1, 1, late, 0x1000);
    f.page(65, late, 1, 1);
    f.count(1, 1, 65, 5, 0);
    piece(&f, 0, &whole(1, 1, 1));
    f.module(1, library, library + 0x6000, "/lib/x.so");
    f.engine.end_slice();
    let (profile, bursts) = written(f, dir.path());
    let kind = |address| kind(&profile, &bursts, 0, address);
    assert_eq!(kind(library + 0x5000), Some(RegionKind::Elf));
    assert_eq!(kind(late), Some(RegionKind::Mmap));
}

/// A process that ended before a window has no names in it.
#[test]
fn places_are_of_those_who_live() {
    let dir = tempfile::tempdir().unwrap();
    let mut f = recording(dir.path(), SHORT, MIB);
    f.process(2, 0);
    f.thread(2, 2, 0);
    let at = 0x7f00_0000_0000;
    for process in [1u16, 2] {
        f.map(process, process, at, MIB);
        f.page(63 + u32::from(process), at, process.into(), process.into());
        f.count(
            process.into(),
            process.into(),
            63 + u32::from(process),
            5,
            0,
        );
    }
    f.engine.end_slice();
    f.exit_process(2);
    f.clock.pass(Duration::from_millis(25));
    f.engine.end_slice();
    piece(&f, 0, &whole(1, 0, 1));
    f.engine.end_slice();
    let (profile, bursts) = written(f, dir.path());
    assert_eq!(kind(&profile, &bursts, 0, at), Some(RegionKind::Mmap));
    assert_eq!(kind(&profile, &bursts, 1, at), None);
}

/// Of what a reader would not take the profile says that it is not there.
#[test]
fn names_that_are_left_out_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut f = recording(dir.path(), SHORT, MIB);
    f.map(1, 1, 0x7f00_0000_0000, MIB);
    for window in 1..=2 {
        f.clock.pass(Duration::from_millis(55));
        f.engine.end_slice();
        piece(&f, 0, &whole(window, 0, 1));
        f.clock.pass(Duration::from_millis(1));
        f.engine.end_slice();
    }
    f.engine.finish();
    let mut recorder = f.engine.recorder.take().unwrap();
    let mut windows = 0;
    recorder.write_page_names(|_| {
        windows += 1;
        vec![NamedPages::default(); if windows == 1 { 1 } else { MAX_PLACES }]
    });
    assert_eq!(windows, 2);
    let limits = recorder.limits(&f.engine.segment);
    let told = "Of 1 window it is not known which memory";
    assert!(limits.iter().any(|l| l.starts_with(told)), "{limits:?}");
}

/// Memory that is said to lie where there are no numbers for pages any more has no names.
#[test]
fn places_end_where_numbers_do() {
    let at = 0x7f00_0000_0000;
    let kind_at = |number: u64| {
        let dir = tempfile::tempdir().unwrap();
        let mut f = recording(dir.path(), SHORT, MIB);
        f.shared_map(1, 1, at, 9);
        f.shared_page(64, at, 1, 1, 9, 0);
        f.count(1, 1, 64, 5, 0);
        let segment = &f.engine.segment;
        let layout = *segment.layout();
        segment.store_u64(
            layout.chunks + 3 * 32 + offset_of!(SharedChunk, chunk) as u64,
            number,
        );
        segment.store_u64(
            layout.aliases + offset_of!(ChunkAlias, key) as u64,
            (1 << 32 | 3) + 1,
        );
        segment.store_u64(layout.aliases + offset_of!(ChunkAlias, va) as u64, at >> 12);
        f.clock.pass(Duration::from_millis(25));
        f.engine.end_slice();
        piece(&f, 0, &whole(1, 0, 1));
        f.engine.end_slice();
        let (profile, bursts) = written(f, dir.path());
        kind(&profile, &bursts, 0, at)
    };
    assert_eq!(kind_at(0), Some(RegionKind::Shared));
    assert_eq!(kind_at(1 << 22), None);
    assert_eq!(kind_at(u64::MAX), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever lies where pieces and blocks are, a file comes out that can be read.
    #[test]
    fn hostile_pieces(seed in 1u64.., wild in any::<bool>(), blocks in 0u32..40) {
        let dir = tempfile::tempdir().unwrap();
        let mut f = recording(dir.path(), if wild { SHORT } else { BurstOptions::default() }, 100_000);
        let mut rng = hither_model::rng::Rng::new(seed);
        let mut random = move || {
            let word = rng.next_u64();
            if wild { word } else { word & 0x0000_0003_0000_0003 }
        };
        for _ in 0..3 {
            let s = &f.engine.segment;
            let l = *s.layout();
            s.store_u32(offset_of!(SegmentHeader, next_record_block) as u64, blocks);
            for word in 0..64 * size_of::<RecordedBlock>() as u64 / 8 {
                s.store_u64(l.record_blocks + word * 8, random());
            }
            for word in 0..512 {
                s.store_u64(l.record_bytes + word * 8, random());
            }
            for place in 0..40 {
                let at = l.pieces + place * u64::from(wire::PIECE_BYTES);
                (0..20).for_each(|word| s.store_u64(at + word * 8, random()));
                s.store_u32(at, (random() % 3) as u32);
            }
            s.store_u64(offset_of!(SegmentHeader, piece_busy) as u64, random() | 0xff);
            f.engine.end_slice();
        }
        let (profile, bursts) = written(f, dir.path());
        prop_assert!(profile.meta.bursts.unwrap().bytes <= 100_000);
        for window in 0..bursts.windows().len() {
            for thread in bursts.threads(window) {
                prop_assert_eq!(thread, ThreadIx(0));
                let (mut decoder, mut into) = (bursts.decoder(window, thread), Vec::new());
                while decoder.next(&mut into).is_some() {}
            }
        }
    }
}
