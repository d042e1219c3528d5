//! The mirror in Rust against the C header, both printed and compared.
use super::*;
use std::fmt::Write as _;
use std::mem::offset_of;
use std::process::Command;

/// The expected lines of the C program, and the C statements that print them.
struct Both {
    rust: String,
    c: String,
}

impl Both {
    fn size(&mut self, c_name: &str, size: usize) {
        writeln!(self.rust, "{c_name} {size}").unwrap();
        writeln!(
            self.c,
            "printf(\"{c_name} %zu\\n\", sizeof(struct {c_name}));"
        )
        .unwrap();
    }
    fn field(&mut self, c_name: &str, field: &str, offset: usize) {
        writeln!(self.rust, "{c_name}.{field} {offset}").unwrap();
        writeln!(
            self.c,
            "printf(\"{c_name}.{field} %zu\\n\", offsetof(struct {c_name}, {field}));"
        )
        .unwrap();
    }
    fn number(&mut self, c_name: &str, value: u64) {
        writeln!(self.rust, "{c_name} {value}").unwrap();
        writeln!(
            self.c,
            "printf(\"{c_name} %llu\\n\", (unsigned long long)({c_name}));"
        )
        .unwrap();
    }
}

macro_rules! compare {
    ($both:ident, $c:literal, $rust:ident: $($field:ident),+) => {
        $both.size($c, size_of::<$rust>());
        $($both.field($c, stringify!($field), offset_of!($rust, $field));)+
    };
}

fn layout() -> Both {
    let mut b = Both {
        rust: String::new(),
        c: String::new(),
    };
    compare!(b, "hi_header", SegmentHeader: magic, version, header_size, line_log2, sharers,
        cache_log2, flags, nhooks, fetch_sets, alloc_min, slice_ns, epoch, active, closed, slice_traced, record_window, record_open,
        record_ns,
        collector_pid, next_thread, next_process, next_page, next_block, next_site,
        next_chunk_object, lost_threads, lost_processes, lost_pages, lost_blocks, lost_sites,
        lost_chunks, next_user_node, lost_users, lost_events, displaced_users, event_head, event_tail, arena_busy, given_back, record_top, next_record_block,
        lost_record_blocks, lost_pieces, piece_busy, off_threads,
        off_processes, off_hooks, off_sites, off_events, off_samples, off_observations, off_directory, off_comm,
        off_pages, off_chunks, off_aliases, off_owners, off_dirty, off_blocks, off_page_users, off_shadow,
        off_user_nodes, off_user_counts, off_arenas, off_record_blocks, off_record_bytes, off_pieces, off_objects, off_object_counts, off_object_used,
        ended_pages, free_head, free_tail, off_ended, off_free_groups, off_site_words,
        total_size, arena_size, left_in_arena, next_object, next_serial);
    compare!(b, "hi_thread", SegmentThread: state, process, creator, tid, start_ns, end_ns,
        stack_pointer, instructions, misses, sync, epoch, cache, arena, owns_arena,
        sample_head, sample_tail, lost_samples, name, comm_dirty, traced_accesses,
        untraced_accesses, used, flipped, recorded, observation_head, observation_tail, counter,
        created_at, start_routine, thread_pointer, ended, joined, serial, free_block);
    compare!(b, "hi_process", SegmentProcess: state, pid, parent_pid, parent, generation, inherited_objects,
        start_ns, end_ns);
    compare!(b, "hi_hook", SegmentHook: kind, which, offset, dev, ino);
    compare!(b, "hi_site", CodeSite: pc, process, generation, span, kind, reads, writes, caller);
    compare!(b, "hi_sample", AccessSample: address, site, reads, writes, after, object);
    compare!(b, "hi_object", TargetObject: kind, process, id, generation, address, size, frames,
        thread, blocks, bytes, smallest, largest, granules, live, peak);
    compare!(b, "hi_object_count", ObjectCount: reads, writes, fetches);
    compare!(b, "hi_observation", LineObservation: page, site, at, kind, n);
    compare!(b, "hi_event", SegmentEvent: ready, kind, more, process, thread, aux, generation, a);
    compare!(b, "hi_page", SegmentPage: va, process, generation, first_thread, first_epoch, shared,
        first_site, first_path);
    compare!(b, "hi_page_users", PageUsers: word, lines);
    compare!(b, "hi_chunk", SharedChunk: state, base_page, dev, ino, chunk);
    compare!(b, "hi_alias", ChunkAlias: key, va);
    compare!(b, "hi_owner", BlockOwner: thread, page_block);
    compare!(b, "hi_count", AccessCount: reads, writes);
    compare!(b, "hi_block", PageCountBlock: page, fetches);
    compare!(b, "hi_entry", LineCacheEntry: tag, reads, writes);
    compare!(b, "hi_left_line", LeftLine: key, uses, page, others);
    compare!(b, "hi_side", SideRecord: line, others, continued, z1, z2, s1, s2);
    compare!(b, "hi_record_block", RecordedBlock: offset, stack, moves_stack, length,
        instructions, sites, lengths, accesses, has_stack, ready);
    // Its code follows, which the mirror does not hold.
    b.number("sizeof(struct hi_piece)", PIECE_BYTES.into());
    b.number(
        "offsetof(struct hi_piece, code)",
        size_of::<SegmentPiece>() as u64,
    );
    for (field, offset) in [
        ("thread", offset_of!(SegmentPiece, thread)),
        ("flags", offset_of!(SegmentPiece, flags)),
        ("start_ns", offset_of!(SegmentPiece, start_ns)),
        ("length", offset_of!(SegmentPiece, length)),
    ] {
        b.field("hi_piece", field, offset);
    }
    b
}

fn constants(b: &mut Both) {
    b.number("HI_TAG_LINE", TAG_LINE);
    b.number("HI_STALE", STALE);
    b.number("HI_EXACT", EXACT);
    b.number("HI_MAGIC", MAGIC);
    for (name, value) in [
        ("HI_VERSION", VERSION),
        ("HI_MAX_THREADS", MAX_THREADS),
        ("HI_MAX_OBJECTS", MAX_OBJECTS),
        ("HI_PROCESS_OBJECTS", PROCESS_OBJECTS),
        ("HI_OBJECT_GROUP", OBJECT_GROUP),
        ("HI_FRAMES", FRAMES as u32),
        ("HI_SITE_PATH", SITE_PATH),
        ("HI_TOUCH_FRAMES", TOUCH_FRAMES as u32),
        ("HI_SIDE_SITE", SIDE_SITE),
        ("HI_SIDE_OBJECT", SIDE_OBJECT),
        ("HI_SAMPLE_PERIOD", SAMPLE_PERIOD),
        ("HI_FETCH_PERIOD", FETCH_PERIOD),
        ("HI_FETCH_WAYS", FETCH_WAYS),
        ("HI_OBJECT_FREE", OBJECT_FREE),
        ("HI_OBJECT_SITE", OBJECT_SITE),
        ("HI_OBJECT_VARIABLE", OBJECT_VARIABLE),
        ("HI_OBJECT_CONSTANTS", OBJECT_CONSTANTS),
        ("HI_OBJECT_UNNAMED", OBJECT_UNNAMED),
        ("HI_OBJECT_MAPPING", OBJECT_MAPPING),
        ("HI_OBJECT_THREAD_LOCAL", OBJECT_THREAD_LOCAL),
        ("HI_MAX_PROCESSES", MAX_PROCESSES),
        ("HI_MAX_PAGES", MAX_PAGES),
        ("HI_MAX_BLOCKS", MAX_BLOCKS),
        ("HI_MAX_SITES", MAX_SITES),
        ("HI_SITE_WORDS", SITE_WORDS),
        ("HI_MAX_HOOKS", MAX_HOOKS),
        ("HI_EVENTS", EVENTS),
        ("HI_SAMPLES", SAMPLES),
        ("HI_SAMPLE_SUMS", SAMPLE_SUMS),
        ("HI_OBSERVATIONS", OBSERVATIONS),
        ("1u << HI_LEFT_LOG2", LEFT_LINES),
        ("HI_SHARED_PERIOD", SHARED_PERIOD),
        ("HI_OBSERVED_LOW", u32::from(OBSERVED_LOW)),
        ("HI_OBSERVED_UPPER", u32::from(OBSERVED_UPPER)),
        ("HI_OBSERVED_READ", u32::from(OBSERVED_READ)),
        ("HI_OBSERVED_WRITE", u32::from(OBSERVED_WRITE)),
        ("HI_OBSERVED_COUNT", u32::from(OBSERVED_COUNT)),
        ("HI_CHUNKS", CHUNKS),
        ("HI_CHUNK_PAGES", CHUNK_PAGES),
        ("HI_ALIASES", ALIASES),
        ("HI_BLOCK_PAGES", BLOCK_PAGES),
        ("HI_PAGE_GROUPS", PAGE_GROUPS),
        ("HI_USER_NODES", USER_NODES),
        ("HI_LINE_USERS", LINE_USERS),
        ("HI_NODE_USERS", NODE_USERS),
        ("HI_OTHERS", OTHERS),
        ("HI_LIST_WORDS", LIST_WORDS),
        ("HI_CONTINUED_USES", CONTINUED_USES),
        ("HI_READY", READY),
        ("HI_GROUP", CACHE_GROUP),
        ("HI_CACHE_LOG2_MIN", CACHE_LOG2_MIN),
        ("HI_CACHE_LOG2_MAX", CACHE_LOG2_MAX),
        ("HI_RECORD_BLOCKS", RECORD_BLOCKS),
        ("HI_RECORD_BYTES", RECORD_BYTES),
        ("HI_RECORD_SITES", RECORD_SITES),
        ("HI_RECORD_REACH", RECORD_REACH),
        ("HI_RECORD_ACCESSES", RECORD_ACCESSES),
        ("HI_PIECES", PIECES),
        ("HI_PIECE_WHOLE", PIECE_WHOLE),
        ("HI_PIECE_WAITED", PIECE_WAITED),
        ("HI_PIECE_FRESH", PIECE_FRESH),
        ("HI_PIECE_CUT", PIECE_CUT),
        ("HI_FLAG_RECORD", FLAG_RECORD),
        ("HI_FLAG_FOLLOW", FLAG_FOLLOW),
        ("HI_THREAD_ENDED", THREAD_ENDED),
        ("HI_PROCESS_EXECED", PROCESS_EXECED),
        ("HI_HOOK_ALLOC", HOOK_ALLOC),
        ("HI_ALLOC_MALLOC", ALLOC_MALLOC),
        ("HI_ALLOC_CALLOC", ALLOC_CALLOC),
        ("HI_ALLOC_REALLOC", ALLOC_REALLOC),
        ("HI_ALLOC_ALIGNED", ALLOC_ALIGNED),
        ("HI_ALLOC_NEW", ALLOC_NEW),
        ("HI_ALLOC_FREE", ALLOC_FREE),
        ("HI_ALLOC_MEMALIGN_OUT", ALLOC_MEMALIGN_OUT),
        ("HI_SYNC_PTHREAD_BARRIER", SYNC_PTHREAD_BARRIER),
        ("HI_SYNC_OMP_BARRIER", SYNC_OMP_BARRIER),
        ("HI_SYNC_OMP_PARALLEL", SYNC_OMP_PARALLEL),
        ("HI_SYNC_MPI_BARRIER", SYNC_MPI_BARRIER),
        ("HI_SYNCS", SYNCS as u32),
        ("HI_EV_LOST", u32::from(EV_LOST)),
        ("HI_EV_THREAD_LOCALS", u32::from(EV_THREAD_LOCALS)),
        ("HI_MAP_INITIAL", u32::from(MAP_INITIAL)),
        ("HI_LOST_MEMORY", LOST_MEMORY as u32),
        ("HI_LOST_OBJECTS", LOST_OBJECTS as u32),
        ("HI_LOST_VIRTUAL_MACHINE", LOST_VIRTUAL_MACHINE as u32),
        ("HI_LOST_RIGHTS", LOST_RIGHTS as u32),
    ] {
        b.number(name, u64::from(value));
    }
}

#[test]
fn mirror_equals_the_c_header() {
    let mut both = layout();
    constants(&mut both);
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("layout.c");
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tracer/wire.h");
    let program = format!(
        "#include <stdio.h>\n#include <stddef.h>\n#include \"{header}\"\nint main(void) {{\n{}return 0;\n}}\n",
        both.c
    );
    std::fs::write(&source, program).unwrap();
    let binary = folder.path().join("layout");
    let built = Command::new("cc")
        .arg("-o")
        .arg(&binary)
        .arg(&source)
        .status()
        .unwrap();
    assert!(built.success(), "cc refused the header");
    let printed = Command::new(&binary).output().unwrap().stdout;
    assert_eq!(String::from_utf8(printed).unwrap(), both.rust);
}
