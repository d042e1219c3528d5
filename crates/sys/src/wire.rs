//! Rust mirror of `tracer/wire.h`: what the tracer inside the target and the collector
//! share. The header is the definition and explains the fields; a test compiles it and
//! compares sizes and offsets with these.

pub const MAGIC: u64 = 0x0052_4548_5449_4821;
pub const VERSION: u32 = 20;
pub const MAX_THREADS: u32 = 4352;
pub const MAX_PROCESSES: u32 = 65_536;
pub const MAX_PAGES: u32 = 1 << 26;
pub const MAX_BLOCKS: u32 = 1 << 24;
pub const MAX_SITES: u32 = 1 << 22;
pub const SITE_WORDS: u32 = 1 << 23;
pub const MAX_HOOKS: u32 = 64;
pub const MAX_OBJECTS: u32 = 1 << 22;
pub const PROCESS_OBJECTS: u32 = 1 << 15;
pub const OBJECT_GROUP: u32 = 64;
pub const FRAMES: usize = 8;
pub const SITE_PATH: u32 = 1;
pub const TOUCH_FRAMES: usize = 6;
pub const EVENTS: u32 = 1 << 16;
pub const SAMPLES: u32 = 1024;
pub const SAMPLE_SUMS: u32 = 128;
pub const OBJECT_FREE: u32 = 1;
pub const OBJECT_SITE: u32 = 1;
pub const OBJECT_VARIABLE: u32 = 2;
pub const OBJECT_CONSTANTS: u32 = 3;
pub const OBJECT_UNNAMED: u32 = 4;
pub const OBJECT_MAPPING: u32 = 5;
pub const OBJECT_THREAD_LOCAL: u32 = 6;
pub const OBSERVATIONS: u32 = 2048;
pub const CHUNKS: u32 = 1 << 16;
pub const CHUNK_PAGES: u32 = 1024;
pub const ALIASES: u32 = 1 << 18;
pub const BLOCK_PAGES: u32 = 64;
pub const PAGE_GROUPS: u32 = MAX_PAGES / BLOCK_PAGES;
pub const USER_NODES: u32 = 1 << 26;
pub const LINE_USERS: u32 = 516;
pub const NODE_USERS: u32 = 6;
pub const RECORD_BLOCKS: u32 = 1 << 20;
pub const RECORD_BYTES: u32 = 1 << 28;
pub const RECORD_SITES: u32 = 500;
pub const RECORD_ACCESSES: u32 = 4000;
pub const RECORD_REACH: u32 = 1 << 30;
pub const PIECES: u32 = 1 << 13;
pub const PIECE_BYTES: u32 = 16 << 10;
/// Bytes of a piece before its code.
pub const PIECE_HEAD: u32 = 56;

pub const FLAG_ORACLE: u32 = 1;
pub const FLAG_SAMPLE: u32 = 2;
pub const FLAG_FOLLOW: u32 = 4;
pub const FLAG_RECORD: u32 = 8;

pub const PIECE_FILLING: u32 = 1;
pub const PIECE_WHOLE: u32 = 2;
pub const PIECE_WAITED: u32 = 1;
pub const PIECE_FRESH: u32 = 2;
pub const PIECE_CUT: u32 = 4;

pub const THREAD_FREE: u32 = 0;
pub const THREAD_LIVE: u32 = 1;
pub const THREAD_ENDED: u32 = 2;

pub const PROCESS_FREE: u32 = 0;
pub const PROCESS_LIVE: u32 = 1;
pub const PROCESS_EXITED: u32 = 2;
pub const PROCESS_EXECED: u32 = 3;

pub const HOOK_FROM: u32 = 1;
pub const HOOK_UNTIL: u32 = 2;
pub const HOOK_ONLY: u32 = 3;
pub const HOOK_SYNC: u32 = 4;
pub const HOOK_ALLOC: u32 = 5;
pub const ALLOC_MALLOC: u32 = 1;
pub const ALLOC_CALLOC: u32 = 2;
pub const ALLOC_REALLOC: u32 = 3;
pub const ALLOC_ALIGNED: u32 = 4;
pub const ALLOC_NEW: u32 = 5;
pub const ALLOC_FREE: u32 = 6;
pub const ALLOC_MEMALIGN_OUT: u32 = 7;
pub const SYNC_PTHREAD_BARRIER: u32 = 0;
pub const SYNC_OMP_BARRIER: u32 = 1;
pub const SYNC_OMP_PARALLEL: u32 = 2;
pub const SYNC_MPI_BARRIER: u32 = 3;
pub const SYNCS: usize = 4;
pub const SAMPLE_PERIOD: u32 = 2048;
/// Of the private cache: lines that a sampled one stands for, and ways.
pub const FETCH_PERIOD: u32 = 64;
pub const FETCH_WAYS: u32 = 16;
pub const SHARED_PERIOD: u32 = 1024;
pub const OBSERVED_LOW: u16 = 0;
pub const OBSERVED_UPPER: u16 = 1;
pub const OBSERVED_READ: u16 = 2;
pub const OBSERVED_WRITE: u16 = 3;
pub const OBSERVED_COUNT: u16 = 4;
pub const READY: u32 = 0x4859_5244;
pub const EV_PROCESS: u8 = 1;
pub const EV_EXIT: u8 = 2;
pub const EV_MODULE: u8 = 3;
pub const EV_MAP: u8 = 4;
pub const EV_UNMAP: u8 = 5;
pub const EV_REMAP: u8 = 6;
pub const EV_BRK: u8 = 7;
pub const EV_ALLOC: u8 = 8;
pub const EV_BLOCKS: u8 = 9;
pub const EV_LOST: u8 = 10;
pub const EV_THREAD_LOCALS: u8 = 11;
pub const MAP_PRIVATE: u16 = 0;
pub const MAP_SHARED_FILE: u16 = 1;
pub const MAP_SHARED_ANON: u16 = 2;
pub const MAP_SYSV: u16 = 3;
pub const MAP_INITIAL: u16 = 4;

pub const LOST_CHILD_32BIT: u64 = 1;
pub const LOST_THREADS: u64 = 2;
pub const LOST_PROCESSES: u64 = 3;
pub const LOST_MEMORY: u64 = 4;
pub const LOST_OBJECTS: u64 = 5;
pub const LOST_VIRTUAL_MACHINE: u64 = 6;
pub const LOST_RIGHTS: u64 = 7;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegmentHeader {
    pub magic: u64,
    pub version: u32,
    pub header_size: u32,
    pub line_log2: u32,
    pub sharers: u32,
    pub cache_log2: u32,
    pub flags: u32,
    pub nhooks: u32,
    pub fetch_sets: u32,
    pub alloc_min: u32,
    pub slice_ns: u64,
    pub epoch: u32,
    pub active: u32,
    pub closed: u32,
    pub collector_pid: i32,
    pub slice_traced: u64,
    pub record_window: u32,
    pub record_open: u32,
    pub record_ns: u64,
    pub next_thread: u32,
    pub next_process: u32,
    pub next_page: u32,
    pub next_block: u32,
    pub next_site: u32,
    pub next_chunk_object: u32,
    pub lost_threads: u32,
    pub lost_processes: u32,
    pub lost_pages: u32,
    pub lost_blocks: u32,
    pub lost_sites: u32,
    pub lost_chunks: u32,
    pub next_user_node: u32,
    pub lost_users: u32,
    pub lost_events: u64,
    pub displaced_users: u64,
    pub event_head: u64,
    pub event_tail: u64,
    pub arena_busy: [u64; MAX_THREADS.div_ceil(64) as usize],
    pub given_back: [u64; MAX_THREADS.div_ceil(64) as usize],
    pub record_top: u64,
    pub next_record_block: u32,
    pub lost_record_blocks: u32,
    pub lost_pieces: u32,
    pub next_object: u32,
    pub next_serial: u32,
    pub piece_busy: [u64; PIECES as usize / 64],
    pub ended_pages: u64,
    pub free_head: u64,
    pub free_tail: u64,
    pub off_threads: u64,
    pub off_processes: u64,
    pub off_hooks: u64,
    pub off_sites: u64,
    pub off_events: u64,
    pub off_samples: u64,
    pub off_observations: u64,
    pub off_directory: u64,
    pub off_comm: u64,
    pub off_pages: u64,
    pub off_chunks: u64,
    pub off_aliases: u64,
    pub off_owners: u64,
    pub off_dirty: u64,
    pub off_blocks: u64,
    pub off_page_users: u64,
    pub off_shadow: u64,
    pub off_user_nodes: u64,
    pub off_user_counts: u64,
    pub off_arenas: u64,
    pub off_record_blocks: u64,
    pub off_record_bytes: u64,
    pub off_pieces: u64,
    pub off_objects: u64,
    pub off_object_counts: u64,
    pub off_object_used: u64,
    pub off_ended: u64,
    pub off_free_groups: u64,
    pub off_site_words: u64,
    pub total_size: u64,
    pub arena_size: u64,
    pub left_in_arena: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegmentThread {
    pub state: u32,
    pub process: u32,
    pub creator: u32,
    pub tid: i32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub stack_pointer: u64,
    pub instructions: u64,
    pub misses: u64,
    pub sync: [u64; SYNCS],
    pub epoch: u32,
    pub cache: u32,
    pub arena: u32,
    pub owns_arena: u32,
    pub sample_head: u64,
    pub sample_tail: u64,
    pub lost_samples: u64,
    pub name: [u8; 16],
    pub comm_dirty: [u64; 2],
    pub traced_accesses: u64,
    pub untraced_accesses: u64,
    pub used: [u64; 8],
    pub flipped: u32,
    pub recorded: u32,
    pub observation_head: u32,
    pub observation_tail: u32,
    pub counter: u64,
    pub created_at: u64,
    pub start_routine: u64,
    pub thread_pointer: u64,
    pub ended: u32,
    pub joined: u32,
    pub serial: u32,
    pub free_block: u32,
    pub pad: [u64; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegmentProcess {
    pub state: u32,
    pub pid: i32,
    pub parent_pid: i32,
    pub parent: u32,
    pub generation: u32,
    pub inherited_objects: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub pad: [u64; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentHook {
    pub kind: u32,
    pub which: u32,
    pub offset: u64,
    pub dev: u64,
    pub ino: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CodeSite {
    pub pc: u64,
    pub process: u32,
    pub generation: u32,
    pub span: u32,
    pub kind: u32,
    pub reads: [u64; 2],
    pub writes: [u64; 2],
    pub caller: u64,
}

impl CodeSite {
    /// The return addresses of a path, innermost first; of a site proper none.
    #[must_use]
    pub fn path(&self) -> Vec<u64> {
        let [r, w] = [self.reads, self.writes];
        let frames: [u64; TOUCH_FRAMES] = [self.pc, r[0], r[1], w[0], w[1], self.caller];
        let known = frames.into_iter().filter(|_| self.kind == SITE_PATH);
        known.take_while(|&frame| frame != 0).collect()
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AccessSample {
    pub address: u64,
    pub site: u32,
    pub reads: u32,
    pub writes: u32,
    pub after: i16,
    pub object: u16,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LineObservation {
    pub page: u32,
    pub site: u32,
    pub at: u16,
    pub kind: u16,
    pub n: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegmentEvent {
    pub ready: u32,
    pub kind: u8,
    pub more: u8,
    pub process: u16,
    pub thread: u16,
    pub aux: u16,
    pub generation: u32,
    pub a: [u64; 6],
}

/// Read by the target only.
#[repr(C)]
pub struct PageUsers {
    pub word: u64,
    pub lines: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegmentPage {
    pub va: u64,
    pub process: u32,
    pub generation: u32,
    pub first_thread: u32,
    pub first_epoch: u32,
    pub shared: u64,
    pub first_site: u32,
    pub first_path: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SharedChunk {
    pub state: u32,
    pub base_page: u32,
    pub dev: u64,
    pub ino: u64,
    pub chunk: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ChunkAlias {
    pub key: u64,
    pub va: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BlockOwner {
    pub thread: u32,
    pub page_block: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessCount {
    pub reads: u64,
    pub writes: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PageCountBlock {
    pub page: [AccessCount; BLOCK_PAGES as usize],
    pub fetches: [u32; BLOCK_PAGES as usize],
}

/// A data structure in the target, as the tracer knows it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TargetObject {
    pub kind: u32,
    pub process: u32,
    pub id: u32,
    pub generation: u32,
    pub address: u64,
    pub size: u64,
    pub frames: [u64; FRAMES],
    pub thread: u32,
    pub pad: u32,
    pub blocks: u64,
    pub bytes: u64,
    pub smallest: u64,
    pub largest: u64,
    pub granules: u64,
    pub live: u64,
    pub peak: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectCount {
    pub reads: u64,
    pub writes: u64,
    pub fetches: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedBlock {
    pub offset: u64,
    pub stack: i64,
    pub moves_stack: i64,
    pub length: u32,
    pub instructions: u32,
    pub sites: u16,
    pub lengths: u16,
    pub accesses: u16,
    pub has_stack: u16,
    pub ready: u32,
    pub pad0: u32,
}

/// What of a piece comes before its code.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentPiece {
    pub state: u32,
    pub thread: u32,
    pub process: u32,
    pub window: u32,
    pub sequence: u32,
    pub flags: u32,
    pub accesses: u32,
    pub instructions: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub length: u32,
    pub pad0: u32,
}

/// A record that can be read from the segment whatever bytes lie there.
///
/// # Safety
/// Every bit pattern is a valid value, and the size is a multiple of 8.
pub unsafe trait SegmentRecord: Copy {}

macro_rules! records {
    ($($record:ty = $size:expr),+ $(,)?) => {$(
        // SAFETY: repr(C), made of integers only; the size is asserted below.
        unsafe impl SegmentRecord for $record {}
        const _: () = assert!(size_of::<$record>() == $size && $size % 8 == 0);
    )+};
}
records!(
    SegmentThread = 320,
    SegmentProcess = 64,
    SegmentHook = 32,
    CodeSite = 64,
    AccessSample = 24,
    LineObservation = 16,
    SegmentEvent = 64,
    SegmentPage = 40,
    SharedChunk = 32,
    ChunkAlias = 16,
    BlockOwner = 8,
    AccessCount = 16,
    PageCountBlock = 1280,
    LineCacheEntry = 16,
    SideRecord = 24,
    LineUseCount = 8,
    LeftLine = 24,
    TargetObject = 160,
    ObjectCount = 24,
    RecordedBlock = 48,
    SegmentPiece = 56,
    [[u64; 2]; 64] = 1024,
);
const _: () = assert!(std::mem::offset_of!(SegmentThread, comm_dirty) == 144);
const _: () = assert!(std::mem::offset_of!(SegmentEvent, a) == 16);

mod line_cache;
pub use line_cache::*;

#[cfg(test)]
mod tests;
