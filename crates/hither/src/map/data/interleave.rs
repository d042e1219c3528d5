//! Interleave: pages in turn on every node, so that all memory controllers work, whoever
//! uses the pages (OPT 3.3).
use super::fill::Fill;
use super::{DataPolicy, DataProblem};
use hither_profile::NodeIx;

pub struct Interleave;

impl DataPolicy for Interleave {
    fn name(&self) -> &'static str {
        "interleave"
    }

    fn about(&self) -> &'static str {
        "pages in turn on every node that has processing units"
    }

    fn place(&self, problem: &DataProblem) -> Result<Vec<NodeIx>, String> {
        let mut fill = Fill::new(problem)?;
        let free = fill.free(|_, _| ());
        deal(&mut fill, &free)?;
        fill.finish()
    }
}

/// Puts pages on the serving nodes in turn; a full node loses its turn to the nearest one
/// with room.
///
/// # Errors
/// When no node has room.
pub(super) fn deal(fill: &mut Fill, pages: &[usize]) -> Result<(), String> {
    let turns = fill.nodes.serving.clone();
    for (&page, &turn) in pages.iter().zip(turns.iter().cycle()) {
        let node = fill.best(page, |n| Some(fill.nearness(turn, n)))?;
        fill.put(page, node);
    }
    Ok(())
}
