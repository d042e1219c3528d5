//! Where a placement has threads and pages, and from when on: positions instead of names.
use crate::topology::TopologyTree;
use hither_profile::{Nanos, Placement, Profile, RegionIx, RegionPlacement, ThreadIx};
use std::collections::{BTreeMap, HashMap};

/// A placement over the time of the profiled run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayPlan {
    /// At least one; in order of start.
    pub stages: Vec<PlanStage>,
    /// Pages move to the node of whoever touches them next in each window, wherever they are placed.
    pub next_touch: bool,
}

/// The placement from a time on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanStage {
    /// From when on it holds, ns since the start of the run.
    pub start: Nanos,
    /// By thread of the profile: a position in [`TopologyTree::units`].
    pub units: Vec<u32>,
    /// Pages that get a node here; the others stay where they are.
    pub pages: PlannedPages,
}

/// Nodes of pages by region, runs in order: first page, end, node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlannedPages(pub(super) BTreeMap<RegionIx, Vec<(u64, u64, u32)>>);

impl PlannedPages {
    /// The node of a page of a region; `None` where the plan leaves it to first touch.
    #[must_use]
    pub fn node(&self, region: RegionIx, page: u64) -> Option<u32> {
        let runs = self.0.get(&region)?;
        let at = runs.partition_point(|(_, end, _)| *end <= page);
        let (first, _, node) = runs.get(at)?;
        (*first <= page).then_some(*node)
    }

    fn add_runs(&mut self, region: RegionIx, places: &RegionPlacement) {
        let runs = places.runs.iter();
        let runs = runs.map(|run| {
            (
                run.first(),
                run.first().saturating_add(run.pages()),
                run.node().0,
            )
        });
        self.0.entry(region).or_default().extend(runs);
    }
}

impl ReplayPlan {
    /// Threads that stay where they are, pages left to the system.
    #[must_use]
    pub fn from_units(units: Vec<u32>) -> ReplayPlan {
        let stage = PlanStage {
            units,
            ..PlanStage::default()
        };
        ReplayPlan {
            stages: vec![stage],
            next_touch: false,
        }
    }

    /// As a placement for this machine says. Threads that it leaves to the system go where `rest`
    /// puts them, given the units of those that are placed.
    #[must_use]
    pub fn from_placement(
        placement: &Placement,
        profile: &Profile,
        tree: &TopologyTree,
        mut rest: impl FnMut(&[Option<u32>]) -> Vec<u32>,
    ) -> ReplayPlan {
        let position: HashMap<u32, u32> = (0u32..)
            .zip(&tree.units)
            .map(|(at, unit)| (unit.os, at))
            .collect();
        let regions = placement.regions_in(profile);
        let mut stages: Vec<PlanStage> = Vec::new();
        for phase in &placement.phases {
            let mut units = vec![None; profile.threads.len()];
            for place in &phase.threads {
                if let Some(unit) = units.get_mut(place.thread().at()) {
                    *unit = position.get(&place.os_index()).copied();
                }
            }
            let mut pages = PlannedPages::default();
            for places in &phase.pages {
                let region = regions.get(places.region as usize).copied().flatten();
                if let Some(region) = region {
                    pages.add_runs(region, places);
                }
            }
            stages.push(PlanStage {
                start: phase.start,
                units: rest(&units),
                pages,
            });
        }
        if let Some(first) = stages.first_mut() {
            first.start = 0;
        }
        ReplayPlan {
            stages,
            next_touch: false,
        }
    }

    /// The position of the stage that holds at a time.
    #[must_use]
    pub fn stage_at(&self, time: Nanos) -> usize {
        let behind = self.stages.partition_point(|stage| stage.start <= time);
        behind.saturating_sub(1)
    }

    /// Positions of the stages that begin after one time and before another.
    pub fn stages_between(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = usize> + use<'_> {
        let all = self.stages.iter().enumerate();
        let inside = all.filter(move |(_, stage)| from < stage.start && stage.start < to);
        inside.map(|(at, _)| at)
    }

    /// The unit of a thread at a time.
    #[must_use]
    pub fn unit_at(&self, thread: ThreadIx, time: Nanos) -> Option<u32> {
        let stage = self.stages.get(self.stage_at(time))?;
        stage.units.get(thread.at()).copied()
    }
}
