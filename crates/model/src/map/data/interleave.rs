//! Interleave: pages in turn on every node, so that all memory controllers work, whichever
//! threads use the pages (OPT 3.3).
use super::page_placer::PagePlacer;
use super::{DataPolicy, DataProblem};
use hither_profile::NodeIx;

/// The data policy `interleave`: node = page number modulo nodes.
pub struct InterleavePolicy;

impl DataPolicy for InterleavePolicy {
    fn name(&self) -> &'static str {
        "interleave"
    }

    fn about(&self) -> &'static str {
        "pages in turn on every node that has processing units"
    }

    /// The node follows from the page's number in the profile, so that it does not change when
    /// other pages are placed later.
    fn place(&self, problem: &DataProblem) -> Result<Vec<NodeIx>, String> {
        let in_turn = |fill: &PagePlacer, page| {
            let turn = fill.page(page).number as usize;
            round_robin_node(fill, page, turn)
        };
        PagePlacer::new(problem)?.place_each_alone(|_, _| (), in_turn)
    }

    fn ignores_threads(&self) -> bool {
        true
    }
}

/// The node whose turn it is, or the nearest one with room for the page.
///
/// # Errors
/// When no node has room.
pub(super) fn round_robin_node(
    fill: &PagePlacer,
    page: usize,
    turn: usize,
) -> Result<usize, String> {
    let serving = &fill.nodes.serving;
    let at = serving
        .get(turn % serving.len().max(1))
        .copied()
        .unwrap_or(0);
    fill.nearest_node(page, at)
}
