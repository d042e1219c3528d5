//! A mix of locality and balance with one parameter, after the Balanced Locality policy for
//! threads (Locality and Balance, section 4): there, threads go to close units until a unit
//! has more communication than the average. Here, pages go to the nodes that access them
//! most until a node serves more accesses than
//!
//! ```text
//!   average + mix * (total - average)
//! ```
//! so that mix is the imbalance allowed, as a share of the worst there can be: with B of
//! eq. 2 taken over memory controllers, B <= mix * (N - 1) * 100 %, give or take one page.
//! 0 is the paper's rule, 1 is most-access. Nodes on which no thread runs count too: their
//! controllers can help, at the price of remote accesses.
use super::page_placer::PagePlacer;
use super::{DataPolicy, DataProblem};
use hither_profile::NodeIx;

/// The data policy `locality-balance`: most-access up to a limit per node; see the module.
pub struct LocalityBalancePolicy {
    /// 0 (balance) to 1 (locality).
    pub mix: f64,
}

impl LocalityBalancePolicy {
    /// Ours: enough to leave pages that are slightly out of balance where they are used.
    pub const DEFAULT: LocalityBalancePolicy = LocalityBalancePolicy { mix: 0.1 };

    /// Accesses at which a node stops taking pages.
    fn access_limit(&self, fill: &PagePlacer) -> f64 {
        let (total, average) = fill.total_and_average();
        average + self.mix * (total - average)
    }
}

impl DataPolicy for LocalityBalancePolicy {
    fn name(&self) -> &'static str {
        "locality-balance"
    }

    fn about(&self) -> &'static str {
        "most-access until a node has its fill; locality-balance:0 evens, :1 is most-access"
    }

    fn place(&self, problem: &DataProblem) -> Result<Vec<NodeIx>, String> {
        let fill = PagePlacer::with_load(problem)?;
        let limit = self.access_limit(&fill);
        fill.place_each(PagePlacer::by_penalty, |fill, page| {
            let (per_node, home) = (fill.accesses(page), fill.default_node(page));
            // Pages without accesses are no load: no node is too busy for them.
            let idle = per_node.total() == 0;
            let below = |n: usize| {
                let fresh = fill.nodes.serving.contains(&n) && (fill.load[n] as f64) < limit;
                (fresh || idle).then(|| (per_node.0[n], fill.nearness(home, n)))
            };
            let best = fill.best_node_if_any(page, below);
            best.map_or_else(|| fill.most_access_node(page), Ok)
        })
    }
}
