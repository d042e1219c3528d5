//! What a placement of several stages achieves, all of them together: thread t in stage k counts as
//! thread k T + t, and a page as many times as it has places.
use super::input::MapInput;
use super::machine::MapTarget;
use super::options::MapOptions;
use super::pages::{page_timing, PagePlacement};
use hither_model::map::explain::{explain_placement, PlacedRun, PlacementExplanation};
use hither_model::map::phase_plan::{StagedPages, ThreadStage};
use hither_model::map::CommGraph;
use hither_profile::NodeIx;

/// What is placed, by stage.
pub struct StagedRun<'a> {
    pub options: &'a MapOptions,
    pub input: &'a MapInput,
    pub target: &'a MapTarget,
    pub stages: &'a [ThreadStage],
    /// Between all threads of the profile, while each stage lasts.
    pub comm: &'a [CommGraph],
    pub pages: Option<&'a PagePlacement>,
}

impl StagedRun<'_> {
    /// Beside threads that stay where they are `before`. What moves is counted for the first stage.
    pub fn explain(&self, before: &[u32], first: &PlacementExplanation) -> PlacementExplanation {
        let stages = self.stages;
        let comm = self.communication();
        let now: Vec<u32> = stages.iter().flat_map(|s| s.threads.clone()).collect();
        let earlier: Vec<u32> = stages.iter().flat_map(|_| before.to_vec()).collect();
        let profile = self.input.profile.as_ref();
        let placed = self.pages.zip(profile).map(|(placed, profile)| {
            let timing = page_timing(self.options, profile, stages);
            let (pages, places) = StagedPages::new(&placed.pages, &timing).by_place(&placed.plan);
            let after: Vec<NodeIx> = places.iter().map(|(_, node)| *node).collect();
            let unplaced: Vec<NodeIx> = places.iter().map(|(p, _)| placed.before[*p]).collect();
            (pages, unplaced, after)
        });
        let arrangement = |threads| PlacedRun {
            tree: &self.target.tree,
            cost: &self.target.cost,
            comm: &comm,
            threads,
            pages: None,
        };
        let (mut was, mut is) = (arrangement(&earlier), arrangement(&now));
        if let Some((pages, unplaced, after)) = &placed {
            was.pages = Some((pages, unplaced.as_slice()));
            is.pages = Some((pages, after.as_slice()));
        }
        let all = explain_placement(Some(&was), &is, &self.input.placed);
        PlacementExplanation {
            before: all.before,
            after: all.after,
            ..first.clone()
        }
    }

    fn communication(&self) -> CommGraph {
        let threads = self.input.threads.len();
        let stages = self.comm.iter().enumerate();
        let pairs = stages.flat_map(|(stage, graph)| {
            let number = move |t: usize| (stage * threads + t) as u32;
            graph
                .pairs()
                .map(move |(i, j, events)| (number(i), number(j), events))
        });
        CommGraph::new(self.stages.len() * threads, pairs)
    }
}
