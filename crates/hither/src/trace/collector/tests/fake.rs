//! What the tracer does to the segment, done by hand.
use super::super::engine::CollectorEngine;
use super::super::{profile_rows, CollectedRun, Collector, CollectorConfig};
use crate::program::clock::monotonic_ns;
use crate::program::clock::stopped::StoppedClock;
use crate::trace::symbolizer::Symbolizer;
use hither_profile::{Profile, RunEnd, TraceOptions};
use hither_sys::wire::{self, SegmentHeader, SegmentProcess, SegmentThread, SideRecord};
use std::mem::offset_of;
use std::sync::Arc;

mod sites;

pub const MIB: u64 = 1 << 20;
const CACHE_LOG2: u32 = 8;
const PAGE_RECORD: u64 = size_of::<wire::SegmentPage>() as u64;

pub struct Fake {
    pub engine: CollectorEngine,
    pub clock: StoppedClock,
    generation: u32,
    samples: u64,
    /// Shared objects with pages; a chunk each.
    shared: Vec<u64>,
}

impl Fake {
    pub fn new(adjust: impl FnOnce(&mut TraceOptions)) -> Fake {
        let mut config = CollectorConfig::default();
        adjust(&mut config.options);
        let collector = Collector::with_cache(config, CACHE_LOG2).unwrap();
        Fake {
            clock: StoppedClock::new(),
            engine: CollectorEngine::new(Arc::clone(&collector.segment), collector.config),
            generation: 1,
            samples: 0,
            shared: Vec::new(),
        }
    }

    /// A process with its first thread, both of number 1.
    pub fn with_thread() -> Fake {
        let mut fake = Fake::new(|_| {});
        fake.process(1, 0);
        fake.thread(1, 1, 0);
        fake
    }

    pub fn finish(self, naming: &mut dyn Symbolizer) -> Profile {
        self.collected(naming).profile
    }

    pub fn collected(mut self, naming: &mut dyn Symbolizer) -> CollectedRun {
        self.engine.finish();
        profile_rows::build_profile(self.engine, RunEnd::Exited { status: 0 }, naming)
    }

    pub fn put32(&self, at: u64, value: u32) {
        self.engine.segment.store_u32(at, value);
    }

    pub fn put64(&self, at: u64, value: u64) {
        self.engine.segment.store_u64(at, value);
    }

    fn at_least(&self, counter: usize, value: u32) {
        let old = self.engine.segment.load_u32(counter as u64);
        self.put32(counter as u64, old.max(value));
    }

    /// Appends to the ring without marking it ready; returns its place.
    pub fn reserve_event(&mut self) -> u64 {
        let head_at = offset_of!(SegmentHeader, event_head) as u64;
        let head = self.engine.segment.load_u64(head_at);
        self.put64(head_at, head + 1);
        self.engine.segment.layout().events + head % u64::from(wire::EVENTS) * 64
    }

    fn event(&mut self, kind: u8, process: u16, thread: u16, aux: u16, a: [u64; 6], text: &str) {
        let slots = text.len().div_ceil(64);
        let at = self.reserve_event();
        for n in 0..slots {
            let at = self.reserve_event();
            let mut bytes = [0u8; 64];
            let part = &text.as_bytes()[n * 64..text.len().min(n * 64 + 64)];
            bytes[..part.len()].copy_from_slice(part);
            for (word, eight) in bytes.chunks(8).enumerate() {
                self.put64(
                    at + word as u64 * 8,
                    u64::from_le_bytes(eight.try_into().unwrap()),
                );
            }
        }
        for (n, value) in a.into_iter().enumerate() {
            self.put64(at + 16 + n as u64 * 8, value);
        }
        self.put32(
            at + 4,
            u32::from(kind) | (slots as u32) << 8 | u32::from(process) << 16,
        );
        self.put32(at + 8, u32::from(thread) | u32::from(aux) << 16);
        self.put32(at + 12, self.generation);
        self.put32(at, wire::READY);
    }

    /// A process, forked from its parent if it has one.
    pub fn process(&mut self, slot: u16, parent: u16) {
        self.process_image(slot, parent, parent > 0);
    }

    /// A command that a child of another process executes.
    pub fn execute(&mut self, slot: u16, parent: u16) {
        self.process_image(slot, parent, false);
    }

    fn process_image(&mut self, slot: u16, parent: u16, forked: bool) {
        let at = self.engine.segment.layout().processes + u64::from(slot) * 64;
        self.put32(
            at + offset_of!(SegmentProcess, parent) as u64,
            parent.into(),
        );
        self.put64(
            at + offset_of!(SegmentProcess, start_ns) as u64,
            monotonic_ns(),
        );
        self.put32(at, wire::PROCESS_LIVE);
        self.set_pid(slot, std::process::id() as i32);
        self.at_least(offset_of!(SegmentHeader, next_process), u32::from(slot) + 1);
        let a = [
            1,
            parent.into(),
            forked.into(),
            0x7fff_0000_0000,
            8 * MIB,
            0,
        ];
        self.event(wire::EV_PROCESS, slot, 0, 0, a, "/bin/app");
    }

    /// A forked child knows its parent's objects below an id.
    pub fn inherit_objects(&mut self, slot: u16, below: u32) {
        let at = self.engine.segment.layout().processes + u64::from(slot) * 64;
        let field = offset_of!(SegmentProcess, inherited_objects) as u64;
        self.put32(at + field, below);
    }

    pub fn set_pid(&mut self, slot: u16, pid: i32) {
        let at = self.engine.segment.layout().processes + u64::from(slot) * 64;
        self.put32(at + 4, pid as u32);
    }

    pub fn exit_process(&mut self, slot: u16) {
        let at = self.engine.segment.layout().processes + u64::from(slot) * 64;
        self.put64(
            at + offset_of!(SegmentProcess, end_ns) as u64,
            monotonic_ns(),
        );
        self.put32(at, wire::PROCESS_EXITED);
    }

    pub fn thread_at(&self, slot: u32) -> u64 {
        self.engine.segment.layout().threads + u64::from(slot) * size_of::<SegmentThread>() as u64
    }

    pub fn thread(&mut self, slot: u32, process: u32, creator: u32) {
        let at = self.thread_at(slot);
        self.put32(at + 4, process);
        self.put32(at + 8, creator);
        self.put32(at + offset_of!(SegmentThread, serial) as u64, slot);
        self.put64(
            at + offset_of!(SegmentThread, start_ns) as u64,
            monotonic_ns(),
        );
        self.put64(
            at + offset_of!(SegmentThread, stack_pointer) as u64,
            0x7ffe_ffff_fff0,
        );
        self.put64(at + offset_of!(SegmentThread, sync) as u64, u64::from(slot));
        let name = format!("thread {slot}");
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        let [low, high] = [0, 8].map(|n| u64::from_le_bytes(bytes[n..n + 8].try_into().unwrap()));
        self.put64(at + offset_of!(SegmentThread, name) as u64, low);
        self.put64(at + offset_of!(SegmentThread, name) as u64 + 8, high);
        self.put32(at + offset_of!(SegmentThread, arena) as u64, u32::MAX);
        self.at_least(offset_of!(SegmentHeader, next_thread), slot + 1);
        let free = offset_of!(SegmentHeader, given_back) as u64 + u64::from(slot / 64) * 8;
        self.engine.segment.clear_bits(free, 1 << (slot % 64));
        self.put32(at, wire::THREAD_LIVE);
    }

    /// The thread has come as the so manyth of the run, and is in the slice that runs.
    pub fn with_serial(&mut self, slot: u32, serial: u32) {
        let at = self.thread_at(slot);
        self.put32(at + offset_of!(SegmentThread, serial) as u64, serial);
        self.at_least(offset_of!(SegmentHeader, next_serial), serial + 1);
        self.enter_slice(slot);
    }

    /// The thread moves on to the slice that runs.
    pub fn enter_slice(&mut self, slot: u32) {
        let at = self.thread_at(slot) + offset_of!(SegmentThread, epoch) as u64;
        self.put32(at, self.engine.epoch());
    }

    pub fn end_thread(&mut self, slot: u32) {
        let at = self.thread_at(slot);
        self.put64(
            at + offset_of!(SegmentThread, end_ns) as u64,
            monotonic_ns(),
        );
        self.put32(at, wire::THREAD_ENDED);
    }

    /// Accesses by their instructions, all and in traced slices.
    pub fn executed(&mut self, slot: u32, all: u64, traced: u64) {
        let at = self.thread_at(slot);
        let counted = offset_of!(SegmentThread, traced_accesses) as u64;
        self.put64(at + counted, traced);
        let untraced = offset_of!(SegmentThread, untraced_accesses) as u64;
        self.put64(at + untraced, all - traced);
    }

    pub fn map(&mut self, process: u16, thread: u16, address: u64, length: u64) {
        self.event(
            wire::EV_MAP,
            process,
            thread,
            wire::MAP_PRIVATE,
            [address, length, 3, 0x22, 0, 0],
            "",
        );
    }

    /// What comes next is of the next generation of the address space.
    pub fn next_generation(&mut self) {
        self.generation += 1;
    }

    pub fn brk(&mut self, process: u16, thread: u16, start: u64, end: u64) {
        let places = [start, end, 0, 0, 0, 0];
        self.event(wire::EV_BRK, process, thread, 0, places, "");
    }

    pub fn unmap(&mut self, process: u16, thread: u16, address: u64, length: u64) {
        let a = [address, length, 0, 0, 0, 0];
        self.event(wire::EV_UNMAP, process, thread, 0, a, "");
    }

    pub fn shared_map(&mut self, process: u16, thread: u16, address: u64, ino: u64) {
        let a = [address, MIB, 3, 1, 7, ino];
        self.event(
            wire::EV_MAP,
            process,
            thread,
            wire::MAP_SHARED_FILE,
            a,
            &format!("/dev/shm/{}", "x".repeat(70)),
        );
    }

    pub fn module(&mut self, process: u16, start: u64, end: u64, path: &str) {
        self.moved_module(process, (start, end), 0, path);
    }

    /// A module that lies so many bytes above the addresses in its file.
    pub fn moved_module(&mut self, process: u16, (start, end): (u64, u64), by: u64, path: &str) {
        let a = [start, end, 1, 2, by, 0];
        self.event(wire::EV_MODULE, process, 0, 0, a, path);
    }

    /// An object of the object map, whose id is its record's number.
    pub fn object(&mut self, record: u32, kind: u32, process: u32, address: u64, size: u64) {
        let at = self.object_at(record);
        self.put32(at + 4, process);
        self.put32(at + 8, record);
        self.put32(at + 12, self.generation);
        self.put64(at + 16, address);
        self.put64(at + 24, size);
        self.at_least(offset_of!(SegmentHeader, next_object), record + 1);
        self.put32(at, kind);
    }

    fn object_at(&self, record: u32) -> u64 {
        let size = size_of::<wire::TargetObject>() as u64;
        self.engine.segment.layout().objects + u64::from(record) * size
    }

    fn allocated_by(&mut self, record: u32, caller: u64) -> u64 {
        let at = self.object_at(record);
        self.put64(at + offset_of!(wire::TargetObject, frames) as u64, caller);
        self.put32(at + offset_of!(wire::TargetObject, thread) as u64, 1);
        at
    }

    /// A large block of the allocation site `record`, which `caller` allocated.
    pub fn allocation(&mut self, record: u32, process: u16, address: u64, size: u64, caller: u64) {
        self.object(record, wire::OBJECT_SITE, process.into(), 0, 0);
        let at = self.allocated_by(record, caller);
        for (field, value) in [
            (offset_of!(wire::TargetObject, blocks), 1),
            (offset_of!(wire::TargetObject, bytes), size),
            (offset_of!(wire::TargetObject, granules), size / 16),
            (offset_of!(wire::TargetObject, peak), size / 16),
        ] {
            self.put64(at + field as u64, value);
        }
        let a = [address, size, record.into(), 0, 0, 0];
        self.event(wire::EV_ALLOC, process, 1, 1, a, "");
    }

    /// Memory without a name that processes share, mapped by the call at `caller`, whose record is `record`.
    pub fn shared_anonymous(
        &mut self,
        record: u32,
        process: u16,
        (address, ino): (u64, u64),
        caller: u64,
    ) {
        let a = [address, MIB, 3, 0x21, 7, ino];
        self.event(wire::EV_MAP, process, 1, wire::MAP_SHARED_ANON, a, "");
        self.object(record, wire::OBJECT_MAPPING, process.into(), 0, 0);
        self.allocated_by(record, caller);
        let a = [address, MIB, record.into(), 0, 0, 0];
        self.event(wire::EV_ALLOC, process, 1, 0, a, "");
    }

    /// An allocation site of process 1 with small blocks, which are not reported, under an id of its own.
    pub fn small_blocks(&mut self, record: u32, id: u32, address: u64, caller: u64) {
        self.object(record, wire::OBJECT_SITE, 1, 0, 0);
        self.event(wire::EV_BLOCKS, 1, 1, 0, [address, 0, 0, 0, 0, 0], "");
        let at = self.allocated_by(record, caller);
        self.put32(at + offset_of!(wire::TargetObject, id) as u64, id);
    }

    /// Sets what a thread did to an object.
    pub fn object_count(&mut self, thread: u32, id: u32, [reads, writes]: [u64; 2]) {
        let l = *self.engine.segment.layout();
        let row = u64::from(thread) * u64::from(wire::PROCESS_OBJECTS) + u64::from(id);
        let at = l.object_counts + row * size_of::<wire::ObjectCount>() as u64;
        self.put64(at, reads);
        self.put64(at + 8, writes);
        let words = u64::from(wire::PROCESS_OBJECTS / wire::OBJECT_GROUP / 64);
        let used = l.object_used + u64::from(thread) * words * 8;
        let bit = 1 << (id / wire::OBJECT_GROUP);
        self.put64(used, self.engine.segment.load_u64(used) | bit);
    }

    pub fn page(&mut self, id: u32, address: u64, process: u32, first_thread: u32) {
        let at = self.engine.segment.layout().pages + u64::from(id) * PAGE_RECORD;
        self.put64(at, address >> 12);
        self.put32(at + 8, process);
        self.put32(at + 12, self.generation);
        self.put32(at + 20, 1);
        self.put32(at + 16, first_thread);
        self.at_least(
            offset_of!(SegmentHeader, next_page),
            (id + 1).next_multiple_of(64),
        );
    }

    pub fn shared_page(
        &mut self,
        id: u32,
        address: u64,
        process: u32,
        first_thread: u32,
        ino: u64,
        page: u64,
    ) {
        if !self.shared.contains(&ino) {
            self.shared.push(ino);
        }
        let before = self.shared.iter().take_while(|&&known| known != ino);
        let number = 3 + before.count() as u64;
        let chunk = self.engine.segment.layout().chunks + number * 32;
        self.put64(chunk + 8, 7);
        self.put64(chunk + 16, ino);
        self.put32(chunk, 2);
        self.page(id, address, process, first_thread);
        let at = self.engine.segment.layout().pages + u64::from(id) * PAGE_RECORD;
        self.put64(at + 24, 1 + number * u64::from(wire::CHUNK_PAGES) + page);
    }

    /// Sets the counts of a page in a thread's block.
    pub fn count(&mut self, block: u32, thread: u32, page: u32, reads: u64, writes: u64) {
        let l = *self.engine.segment.layout();
        let owner = l.owners + u64::from(block) * 8;
        self.put32(owner, thread);
        self.put32(owner + 4, page / 64);
        let at = l.blocks
            + u64::from(block) * size_of::<wire::PageCountBlock>() as u64
            + u64::from(page % 64) * 16;
        self.put64(at, reads);
        self.put64(at + 8, writes);
        self.at_least(offset_of!(SegmentHeader, next_block), block + 1);
        self.engine.segment.swap_u8(l.dirty + u64::from(block), 1);
    }

    /// Adds to a communication row.
    pub fn credit(&mut self, thread: u32, other: u32, parity: u32, events: u64) {
        let row = u64::from(thread * 2 + parity) * u64::from(wire::MAX_THREADS);
        let at = self.engine.segment.layout().comm + (row + u64::from(other)) * 16;
        self.put64(at, self.engine.segment.load_u64(at) + events);
        let dirty = self.thread_at(thread)
            + offset_of!(SegmentThread, comm_dirty) as u64
            + u64::from(parity) * 8;
        self.put64(
            dirty,
            self.engine.segment.load_u64(dirty) | 1 << (other / 64 % 64),
        );
    }

    /// The lists of a thread, and an entry of its line cache with its side record.
    fn entry_at(&self, slot: u32, index: u64) -> (u64, u64, u64) {
        let l = self.engine.segment.layout();
        let arena = l.arenas + u64::from(slot) * l.arena_size;
        let side = 2 * l.cache_entries * 16 + index * size_of::<SideRecord>() as u64;
        (arena + l.lists, arena + index * 16, arena + side)
    }

    /// Leaves an entry in a thread's line cache, which `others` had used before.
    pub fn entry(
        &mut self,
        slot: u32,
        index: u64,
        page: u32,
        (reads, writes): (u32, u32),
        others: &[u32],
    ) {
        let thread = self.thread_at(slot);
        self.put32(thread + offset_of!(SegmentThread, arena) as u64, slot);
        self.put32(thread + offset_of!(SegmentThread, owns_arena) as u64, 1);
        self.put64(thread + offset_of!(SegmentThread, used) as u64, 1);
        let (lists, entry, side) = self.entry_at(slot, index);
        self.put64(entry, 0x7f00_0000_0040);
        self.put32(entry + 8, reads);
        self.put32(entry + 12, writes);
        self.put32(side, page);
        let list = wire::OTHERS + 1;
        match *others {
            [] => (),
            [one] => self.put32(side + 8, one),
            [one, two] => {
                self.put32(side + 8, list);
                self.put32(lists + 4, 2 | one << 16);
                self.put32(lists + 8, two);
            }
            _ => panic!("a list of more than two is not made here"),
        }
    }

    /// Tells what a thread saw of a line.
    pub fn seen(&mut self, thread: u32, seen: wire::LineObservation) {
        let head_at = self.thread_at(thread) + offset_of!(SegmentThread, observation_head) as u64;
        let head = self.engine.segment.load_u32(head_at);
        let size = size_of::<wire::LineObservation>() as u64;
        let ring = u64::from(thread) * u64::from(wire::OBSERVATIONS)
            + u64::from(head % wire::OBSERVATIONS);
        let at = self.engine.segment.layout().seen + ring * size;
        self.put32(at, seen.page);
        self.put32(at + 4, seen.site);
        self.put32(at + 8, u32::from(seen.at) | u32::from(seen.kind) << 16);
        self.put32(at + 12, seen.n);
        self.put32(head_at, head.wrapping_add(1));
    }
}
