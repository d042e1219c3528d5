//! A machine file as it is written: docs/simulation.md describes each key. Latencies are in ns or
//! in core cycles, as they were published; nothing is converted here.
use crate::simulate::simulated_machine::{CoherenceProtocol, PrefetcherKind, ReplacementPolicy};
use serde::Deserialize;
use toml::Spanned;

/// A number with its place in the file.
pub type SpannedNumber = Spanned<f64>;
pub type SpannedCount = Spanned<u64>;
pub type SpannedText = Spanned<String>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineFile {
    pub title: String,
    /// What the model leaves out of this machine.
    pub note: Option<String>,
    /// Bytes of a cache line.
    pub line: SpannedCount,
    pub core: CoreTable,
    pub coherence: CoherenceTable,
    /// The nearest to the core first.
    #[serde(rename = "cache")]
    pub caches: Vec<Spanned<CacheTable>>,
    pub memory: Spanned<MemoryTable>,
    /// Of nodes without units.
    pub far_memory: Option<Spanned<MemoryTable>>,
    #[serde(rename = "link", default)]
    pub links: Vec<Spanned<LinkTable>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreTable {
    pub frequency_ghz: SpannedNumber,
    /// Instructions a cycle.
    pub width: SpannedNumber,
    /// Entries of the reorder buffer.
    pub window: SpannedCount,
    pub misses: SpannedCount,
    pub static_w: SpannedNumber,
    pub instruction_nj: SpannedNumber,
    pub source: SpannedText,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoherenceTable {
    pub protocol: CoherenceProtocol,
    pub inside_ns: Option<SpannedNumber>,
    pub inside_cycles: Option<SpannedNumber>,
    pub data_bytes: SpannedCount,
    pub control_bytes: SpannedCount,
    pub source: SpannedText,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheTable {
    /// 1 is the nearest to the core.
    pub level: SpannedCount,
    /// Of one cache, where the topology does not say it.
    pub bytes: SpannedCount,
    pub ways: SpannedCount,
    /// Left out where the topology has no such cache.
    #[serde(default)]
    pub optional: bool,
    /// Cores that share one, where the topology does not say it.
    pub cores: Option<SpannedCount>,
    pub replacement: ReplacementPolicy,
    pub latency_ns: Option<SpannedNumber>,
    pub latency_cycles: Option<SpannedNumber>,
    #[serde(default)]
    pub inclusive: bool,
    pub prefetch: Option<Spanned<PrefetcherKind>>,
    /// Of one cache of `bytes`.
    pub static_w: SpannedNumber,
    pub access_nj: SpannedNumber,
    pub source: SpannedText,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryTable {
    /// Of a package; of a node that belongs to none.
    pub channels: SpannedCount,
    /// Of a channel, over its ranks.
    pub banks: SpannedCount,
    pub row_bytes: SpannedCount,
    /// Million transfers a second, and bytes of one.
    pub megatransfers: SpannedNumber,
    pub bus_bytes: SpannedCount,
    /// Clocks of the memory; one has two transfers.
    pub cl: SpannedNumber,
    pub rcd: SpannedNumber,
    pub rp: SpannedNumber,
    /// Load to data, on an idle machine, with the row closed.
    pub latency_ns: Option<SpannedNumber>,
    pub latency_cycles: Option<SpannedNumber>,
    /// Of a channel.
    pub controller_static_w: SpannedNumber,
    pub request_nj: SpannedNumber,
    /// Of a channel.
    pub dram_static_w: SpannedNumber,
    pub line_nj: SpannedNumber,
    pub row_nj: SpannedNumber,
    pub source: SpannedText,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum LinkScope {
    /// Nodes of different packages.
    Packages,
    /// Nodes of one package.
    Nodes,
    /// Each last cache and its node, where a node has several.
    Caches,
    /// Packages, and memory of no package or of all.
    Memory,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum LinkShape {
    #[default]
    Mesh,
    Ring,
    Line,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkTable {
    pub between: LinkScope,
    #[serde(default)]
    pub shape: LinkShape,
    pub latency_ns: Option<SpannedNumber>,
    pub latency_cycles: Option<SpannedNumber>,
    /// GB/s in each direction; between packages, of all links of a pair together.
    pub bandwidth_gbs: SpannedNumber,
    /// Of one direction.
    pub static_w: SpannedNumber,
    pub byte_nj: SpannedNumber,
    pub source: SpannedText,
}
