//! Where threads run and pages lie, by which accesses are local or remote: as a placement
//! says, else each thread where E_app is highest and each page where it was touched first.
use super::pages::{PageId, ThreadUse};
use super::report::Analysis;
use hither_profile::{NodeIx, Placement, Profile, Region, RegionId, RegionIx};
use std::collections::HashMap;

/// Threads and pages on nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ground {
    pub nodes: usize,
    /// By thread.
    pub threads: Vec<NodeIx>,
    pages: HashMap<PageId, NodeIx>,
    /// It is a placement's; else it is what first touch makes of the best assignment of threads.
    pub placed: bool,
}

impl Ground {
    /// Pages by first touch, threads at their best.
    #[must_use]
    pub fn of_first_touch(analysis: &Analysis) -> Self {
        let threads: Vec<NodeIx> = analysis.report.threads.iter().map(|t| t.node).collect();
        let touched = analysis.touchers.iter();
        Ground {
            nodes: analysis.report.setup.nodes,
            pages: touched.map(|(id, t)| (*id, threads[t.at()])).collect(),
            threads,
            placed: false,
        }
    }

    /// As a placement has it in its first phase. Threads and pages that it leaves to the
    /// system are where first touch has them.
    #[must_use]
    pub fn of_placement(analysis: &Analysis, profile: &Profile, placement: &Placement) -> Self {
        let mut ground = Ground::of_first_touch(analysis);
        ground.placed = true;
        ground.nodes = ground.nodes.max(placement.machine.nodes.len());
        let Some(phase) = placement.phases.first() else {
            return ground;
        };
        for place in &phase.threads {
            if let Some(node) = ground.threads.get_mut(place.thread().at()) {
                *node = place.node();
            }
        }
        let threads = &ground.threads;
        let touched = analysis.touchers.iter();
        ground.pages = touched.map(|(id, t)| (*id, threads[t.at()])).collect();
        let same: HashMap<RegionId, RegionIx> = (profile.regions.iter().enumerate())
            .map(|(ix, region)| (known_as(region), RegionIx(ix as u32)))
            .collect();
        for places in &phase.pages {
            let named = placement.regions.get(places.region as usize);
            let Some(&region) = named.and_then(|id| same.get(id)) else {
                continue;
            };
            for run in &places.runs {
                for page in analysis
                    .table
                    .span(region, run.first(), run.first() + run.pages() - 1)
                {
                    ground.pages.insert(analysis.table.id(page), run.node());
                }
            }
        }
        ground
    }

    /// The node of a page, where it is known.
    #[must_use]
    pub fn page(&self, id: PageId) -> Option<NodeIx> {
        self.pages.get(&id).copied()
    }

    /// The node that a use of a page comes from.
    #[must_use]
    pub fn user(&self, u: &ThreadUse) -> NodeIx {
        self.threads[u.thread.at()]
    }
}

fn known_as(region: &Region) -> RegionId {
    RegionId {
        kind: region.kind,
        process: region.process,
        thread: region.thread,
        ordinal: region.ordinal,
        size: region.size,
        file: region.file.clone(),
        file_offset: region.file_offset,
    }
}
