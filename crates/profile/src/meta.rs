//! `profile.json`: what was run, where, how, and how it ended.
use crate::tables::Process;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Raised when a reader of an older version could misread the files.
pub const FORMAT_VERSION: u32 = 2;

/// What was run, where and how: `profile.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileMeta {
    /// Version of the format.
    pub format: u32,
    /// Version of hither that wrote it.
    pub writer: String,
    /// Command line.
    pub command: Vec<String>,
    /// Folder the program was started in.
    pub working_directory: String,
    /// Seconds since the epoch.
    pub started_unix: u64,
    /// Wall time of the run in nanoseconds.
    pub duration: u64,
    /// The machine it ran on.
    pub machine: MachineInfo,
    /// What was asked of the tracer.
    pub options: TraceOptions,
    /// Processes of the run.
    pub processes: Vec<Process>,
    /// How the program ended.
    pub end: RunEnd,
    /// What could not be seen, a sentence each.
    pub limits: Vec<String>,
    /// Slices per row group of the `comm` table: 1, or more when the size budget asked for it.
    pub comm_slices: u32,
    /// Whether coherence events were told apart: those that can find a line changed by another thread.
    #[serde(default)]
    pub has_coherence: bool,
    /// Slices per page slice of the `pages` table; 0 when the pages were kept for the
    /// whole run only (all rows then have slice 0).
    pub page_slices: u32,
    /// Estimated relative standard error of totals, when sampled; 0 when exact.
    pub sampling_error: f64,
    /// What tracing cost.
    pub cost: TraceCost,
    /// `None` of a run that was traced, which counts accesses. Else it was observed by
    /// `hither auto`: what is counted as accesses are the page faults that were seen, all of
    /// them as reads, and the program ran at its own speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<OnlineInfo>,
    /// What `bursts.bin` holds; `None` where nothing was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<BurstInfo>,
}

/// Burst traces of a run, see [`crate::bursts`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BurstInfo {
    /// Windows recorded.
    pub windows: u64,
    /// Accesses recorded.
    pub accesses: u64,
    /// Size of the file, bytes.
    pub bytes: u64,
}

/// What of a run to record access by access. Both 0: all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstOptions {
    /// Processor time of each thread in a window, in nanoseconds.
    pub length: u64,
    /// From the start of one window to that of the next, in nanoseconds of wall time.
    pub every: u64,
}

impl ProfileMeta {
    /// Counts are page faults, a sample of the accesses of unknown share.
    #[must_use]
    pub fn is_online(&self) -> bool {
        self.online.is_some()
    }

    /// Whether fetches were counted. `--oracle` and `hither auto` do not.
    #[must_use]
    pub fn has_fetches(&self) -> bool {
        self.options.cache > 0 && !self.options.oracle && !self.is_online()
    }
}

/// How a run was observed and placed while it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OnlineInfo {
    /// `adaptive`, `kmaf` or `spcd`.
    pub mechanism: String,
    /// What mapped threads; empty in older profiles.
    #[serde(default)]
    pub policy: String,
    /// What was set of the mechanism, by name; empty in older profiles.
    #[serde(default)]
    pub parameters: BTreeMap<String, f64>,
    /// What caused page faults, by name.
    pub samplers: Vec<String>,
    /// Page faults seen, those of them that samplers caused, and those that were lost.
    pub faults: u64,
    /// Page faults that samplers caused.
    pub caused: u64,
    /// Page faults that were lost.
    pub lost: u64,
    /// Times that threads were mapped.
    pub mappings: u64,
    /// Bytes of memory that the program had at most; 0 in older profiles.
    #[serde(default)]
    pub memory: u64,
}

/// The machine that a program ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineInfo {
    /// Name of the host.
    pub hostname: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Model name of the first processor.
    pub cpu: String,
    /// hwloc XML of the machine, or empty.
    pub topology_xml: String,
    /// NUMA nodes.
    pub numa_nodes: u32,
    /// Processing units (hardware threads).
    pub processing_units: u32,
    /// Sum of all caches in bytes (OPT eq. 7).
    pub cache_bytes: u64,
}

/// What was asked of the tracer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceOptions {
    /// Nanoseconds per slice, of `slice_clock`.
    pub slice: u64,
    /// What slices are measured by; wall time in older profiles.
    #[serde(default)]
    pub slice_clock: SliceClock,
    /// Bytes per line.
    pub line: u32,
    /// The last users of a line with which an access communicates: `--sharers`; `None`: all.
    pub sharers: Option<u32>,
    /// Share of slices traced; `None` when all were.
    pub sample: Option<f64>,
    /// Whether communication was counted access by access: `--oracle`.
    pub oracle: bool,
    /// Whether child processes were traced too.
    pub follow: bool,
    /// Function whose first call starts counting.
    pub from: Option<String>,
    /// Function whose first return ends it.
    pub until: Option<String>,
    /// Functions that alone are counted.
    pub only_functions: Vec<String>,
    /// Bytes.
    pub max_size: u64,
    /// Bytes of the private cache whose fetches are counted; 0 in older profiles, which have none.
    #[serde(default)]
    pub cache: u64,
    /// Windows recorded access by access; `None` where none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<BurstOptions>,
}

impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions {
            slice: 10_000_000,
            slice_clock: SliceClock::Wall,
            line: 64,
            sharers: None,
            sample: None,
            oracle: false,
            follow: true,
            from: None,
            until: None,
            only_functions: Vec::new(),
            max_size: 80 << 20,
            cache: 1 << 20,
            bursts: None,
        }
    }
}

/// What the length of a slice is measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SliceClock {
    /// Instructions that the program executes.
    Instructions,
    /// Wall time under the tracer.
    #[default]
    Wall,
}

/// How the traced program ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "how")]
pub enum RunEnd {
    /// It exited.
    Exited {
        /// Its exit status.
        status: i32,
    },
    /// A signal ended it.
    Signaled {
        /// Number of the signal.
        signal: i32,
    },
    /// The collector was stopped first.
    #[default]
    Interrupted,
}

impl fmt::Display for RunEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunEnd::Exited { status } => write!(f, "exited with {status}"),
            RunEnd::Signaled { signal } => write!(f, "killed by signal {signal}"),
            RunEnd::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// What tracing cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceCost {
    /// CPU nanoseconds of the collector while the target ran.
    pub collector_cpu: u64,
    /// Misses of the line caches in the traced program.
    pub line_cache_misses: u64,
    /// Events lost because a buffer was full.
    pub lost_events: u64,
    /// Samples lost because a buffer was full.
    pub lost_samples: u64,
}
