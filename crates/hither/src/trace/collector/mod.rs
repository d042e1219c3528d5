//! The collector: creates the segment that the tracer in the target fills, follows it
//! slice by slice on one thread, and makes a [`Profile`] of it.
//!
//! ```text
//! segment --events--> regions, heap, processes --.
//!         --rows----> pairs per slice ------------+--> build --> Profile
//!         --blocks--> (page, thread) per page slice
//!         --samples-> (data, code)  --------------'
//! ```
//! Invariant: whatever the target writes into the segment, nothing here panics.
mod address_space;
mod allocated_objects;
mod allocation_paths;
mod burst_recorder;
mod checkpoints;
mod code_lines;
mod comm;
mod deadline;
mod ended_intervals;
mod ended_regions;
mod engine;
mod events;
mod first_touch_lines;
mod heap;
mod late_modules;
mod limits;
mod memory_budget;
mod object_accesses;
mod object_rows;
mod objects;
mod pages;
mod process_rows;
mod profile_rows;
mod region_interval;
mod region_names;
mod region_origin;
mod region_rows;
mod region_threads;
mod regions;
mod roles;
mod samples;
mod sampling;
mod shared_lines;
mod shared_memory;
mod slice_timer;
mod slices;
mod small_blocks;
mod target_objects;
mod task_state;
#[cfg(test)]
mod tests;
mod thread_local_objects;
mod thread_locals;
mod thread_rows;
mod threads;
mod unflushed;
mod window_regions;

use super::symbolizer::Symbolizer;
use crate::program::clock::monotonic_ns;
use anyhow::{anyhow, Context, Result};
use checkpoints::Checkpoints;
pub use checkpoints::{CheckpointCompletion, CheckpointPlan, ProfileBuild};
use deadline::Deadline;
use engine::CollectorEngine;
use hither_profile::BurstWriter;
use hither_profile::{Profile, RunEnd, TraceOptions};
use hither_sys::{wire, Segment, SegmentConfig};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Entries of a thread's line cache, log2: the size findings measured best.
const CACHE_LOG2: u32 = 16;
/// Heap blocks below this size are counted by allocation site, but not reported one by one:
/// none is seen apart on a 4 KiB page.
const ALLOC_MIN: u32 = 1024;
/// How long a process has to notice a new slice by itself, see `HI_STALE` in wire.h.
const SLICE_GRACE: Duration = Duration::from_micros(500);
/// Between looks at an event ring that fills fast.
const BUSY_POLL: Duration = Duration::from_millis(2);
/// Between looks at any event ring, however long slices are.
const EVENT_POLL: Duration = Duration::from_millis(10);
/// Between looks at what threads record, however long slices are.
const RECORDING_POLL: Duration = Duration::from_millis(10);

/// What to trace.
#[derive(Clone, Debug, Default)]
pub struct CollectorConfig {
    pub options: TraceOptions,
    pub hooks: Vec<FunctionHook>,
    pub command: Vec<String>,
    pub working_directory: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    From,
    Until,
    Only,
    /// Counts a synchronisation point, `wire::SYNC_*`.
    Sync(u32),
    /// Allocates or frees, `wire::ALLOC_*`.
    Alloc(u32),
}

/// A function that the tracer watches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionHook {
    pub kind: HookKind,
    /// From the module's load base.
    pub offset: u64,
    pub dev: u64,
    pub ino: u64,
}

impl FunctionHook {
    fn segment_hook(&self) -> wire::SegmentHook {
        let (kind, which) = match self.kind {
            HookKind::From => (wire::HOOK_FROM, 0),
            HookKind::Until => (wire::HOOK_UNTIL, 0),
            HookKind::Only => (wire::HOOK_ONLY, 0),
            HookKind::Sync(which) => (wire::HOOK_SYNC, which),
            HookKind::Alloc(which) => (wire::HOOK_ALLOC, which),
        };
        wire::SegmentHook {
            kind,
            which,
            offset: self.offset,
            dev: self.dev,
            ino: self.ino,
        }
    }
}

/// How far the run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveStatus {
    pub elapsed: Duration,
    pub slices: u64,
    pub threads_alive: u32,
    pub threads_total: u32,
    pub accesses: u64,
    pub footprint_bytes: u64,
}

pub struct Collector {
    segment: Arc<Segment>,
    config: CollectorConfig,
    bursts: Option<BurstWriter>,
    checkpoints: Option<CheckpointPlan>,
}

/// What a run left behind.
pub struct CollectedRun {
    pub profile: Profile,
    /// A profile of its beginning is where the profile goes.
    pub has_checkpoint: bool,
    /// With `--bursts`: to be put into the profile's folder.
    pub bursts: Option<BurstWriter>,
}

/// Sets of the part of a private cache that is looked at.
fn fetch_sets(options: &TraceOptions) -> u32 {
    let set = u64::from(options.line) * u64::from(wire::FETCH_PERIOD * wire::FETCH_WAYS);
    (options.cache / set).clamp(1, 1 << 20) as u32
}

impl Collector {
    /// # Errors
    /// When the segment cannot be created.
    pub fn new(config: CollectorConfig) -> Result<Self> {
        Self::with_cache(config, CACHE_LOG2)
    }

    fn with_cache(config: CollectorConfig, cache_log2: u32) -> Result<Self> {
        let o = &config.options;
        let flag = |on: bool, flag: u32| if on { flag } else { 0 };
        let segment = Segment::create(&SegmentConfig {
            line: o.line,
            sharers: o.sharers.unwrap_or(0),
            cache_log2,
            flags: flag(o.oracle, wire::FLAG_ORACLE)
                | flag(o.sample.is_some(), wire::FLAG_SAMPLE)
                | flag(o.follow, wire::FLAG_FOLLOW)
                | flag(o.bursts.is_some(), wire::FLAG_RECORD),
            fetch_sets: fetch_sets(o),
            alloc_min: ALLOC_MIN,
            slice_ns: o.slice,
            active: o.from.is_none() && o.only_functions.is_empty(),
            hooks: config
                .hooks
                .iter()
                .map(FunctionHook::segment_hook)
                .collect(),
        })?;
        Ok(Collector {
            segment: Arc::new(segment),
            config,
            bursts: None,
            checkpoints: None,
        })
    }

    /// Keeps the profile of the run so far now and then.
    #[must_use]
    pub fn with_checkpoints(mut self, plan: CheckpointPlan) -> Self {
        self.checkpoints = Some(plan);
        self
    }

    /// Where to record accesses, for options that say so.
    #[must_use]
    pub fn with_bursts(mut self, bursts: Option<BurstWriter>) -> Self {
        self.bursts = bursts;
        self
    }

    /// Where a traced process opens the segment.
    #[must_use]
    pub fn attach_path(&self) -> String {
        self.segment.attach_path().to_string_lossy().into_owned()
    }

    /// Starts the clock of the run and the collector's thread.
    ///
    /// # Errors
    /// When no thread can be created.
    pub fn start(self) -> Result<RunningCollector> {
        let live = Arc::new(Mutex::new(LiveStatus::default()));
        let (stop, stopped) = sync_channel::<()>(1);
        let mut engine = CollectorEngine::new(self.segment, self.config);
        if let Some(writer) = self.bursts {
            engine.record_bursts(writer);
        }
        let shown = Arc::clone(&live);
        let deadline = Arc::clone(&engine.deadline);
        let checkpoints = Checkpoints::new(self.checkpoints);
        let thread = std::thread::Builder::new()
            .name("hither-collect".into())
            .spawn(move || collect(engine, checkpoints, &stopped, &shown))
            .context(
                "cannot start the collector's thread: raise the limit on processes (ulimit -u)",
            )?;
        Ok(RunningCollector {
            thread,
            stop,
            live,
            deadline,
        })
    }
}

/// What the collector's thread does, up to the end of the run. With whether there is a checkpoint.
fn collect(
    mut engine: CollectorEngine,
    mut checkpoints: Checkpoints,
    stopped: &Receiver<()>,
    shown: &Mutex<LiveStatus>,
) -> (CollectorEngine, bool) {
    // The program keeps all processors busy, and slices are to end when they are over.
    hither_sys::launch::request_short_slice();
    engine.begin();
    let mut busy = false;
    loop {
        let left = engine.next_look().saturating_sub(monotonic_ns());
        let (wait, looks) = pause(Duration::from_nanos(left), busy, engine.is_recording());
        match stopped.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => break,
        }
        busy = engine.drain_events();
        if looks && engine.slice_is_over() {
            engine.end_slice();
            std::thread::sleep(SLICE_GRACE);
            engine.mark_stuck_threads();
            *shown.lock().unwrap_or_else(PoisonError::into_inner) = engine.live_status();
            if let Some(copy) = checkpoints.keep_up() {
                copy.write(engine);
            }
        } else {
            engine.keep_up();
        }
    }
    checkpoints.stop();
    engine.finish();
    (engine, checkpoints.kept)
}

/// How long to wait with `left` to the next look at whether the slice is over, and whether to look then. In a
/// slice that takes long looks are far apart, and the program waits where nobody reads its events.
fn pause(left: Duration, busy: bool, recording: bool) -> (Duration, bool) {
    match (busy, recording) {
        (true, _) => (left.min(BUSY_POLL), true),
        (_, true) => (left.min(RECORDING_POLL), true),
        _ => (left.min(EVENT_POLL), left <= EVENT_POLL),
    }
}

/// A run being collected.
pub struct RunningCollector {
    thread: JoinHandle<(CollectorEngine, bool)>,
    stop: SyncSender<()>,
    live: Arc<Mutex<LiveStatus>>,
    deadline: Arc<Deadline>,
}

impl RunningCollector {
    /// How far the run was at the end of the last slice.
    #[must_use]
    pub fn live(&self) -> LiveStatus {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the collection: takes what is left, names everything, builds the profile.
    ///
    /// # Errors
    /// When the collector's thread failed.
    pub fn finish(self, end: RunEnd, naming: &mut dyn Symbolizer) -> Result<CollectedRun> {
        self.deadline.arm();
        // The thread may have gone already, which join tells.
        let _ = self.stop.send(());
        let (engine, has_checkpoint) = self.thread.join().map_err(|_| {
            anyhow!("the collector's thread failed; please report it with the command you traced")
        })?;
        let collected = profile_rows::build_profile(engine, end, naming);
        Ok(CollectedRun {
            has_checkpoint,
            ..collected
        })
    }
}
