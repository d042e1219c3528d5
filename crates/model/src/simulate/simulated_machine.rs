//! The machine that is simulated: everything the engine needs to know, with all names resolved
//! to numbers. `machine_file/` makes it of a [`crate::topology::TopologyTree`] and a machine file.
use serde::Deserialize;

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedMachine {
    /// What each core can do.
    pub core: CoreParameters,
    /// The caches between cores and memory, the nearest first. All lines have one length.
    pub levels: Vec<CacheLevelParameters>,
    /// Bytes, a power of two.
    pub line: u32,
    /// How caches are kept coherent.
    pub protocol: CoherenceProtocol,
    /// By position in `TopologyTree::units`.
    pub units: Vec<PuParameters>,
    /// Number of packages (sockets).
    pub packages: u32,
    /// By `NodeIx`, memory-only ones included.
    pub nodes: Vec<NodeParameters>,
    /// The interconnect.
    pub links: InterconnectParameters,
    /// Coefficients of energy.
    pub energy: EnergyCoefficients,
}

/// What all cores have in common. Frequencies are fixed: all latencies are in core cycles.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreParameters {
    /// GHz.
    pub frequency: f64,
    /// Instructions that retire in a cycle without stalls.
    pub width: f64,
    /// Entries of the reorder buffer; SMT siblings that both run share them.
    pub window: u32,
    /// Most outstanding misses of the first level (MSHRs).
    pub misses: u32,
}

/// One level of cache; all its caches are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheLevelParameters {
    /// "L1d", "L2", "L3".
    pub name: String,
    /// Capacity of one cache, bytes.
    pub bytes: u64,
    /// Of a set; sets = bytes / (ways * line), any number of them.
    pub ways: u32,
    /// Which line is evicted when a set is full.
    pub replacement: ReplacementPolicy,
    /// Cycles from the core to data that are found here, including the lookups in the levels
    /// before.
    pub latency: u32,
    /// Holds every line of the caches below (nearer to a core): an eviction here evicts there too.
    pub inclusive: bool,
    /// The level's prefetcher, if it has one.
    pub prefetch: Option<PrefetcherKind>,
    /// Number of caches.
    pub caches: u32,
}

impl CacheLevelParameters {
    /// Sets of a cache, for lines of `line` bytes; 0 where not even one fits.
    #[must_use]
    pub fn sets(&self, line: u32) -> u32 {
        let set = u64::from(self.ways) * u64::from(line);
        u32::try_from(self.bytes.checked_div(set).unwrap_or(0)).unwrap_or(u32::MAX)
    }
}

/// Replacement policy of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplacementPolicy {
    /// The least recently used line leaves.
    Lru,
    /// Tree pseudo-LRU over the ways, rounded up to a power of two.
    PseudoLru,
}

/// A hardware prefetcher.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PrefetcherKind {
    /// By the distance between accesses of one place in the code or, where that is unknown,
    /// within one page: `degree` lines ahead once a distance was seen twice.
    Stride {
        /// Lines fetched at a time.
        degree: u32,
    },
    /// Ascending or descending runs of lines within a page: `degree` lines, at most `distance`
    /// lines ahead, of `streams` runs at a time.
    Stream {
        /// Runs followed at a time.
        streams: u32,
        /// Lines fetched at a time.
        degree: u32,
        /// Farthest line ahead that is fetched.
        distance: u32,
    },
}

/// Coherence protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoherenceProtocol {
    /// A dirty line that another cache reads is written back.
    Mesi,
    /// It stays dirty in its owner's cache, which supplies it.
    Moesi,
}

/// A processing unit.
#[derive(Clone, Debug, PartialEq)]
pub struct PuParameters {
    /// Number of its core; SMT siblings share one.
    pub core: u32,
    /// Number of its package.
    pub package: u32,
    /// The node whose memory is the nearest: a position in [`SimulatedMachine::nodes`].
    pub node: u32,
    /// Its endpoint of the interconnect, mostly its node: see [`InterconnectParameters`].
    pub at: u32,
    /// Number of its cache at each level.
    pub caches: Vec<u32>,
}

/// A node's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeParameters {
    /// Number of the package it belongs to.
    pub package: u32,
    /// Organisation and timing of its memory.
    pub dram: DramParameters,
}

/// Times in core cycles.
#[derive(Clone, Debug, PartialEq)]
pub struct DramParameters {
    /// Channels of the node.
    pub channels: u32,
    /// Of a channel, over all its ranks.
    pub banks: u32,
    /// Bytes.
    pub row: u32,
    /// From the request at the controller to the data, beyond the array's own times.
    pub controller: f64,
    /// Column access (CL), activation (RCD), precharge (RP), transfer of a line (burst).
    pub cas: f64,
    /// Row activation (tRCD).
    pub rcd: f64,
    /// Precharge (tRP).
    pub rp: f64,
    /// Transfer of a line.
    pub burst: f64,
}

/// The interconnect. Its endpoints are the nodes, by their number, and after them other parts that
/// units are attached to: a package of a machine with one memory for several, a core complex with a
/// link of its own to the rest of its package. A request follows `routes`, a link at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterconnectParameters {
    /// All links, one direction each.
    pub links: Vec<LinkParameters>,
    /// `routes[from][to]`, by endpoint: positions in `links`, in order; empty where from = to.
    /// Every endpoint can be reached from every other.
    pub routes: Vec<Vec<Vec<u32>>>,
    /// Bytes on a link: a message with a line of data, and one without.
    pub data_bytes: u32,
    /// Bytes of a message without a line of data.
    pub control_bytes: u32,
    /// From a cache to a cache beside it, with nothing but the package between (cycles), on top of
    /// the last level that both share.
    pub inside: u32,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkParameters {
    /// Endpoint it starts from.
    pub from: u32,
    /// Endpoint it leads to.
    pub to: u32,
    /// Cycles for a message to cross it.
    pub latency: f64,
    /// Bytes a cycle.
    pub bandwidth: f64,
    /// Whether it leaves the package.
    pub between_packages: bool,
}

/// Coefficients. Static power lasts as long as the run does; dynamic energy is per event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnergyCoefficients {
    /// W of one core, and nJ of an instruction.
    pub core_static: f64,
    /// nJ of an instruction.
    pub instruction: f64,
    /// By level: W of one cache, nJ of an access (a fill counts as one).
    pub cache_static: Vec<f64>,
    /// By level: nJ of an access.
    pub cache_access: Vec<f64>,
    /// By link: W of it, nJ of a byte on it.
    pub link_static: Vec<f64>,
    /// By link: nJ of a byte.
    pub link_byte: Vec<f64>,
    /// By node: W of its memory controllers, nJ of a request.
    pub controller_static: Vec<f64>,
    /// By node: nJ of a request to its controllers.
    pub controller_request: Vec<f64>,
    /// By node: W of its memory, nJ of a line read or written, and of a row opened.
    pub dram_static: Vec<f64>,
    /// By node: nJ of a line read or written.
    pub dram_line: Vec<f64>,
    /// By node: nJ of a row opened.
    pub dram_row: Vec<f64>,
}
