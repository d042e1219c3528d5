//! kMAF's data affinity (kMAF 3.3), run over the slices of a profile: a page starts where it
//! is first touched, and moves when one node has used it clearly more than any other.
//!
//! NV\[n\] counts accesses from node n. After each slice:
//!
//! ```text
//!   Migrate = max(NV) > 2 * max2(NV) + 1          (eq. 6)
//! ```
//! to the node with max(NV), if the page is not there; every migration halves all of NV, so
//! that old behaviour counts less. kMAF counts sampled page faults and decides at each;
//! a profile has all accesses, and its slices are the steps. kMAF waits with pages until
//! threads are placed for the first time; here they are from the start.
use super::page_placer::{NodeAccesses, PagePlacer};
use super::{DataPolicy, DataProblem};
use hither_profile::NodeIx;

/// The constants of eq. 6 and of the ageing; the default is the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KmafPolicy {
    /// How many times the second highest count the highest must exceed ...
    pub ratio: u64,
    /// ... and by how many accesses more.
    pub margin: u64,
    /// What the counts of a page are divided by when it moves; 1 for no ageing.
    pub ageing: u64,
}

impl KmafPolicy {
    /// kMAF with the constants of its paper.
    pub const PAPER: KmafPolicy = KmafPolicy {
        ratio: 2,
        margin: 1,
        ageing: 2,
    };

    /// Eq. 6: whether the highest count says that the page belongs to its node.
    #[must_use]
    pub fn should_migrate(&self, highest: u64, second: u64) -> bool {
        highest
            > second
                .saturating_mul(self.ratio)
                .saturating_add(self.margin)
    }

    /// Where a page that starts at `home` is in the end.
    fn final_node(&self, fill: &PagePlacer, page: usize, home: usize) -> usize {
        let mut nv = NodeAccesses(vec![0; fill.load.len()]);
        let mut at = home;
        let uses = fill.problem.pages.uses(page);
        for step in uses.chunk_by(|a, b| a.slice == b.slice) {
            for u in step {
                if let Some(n) = fill.nodes.of_thread(u.thread) {
                    nv.0[n] = nv.0[n].saturating_add(u.accesses);
                }
            }
            let (highest, second) = nv.two_highest();
            let best = nv.0.iter().position(|&n| n == highest).unwrap_or(at);
            if best != at && self.should_migrate(highest, second) {
                at = best;
                for n in &mut nv.0 {
                    *n /= self.ageing.max(1);
                }
            }
        }
        at
    }
}

impl Default for KmafPolicy {
    fn default() -> Self {
        KmafPolicy::PAPER
    }
}

impl DataPolicy for KmafPolicy {
    fn name(&self) -> &'static str {
        "kmaf"
    }

    fn about(&self) -> &'static str {
        "each page where kMAF would have moved it by the end of the run (kMAF eq. 6)"
    }

    fn place(&self, problem: &DataProblem) -> Result<Vec<NodeIx>, String> {
        let mut fill = PagePlacer::new(problem)?;
        for page in fill.unplaced_pages(|per_node, _| (per_node.remote_penalty(), per_node.total()))
        {
            let at = self.final_node(&fill, page, fill.default_node(page));
            let node = fill.best_node(page, |n| Some(fill.nearness(at, n)))?;
            fill.place_page(page, node);
        }
        fill.finish()
    }
}
