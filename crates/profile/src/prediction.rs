//! The prediction, `NAME.sim.json`: what several placements of a run are predicted to do on a
//! machine, side by side, and how sure that is.
//!
//! Amounts are those of the accesses that were counted, a sample of the run: they compare
//! placements with one another, and mean little alone. Where chance plays a part, as in what an
//! operating system does, they are means over several seeds.
use crate::placement::{MachineIdentity, PlacementSource};
use serde::{Deserialize, Serialize};

mod file;

pub use file::{check_prediction_destination, read_prediction, write_prediction, PREDICTION_JSON};

/// Raised when a reader of an older version could misread a prediction.
pub const PREDICTION_FORMAT: u32 = 1;

/// A prediction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Version of the format.
    pub format: u32,
    /// Version of hither that made it.
    pub writer: String,
    /// One for each profile and machine, in the order in which they were named.
    pub comparisons: Vec<PlacementComparison>,
}

/// Placements of one profile on one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlacementComparison {
    /// The profile that was simulated.
    pub source: PlacementSource,
    /// When the profile was begun, seconds since 1970: tells profiles of one name apart.
    pub started_unix: u64,
    /// The machine.
    pub machine: MachineIdentity,
    /// For people.
    pub title: String,
    /// The machine file that the model was made of, as it was named.
    pub machine_file: String,
    /// GHz.
    pub frequency: f64,
    /// Of the caches, the nearest to the core first.
    pub levels: Vec<String>,
    /// Of the interconnect, one direction each.
    pub links: Vec<LinkEndpoints>,
    /// Names of the threads, in the order of [`PredictedPlacement::by_thread`].
    pub threads: Vec<String>,
    /// Names of the data structures, in the order of [`PredictedPlacement::by_structure`].
    pub structures: Vec<String>,
    /// How much was simulated.
    pub sample: SimulatedSample,
    /// Pages without a node of their own: `first-touch`, `replay` or `interleave`.
    pub pages: String,
    /// At least one; the others are compared with the first.
    pub placements: Vec<PredictedPlacement>,
    /// Which takes least time, a position in `placements`.
    pub best: u32,
    /// A sentence: which is best, by how much, and how sure that is.
    pub verdict: String,
    /// What to bear in mind, a sentence each.
    pub notes: Vec<String>,
}

/// One direction of a link: numbers of the two endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEndpoints {
    /// Endpoint it starts from.
    pub from: u32,
    /// Endpoint it leads to.
    pub to: u32,
    /// Whether it leaves the package.
    pub between_packages: bool,
}

/// What was simulated of what was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulatedSample {
    /// Windows and accesses recorded, and those of them that were simulated, warm-up included.
    pub windows_recorded: u64,
    /// Windows.
    pub windows: u64,
    /// Accesses recorded.
    pub accesses_recorded: u64,
    /// Memory accesses.
    pub accesses: u64,
    /// Share of the accesses that only warms the caches and is not counted, 0 to 1.
    pub warm_up: f64,
    /// Largest relative change of time, misses and traffic when the warm-up is doubled; `None`
    /// where it cannot be doubled.
    pub warm_up_change: Option<f64>,
}

/// A placement and what it does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictedPlacement {
    /// As it was asked for: `locality+most-access`, `os`, a file.
    pub name: String,
    /// The policies; of a file those it was made with.
    pub thread_policy: String,
    /// The data policy; `None` where pages are left to the system.
    pub data_policy: Option<String>,
    /// Of a placement that was given.
    pub file: Option<String>,
    /// Seeds that amounts are the mean of.
    pub seeds: u32,
    /// Against the first placement, with its uncertainty.
    pub relative: RelativeFigures,
    /// What was counted.
    pub amounts: PredictedAmounts,
    /// By thread, and by data structure; empty unless asked for.
    pub by_thread: Vec<PartAmounts>,
    /// By data structure; empty unless asked for.
    pub by_structure: Vec<PartAmounts>,
    /// By window, in order of time.
    pub over_time: Vec<WindowAmounts>,
}

/// A ratio to the first placement and the half width of its 95 % confidence interval, which
/// comes from the windows and the seeds as samples. `None` where the first has nothing of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RatioEstimate {
    /// The ratio.
    pub value: f64,
    /// `None` with a single window and seed, which tell nothing of how results vary.
    pub half_width: Option<f64>,
}

/// Figures as ratios to those of the first placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RelativeFigures {
    /// Execution time.
    pub time: Option<RatioEstimate>,
    /// Misses of the first level of caches.
    pub first_level_misses: Option<RatioEstimate>,
    /// Misses of the last level of caches.
    pub last_level_misses: Option<RatioEstimate>,
    /// Copies of lines that writes of other cores invalidated.
    pub invalidations: Option<RatioEstimate>,
    /// Lines that went from cache to cache.
    pub transfers: Option<RatioEstimate>,
    /// Bytes on all links.
    pub link_bytes: Option<RatioEstimate>,
    /// Lines read from and written to memory.
    pub dram: Option<RatioEstimate>,
    /// Those of them from or to another node.
    pub remote_dram: Option<RatioEstimate>,
    /// Time from the issue of reads to their data, summed.
    pub read_time: Option<RatioEstimate>,
    /// Energy.
    pub energy: Option<RatioEstimate>,
    /// That of static power, which the time it lasts decides.
    #[serde(default)]
    pub static_energy: Option<RatioEstimate>,
    /// That of events.
    #[serde(default)]
    pub dynamic_energy: Option<RatioEstimate>,
}

/// What was counted, summed over windows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictedAmounts {
    /// Instructions executed.
    pub instructions: f64,
    /// Memory accesses.
    pub accesses: f64,
    /// Seconds until the last thread is through, summed over windows.
    pub time: f64,
    /// Instructions per cycle of a core that has a thread.
    pub ipc: f64,
    /// By level of caches, from the first.
    pub levels: Vec<LevelAmounts>,
    /// Copies of lines that writes of other cores invalidated.
    pub invalidations: f64,
    /// Lines from cache to cache.
    pub transfers_inside: f64,
    /// Lines from cache to cache between packages.
    pub transfers_between: f64,
    /// Bytes by link.
    pub link_bytes: Vec<f64>,
    /// By node.
    pub nodes: Vec<NodeAmounts>,
    /// Reads of the cores.
    pub reads: f64,
    /// Seconds from the issue of reads to their data, summed.
    pub read_time: f64,
    /// Joule.
    pub energy: EnergyAmounts,
}

/// Of one level of caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelAmounts {
    /// Memory accesses.
    pub accesses: f64,
    /// By kind (SPCD II.A).
    pub cold: f64,
    /// The line had to leave for lack of room.
    pub capacity: f64,
    /// Another core's write had taken it away.
    pub invalidation: f64,
    /// Another copy had taken its place in a shared cache.
    pub replication: f64,
    /// All kinds, per thousand instructions.
    pub mpki: f64,
    /// Lines fetched ahead, and those of them that were used.
    pub prefetches: f64,
    /// Prefetched lines that were used.
    pub useful: f64,
}

impl LevelAmounts {
    /// Misses of all kinds.
    #[must_use]
    pub fn misses(&self) -> f64 {
        self.cold + self.capacity + self.invalidation + self.replication
    }
}

/// Lines read from and written to one node's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeAmounts {
    /// Lines read from the memory of the own node.
    pub local_reads: f64,
    /// Lines read from the memory of other nodes.
    pub remote_reads: f64,
    /// Lines written to the memory of the own node.
    pub local_writes: f64,
    /// Lines written to the memory of other nodes.
    pub remote_writes: f64,
    /// Rows opened.
    pub rows: f64,
}

/// Joule: while time passes, and by what happens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyAmounts {
    /// Joule in all.
    pub total: f64,
    /// nJ for each instruction, of all of it.
    pub per_instruction: f64,
    /// By component.
    pub parts: Vec<EnergyPart>,
}

/// Cores, a level of caches, links, memory controllers, DRAM.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyPart {
    /// Name.
    pub name: String,
    /// Joule.
    pub at_rest: f64,
    /// Joule by events.
    pub dynamic: f64,
}

/// A thread's part, or that of a data structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartAmounts {
    /// Memory accesses.
    pub accesses: f64,
    /// Instructions executed.
    pub instructions: f64,
    /// Misses of the first level of caches.
    pub first_level_misses: f64,
    /// Misses of the last level of caches.
    pub last_level_misses: f64,
    /// Lines that went from cache to cache.
    pub transfers: f64,
    /// Lines read from the memory of the own node.
    pub local_reads: f64,
    /// Lines read from the memory of other nodes.
    pub remote_reads: f64,
    /// Seconds.
    pub read_time: f64,
}

/// One window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowAmounts {
    /// When it began in the profiled run, nanoseconds.
    pub start: u64,
    /// Seconds.
    pub time: f64,
    /// Instructions executed.
    pub instructions: f64,
    /// Misses of the last level of caches.
    pub last_level_misses: f64,
    /// Lines that went from cache to cache.
    pub transfers: f64,
    /// Bytes by link.
    pub link_bytes: f64,
    /// Lines read from and written to memory.
    pub dram: f64,
    /// Those of them from or to another node.
    pub remote_dram: f64,
    /// Joule.
    pub energy: f64,
}

impl PredictedAmounts {
    /// Lines read from and written to any memory.
    #[must_use]
    pub fn dram(&self) -> f64 {
        let sum = |n: &NodeAmounts| n.local_reads + n.local_writes;
        self.nodes.iter().map(sum).sum::<f64>() + self.remote_dram()
    }

    /// Those of them that came from another node.
    #[must_use]
    pub fn remote_dram(&self) -> f64 {
        let sum = |n: &NodeAmounts| n.remote_reads + n.remote_writes;
        self.nodes.iter().map(sum).sum()
    }

    /// Lines that went from cache to cache.
    #[must_use]
    pub fn transfers(&self) -> f64 {
        self.transfers_inside + self.transfers_between
    }
}
