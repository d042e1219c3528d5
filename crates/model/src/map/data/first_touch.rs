//! First touch: a page is on the node of the thread that uses it first, Linux's default (OPT 3.3).
use super::page_placer::PagePlacer;
use super::{DataPolicy, DataProblem};
use hither_profile::NodeIx;
use std::cmp::Reverse;

/// The data policy `first-touch`: what Linux does by default.
pub struct FirstTouchPolicy;

impl DataPolicy for FirstTouchPolicy {
    fn name(&self) -> &'static str {
        "first-touch"
    }

    fn about(&self) -> &'static str {
        "each page on the node of the thread that touches it first (Linux's default)"
    }

    /// Pages in the order of their touches; if its node is full, a page goes to the nearest one
    /// with room, as in the kernel.
    fn place(&self, problem: &DataProblem) -> Result<Vec<NodeIx>, String> {
        let when = |page: usize| Reverse(problem.pages.page(page).touch.map(|t| t.slice));
        PagePlacer::new(problem)?.place_each_alone(
            |_, page| when(page),
            |fill, page| fill.nearest_node(page, fill.first_touch_node(page)),
        )
    }
}
