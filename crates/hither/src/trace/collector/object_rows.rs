//! Data structures of processes that go on in the row of another (process_rows.rs): one that is the same there
//! counts together with it, under the id that it had in the process where it came first.
use super::heap::HeapTracker;
use super::regions::RegionMap;
use super::target_objects::ObjectIds;
use hither_sys::{wire, Segment};
use std::collections::{HashMap, HashSet};

/// A structure: the process that it is of, and its id there.
pub type ObjectKey = (u32, u32);

/// What makes two structures of a row the same, addresses as (region, ELF address).
#[derive(PartialEq, Eq, Hash)]
enum ObjectMeaning {
    /// The calls that allocate it, innermost first.
    Site(u32, Vec<(u32, u64)>),
    /// Bytes of a file.
    Bytes(u32, (u32, u64), u64),
    /// Bytes of the block of thread-local variables of a file, or of a thread control block.
    ThreadLocal(Option<(u32, u64)>, u64, u64),
}

#[derive(Default)]
pub struct ObjectRows {
    pub ids: ObjectIds,
    /// By the row of the process.
    known: HashMap<(u32, ObjectMeaning), ObjectKey>,
    /// Rows of which the structures of the first process are known.
    entered: HashSet<u32>,
    /// What structures are counted as, by process and id there, for processes that share a row.
    counted_as: HashMap<u32, HashMap<u32, ObjectKey>>,
    /// How many processes that were forked from this one know its structures.
    forks: HashMap<u32, u32>,
    /// Processes that have ended before these.
    waiting: HashSet<u32>,
}

impl ObjectRows {
    /// What a structure is counted as.
    pub fn counted_as(
        &mut self,
        (process, id): ObjectKey,
        segment: &Segment,
        regions: &mut RegionMap,
    ) -> ObjectKey {
        let row = regions.row_of(process);
        if row == process {
            return (process, id);
        }
        if id <= wire::OBJECT_FREE {
            return (row, id);
        }
        let known = self.counted_as.get(&process).and_then(|keys| keys.get(&id));
        if let Some(&known) = known {
            return known;
        }
        if self.entered.insert(row) {
            self.enter_row(row, segment, regions);
        }
        let Some(record) = self.record((process, id), segment) else {
            return (process, id);
        };
        // Processes of one row mostly have one parent.
        let inherited = self.ids.record(segment, row, id) == Some(record);
        let key = match meaning(record, segment, regions) {
            _ if inherited => (row, id),
            Some(meaning) => *self.known.entry((row, meaning)).or_insert((process, id)),
            None => (process, id),
        };
        self.counted_as.entry(process).or_default().insert(id, key);
        key
    }

    /// The record of a structure.
    pub fn record(&mut self, (process, id): ObjectKey, segment: &Segment) -> Option<u32> {
        let known = self.ids.record(segment, process, id);
        known.or_else(|| {
            self.ids.read_new(segment);
            self.ids.record(segment, process, id)
        })
    }

    fn enter_row(&mut self, row: u32, segment: &Segment, regions: &mut RegionMap) {
        self.ids.read_new(segment);
        for (id, record) in self.ids.of_process(row) {
            if let Some(meaning) = meaning(record, segment, regions) {
                self.known.insert((row, meaning), (row, id));
            }
        }
    }

    /// Process and record of the structure that a block of this one counts for.
    pub fn known_record(
        &mut self,
        (process, record): (u32, u32),
        segment: &Segment,
        regions: &mut RegionMap,
    ) -> (u32, u32) {
        if regions.row_of(process) == process {
            return (process, record);
        }
        let id = segment.target_object(record).id;
        let key = self.counted_as((process, id), segment, regions);
        let known = self.record(key, segment);
        known.map_or((process, record), |record| (key.0, record))
    }

    /// A process was forked from another.
    pub fn fork(&mut self, parent: u32) {
        *self.forks.entry(parent).or_default() += 1;
    }

    /// A process has ended, and all that it did has been read.
    pub fn leave_process(
        &mut self,
        process: u32,
        segment: &Segment,
        regions: &mut RegionMap,
        heap: &mut HeapTracker,
    ) {
        self.ids.read_new(segment);
        if regions.row_of(process) != process {
            for (_, record) in self.ids.of_process(process) {
                let known = self.known_record((process, record), segment, regions);
                if known != (process, record) {
                    heap.add_left(record, known, segment, regions);
                }
            }
        }
        self.forget_process(process, segment, regions);
    }

    /// Forgets the structures of a process that count under other keys, once nobody knows them any more; then those
    /// of its parent, if that waits for it.
    fn forget_process(&mut self, process: u32, segment: &Segment, regions: &RegionMap) {
        let mut next = Some(process);
        while let Some(process) = next {
            if self.forks.get(&process).is_some_and(|&forks| forks > 0) {
                self.waiting.insert(process);
                return;
            }
            self.forks.remove(&process);
            if regions.row_of(process) != process {
                let keys = self.counted_as.remove(&process).unwrap_or_default();
                let gone = keys.iter().filter(|(&id, &key)| key != (process, id));
                let gone = gone.filter_map(|(&id, _)| self.ids.forget(process, id));
                segment.forget_objects(gone.collect());
            }
            let record = segment.process(process);
            let parent = (record.inherited_objects > 0).then_some(record.parent);
            next = parent.filter(|&parent| self.lose_fork(parent));
        }
    }

    /// A process that was forked from this one is forgotten. Whether it is the one for which it waited.
    fn lose_fork(&mut self, parent: u32) -> bool {
        let Some(forks) = self.forks.get_mut(&parent) else {
            return false;
        };
        *forks = forks.saturating_sub(1);
        *forks == 0 && self.waiting.remove(&parent)
    }
}

fn meaning(record: u32, segment: &Segment, regions: &mut RegionMap) -> Option<ObjectMeaning> {
    let object = segment.target_object(record);
    let generation = Some(object.generation);
    if HeapTracker::has_sites(object.kind) {
        let frames = HeapTracker::frames(&object, regions);
        return Some(ObjectMeaning::Site(object.kind, frames));
    }
    let place = regions.locate_code(object.process, object.address, generation);
    if object.kind == wire::OBJECT_THREAD_LOCAL {
        return Some(ObjectMeaning::ThreadLocal(
            place,
            object.frames[0],
            object.size,
        ));
    }
    let place = place?;
    Some(ObjectMeaning::Bytes(object.kind, place, object.size))
}
