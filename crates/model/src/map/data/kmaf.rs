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
use super::{DataPolicy, DataProblem, PageHistory, PageMoves, PageSliceUse};
use crate::map::migration::{MigrationLimits, PhaseRule};
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

    /// The moves of a page that starts at `home`: the step of each, and the node. `steps` are the
    /// accesses from each node.
    fn moves<'a>(
        &self,
        home: usize,
        steps: impl Iterator<Item = &'a [u64]>,
    ) -> Vec<(usize, usize)> {
        let mut nv = NodeAccesses::default();
        let mut at = home;
        let mut moves = Vec::new();
        for (number, step) in steps.enumerate() {
            nv.0.resize(step.len(), 0);
            for (sum, accesses) in nv.0.iter_mut().zip(step) {
                *sum = sum.saturating_add(*accesses);
            }
            let (highest, second) = nv.two_highest();
            let best = nv.0.iter().position(|&n| n == highest).unwrap_or(at);
            if best != at && self.should_migrate(highest, second) {
                at = best;
                moves.push((number, at));
                for n in &mut nv.0 {
                    *n /= self.ageing.max(1);
                }
            }
        }
        moves
    }

    /// Where a page that starts at `home` is in the end.
    fn final_node(&self, fill: &PagePlacer, page: usize, home: usize) -> usize {
        let uses: Vec<PageSliceUse> = fill.problem.pages.uses(page).collect();
        let steps = uses.chunk_by(|a, b| a.slice == b.slice).map(|step| {
            let mut by_node = vec![0u64; fill.load.len()];
            for u in step {
                if let Some(n) = fill.nodes.of_thread(u.thread) {
                    by_node[n] = by_node[n].saturating_add(u.accesses);
                }
            }
            by_node
        });
        let steps: Vec<Vec<u64>> = steps.collect();
        let moves = self.moves(home, steps.iter().map(Vec::as_slice));
        moves.last().map_or(home, |(_, node)| *node)
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
        let choose = |fill: &PagePlacer, page| {
            let at = self.final_node(fill, page, fill.default_node(page));
            fill.nearest_node(page, at)
        };
        PagePlacer::new(problem)?.place_each_alone(PagePlacer::by_penalty, choose)
    }

    /// As kMAF moves it while the program runs: from its first toucher's node, after the step that
    /// shows where it belongs. The ageing goes on over all phases.
    fn follow(
        &self,
        history: &PageHistory,
        _rule: PhaseRule,
        _limits: &MigrationLimits,
    ) -> Option<PageMoves> {
        let steps = history.steps.iter().map(|s| s.by_node.as_slice());
        let moves = self.moves(history.home, steps).into_iter();
        let node = |n: usize| NodeIx(n as u32);
        // What a step shows is acted on at the next.
        let known = moves.filter(|(step, _)| step + 1 < history.steps.len());
        let later = known.map(|(step, n)| (step + 1, node(n)));
        Some(
            std::iter::once((0, node(history.home)))
                .chain(later)
                .collect(),
        )
    }
}
