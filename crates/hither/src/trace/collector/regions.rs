//! All regions of the run, and which of them a page or an address belongs to.
//!
//! A page is named by (region, page number in it). A forked child shares its parent's
//! intervals; a private region becomes the child's own when the child is seen to use it.
use super::address_space::AddressSpaceHistory;
use super::ended_regions::{EndedRegions, MappingKind};
use super::late_modules::LateModules;
use super::memory_budget::{MemoryBudget, LATE_MODULE_BYTES, REGION_BYTES};
use super::region_interval::RegionInterval;
use super::region_origin::{LeftRegion, RegionOrigin};
use super::thread_locals::ThreadLocals;
use hither_profile::{pages_around, ProcessIx, Region, RegionKind, ThreadIx};
use hither_sys::wire;
use std::collections::HashMap;

pub use hither_profile::PAGE_BITS;

/// A region before it is known whether the profile needs it.
#[derive(Clone, Debug)]
pub struct KnownRegion {
    pub region: Region,
    /// Slot of the first process of its process' row.
    pub process: u32,
    /// Memory of its own, not pages of a file.
    pub anonymous: bool,
    /// Heap blocks were handed out from it.
    pub has_blocks: bool,
    /// A stack that threads which started later had as well: the C library keeps those of ended threads.
    pub used_again: bool,
    /// Pages of it that its process has mapped.
    pub mapped: u64,
    pub origin: RegionOrigin,
}

impl KnownRegion {
    /// Whether it is a mapping of nobody's file, for its process alone.
    pub fn is_private_memory(&self) -> bool {
        self.anonymous && self.region.kind == RegionKind::Mmap
    }

    fn kind(&self) -> MappingKind {
        MappingKind {
            process: self.process,
            thread: self.region.thread,
            size: self.region.size,
        }
    }
}

/// A process' brk heap. It grows in steps, of which each is an interval: it is not looked for among these.
#[derive(Clone, Copy)]
pub(super) struct BrkHeap {
    region: u32,
    /// The first page behind it.
    end: u64,
}

#[derive(Default)]
pub struct RegionMap {
    pub all: Vec<KnownRegion>,
    pub spaces: HashMap<u32, AddressSpaceHistory>,
    /// By process: mappings so far of (thread, pages).
    pub(super) ordinals: HashMap<u32, HashMap<(u32, u64), u32>>,
    shared: HashMap<(u64, u64), u32>,
    pub(super) brk: HashMap<u32, BrkHeap>,
    /// By row.
    others: HashMap<u32, u32>,
    /// Rows of the processes, where that is not their slot.
    pub rows: HashMap<u32, u32>,
    /// Regions of processes that have ended.
    pub(super) left: HashMap<LeftRegion, Vec<u32>>,
    /// (row, parent's region) -> its own copy.
    pub(super) inherited: HashMap<(u32, u32), u32>,
    pub(super) thread_locals: ThreadLocals,
    pub late_modules: LateModules,
    pub ended: EndedRegions,
    pub budget: MemoryBudget,
}

/// Until the threads of the run are numbered, its key.
pub fn thread_ix(key: u32) -> Option<ThreadIx> {
    key.checked_sub(1).map(ThreadIx)
}

impl RegionMap {
    fn space(&mut self, process: u32) -> &mut AddressSpaceHistory {
        self.spaces.entry(process).or_default()
    }

    pub(super) fn add(&mut self, process: u32, anonymous: bool, region: Region) -> u32 {
        if let Some(left) = self.take_left_region(process, &region) {
            return left;
        }
        let row = self.row_of(process);
        if region.kind != RegionKind::Other && self.budget.is_spent() {
            self.budget.refused += 1;
            return self.unknown_region(process);
        }
        self.budget.spend(REGION_BYTES + region.file.len() as u64);
        self.all.push(KnownRegion {
            origin: RegionOrigin::of(&region),
            region: Region {
                process: ProcessIx(row.saturating_sub(1)),
                ..region
            },
            process: row,
            anonymous,
            has_blocks: false,
            used_again: false,
            mapped: 0,
        });
        (self.all.len() - 1) as u32
    }

    fn map_interval(&mut self, process: u32, pages: (u64, u64), region: u32, generation: u32) {
        self.place_interval(
            process,
            RegionInterval {
                start: pages.0,
                end: pages.1,
                region,
                offset: 0,
                generation,
            },
        );
    }

    fn place_interval(&mut self, process: u32, interval: RegionInterval) {
        let replaced = self.space(process).map(interval);
        self.note_unmapped(process, &replaced);
        if let Some(known) = self.all.get_mut(interval.region as usize) {
            known.mapped = known.mapped.saturating_add(interval.pages());
        }
    }

    /// These intervals are there no more. A mapping that has gone as a whole can be used again.
    fn note_unmapped(&mut self, process: u32, pieces: &[RegionInterval]) {
        let row = self.row_of(process);
        for piece in pieces {
            let Some(known) = self.all.get_mut(piece.region as usize) else {
                continue;
            };
            let before = known.mapped;
            known.mapped = before.saturating_sub(piece.pages());
            let gone = known.process == row && before > 0 && known.mapped == 0;
            if gone && known.is_private_memory() {
                self.ended.add(known.kind(), piece.region);
            }
        }
    }

    /// A process image appears, with its parent's memory if it was forked.
    pub fn add_process_image(
        &mut self,
        process: u32,
        forked_from: Option<u32>,
        stack: (u64, u64),
        generation: u32,
    ) {
        let inherited = forked_from.and_then(|parent| self.spaces.get(&parent));
        let space = inherited.map_or_else(AddressSpaceHistory::default, |s| s.fork(generation));
        self.spaces.insert(process, space);
        if let Some(&brk) = forked_from.and_then(|parent| self.brk.get(&parent)) {
            self.brk.insert(process, brk);
        }
        if forked_from.is_none() {
            if let Some(heap) = self.brk.get_mut(&process) {
                heap.end = 0;
            }
            self.main_stack(process, stack, generation);
        }
    }

    fn main_stack(&mut self, process: u32, (top, limit): (u64, u64), generation: u32) {
        // The limit is a length (ulimit -s), unlimited, or the lowest address.
        let length = if limit < top && limit >= 1 << 32 {
            top - limit
        } else {
            limit
        };
        let length = length.clamp(1 << 20, 1 << 30).min(top);
        if top == 0 {
            return;
        }
        let (start, end) = pages_around(top - length, length);
        let region = self.add(
            process,
            true,
            Region {
                kind: RegionKind::Stack,
                size: (end - start) << PAGE_BITS,
                address: start << PAGE_BITS,
                ..Region::default()
            },
        );
        self.map_interval(process, (start, end), region, generation);
    }

    /// A program or library was loaded. Pages touched while the loader was still mapping
    /// it belong to it too, so the mappings it replaces are forgotten.
    pub fn add_module(
        &mut self,
        process: u32,
        start: u64,
        end: u64,
        bias: u64,
        file: &str,
        generation: u32,
    ) {
        let pages = pages_around(start, end.saturating_sub(start));
        let replaced = self.space(process).carve(pages.0, pages.1);
        let oldest = replaced
            .iter()
            .map(|i| i.generation)
            .min()
            .unwrap_or(generation);
        let module = Region {
            kind: RegionKind::Elf,
            process: ProcessIx(self.row_of(process).saturating_sub(1)),
            size: end.saturating_sub(start),
            file: file.to_owned(),
            file_offset: start.wrapping_sub(bias),
            address: start,
            ..Region::default()
        };
        // Pages of the loader's first mapping may have been named after it already.
        let first = replaced
            .iter()
            .find(|i| i.start == pages.0 && i.offset == 0);
        let row = self.row_of(process);
        let region = match first.map(|i| &mut self.all[i.region as usize]) {
            Some(known) if known.process == row && known.region.file == file => {
                known.region = module;
                first.map_or(0, |i| i.region)
            }
            _ => self.add(process, false, module),
        };
        for i in replaced.iter().filter(|i| i.region != region) {
            if (self.late_modules).add(process, *i, (region, i.start - pages.0)) {
                self.budget.spend(LATE_MODULE_BYTES);
            }
        }
        self.map_interval(process, pages, region, oldest);
    }

    /// A mapping was made by the thread with this key, or existed when the process started.
    pub fn add_mapping(&mut self, event: &wire::SegmentEvent, thread: u32, path: &str) {
        let process = u32::from(event.process);
        let [address, length, _, _, dev, ino] = event.a;
        if path == "[stack]" || length == 0 {
            return;
        }
        let pages = pages_around(address, length);
        let private = event.aux == wire::MAP_PRIVATE || event.aux == wire::MAP_INITIAL;
        if private && self.is_of_module(process, pages, path) {
            return;
        }
        let region = match event.aux {
            wire::MAP_SHARED_FILE | wire::MAP_SHARED_ANON | wire::MAP_SYSV => {
                self.shared_region(process, dev, ino, path, length)
            }
            _ if path == "[heap]" => {
                return self.set_brk(
                    process,
                    address,
                    address.saturating_add(length),
                    event.generation,
                )
            }
            _ if path.starts_with('[') => self.unknown_region(process),
            _ => self.private_region(event, thread, pages, path),
        };
        self.map_interval(process, pages, region, event.generation);
    }

    /// Is this a mapping of a module's own segments, over its range?
    fn is_of_module(&self, process: u32, pages: (u64, u64), path: &str) -> bool {
        let interval = self.spaces.get(&process).and_then(|s| s.live_at(pages.0));
        interval.is_some_and(|i| {
            let region = &self.all[i.region as usize].region;
            region.kind == RegionKind::Elf
                && pages.1 <= i.end
                && (path.is_empty() || path == region.file)
        })
    }

    fn private_region(
        &mut self,
        event: &wire::SegmentEvent,
        thread: u32,
        pages: (u64, u64),
        path: &str,
    ) -> u32 {
        let process = u32::from(event.process);
        let ordinals = self.ordinals.entry(process).or_default();
        let count = ordinals.entry((thread, pages.1 - pages.0)).or_insert(0);
        let ordinal = *count;
        *count = count.saturating_add(1);
        let anonymous = path.is_empty();
        let kind = MappingKind {
            process: self.row_of(process),
            thread: thread_ix(thread),
            size: (pages.1 - pages.0) << PAGE_BITS,
        };
        if let Some(region) = anonymous.then(|| self.ended.take(kind)).flatten() {
            return region;
        }
        self.add(
            process,
            anonymous,
            Region {
                kind: RegionKind::Mmap,
                thread: kind.thread,
                ordinal,
                size: kind.size,
                file: path.to_owned(),
                address: event.a[0],
                ..Region::default()
            },
        )
    }

    /// The one region of a file or of memory that processes share.
    pub(super) fn shared_region(
        &mut self,
        process: u32,
        dev: u64,
        ino: u64,
        path: &str,
        length: u64,
    ) -> u32 {
        let known = self.shared.get(&(dev, ino)).copied();
        let region = known.unwrap_or_else(|| {
            let kind = RegionKind::Shared;
            let new = self.add(
                process,
                true,
                Region {
                    kind,
                    ..Region::default()
                },
            );
            self.shared.insert((dev, ino), new);
            new
        });
        let entry = &mut self.all[region as usize].region;
        entry.size = entry.size.max(length);
        if entry.file.is_empty() {
            entry.file = path.to_owned();
        }
        region
    }

    /// Where everything goes about which nothing is known: one region per process whose
    /// page numbers are those of the address space, cut off.
    pub(super) fn unknown_region(&mut self, process: u32) -> u32 {
        let row = self.row_of(process);
        if let Some(&known) = self.others.get(&row) {
            return known;
        }
        let kind = RegionKind::Other;
        let new = self.add(
            process,
            false,
            Region {
                kind,
                ..Region::default()
            },
        );
        self.others.insert(row, new);
        new
    }

    pub fn unmap(&mut self, process: u32, address: u64, length: u64) {
        let pages = pages_around(address, length);
        let pieces = self.space(process).unmap(pages.0, pages.1);
        self.note_unmapped(process, &pieces);
    }

    /// mremap: pages keep their region and their place in it.
    pub fn remap(&mut self, process: u32, a: &[u64; 6], generation: u32) {
        let old = pages_around(a[0], a[1]);
        let new = pages_around(a[2], a[3]);
        let pieces = self.space(process).carve(old.0, old.1);
        let replaced = self.space(process).unmap(new.0, new.1);
        self.note_unmapped(process, &replaced);
        let last = pieces.len().saturating_sub(1);
        for (n, piece) in pieces.iter().enumerate() {
            let start = new.0.saturating_add(piece.start - old.0);
            let grown = n == last && piece.end == old.1;
            let end = if grown {
                new.1
            } else {
                start.saturating_add(piece.pages()).min(new.1)
            };
            if start >= end {
                continue;
            }
            self.grow(piece.region, piece.offset.saturating_add(end - start));
            self.place_interval(
                process,
                RegionInterval {
                    start,
                    end,
                    generation,
                    ..*piece
                },
            );
        }
        self.note_unmapped(process, &pieces);
    }

    /// Makes a region at least this many pages long.
    pub(super) fn grow(&mut self, region: u32, pages: u64) {
        if let Some(known) = self.all.get_mut(region as usize) {
            let bytes = pages.saturating_mul(1 << PAGE_BITS);
            known.region.size = known.region.size.max(bytes);
        }
    }

    pub fn set_brk(&mut self, process: u32, start: u64, end: u64, generation: u32) {
        // The page that the heap may share with the program's last variables is theirs.
        let first = start.div_ceil(1 << PAGE_BITS);
        let (_, last) = pages_around(start, end.saturating_sub(start));
        let last = last.max(first);
        let (region, end) = match self.brk.get(&process) {
            Some(&heap) => (self.own_copy(process, heap.region), heap.end.max(first)),
            None => (self.brk_region(process, first), first),
        };
        self.brk.insert(process, BrkHeap { region, end: last });
        self.grow(region, last - first);
        let space = self.space(process);
        if last < end {
            space.unmap(last, end);
        } else if last > end {
            space.map(RegionInterval {
                start: end,
                end: last,
                region,
                offset: end - first,
                generation,
            });
        }
    }

    fn brk_region(&mut self, process: u32, first: u64) -> u32 {
        self.add(
            process,
            true,
            Region {
                kind: RegionKind::Brk,
                address: first << PAGE_BITS,
                ..Region::default()
            },
        )
    }

    pub fn processes(&self) -> impl Iterator<Item = u32> + '_ {
        self.spaces.keys().copied()
    }

    /// What lies where in a process, and the last `gone` of what did.
    pub fn snapshot(&self, process: u32, gone: usize) -> Vec<RegionInterval> {
        let space = self.spaces.get(&process);
        space.map_or_else(Vec::new, |s| s.snapshot(gone))
    }

    pub fn kind(&self, region: u32) -> Option<RegionKind> {
        self.all.get(region as usize).map(|known| known.region.kind)
    }

    pub fn is_shared(&self, region: u32, dev: u64, ino: u64) -> bool {
        self.shared.get(&(dev, ino)) == Some(&region)
    }

    pub(super) fn own_interval(
        &mut self,
        process: u32,
        interval: RegionInterval,
    ) -> RegionInterval {
        RegionInterval {
            region: self.own_copy(process, interval.region),
            ..interval
        }
    }
}
