//! Data structures: statics, heap blocks by allocation site, mappings, stacks, shared
//! memory. Their accesses and source lines: object_accesses.rs.
use super::address_space::PageName;
use super::allocation_paths::{AllocationKey, AllocationPaths};
use super::code_lines;
use super::deadline::Deadline;
use super::heap::HeapTracker;
use super::regions::{KnownRegion, RegionMap, PAGE_BITS};
use super::samples::SampleTally;
use super::shared_lines::LineRows;
use super::target_objects::{AccessesById, ObjectIds, ThreadsById};
use super::thread_rows::ThreadNumbers;
use crate::trace::symbolizer::{StaticObject, StructField, Symbolizer};
use hither_profile::{
    AllocationPath, Object, ObjectIx, ObjectKind, ObjectMember, ObjectThread, Region, RegionKind,
    SourceSite, ThreadIx,
};
use hither_sys::Segment;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Mappings of at least this many bytes are structures of their own.
const MIN_MAPPING: u64 = 64 << 10;
const SMALL_MAPPINGS: &str = "mappings below 64 KiB";

pub struct ObjectInput<'a> {
    pub segment: &'a Segment,
    pub ids: &'a ObjectIds,
    pub accesses: &'a AccessesById,
    pub users: &'a ThreadsById,
    /// Threads that use the pages of a region.
    pub region_users: &'a BTreeMap<u32, BTreeSet<ThreadIx>>,
    /// What of the accesses to a region is to thread-local variables.
    pub thread_locals: &'a HashMap<u32, [u64; 3]>,
    pub regions: &'a mut RegionMap,
    pub heap: &'a mut HeapTracker,
    pub samples: &'a SampleTally,
    /// Totals per page, sorted.
    pub pages: &'a [(PageName, [u64; 3])],
    /// Bytes of shared lines that were touched.
    pub lines: &'a LineRows,
    pub threads: &'a ThreadNumbers,
    /// What a sampled count stands for.
    pub scale: f64,
    pub deadline: &'a Deadline,
}

#[derive(Default)]
pub struct ObjectTables {
    pub objects: Vec<Object>,
    /// (object, region, offset, length)
    pub ranges: Vec<(u32, u32, u64, u64)>,
    pub sites: Vec<SourceSite>,
    pub members: Vec<ObjectMember>,
    pub paths: Vec<AllocationPath>,
    pub threads: Vec<ObjectThread>,
}

pub fn build_objects(input: ObjectInput<'_>, naming: &mut dyn Symbolizer) -> ObjectTables {
    let mut builder = ObjectBuilder {
        input,
        found: ObjectTables::default(),
        by_site: Vec::new(),
        by_call: HashMap::new(),
        paths: AllocationPaths::default(),
        nameless: 0,
        by_region: HashMap::new(),
        by_id: HashMap::new(),
        statics: HashMap::new(),
        static_objects: HashMap::new(),
        unnamed: HashMap::new(),
        file_of: HashMap::new(),
        counted: HashMap::new(),
    };
    builder.find_sites();
    builder.add_heap_objects(naming);
    builder.add_static_objects(naming);
    builder.add_region_objects(naming);
    builder.found.paths = std::mem::take(&mut builder.paths).rows();
    builder.count_objects(naming);
    builder.count_regions();
    builder.sort_threads();
    builder.add_thread_local_ranges(naming);
    builder.add_shared_ranges(naming);
    builder.add_sampled_ranges(naming);
    let code = builder.input.samples.lines.keys().map(|(_, code)| code);
    code_lines::expect_lines(code, builder.input.regions, naming);
    let lines = builder.source_sites(naming);
    builder.found.sites = lines;
    builder.drop_unused();
    builder.add_members(naming);
    builder.found
}

pub struct ObjectBuilder<'a> {
    pub input: ObjectInput<'a>,
    pub found: ObjectTables,
    /// Object of each allocation site.
    pub by_site: Vec<u32>,
    /// Object of each place in the program that allocates, by process.
    pub by_call: HashMap<(u32, AllocationKey), u32>,
    pub paths: AllocationPaths,
    /// Shared memory of which nothing is known, so far.
    pub nameless: u32,
    /// What an id of a process means.
    pub by_id: HashMap<(u32, u32), Option<Meaning>>,
    /// Object that a whole region is.
    pub by_region: HashMap<u32, u32>,
    /// Variables of a file, sorted by address.
    pub statics: HashMap<String, Rc<Vec<StaticObject>>>,
    /// (file, number in `statics`) -> object
    pub static_objects: HashMap<(String, usize), u32>,
    /// Bytes without a name, and variables too close to each other to be told apart, by that
    /// name and process.
    pub unnamed: HashMap<(String, u32), u32>,
    /// Program file in which an id of a process lies.
    pub file_of: HashMap<(u32, u32), String>,
    /// Reads, writes and fetches given to the variables of such a file in a process.
    pub counted: HashMap<(u32, String), [u64; 3]>,
}

/// A region of a program file, and its touched pages.
struct TouchedFile {
    region: u32,
    /// In [`ObjectInput::pages`].
    pages: std::ops::Range<usize>,
}

/// What the tracer takes for one structure.
#[derive(Clone)]
pub enum Meaning {
    One(u32),
    /// Variables in one symbol (a common block) -> their shares of its accesses, by their bytes
    /// on its pages.
    Several(Rc<[(u32, f64)]>),
}

impl ObjectBuilder<'_> {
    pub fn add(&mut self, object: Object) -> u32 {
        self.found.objects.push(object);
        (self.found.objects.len() - 1) as u32
    }

    pub fn region(&self, region: u32) -> Option<&Region> {
        self.input
            .regions
            .all
            .get(region as usize)
            .map(|k| &k.region)
    }

    /// Allocation sites whose blocks were all too small to be reported; and the accesses of all.
    fn find_sites(&mut self) {
        let ObjectInput {
            segment,
            ids,
            accesses,
            regions,
            heap,
            ..
        } = &mut self.input;
        for (&(process, id), count) in *accesses {
            let site = ids
                .record(segment, process, id)
                .and_then(|record| heap.site_of(process, record, segment, regions));
            if let Some(site) = site {
                heap.sites[site as usize].counts = [count.reads, count.writes, count.fetches];
            }
        }
        heap.read_totals(segment);
    }

    /// The variables that lie on touched pages of program files.
    fn add_static_objects(&mut self, naming: &mut dyn Symbolizer) {
        for touched in self.touched_files() {
            let region = &self.input.regions.all[touched.region as usize].region;
            let region = region.clone();
            let variables = self.file_variables(&region.file, naming);
            for (n, variable) in variables.iter().enumerate() {
                if self.input.deadline.passed() {
                    return;
                }
                let offset = variable.vaddr.wrapping_sub(region.file_offset);
                if offset < region.size && self.touches(&touched, offset, variable.size) {
                    self.static_object(&region, n, variable);
                }
            }
        }
    }

    /// The regions of program files that have touched pages.
    fn touched_files(&self) -> Vec<TouchedFile> {
        let pages = self.input.pages;
        let mut found = Vec::new();
        let mut start = 0;
        for pages in pages.chunk_by(|a, b| a.0 .0 == b.0 .0) {
            let (region, end) = (pages[0].0 .0, start + pages.len());
            if self
                .region(region)
                .is_some_and(|r| r.kind == RegionKind::Elf)
            {
                found.push(TouchedFile {
                    region,
                    pages: start..end,
                });
            }
            start = end;
        }
        found
    }

    /// Where variables lie on touched pages. Only a few of them stay, and a script has thousands of
    /// processes: so these ranges are not kept.
    fn static_ranges(&self) -> impl Iterator<Item = (u32, u32, u64, u64)> + '_ {
        let of_file = move |touched: TouchedFile| {
            let region = &self.input.regions.all[touched.region as usize].region;
            let variables = self.statics.get(&region.file).map(Rc::clone);
            let count = variables.as_ref().map_or(0, |v| v.len());
            (0..count).filter_map(move |n| {
                let variable = &variables.as_ref()?[n];
                let offset = variable.vaddr.wrapping_sub(region.file_offset);
                let here = offset < region.size && self.touches(&touched, offset, variable.size);
                let object = here.then(|| self.static_objects.get(&(region.file.clone(), n)))??;
                Some((*object, touched.region, offset, variable.size))
            })
        };
        self.touched_files().into_iter().flat_map(of_file)
    }

    pub fn file_variables(
        &mut self,
        file: &str,
        naming: &mut dyn Symbolizer,
    ) -> Rc<Vec<StaticObject>> {
        let read = || {
            let mut found = naming.static_objects(&PathBuf::from(file));
            found.retain(|v| v.size > 0);
            found.sort_by_key(|v| v.vaddr);
            Rc::new(found)
        };
        Rc::clone(self.statics.entry(file.to_owned()).or_insert_with(read))
    }

    /// Whether one of a file's touched pages has a byte of the range.
    fn touches(&self, file: &TouchedFile, offset: u64, length: u64) -> bool {
        let pages = &self.input.pages[file.pages.clone()];
        let first = pages.partition_point(|p| u64::from(p.0 .1) < offset >> PAGE_BITS);
        let last = offset.saturating_add(length - 1) >> PAGE_BITS;
        pages.get(first).is_some_and(|p| u64::from(p.0 .1) <= last)
    }

    pub fn static_object(&mut self, region: &Region, n: usize, variable: &StaticObject) -> u32 {
        let key = (region.file.clone(), n);
        if let Some(&known) = self.static_objects.get(&key) {
            return known;
        }
        let object = self.add(variable.to_object(region.process));
        self.static_objects.insert(key, object);
        object
    }

    /// Mappings, stacks and shared memory that were touched.
    fn add_region_objects(&mut self, naming: &mut dyn Symbolizer) {
        let mut touched: Vec<u32> = self.input.pages.iter().map(|p| p.0 .0).collect();
        touched.dedup();
        let mut still_mapped = HashMap::new();
        for number in touched {
            let Some(known) = self.input.regions.all.get(number as usize) else {
                continue;
            };
            let region = &known.region;
            // What the program mapped for itself is a structure already, also where it is a stack.
            let has_kind = matches!(region.kind, RegionKind::Mmap | RegionKind::Stack);
            if has_kind && known.anonymous && known.has_blocks {
                continue;
            }
            if region.kind == RegionKind::Mmap && region.size < MIN_MAPPING {
                let (process, size) = (region.process.0 + 1, region.size);
                let object = self.unnamed_object(ObjectKind::Mmap, SMALL_MAPPINGS, process);
                self.found.objects[object as usize].size += size;
                self.by_region.insert(number, object);
                continue;
            }
            if region.kind == RegionKind::Mmap && !known.anonymous {
                self.add_file_mapping(number, &mut still_mapped);
                continue;
            }
            let (kind, name) = match region.kind {
                RegionKind::Mmap => (ObjectKind::Mmap, mapping_name(region)),
                RegionKind::Stack => (ObjectKind::Stack, stack_name(known)),
                RegionKind::Shared => {
                    self.add_shared_memory(number, &mut still_mapped, naming);
                    continue;
                }
                _ => continue,
            };
            let object = Object {
                name,
                kind,
                size: region.size,
                count: 1,
                process: region.process,
                owner: region.thread,
                ..Object::default()
            };
            let length = region.size;
            let object = self.add(object);
            self.by_region.insert(number, object);
            self.found.ranges.push((object, number, 0, length));
        }
    }

    /// A file that a process maps for itself is one structure, as large as the largest of its mappings or as what is
    /// mapped of it at the end. `still_mapped`: that by structure.
    fn add_file_mapping(&mut self, number: u32, still_mapped: &mut HashMap<u32, u64>) {
        let region = self.input.regions.all[number as usize].region.clone();
        let object = self.unnamed_object(ObjectKind::Mmap, &region.file, region.process.0 + 1);
        self.found.objects[object as usize].owner = region.thread;
        self.add_whole_region(object, number, still_mapped);
    }

    /// Adds a region to the object that it is, or is part of.
    pub fn add_whole_region(
        &mut self,
        object: u32,
        number: u32,
        still_mapped: &mut HashMap<u32, u64>,
    ) {
        let known = &self.input.regions.all[number as usize];
        let size = known.region.size;
        let at_the_end = still_mapped.entry(object).or_default();
        // Several processes may map all of it.
        let mapped = known.mapped.saturating_mul(1 << PAGE_BITS).min(size);
        *at_the_end = at_the_end.saturating_add(mapped);
        let sum = &mut self.found.objects[object as usize];
        sum.size = sum.size.max(size).max(*at_the_end);
        self.by_region.insert(number, object);
        self.found.ranges.push((object, number, 0, size));
    }

    /// Variables that only lie on touched pages and were not accessed are no use to anyone.
    fn drop_unused(&mut self) {
        let lines = self.input.lines;
        let shared = lines.touched_objects(self.static_ranges(), self.input.deadline);
        let mut number = Vec::with_capacity(self.found.objects.len());
        let mut kept = 0;
        for (object, n) in self.found.objects.iter().zip(0..) {
            let used = object.reads.max(object.writes) > 0 || shared.contains(&n);
            let keep = object.kind != ObjectKind::Static || used;
            number.push(keep.then_some(kept));
            kept += u32::from(keep);
        }
        let renumber = |object: u32| number.get(object as usize).copied().flatten();
        self.static_objects
            .retain(|_, object| match renumber(*object) {
                Some(n) => {
                    *object = n;
                    true
                }
                None => false,
            });
        let mut keep = number.iter().map(Option::is_some);
        self.found.objects.retain(|_| keep.next().unwrap_or(false));
        self.found.ranges.retain_mut(|range| {
            renumber(range.0).is_some_and(|n| {
                range.0 = n;
                true
            })
        });
        self.found.paths.retain_mut(|path| {
            let object = renumber(path.object.0).map(ObjectIx);
            path.object = object.unwrap_or_default();
            object.is_some()
        });
        self.found.threads.retain_mut(|user| {
            let object = renumber(user.object.0).map(ObjectIx);
            user.object = object.unwrap_or_default();
            object.is_some()
        });
        for site in &mut self.found.sites {
            site.object = site.object.and_then(|o| renumber(o.0)).map(ObjectIx);
        }
        let kept: Vec<_> = self.static_ranges().collect();
        self.found.ranges.extend(kept);
    }

    /// The fields of the variables that are left.
    fn add_members(&mut self, naming: &mut dyn Symbolizer) {
        let mut by_file: HashMap<&str, Vec<(u64, u32)>> = HashMap::new();
        for ((file, n), &object) in &self.static_objects {
            if let Some(variable) = self.statics.get(file).and_then(|v| v.get(*n)) {
                let objects = by_file.entry(file).or_default();
                objects.push((variable.vaddr, object));
            }
        }
        for (file, objects) in by_file {
            let vaddrs: Vec<u64> = objects.iter().map(|(vaddr, _)| *vaddr).collect();
            let found = naming.members(Path::new(file), &vaddrs);
            for (fields, (_, object)) in found.into_iter().zip(objects) {
                let rows = fields.into_iter().map(|f| object_member(object, f));
                self.found.members.extend(rows);
            }
        }
        // Fields stay in their order.
        self.found.members.sort_by_key(|member| member.object);
    }
}

fn object_member(object: u32, field: StructField) -> ObjectMember {
    ObjectMember {
        object: ObjectIx(object),
        name: field.name,
        type_name: field.type_name,
        offset: field.offset,
        size: field.size,
    }
}

fn mapping_name(region: &Region) -> String {
    let thread = region
        .thread
        .map_or(String::new(), |t| format!(" by thread {t}"));
    format!(
        "mmap #{} of {} KiB{thread}",
        region.ordinal,
        region.size >> 10
    )
}

fn stack_name(known: &KnownRegion) -> String {
    let region = &known.region;
    match region.thread {
        Some(thread) if known.used_again => format!("stack of thread {thread}, then of others"),
        Some(thread) => format!("stack of thread {thread}"),
        None => format!("stack of process {}", region.process),
    }
}
