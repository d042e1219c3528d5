//! Balanced: evens the accesses that each memory controller serves, using the pages that
//! no node uses much more than others.
//!
//! A page may go to any node n with max(NV) <= 2 * NV\[n\] + 1: by eq. 6 of kMAF such a page
//! does not belong to the node with max(NV) rather than to n. A page of high exclusivity has one
//! such node and stays there; one that all nodes use equally may go to any node.
use super::kmaf::KmafPolicy;
use super::page_placer::{NodeAccesses, PagePlacer};
use super::{DataPolicy, DataProblem};
use hither_profile::NodeIx;
use std::cmp::Reverse;

/// The data policy `balanced`: evens the accesses per memory controller; see the module.
#[derive(Default)]
pub struct BalancedDataPolicy {
    /// When a page is highly exclusive.
    pub exclusive: KmafPolicy,
}

impl BalancedDataPolicy {
    fn is_candidate(&self, per_node: &NodeAccesses, highest: u64, node: usize) -> bool {
        per_node.0[node] == highest || !self.exclusive.should_migrate(highest, per_node.0[node])
    }
}

impl DataPolicy for BalancedDataPolicy {
    fn name(&self) -> &'static str {
        "balanced"
    }

    fn about(&self) -> &'static str {
        "pages of one node there, the others where the memory controller has least to do"
    }

    /// Exclusive pages first, since they have no choice, then those with most accesses. A
    /// page that is known to be on a node it may be on stays there while that node has less
    /// than its share, so that small changes of behaviour do not move everything.
    fn place(&self, problem: &DataProblem) -> Result<Vec<NodeIx>, String> {
        let fill = PagePlacer::with_load(problem)?;
        let (_, average) = fill.total_and_average();
        let weight = |fill: &PagePlacer, page: usize| {
            let per_node = fill.accesses(page);
            let (highest, second) = per_node.two_highest();
            (
                self.exclusive.should_migrate(highest, second),
                per_node.total(),
            )
        };
        fill.place_each(weight, |fill, page| {
            let (per_node, home) = (fill.accesses(page), fill.default_node(page));
            let (highest, _) = per_node.two_highest();
            let evens = |n: usize| {
                let may =
                    fill.nodes.serving.contains(&n) && self.is_candidate(&per_node, highest, n);
                // Pages without accesses are no load: they stay.
                let load = if highest > 0 { fill.load[n] } else { 0 };
                let stays = fill.current_node(page) == Some(n) && (fill.load[n] as f64) < average;
                may.then(|| (stays, Reverse(load), per_node.0[n], fill.nearness(home, n)))
            };
            let best = fill.best_node_if_any(page, evens);
            best.map_or_else(|| fill.most_access_node(page), Ok)
        })
    }
}
