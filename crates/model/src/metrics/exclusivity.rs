//! How many of the accesses to a page come from one NUMA node, given the node of each
//! thread: page exclusivity (OPT eq. 5), application exclusivity (OPT eq. 6) and the
//! histogram of kMAF figure 2.
use super::page_access::{PageAccessTable, ThreadPageAccesses};
use hither_profile::NodeIx;
use serde::Serialize;

/// Bins of the histogram: exclusivity rounded to 0 %, 10 %, ... 100 % (kMAF 2.2).
pub const EXCLUSIVITY_BINS: usize = 11;

/// MemAcc\[p\]\[n\]: accesses to one page from each node, into `per_node` (one cell per node).
pub fn accesses_per_node(uses: &[ThreadPageAccesses], node_of: &[NodeIx], per_node: &mut [u64]) {
    per_node.fill(0);
    for u in uses {
        per_node[node_of[u.thread().at()].at()] += u.accesses();
    }
}

/// E_page (OPT eq. 5), 1/N to 1; `None` for a page without accesses.
#[must_use]
pub fn page_exclusivity(per_node: &[u64]) -> Option<f64> {
    let total: u64 = per_node.iter().sum();
    let max = *per_node.iter().max()?;
    (total > 0).then(|| max as f64 / total as f64)
}

/// The exclusivity of a set of pages under one assignment of threads to nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExclusivityMetrics {
    /// E_app (OPT eq. 6), 1/N to 1.
    pub app: f64,
    /// Mean of E_page over pages, unweighted.
    pub page_mean: f64,
    /// Pages by exclusivity rounded to the nearest 10 % (kMAF figure 2).
    pub histogram_pages: [u64; EXCLUSIVITY_BINS],
    /// Accesses to those pages.
    pub histogram_accesses: [u64; EXCLUSIVITY_BINS],
}

/// Exclusivity over the pages named by `pages`; `None` when they have no access.
pub fn exclusivity_of(
    table: &PageAccessTable,
    pages: impl Iterator<Item = usize>,
    nodes: usize,
    node_of: &[NodeIx],
) -> Option<ExclusivityMetrics> {
    let mut out = ExclusivityMetrics::default();
    let mut per_node = vec![0; nodes];
    let (mut most, mut all, mut sum, mut count) = (0.0, 0.0, 0.0, 0u64);
    for page in pages {
        accesses_per_node(table.uses(page), node_of, &mut per_node);
        let Some(e) = page_exclusivity(&per_node) else {
            continue;
        };
        let accesses: u64 = per_node.iter().sum();
        most += per_node.iter().max().copied().unwrap_or(0) as f64;
        all += accesses as f64;
        sum += e;
        count += 1;
        let bin = (e * (EXCLUSIVITY_BINS - 1) as f64).round() as usize;
        out.histogram_pages[bin] += 1;
        out.histogram_accesses[bin] = out.histogram_accesses[bin].saturating_add(accesses);
    }
    if count == 0 {
        return None;
    }
    out.app = most / all;
    out.page_mean = sum / count as f64;
    Some(out)
}

/// Exclusivity over all pages of a table.
#[must_use]
pub fn exclusivity(
    table: &PageAccessTable,
    nodes: usize,
    node_of: &[NodeIx],
) -> Option<ExclusivityMetrics> {
    exclusivity_of(table, 0..table.len(), nodes, node_of)
}
