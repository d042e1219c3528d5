//! The data structures that the tracer tells apart (`tracer/core/object_map.h`): what an id of
//! a process means, and how often it was accessed.
use super::thread_rows::ThreadNumbers;
use hither_profile::ThreadIx;
use hither_sys::{wire, Segment};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Accesses by process and id there.
pub type AccessesById = BTreeMap<(u32, u32), wire::ObjectCount>;

/// What the threads of each process did, of counts by the key of a thread, process and id.
pub fn accesses_by_id(counts: BTreeMap<(u32, u32, u32), wire::ObjectCount>) -> AccessesById {
    let mut sums = AccessesById::new();
    for ((_, process, id), count) in counts {
        *sums.entry((process, id)).or_default() += count;
    }
    sums
}

/// Threads that access each structure, by process and id there.
pub type ThreadsById = BTreeMap<(u32, u32), BTreeSet<ThreadIx>>;

/// Those of counts by the key of a thread, process and id.
pub fn threads_by_id(
    counts: &BTreeMap<(u32, u32, u32), wire::ObjectCount>,
    numbers: &ThreadNumbers,
) -> ThreadsById {
    let mut users = ThreadsById::new();
    for (&(key, process, id), count) in counts {
        let thread = numbers.of_key(key);
        if let Some(thread) = thread.filter(|_| count.reads.max(count.writes) > 0) {
            users.entry((process, id)).or_default().insert(thread);
        }
    }
    users
}

/// Records that are reserved and not written yet: those of threads that are about to, or never will.
const MOST_PENDING: usize = 4096;

/// Process and id -> record of the segment.
#[derive(Default)]
pub struct ObjectIds {
    records: HashMap<u32, HashMap<u32, u32>>,
    /// Records that were looked at.
    seen: u32,
    /// Those of them that were not written yet.
    pending: Vec<u32>,
}

impl ObjectIds {
    /// Takes over what was entered since the last call.
    pub fn read_new(&mut self, segment: &Segment) {
        let next = segment.next_object();
        let new = segment.written_objects(self.seen.max(1)..next);
        let mut new: Vec<u32> = self.pending.drain(..).chain(new).collect();
        new.retain(|&record| {
            let object = segment.target_object(record);
            if object.kind != 0 {
                let of_process = self.records.entry(object.process).or_default();
                of_process.insert(object.id, record);
            }
            object.kind == 0
        });
        let old = new.len().saturating_sub(MOST_PENDING);
        self.pending = new.split_off(old);
        self.seen = next;
    }

    /// The record of an object as a process knows it, which may be its parent's.
    pub fn record(&self, segment: &Segment, process: u32, id: u32) -> Option<u32> {
        let owner = owner_of(segment, process, id);
        self.records.get(&owner)?.get(&id).copied()
    }

    /// Ids and records of what a process entered itself.
    pub fn of_process(&self, process: u32) -> Vec<(u32, u32)> {
        let own = self.records.get(&process).into_iter().flatten();
        own.map(|(&id, &record)| (id, record)).collect()
    }

    /// Returns the record of what is forgotten.
    pub fn forget(&mut self, process: u32, id: u32) -> Option<u32> {
        let own = self.records.get_mut(&process)?;
        let record = own.remove(&id);
        if own.is_empty() {
            self.records.remove(&process);
        }
        record
    }
}

/// The process among it and those that it was forked from in which an id was given out.
fn owner_of(segment: &Segment, process: u32, id: u32) -> u32 {
    let mut owner = process;
    loop {
        let record = segment.process(owner);
        // A parent is older, so following parents comes to an end.
        if id >= record.inherited_objects || record.parent >= owner {
            return owner;
        }
        owner = record.parent;
    }
}
