//! Random: each page on a node drawn from a seed, the baseline that pages placed for a reason are
//! compared with.
use super::page_placer::PagePlacer;
use super::{DataPolicy, DataProblem};
use crate::rng::Rng;
use hither_profile::NodeIx;

/// The data policy `random`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RandomDataPolicy {
    /// Another seed, another placement.
    pub seed: u64,
}

impl DataPolicy for RandomDataPolicy {
    fn name(&self) -> &'static str {
        "random"
    }

    fn about(&self) -> &'static str {
        "each page on a node drawn from --seed"
    }

    /// The node follows from the seed and the page's number in the profile.
    fn place(&self, problem: &DataProblem) -> Result<Vec<NodeIx>, String> {
        let seed = Rng::new(self.seed).next_u64();
        let draw = |fill: &PagePlacer, page| {
            let number = u64::from(fill.page(page).number);
            let drawn = Rng::new(seed ^ number).below(fill.nodes.serving.len().max(1));
            let at = fill.nodes.serving.get(drawn).copied().unwrap_or(0);
            fill.nearest_node(page, at)
        };
        PagePlacer::new(problem)?.place_each_alone(|_, _| (), draw)
    }

    fn ignores_threads(&self) -> bool {
        true
    }
}
