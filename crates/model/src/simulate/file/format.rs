//! A machine file as it is written: docs/simulation.md tells of each key. Latencies are in ns or
//! in core cycles, as they were published; nothing is converted here.
use serde::Deserialize;
use toml::Spanned;

/// A number with its place in the file.
pub type Number = Spanned<f64>;
pub type Count = Spanned<u64>;
pub type Text = Spanned<String>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub title: String,
    /// What the model leaves out of this machine.
    pub note: Option<String>,
    /// Bytes of a cache line.
    pub line: Count,
    pub core: Core,
    pub coherence: Coherence,
    /// The nearest to the core first.
    #[serde(rename = "cache")]
    pub caches: Vec<Spanned<Cache>>,
    pub memory: Spanned<Memory>,
    /// Of nodes without units.
    pub far_memory: Option<Spanned<Memory>>,
    #[serde(rename = "link", default)]
    pub links: Vec<Spanned<Link>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    pub frequency_ghz: Number,
    /// Instructions a cycle.
    pub width: Number,
    /// Entries of the reorder buffer.
    pub window: Count,
    pub misses: Count,
    pub static_w: Number,
    pub instruction_nj: Number,
    pub source: Text,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    Mesi,
    Moesi,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coherence {
    pub protocol: Protocol,
    pub inside_ns: Option<Number>,
    pub inside_cycles: Option<Number>,
    pub data_bytes: Count,
    pub control_bytes: Count,
    pub source: Text,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    Lru,
    PseudoLru,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// 1 is the nearest to the core.
    pub level: Count,
    /// Of one cache, where the topology does not say it.
    pub bytes: Count,
    pub ways: Count,
    /// Left out where the topology has no such cache.
    #[serde(default)]
    pub optional: bool,
    /// Cores that share one, where the topology does not say it.
    pub cores: Option<Count>,
    pub replacement: Replacement,
    pub latency_ns: Option<Number>,
    pub latency_cycles: Option<Number>,
    #[serde(default)]
    pub inclusive: bool,
    pub prefetch: Option<Spanned<Prefetch>>,
    /// Of one cache of `bytes`.
    pub static_w: Number,
    pub access_nj: Number,
    pub source: Text,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Prefetch {
    Stride {
        degree: u32,
    },
    Stream {
        streams: u32,
        degree: u32,
        distance: u32,
    },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Of a package; of a node that belongs to none.
    pub channels: Count,
    /// Of a channel, over its ranks.
    pub banks: Count,
    pub row_bytes: Count,
    /// Million transfers a second, and bytes of one.
    pub megatransfers: Number,
    pub bus_bytes: Count,
    /// Clocks of the memory; one has two transfers.
    pub cl: Number,
    pub rcd: Number,
    pub rp: Number,
    /// From the load to the data, nothing else under way and the row closed.
    pub latency_ns: Option<Number>,
    pub latency_cycles: Option<Number>,
    /// Of a channel.
    pub controller_static_w: Number,
    pub request_nj: Number,
    /// Of a channel.
    pub dram_static_w: Number,
    pub line_nj: Number,
    pub row_nj: Number,
    pub source: Text,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// Nodes of different packages.
    Packages,
    /// Nodes of one package.
    Nodes,
    /// Each last cache and its node, where a node has several.
    Caches,
    /// Packages, and memory that is nobody's own or everybody's.
    Memory,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    #[default]
    Mesh,
    Ring,
    Line,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub between: Between,
    #[serde(default)]
    pub shape: Shape,
    pub latency_ns: Option<Number>,
    pub latency_cycles: Option<Number>,
    /// GB/s in each direction; between packages, of all links of a pair together.
    pub bandwidth_gbs: Number,
    /// Of one direction.
    pub static_w: Number,
    pub byte_nj: Number,
    pub source: Text,
}
