//! Most access: a page is on the node that accesses it most, which makes Acc_page (OPT
//! eq. 8) 1 for every page as long as nodes have room.
use super::page_history::{most_access_moves, PageHistory, PageMoves};
use super::page_placer::PagePlacer;
use super::{DataPolicy, DataProblem};
use crate::map::migration::{MigrationLimits, PhaseRule};
use hither_profile::NodeIx;

/// The data policy `most-access`: each page on the node that accesses it most.
pub struct MostAccessPolicy;

impl DataPolicy for MostAccessPolicy {
    fn name(&self) -> &'static str {
        "most-access"
    }

    fn about(&self) -> &'static str {
        "each page on the node that accesses it most (OPT eq. 8)"
    }

    /// When a node is full, the pages that lose least go to their second best node. A page that
    /// several nodes access equally stays where it is.
    fn place(&self, problem: &DataProblem) -> Result<Vec<NodeIx>, String> {
        PagePlacer::new(problem)?
            .place_each_alone(PagePlacer::by_penalty, PagePlacer::most_access_node)
    }

    fn follow(
        &self,
        history: &PageHistory,
        rule: PhaseRule,
        limits: &MigrationLimits,
    ) -> Option<PageMoves> {
        Some(most_access_moves(history, rule, limits))
    }
}
