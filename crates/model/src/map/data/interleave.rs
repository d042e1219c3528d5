//! Interleave: pages in turn on every node, so that all memory controllers work, whichever
//! threads use the pages (OPT 3.3).
use super::page_placer::PagePlacer;
use super::{DataPolicy, DataProblem};
use hither_profile::NodeIx;

/// The page policy `interleave`: node = page number modulo nodes.
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
        let mut fill = PagePlacer::new(problem)?;
        for page in fill.unplaced_pages(|_, _| ()) {
            let turn = fill.page(page).number as usize;
            place_round_robin(&mut fill, page, turn)?;
        }
        fill.finish()
    }
}

/// Places a page on the node whose turn it is, or on the nearest one with room.
///
/// # Errors
/// When no node has room.
pub(super) fn place_round_robin(
    fill: &mut PagePlacer,
    page: usize,
    turn: usize,
) -> Result<(), String> {
    let serving = &fill.nodes.serving;
    let at = serving
        .get(turn % serving.len().max(1))
        .copied()
        .unwrap_or(0);
    let node = fill.best_node(page, |n| Some(fill.nearness(at, n)))?;
    fill.place_page(page, node);
    Ok(())
}
