//! The data structures of the target in the segment, and the accesses of its threads to them.
use crate::segment::Segment;
use crate::segment_written::WrittenPage;
use crate::wire::{self, SegmentHeader};
use std::mem::offset_of;
use std::ops::{AddAssign, Range};

impl AddAssign for wire::ObjectCount {
    /// A target may have forged counts: they do not overflow.
    fn add_assign(&mut self, more: Self) {
        self.reads = self.reads.saturating_add(more.reads);
        self.writes = self.writes.saturating_add(more.writes);
        self.fetches = self.fetches.saturating_add(more.fetches);
    }
}

impl Segment {
    /// A data structure in the target; valid once its kind is not 0.
    #[must_use]
    pub fn target_object(&self, record: u32) -> wire::TargetObject {
        let size = size_of::<wire::TargetObject>() as u64;
        let at = self.slot_offset(
            self.layout().objects,
            record.into(),
            wire::MAX_OBJECTS,
            size,
        );
        let kind = self.load_u32(at);
        wire::TargetObject {
            kind,
            ..self.read(at)
        }
    }

    /// The first object record that is not in use.
    #[must_use]
    pub fn next_object(&self) -> u32 {
        let next = self.load_u32(offset_of!(SegmentHeader, next_object) as u64);
        next.min(wire::MAX_OBJECTS)
    }

    /// Gives back the memory of object records that nobody asks for any more.
    pub fn forget_objects(&self, mut records: Vec<u32>) {
        records.sort_unstable();
        let size = size_of::<wire::TargetObject>() as u64;
        let area = self.layout().objects;
        for run in records.chunk_by(|a, b| a + 1 == *b) {
            let fits = u64::from(run[0]) + (run.len() as u64) < u64::from(wire::MAX_OBJECTS);
            let mut start = area + u64::from(run[0]) * size;
            let end = start + run.len() as u64 * size;
            // Of the page with the end of others that were forgotten before nothing is left either.
            let page = (start & !4095).max(area);
            if (page..start).step_by(8).all(|at| self.load_u64(at) == 0) {
                start = page;
            }
            if fits {
                // Where it fails they stay as they are.
                let _ = self.make_zero(start, end - start);
            }
        }
    }

    /// Of these object records those that were ever written.
    pub fn written_objects(&self, records: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let mut page = WrittenPage::default();
        records.filter(move |&record| {
            let size = size_of::<wire::TargetObject>() as u64;
            let at = self.layout().objects + u64::from(record) * size;
            page.is_written(at, |at| self.written_from(at))
        })
    }

    /// Calls `each` for the objects that a thread accessed: id in its process, counts.
    pub fn for_each_object_count(&self, thread: u32, mut each: impl FnMut(u32, wire::ObjectCount)) {
        let (group, words) = (
            wire::OBJECT_GROUP,
            wire::PROCESS_OBJECTS / wire::OBJECT_GROUP / 64,
        );
        let (l, thread) = (self.layout(), u64::from(thread.min(wire::MAX_THREADS - 1)));
        let size = size_of::<wire::ObjectCount>() as u64;
        let row = l.object_counts + thread * u64::from(wire::PROCESS_OBJECTS) * size;
        let mut page = WrittenPage::default();
        for word in 0..words {
            let used = l.object_used + (thread * u64::from(words) + u64::from(word)) * 8;
            let mut bits = self.load_u64(used);
            while bits != 0 {
                let first = (word * 64 + bits.trailing_zeros()) * group;
                bits &= bits - 1;
                // A group is shorter than a page.
                let start = row + u64::from(first) * size;
                let ends = [start, start + u64::from(group) * size - 1];
                let mut is_written = |at| page.is_written(at, |at| self.written_from(at));
                if !ends.into_iter().any(&mut is_written) {
                    continue;
                }
                for id in first..first + group {
                    let count: wire::ObjectCount = self.read(row + u64::from(id) * size);
                    if count != wire::ObjectCount::default() {
                        each(id, count);
                    }
                }
            }
        }
    }
}
