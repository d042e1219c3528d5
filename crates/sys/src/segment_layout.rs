//! Where the areas of the shared segment lie.
use crate::wire::{self, SegmentHeader};

/// Where the areas lie, in bytes from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentLayout {
    pub threads: u64,
    pub processes: u64,
    pub hooks: u64,
    pub sites: u64,
    pub events: u64,
    pub samples: u64,
    pub seen: u64,
    pub directory: u64,
    pub comm: u64,
    pub pages: u64,
    pub chunks: u64,
    pub aliases: u64,
    pub owners: u64,
    pub dirty: u64,
    pub blocks: u64,
    pub page_users: u64,
    pub shadow: u64,
    pub user_nodes: u64,
    pub user_counts: u64,
    pub arenas: u64,
    pub record_blocks: u64,
    pub record_bytes: u64,
    pub pieces: u64,
    pub objects: u64,
    pub object_counts: u64,
    pub object_used: u64,
    pub ended: u64,
    pub free_groups: u64,
    pub site_words: u64,
    pub total: u64,
    /// Of the shadow, for a page.
    pub shadow_bytes: u64,
    pub arena_size: u64,
    /// Where in an arena the lists of side records are.
    pub lists: u64,
    /// Where in an arena the left lines are.
    pub left: u64,
    /// Where in an arena the continued uses are.
    pub continued: u64,
    pub cache_entries: u64,
}

impl SegmentLayout {
    pub(crate) fn new(line_log2: u32, cache_log2: u32, fetch_sets: u32) -> SegmentLayout {
        let mut end = page_up(size_of::<SegmentHeader>() as u64);
        let mut area = |bytes: u64| {
            let start = end;
            end = page_up(end + bytes);
            start
        };
        let [threads, pages, blocks] =
            [wire::MAX_THREADS, wire::MAX_PAGES, wire::MAX_BLOCKS].map(u64::from);
        let cache_entries = 1u64 << cache_log2;
        let fetch_lines = u64::from(fetch_sets) * u64::from(wire::FETCH_WAYS);
        let [entry, side] = [
            size_of::<wire::LineCacheEntry>(),
            size_of::<wire::SideRecord>(),
        ]
        .map(|bytes| bytes as u64);
        // To which the tracer aligns each of them.
        let cache_bytes = cache_entries * entry;
        let lists = 2 * cache_entries * (entry + side) + fetch_lines * 8;
        let left = lists + u64::from(wire::LIST_WORDS) * 2;
        let continued = left + u64::from(wire::LEFT_LINES) * size_of::<wire::LeftLine>() as u64;
        let continued_bytes =
            u64::from(wire::CONTINUED_USES) * size_of::<wire::LineUseCount>() as u64;
        let arena_size = (continued + continued_bytes).next_multiple_of(cache_bytes);
        let shadow_bytes = (4096 >> line_log2) * 8;
        let mut l = SegmentLayout {
            threads: area(threads * size_of::<wire::SegmentThread>() as u64),
            processes: area(u64::from(wire::MAX_PROCESSES) * 64),
            hooks: area(u64::from(wire::MAX_HOOKS) * 32),
            sites: area(u64::from(wire::MAX_SITES) * size_of::<wire::CodeSite>() as u64),
            events: area(u64::from(wire::EVENTS) * 64),
            samples: area(threads * u64::from(wire::SAMPLES + wire::SAMPLE_SUMS) * 24),
            seen: area(
                threads * u64::from(wire::OBSERVATIONS) * size_of::<wire::LineObservation>() as u64,
            ),
            directory: area(threads * (pages / u64::from(wire::BLOCK_PAGES)) * 4),
            comm: area(threads * 2 * threads * 16),
            pages: area(pages * size_of::<wire::SegmentPage>() as u64),
            chunks: area(u64::from(wire::CHUNKS) * 32),
            aliases: area(u64::from(wire::ALIASES) * 16),
            owners: area(blocks * 8),
            dirty: area(blocks),
            blocks: area(blocks * size_of::<wire::PageCountBlock>() as u64),
            page_users: area(pages * size_of::<wire::PageUsers>() as u64),
            shadow: area(pages * shadow_bytes),
            user_nodes: area(u64::from(wire::USER_NODES) * 16),
            user_counts: area(u64::from(wire::USER_NODES * wire::NODE_USERS) * 8),
            arenas: area(threads * arena_size + cache_bytes).next_multiple_of(cache_bytes),
            record_blocks: area(
                u64::from(wire::RECORD_BLOCKS) * size_of::<wire::RecordedBlock>() as u64,
            ),
            record_bytes: area(wire::RECORD_BYTES.into()),
            pieces: area(u64::from(wire::PIECES) * u64::from(wire::PIECE_BYTES)),
            objects: area(u64::from(wire::MAX_OBJECTS) * size_of::<wire::TargetObject>() as u64),
            object_counts: area(
                threads * u64::from(wire::PROCESS_OBJECTS) * size_of::<wire::ObjectCount>() as u64,
            ),
            object_used: area(threads * u64::from(wire::PROCESS_OBJECTS / wire::OBJECT_GROUP / 8)),
            ended: area(u64::from(wire::PAGE_GROUPS) * 8),
            free_groups: area(u64::from(wire::PAGE_GROUPS) * 4),
            site_words: area(u64::from(wire::SITE_WORDS) * 8),
            total: 0,
            shadow_bytes,
            arena_size,
            lists,
            left,
            continued,
            cache_entries,
        };
        l.total = end;
        l
    }
}

fn page_up(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}
