//! First touch: a page is on the node of the thread that uses it first, Linux's default (OPT 3.3).
use super::page_placer::PagePlacer;
use super::{DataPolicy, DataProblem};
use hither_profile::NodeIx;
use std::cmp::Reverse;

/// The page policy `first-touch`: what Linux does by default.
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
        let mut fill = PagePlacer::new(problem)?;
        let when = |page: usize| Reverse(problem.pages.page(page).touch.map(|t| t.slice));
        for page in fill.unplaced_pages(|_, page| when(page)) {
            let home = fill.first_touch_node(page);
            let node = fill.best_node(page, |n| Some(fill.nearness(home, n)))?;
            fill.place_page(page, node);
        }
        fill.finish()
    }
}
