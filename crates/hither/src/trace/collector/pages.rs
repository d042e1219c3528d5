//! The page pass: which thread read and wrote which page since the last pass.
use super::address_space::PageName;
use super::deadline::Deadline;
use super::events::TargetState;
use super::regions::RegionMap;
use super::thread_rows::{ThreadNumbers, ThreadRows};
use hither_profile::binned::{sort_and_sum, CountRow};
use hither_sys::{wire, Segment};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Of a page id and the key of a thread.
pub fn page_thread_key(page: u32, thread: u32) -> u64 {
    u64::from(page) << 32 | u64::from(thread)
}

/// The (page id, key of the thread) of a key.
pub fn page_and_thread(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

/// The thread that touched a page first, and when, from its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstToucher {
    pub name: PageName,
    /// Its serial, and its number in the profile, from 1, after [`PageReader::number_threads`].
    pub thread: u32,
    pub epoch: u32,
    /// Code site of the first touch.
    pub site: u32,
    /// Number of the calls that led there; 0 where they are not known.
    pub path: u32,
}

/// By page id, in groups: the target gives out its ids as it likes.
#[derive(Default)]
struct PageNames(Vec<Option<Box<NamedGroup>>>);

type NamedGroup = [Option<FirstToucher>; wire::BLOCK_PAGES as usize];

impl PageNames {
    fn place(page: u32) -> (usize, usize) {
        let group = page / wire::BLOCK_PAGES;
        (group as usize, (page % wire::BLOCK_PAGES) as usize)
    }

    fn get(&self, page: u32) -> Option<FirstToucher> {
        let (group, at) = Self::place(page);
        self.0.get(group)?.as_ref()?[at]
    }

    fn take(&mut self, page: u32) -> Option<FirstToucher> {
        let (group, at) = Self::place(page);
        self.0.get_mut(group)?.as_mut()?[at].take()
    }

    fn insert(&mut self, page: u32, first_toucher: FirstToucher) {
        let (group, at) = Self::place(page);
        if group >= self.0.len() {
            self.0.resize_with(group + 1, || None);
        }
        let none = || Box::new([None; wire::BLOCK_PAGES as usize]);
        self.0[group].get_or_insert_with(none)[at] = Some(first_toucher);
    }

    /// All of them, which are none any more. Their memory goes as they come.
    fn drain(&mut self) -> impl Iterator<Item = FirstToucher> {
        let groups = std::mem::take(&mut self.0).into_iter().flatten();
        groups.flat_map(|group| group.into_iter().flatten())
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut FirstToucher> {
        let groups = self.0.iter_mut().flatten();
        groups.flat_map(|group| group.iter_mut().flatten())
    }
}

#[derive(Default)]
pub struct PageReader {
    /// What was read last, by block ordinal.
    seen: Vec<Option<Box<wire::PageCountBlock>>>,
    /// Whether a block was read and is in use.
    known: Vec<bool>,
    /// The blocks of each thread slot.
    of_slot: Vec<Vec<u32>>,
    names: PageNames,
    /// Pages that have ended and whose ids were used again; their ids from then on, above those of
    /// the target, and by name.
    ended: Vec<FirstToucher>,
    ended_ids: HashMap<PageName, u32>,
    pub named: u64,
    /// Pages with counts that have no name yet.
    unnamed: Vec<u32>,
    /// Reads and writes by the key of the thread.
    pub totals: Vec<[u64; 2]>,
    pub accesses: u64,
}

impl PageReader {
    /// Reads all blocks, flagged or not, when the target has stopped. A thread sets a
    /// flag only if it finds it clear, so its last change may race with our clearing it.
    pub fn read_all_blocks(
        &mut self,
        segment: &Segment,
        target: &mut TargetState,
        deadline: &Deadline,
    ) -> Vec<CountRow<3>> {
        let mut rows = Vec::new();
        for number in (1..segment.next_block()).take_while(|_| !deadline.passed()) {
            self.read_block(segment, number, &mut target.threads, &mut rows);
        }
        self.add_rows(segment, &mut target.regions, rows)
    }

    /// Reads the blocks of slots whose threads have ended, flagged or not; those that changed must have
    /// been read before.
    pub fn read_blocks_of(
        &mut self,
        segment: &Segment,
        target: &mut TargetState,
        slots: &[u32],
    ) -> Vec<CountRow<3>> {
        let mut rows = Vec::new();
        for &slot in slots {
            let blocks = self.of_slot.get(slot as usize).cloned();
            for number in blocks.unwrap_or_default() {
                self.read_block(segment, number, &mut target.threads, &mut rows);
            }
        }
        self.add_rows(segment, &mut target.regions, rows)
    }

    /// Forgets the blocks of a slot whose thread has ended and whose counts have been read, and returns them.
    pub fn take_blocks_of(&mut self, slot: u32) -> Vec<u32> {
        let blocks = self.of_slot.get_mut(slot as usize).map(std::mem::take);
        let blocks = blocks.unwrap_or_default();
        for &number in &blocks {
            self.seen[number as usize] = None;
            self.known[number as usize] = false;
        }
        blocks
    }

    /// Reads every block that changed. Rows are by [`page_thread_key`].
    pub fn read_changed_blocks(
        &mut self,
        segment: &Segment,
        target: &mut TargetState,
    ) -> Vec<CountRow<3>> {
        let rows = self.read_changed_rows(segment, &mut target.threads);
        self.add_rows(segment, &mut target.regions, rows)
    }

    fn read_changed_rows(
        &mut self,
        segment: &Segment,
        threads: &mut ThreadRows,
    ) -> Vec<CountRow<3>> {
        let mut rows = Vec::new();
        let blocks = segment.next_block();
        for first in (0..blocks).step_by(8) {
            let dirty = segment.dirty_word(first);
            if dirty == 0 {
                continue;
            }
            for n in (0..8).filter(|n| dirty >> (n * 8) & 0xff != 0) {
                segment.clear_dirty(first + n);
                self.read_block(segment, first + n, threads, &mut rows);
            }
        }
        rows
    }

    /// Reads all blocks with counts of some groups of page ids, as well as those that changed.
    pub fn read_groups(
        &mut self,
        segment: &Segment,
        target: &mut TargetState,
        groups: &HashSet<u32>,
    ) -> Vec<CountRow<3>> {
        let mut rows = Vec::new();
        for number in 1..segment.next_block() {
            if groups.contains(&segment.owner(number).page_block) {
                self.read_block(segment, number, &mut target.threads, &mut rows);
            }
        }
        rows.extend(self.read_changed_rows(segment, &mut target.threads));
        self.add_rows(segment, &mut target.regions, rows)
    }

    /// Of these groups, those in which a page has no name yet.
    pub fn unnamed_groups(&self) -> HashSet<u32> {
        self.unnamed.iter().map(|p| p / wire::BLOCK_PAGES).collect()
    }

    /// The pages of these ids have ended: what they counted is kept by other ids, which are returned.
    /// What had one name has one such id.
    pub fn end_pages(&mut self, ids: impl Iterator<Item = u32>) -> HashMap<u32, u32> {
        let mut kept = HashMap::new();
        for id in ids {
            let Some(page) = self.names.take(id) else {
                continue;
            };
            let new = wire::MAX_PAGES + self.ended.len() as u32;
            let ended = *self.ended_ids.entry(page.name).or_insert(new);
            match self.ended.get_mut((ended - wire::MAX_PAGES) as usize) {
                Some(before) => {
                    self.named -= 1;
                    if (page.epoch, page.thread) < (before.epoch, before.thread) {
                        *before = page;
                    }
                }
                None => self.ended.push(page),
            }
            kept.insert(id, ended);
        }
        kept
    }

    fn read_block(
        &mut self,
        segment: &Segment,
        number: u32,
        threads: &mut ThreadRows,
        rows: &mut Vec<CountRow<3>>,
    ) {
        let owner = segment.owner(number);
        let known = owner.thread > 0 && owner.thread < segment.next_thread();
        if !known || owner.page_block > (segment.next_page().saturating_sub(1)) / wire::BLOCK_PAGES
        {
            return;
        }
        let at = number as usize;
        let is_new = !self.known.get(at).is_some_and(|&known| known);
        // Owners are small and counts large: forged ones would have us fill memory with zeros.
        if is_new && !segment.is_block_written(number) {
            return;
        }
        if at >= self.seen.len() {
            self.seen.resize_with(at + 1, || None);
            self.known.resize(at + 1, false);
        }
        let now = segment.block(number);
        if is_new {
            self.known[at] = true;
            let slot = owner.thread as usize;
            if self.of_slot.len() <= slot {
                self.of_slot.resize_with(slot + 1, Vec::new);
            }
            self.of_slot[slot].push(number);
        }
        let before = self.seen[at].get_or_insert_with(|| {
            Box::new(wire::PageCountBlock {
                page: [wire::AccessCount::default(); wire::BLOCK_PAGES as usize],
                fetches: [0; wire::BLOCK_PAGES as usize],
            })
        });
        let first = owner.page_block * wire::BLOCK_PAGES;
        let thread = threads.key(segment, owner.thread);
        for at in 0..now.page.len() {
            let (to, from) = (now.page[at], before.page[at]);
            let reads = to.reads.saturating_sub(from.reads);
            let writes = to.writes.saturating_sub(from.writes);
            // Counts wrap, and cannot grow by 2^32 between two passes.
            let fetches = now.fetches[at].wrapping_sub(before.fetches[at]).into();
            if reads | writes | fetches != 0 {
                let key = page_thread_key(first + at as u32, thread);
                rows.push((key, [reads, writes, fetches]));
            }
        }
        **before = now;
    }

    /// Counts that the target did not live to add to a block.
    pub fn add_unflushed(
        &mut self,
        segment: &Segment,
        page: u32,
        thread: u32,
        counts: [u64; 3],
        rows: &mut Vec<CountRow<3>>,
    ) {
        if page > 0 && page < segment.next_page() && counts != [0; 3] {
            rows.push((page_thread_key(page, thread), counts));
        }
    }

    /// Sums rows up, adds them to the totals of threads and names their pages.
    pub fn add_rows(
        &mut self,
        segment: &Segment,
        regions: &mut RegionMap,
        mut rows: Vec<CountRow<3>>,
    ) -> Vec<CountRow<3>> {
        sort_and_sum(&mut rows);
        let mut pages = std::mem::take(&mut self.unnamed);
        for &(key, [reads, writes, _]) in &rows {
            let (page, thread) = page_and_thread(key);
            let thread = thread as usize;
            if thread >= self.totals.len() {
                self.totals.resize(thread + 1, [0; 2]);
            }
            let total = &mut self.totals[thread];
            total[0] = total[0].saturating_add(reads);
            total[1] = total[1].saturating_add(writes);
            self.accesses = self.accesses.saturating_add(reads).saturating_add(writes);
            if self.first_toucher(page).is_none() {
                pages.push(page);
            }
        }
        pages.sort_unstable();
        pages.dedup();
        pages.retain(|&page| {
            let record = segment.page(page);
            let space = regions.spaces.get(&record.process);
            let reported = space.is_some_and(|s| record.generation <= s.reported);
            !(reported && self.identify(segment, regions, page, &record))
        });
        self.unnamed = pages;
        rows
    }

    fn identify(
        &mut self,
        segment: &Segment,
        regions: &mut RegionMap,
        page: u32,
        record: &wire::SegmentPage,
    ) -> bool {
        let name = (record.first_thread != 0)
            .then(|| regions.name_page(segment, record))
            .flatten();
        if let Some(name) = name {
            self.remember(page, record, name);
        }
        name.is_some()
    }

    fn remember(&mut self, page: u32, record: &wire::SegmentPage, name: PageName) {
        self.named += 1;
        let first_toucher = FirstToucher {
            name,
            thread: record.first_thread,
            epoch: record.first_epoch,
            site: record.first_site,
            path: record.first_path,
        };
        self.names.insert(page, first_toucher);
    }

    /// What is known of a page id.
    pub fn first_toucher(&self, page: u32) -> Option<FirstToucher> {
        match page.checked_sub(wire::MAX_PAGES) {
            Some(ended) => self.ended.get(ended as usize).copied(),
            None => self.names.get(page),
        }
    }

    /// At the end: forgets what was read last, a copy of all counts.
    pub fn forget_blocks(&mut self) {
        self.seen = Vec::new();
    }

    /// Processes have ended, and all that they reported was read: their pages whose mapping was never reported. Others
    /// could not have the ids of these pages before.
    pub fn name_rest_of(
        &mut self,
        segment: &Segment,
        regions: &mut RegionMap,
        processes: &BTreeSet<u32>,
    ) {
        let unnamed = std::mem::take(&mut self.unnamed);
        let is_of_these = |&page: &u32| processes.contains(&segment.page(page).process);
        let (rest, others) = unnamed.into_iter().partition(is_of_these);
        self.unnamed = rest;
        self.name_the_unnamed(segment, regions, &Deadline::default());
        self.unnamed = others;
    }

    fn name_the_unnamed(
        &mut self,
        segment: &Segment,
        regions: &mut RegionMap,
        deadline: &Deadline,
    ) {
        for page in std::mem::take(&mut self.unnamed) {
            if deadline.passed() {
                break;
            }
            let record = segment.page(page);
            if !self.identify(segment, regions, page, &record) {
                let name = regions.name_unknown_page(&record);
                self.remember(page, &record, name);
            }
        }
    }

    /// At the end: pages whose mapping was never reported.
    pub fn name_the_rest(
        &mut self,
        segment: &Segment,
        regions: &mut RegionMap,
        deadline: &Deadline,
    ) {
        self.name_the_unnamed(segment, regions, deadline);
        let named = self.names.iter_mut().chain(&mut self.ended);
        for touched in named.take_while(|_| !deadline.passed()) {
            touched.name = regions.late_modules.resolve_page(touched.name);
        }
    }

    /// The threads of the run have their numbers now: the first touchers are known by them, from 1.
    pub fn number_threads(&mut self, numbers: &ThreadNumbers) {
        let ended = self.ended.iter_mut();
        for touched in self.names.iter_mut().chain(ended) {
            touched.thread = numbers.of_serial(touched.thread).map_or(0, |ix| ix.0 + 1);
        }
    }

    /// All pages that have a name, by it; ids have none any more.
    pub fn take_first_touchers(&mut self) -> Vec<FirstToucher> {
        let mut all = Vec::with_capacity(self.named as usize);
        all.extend(self.names.drain());
        all.append(&mut self.ended);
        all.sort_unstable_by_key(|touched| touched.name);
        all
    }
}
