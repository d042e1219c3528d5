//! Accesses and source lines of data structures.
//!
//! The tracer counts accesses to variables and heap blocks by the structure at their address;
//! mappings, stacks and shared memory have the counts of their pages. Variables that are one
//! symbol for the tracer (a common block) share its counts by the pages they lie on, and are
//! marked as estimated.
use super::address_space::PageName;
use super::code_lines::CodePlace;
use super::objects::{Meaning, ObjectBuilder, ObjectInput};
use super::regions::PAGE_BITS;
use super::samples::{keep_most_accessed, SampleTarget, LINE_BYTES};
use crate::trace::symbolizer::{SourceLine, StaticObject, Symbolizer};
use hither_profile::{
    file_name, Object, ObjectIx, ObjectKind, ObjectThread, ProcessIx, Region, RegionKind,
    SourceSite, ThreadIx,
};
use hither_sys::wire;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Variables before an address that are looked at for one that goes on behind it.
const MAX_BEFORE: usize = 32;
/// What the tracer tells apart at least, in bytes: HI_GRANULE_SHIFT of the object map.
const GRANULE: u64 = 16;
/// Variables that are named where they are one structure.
const MOST_JOINED: usize = 4;
/// A structure's lines have at most this many times the accesses that its samples stand for. Where most of its accesses
/// were made between two looks (access_sample.h), the samples are of other code, and these accesses have no source
/// line. Ours: by chance alone samples are seldom that much too few.
const MOST_SAMPLED: f64 = 32.0;
/// Share of the samples whose source lines are kept.
const LINES_KEPT: f64 = 0.999;

impl ObjectBuilder<'_> {
    /// Mappings, stacks and shared memory have what was counted on their pages; a program file
    /// has what the tracer counted for none of its variables: accesses of the dynamic linker,
    /// before the tracer knew the file. Call it last.
    pub fn count_regions(&mut self) {
        let mut of_region: BTreeMap<u32, [u64; 3]> = BTreeMap::new();
        for &((region, _), counts) in self.input.pages {
            let sum = of_region.entry(region).or_default();
            *sum = add(*sum, counts);
        }
        for (&region, others) in self.input.thread_locals {
            if let Some(sum) = of_region.get_mut(&region) {
                *sum = [0, 1, 2].map(|n: usize| sum[n].saturating_sub(others[n]));
            }
        }
        // What a forked process calls a variable is that of its parent, in a region of the parent.
        let mut of_file: BTreeMap<(u32, String), [u64; 3]> = BTreeMap::new();
        for (region, counts) in of_region {
            if let Some(&object) = self.by_region.get(&region) {
                self.add_counts(object, counts);
                self.add_threads(object, self.input.region_users.get(&region));
            } else if let Some(elf) = self.region(region).filter(|r| r.kind == RegionKind::Elf) {
                let key = (elf.process.0 + 1, elf.file.clone());
                let sum = of_file.entry(key).or_default();
                *sum = add(*sum, counts);
            }
        }
        for (key, counts) in of_file {
            let counted = self.counted.get(&key).copied().unwrap_or_default();
            let left = [0, 1, 2].map(|n: usize| counts[n].saturating_sub(counted[n]));
            if left[..2] != [0, 0] {
                let (process, file) = key;
                let object = self.unnamed_object(ObjectKind::Static, &constants_of(&file), process);
                self.add_counts(object, left);
            }
        }
    }

    /// Reads, writes and fetches on the pages of a region.
    pub fn counts_of_region(&self, region: u32) -> [u64; 3] {
        let pages = self.input.pages;
        let first = pages.partition_point(|p| p.0 .0 < region);
        let pages = pages[first..].iter().take_while(|p| p.0 .0 == region);
        pages.fold([0; 3], |sum, &(_, counts)| add(sum, counts))
    }

    /// Small blocks were not reported one by one: those that lie on shared lines get ranges here,
    /// so that the lines can be told whose they are.
    pub fn add_shared_ranges(&mut self, naming: &mut dyn Symbolizer) {
        let mut known: Vec<_> = self.found.ranges.clone();
        known.sort_unstable_by_key(|&(object, region, offset, _)| (object, region, offset));
        let is_known = |(object, region, offset): (u32, u32, u64)| {
            let behind = known.partition_point(|r| (r.0, r.1, r.2) <= (object, region, offset));
            behind.checked_sub(1).is_some_and(|n| {
                let (o, r, start, length) = known[n];
                (o, r) == (object, region) && offset < start.saturating_add(length)
            })
        };
        let lines = self.input.lines;
        self.add_granules(&lines.objects, is_known, naming);
    }

    /// And a range on each page that samples of small blocks lie on, but for where a larger block
    /// lies now or did before.
    pub fn add_sampled_ranges(&mut self, naming: &mut dyn Symbolizer) {
        let known = self.found.ranges.iter();
        let mut known: Vec<_> = known
            .map(|&(_, r, at, n)| (r, at, at.saturating_add(n)))
            .collect();
        known.sort_unstable();
        // Where all up to this one end.
        let mut ends: Vec<u64> = Vec::with_capacity(known.len());
        for (n, &(region, _, end)) in known.iter().enumerate() {
            let before = n.checked_sub(1).filter(|&n| known[n].0 == region);
            ends.push(before.map_or(end, |n| end.max(ends[n])));
        }
        let is_known = |(_, region, offset): (u32, u32, u64)| {
            let behind = known.partition_point(|r| (r.0, r.1) <= (region, offset));
            let nearest = behind.checked_sub(1).filter(|&n| known[n].0 == region);
            nearest.is_some_and(|n| offset < ends[n])
        };
        let mut places: Vec<_> = self.input.samples.small_blocks.iter().collect();
        places.sort_unstable();
        self.add_granules(&places, is_known, naming);
    }

    fn add_granules(
        &mut self,
        places: &[(PageName, u64, u32, u32)],
        is_known: impl Fn((u32, u32, u64)) -> bool,
        naming: &mut dyn Symbolizer,
    ) {
        for &((region, page), in_page, process, id) in places {
            let Some(Meaning::One(object)) = self.meaning_of(process, id, naming) else {
                continue;
            };
            let offset = (u64::from(page) << PAGE_BITS) + in_page / GRANULE * GRANULE;
            let heap = self.found.objects[object as usize].kind == ObjectKind::Heap;
            if heap && id != wire::OBJECT_FREE && !is_known((object, region, offset)) {
                self.found.ranges.push((object, region, offset, GRANULE));
            }
        }
    }

    fn add_threads(&mut self, object: u32, threads: Option<&BTreeSet<ThreadIx>>) {
        let object = ObjectIx(object);
        let rows = threads.into_iter().flatten();
        let rows = rows.map(|&thread| ObjectThread { object, thread });
        self.found.threads.extend(rows);
    }

    /// Each thread of an object once.
    pub fn sort_threads(&mut self) {
        self.found.threads.sort_unstable();
        self.found.threads.dedup();
    }

    fn add_counts(&mut self, object: u32, [reads, writes, fetches]: [u64; 3]) {
        let sum = &mut self.found.objects[object as usize];
        sum.reads = sum.reads.saturating_add(reads);
        sum.writes = sum.writes.saturating_add(writes);
        sum.fetches = sum.fetches.saturating_add(fetches);
    }

    /// Gives the tracer's counts to what their ids mean.
    pub fn count_objects(&mut self, naming: &mut dyn Symbolizer) {
        for (&(process, id), count) in self.input.accesses {
            let counts = [count.reads, count.writes, count.fetches];
            let Some(meaning) = self.meaning_of(process, id, naming) else {
                continue;
            };
            let (shares, estimated) = match meaning {
                Meaning::One(object) => (Rc::from([(object, 1.0)]), false),
                Meaning::Several(shares) => (shares, true),
            };
            for &(object, share) in shares.iter() {
                let part = |count: u64| match estimated {
                    true => (count as f64 * share).round() as u64,
                    false => count,
                };
                self.add_counts(object, counts.map(part));
                self.add_threads(object, self.input.users.get(&(process, id)));
                self.found.objects[object as usize].estimated |= estimated;
            }
            if let Some(file) = self.file_of.get(&(process, id)) {
                let row = self.input.regions.row_of(process);
                let sum = self.counted.entry((row, file.clone())).or_default();
                *sum = add(*sum, counts);
            }
        }
    }

    pub fn meaning_of(
        &mut self,
        process: u32,
        id: u32,
        naming: &mut dyn Symbolizer,
    ) -> Option<Meaning> {
        if let Some(known) = self.by_id.get(&(process, id)) {
            return known.clone();
        }
        let meaning = if id == wire::OBJECT_FREE {
            let name = "the allocator's own and freed memory";
            Some(Meaning::One(self.unnamed_object(
                ObjectKind::Heap,
                name,
                process,
            )))
        } else {
            let record = self.input.ids.record(self.input.segment, process, id);
            record.and_then(|record| self.meaning_of_record((process, id), record, naming))
        };
        self.by_id.insert((process, id), meaning.clone());
        meaning
    }

    /// The object of a sample.
    fn object_of(&mut self, target: SampleTarget, naming: &mut dyn Symbolizer) -> Option<u32> {
        match target {
            SampleTarget::Region(region) => self.by_region.get(&region).copied(),
            SampleTarget::Unknown => None,
            SampleTarget::Object(process, id) => match self.meaning_of(process, id, naming)? {
                Meaning::One(object) => Some(object),
                Meaning::Several(_) => None,
            },
            SampleTarget::Variable {
                process,
                id,
                region,
                line,
            } => match self.meaning_of(process, id, naming)? {
                Meaning::One(object) => Some(object),
                Meaning::Several(_) => self.variable_on(region, line * LINE_BYTES),
            },
        }
    }

    /// The variable that fills most of a line of a file's region.
    fn variable_on(&self, region: u32, offset: u64) -> Option<u32> {
        let region = self.region(region)?;
        let start = region.file_offset.wrapping_add(offset);
        let bytes = |v: &StaticObject| overlap((v.vaddr, v.size), (start, LINE_BYTES));
        let here = variables_in(self.statics.get(&region.file)?, start, LINE_BYTES);
        let (n, _) = here.max_by_key(|(_, v)| bytes(v))?;
        self.static_objects.get(&(region.file.clone(), n)).copied()
    }

    fn meaning_of_record(
        &mut self,
        (process, id): (u32, u32),
        record: u32,
        naming: &mut dyn Symbolizer,
    ) -> Option<Meaning> {
        let ObjectInput {
            segment,
            regions,
            heap,
            ..
        } = &mut self.input;
        let object = segment.target_object(record);
        if let Some(site) = heap.site_of(process, record, segment, regions) {
            return self.by_site.get(site as usize).copied().map(Meaning::One);
        }
        if object.kind == wire::OBJECT_THREAD_LOCAL {
            return Some(Meaning::One(self.thread_local(process, &object, naming)));
        }
        let generation = Some(object.generation);
        let (number, vaddr) = regions.locate_code(object.process, object.address, generation)?;
        let region = self.region(number)?.clone();
        self.file_of.insert((process, id), region.file.clone());
        if object.kind == wire::OBJECT_VARIABLE {
            let found = self.variables_at((number, &region), (vaddr, object.size), process, naming);
            if found.is_some() {
                return found;
            }
        }
        let name = match object.kind {
            wire::OBJECT_CONSTANTS => constants_of(&region.file),
            _ => format!("data of {}", file_name(&region.file)),
        };
        Some(Meaning::One(self.unnamed_object(
            ObjectKind::Static,
            &name,
            process,
        )))
    }

    /// What a symbol at these bytes of a file means: a variable, several in a common block, or
    /// several that share a few bytes.
    fn variables_at(
        &mut self,
        (number, region): (u32, &Region),
        (vaddr, size): (u64, u64),
        process: u32,
        naming: &mut dyn Symbolizer,
    ) -> Option<Meaning> {
        let all = self.file_variables(&region.file, naming);
        let here: Vec<_> = variables_in(&all, vaddr, size).collect();
        let exact = here
            .iter()
            .find(|(_, v)| (v.vaddr, v.size) == (vaddr, size));
        let single = exact.or(here.first().filter(|_| here.len() == 1));
        if let Some(&(n, variable)) = single {
            return Some(Meaning::One(self.static_object(region, n, variable)));
        }
        if here.is_empty() {
            return None;
        }
        if size > GRANULE {
            return Some(self.shares_of(number, region, &here));
        }
        let object = self.joined_variables(ObjectKind::Static, &here, process);
        self.found.objects[object as usize].size = size;
        Some(Meaning::One(object))
    }

    /// Variables that are too close to each other to be told apart.
    pub fn joined_variables(
        &mut self,
        kind: ObjectKind,
        here: &[(usize, &StaticObject)],
        process: u32,
    ) -> u32 {
        let names = here.iter().take(MOST_JOINED).map(|(_, v)| v.name.as_str());
        let mut name = names.collect::<Vec<_>>().join(", ");
        if here.len() > MOST_JOINED {
            name += &format!(" and {} more", here.len() - MOST_JOINED);
        }
        let number = self.unnamed_object(kind, &name, process);
        let object = &mut self.found.objects[number as usize];
        if let Some((_, first)) = here.first() {
            if here.iter().all(|(_, v)| v.file == first.file) {
                (object.file, object.line) = (first.file.clone(), first.line);
            }
        }
        number
    }

    /// Shares the pages of a symbol out among the variables in it.
    fn shares_of(
        &mut self,
        number: u32,
        region: &Region,
        here: &[(usize, &StaticObject)],
    ) -> Meaning {
        let pages = self.input.pages;
        let mut weights = vec![0.0; here.len()];
        let first = pages.partition_point(|p| p.0 .0 < number);
        for &((_, page), counts) in pages[first..].iter().take_while(|p| p.0 .0 == number) {
            let start = region
                .file_offset
                .wrapping_add(u64::from(page) << PAGE_BITS);
            let bytes = here
                .iter()
                .map(|(_, v)| overlap((v.vaddr, v.size), (start, 1 << PAGE_BITS)));
            let bytes: Vec<u64> = bytes.collect();
            let all = bytes.iter().sum::<u64>().max(1);
            for (weight, bytes) in weights.iter_mut().zip(bytes) {
                *weight += (counts[0] as f64 + counts[1] as f64) * bytes as f64 / all as f64;
            }
        }
        let all = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let shares = here.iter().zip(weights);
        let shares =
            shares.map(|(&(n, v), weight)| (self.static_object(region, n, v), weight / all));
        Meaning::Several(shares.collect())
    }

    pub fn unnamed_object(&mut self, kind: ObjectKind, name: &str, process: u32) -> u32 {
        let process = self.input.regions.row_of(process);
        if let Some(&known) = self.unnamed.get(&(name.to_owned(), process)) {
            return known;
        }
        let object = self.add(Object {
            name: name.to_owned(),
            kind,
            count: 1,
            process: ProcessIx(process.saturating_sub(1)),
            ..Object::default()
        });
        self.unnamed.insert((name.to_owned(), process), object);
        object
    }

    /// Samples by object and source line.
    pub fn source_sites(&mut self, naming: &mut dyn Symbolizer) -> Vec<SourceSite> {
        let mut known: HashMap<CodePlace, SourceLine> = HashMap::new();
        let mut sums = SourceLineSums::default();
        for (&(target, code), counts) in &self.input.samples.lines {
            let line = known
                .entry(code)
                .or_insert_with(|| code.source_line(self.input.regions, naming))
                .clone();
            sums.add(self.object_of(target, naming), line, *counts);
        }
        let mut rows = sums.rows(self.input.scale);
        share_out(&self.found.objects, &mut rows);
        keep_most_accessed(rows, LINES_KEPT)
    }
}

/// What an object was accessed is counted; only how its lines share that is from samples. So the
/// reads of its rows add up to its reads, and the writes and fetches likewise, unless its samples are
/// far too few for its accesses.
fn share_out(objects: &[Object], rows: &mut [SourceSite]) {
    let mut sums = vec![[0.0; 3]; objects.len()];
    for row in &*rows {
        if let Some(sum) = row.object.and_then(|o| sums.get_mut(o.at())) {
            sum[0] += row.reads as f64;
            sum[1] += row.writes as f64;
            sum[2] += row.fetches as f64;
        }
    }
    for row in rows {
        let Some(at) = row
            .object
            .map(ObjectIx::at)
            .filter(|&at| at < objects.len())
        else {
            continue;
        };
        let counted =
            [objects[at].reads, objects[at].writes, objects[at].fetches].map(|n| n as f64);
        let sampled = sums[at];
        let known = (sampled[0] + sampled[1]) * MOST_SAMPLED / (counted[0] + counted[1]).max(1.0);
        let part = |of_row: u64, n: usize, known: f64| {
            (of_row as f64 / sampled[n].max(1.0) * counted[n] * known.min(1.0)).round() as u64
        };
        row.reads = part(row.reads, 0, known);
        row.writes = part(row.writes, 1, known);
        row.fetches = part(row.fetches, 2, 1.0);
    }
}

/// Samples of a line by the library function that accesses for it.
type ByCallee = BTreeMap<String, [u64; 3]>;

/// Samples by object and line; those that a library makes for the line are apart.
#[derive(Default)]
struct SourceLineSums {
    sums: BTreeMap<(Option<u32>, SourceLine, bool), ByCallee>,
}

impl SourceLineSums {
    fn add(&mut self, object: Option<u32>, mut line: SourceLine, counts: [u64; 3]) {
        let callee = std::mem::take(&mut line.callee);
        let of_line = self.sums.entry((object, line, !callee.is_empty()));
        let sum = of_line.or_default().entry(callee).or_default();
        *sum = add(*sum, counts);
    }

    /// A row has the name of the callee that accesses most.
    fn rows(self, scale: f64) -> Vec<SourceSite> {
        let scaled = |count: u64| (count as f64 * scale).round() as u64;
        let total = |sums: &ByCallee, n: usize| {
            sums.values()
                .fold(0, |all: u64, s| all.saturating_add(s[n]))
        };
        let row = |((object, line, _), sums): ((Option<u32>, SourceLine, bool), ByCallee)| {
            let [reads, writes, fetches] = [0, 1, 2].map(|n| scaled(total(&sums, n)));
            let most = sums
                .into_iter()
                .max_by_key(|(_, s)| s[0].saturating_add(s[1]));
            SourceSite {
                object: object.map(ObjectIx),
                file: line.file,
                line: line.line,
                function: line.function,
                callee: most.map(|(callee, _)| callee).unwrap_or_default(),
                reads,
                writes,
                fetches,
            }
        };
        self.sums.into_iter().map(row).collect()
    }
}

/// Reads, writes and fetches.
fn add(a: [u64; 3], b: [u64; 3]) -> [u64; 3] {
    [0, 1, 2].map(|n: usize| a[n].saturating_add(b[n]))
}

fn constants_of(file: &str) -> String {
    format!("{}{}", Object::CONSTANTS_OF, file_name(file))
}

/// The variables of a file that lie in a range, with their numbers, by address.
pub fn variables_in(
    all: &[StaticObject],
    vaddr: u64,
    size: u64,
) -> impl Iterator<Item = (usize, &StaticObject)> {
    let behind = all.partition_point(|v| v.vaddr < vaddr.saturating_add(size));
    let from = all.partition_point(|v| v.vaddr < vaddr);
    let from = from.saturating_sub(MAX_BEFORE);
    let near = all[from..behind].iter().zip(from..);
    near.filter(move |(v, _)| v.vaddr.saturating_add(v.size) > vaddr)
        .map(|(v, n)| (n, v))
}

/// How many bytes two ranges (start, length) share.
fn overlap(a: (u64, u64), b: (u64, u64)) -> u64 {
    let end = a.0.saturating_add(a.1).min(b.0.saturating_add(b.1));
    end.saturating_sub(a.0.max(b.0))
}
