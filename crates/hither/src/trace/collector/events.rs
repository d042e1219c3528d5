//! The event ring -> regions, heap and processes, in the order things happened.
use super::deadline::Deadline;
use super::heap::{self, HeapTracker};
use super::object_rows::{ObjectKey, ObjectRows};
use super::regions::RegionMap;
use super::thread_rows::ThreadRows;
use crate::program::mpi;
use hither_sys::{wire, EventRecord, Segment};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// A record reserved but not completed for this long was left by a thread that died.
const BROKEN_EVENT_TIMEOUT: Duration = Duration::from_millis(500);
/// More than there are HI_LOST_*.
const LOST_KINDS: u64 = 64;
/// What is kept of these takes memory.
const CHANGES_OF_MEMORY: [u8; 8] = [
    wire::EV_PROCESS,
    wire::EV_MODULE,
    wire::EV_MAP,
    wire::EV_UNMAP,
    wire::EV_REMAP,
    wire::EV_BRK,
    wire::EV_ALLOC,
    wire::EV_BLOCKS,
];

#[derive(Default)]
pub struct TargetState {
    pub regions: RegionMap,
    pub heap: HeapTracker,
    pub objects: ObjectRows,
    pub threads: ThreadRows,
    /// MPI ranks on this host by process slot, of those that have one.
    pub ranks: HashMap<u32, u32>,
    /// Kinds of things that the target says it could not trace, HI_LOST_*.
    pub lost: BTreeSet<u64>,
    pub broken_events: u64,
    /// The last process image of each pid.
    images: HashMap<i32, u32>,
    waiting_since: Option<Instant>,
}

impl TargetState {
    /// Takes all complete events, at most one ring's worth.
    pub fn drain(&mut self, segment: &Segment, deadline: &Deadline) {
        for _ in 0..wire::EVENTS {
            if deadline.passed() {
                return;
            }
            let Some(record) = segment.take_event() else {
                break;
            };
            self.waiting_since = None;
            self.apply_event(&record, segment);
        }
        if segment.events_waiting() == 0 {
            self.waiting_since = None;
            return;
        }
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        if since.elapsed() > BROKEN_EVENT_TIMEOUT {
            segment.skip_broken_event();
            self.broken_events += 1;
            self.waiting_since = None;
        }
    }

    /// The last drain: an incomplete record will not be completed any more.
    pub fn drain_final(&mut self, segment: &Segment, deadline: &Deadline) {
        self.drain(segment, deadline);
        for _ in 0..wire::EVENTS {
            if segment.events_waiting() == 0 || deadline.passed() {
                break;
            }
            segment.skip_broken_event();
            self.broken_events += 1;
            self.drain(segment, deadline);
        }
    }

    /// Whether a thread that was to leave its process by an exec, a child of vfork, has done so.
    pub fn has_become_image(&self, segment: &Segment, thread: &wire::SegmentThread) -> bool {
        let image = self.images.get(&thread.tid).copied().unwrap_or(0);
        image != thread.process && image != 0 && segment.process(image).start_ns >= thread.start_ns
    }

    /// What a structure of a process is counted as.
    pub fn object_counted_as(&mut self, object: ObjectKey, segment: &Segment) -> ObjectKey {
        self.objects.counted_as(object, segment, &mut self.regions)
    }

    /// A process has ended, and all that it did has been read.
    pub fn leave_process(&mut self, process: u32, segment: &Segment) {
        let (regions, heap) = (&mut self.regions, &mut self.heap);
        self.objects.leave_process(process, segment, regions, heap);
        self.regions.leave_process(process);
        self.threads.processes.leave(process);
    }

    fn apply_event(&mut self, record: &EventRecord, segment: &Segment) {
        let process = u32::from(record.event.process);
        let generation = record.event.generation;
        let bytes = |regions: &RegionMap| regions.spaces.get(&process).map_or(0, |s| s.bytes());
        let spent = self.regions.budget.is_spent();
        if spent && CHANGES_OF_MEMORY.contains(&record.event.kind) {
            self.regions.budget.refused += 1;
        } else {
            let before = bytes(&self.regions);
            self.apply_kept_event(record, segment);
            let after = bytes(&self.regions);
            self.regions.budget.give_back(before);
            self.regions.budget.spend(after);
        }
        let space = self.regions.spaces.entry(process).or_default();
        space.reported = space.reported.max(generation);
    }

    fn apply_kept_event(&mut self, record: &EventRecord, segment: &Segment) {
        let (event, text) = (&record.event, record.text.as_str());
        let process = u32::from(event.process);
        let (a, generation) = (&event.a, event.generation);
        match event.kind {
            wire::EV_PROCESS => self.add_process_image(process, a, text, generation),
            wire::EV_MODULE => {
                self.regions
                    .add_module(process, a[0], a[1], a[4], text, generation);
            }
            wire::EV_MAP => {
                let thread = self.threads.key(segment, event.thread.into());
                self.regions.add_mapping(event, thread, text);
            }
            wire::EV_UNMAP => self.regions.unmap(process, a[0], a[1]),
            wire::EV_REMAP => self.regions.remap(process, a, generation),
            wire::EV_BRK => self.regions.set_brk(process, a[0], a[1], generation),
            wire::EV_ALLOC => {
                let block = (process, u32::try_from(a[2]).unwrap_or(0));
                let (regions, objects) = (&mut self.regions, &mut self.objects);
                let site = objects.known_record(block, segment, regions);
                self.heap.allocate(event, site, segment, regions);
            }
            wire::EV_BLOCKS => {
                heap::mark_blocks(process, a[0], &mut self.regions);
            }
            wire::EV_THREAD_LOCALS => {
                let thread = self.threads.key(segment, event.thread.into());
                self.regions.add_thread_locals(process, thread, a[0]);
                if event.aux == 1 {
                    // The C library keeps them at the end of the stack: large ones are most of it.
                    self.regions.add_thread_stack(process, thread, a[0]);
                }
            }
            wire::EV_LOST if a[0] < LOST_KINDS => {
                self.lost.insert(a[0]);
            }
            _ => {}
        }
    }

    fn add_process_image(&mut self, process: u32, a: &[u64; 6], executable: &str, generation: u32) {
        let parent = u32::try_from(a[1]).ok().filter(|&p| p != 0);
        let forked_from = parent.filter(|_| a[2] == 1);
        let row = self.threads.processes.enter(
            process,
            executable,
            parent.unwrap_or(0),
            forked_from.is_some(),
        );
        if row != process {
            self.regions.rows.insert(process, row);
        }
        if let Some(parent) = forked_from {
            self.objects.fork(parent);
        }
        self.regions
            .add_process_image(process, forked_from, (a[3], a[4]), generation);
        self.regions.budget.spend(executable.len() as u64);
        self.threads
            .executables
            .insert(process, executable.to_owned());
        let pid = i32::try_from(a[0]).ok();
        if self.images.len() < wire::MAX_PROCESSES as usize {
            self.images.extend(pid.map(|pid| (pid, process)));
        }
        // Must be asked while the process lives; ranks live long enough.
        if let Some(rank) = pid.and_then(mpi::local_rank_of) {
            self.ranks.insert(process, rank);
        }
    }
}
