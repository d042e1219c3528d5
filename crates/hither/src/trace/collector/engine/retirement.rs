//! Slots whose threads have ended are given to others, once all that they counted has been read.
//!
//! A thread is known to the others by its slot: in what each credits it for the lines that both used in a
//! slice, and in the users of these lines. So a slot is free when no thread is any more in a slice in
//! which its thread lived, and what they credit it has been read, which takes two more slices. A thread
//! that sleeps is in the slice in which it fell asleep; the slots of those that lived then have to wait.
use super::CollectorEngine;
use crate::trace::collector::sampling::ObjectCounts;
use crate::trace::collector::task_state;
use crate::trace::collector::unflushed::{
    arena_owners, credit_sharers, for_each_unflushed, shared_accesses, UnflushedUses,
};
use hither_profile::binned::sort_and_sum;
use hither_sys::wire;
use std::collections::BTreeSet;

/// Slots in use from which on those of threads that have ended are freed...
const MANY: u32 = 512;
/// ...so many at a time.
const BATCH: usize = 64;
/// With twice as many in use a slice ends early when so many threads have ended in it, as slots are freed
/// between slices...
const MOST_ENDED: usize = 256;
/// ...and soon when there are none left for others.
const SHORTEST_SLICE_NS: u64 = 1_000_000;
/// What threads left is added up when there are so many rows of it: those of hundreds would be many times
/// what they add up to.
const MOST_ROWS: usize = 1 << 16;

/// A thread that has ended.
struct EndedThread {
    slot: u32,
    /// Epochs in which it lived.
    first: u32,
    last: u32,
    /// What came after its last event.
    events: u64,
    /// The epoch in which no thread was in one of these any more.
    alone_since: Option<u32>,
}

impl EndedThread {
    fn lived_in(&self, epochs: &BTreeSet<u32>) -> bool {
        epochs
            .range(self.first..=self.last.max(self.first))
            .next()
            .is_some()
    }
}

#[derive(Default)]
pub struct SlotRetirement {
    ended: Vec<EndedThread>,
}

/// Whether a task does not run any more: there is none, or nobody has asked yet how it ended.
fn is_over(tid: i32) -> bool {
    matches!(task_state::state(tid, tid), None | Some('Z' | 'X'))
}

impl CollectorEngine {
    /// Whether the slice is to end so that slots can be freed.
    pub fn needs_slots(&self, passed: u64) -> bool {
        let (new, before) = (self.threads.ended_count(), self.retirement.ended.len());
        if self.recorder.is_some() || new + before < BATCH {
            return false;
        }
        let free = self.segment.free_slots();
        let many = wire::MAX_THREADS - free >= 2 * MANY;
        new >= MOST_ENDED && many || free == 0 && passed >= SHORTEST_SLICE_NS
    }

    /// Frees slots at the end of a slice, if many are in use.
    pub fn retire_slots(&mut self, slice: u32) {
        let (epoch, [events, _]) = (self.epoch(), self.segment.events_written_and_read());
        for slot in self.threads.take_ended() {
            self.retirement.ended.push(EndedThread {
                slot,
                first: self.threads.seen[slot as usize].first_epoch,
                last: epoch,
                events,
                alone_since: None,
            });
        }
        let in_use = wire::MAX_THREADS - self.segment.free_slots();
        // The files of recorded accesses know threads by their slots.
        if in_use < MANY || self.recorder.is_some() || self.retirement.ended.len() < BATCH {
            return;
        }
        let Some(epochs) = self.epochs_of_running() else {
            return;
        };
        let left = self.flush_for_ended(&epochs, slice);
        let free = self.find_free(&epochs, &left);
        if free.len() >= BATCH {
            self.free_slots(&free, slice);
        }
    }

    /// The epochs in which running threads are; `None` while one moves on.
    fn epochs_of_running(&self) -> Option<BTreeSet<u32>> {
        let mut epochs = BTreeSet::new();
        for (slot, _) in self.threads.running() {
            let ended = self.threads.seen[slot as usize].end.is_some();
            if ended || !self.segment.has_thread(slot) {
                continue;
            }
            let thread = self.segment.thread(slot);
            if thread.state != wire::THREAD_LIVE {
                continue;
            }
            if thread.epoch == 0 {
                return None;
            }
            epochs.insert(thread.epoch);
        }
        Some(epochs)
    }

    /// Counts what threads left that could not do it themselves, as far as no other thread is in their
    /// epoch. Returns the epochs of those that remain.
    fn flush_for_ended(&mut self, running: &BTreeSet<u32>, slice: u32) -> BTreeSet<u32> {
        let (mut remain, mut slots) = (BTreeSet::new(), Vec::new());
        for ended in &self.retirement.ended {
            let thread = self.segment.thread(ended.slot);
            if thread.state != wire::THREAD_LIVE {
                continue;
            }
            let process = self.segment.process(thread.process);
            let image = process.state == wire::PROCESS_EXECED
                || self.target_state.has_become_image(&self.segment, &thread)
                || self.threads.process_died_at(thread.process).is_some();
            if !running.contains(&thread.epoch) && (image || is_over(thread.tid)) {
                slots.push(ended.slot);
            } else {
                remain.insert(thread.epoch);
            }
        }
        slots.sort_unstable();
        self.flush_threads(&slots, slice);
        self.credit_unflushed(&slots, |_| true);
        slots.iter().for_each(|&slot| self.segment.end_thread(slot));
        remain
    }

    /// The slots that can be free, in order.
    fn find_free(&mut self, running: &BTreeSet<u32>, left: &BTreeSet<u32>) -> Vec<u32> {
        let (epoch, [_, read]) = (self.epoch(), self.segment.events_written_and_read());
        let mut free = Vec::new();
        for ended in &mut self.retirement.ended {
            let counted = self.segment.thread(ended.slot).state == wire::THREAD_ENDED;
            // A thread that starts now may still find its thread among the users of lines.
            if !counted || epoch <= ended.last || ended.lived_in(running) || ended.lived_in(left) {
                continue;
            }
            let since = *ended.alone_since.get_or_insert(epoch);
            if epoch >= since.saturating_add(2) && read >= ended.events {
                free.push(ended.slot);
            }
        }
        free.sort_unstable();
        free
    }

    fn free_slots(&mut self, slots: &[u32], slice: u32) {
        for &slot in slots {
            let process = self.threads.seen[slot as usize].process;
            let target = &mut self.target_state;
            let key = target.threads.key(&self.segment, slot);
            self.samples.drain(&self.segment, slot, process, target);
            self.lines
                .drain(&self.segment, (slot, key), process, target);
        }
        self.read_pages(slice);
        let rows = self
            .page_reader
            .read_blocks_of(&self.segment, &mut self.target_state, slots);
        self.add_page_rows(slice, rows);
        let threads = &self.target_state.threads;
        self.comm_reader
            .settle(&self.segment, slots, |slot| threads.known_key(slot));
        let runs = slots.chunk_by(|a, b| a + 1 == *b);
        let cleared = runs.filter(|run| self.segment.clear_comm_rows(run[0], run.len()));
        let cleared: Vec<u32> = cleared.flatten().copied().collect();
        self.comm_reader.forget_rows(&cleared);
        self.leave_slots(slots);
        let seen = |&slot: &u32| self.threads.seen[slot as usize].process;
        let processes: BTreeSet<u32> = slots.iter().map(seen).collect();
        for &slot in slots {
            self.threads.forget(slot);
            self.timer.forget(slot);
            self.marked.remove(&slot);
            let blocks = self.page_reader.take_blocks_of(slot);
            self.segment.free_thread(slot, &blocks);
        }
        let is_free = |slot: u32| slots.binary_search(&slot).is_ok();
        self.retirement.ended.retain(|ended| !is_free(ended.slot));
        let left = processes.into_iter().filter(|&p| self.is_left(p));
        let left: BTreeSet<u32> = left.collect();
        let regions = &mut self.target_state.regions;
        self.page_reader.name_rest_of(&self.segment, regions, &left);
        for &process in &left {
            self.target_state.leave_process(process, &self.segment);
        }
        self.segment.end_pages_of(&left);
    }

    /// Whether a process has ended and all that its threads did has been read.
    fn is_left(&self, process: u32) -> bool {
        let state = self.segment.process(process).state;
        let over = [wire::PROCESS_EXITED, wire::PROCESS_EXECED].contains(&state)
            || self.threads.process_died_at(process).is_some();
        over && !self.threads.has_threads(process)
    }

    /// Takes over what is known of the threads in slots.
    pub fn leave_slots(&mut self, slots: &[u32]) {
        for &slot in slots {
            if self.deadline.passed() {
                return;
            }
            let key = self.target_state.threads.key(&self.segment, slot);
            let process = self.segment.thread(slot).process;
            let (objects, target) = (&mut self.ended_objects, &mut self.target_state);
            self.segment.for_each_object_count(slot, |id, count| {
                let (process, id) = target.object_counted_as((process, id), &self.segment);
                *objects.entry((key, process, id)).or_default() += count;
            });
            let seen = self.threads.seen.get(slot as usize);
            let end = seen.and_then(|seen| seen.end).unwrap_or(self.ended);
            self.target_state.threads.leave(&self.segment, slot, end);
        }
    }

    /// The accesses of threads to the structures that the tracer tells apart.
    pub fn object_counts(&mut self) -> ObjectCounts {
        let mut counts = self.ended_objects.clone();
        for slot in 1..self.segment.next_thread() {
            let key = self.target_state.threads.known_key(slot);
            if key == 0 {
                continue;
            }
            let process = self.segment.thread(slot).process;
            let target = &mut self.target_state;
            self.segment.for_each_object_count(slot, |id, count| {
                let (process, id) = target.object_counted_as((process, id), &self.segment);
                *counts.entry((key, process, id)).or_default() += count;
            });
        }
        counts
    }

    /// Those of some slots, in order, that have line caches.
    fn owners_among(&self, slots: &[u32]) -> Vec<(u32, wire::SegmentThread)> {
        if slots.is_empty() {
            return Vec::new();
        }
        let mut owners = arena_owners(&self.segment);
        owners.retain(|(slot, _)| slots.binary_search(slot).is_ok());
        owners
    }

    /// Flushes for threads that could not do it themselves.
    pub fn flush_threads(&mut self, slots: &[u32], slice: u32) {
        let (mut rows, mut most) = (Vec::new(), MOST_ROWS);
        for (slot, thread) in self.owners_among(slots) {
            let key = self.target_state.threads.key(&self.segment, slot);
            self.segment.for_each_sample_sum(slot, |sample| {
                let target = &mut self.target_state;
                (self.samples).add(&sample, &self.segment, thread.process, target);
            });
            for_each_unflushed(&self.segment, &thread, &self.deadline, |left| {
                let counts = [left.reads, left.writes, 0];
                if let Some((id, count)) = left.object_count() {
                    let named = (thread.process, id);
                    let (process, id) = self.target_state.object_counted_as(named, &self.segment);
                    *self.ended_objects.entry((key, process, id)).or_default() += count;
                }
                self.page_reader
                    .add_unflushed(&self.segment, left.page, key, counts, &mut rows);
                let others = shared_accesses(left.reads + left.writes, &left.side);
                if others > 0 && left.page < self.segment.next_page() {
                    self.lines
                        .count_unflushed(left.page, left.line, key, others);
                }
            });
            if rows.len() > most {
                sort_and_sum(&mut rows);
                most = MOST_ROWS.max(2 * rows.len());
            }
        }
        let regions = &mut self.target_state.regions;
        let rows = self.page_reader.add_rows(&self.segment, regions, rows);
        self.add_page_rows(slice, rows);
    }

    /// Credits the communication of what such threads left of a slice.
    pub fn credit_unflushed(&mut self, slots: &[u32], of_slice: impl Fn(u32) -> bool) {
        let mut uses = UnflushedUses::default();
        for (slot, thread) in self.owners_among(slots) {
            if !of_slice(thread.epoch) {
                continue;
            }
            for_each_unflushed(&self.segment, &thread, &self.deadline, |left| {
                let n = left.reads + left.writes;
                credit_sharers(n, &left.side, &left.others, |to, events| {
                    self.comm_reader.add_credit(slot, to, [events, 0]);
                });
                uses.add(thread.epoch, slot, &left);
            });
            self.segment.for_each_left_line(&thread, |left| {
                uses.add_left(thread.epoch, slot, &left);
            });
        }
        uses.settle(&self.deadline, |slot, to, events| {
            self.comm_reader.add_credit(slot, to, [0, events]);
        });
    }
}
