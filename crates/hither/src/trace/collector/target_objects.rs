//! The data structures that the tracer tells apart (`tracer/core/object_map.h`): what an id of
//! a process means, and how often it was accessed.
use hither_sys::{wire, Segment};
use std::collections::{BTreeMap, HashMap};

/// Accesses by process and id there.
pub type AccessesById = BTreeMap<(u32, u32), wire::ObjectCount>;

/// What the threads of each process did, of counts by the key of a thread, process and id.
pub fn accesses_by_id(counts: BTreeMap<(u32, u32, u32), wire::ObjectCount>) -> AccessesById {
    let mut sums = AccessesById::new();
    for ((_, process, id), count) in counts {
        let sum = sums.entry((process, id)).or_default();
        sum.reads = sum.reads.saturating_add(count.reads);
        sum.writes = sum.writes.saturating_add(count.writes);
        sum.fetches = sum.fetches.saturating_add(count.fetches);
    }
    sums
}

/// Process and id -> record of the segment.
#[derive(Default)]
pub struct ObjectIds {
    records: HashMap<(u32, u32), u32>,
    /// Of forked processes: the parent, and below which id its objects are meant.
    parents: HashMap<u32, (u32, u32)>,
}

impl ObjectIds {
    pub fn read(segment: &Segment) -> ObjectIds {
        let mut ids = ObjectIds::default();
        for record in segment.written_objects() {
            let object = segment.target_object(record);
            if object.kind != 0 {
                ids.records.insert((object.process, object.id), record);
            }
        }
        for slot in 1..segment.next_process() {
            let process = segment.process(slot);
            // A parent is older, so following parents comes to an end.
            if process.parent < slot {
                let inherited = process.inherited_objects;
                ids.parents.insert(slot, (process.parent, inherited));
            }
        }
        ids
    }

    pub fn record(&self, process: u32, id: u32) -> Option<u32> {
        let mut owner = process;
        while let Some(&(parent, _)) = self.parents.get(&owner).filter(|p| id < p.1) {
            owner = parent;
        }
        self.records.get(&(owner, id)).copied()
    }
}
