//! The mapping and what the target cannot do to it.
use super::*;

fn config(cache_log2: u32) -> SegmentConfig {
    SegmentConfig {
        line: 64,
        sharers: 0,
        cache_log2,
        flags: 0,
        fetch_sets: 64,
        alloc_min: 4096,
        slice_ns: 10_000_000,
        active: true,
        hooks: vec![SegmentHook {
            kind: 4,
            which: 1,
            offset: 0x1234,
            dev: 5,
            ino: 6,
        }],
    }
}

fn small() -> Segment {
    Segment::create(&config(8)).unwrap()
}

/// A cache of 2^18 entries has more groups than `SegmentThread::used` has bits: the tracer
/// would write past it. One below 2^8 has less than the group that the tracer empties.
#[test]
fn a_cache_that_the_tracer_cannot_keep_book_of_is_refused() {
    let created = |cache_log2| Segment::create(&config(cache_log2)).map(drop);
    for possible in [8, 16, 17] {
        assert!(created(possible).is_ok(), "{possible}");
    }
    for impossible in [0, 7, 18, 31, 64, u32::MAX] {
        let error = created(impossible).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "a line cache of 2^{impossible} entries is not possible: use an exponent from 8 to 17"
            )
        );
    }
}

/// The tracer finds entries by an `or` with the address of a line cache.
#[test]
fn line_caches_are_aligned_to_their_size() {
    for cache_log2 in [8, 16, 17] {
        let s = Segment::create(&config(cache_log2)).unwrap();
        let bytes = 16 << cache_log2;
        assert_eq!(s.layout.arenas % bytes, 0, "{cache_log2}");
        assert_eq!(s.layout.arena_size % bytes, 0, "{cache_log2}");
        let end = s.layout.arenas + u64::from(wire::MAX_THREADS) * s.layout.arena_size;
        assert!(end <= s.layout.record_blocks, "{cache_log2}");
    }
}

#[test]
fn the_target_cannot_cut_it() {
    let s = small();
    let mut options = std::fs::File::options();
    let file = options.read(true).write(true).open(s.attach_path());
    let file = file.unwrap();
    for length in [0, s.layout.total - 4096, s.layout.total + 4096] {
        let error = file.set_len(length).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    }
    assert_eq!(s.load_u64(0), wire::MAGIC);
    // Nor seal it so that nobody could write any more.
    let more = fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_FUTURE_WRITE));
    assert_eq!(more, Err(nix::errno::Errno::EPERM));
}

#[test]
fn what_was_never_written_is_told_without_reading_it() {
    let s = small();
    let memory = || nix::sys::stat::fstat(&s.file).unwrap().st_blocks;
    let size = size_of::<wire::PageCountBlock>() as u64;
    let far = 100_000;
    let before = memory();
    assert!(!s.is_block_written(far));
    assert_eq!(memory(), before, "looking takes no memory");
    s.store_u64(s.layout.blocks + u64::from(far) * size, 1);
    assert!(s.is_block_written(far));
    assert!(!s.is_block_written(2 * far));
    assert!(!s.is_block_written(wire::MAX_BLOCKS - 1), "nothing follows");
}

#[test]
fn reads_outside_are_zero() {
    let s = small();
    assert_eq!(s.load_u64(s.layout.total), 0);
    assert_eq!(s.load_u64(u64::MAX - 7), 0);
    assert_eq!(s.read::<wire::SegmentPage>(u64::MAX - 8).va, 0);
    s.store_u64(s.layout.total, 1);
    assert_eq!(s.load_u32(3), 0, "misaligned");
}

#[test]
fn discarded_counters_take_no_memory_and_descriptions_stay() {
    let s = small();
    let memory = || nix::sys::stat::fstat(&s.file).unwrap().st_blocks;
    let described = [
        s.layout.threads,
        s.layout.sites,
        s.layout.pages,
        s.layout.objects,
    ];
    described.iter().for_each(|&at| s.store_u64(at, 7));
    let before = memory();
    let counted = [
        s.layout.events,
        s.layout.comm,
        s.layout.blocks,
        s.layout.arenas,
    ];
    counted.iter().for_each(|&at| s.store_u64(at, 7));
    assert!(memory() > before);
    s.discard_counters();
    assert_eq!(memory(), before);
    assert_eq!(described.map(|at| s.load_u64(at)), [7; 4]);
    assert_eq!(counted.map(|at| s.load_u64(at)), [0; 4]);
}

#[test]
fn page_ids_of_a_group_that_has_ended_are_as_new() {
    let s = small();
    let memory = || nix::sys::stat::fstat(&s.file).unwrap().st_blocks;
    let before = memory();
    let ended = s.layout.ended + 5 * 8;
    let shadow = s.layout.shadow + 5 * 32768;
    let users = s.layout.page_users + 5 * 1024;
    let pages = s.layout.pages + 5 * 64 * 40;
    let used = [shadow + 8, shadow + 32760, users, users + 1016, pages];
    used.iter().for_each(|&at| s.store_u64(at, 7));
    let beside = [shadow + 32768, users - 8, users + 1024, pages + 64 * 40];
    beside.iter().for_each(|&at| s.store_u64(at, 8));
    s.store_u64(ended, u64::MAX >> 1);
    assert!(!s.group_has_ended(5));
    s.store_u64(ended, u64::MAX);
    assert!(s.group_has_ended(5) && !s.group_has_ended(wire::PAGE_GROUPS));
    let full = memory();
    assert!(s.reuse_groups(5, 1));
    assert!(memory() < full && full > before);
    assert!(!s.group_has_ended(5));
    assert_eq!(used.map(|at| s.load_u64(at)), [0; 5]);
    assert_eq!(beside.map(|at| s.load_u64(at)), [8; 4]);
    let tail = offset_of!(SegmentHeader, free_tail) as u64;
    assert_eq!((s.load_u64(tail), s.load_u32(s.layout.free_groups)), (1, 5));
    assert!(!s.reuse_groups(wire::PAGE_GROUPS - 1, 2));
    assert_eq!(s.load_u64(tail), 1);
}

#[test]
fn private_pages_of_processes_that_are_no_more_have_ended() {
    let s = small();
    s.store_u32(offset_of!(SegmentHeader, next_page) as u64, 192);
    // Process, first thread, shared.
    for (id, process, thread, shared) in [
        (64, 3, 9, 0),
        (65, 4, 9, 0),
        (66, 3, 9, 1),
        (67, 3, 0, 0),
        (68, 5, 9, 0),
        // Nobody else has these ids, nor will anybody use the others of the group.
        (130, 3, 9, 0),
        (133, 5, 9, 0),
    ] {
        let at = s.layout.pages + id * size_of::<wire::SegmentPage>() as u64;
        s.store_u32(at + offset_of!(wire::SegmentPage, process) as u64, process);
        s.store_u32(
            at + offset_of!(wire::SegmentPage, first_thread) as u64,
            thread,
        );
        s.store_u64(at + offset_of!(wire::SegmentPage, shared) as u64, shared);
    }
    for _ in 0..2 {
        s.end_pages_of(&[3, 5].into());
        assert_eq!(s.load_u64(s.layout.ended + 8), 1 | 1 << 4);
        assert!(s.group_has_ended(2));
        assert_eq!(s.ended_pages(), 2 + 64);
    }
}

#[test]
fn object_records_that_are_forgotten_take_no_memory() {
    let s = small();
    let size = size_of::<wire::TargetObject>() as u64;
    let word = |record: u64| s.layout.objects + record * size;
    let memory = || nix::sys::stat::fstat(&s.file).unwrap().st_blocks;
    let before = memory();
    (1..=100).for_each(|record| s.store_u64(word(record), 7));
    // 25.6 to a page of memory: the first page goes with the second run.
    s.forget_objects((2..=30).rev().collect());
    assert_eq!(s.load_u64(word(1)), 7);
    s.forget_objects(vec![1]);
    s.forget_objects((31..=100).collect());
    // Asked first, as reading takes memory.
    assert_eq!(
        (memory() - before) * 512 / 4096,
        2,
        "the first and last page"
    );
    assert_eq!((1..=100).map(|r| s.load_u64(word(r))).sum::<u64>(), 0);
    s.forget_objects(vec![wire::MAX_OBJECTS - 1, u32::MAX]);
}

/// Of the third arena, the entry that goes on with what is in place 5; the first place stands for none.
#[test]
fn continued_uses_are_those_of_the_threads_arena() {
    let s = small();
    let uses = s.layout.arenas + 2 * s.layout.arena_size + s.layout.continued;
    s.store_u64(uses, 9);
    s.store_u64(uses + 5 * 8, 3 << 32 | 70);
    let thread: wire::SegmentThread = wire::SegmentThread {
        arena: 2,
        ..s.read(s.layout.threads)
    };
    let of = |continued| {
        let side = wire::SideRecord {
            continued,
            ..wire::SideRecord::default()
        };
        let done = s.continued_use(&thread, &side);
        (done.accesses, done.writes)
    };
    assert_eq!((of(0), of(4), of(5)), ((0, 0), (0, 0), (70, 3)));
}

#[test]
fn a_second_mapping_sees_the_header() {
    let s = small();
    let bytes = {
        use std::io::Read;
        let mut file = std::fs::File::open(s.attach_path()).unwrap();
        let mut bytes = vec![0; size_of::<SegmentHeader>()];
        file.read_exact(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(bytes[..8], wire::MAGIC.to_le_bytes());
    let hook: SegmentHook = s.read(s.layout.hooks);
    assert_eq!(
        (hook.kind, hook.which, hook.offset, hook.ino),
        (4, 1, 0x1234, 6)
    );
}
