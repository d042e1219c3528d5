//! Typed views of the segment's areas, for the collector. Indices may be any number:
//! out of range reads zeros.
use crate::segment::Segment;
use crate::segment_written::WrittenPage;
use crate::wire::{self, SegmentHeader};
use std::mem::offset_of;

/// What a path can have (PATH_MAX): the ring has room for more.
const LONGEST_PATH: usize = 4096;

macro_rules! header_at {
    ($field:ident) => {
        offset_of!(SegmentHeader, $field) as u64
    };
}

/// What the target had to leave out, as counted in the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentLosses {
    pub threads: u32,
    pub processes: u32,
    pub pages: u32,
    pub blocks: u32,
    pub sites: u32,
    pub chunks: u32,
    /// Users of lines with whom accesses do not count.
    pub users: u32,
    pub events: u64,
    /// Users of lines whose places later ones took.
    pub displaced_users: u64,
}

/// One record of the event ring with its string.
#[derive(Clone, Debug)]
pub struct EventRecord {
    pub event: wire::SegmentEvent,
    pub text: String,
}

impl Segment {
    /// Tells the threads that a new slice began. The nodes of the last but one are free again.
    pub fn set_epoch(&self, epoch: u32) {
        let first = (epoch & 1) * (wire::USER_NODES / 2);
        self.store_u32(header_at!(next_user_node), first.max(1));
        self.store_u32(header_at!(epoch), epoch);
    }

    /// With sampling: whether this slice is traced.
    pub fn set_slice_traced(&self, traced: bool) {
        self.store_u64(header_at!(slice_traced), u64::from(traced));
    }

    /// Whether accesses count now: not before `--from`, nor after `--until`.
    pub fn is_active(&self) -> bool {
        self.load_u32(header_at!(active)) != 0
    }

    /// Tells the target that the collector reads no more.
    pub fn close(&self) {
        self.store_u32(header_at!(closed), 1);
    }

    /// One past the last thread slot in use, never above the limit.
    #[must_use]
    pub fn next_thread(&self) -> u32 {
        self.load_u32(header_at!(next_thread))
            .min(wire::MAX_THREADS)
    }

    #[must_use]
    pub fn next_process(&self) -> u32 {
        self.load_u32(header_at!(next_process))
            .min(wire::MAX_PROCESSES)
    }

    #[must_use]
    pub fn next_page(&self) -> u32 {
        self.load_u32(header_at!(next_page)).min(wire::MAX_PAGES)
    }

    #[must_use]
    pub fn next_block(&self) -> u32 {
        self.load_u32(header_at!(next_block)).min(wire::MAX_BLOCKS)
    }

    #[must_use]
    pub fn lost(&self) -> SegmentLosses {
        SegmentLosses {
            threads: self.load_u32(header_at!(lost_threads)),
            processes: self.load_u32(header_at!(lost_processes)),
            pages: self.load_u32(header_at!(lost_pages)),
            blocks: self.load_u32(header_at!(lost_blocks)),
            sites: self.load_u32(header_at!(lost_sites)),
            chunks: self.load_u32(header_at!(lost_chunks)),
            users: self.load_u32(header_at!(lost_users)),
            events: self.load_u64(header_at!(lost_events)),
            displaced_users: self.load_u64(header_at!(displaced_users)),
        }
    }

    pub(crate) fn slot_offset(&self, area: u64, index: u64, count: u32, size: u64) -> u64 {
        if index < u64::from(count) {
            area + index * size
        } else {
            u64::MAX - 4095
        }
    }

    pub(crate) fn thread_offset(&self, thread: u32) -> u64 {
        let size = size_of::<wire::SegmentThread>() as u64;
        self.slot_offset(
            self.layout().threads,
            thread.into(),
            wire::MAX_THREADS,
            size,
        )
    }

    /// A thread's slot; valid once its state is not FREE.
    #[must_use]
    pub fn thread(&self, thread: u32) -> wire::SegmentThread {
        let at = self.thread_offset(thread);
        let state = self.load_u32(at + offset_of!(wire::SegmentThread, state) as u64);
        wire::SegmentThread {
            state,
            ..self.read(at)
        }
    }

    #[must_use]
    pub fn process(&self, process: u32) -> wire::SegmentProcess {
        let area = self.layout().processes;
        self.read(self.slot_offset(area, process.into(), wire::MAX_PROCESSES, 64))
    }

    #[must_use]
    pub fn site(&self, site: u32) -> wire::CodeSite {
        self.read(self.slot_offset(
            self.layout().sites,
            site.into(),
            wire::MAX_SITES,
            size_of::<wire::CodeSite>() as u64,
        ))
    }

    #[must_use]
    pub fn page(&self, page: u32) -> wire::SegmentPage {
        let size = size_of::<wire::SegmentPage>() as u64;
        self.read(self.slot_offset(self.layout().pages, page.into(), wire::MAX_PAGES, size))
    }

    #[must_use]
    pub fn chunk(&self, chunk: u32) -> wire::SharedChunk {
        self.read(self.slot_offset(self.layout().chunks, chunk.into(), wire::CHUNKS, 32))
    }

    #[must_use]
    pub fn alias(&self, alias: u32) -> wire::ChunkAlias {
        self.read(self.slot_offset(self.layout().aliases, alias.into(), wire::ALIASES, 16))
    }

    #[must_use]
    pub fn owner(&self, block: u32) -> wire::BlockOwner {
        let at = self.slot_offset(self.layout().owners, block.into(), wire::MAX_BLOCKS, 8);
        // All of them are read again and again, and they are small: whether they were ever written is
        // not asked.
        let word = self.load_u64(at);
        wire::BlockOwner {
            thread: word as u32,
            page_block: (word >> 32) as u32,
        }
    }

    #[must_use]
    pub fn block(&self, block: u32) -> wire::PageCountBlock {
        self.read(self.slot_offset(
            self.layout().blocks,
            block.into(),
            wire::MAX_BLOCKS,
            size_of::<wire::PageCountBlock>() as u64,
        ))
    }

    /// Whether the target has written to a block of counts, as far as pages tell. Reading one that
    /// it has not would take memory for it.
    #[must_use]
    pub fn is_block_written(&self, block: u32) -> bool {
        let size = size_of::<wire::PageCountBlock>() as u64;
        let at = self.slot_offset(self.layout().blocks, block.into(), wire::MAX_BLOCKS, size);
        self.has_data(at, size)
    }

    /// Eight blocks' dirty flags at once; `first` is a multiple of 8.
    #[must_use]
    pub fn dirty_word(&self, first: u32) -> u64 {
        self.load_u64(self.layout().dirty + u64::from(first))
    }

    /// Clears a block's dirty flag; call before reading the block.
    pub fn clear_dirty(&self, block: u32) {
        self.swap_u8(self.layout().dirty + u64::from(block), 0);
    }

    /// Takes the bits that say which groups of 64 columns of a row changed.
    pub fn take_comm_dirty(&self, thread: u32, parity: u32) -> u64 {
        let field = offset_of!(wire::SegmentThread, comm_dirty) as u64 + u64::from(parity & 1) * 8;
        self.swap_u64(self.thread_offset(thread) + field, 0)
    }

    /// 64 columns of a communication row: events, coherence events.
    #[must_use]
    pub fn comm_group(&self, thread: u32, parity: u32, group: u32) -> [[u64; 2]; 64] {
        let rows = u64::from(wire::MAX_THREADS);
        let row = self.slot_offset(
            self.layout().comm,
            u64::from(thread) * 2 + u64::from(parity & 1),
            2 * wire::MAX_THREADS,
            rows * 16,
        );
        self.read(row.saturating_add(u64::from(group) * 1024))
    }

    /// Calls `each` for every new sample of a thread, and returns how many were lost
    /// because the ring had wrapped.
    pub fn drain_samples(&self, thread: u32, mut each: impl FnMut(wire::AccessSample)) -> u64 {
        let at = self.thread_offset(thread);
        let head = self.load_u64(at + offset_of!(wire::SegmentThread, sample_head) as u64);
        let tail_at = at + offset_of!(wire::SegmentThread, sample_tail) as u64;
        let tail = self.load_u64(tail_at);
        if head == tail {
            return 0;
        }
        let room = u64::from(wire::SAMPLES);
        let waiting = head.wrapping_sub(tail).min(room);
        let ring = self.slot_offset(
            self.layout().samples,
            thread.into(),
            wire::MAX_THREADS,
            room * 24,
        );
        let first = head.wrapping_sub(waiting);
        let mut page = WrittenPage::default();
        for n in 0..waiting {
            let at = ring.saturating_add(first.wrapping_add(n) % room * 24);
            if page.is_written(at, |at| self.written_from(at)) {
                each(self.read(at));
            }
        }
        self.store_u64(tail_at, head);
        first.wrapping_sub(tail)
    }

    /// What a thread that could not flush its line cache summed of samples in its last slice.
    pub fn for_each_sample_sum(&self, thread: u32, mut each: impl FnMut(wire::AccessSample)) {
        let [rings, sums] = [wire::SAMPLES, wire::SAMPLE_SUMS].map(|n| u64::from(n) * 24);
        let behind_rings = self.layout().samples + u64::from(wire::MAX_THREADS) * rings;
        let at = self.slot_offset(behind_rings, thread.into(), wire::MAX_THREADS, sums);
        let mut page = WrittenPage::default();
        for n in 0..u64::from(wire::SAMPLE_SUMS) {
            let at = at.saturating_add(n * 24);
            if page.is_written(at, |at| self.written_from(at)) {
                let sum: wire::AccessSample = self.read(at);
                if sum.reads | sum.writes != 0 {
                    each(sum);
                }
            }
        }
    }

    /// Calls `each` for all that a thread saw of shared lines since the last call. What the
    /// ring had no room for is not there.
    pub fn drain_line_observations(
        &self,
        thread: u32,
        mut each: impl FnMut(wire::LineObservation),
    ) {
        let at = self.thread_offset(thread);
        let head = self.load_u32(at + offset_of!(wire::SegmentThread, observation_head) as u64);
        let tail_at = at + offset_of!(wire::SegmentThread, observation_tail) as u64;
        let waiting = head
            .wrapping_sub(self.load_u32(tail_at))
            .min(wire::OBSERVATIONS);
        let size = size_of::<wire::LineObservation>() as u64;
        let room = u64::from(wire::OBSERVATIONS) * size;
        let ring = self.slot_offset(self.layout().seen, thread.into(), wire::MAX_THREADS, room);
        let mut page = WrittenPage::default();
        for n in 0..waiting {
            let index = head.wrapping_sub(waiting).wrapping_add(n) % wire::OBSERVATIONS;
            let at = ring.saturating_add(u64::from(index) * size);
            if page.is_written(at, |at| self.written_from(at)) {
                each(self.read(at));
            }
        }
        if waiting > 0 {
            self.store_u32(tail_at, head);
        }
    }

    /// Slots of the event ring written or reserved and not yet read.
    #[must_use]
    pub fn events_waiting(&self) -> u64 {
        let head = self.load_u64(header_at!(event_head));
        let tail = self.load_u64(header_at!(event_tail));
        head.wrapping_sub(tail).min(u64::from(wire::EVENTS))
    }

    fn event_offset(&self, index: u64) -> u64 {
        self.layout().events + index % u64::from(wire::EVENTS) * 64
    }

    /// Takes the oldest event, if it is complete.
    pub fn take_event(&self) -> Option<EventRecord> {
        let waiting = self.events_waiting();
        let tail = self.load_u64(header_at!(event_tail));
        let at = self.event_offset(tail);
        if waiting == 0 || self.load_u32(at) != wire::READY {
            return None;
        }
        let event: wire::SegmentEvent = self.read(at);
        let slots = 1 + u64::from(event.more).min(waiting - 1);
        let mut text = Vec::new();
        for n in 1..slots {
            let words: [u64; 8] = std::array::from_fn(|word| {
                self.load_u64(self.event_offset(tail.wrapping_add(n)) + word as u64 * 8)
            });
            text.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        text.truncate(text.iter().position(|&b| b == 0).unwrap_or(text.len()));
        text.truncate(LONGEST_PATH);
        self.discard_events(slots);
        Some(EventRecord {
            event,
            text: String::from_utf8_lossy(&text).into_owned(),
        })
    }

    /// Gives up on an event whose writer died halfway: skips to the next complete one.
    pub fn skip_broken_event(&self) {
        let waiting = self.events_waiting();
        let tail = self.load_u64(header_at!(event_tail));
        let next = (1..waiting)
            .find(|&n| self.load_u32(self.event_offset(tail.wrapping_add(n))) == wire::READY);
        self.discard_events(next.unwrap_or(waiting));
        if next.is_none() && waiting == u64::from(wire::EVENTS) {
            // Nothing readable in a whole ring: then the head may be nonsense as well.
            let head = self.load_u64(header_at!(event_head));
            self.store_u64(header_at!(event_tail), head);
        }
    }

    fn discard_events(&self, slots: u64) {
        let tail = self.load_u64(header_at!(event_tail));
        for n in 0..slots {
            let at = self.event_offset(tail.wrapping_add(n));
            for word in 0..8 {
                self.store_u64(at + word * 8, 0);
            }
        }
        self.store_u64(header_at!(event_tail), tail.wrapping_add(slots));
    }

    /// Byte offsets of the occupied entries of a thread's current line cache, each with
    /// its side record's, and the entry.
    fn for_each_cache_entry(
        &self,
        thread: &wire::SegmentThread,
        mut each: impl FnMut(u64, u64, wire::LineCacheEntry),
    ) {
        let l = self.layout();
        if thread.arena >= wire::MAX_THREADS {
            return;
        }
        let start = l.arenas + u64::from(thread.arena) * l.arena_size;
        let cache = u64::from(thread.cache & 1) * l.cache_entries;
        let sides = start + 2 * l.cache_entries * 16;
        let group = u64::from(wire::CACHE_GROUP);
        for bit in 0..(l.cache_entries / group).min(thread.used.len() as u64 * 64) {
            if thread.used[bit as usize / 64] >> (bit % 64) & 1 == 0 {
                continue;
            }
            let first = cache + bit * group;
            if !self.is_written(start + first * 16) {
                continue;
            }
            for n in first..first + group {
                let at = start + n * 16;
                let entry: wire::LineCacheEntry = self.read(at);
                if entry.tag != 0 {
                    each(at, sides + n * size_of::<wire::SideRecord>() as u64, entry);
                }
            }
        }
    }

    /// The occupied entries of a thread's current line cache with their side records. The
    /// other cache is empty: a thread flushes the old one before it uses the new one.
    pub fn for_each_unflushed_entry(
        &self,
        thread: &wire::SegmentThread,
        mut each: impl FnMut(wire::LineCacheEntry, wire::SideRecord),
    ) {
        self.for_each_cache_entry(thread, |_, side, entry| each(entry, self.read(side)));
    }

    /// The threads that used an entry's line before the entry was made.
    #[must_use]
    pub fn others(&self, thread: &wire::SegmentThread, side: &wire::SideRecord) -> Vec<u32> {
        let others = u32::from(side.others);
        let Some(list) = others.checked_sub(wire::OTHERS) else {
            return (others != 0).then_some(others).into_iter().collect();
        };
        let list = 2 * list;
        let l = self.layout();
        if thread.arena >= wire::MAX_THREADS || list >= wire::LIST_WORDS {
            return Vec::new();
        }
        let lists = l.arenas + u64::from(thread.arena) * l.arena_size + l.lists;
        let threads = |from: u32, n: u32| -> Vec<u32> {
            let mut bytes = Vec::new();
            let room = wire::LIST_WORDS.saturating_sub(from).min(n);
            self.append_bytes(lists + u64::from(from) * 2, room as usize * 2, &mut bytes);
            let pairs = bytes.chunks_exact(2);
            pairs
                .map(|p| u16::from_le_bytes([p[0], p[1]]).into())
                .collect()
        };
        let length = threads(list, 1).first().copied().unwrap_or(0);
        threads(list + 1, length.min(wire::MAX_THREADS))
    }

    /// What the entries of the slice have counted that this one continues.
    #[must_use]
    pub fn continued_use(
        &self,
        thread: &wire::SegmentThread,
        side: &wire::SideRecord,
    ) -> wire::LineUseCount {
        let l = self.layout();
        if thread.arena >= wire::MAX_THREADS || side.continued == 0 {
            return wire::LineUseCount::default();
        }
        let uses = l.arenas + u64::from(thread.arena) * l.arena_size + l.continued;
        self.read(uses + u64::from(side.continued) * size_of::<wire::LineUseCount>() as u64)
    }

    /// The shared lines that left a thread's line cache in the slice that it is in.
    pub fn for_each_left_line(
        &self,
        thread: &wire::SegmentThread,
        mut each: impl FnMut(wire::LeftLine),
    ) {
        let l = self.layout();
        if thread.arena >= wire::MAX_THREADS {
            return;
        }
        let start = l.arenas + u64::from(thread.arena) * l.arena_size + l.left;
        let size = size_of::<wire::LeftLine>() as u64;
        let mut page = WrittenPage::default();
        for n in 0..u64::from(wire::LEFT_LINES) {
            let at = start + n * size;
            if !page.is_written(at, |at| self.written_from(at)) {
                continue;
            }
            let left: wire::LeftLine = self.read(at);
            if left.key != 0 && left.key & 0xffff == u64::from(thread.epoch & 0xffff) {
                each(left);
            }
        }
    }

    /// Makes the thread's next access miss, which moves it on to the current slice.
    pub fn mark_stale(&self, thread: &wire::SegmentThread) {
        self.for_each_cache_entry(thread, |at, _, entry| {
            if entry.tag & wire::STALE == 0 {
                self.compare_exchange_u64(at, entry.tag, entry.tag | wire::STALE);
            }
        });
    }
}
