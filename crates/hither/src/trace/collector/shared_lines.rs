//! What threads do with lines that they share: which bytes each touches, and how often.
//!
//! The tracer reports the bytes of some accesses to such lines, and of the rest only their
//! number (tracer/core/line_observation.h). Bytes are counted, not only marked, so that an
//! initialisation or a last sum does not hide that a thread otherwise keeps to its own.
use super::address_space::PageName;
use super::deadline::Deadline;
use super::events::TargetState;
use super::object_rows::ObjectKey;
use super::pages::PageReader;
use super::regions::PAGE_BITS;
use super::thread_rows::ThreadNumbers;
use hither_sys::{wire, Segment};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Parts of a line that are counted separately: bytes, in lines of 64.
const LINE_PARTS: usize = 64;
const LINE_PARTS_LOG2: u32 = LINE_PARTS.trailing_zeros();
/// Pairs of line and thread kept, 20 MiB. Past it the lines used least are forgotten.
const MAX_USES: usize = 1 << 16;
/// Parts with less than one in this many of the accesses seen are strays.
const STRAY_SHARE: u32 = 256;

/// A line: page id and number in the page.
type LineId = (u32, u32);

type PartCounts = [[u16; LINE_PARTS]; 2];

fn no_counts() -> Box<PartCounts> {
    Box::new([[0; LINE_PARTS]; 2])
}

/// What a thread did with a line.
struct ThreadLineUse {
    /// Its key.
    thread: u32,
    accesses: u64,
    /// Accesses whose bytes are known.
    seen: u64,
    /// The same; with the counts below it is halved when full.
    recent: u16,
    /// Those of them that write.
    writing: u16,
    /// By part: reads, writes; of most uses only the number is reported.
    parts: Option<Box<PartCounts>>,
}

impl ThreadLineUse {
    fn new(thread: u32) -> ThreadLineUse {
        ThreadLineUse {
            thread,
            accesses: 0,
            seen: 0,
            recent: 0,
            writing: 0,
            parts: None,
        }
    }

    fn touch(&mut self, masks: [u64; 2]) {
        self.seen = self.seen.saturating_add(1);
        let parts = self.parts.get_or_insert_with(no_counts);
        if self.recent == u16::MAX {
            self.recent /= 2;
            self.writing /= 2;
            parts.iter_mut().flatten().for_each(|n| *n /= 2);
        }
        self.recent += 1;
        self.writing += u16::from(masks[1] != 0);
        for (parts, mask) in parts.iter_mut().zip(masks) {
            let mut left = mask;
            while left != 0 {
                let count = &mut parts[left.trailing_zeros() as usize];
                *count = count.saturating_add(1);
                left &= left - 1;
            }
        }
    }

    /// What it did with the same line of another page counts as well.
    fn add(&mut self, more: &ThreadLineUse) {
        self.accesses = self.accesses.saturating_add(more.accesses);
        self.seen = self.seen.saturating_add(more.seen);
        let halve = self.recent.checked_add(more.recent).is_none();
        let sum = |a: u16, b: u16| {
            if halve {
                a / 2 + b / 2
            } else {
                a.saturating_add(b)
            }
        };
        self.recent = sum(self.recent, more.recent);
        self.writing = sum(self.writing, more.writing);
        let Some(more) = &more.parts else { return };
        let parts = self
            .parts
            .get_or_insert_with(no_counts)
            .iter_mut()
            .flatten();
        for (part, more) in parts.zip(more.iter().flatten()) {
            *part = sum(*part, *more);
        }
    }

    /// How many of so many accesses write, as far as the accesses seen tell.
    fn writes_among(&self, accesses: u64) -> u64 {
        match self.recent {
            0 => 0,
            recent => (accesses as f64 * f64::from(self.writing) / f64::from(recent)).ceil() as u64,
        }
    }

    /// The parts read and written, without strays.
    fn masks(&self) -> [u64; 2] {
        let often = |n: u16| n > 0 && u32::from(n) * STRAY_SHARE >= u32::from(self.recent);
        let Some(parts) = &self.parts else {
            return [0; 2];
        };
        parts.each_ref().map(|parts| {
            let bits = parts.iter().zip(0..).filter(|(n, _)| often(**n));
            bits.fold(0, |mask, (_, bit)| mask | 1 << bit)
        })
    }
}

/// A row of the `lines` table before regions are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineRow {
    pub seen: u64,
    pub read_mask: u64,
    pub write_mask: u64,
    pub accesses: u64,
    pub writes: u64,
}

/// Page, byte offset of the line in it, thread (from 0).
pub type LineKey = (PageName, u32, u32);

/// The rows of the `lines` table.
pub struct LineRows {
    rows: BTreeMap<LineKey, LineRow>,
    /// Structures on the lines: page, offset of 16 bytes in it, process, id.
    pub objects: Vec<(PageName, u64, u32, u32)>,
    /// Bytes of a part of a line.
    part: u64,
}

impl LineRows {
    /// The objects, of which these are (object, region, offset, length), with bytes touched.
    pub fn touched_objects(
        &self,
        ranges: impl Iterator<Item = (u32, u32, u64, u64)>,
        deadline: &Deadline,
    ) -> HashSet<u32> {
        let touched = |r: &(u32, u32, u64, u64)| !deadline.passed() && self.overlaps(r.1, r.2, r.3);
        ranges.filter(touched).map(|r| r.0).collect()
    }

    fn overlaps(&self, region: u32, offset: u64, length: u64) -> bool {
        let end = offset.saturating_add(length);
        let page = |at: u64| u32::try_from(at >> PAGE_BITS).unwrap_or(u32::MAX);
        let first = ((region, page(offset)), 0, 0);
        let last = ((region, page(end)), u32::MAX, u32::MAX);
        self.rows
            .range(first..=last)
            .any(|(&((_, page), at, _), row)| {
                let start = (u64::from(page) << PAGE_BITS) + u64::from(at);
                let touched = row.read_mask | row.write_mask;
                let parts = (0..LINE_PARTS as u64).filter(|n| touched >> n & 1 == 1);
                let mut parts = parts.map(|n| start + n * self.part);
                parts.any(|byte| byte < end && byte + self.part > offset)
            })
    }

    pub fn into_iter(self) -> impl Iterator<Item = (LineKey, LineRow)> {
        self.rows.into_iter()
    }
}

/// Page id and number of 16 bytes in it, which the tracer tells apart.
type GranuleId = (u32, u32);
const GRANULE_LOG2: u32 = 4;

pub struct SharedLines {
    line_log2: u32,
    /// What lies at some of the bytes seen: process, and id of the structure there.
    objects: HashMap<GranuleId, (u32, u32)>,
    uses: HashMap<LineId, Vec<ThreadLineUse>>,
    count: usize,
}

impl SharedLines {
    pub fn new(line: u32) -> SharedLines {
        SharedLines {
            line_log2: line.trailing_zeros().clamp(LINE_PARTS_LOG2, PAGE_BITS),
            objects: HashMap::new(),
            uses: HashMap::new(),
            count: 0,
        }
    }

    /// Takes what the thread in a slot saw since the last call.
    pub fn drain(
        &mut self,
        segment: &Segment,
        (slot, thread): (u32, u32),
        process: u32,
        target: &mut TargetState,
    ) {
        segment.drain_line_observations(slot, |seen| {
            self.add(segment, thread, &seen);
            self.add_object(&seen, |id| target.object_counted_as((process, id), segment));
        });
    }

    fn add_object(&mut self, seen: &wire::LineObservation, name: impl FnOnce(u32) -> ObjectKey) {
        let known = matches!(seen.kind, wire::OBSERVED_LOW | wire::OBSERVED_UPPER) && seen.n != 0;
        if known && self.objects.len() < MAX_USES {
            let granule = u32::from(seen.at) >> GRANULE_LOG2;
            self.objects.insert((seen.page, granule), name(seen.n));
        }
    }

    fn add(&mut self, segment: &Segment, thread: u32, seen: &wire::LineObservation) {
        if seen.page == 0 || seen.page >= segment.next_page() {
            return;
        }
        let at = u32::from(seen.at) % (1 << PAGE_BITS);
        let id = (seen.page, at >> self.line_log2);
        let in_line = i64::from(at) % (1 << self.line_log2);
        let masks = match seen.kind {
            wire::OBSERVED_COUNT => {
                return self.count_accesses(id, thread, seen.n.into());
            }
            wire::OBSERVED_READ => [self.parts_of_range(in_line, seen.n), 0],
            wire::OBSERVED_WRITE => [0, self.parts_of_range(in_line, seen.n)],
            wire::OBSERVED_LOW | wire::OBSERVED_UPPER => {
                let site = segment.site(seen.site);
                let upper = seen.kind == wire::OBSERVED_UPPER;
                let span = if upper { site.span.min(127) } else { 0 };
                let first = in_line - i64::from(span);
                [site.reads, site.writes]
                    .map(|[low, high]| u128::from(high) << 64 | u128::from(low))
                    .map(|bytes| self.parts_of_bytes(first, bytes))
            }
            _ => [0; 2],
        };
        if masks != [0; 2] {
            self.use_entry(id, thread).touch(masks);
        }
    }

    /// Adds to the accesses of a thread to a line that it shares.
    pub fn count_accesses(&mut self, id: LineId, thread: u32, n: u64) {
        let entry = self.use_entry(id, thread);
        entry.accesses = entry.accesses.saturating_add(n);
    }

    /// The same for the line of an address in a page.
    pub fn count_unflushed(&mut self, page: u32, address: u64, thread: u32, n: u64) {
        let in_page = (address % (1 << PAGE_BITS)) as u32;
        self.count_accesses((page, in_page >> self.line_log2), thread, n);
    }

    /// The parts of a line that the bytes `first + n` lie in, for each bit n.
    fn parts_of_bytes(&self, first: i64, mut bytes: u128) -> u64 {
        let mut parts = 0;
        while bytes != 0 {
            let byte = first + i64::from(bytes.trailing_zeros());
            if (0..1 << self.line_log2).contains(&byte) {
                parts |= 1 << (byte >> (self.line_log2 - LINE_PARTS_LOG2));
            }
            bytes &= bytes - 1;
        }
        parts
    }

    fn parts_of_range(&self, first: i64, bytes: u32) -> u64 {
        let size = self.line_log2 - LINE_PARTS_LOG2;
        let end = (first + i64::from(bytes)).min(1 << self.line_log2);
        (first..end).fold(0, |parts, byte| parts | 1 << (byte >> size))
    }

    fn use_entry(&mut self, id: LineId, thread: u32) -> &mut ThreadLineUse {
        if self.count >= MAX_USES {
            self.evict_least_used();
        }
        let uses = self.uses.entry(id).or_default();
        let known = uses.iter().position(|u| u.thread == thread);
        let at = known.unwrap_or_else(|| {
            uses.push(ThreadLineUse::new(thread));
            self.count += 1;
            uses.len() - 1
        });
        &mut uses[at]
    }

    /// Pages have other ids from now on; two may have one.
    pub fn change_pages(&mut self, new_ids: &HashMap<u32, u32>) {
        let moved: Vec<_> = self
            .uses
            .extract_if(|(page, _), _| new_ids.contains_key(page))
            .collect();
        for ((page, line), uses) in moved {
            let known = self.uses.entry((new_ids[&page], line)).or_default();
            for more in uses {
                match known.iter_mut().find(|u| u.thread == more.thread) {
                    Some(same) => {
                        same.add(&more);
                        self.count -= 1;
                    }
                    None => known.push(more),
                }
            }
        }
        let objects: Vec<_> = self
            .objects
            .extract_if(|(page, _), _| new_ids.contains_key(page))
            .collect();
        let objects = objects
            .into_iter()
            .map(|((page, granule), object)| ((new_ids[&page], granule), object));
        self.objects.extend(objects);
    }

    /// Keeps the half of the lines that is used more; of those used alike, as many as fit.
    fn evict_least_used(&mut self) {
        let weight = |uses: &Vec<ThreadLineUse>| {
            let all = uses.iter().map(|u| u.accesses.saturating_add(u.seen));
            all.fold(0u64, u64::saturating_add)
        };
        let mut weights: Vec<u64> = self.uses.values().map(weight).collect();
        let middle = weights.len() / 2;
        let (_, &mut limit, _) = weights.select_nth_unstable(middle);
        let uses = self.uses.values().filter(|u| weight(u) > limit);
        let above: usize = uses.map(Vec::len).sum();
        let mut room = (MAX_USES / 2).saturating_sub(above);
        self.uses.retain(|_, uses| {
            let more = weight(uses) > limit;
            let fits = !more && weight(uses) == limit && uses.len() <= room;
            room -= if fits { uses.len() } else { 0 };
            more || fits
        });
        self.count = self.uses.values().map(Vec::len).sum();
    }

    /// The lines that several threads use, at least one of them writing. `scale` corrects the
    /// accesses of a thread, by its key, for sampling.
    pub fn rows(
        &self,
        pages: &PageReader,
        threads: &ThreadNumbers,
        scale: impl Fn(u32, u64) -> u64,
    ) -> LineRows {
        let mut rows: BTreeMap<LineKey, LineRow> = BTreeMap::new();
        for (&(page, line), uses) in &self.uses {
            let Some(touched) = pages.first_toucher(page) else {
                continue;
            };
            for u in uses {
                let Some(thread) = threads.of_key(u.thread) else {
                    continue;
                };
                let key = (touched.name, line << self.line_log2, thread.0);
                let row = rows.entry(key).or_default();
                let [reads, writes] = u.masks();
                row.seen = row.seen.saturating_add(u.seen);
                row.read_mask |= reads;
                row.write_mask |= writes;
                let accesses = scale(u.thread, u.accesses.max(u.seen));
                row.accesses = row.accesses.saturating_add(accesses);
                row.writes = row.writes.saturating_add(u.writes_among(accesses));
            }
        }
        let mut users: HashMap<(PageName, u32), (u32, bool)> = HashMap::new();
        for (&(page, line, _), row) in &rows {
            let (threads, written) = users.entry((page, line)).or_default();
            *threads += 1;
            *written |= row.write_mask != 0;
        }
        rows.retain(|&(page, line, _), _| {
            let (threads, written) = users[&(page, line)];
            threads >= 2 && written
        });
        let part = 1 << (self.line_log2 - LINE_PARTS_LOG2);
        let line_of = |granule: u32| granule << GRANULE_LOG2 >> self.line_log2 << self.line_log2;
        let objects = self
            .objects
            .iter()
            .filter_map(|(&(page, granule), &(process, id))| {
                let page = pages.first_toucher(page)?.name;
                let line = (page, line_of(granule), 0)..=(page, line_of(granule), u32::MAX);
                let kept = rows.range(line).next().is_some();
                kept.then_some((page, u64::from(granule) << GRANULE_LOG2, process, id))
            });
        let objects = objects.collect();
        LineRows {
            rows,
            objects,
            part,
        }
    }
}
