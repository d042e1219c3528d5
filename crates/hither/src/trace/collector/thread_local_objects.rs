//! Thread-local variables: all copies of one are one structure. They lie on stacks and in small mappings, whose
//! accesses are counted by page.
use super::events::TargetState;
use super::object_accesses::variables_in;
use super::objects::{Meaning, ObjectBuilder};
use super::sampling::ObjectCounts;
use crate::trace::symbolizer::{StaticObject, Symbolizer};
use hither_profile::{file_name, Object, ObjectKind, Region};
use hither_sys::{wire, Segment};
use std::collections::HashMap;

impl TargetState {
    /// Reads, writes and fetches of thread-local variables by the region that they lie in, taken as each thread's own
    /// copies: another's is accessed when a thread is created, and rarely later.
    pub fn thread_locals_by_region(
        &self,
        counts: &ObjectCounts,
        segment: &Segment,
    ) -> HashMap<u32, [u64; 3]> {
        let mut sums: HashMap<u32, [u64; 3]> = HashMap::new();
        for (&(thread, process, id), count) in counts {
            let Some(&region) = self.regions.thread_locals.regions.get(&thread) else {
                continue;
            };
            let record = self.objects.ids.record(segment, process, id);
            let kind = record.map(|record| segment.target_object(record).kind);
            if kind == Some(wire::OBJECT_THREAD_LOCAL) {
                let sum = sums.entry(region).or_default();
                let more = [count.reads, count.writes, count.fetches];
                *sum = [0, 1, 2].map(|n: usize| sum[n].saturating_add(more[n]));
            }
        }
        sums
    }
}

impl ObjectBuilder<'_> {
    /// Where the large copies of thread-local variables are.
    pub fn add_thread_local_ranges(&mut self, naming: &mut dyn Symbolizer) {
        let copies = std::mem::take(&mut self.input.regions.thread_locals.copies);
        for ((process, record), region, offset, size) in copies {
            let id = self.input.segment.target_object(record).id;
            if let Some(Meaning::One(object)) = self.meaning_of(process, id, naming) {
                self.found.ranges.push((object, region, offset, size));
            }
        }
    }

    /// The structure that a record of thread-local variables means.
    pub fn thread_local(
        &mut self,
        process: u32,
        record: &wire::TargetObject,
        naming: &mut dyn Symbolizer,
    ) -> u32 {
        let generation = Some(record.generation);
        let regions = &mut self.input.regions;
        let file = regions.locate_code(record.process, record.address, generation);
        let region = file.and_then(|(number, _)| self.region(number).cloned());
        let number = match region {
            None => self.unnamed_object(ObjectKind::ThreadLocal, "thread control blocks", process),
            Some(region) => self.thread_local_of(&region, process, record, naming),
        };
        let object = &mut self.found.objects[number as usize];
        add_copies(object, record);
        number
    }

    fn thread_local_of(
        &mut self,
        region: &Region,
        process: u32,
        record: &wire::TargetObject,
        naming: &mut dyn Symbolizer,
    ) -> u32 {
        let all = self.file_variables(&region.file, naming);
        let start = StaticObject::THREAD_LOCAL.saturating_add(record.frames[0]);
        let here: Vec<_> = variables_in(&all, start, record.size).collect();
        match here.as_slice() {
            [(n, variable)] => self.static_object(region, *n, variable),
            [] => {
                let name = format!("thread-local data of {}", file_name(&region.file));
                self.unnamed_object(ObjectKind::ThreadLocal, &name, process)
            }
            several => self.joined_variables(ObjectKind::ThreadLocal, several, process),
        }
    }
}

/// Adds the copies that threads had of what a record describes.
fn add_copies(object: &mut Object, record: &wire::TargetObject) {
    let bytes_of_copy = record.bytes / record.blocks.max(1);
    let granules_of_copy = (record.granules / record.blocks.max(1)).max(1);
    let at_once = record.peak / granules_of_copy;
    object.count = object.count.max(record.blocks);
    object.size = object
        .size
        .max(at_once.saturating_mul(bytes_of_copy.max(record.size)));
}
