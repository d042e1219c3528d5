//! Data structures that are allocated: heap blocks, and mappings of the program's own, by the call that makes them.
use super::allocation_paths::AllocationKey;
use super::heap::{keep_largest_ranges, smaller, AllocationSite};
use super::objects::ObjectBuilder;
use crate::trace::symbolizer::{AllocationName, Symbolizer};
use hither_profile::{Object, ObjectKind, ProcessIx, ThreadIx};
use std::path::PathBuf;

impl ObjectBuilder<'_> {
    /// One object per allocating place and process.
    pub fn add_heap_objects(&mut self, naming: &mut dyn Symbolizer) {
        for mut site in std::mem::take(&mut self.input.heap.sites) {
            let kind = if site.maps {
                ObjectKind::Mmap
            } else {
                ObjectKind::Heap
            };
            let name = self.name_of_site(&site, naming);
            let object = self.object_of_call(name, kind, &site);
            self.add_allocated(object, &site, naming);
            let sum = &mut self.found.objects[object as usize];
            sum.size = sum.size.saturating_add(site.peak);
            keep_largest_ranges(&mut site.ranges);
            let ranges = site
                .ranges
                .iter()
                .map(|&(region, offset, length)| (object, region, offset, length));
            self.found.ranges.extend(ranges);
            self.by_site.push(object);
        }
    }

    fn frames_of(&self, site: &AllocationSite) -> Vec<(PathBuf, u64)> {
        let frames = site.frames.iter().filter_map(|&(region, vaddr)| {
            self.region(region).map(|r| (PathBuf::from(&r.file), vaddr))
        });
        frames.collect()
    }

    pub fn name_of_site(
        &self,
        site: &AllocationSite,
        naming: &mut dyn Symbolizer,
    ) -> AllocationName {
        let mut name = naming.allocation_name(&self.frames_of(site));
        if let (true, Some(library)) = (site.maps, name.name.strip_prefix(Object::BLOCKS_OF)) {
            name.name = format!("mappings of {library}");
        }
        name
    }

    /// The object of this name in the process of the site, which may be new.
    pub fn object_of_call(
        &mut self,
        name: AllocationName,
        kind: ObjectKind,
        site: &AllocationSite,
    ) -> u32 {
        let process = self.input.regions.row_of(site.process);
        let key = (process, AllocationKey::of(&name, kind));
        if let Some(&known) = self.by_call.get(&key) {
            return known;
        }
        let owner = self.input.threads.of_serial(site.thread);
        let new = self.add(allocated_object(name, kind, process, owner));
        self.by_call.insert(key, new);
        new
    }

    /// Adds to an object, but for its size, what was allocated at a site, and the calls that did it.
    pub fn add_allocated(
        &mut self,
        object: u32,
        site: &AllocationSite,
        naming: &mut dyn Symbolizer,
    ) {
        let calls = naming.call_path(&self.frames_of(site));
        self.paths.add(object, &calls, site);
        let sum = &mut self.found.objects[object as usize];
        sum.count = sum.count.saturating_add(site.count);
        sum.allocated = sum.allocated.saturating_add(site.allocated);
        sum.largest = sum.largest.max(site.largest);
        sum.smallest = smaller(sum.smallest, site.smallest);
    }
}

fn allocated_object(
    name: AllocationName,
    kind: ObjectKind,
    process: u32,
    owner: Option<ThreadIx>,
) -> Object {
    Object {
        name: name.name,
        type_name: name.type_name,
        kind,
        file: name.file,
        line: name.line,
        function: name.function,
        process: ProcessIx(process.saturating_sub(1)),
        owner,
        ..Object::default()
    }
}
