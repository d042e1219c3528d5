//! The call paths by which heap blocks are allocated, as perf shows call chains: structures
//! allocated by an allocator class or `xmalloc` are told apart by their callers.
use hither_profile::{AllocationPath, Profile};
use serde::Serialize;

/// A call path, and what was allocated by it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AllocationPathMetrics {
    /// Name of the structure.
    pub structure: String,
    /// `function (file:line)` of the calls, innermost first.
    pub calls: Vec<String>,
    /// Its blocks and their accesses.
    #[serde(flatten)]
    pub blocks: AllocationPath,
    /// Of the accesses of the run.
    pub share: f64,
}

/// All paths, most accesses first.
#[must_use]
pub fn allocation_paths(profile: &Profile) -> Vec<AllocationPathMetrics> {
    let total: u64 = profile.threads.iter().map(|t| t.accesses()).sum();
    let mut paths: Vec<_> = profile.allocation_paths.iter().collect();
    paths.sort_by_key(|p| std::cmp::Reverse(p.reads + p.writes));
    let metrics = paths.into_iter().map(|p| AllocationPathMetrics {
        structure: profile.objects[p.object.at()].name.clone(),
        calls: calls(&p.path),
        blocks: p.clone(),
        share: (p.reads + p.writes) as f64 / total.max(1) as f64,
    });
    metrics.collect()
}

/// A folded stack taken apart, innermost first.
pub(super) fn calls(path: &str) -> Vec<String> {
    let calls = path.split(';').rev().filter(|call| !call.is_empty());
    calls.map(str::to_owned).collect()
}
