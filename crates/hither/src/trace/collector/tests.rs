//! A fake target fills a segment as the tracer would; the profile is checked by arithmetic.
mod bursts;
mod checkpoints;
mod fake;
mod forged;
mod limits;
mod lines;
mod names;
mod page_reuse;
mod processes;
mod sampling;
mod scribble;
mod slots;

use super::*;
use crate::program::clock::monotonic_ns;
use crate::trace::symbolizer::{AllocationName, SourceLine, StaticObject, StructField};
use fake::{Fake, MIB};
use hither_profile::{ObjectKind, PageNo, PairComm, RegionIx, RegionKind, SliceIx, ThreadIx};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// A program with two variables on one page, and one allocation site.
struct Names;

impl Symbolizer for Names {
    fn members(&mut self, _: &Path, vaddrs: &[u64]) -> Vec<Vec<StructField>> {
        let field = |name: &str, offset| StructField {
            name: name.into(),
            type_name: "int".into(),
            offset,
            size: 4,
        };
        let grid = |vaddr: &u64| match vaddr {
            0x404000 => vec![field("x", 0), field("y", 4)],
            _ => Vec::new(),
        };
        vaddrs.iter().map(grid).collect()
    }

    fn static_objects(&mut self, file: &Path) -> Vec<StaticObject> {
        let variable = |name: &str, vaddr, size| StaticObject {
            name: name.into(),
            vaddr,
            size,
            ..StaticObject::default()
        };
        assert_eq!(file, Path::new("/bin/app"));
        vec![
            variable("grid", 0x404000, 0x2000),
            variable("left", 0x406000, 64),
            variable("right", 0x406040, 64),
            variable("unused", 0x408000, 64),
        ]
    }

    fn program_line(&mut self, file: &Path, vaddr: u64) -> Option<SourceLine> {
        (file == Path::new("/bin/app"))
            .then(|| self.source_line(file, vaddr))
            .flatten()
    }

    fn source_line(&mut self, file: &Path, vaddr: u64) -> Option<SourceLine> {
        let program = file == Path::new("/bin/app");
        Some(SourceLine {
            file: "app.c".into(),
            line: (vaddr & 0xff) as u32,
            function: if program {
                "main"
            } else {
                "__copy_avx2_unaligned"
            }
            .into(),
            ..SourceLine::default()
        })
    }

    fn allocation_name(&mut self, frames: &[(PathBuf, u64)]) -> AllocationName {
        assert_eq!(frames, [(PathBuf::from("/bin/app"), 0x401233)]);
        AllocationName {
            name: "buffer".into(),
            ..AllocationName::default()
        }
    }
}

fn pages_of(profile: &Profile, thread: u32) -> Vec<(u32, u32, u64, u64)> {
    let of_thread = profile
        .pages
        .iter()
        .filter(|p| p.thread == ThreadIx(thread));
    of_thread
        .map(|p| (p.region.0, p.page.0, p.reads, p.writes))
        .collect()
}

/// A limit of the run has these words.
#[track_caller]
fn check_limit(profile: &Profile, words: &str) {
    let limits = &profile.meta.limits;
    assert!(limits.iter().any(|l| l.contains(words)), "{limits:?}");
}

#[test]
fn threads_pages_and_communication_of_two_slices() {
    let mut f = Fake::with_thread();
    f.thread(2, 1, 1);
    f.map(1, 1, 0x7f00_0000_0000, MIB);
    f.map(1, 1, 0x7f00_1000_0000, MIB);
    f.page(64, 0x7f00_0000_0000, 1, 1);
    f.page(65, 0x7f00_1000_3000, 1, 2);
    f.count(1, 1, 64, 10, 3);
    f.count(2, 2, 64, 7, 0);
    f.count(2, 2, 65, 0, 5);
    f.credit(1, 2, 1, 5);
    f.credit(2, 1, 1, 2);
    f.engine.end_slice();
    f.credit(1, 2, 0, 2);
    f.engine.end_slice();
    f.count(1, 1, 64, 11, 3);
    f.end_thread(2);
    let p = f.finish(&mut NoNames);
    assert_eq!(p.threads.len(), 2);
    assert_eq!((p.threads[0].reads, p.threads[0].writes), (11, 3));
    assert_eq!((p.threads[1].reads, p.threads[1].writes), (7, 5));
    assert_eq!(p.threads[1].creator, Some(ThreadIx(0)));
    assert_eq!(p.threads[1].name, "thread 2");
    let event = |slice, events| PairComm {
        slice: SliceIx(slice),
        i: ThreadIx(0),
        j: ThreadIx(1),
        events,
        ..PairComm::default()
    };
    assert_eq!(p.comm, [event(0, 7), event(1, 2)]);
    assert_eq!(p.regions.len(), 2);
    assert!(p
        .regions
        .iter()
        .zip(0..)
        .all(|(r, n)| r.kind == RegionKind::Mmap && r.ordinal == n));
    assert_eq!(pages_of(&p, 0), [(0, 0, 10, 3), (0, 0, 1, 0)]);
    assert_eq!(pages_of(&p, 1), [(0, 0, 7, 0), (1, 3, 0, 5)]);
    let touches: Vec<_> = p.first_touch.rows().collect();
    assert_eq!(touches.len(), 2);
    assert_eq!(
        (touches[1].region, touches[1].page, touches[1].thread),
        (RegionIx(1), PageNo(3), ThreadIx(1))
    );
    assert_eq!(p.slices.len(), 3);
    assert_eq!(p.slices.iter().map(|s| s.accesses).sum::<u64>(), 26);
    assert!((p.slices[0].amount - 14.0 / 4.0).abs() < 1e-9);
    assert_eq!(p.slices[0].threads, 2);
    assert_eq!(
        (p.slices[0].sync, p.slices[1].sync),
        ([3, 0, 0, 0], [0; 4]),
        "passed at birth"
    );
    assert_eq!(p.meta.limits, Vec::<String>::new());
}

#[test]
fn killed_threads_leave_their_counts_behind() {
    let mut f = Fake::new(|_| {});
    f.process(1, 0);
    for thread in 1..=3 {
        f.thread(thread, 1, 0);
    }
    f.map(1, 1, 0x7f00_0000_0000, MIB);
    f.page(64, 0x7f00_0000_0000, 1, 1);
    f.count(1, 1, 64, 1, 1);
    f.engine.end_slice();
    f.entry(1, 3, 64, (8, 2), &[2, 3]);
    f.entry(1, 20, 64, (1, 0), &[]);
    let p = f.finish(&mut NoNames);
    assert_eq!((p.threads[0].reads, p.threads[0].writes), (10, 3));
    assert_eq!((p.matrix().get(0, 1), p.matrix().get(0, 2)), (10, 10));
    assert_eq!(p.slices.iter().map(|s| s.accesses).sum::<u64>(), 13);
}

/// The metrics of the slice were those of the last thread's leftovers alone.
#[test]
fn a_run_of_one_slice_has_the_metrics_of_its_matrix() {
    let mut f = Fake::with_thread();
    f.thread(2, 1, 0);
    f.credit(1, 2, 1, 10);
    let p = f.finish(&mut NoNames);
    assert_eq!((p.slices.len(), p.matrix().get(0, 1)), (1, 10));
    assert!((p.slices[0].amount - 20.0 / 4.0).abs() < 1e-9);
}

#[test]
fn a_forked_child_gets_its_own_regions() {
    let mut f = Fake::with_thread();
    f.map(1, 1, 0x7f00_0000_0000, MIB);
    f.shared_map(1, 1, 0x7f00_2000_0000, 99);
    f.process(2, 1);
    f.thread(2, 2, 1);
    f.page(64, 0x7f00_0000_2000, 1, 1);
    f.page(65, 0x7f00_0000_2000, 2, 2);
    f.shared_page(66, 0x7f00_2000_1000, 2, 2, 99, 1);
    f.count(1, 1, 64, 5, 0);
    f.count(2, 2, 65, 6, 0);
    f.count(2, 2, 66, 7, 0);
    f.count(3, 1, 66, 8, 0);
    let p = f.finish(&mut NoNames);
    assert_eq!(p.meta.processes.len(), 2);
    assert_eq!(
        p.regions
            .iter()
            .map(|r| (r.kind, r.process.0))
            .collect::<Vec<_>>(),
        [
            (RegionKind::Mmap, 0),
            (RegionKind::Shared, 0),
            (RegionKind::Mmap, 1)
        ]
    );
    assert_eq!(pages_of(&p, 0), [(0, 2, 5, 0), (1, 1, 8, 0)]);
    assert_eq!(pages_of(&p, 1), [(1, 1, 7, 0), (2, 2, 6, 0)]);
    assert!(p
        .objects
        .iter()
        .any(|o| o.kind == ObjectKind::Shared && o.reads == 15));
}

/// Two variables, the bytes between them, blocks of a site, a stack: each has what the tracer
/// counted for it, whatever else is on its pages.
/// Small blocks are not reported one by one: their samples tell on which pages they lie.
#[test]
fn small_blocks_lie_on_the_pages_of_their_samples() {
    let mut f = Fake::with_thread();
    f.module(1, 0x400000, 0x40_9000, "/bin/app");
    f.map(1, 1, 0x7f00_0000_0000, MIB);
    f.small_blocks(1, 7, 0x7f00_0000_5040, 0x401234);
    f.page(64, 0x7f00_0000_5000, 1, 1);
    f.count(1, 1, 64, 20, 0);
    f.object_count(1, 7, [20, 0]);
    f.site(1, 0x401010);
    f.sample(1, (0x7f00_0000_5040, 7), 1, 20, 0);
    f.engine.end_slice();
    let p = f.finish(&mut Names);
    let buffer = p.objects.iter().position(|o| o.name == "buffer").unwrap();
    let ranges = p.object_ranges.iter().filter(|r| r.object.at() == buffer);
    assert_eq!(ranges.map(|r| r.offset).collect::<Vec<_>>(), [0x5040]);
}

#[test]
fn structures_have_their_own_counts() {
    let mut f = Fake::with_thread();
    f.module(1, 0x400000, 0x40_9000, "/bin/app");
    f.map(1, 1, 0x7f00_0000_0000, MIB);
    f.object(2, wire::OBJECT_VARIABLE, 1, 0x404000, 0x2000);
    f.object(3, wire::OBJECT_VARIABLE, 1, 0x406000, 64);
    f.object(4, wire::OBJECT_VARIABLE, 1, 0x406040, 64);
    f.object(5, wire::OBJECT_UNNAMED, 1, 0x400000, 0x9000);
    f.object(7, wire::OBJECT_VARIABLE, 1, 0x406038, 16);
    f.allocation(6, 1, 0x7f00_0000_0010, 4096, 0x401234);
    f.page(64, 0x404000, 1, 1);
    f.page(65, 0x406000, 1, 1);
    f.page(66, 0x7f00_0000_0000, 1, 1);
    f.page(67, 0x7ffe_ffff_f000, 1, 1);
    f.count(1, 1, 64, 1000, 0);
    f.count(1, 1, 65, 400, 40);
    f.count(1, 1, 66, 50, 6);
    f.count(1, 1, 67, 9, 9);
    for (id, counts) in [
        (2, [1000, 0]),
        (3, [300, 30]),
        (4, [90, 9]),
        (5, [7, 1]),
        (7, [3, 0]),
        (6, [45, 6]),
        (wire::OBJECT_FREE, [5, 0]),
    ] {
        f.object_count(1, id, counts);
    }
    f.site(1, 0x401010);
    f.sample(1, (0x406000, 3), 1, 30, 0);
    f.sample(1, (0x7f00_0000_0040, 6), 1, 320, 0);
    f.sample(1, (0x7ffe_ffff_f000, 0), 1, 5, 0);
    f.engine.end_slice();
    let p = f.finish(&mut Names);
    let object = |name: &str| p.objects.iter().find(|o| o.name == name);
    let counts = |name: &str| object(name).map(|o| (o.reads, o.writes, o.estimated));
    assert_eq!(counts("grid"), Some((1000, 0, false)));
    let grid = p.objects.iter().position(|o| o.name == "grid").unwrap();
    let fields = p.members.iter().filter(|m| m.object.at() == grid);
    let fields: Vec<_> = fields.map(|m| (m.name.as_str(), m.offset)).collect();
    assert_eq!(fields, [("x", 0), ("y", 4)]);
    assert_eq!(p.members.len(), 2);
    assert_eq!(counts("left"), Some((300, 30, false)));
    assert_eq!(counts("right"), Some((90, 9, false)));
    assert_eq!(counts("left, right"), Some((3, 0, false)));
    assert_eq!(counts("data of app"), Some((7, 1, false)));
    assert_eq!(counts("unused"), None);
    assert_eq!(counts("buffer"), Some((45, 6, false)));
    let buffer = object("buffer").map(|o| (o.size, o.count));
    assert_eq!(buffer, Some((4096, 1)));
    let free = "the allocator's own and freed memory";
    assert_eq!(counts(free), Some((5, 0, false)));
    assert_eq!(counts("stack of thread 0"), Some((9, 9, false)));
    assert_eq!(p.sites[0].reads, 300);
    assert_eq!(
        (p.sites[0].line, p.sites[0].function.as_str()),
        (0x10, "main")
    );
    let first = p.sites[0].object.map(|o| p.objects[o.at()].name.as_str());
    assert_eq!(first, Some("left"));
    assert_eq!(p.sites.len(), 3);
}

/// Its rows share what was counted, and a library's belong to the program's line that called it.
#[test]
fn lines_share_the_counts_of_their_structure() {
    let mut f = Fake::with_thread();
    f.module(1, 0x400000, 0x40_9000, "/bin/app");
    f.module(1, 0x7f10_0000_0000, 0x7f10_0001_0000, "/usr/lib/libc.so.6");
    f.object(2, wire::OBJECT_VARIABLE, 1, 0x404000, 0x2000);
    f.page(64, 0x404000, 1, 1);
    f.count(1, 1, 64, 1000, 0);
    f.object_count(1, 2, [1000, 0]);
    f.site(1, 0x401010);
    f.site(2, 0x7f10_0000_0020);
    f.site_called_from(2, 0x401031);
    f.sample(1, (0x404000, 2), 1, 30, 0);
    f.sample(1, (0x404040, 2), 2, 90, 0);
    // One probe counts what these instructions access.
    f.sample(1, (0x404000, 2), 1, 60, 7);
    let p = f.finish(&mut Names);
    let rows: Vec<_> = p
        .sites
        .iter()
        .map(|s| (s.line, s.callee.as_str(), s.reads))
        .collect();
    assert_eq!(
        rows,
        [(0x30, "copy", 500), (0x17, "", 333), (0x10, "", 167)]
    );
}

/// What a forked child inherits are its parent's objects; what both find later is their own.
#[test]
fn ids_of_a_forked_child_are_those_of_its_parent() {
    let mut f = Fake::with_thread();
    f.module(1, 0x400000, 0x40_9000, "/bin/app");
    f.object(2, wire::OBJECT_VARIABLE, 1, 0x406000, 64);
    f.process(2, 1);
    f.inherit_objects(2, 3);
    f.thread(2, 2, 1);
    f.object(3, wire::OBJECT_VARIABLE, 1, 0x406040, 64);
    f.object_count(1, 2, [1, 0]);
    f.object_count(1, 3, [2, 0]);
    f.object_count(2, 2, [4, 0]);
    f.object_count(2, 3, [8, 0]);
    let p = f.finish(&mut Names);
    let counts: Vec<_> = p
        .objects
        .iter()
        .map(|o| (o.name.as_str(), o.reads))
        .collect();
    assert_eq!(counts, [("left", 5), ("right", 2)]);
}

#[test]
fn a_run_on_its_thread_ends_when_told() {
    let mut f = Fake::new(|options| options.slice = 1_000_000);
    f.process(1, 0);
    f.thread(1, 1, 0);
    let collector = Collector {
        segment: Arc::clone(&f.engine.segment),
        config: f.engine.config.clone(),
        bursts: None,
        checkpoints: None,
    };
    let running = collector.start().unwrap();
    while running.live().slices < 3 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(running.live().threads_total, 1);
    let p = running
        .finish(RunEnd::Signaled { signal: 9 }, &mut NoNames)
        .unwrap()
        .profile;
    assert!(p.slices.len() > 3);
    assert_eq!(p.meta.end, RunEnd::Signaled { signal: 9 });
    let lengths: u64 = p.slices.iter().map(|s| s.length).sum();
    assert_eq!(lengths, p.meta.duration);
}

#[test]
fn a_dead_process_ends_its_threads() {
    let mut f = Fake::with_thread();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    f.set_pid(1, child.id() as i32);
    child.wait().unwrap();
    f.engine
        .threads
        .find_dead_processes(&f.engine.segment, monotonic_ns());
    f.engine.end_slice();
    f.clock.pass(Duration::from_millis(1));
    f.engine.end_slice();
    let p = f.finish(&mut NoNames);
    assert!(p.threads[0].end < p.meta.duration);
    assert_eq!(p.slices[1].threads, 0);
}

#[test]
fn a_small_budget_coarsens_and_says_so() {
    let run = |max_size| {
        let mut f = Fake::new(|options| options.max_size = max_size);
        f.process(1, 0);
        f.thread(1, 1, 0);
        f.map(1, 1, 0x7f00_0000_0000, MIB);
        for page in 0..32 {
            f.page(64 + page, 0x7f00_0000_0000 + u64::from(page) * 4096, 1, 1);
        }
        for slice in 1..=8 {
            (0..32).for_each(|page| f.count(1, 1, 64 + page, slice, slice * 2));
            f.engine.end_slice();
        }
        f.finish(&mut NoNames)
    };
    let (fine, coarse) = (run(80 << 20), run(12 * 100));
    let total = |p: &Profile| p.pages.iter().map(|u| u.reads + u.writes).sum::<u64>();
    assert_eq!((total(&fine), total(&coarse)), (32 * 24, 32 * 24));
    assert_eq!(fine.meta.page_slices, 1);
    assert!(coarse.meta.page_slices > 1 && coarse.pages.row_count() <= 100);
    // What is said of slices, and of pages that share rows.
    assert_eq!(coarse.meta.limits.len(), 2, "{:?}", coarse.meta.limits);
}

#[test]
fn a_half_written_event_is_skipped() {
    let mut f = Fake::new(|_| {});
    f.process(1, 0);
    f.reserve_event();
    f.thread(1, 1, 0);
    f.map(1, 1, 0x7f00_0000_0000, MIB);
    f.page(64, 0x7f00_0000_0000, 1, 1);
    f.count(1, 1, 64, 1, 0);
    let p = f.finish(&mut NoNames);
    assert_eq!(p.regions[0].kind, RegionKind::Mmap);
    assert_eq!(p.meta.cost.lost_events, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Whatever the target scribbles over the areas in use, a profile comes out.
    #[test]
    fn scribbling_never_panics(seed in 1u64.., counters in prop::array::uniform6(1u32..60), wild in any::<bool>()) {
        let mut f = Fake::new(|options| options.sample = wild.then_some(0.5));
        f.process(1, 0);
        f.thread(1, 1, 0);
        f.scribble(seed, &counters, wild);
        f.engine.end_slice();
        f.scribble(seed.rotate_left(7), &counters, wild);
        f.engine.end_slice();
        let p = f.finish(&mut NoNames);
        prop_assert!(p.pages.iter().all(|u| u.region.at() < p.regions.len() && u.thread.at() < p.threads.len()));
        prop_assert!(p.comm.iter().all(|c| c.i < c.j && c.j.at() < p.threads.len()));
        prop_assert!(p.threads.iter().all(|t| t.process.at() < p.meta.processes.len().max(1)));
    }
}

/// Knows no symbols.
struct NoNames;

impl Symbolizer for NoNames {}

/// A program that maps memory fills the event ring in a fraction of a second, and then waits.
#[test]
fn events_are_read_however_far_the_next_look_is() {
    let ms = Duration::from_millis;
    assert_eq!(pause(ms(60_000), false, false), (EVENT_POLL, false));
    assert_eq!(pause(ms(3), false, false), (ms(3), true));
    assert_eq!(pause(ms(60_000), true, false), (BUSY_POLL, true));
    assert_eq!(pause(ms(60_000), false, true), (RECORDING_POLL, true));
}
