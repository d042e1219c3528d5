//! What the collector thread does at the end of each slice.
//!
//! Threads credit lazily: what they did in slice s is complete when s + 1 ends, because
//! both line caches have been swapped by then. Communication rows exist twice, by the
//! parity of the epoch, so that slice s can be read while s + 1 fills the other; it is
//! read just before the epoch moves on to s + 2, which fills the first again.
mod page_reuse;
mod retirement;

use super::burst_recorder::BurstRecorder;
use super::comm::{pair_of, CommReader};
use super::deadline::Deadline;
use super::events::TargetState;
use super::pages::PageReader;
use super::samples::SampleTally;
use super::sampling::{ObjectCounts, SamplingScale, SamplingSchedule, StageStart};
use super::shared_lines::SharedLines;
use super::slice_timer::SliceTimer;
use super::slices::SliceRows;
use super::threads::ThreadTracker;
use super::{CollectorConfig, LiveStatus};
use crate::program::clock::{clock_ns, monotonic_ns};
use hither_profile::binned::{BinnedCounts, CountRow};
use hither_profile::comm::amount_and_heterogeneity;
use hither_profile::{BurstWriter, PageBudget, Slice};
use hither_sys::{wire, Segment};
use nix::time::ClockId;
use page_reuse::PageReuse;
use retirement::SlotRetirement;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Share of a core that page passes may use.
const CPU_SHARE: f64 = 0.035;
/// CPU time they may use before that counts, so that short runs get fine page slices.
const CPU_GRACE_NS: u64 = 20_000_000;
/// Bytes per row on disk, roughly, and how the size budget is divided.
const ROW_BYTES: f64 = 6.0;
const COMM_SHARE: f64 = 0.35;
const PAGE_SHARE: f64 = 0.5;
/// What of the budget recorded accesses may use before the others divide the rest.
const BURST_SHARE: f64 = 0.75;
/// Rows in memory, whatever the size on disk may be.
const MAX_PAGE_ROWS: usize = 1 << 18;
/// The same of the whole run, when it has ended.
const MOST_PAGE_ROWS: usize = 100_000_000;
const MAX_COMM_ROWS: usize = 4 << 20;
/// How often to ask whether processes still exist.
const LIVENESS_INTERVAL_NS: u64 = 100_000_000;
/// How often samples have to be fetched, however long slices are.
const KEEP_UP_INTERVAL_NS: u64 = 10_000_000;
/// The same for each thread that there may be, since all are looked at.
const KEEP_UP_PER_THREAD_NS: u64 = 10_000;
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

pub struct CollectorEngine {
    pub segment: Arc<Segment>,
    pub config: CollectorConfig,
    pub started: u64,
    pub ended: u64,
    /// Of the collector, and of its page passes.
    pub cpu: u64,
    page_cpu: u64,
    pub target_state: TargetState,
    pub threads: ThreadTracker,
    pub slices: SliceRows,
    pub comm: BinnedCounts<2>,
    pub pages: BinnedCounts<3>,
    pub page_reader: PageReader,
    pub page_reuse: PageReuse,
    pub samples: SampleTally,
    pub lines: SharedLines,
    pub recorder: Option<BurstRecorder>,
    /// What threads did to structures that have left their slots, or could not flush themselves.
    pub ended_objects: ObjectCounts,
    pub comm_reader: CommReader,
    pub retirement: SlotRetirement,
    pub deadline: Arc<Deadline>,
    schedule: SamplingSchedule,
    /// Where the stages of sampling began, but for the first.
    stages: Vec<StageStart>,
    /// The slice that runs now: number, start, whether traced.
    current: u32,
    /// Traced slices that began before the latest; and the last two of them. The epoch
    /// counts traced slices only: in between no thread reads it.
    traced_count: u32,
    last_traced: [Option<u32>; 2],
    slice_start: u64,
    pub timer: SliceTimer,
    traced: bool,
    /// Whether accesses counted when it began.
    active: bool,
    /// Synchronisation points passed in this slice.
    sync: [u64; wire::SYNCS],
    cpu_at_start: u64,
    /// Accesses that were given to slices.
    spread: u64,
    checked: u64,
    kept_up: u64,
    /// The epoch in which a thread was found stuck and marked.
    pub marked: HashMap<u32, u32>,
}

fn epoch_of(slice: u32) -> u32 {
    slice % u32::MAX + 1
}

fn row_budget(max_size: u64, share: f64, most: usize) -> usize {
    ((max_size as f64 * share / ROW_BYTES) as usize).clamp(1, most)
}

/// What of the size budget recorded accesses leave to the tables.
fn size_without_bursts(config: &CollectorConfig) -> u64 {
    let recorded = config.options.bursts.map_or(0.0, |_| BURST_SHARE);
    (config.options.max_size as f64 * (1.0 - recorded)) as u64
}

impl CollectorEngine {
    /// What the tables of pages may take at the end.
    pub fn page_budget(&self) -> PageBudget {
        PageBudget {
            rows: MOST_PAGE_ROWS,
            bytes: (size_without_bursts(&self.config) as f64 * PAGE_SHARE) as u64,
        }
    }

    pub fn new(segment: Arc<Segment>, config: CollectorConfig) -> CollectorEngine {
        let max_size = size_without_bursts(&config);
        let mut schedule = SamplingSchedule::new(config.options.sample, SEED);
        let traced = schedule.is_traced(0);
        let active = segment.is_active() || !config.options.only_functions.is_empty();
        segment.set_slice_traced(traced);
        segment.set_epoch(epoch_of(0));
        let last_traced = [None, traced.then_some(0)];
        let started = monotonic_ns();
        CollectorEngine {
            started,
            ended: started,
            cpu: 0,
            page_cpu: 0,
            target_state: TargetState::default(),
            threads: ThreadTracker::default(),
            slices: SliceRows::default(),
            comm: BinnedCounts::new(row_budget(max_size, COMM_SHARE, MAX_COMM_ROWS)),
            pages: BinnedCounts::new(row_budget(max_size, PAGE_SHARE, MAX_PAGE_ROWS)),
            page_reader: PageReader::default(),
            page_reuse: PageReuse::default(),
            samples: SampleTally::default(),
            lines: SharedLines::new(config.options.line),
            recorder: None,
            ended_objects: ObjectCounts::new(),
            retirement: SlotRetirement::default(),
            deadline: Arc::default(),
            comm_reader: CommReader::default(),
            schedule,
            stages: Vec::new(),
            current: 0,
            traced_count: 0,
            last_traced,
            slice_start: started,
            timer: SliceTimer::new(&config.options, started),
            traced,
            active,
            sync: [0; wire::SYNCS],
            cpu_at_start: 0,
            spread: 0,
            checked: started,
            kept_up: started,
            marked: HashMap::new(),
            segment,
            config,
        }
    }

    /// Records accesses into a file, if the options say so. Call before the program starts.
    pub fn record_bursts(&mut self, writer: BurstWriter) {
        let Some(options) = self.config.options.bursts else {
            return;
        };
        let budget = (self.config.options.max_size as f64 * BURST_SHARE) as u64;
        let mut recorder = BurstRecorder::new(writer, options, budget, self.started);
        recorder.begin(&self.segment);
        self.recorder = Some(recorder);
    }

    fn record_bursts_of_slice(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            let regions = &self.target_state.regions;
            recorder.end_slice(&self.segment, monotonic_ns(), &self.threads, regions);
        }
    }

    /// Call on the collector's own thread before the first slice ends.
    pub fn begin(&mut self) {
        self.cpu_at_start = clock_ns(ClockId::CLOCK_THREAD_CPUTIME_ID);
    }

    /// When to ask whether the slice is over.
    pub fn next_look(&self) -> u64 {
        self.timer.next_look()
    }

    pub fn slice_is_over(&mut self) -> bool {
        let now = monotonic_ns();
        let short = self.needs_slots(now.saturating_sub(self.slice_start));
        self.timer.slice_is_over(&self.segment, now) || short
    }

    /// The epoch that the target is in.
    pub fn epoch(&self) -> u32 {
        epoch_of(self.traced_count)
    }

    /// Within a slice: fetches what has little room in the segment.
    pub fn keep_up(&mut self) {
        let now = monotonic_ns();
        let threads = u64::from(self.segment.next_thread());
        let interval = KEEP_UP_INTERVAL_NS.max(threads * KEEP_UP_PER_THREAD_NS);
        if now.saturating_sub(self.kept_up) >= interval {
            self.scan_threads(now);
            self.drain_samples();
            self.reuse_pages();
        }
    }

    /// Threads fill pieces, whose number is limited.
    pub fn is_recording(&self) -> bool {
        self.recorder.as_ref().is_some_and(BurstRecorder::is_open)
    }

    /// Empties the ring between slices; true when it fills fast.
    pub fn drain_events(&mut self) -> bool {
        let busy = self.segment.events_waiting() > u64::from(wire::EVENTS / 4);
        self.target_state.drain(&self.segment, &self.deadline);
        let recording = self
            .recorder
            .as_mut()
            .is_some_and(|r| r.drain(&self.segment));
        busy || recording
    }

    /// Ends the current slice and begins the next.
    pub fn end_slice(&mut self) {
        self.target_state.drain(&self.segment, &self.deadline);
        let closing = self.current;
        self.current = self.current.saturating_add(1);
        let traced = self.schedule.is_traced(self.current);
        let complete = if traced {
            self.next_traced_slice()
        } else {
            None
        };
        self.segment.set_slice_traced(traced);
        self.close_slice(traced);
        if let Some(slice) = complete {
            self.close_comm(slice);
        }
        self.drain_samples();
        if self.schedule.begins_stage(self.current) {
            self.read_pages(closing.saturating_sub(1));
            let counted = self.counted_until(self.current);
            self.stages.push(counted);
        } else {
            self.page_pass(closing);
        }
        self.reuse_pages();
        self.record_bursts_of_slice();
        self.retire_slots(closing);
    }

    /// Everything counted before a slice.
    fn counted_until(&mut self, first: u32) -> StageStart {
        StageStart {
            first,
            executed: self.target_state.threads.executed(&self.segment),
            accesses: self.page_reader.totals.clone(),
            objects: self.object_counts(),
        }
    }

    /// What sampling left out of the run, which has ended.
    pub fn sampling_scale(&mut self) -> SamplingScale {
        let starts = std::mem::take(&mut self.stages);
        let end = self.counted_until(self.slices.rows.len() as u32);
        SamplingScale::new(starts, end, self.config.options.sample.is_some())
    }

    /// Begins a traced slice. Reads the rows of the last but one, which is complete now,
    /// because its parity comes next; returns that slice.
    fn next_traced_slice(&mut self) -> Option<u32> {
        let [complete, last] = self.last_traced;
        if complete.is_some() {
            let parity = epoch_of(self.traced_count.wrapping_sub(1)) & 1;
            self.comm_reader.read_dirty_rows(&self.segment, parity);
        }
        self.traced_count = self.traced_count.wrapping_add(1);
        self.last_traced = [last, Some(self.current)];
        self.segment.set_epoch(epoch_of(self.traced_count));
        complete
    }

    /// Moves on the threads that hit all the time and so have not noticed the slice. One
    /// that waits in the kernel is marked once, not in every slice.
    pub fn mark_stuck_threads(&mut self) {
        if !self.traced {
            return;
        }
        let epoch = epoch_of(self.traced_count);
        for (slot, _) in self.threads.running() {
            let thread = self.segment.thread(slot);
            let stuck = thread.state == wire::THREAD_LIVE
                && thread.epoch != 0
                && thread.epoch != epoch
                && thread.flipped == 0
                && self.marked.get(&slot) != Some(&thread.epoch);
            if stuck {
                self.marked.insert(slot, thread.epoch);
                self.segment.mark_stale(&thread);
            }
        }
    }

    fn scan_threads(&mut self, now: u64) {
        self.kept_up = now;
        if now.saturating_sub(self.checked) > LIVENESS_INTERVAL_NS {
            self.checked = now;
            self.threads.find_dead_processes(&self.segment, now);
        }
        let (epoch, target) = (self.epoch(), &mut self.target_state);
        let passed = self
            .threads
            .scan(&self.segment, target, &self.deadline, (epoch, now));
        for (sum, n) in self.sync.iter_mut().zip(passed) {
            *sum = sum.saturating_add(n);
        }
    }

    /// Writes down the slice that just ended.
    fn close_slice(&mut self, next_traced: bool) {
        let now = monotonic_ns();
        self.scan_threads(now);
        self.timer.begin_slice(now);
        let sync = std::mem::take(&mut self.sync);
        let threads = self.threads.count_alive(self.slice_start, now);
        let paused = self.paused_time(now - self.slice_start);
        self.slices.rows.push(Slice {
            start: self.slice_start - self.started,
            length: now - self.slice_start,
            threads,
            sync,
            traced: self.traced,
            paused,
            ..Slice::default()
        });
        self.slice_start = now;
        self.traced = next_traced;
        self.ended = now;
        self.cpu = clock_ns(ClockId::CLOCK_THREAD_CPUTIME_ID).saturating_sub(self.cpu_at_start);
    }

    /// How much of the slice that ends lay outside `--from` and `--until`: where it changed
    /// meanwhile, half, which is right in the mean. Not with `--only-functions`, where it is
    /// another time for each thread.
    fn paused_time(&mut self, length: u64) -> u64 {
        let options = &self.config.options;
        let active = self.segment.is_active() || !options.only_functions.is_empty();
        let before = std::mem::replace(&mut self.active, active);
        match (before, active) {
            (true, true) => 0,
            (false, false) => length,
            _ => length / 2,
        }
    }

    /// What was read from the rows since the last call belongs to this slice.
    fn close_comm(&mut self, slice: u32) {
        let threads = &self.target_state.threads;
        let rows: Vec<CountRow<2>> = (self.comm_reader).take_events(|slot| threads.known_key(slot));
        if let Some(row) = self.slices.rows.get_mut(slice as usize) {
            let pairs = rows.iter().map(|&(key, [events, _])| {
                let (i, j) = pair_of(key);
                (i, j, events)
            });
            let pairs: Vec<_> = pairs.collect();
            // A thread that was kept from running flushes an earlier slice in this one, and may have
            // ended before it.
            let sharing: BTreeSet<u32> = pairs.iter().flat_map(|&(i, j, _)| [i, j]).collect();
            row.threads = row.threads.max(sharing.len() as u32);
            (row.amount, row.heterogeneity) = amount_and_heterogeneity(row.threads, &pairs);
        }
        self.comm.add_rows(slice, rows);
    }

    pub(super) fn drain_samples(&mut self) {
        for (slot, process) in self.threads.running() {
            let target = &mut self.target_state;
            self.samples.drain(&self.segment, slot, process, target);
            let key = target.threads.key(&self.segment, slot);
            self.lines
                .drain(&self.segment, (slot, key), process, target);
        }
    }

    /// Reads the pages when a page slice is complete, if there is CPU time for it; else
    /// page slices become longer.
    fn page_pass(&mut self, closing: u32) {
        if closing == 0 || !closing.is_multiple_of(self.pages.factor()) {
            return;
        }
        let elapsed = self.ended.saturating_sub(self.started);
        if self.page_cpu > CPU_GRACE_NS + (elapsed as f64 * CPU_SHARE) as u64 {
            self.pages.coarsen();
            return;
        }
        let before = clock_ns(ClockId::CLOCK_THREAD_CPUTIME_ID);
        self.read_pages(closing - 1);
        self.page_cpu += clock_ns(ClockId::CLOCK_THREAD_CPUTIME_ID).saturating_sub(before);
    }

    pub fn read_pages(&mut self, slice: u32) {
        let rows = self
            .page_reader
            .read_changed_blocks(&self.segment, &mut self.target_state);
        self.add_page_rows(slice, rows);
    }

    /// The slice that runs now, from 0.
    pub(super) fn current_slice(&self) -> u32 {
        self.current
    }

    /// Gives the accesses that no slice has yet to the slices up to this one.
    pub fn add_page_rows(&mut self, slice: u32, rows: Vec<CountRow<3>>) {
        let new = self.page_reader.accesses - self.spread;
        self.spread = self.page_reader.accesses;
        self.slices.spread_accesses(slice as usize, new);
        self.pages.add_rows(slice, rows);
    }

    /// The target is gone, or the collector stops reading.
    pub fn finish(&mut self) {
        self.segment.close();
        self.deadline.arm();
        let deadline = Arc::clone(&self.deadline);
        self.target_state.drain_final(&self.segment, &deadline);
        if let Some(recorder) = &mut self.recorder {
            recorder.finish(&self.segment, monotonic_ns(), &self.target_state.regions);
        }
        let now = monotonic_ns();
        self.threads.find_dead_processes(&self.segment, now);
        let [before, last] = self.last_traced;
        let last = last.unwrap_or(self.current);
        let parity = epoch_of(self.traced_count.wrapping_sub(1)) & 1;
        self.comm_reader.read_flagged_rows(&self.segment, parity);
        self.close_slice(false);
        self.slices.give_threads(last as usize);
        let all: Vec<u32> = (1..self.segment.next_thread()).collect();
        // Without a slice before the last these rows are the last one's, and closing it
        // twice would leave its metrics to the remainder.
        let epoch_before = epoch_of(self.traced_count.wrapping_sub(1));
        if let Some(before) = before {
            self.credit_unflushed(&all, |epoch| epoch == epoch_before);
            self.close_comm(before);
        }
        self.comm_reader
            .read_flagged_rows(&self.segment, epoch_of(self.traced_count) & 1);
        self.drain_samples();
        let rows =
            self.page_reader
                .read_all_blocks(&self.segment, &mut self.target_state, &deadline);
        self.add_page_rows(last, rows);
        self.flush_threads(&all, last);
        self.credit_unflushed(&all, |epoch| before.is_none() || epoch != epoch_before);
        self.close_comm(last);
        self.leave_slots(&all);
        self.page_reader
            .name_the_rest(&self.segment, &mut self.target_state.regions, &deadline);
        // Naming and writing, which come next, need more memory than collecting did.
        self.page_reader.forget_blocks();
        self.segment.discard_counters();
        hither_sys::freed_memory::return_to_system();
        self.cpu = clock_ns(ClockId::CLOCK_THREAD_CPUTIME_ID).saturating_sub(self.cpu_at_start);
    }

    pub fn live_status(&self) -> LiveStatus {
        LiveStatus {
            elapsed: Duration::from_nanos(self.ended - self.started),
            slices: self.slices.rows.len() as u64,
            threads_alive: self.threads.count_running(),
            threads_total: self.target_state.threads.thread_count(),
            accesses: self.page_reader.accesses,
            footprint_bytes: self.page_reader.named * hither_profile::PAGE_SIZE,
        }
    }
}
