//! What a simulation counts. All of it adds up: over threads, windows and structures.
use std::ops::AddAssign;

/// Why a line was not in a cache (SPCD II.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissKind {
    /// The cache never had it.
    Cold,
    /// It was evicted to make room.
    Capacity,
    /// Another thread's write invalidated it.
    Invalidation,
    /// It was evicted to make room while another cache of the level had a copy too: without
    /// copies there would be more room.
    Replication,
}

/// Of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelCounts {
    /// Demand accesses of cores that came as far as this level.
    pub accesses: u64,
    /// Those that did not find their line, by [`MissKind`]. An upgrade of a read-only line counts
    /// as an invalidation, not as a miss.
    pub misses: [u64; 4],
    /// Lines fetched ahead, and those of them that were used before they left.
    pub prefetches: u64,
    /// Prefetched lines that were used before they left.
    pub useful: u64,
    /// Everything that costs energy: accesses, fills, probes.
    pub touches: u64,
}

/// Of one node's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// Lines read by cores whose nearest node this is.
    pub local_reads: u64,
    /// Lines read by other cores.
    pub remote_reads: u64,
    /// Lines written back from caches whose nearest node this is.
    pub local_writes: u64,
    /// Lines written back from other caches.
    pub remote_writes: u64,
    /// Rows opened: requests that did not find theirs open.
    pub rows: u64,
}

/// Counts that are kept per thread, per structure and over time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ActivityCounts {
    /// Reads and writes.
    pub accesses: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// Misses of the first and of the last level.
    pub first_misses: u64,
    /// Misses of the last level.
    pub last_misses: u64,
    /// Lines received from another cache, except through a shared one.
    pub transfers: u64,
    /// Lines read from the memory of the nearest node.
    pub local_reads: u64,
    /// Lines read from the memory of other nodes.
    pub remote_reads: u64,
    /// Cycles from the issue of reads to their data, summed.
    pub read_time: f64,
}

impl ActivityCounts {
    /// Adds another's misses, transfers and memory reads.
    pub fn add_events(&mut self, other: &ActivityCounts) {
        self.first_misses += other.first_misses;
        self.last_misses += other.last_misses;
        self.transfers += other.transfers;
        self.local_reads += other.local_reads;
        self.remote_reads += other.remote_reads;
    }
}

/// Of a run, or a part of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimulationCounts {
    /// Instructions executed.
    pub instructions: u64,
    /// Reads and writes.
    pub accesses: u64,
    /// Cycles from the first counted access to the end of the last thread; of windows, their sum.
    pub cycles: f64,
    /// Cycles summed over the cores while a thread was on them.
    pub busy: f64,
    /// By level of caches, from the first.
    pub levels: Vec<LevelCounts>,
    /// Copies invalidated by other cores' writes.
    pub invalidations: u64,
    /// Lines that went from cache to cache within a package, and between packages.
    pub transfers_inside: u64,
    /// Lines that went from cache to cache between packages.
    pub transfers_between: u64,
    /// By link, in the order of `InterconnectParameters::links`.
    pub link_bytes: Vec<u64>,
    /// By node.
    pub nodes: Vec<NodeCounts>,
    /// Cycles from the issue of reads to their data, summed, and the reads.
    pub read_time: f64,
    /// Reads of the cores.
    pub reads: u64,
}

impl AddAssign<&SimulationCounts> for SimulationCounts {
    fn add_assign(&mut self, other: &SimulationCounts) {
        self.instructions += other.instructions;
        self.accesses += other.accesses;
        self.cycles += other.cycles;
        self.busy += other.busy;
        self.levels.resize(
            self.levels.len().max(other.levels.len()),
            LevelCounts::default(),
        );
        for (a, b) in self.levels.iter_mut().zip(&other.levels) {
            a.accesses += b.accesses;
            for (x, y) in a.misses.iter_mut().zip(b.misses) {
                *x += y;
            }
            a.prefetches += b.prefetches;
            a.useful += b.useful;
            a.touches += b.touches;
        }
        self.invalidations += other.invalidations;
        self.transfers_inside += other.transfers_inside;
        self.transfers_between += other.transfers_between;
        self.link_bytes
            .resize(self.link_bytes.len().max(other.link_bytes.len()), 0);
        for (a, b) in self.link_bytes.iter_mut().zip(&other.link_bytes) {
            *a += b;
        }
        self.nodes.resize(
            self.nodes.len().max(other.nodes.len()),
            NodeCounts::default(),
        );
        for (a, b) in self.nodes.iter_mut().zip(&other.nodes) {
            a.local_reads += b.local_reads;
            a.remote_reads += b.remote_reads;
            a.local_writes += b.local_writes;
            a.remote_writes += b.remote_writes;
            a.rows += b.rows;
        }
        self.read_time += other.read_time;
        self.reads += other.reads;
    }
}
