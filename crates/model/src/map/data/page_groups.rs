//! Pages by region and by data structure: where the bytes of each are placed, and one decision for
//! all pages of a group ("key_array: interleave; buf: per page").
use super::interleave::round_robin_node;
use super::kmaf::KmafPolicy;
use super::page_placer::{NodeAccesses, PagePlacer};
use super::{DataProblem, PlaceablePages};
use hither_profile::{NodeIx, ObjectIx, Profile, RegionIx};
use serde::Serialize;
use std::ops::Range;

/// Pages that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PageGroup {
    /// A region of the address space, where no structure is known.
    Region(RegionIx),
    /// A data structure.
    Object(ObjectIx),
}

/// The decision for all pages of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupDecision {
    /// All on the node with the most accesses to the group.
    OneNode,
    /// Interleaved over all nodes.
    Interleave,
    /// Each page on its own, as the policy says.
    PerPage,
}

impl std::fmt::Display for GroupDecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            GroupDecision::OneNode => "one-node",
            GroupDecision::Interleave => "interleave",
            GroupDecision::PerPage => "per-page",
        })
    }
}

impl std::str::FromStr for GroupDecision {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "one-node" => Ok(GroupDecision::OneNode),
            "interleave" => Ok(GroupDecision::Interleave),
            "per-page" => Ok(GroupDecision::PerPage),
            _ => Err(format!(
                "\"{text}\" cannot be decided for a data structure: use one-node, interleave or per-page"
            )),
        }
    }
}

/// Pages decided alike.
pub struct GroupRule {
    /// Positions in the pages; a page that an earlier rule has is left to that.
    pub pages: Vec<usize>,
    /// How the pages of the group are placed.
    pub decision: GroupDecision,
}

/// Where the bytes of a group are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupShare {
    /// What the pages belong to.
    pub group: PageGroup,
    /// Bytes on each node of the tree; only those on pages that were used or touched.
    pub bytes: Vec<u64>,
}

/// The byte ranges of a group, each in its region.
fn byte_ranges(profile: &Profile, group: PageGroup) -> Vec<(RegionIx, Range<u64>)> {
    match group {
        PageGroup::Region(region) => vec![(region, 0..u64::MAX)],
        PageGroup::Object(object) => {
            let own = profile.object_ranges.iter().filter(|r| r.object == object);
            own.map(|r| (r.region, r.offset..r.offset.saturating_add(r.length)))
                .collect()
        }
    }
}

/// Positions of the pages that hold a part of a group, ascending, each once.
#[must_use]
pub fn pages_of_group(profile: &Profile, pages: &PlaceablePages, group: PageGroup) -> Vec<usize> {
    let mut held: Vec<usize> = byte_ranges(profile, group)
        .into_iter()
        .filter(|(_, bytes)| !bytes.is_empty())
        .flat_map(|(region, bytes)| pages.held(region, bytes))
        .map(|(at, _)| at)
        .collect();
    held.sort_unstable();
    held.dedup();
    held
}

/// Every region and every object that has a page, in this order, with its share per node.
#[must_use]
pub fn group_shares(
    profile: &Profile,
    pages: &PlaceablePages,
    place: &[NodeIx],
    nodes: usize,
) -> Vec<GroupShare> {
    let share = |group: PageGroup, ranges: &[(RegionIx, Range<u64>)]| {
        let mut bytes = vec![0u64; nodes];
        for (region, range) in ranges {
            for (p, held) in pages.held(*region, range.clone()) {
                let on = &mut bytes[place[p].at()];
                *on = on.saturating_add(held);
            }
        }
        GroupShare { group, bytes }
    };
    let regions = (0..profile.regions.len() as u32).map(|r| {
        let group = PageGroup::Region(RegionIx(r));
        share(group, &byte_ranges(profile, group))
    });
    // One pass over the ranges instead of one per object: there are many of both.
    let mut by_object = vec![Vec::new(); profile.objects.len()];
    for r in &profile.object_ranges {
        if let Some(own) = by_object.get_mut(r.object.at()) {
            own.push((r.region, r.offset..r.offset.saturating_add(r.length)));
        }
    }
    let objects = (0..).zip(&by_object);
    let objects = objects.map(|(o, own)| share(PageGroup::Object(ObjectIx(o)), own));
    let used = |s: &GroupShare| s.bytes.iter().any(|&b| b > 0);
    regions.chain(objects).filter(used).collect()
}

/// The decision that suits each group of pages: one node if that node uses the whole group clearly
/// more than any other (kMAF eq. 6); per page if this holds for pages with at least half of the
/// accesses; else interleaving, because no node is right for most of the group.
///
/// # Errors
/// As for [`super::DataPolicy::place`].
pub fn suggest_decisions(
    problem: &DataProblem,
    groups: &[Vec<usize>],
) -> Result<Vec<GroupDecision>, String> {
    let fill = PagePlacer::new(problem)?;
    Ok(groups
        .iter()
        .map(|pages| best_decision(&fill, pages))
        .collect())
}

fn best_decision(fill: &PagePlacer, pages: &[usize]) -> GroupDecision {
    let exclusive = |per_node: &NodeAccesses| {
        let (highest, second) = per_node.two_highest();
        KmafPolicy::PAPER.should_migrate(highest, second)
    };
    let (mut owned, mut all) = (0u128, 0u128);
    for &p in pages {
        let per_node = fill.accesses(p);
        let accesses = u128::from(per_node.total());
        all += accesses;
        owned += if exclusive(&per_node) { accesses } else { 0 };
    }
    if exclusive(&group_accesses(fill, pages)) {
        GroupDecision::OneNode
    } else if 2 * owned >= all {
        GroupDecision::PerPage
    } else {
        GroupDecision::Interleave
    }
}

/// Accesses to all of some pages from each node.
fn group_accesses(fill: &PagePlacer, pages: &[usize]) -> NodeAccesses {
    let mut sum = NodeAccesses(vec![0; fill.load.len()]);
    for &p in pages {
        for (sum, n) in sum.0.iter_mut().zip(fill.accesses(p).0) {
            *sum = sum.saturating_add(n);
        }
    }
    sum
}

/// The nodes that the rules give, for [`DataProblem::fixed`]: pages without a node are left to the
/// policy. Pages that are already fixed stay.
///
/// # Errors
/// When a group that belongs on one node fits on none.
pub fn apply_rules(
    problem: &DataProblem,
    rules: &[GroupRule],
) -> Result<Vec<Option<NodeIx>>, String> {
    let mut fill = PagePlacer::new(problem)?;
    let mut taken: Vec<bool> = fill.nodes_so_far().iter().map(Option::is_some).collect();
    for rule in rules {
        let mut free = Vec::new();
        for &p in &rule.pages {
            if !std::mem::replace(&mut taken[p], true) {
                free.push(p);
            }
        }
        match rule.decision {
            GroupDecision::PerPage => {}
            GroupDecision::Interleave => {
                for (turn, &p) in free.iter().enumerate() {
                    let node = round_robin_node(&fill, p, turn)?;
                    fill.place_page(p, node);
                }
            }
            GroupDecision::OneNode => place_on_one_node(&mut fill, &free)?,
        }
    }
    Ok(fill.nodes_so_far().to_vec())
}

/// Puts all of some pages on the node that accesses them most and has room for all.
fn place_on_one_node(fill: &mut PagePlacer, pages: &[usize]) -> Result<(), String> {
    let Some(&first) = pages.first() else {
        return Ok(());
    };
    let bytes: u64 = pages.iter().map(|&p| fill.page(p).bytes()).sum();
    let (per_node, home) = (group_accesses(fill, pages).0, fill.default_node(first));
    let fits = |n: usize| fill.has_room(n, bytes);
    let merit = |n: usize| fits(n).then(|| (per_node[n], fill.nearness(home, n)));
    let node = fill.best_node_if_any(first, merit).ok_or_else(|| {
        format!("no node has room for a data structure of {bytes} bytes: interleave it, or place it page by page")
    })?;
    for &p in pages {
        fill.place_page(p, node);
    }
    Ok(())
}
