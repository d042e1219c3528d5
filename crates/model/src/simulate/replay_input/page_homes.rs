//! The node of each page: as the placement says, else by a rule.
use super::replay_plan::ReplayPlan;
use super::replay_space::WindowLayout;
use hither_profile::{Nanos, PageNo, Profile, RegionIx, ThreadIx, PAGE_SIZE};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

/// The rule for pages that the placement does not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageHomeRule {
    /// On the node of the thread that touched them first when the program was traced, as far as
    /// the profile knows; else as in [`PageHomeRule::Replay`].
    #[default]
    FirstTouch,
    /// On the node of the thread that touches them first in the simulation.
    Replay,
    /// In turn over the nodes, by page number.
    Interleave,
}

impl PageHomeRule {
    /// As `--pages` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PageHomeRule::FirstTouch => "first-touch",
            PageHomeRule::Replay => "replay",
            PageHomeRule::Interleave => "interleave",
        }
    }
}

/// The first toucher of a page, and when.
pub type FirstTouches = HashMap<(RegionIx, PageNo), (ThreadIx, Nanos)>;

/// The first touches that a profile has recorded.
#[must_use]
pub fn first_touches(profile: &Profile) -> FirstTouches {
    let when = |row: &hither_profile::PageFirstTouch| {
        let slice = profile.slices.get(row.slice.at());
        slice.map_or(0, |slice| slice.start)
    };
    let mut touches = FirstTouches::new();
    for row in profile.first_touch.iter() {
        // Of several rows of a page the table's first wins.
        let touch = touches.entry((row.region, row.page));
        touch.or_insert_with(|| (row.thread, when(&row)));
    }
    touches
}

/// What the homes of pages depend on.
#[derive(Clone, Copy)]
pub struct PageHomeInput<'a> {
    /// Where the placement puts threads and pages.
    pub plan: &'a ReplayPlan,
    /// The first touches of the traced run.
    pub touches: &'a FirstTouches,
    /// Where pages go that the plan does not place.
    pub rule: PageHomeRule,
    /// The home node of each unit.
    pub unit_nodes: &'a [u32],
    /// Nodes that take pages in turn.
    pub nodes: &'a [u32],
}

impl PageHomeInput<'_> {
    /// Whether another plan for the same program has all threads on the same units at all times, and all pages of
    /// these layouts on the same nodes: then nothing tells the two apart.
    #[must_use]
    pub fn are_those_of<'l>(
        &self,
        other: &PageHomeInput,
        mut layouts: impl Iterator<Item = &'l WindowLayout>,
    ) -> bool {
        let (one, two) = (self.plan, other.plan);
        if one == two {
            return true;
        }
        let stages = |plan: &'_ ReplayPlan| -> Vec<(Nanos, Vec<u32>)> {
            let stages = plan.stages.iter();
            stages.map(|s| (s.start, s.units.clone())).collect()
        };
        if one.next_touch != two.next_touch || stages(one) != stages(two) {
            return false;
        }
        // Most of what a window names others do as well.
        let mut seen = HashSet::new();
        layouts.all(|layout| {
            (0..one.stages.len()).all(|stage| {
                let homes = [self, other].map(|input| PageHomes::new(*input, layout, stage));
                let mut places = layout.places().filter(|place| seen.insert((*place, stage)));
                places.all(|(first, pages, ..)| {
                    let [one, two] = &homes;
                    (first..first + pages).all(|page| one.find_node(page) == two.find_node(page))
                })
            })
        })
    }
}

/// Nodes of pages while a stage of the plan and a window's layout last.
pub struct PageHomes<'a> {
    input: PageHomeInput<'a>,
    layout: &'a WindowLayout,
    stage: usize,
    /// Homes looked up so far, by page.
    given: RefCell<HashMap<u64, Option<u32>>>,
}

impl<'a> PageHomes<'a> {
    /// For one stage of the plan and the layout of one window.
    #[must_use]
    pub fn new(input: PageHomeInput<'a>, layout: &'a WindowLayout, stage: usize) -> Self {
        PageHomes {
            input,
            layout,
            stage,
            given: RefCell::default(),
        }
    }

    /// The node that holds an address.
    #[must_use]
    pub fn node_of(&self, address: u64) -> Option<u32> {
        let page = address / PAGE_SIZE;
        let mut given = self.given.borrow_mut();
        *given.entry(page).or_insert_with(|| self.find_node(page))
    }

    fn find_node(&self, page: u64) -> Option<u32> {
        let input = &self.input;
        let known = self.layout.region_of_page(page);
        let stages = input.plan.stages.iter().take(self.stage + 1).rev();
        let placed = known.and_then(|(region, number)| {
            let mut nodes = stages.filter_map(|stage| stage.pages.node(region, number));
            nodes.next()
        });
        placed.or_else(|| match input.rule {
            PageHomeRule::Replay => None,
            PageHomeRule::Interleave => {
                let turn = page % input.nodes.len().max(1) as u64;
                input.nodes.get(turn as usize).copied()
            }
            PageHomeRule::FirstTouch => {
                let (region, number) = known?;
                let number = PageNo(u32::try_from(number).ok()?);
                let (thread, time) = input.touches.get(&(region, number))?;
                let unit = input.plan.unit_at(*thread, *time)?;
                input.unit_nodes.get(unit as usize).copied()
            }
        })
    }
}
