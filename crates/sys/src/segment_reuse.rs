//! Threads that have ended: their slots in the segment are made ready for others.
use crate::segment::Segment;
use crate::wire::{self, SegmentHeader, SegmentThread};
use std::mem::offset_of;

const GIVEN_BACK: u64 = offset_of!(SegmentHeader, given_back) as u64;
const ARENA_BUSY: u64 = offset_of!(SegmentHeader, arena_busy) as u64;

impl Segment {
    /// Slots for threads that can be created now.
    #[must_use]
    pub fn free_slots(&self) -> u32 {
        let words = u64::from(wire::MAX_THREADS / 64);
        let given_back = (0..words).map(|word| self.load_u64(GIVEN_BACK + word * 8).count_ones());
        let free = wire::MAX_THREADS - self.next_thread() + given_back.sum::<u32>();
        free.min(wire::MAX_THREADS)
    }

    /// Whether a slot has a thread, which may have ended.
    #[must_use]
    pub fn has_thread(&self, slot: u32) -> bool {
        let state = offset_of!(SegmentThread, state) as u64;
        self.load_u32(self.thread_offset(slot) + state) != wire::THREAD_FREE
    }

    /// One past the serial of the last thread that was to be created.
    #[must_use]
    pub fn next_serial(&self) -> u32 {
        self.load_u32(offset_of!(SegmentHeader, next_serial) as u64)
    }

    /// One past the last event that was written, and past the last that was read.
    #[must_use]
    pub fn events_written_and_read(&self) -> [u64; 2] {
        let head = offset_of!(SegmentHeader, event_head) as u64;
        let tail = offset_of!(SegmentHeader, event_tail) as u64;
        [head, tail].map(|at| self.load_u64(at))
    }

    /// When a thread ended and was last waited for, in serials; 0: never.
    #[must_use]
    pub fn thread_ended_and_joined(&self, slot: u32) -> [u32; 2] {
        let at = self.thread_offset(slot);
        let ended = offset_of!(SegmentThread, ended) as u64;
        let joined = offset_of!(SegmentThread, joined) as u64;
        [ended, joined].map(|field| self.load_u32(at + field))
    }

    /// Ends a thread that could not end itself, and whose line caches have been read: others may have
    /// their memory.
    pub fn end_thread(&self, slot: u32) {
        let (at, thread) = (self.thread_offset(slot), self.thread(slot));
        let put = |field: usize, value| self.store_u32(at + field as u64, value);
        put(offset_of!(SegmentThread, epoch), 0);
        put(offset_of!(SegmentThread, ended), self.next_serial());
        put(offset_of!(SegmentThread, state), wire::THREAD_ENDED);
        let owned = thread.owns_arena == 1 && thread.arena < wire::MAX_THREADS;
        put(offset_of!(SegmentThread, owns_arena), 0);
        let l = self.layout();
        // Where it cannot be emptied, nobody may use it again.
        let arena = l.arenas + u64::from(thread.arena) * l.arena_size;
        if owned && self.make_zero(arena, l.arena_size).is_ok() {
            let word = u64::from(thread.arena / 64) * 8;
            self.clear_bits(ARENA_BUSY + word, 1 << (thread.arena % 64));
        }
    }

    /// Sets the communication rows of `count` slots from `first` on to zero, which nobody writes to any more.
    /// Whether they are: else they are as they were.
    #[must_use]
    pub fn clear_comm_rows(&self, first: u32, count: usize) -> bool {
        let row = 2 * u64::from(wire::MAX_THREADS) * 16;
        let slots = (wire::MAX_THREADS.saturating_sub(first) as usize).min(count);
        let start = self.layout().comm + u64::from(first) * row;
        slots == count && self.make_zero(start, count as u64 * row).is_ok()
    }

    /// Sets the counts of a block to zero, to which nobody writes any more. It is nobody's, and before `next` in the
    /// list of those that are its slot's.
    fn free_block(&self, slot: u32, block: u32, next: u32) {
        let l = self.layout();
        let size = size_of::<wire::PageCountBlock>() as u64;
        let at = l.blocks + u64::from(block) * size;
        (0..size / 8).for_each(|word| self.store_u64(at + word * 8, 0));
        let group = self.owner(block).page_block;
        if group < wire::PAGE_GROUPS {
            let entry = u64::from(slot) * u64::from(wire::PAGE_GROUPS) + u64::from(group);
            self.store_u32(l.directory + entry * 4, 0);
        }
        let owner = l.owners + u64::from(block) * size_of::<wire::BlockOwner>() as u64;
        self.store_u32(owner + offset_of!(wire::BlockOwner, thread) as u64, 0);
        self.store_u32(
            owner + offset_of!(wire::BlockOwner, page_block) as u64,
            next,
        );
    }

    /// Forgets a thread that has ended, and what it counted in these blocks. A new one may have its slot.
    pub fn free_thread(&self, slot: u32, blocks: &[u32]) {
        if slot == 0 || slot >= wire::MAX_THREADS {
            return;
        }
        self.clear_object_counts(slot);
        let at = self.thread_offset(slot);
        for word in 0..size_of::<SegmentThread>() as u64 / 8 {
            self.store_u64(at + word * 8, 0);
        }
        let mut first = 0;
        for &block in blocks.iter().rev().filter(|&&b| b < wire::MAX_BLOCKS) {
            self.free_block(slot, block, first);
            first = block;
        }
        self.store_u32(at + offset_of!(SegmentThread, free_block) as u64, first);
        let word = u64::from(slot / 64) * 8;
        self.set_bits(GIVEN_BACK + word, 1 << (slot % 64));
    }

    fn clear_object_counts(&self, slot: u32) {
        let l = self.layout();
        let words = u64::from(wire::PROCESS_OBJECTS / wire::OBJECT_GROUP / 64);
        let size = size_of::<wire::ObjectCount>() as u64;
        let row = l.object_counts + u64::from(slot) * u64::from(wire::PROCESS_OBJECTS) * size;
        let group = u64::from(wire::OBJECT_GROUP) * size;
        for word in 0..words {
            let used = l.object_used + (u64::from(slot) * words + word) * 8;
            let mut bits = self.swap_u64(used, 0);
            while bits != 0 {
                let first = row + (word * 64 + u64::from(bits.trailing_zeros())) * group;
                bits &= bits - 1;
                (0..group / 8).for_each(|n| self.store_u64(first + n * 8, 0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::GIVEN_BACK;
    use crate::segment::{Segment, SegmentConfig};
    use crate::wire;

    fn segment() -> Segment {
        Segment::create(&SegmentConfig {
            line: 64,
            sharers: 0,
            cache_log2: 8,
            flags: 0,
            fetch_sets: 64,
            alloc_min: 4096,
            slice_ns: 10_000_000,
            active: true,
            hooks: Vec::new(),
        })
        .unwrap()
    }

    #[test]
    fn a_freed_slot_is_as_new_and_can_be_had_again() {
        let s = segment();
        let at = s.thread_offset(5);
        for word in 0..40 {
            s.store_u64(at + word * 8, 7);
        }
        let l = s.layout();
        let counts = l.object_counts + 5 * u64::from(wire::PROCESS_OBJECTS) * 24 + 100 * 24;
        s.store_u64(counts, 9);
        s.store_u64(l.object_used + 5 * 64, 1 << (100 / wire::OBJECT_GROUP));
        assert_eq!(s.free_slots(), wire::MAX_THREADS - 1);
        s.free_thread(5, &[]);
        assert_eq!(s.free_slots(), wire::MAX_THREADS);
        assert!((0..40).all(|word| s.load_u64(at + word * 8) == 0));
        assert_eq!(s.load_u64(counts), 0);
        s.for_each_object_count(5, |id, _| panic!("{id}"));
    }

    #[test]
    fn rows_of_some_slots_become_zero() {
        let s = segment();
        let row = 2 * u64::from(wire::MAX_THREADS) * 16;
        let last = |slot: u64| s.layout().comm + (slot + 1) * row - 8;
        (3..7).for_each(|slot| s.store_u64(last(slot), 7));
        assert!(s.clear_comm_rows(4, 2));
        assert_eq!(
            [3, 4, 5, 6].map(|slot| s.load_u64(last(slot))),
            [7, 0, 0, 7]
        );
        assert!(!s.clear_comm_rows(wire::MAX_THREADS - 1, 2));
    }

    #[test]
    fn blocks_of_a_thread_are_for_the_next_one_in_its_slot() {
        let s = segment();
        let l = s.layout();
        let block = |number: u64| l.blocks + number * 1280;
        let words = [block(8), block(9), block(10) - 8, block(10)];
        words.iter().for_each(|&at| s.store_u64(at, 7));
        let entry = |group: u64| l.directory + (5 * u64::from(wire::PAGE_GROUPS) + group) * 4;
        for (number, group) in [(9, 30), (12, 31)] {
            s.store_u32(l.owners + number * 8, 5);
            s.store_u32(l.owners + number * 8 + 4, group as u32);
            s.store_u32(entry(group), number as u32);
        }
        s.free_thread(5, &[9, 12, wire::MAX_BLOCKS]);
        assert_eq!(words.map(|at| s.load_u64(at)), [7, 0, 0, 7]);
        assert_eq!([30, 31].map(|group| s.load_u32(entry(group))), [0, 0]);
        let owner = |number| (s.owner(number).thread, s.owner(number).page_block);
        assert_eq!(s.thread(5).free_block, 9);
        assert_eq!([owner(9), owner(12)], [(0, 12), (0, 0)]);
    }

    #[test]
    fn no_more_slots_are_free_than_there_are() {
        let s = segment();
        (0..u64::from(wire::MAX_THREADS / 64))
            .for_each(|n| s.store_u64(GIVEN_BACK + n * 8, u64::MAX));
        assert_eq!(s.free_slots(), wire::MAX_THREADS);
    }

    #[test]
    fn slots_that_do_not_exist_are_not_freed() {
        let s = segment();
        for slot in [0, wire::MAX_THREADS, u32::MAX] {
            s.free_thread(slot, &[1]);
        }
        assert_eq!(s.free_slots(), wire::MAX_THREADS - 1);
    }
}
