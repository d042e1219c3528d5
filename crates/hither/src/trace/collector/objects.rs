//! Data structures: statics, heap blocks by allocation site, mappings, stacks, shared
//! memory; their reads and writes, and the source lines that make them.
//!
//! A page that only one structure lies on counts for it exactly. Several structures on a
//! page share its counts in the proportion of the samples taken of them there, or of
//! their bytes when there are none; they are then marked as estimated.
use super::address_space::PageName;
use super::heap::{keep_largest_ranges, HeapTracker};
use super::regions::{RegionMap, PAGE_BITS};
use super::samples::{keep_most_accessed, SampleCode, SampleTally, SampleTarget, DATA_UNIT_BYTES};
use super::shared_lines::LineRows;
use crate::trace::symbolizer::{AllocationName, SourceLine, StaticObject, Symbolizer};
use hither_profile::{
    Object, ObjectIx, ObjectKind, ObjectMember, ProcessIx, Region, RegionKind, SourceSite, ThreadIx,
};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Anonymous mappings of at least this many bytes are structures of their own.
const MIN_MAPPING: u64 = 64 << 10;
/// Share of the samples whose source lines are kept.
const LINES_KEPT: f64 = 0.999;
const PAGE: u64 = 1 << PAGE_BITS;

pub struct ObjectInput<'a> {
    pub regions: &'a RegionMap,
    pub heap: &'a mut HeapTracker,
    pub samples: &'a SampleTally,
    /// Totals per page, sorted.
    pub pages: &'a [(PageName, [u64; 2])],
    /// Bytes of shared lines that were touched.
    pub lines: &'a LineRows,
    /// What a sampled count stands for.
    pub scale: f64,
}

#[derive(Default)]
pub struct ObjectTables {
    pub objects: Vec<Object>,
    /// (object, region, offset, length)
    pub ranges: Vec<(u32, u32, u64, u64)>,
    pub sites: Vec<SourceSite>,
    pub members: Vec<ObjectMember>,
}

pub fn build_objects(input: ObjectInput<'_>, naming: &mut dyn Symbolizer) -> ObjectTables {
    let mut builder = ObjectBuilder {
        input,
        found: ObjectTables::default(),
        by_site: Vec::new(),
        by_region: HashMap::new(),
        statics: HashMap::new(),
        static_objects: HashMap::new(),
    };
    builder.add_heap_objects(naming);
    builder.add_static_objects(naming);
    builder.add_region_objects();
    builder.attribute_accesses();
    let lines = builder.source_sites(naming);
    builder.found.sites = lines;
    builder.drop_unused();
    builder.add_members(naming);
    builder.found
}

struct ObjectBuilder<'a> {
    input: ObjectInput<'a>,
    found: ObjectTables,
    /// Object of each allocation site.
    by_site: Vec<u32>,
    /// Object that a whole region is.
    by_region: HashMap<u32, u32>,
    /// Variables of a file, sorted by address.
    statics: HashMap<String, Rc<Vec<StaticObject>>>,
    /// (file, number in `statics`) -> object
    static_objects: HashMap<(String, usize), u32>,
}

impl ObjectBuilder<'_> {
    fn add(&mut self, object: Object) -> u32 {
        self.found.objects.push(object);
        (self.found.objects.len() - 1) as u32
    }

    fn region(&self, region: u32) -> Option<&Region> {
        self.input
            .regions
            .all
            .get(region as usize)
            .map(|k| &k.region)
    }

    /// One object per allocating place and process.
    fn add_heap_objects(&mut self, naming: &mut dyn Symbolizer) {
        let mut objects: HashMap<(u32, AllocationKey), u32> = HashMap::new();
        for mut site in std::mem::take(&mut self.input.heap.sites) {
            let frames = site.frames.iter().filter_map(|&(region, vaddr)| {
                self.region(region).map(|r| (PathBuf::from(&r.file), vaddr))
            });
            let name = naming.allocation_name(&frames.collect::<Vec<_>>());
            let object = *objects
                .entry((site.process, AllocationKey::of(&name)))
                .or_insert_with(|| self.add(heap_object(name, site.process, site.thread)));
            let sum = &mut self.found.objects[object as usize];
            sum.size = sum.size.saturating_add(site.bytes);
            sum.count = sum.count.saturating_add(site.count);
            keep_largest_ranges(&mut site.ranges);
            let ranges = site
                .ranges
                .iter()
                .map(|&(region, offset, length)| (object, region, offset, length));
            self.found.ranges.extend(ranges);
            self.by_site.push(object);
        }
    }

    /// The variables that lie on touched pages of program files.
    fn add_static_objects(&mut self, naming: &mut dyn Symbolizer) {
        let mut at = 0;
        while at < self.input.pages.len() {
            let number = self.input.pages[at].0 .0;
            let pages = self.input.pages[at..]
                .iter()
                .take_while(|p| p.0 .0 == number)
                .count();
            let touched = at..at + pages;
            at += pages;
            let Some(region) = self
                .region(number)
                .filter(|r| r.kind == RegionKind::Elf)
                .cloned()
            else {
                continue;
            };
            let variables = self.file_variables(&region.file, naming);
            for (n, variable) in variables.iter().enumerate() {
                let offset = variable.vaddr.wrapping_sub(region.file_offset);
                if offset < region.size && self.touches(touched.clone(), offset, variable.size) {
                    let object = self.static_object(&region, n, variable);
                    self.found
                        .ranges
                        .push((object, number, offset, variable.size));
                }
            }
        }
    }

    fn file_variables(&mut self, file: &str, naming: &mut dyn Symbolizer) -> Rc<Vec<StaticObject>> {
        let read = || {
            let mut found = naming.static_objects(&PathBuf::from(file));
            found.retain(|v| v.size > 0);
            found.sort_by_key(|v| v.vaddr);
            Rc::new(found)
        };
        Rc::clone(self.statics.entry(file.to_owned()).or_insert_with(read))
    }

    /// Whether one of these pages (all of one region) has a byte of the range.
    fn touches(&self, pages: std::ops::Range<usize>, offset: u64, length: u64) -> bool {
        let pages = &self.input.pages[pages];
        let first = pages.partition_point(|p| u64::from(p.0 .1) < offset >> PAGE_BITS);
        let last = offset.saturating_add(length - 1) >> PAGE_BITS;
        pages.get(first).is_some_and(|p| u64::from(p.0 .1) <= last)
    }

    fn static_object(&mut self, region: &Region, n: usize, variable: &StaticObject) -> u32 {
        let key = (region.file.clone(), n);
        if let Some(&known) = self.static_objects.get(&key) {
            return known;
        }
        let object = self.add(Object {
            name: variable.name.clone(),
            type_name: variable.type_name.clone(),
            kind: ObjectKind::Static,
            size: variable.size,
            count: 1,
            file: variable.file.clone(),
            line: variable.line,
            process: region.process,
            ..Object::default()
        });
        self.static_objects.insert(key, object);
        object
    }

    /// Mappings, stacks and shared memory that were touched.
    fn add_region_objects(&mut self) {
        let mut touched: Vec<u32> = self.input.pages.iter().map(|p| p.0 .0).collect();
        touched.dedup();
        let mut anonymous = 0;
        for number in touched {
            let Some(known) = self.input.regions.all.get(number as usize) else {
                continue;
            };
            let region = &known.region;
            let large = known.anonymous && !known.has_blocks && region.size >= MIN_MAPPING;
            let (kind, name) = match region.kind {
                RegionKind::Mmap if large => (ObjectKind::Mmap, mapping_name(region)),
                RegionKind::Stack => (ObjectKind::Stack, stack_name(region)),
                RegionKind::Shared if region.file.is_empty() => {
                    anonymous += 1;
                    (ObjectKind::Shared, format!("shared memory #{anonymous}"))
                }
                RegionKind::Shared => (ObjectKind::Shared, region.file.clone()),
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

    /// Shares the counts of each page out among the objects on it.
    fn attribute_accesses(&mut self) {
        let mut on_page: Vec<(usize, u32, u64)> = Vec::new();
        for &(object, region, offset, length) in &self.found.ranges {
            let end = offset.saturating_add(length);
            let first = self.input.pages.partition_point(|p| {
                p.0 < (region, (offset >> PAGE_BITS).min(u32::MAX.into()) as u32)
            });
            for (n, (page, _)) in self.input.pages.iter().enumerate().skip(first) {
                let start = u64::from(page.1) * PAGE;
                if page.0 != region || start >= end {
                    break;
                }
                let bytes = end.min(start + PAGE).saturating_sub(offset.max(start));
                on_page.push((n, object, bytes));
            }
        }
        on_page.sort_unstable();
        let samples = self.samples_by_page();
        for group in on_page.chunk_by(|a, b| a.0 == b.0) {
            let (page, counts) = self.input.pages[group[0].0];
            let mut shares: BTreeMap<u32, u64> = BTreeMap::new();
            for &(_, object, bytes) in group {
                *shares.entry(object).or_insert(0) += bytes;
            }
            distribute_counts(&mut self.found.objects, page, counts, &shares, &samples);
        }
    }

    /// Sampled accesses of (page, object).
    fn samples_by_page(&self) -> HashMap<(PageName, u32), u64> {
        let mut sums: HashMap<(PageName, u32), u64> = HashMap::new();
        let mut add = |region: u32, page: u64, object: u32, counts: [u64; 2]| {
            let sum = sums.entry(((region, page as u32), object)).or_insert(0);
            *sum = sum.saturating_add(counts[0]).saturating_add(counts[1]);
        };
        for (&(region, page, site), &counts) in &self.input.samples.heap_pages {
            if let Some(&object) = self.by_site.get(site as usize) {
                add(region, page, object, counts);
            }
        }
        for (&(target, _), &counts) in &self.input.samples.lines {
            if let SampleTarget::File { region, unit } = target {
                if let Some(object) = self.object_of(target) {
                    let page = (unit * DATA_UNIT_BYTES) >> PAGE_BITS;
                    add(region, page, object, counts);
                }
            }
        }
        sums
    }

    fn object_of(&self, target: SampleTarget) -> Option<u32> {
        match target {
            SampleTarget::Heap(site) => self.by_site.get(site as usize).copied(),
            SampleTarget::Region(region) => self.by_region.get(&region).copied(),
            SampleTarget::File { region, unit } => self.variable_at(region, unit * DATA_UNIT_BYTES),
            SampleTarget::Unknown => None,
        }
    }

    /// The variable that fills most of a unit of a file's region.
    fn variable_at(&self, number: u32, offset: u64) -> Option<u32> {
        let region = self.region(number)?;
        let variables = self.statics.get(&region.file)?;
        let start = region.file_offset.wrapping_add(offset);
        let end = start.saturating_add(DATA_UNIT_BYTES);
        let behind = variables.partition_point(|v| v.vaddr < end);
        let overlap = |v: &StaticObject| {
            v.vaddr
                .saturating_add(v.size)
                .min(end)
                .saturating_sub(v.vaddr.max(start))
        };
        let here = (0..behind)
            .rev()
            .take(DATA_UNIT_BYTES as usize)
            .map(|n| (overlap(&variables[n]), n));
        let (bytes, n) = here.max()?;
        (bytes > 0).then(|| self.static_objects.get(&(region.file.clone(), n)).copied())?
    }

    /// Samples by object and source line.
    fn source_sites(&self, naming: &mut dyn Symbolizer) -> Vec<SourceSite> {
        let mut number_of: HashMap<SampleCode, usize> = HashMap::new();
        let mut lines = SourceLineTable::default();
        let mut sums: HashMap<(Option<u32>, usize), [u64; 2]> = HashMap::new();
        for (&(target, code), counts) in &self.input.samples.lines {
            let line = *number_of
                .entry(code)
                .or_insert_with(|| lines.add(self.source_line(code, naming)));
            let sum = sums.entry((self.object_of(target), line)).or_insert([0; 2]);
            sum[0] = sum[0].saturating_add(counts[0]);
            sum[1] = sum[1].saturating_add(counts[1]);
        }
        let scaled = |count: u64| (count as f64 * self.input.scale).round() as u64;
        let row = |((object, line), counts): ((Option<u32>, usize), [u64; 2])| SourceSite {
            object: object.map(ObjectIx),
            reads: scaled(counts[0]),
            writes: scaled(counts[1]),
            ..lines.site(line)
        };
        keep_most_accessed(sums.into_iter().map(row).collect(), LINES_KEPT)
    }

    fn source_line(&self, code: SampleCode, naming: &mut dyn Symbolizer) -> SourceLine {
        let file =
            code.and_then(|(region, vaddr)| Some((self.region(region)?.file.clone(), vaddr)));
        let known = file
            .as_ref()
            .and_then(|(file, vaddr)| naming.source_line(&PathBuf::from(file), *vaddr));
        known.unwrap_or_else(|| SourceLine {
            file: file.map(|f| f.0).unwrap_or_default(),
            ..SourceLine::default()
        })
    }

    /// Variables that only lie on touched pages and were not accessed are no use to anyone.
    fn drop_unused(&mut self) {
        let shared = self.input.lines.touched_objects(&self.found.ranges);
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
        for site in &mut self.found.sites {
            site.object = site.object.and_then(|o| renumber(o.0)).map(ObjectIx);
        }
    }

    /// The fields of the variables that are left.
    fn add_members(&mut self, naming: &mut dyn Symbolizer) {
        let mut objects: Vec<_> = self.static_objects.iter().collect();
        objects.sort_by_key(|(_, &object)| object);
        for ((file, n), &object) in objects {
            let Some(variable) = self.statics.get(file).and_then(|v| v.get(*n)) else {
                continue;
            };
            let found = naming.members(Path::new(file), variable);
            let members = found.into_iter().map(|m| ObjectMember {
                object: ObjectIx(object),
                name: m.name,
                type_name: m.type_name,
                offset: m.offset,
                size: m.size,
            });
            self.found.members.extend(members);
        }
    }
}

/// Source lines, each once.
#[derive(Default)]
struct SourceLineTable {
    all: Vec<SourceLine>,
    numbers: HashMap<(String, u32, String), usize>,
}

impl SourceLineTable {
    fn add(&mut self, line: SourceLine) -> usize {
        let key = (line.file.clone(), line.line, line.function.clone());
        *self.numbers.entry(key).or_insert_with(|| {
            self.all.push(line);
            self.all.len() - 1
        })
    }

    fn site(&self, number: usize) -> SourceSite {
        let line = &self.all[number];
        SourceSite {
            file: line.file.clone(),
            line: line.line,
            function: line.function.clone(),
            ..SourceSite::default()
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
struct AllocationKey(String, String, String, u32, String);

impl AllocationKey {
    fn of(n: &AllocationName) -> Self {
        AllocationKey(
            n.name.clone(),
            n.type_name.clone(),
            n.file.clone(),
            n.line,
            n.function.clone(),
        )
    }
}

fn heap_object(name: AllocationName, process: u32, thread: u32) -> Object {
    Object {
        name: name.name,
        type_name: name.type_name,
        kind: ObjectKind::Heap,
        file: name.file,
        line: name.line,
        function: name.function,
        process: ProcessIx(process.saturating_sub(1)),
        owner: thread.checked_sub(1).map(ThreadIx),
        ..Object::default()
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

fn stack_name(region: &Region) -> String {
    match region.thread {
        Some(thread) => format!("stack of thread {thread}"),
        None => format!("stack of process {}", region.process),
    }
}

fn distribute_counts(
    objects: &mut [Object],
    page: PageName,
    counts: [u64; 2],
    bytes: &BTreeMap<u32, u64>,
    samples: &HashMap<(PageName, u32), u64>,
) {
    let sampled: BTreeMap<u32, u64> = bytes
        .keys()
        .filter_map(|&object| Some((object, *samples.get(&(page, object))?)))
        .filter(|s| s.1 > 0)
        .collect();
    let weights = if sampled.is_empty() { bytes } else { &sampled };
    let several = bytes.len() > 1;
    let (mut rest, mut weight) = (counts, weights.values().map(|&w| w as f64).sum::<f64>());
    for (&object, &own) in weights {
        let share = if weight > 0.0 {
            (own as f64 / weight).min(1.0)
        } else {
            1.0
        };
        weight -= own as f64;
        let part = rest.map(|c| ((c as f64 * share).round() as u64).min(c));
        let last = weights.last_key_value().is_some_and(|l| *l.0 == object);
        let part = if last { rest } else { part };
        rest = [rest[0] - part[0], rest[1] - part[1]];
        let sum = &mut objects[object as usize];
        sum.reads = sum.reads.saturating_add(part[0]);
        sum.writes = sum.writes.saturating_add(part[1]);
        sum.estimated |= several;
    }
}
