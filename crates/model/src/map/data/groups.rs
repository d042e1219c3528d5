//! Pages by region and by data structure: where the bytes of each ended up, and deciding
//! for all pages of one alike ("key_array: interleave; buf: per page").
use super::fill::{Fill, PerNode};
use super::interleave::deal;
use super::kmaf::Kmaf;
use super::{DataProblem, Pages};
use hither_profile::{NodeIx, ObjectIx, Profile, RegionIx};
use serde::Serialize;
use std::ops::Range;

/// Pages that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// A region of the address space, where no structure is known.
    Region(RegionIx),
    /// A data structure.
    Object(ObjectIx),
}

/// What is decided for all pages of a group at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// All on the node that accesses them most together.
    OneNode,
    /// In turn on every node.
    Interleave,
    /// Each by itself, as the policy says.
    PerPage,
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Decision::OneNode => "one-node",
            Decision::Interleave => "interleave",
            Decision::PerPage => "per-page",
        })
    }
}

impl std::str::FromStr for Decision {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "one-node" => Ok(Decision::OneNode),
            "interleave" => Ok(Decision::Interleave),
            "per-page" => Ok(Decision::PerPage),
            _ => Err(format!(
                "\"{text}\" cannot be decided for a data structure: use one-node, interleave or per-page"
            )),
        }
    }
}

/// Pages decided alike.
pub struct Rule {
    /// Positions in the pages; a page that an earlier rule has is left to that.
    pub pages: Vec<usize>,
    /// How the pages of the group are placed.
    pub decision: Decision,
}

/// Where the bytes of a group are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// What the pages belong to.
    pub group: Group,
    /// Bytes on each node of the tree; only those on pages that were used or touched.
    pub bytes: Vec<u64>,
}

/// The byte ranges of a group, each in its region.
fn ranges(profile: &Profile, group: Group) -> Vec<(RegionIx, Range<u64>)> {
    match group {
        Group::Region(region) => vec![(region, 0..u64::MAX)],
        Group::Object(object) => {
            let own = profile.object_ranges.iter().filter(|r| r.object == object);
            own.map(|r| (r.region, r.offset..r.offset.saturating_add(r.length)))
                .collect()
        }
    }
}

/// Positions of the pages that hold a part of a group, ascending, each once.
#[must_use]
pub fn pages_of(profile: &Profile, pages: &Pages, group: Group) -> Vec<usize> {
    let mut held: Vec<usize> = ranges(profile, group)
        .into_iter()
        .filter(|(_, bytes)| !bytes.is_empty())
        .flat_map(|(region, bytes)| pages.span(region, bytes))
        .collect();
    held.sort_unstable();
    held.dedup();
    held
}

/// Every region and every object that has a page, in this order, with its share per node.
#[must_use]
pub fn shares(profile: &Profile, pages: &Pages, place: &[NodeIx], nodes: usize) -> Vec<Share> {
    let share = |group: Group, ranges: &[(RegionIx, Range<u64>)]| {
        let mut bytes = vec![0u64; nodes];
        for (region, range) in ranges {
            for p in pages.span(*region, range.clone()) {
                let page = pages.page(p).range();
                let held = page
                    .end
                    .min(range.end)
                    .saturating_sub(page.start.max(range.start));
                let on = &mut bytes[place[p].at()];
                *on = on.saturating_add(held);
            }
        }
        Share { group, bytes }
    };
    let regions = (0..profile.regions.len() as u32).map(|r| {
        let group = Group::Region(RegionIx(r));
        share(group, &ranges(profile, group))
    });
    // One pass over the ranges instead of one per object: there are many of both.
    let mut by_object = vec![Vec::new(); profile.objects.len()];
    for r in &profile.object_ranges {
        if let Some(own) = by_object.get_mut(r.object.at()) {
            own.push((r.region, r.offset..r.offset.saturating_add(r.length)));
        }
    }
    let objects = (0..).zip(&by_object);
    let objects = objects.map(|(o, own)| share(Group::Object(ObjectIx(o)), own));
    let used = |s: &Share| s.bytes.iter().any(|&b| b > 0);
    regions.chain(objects).filter(used).collect()
}

/// What suits each of some groups of pages: one node where that node uses the group as a
/// whole clearly more than any other (kMAF eq. 6); each page by itself where this holds for
/// pages with at least half of the accesses; else interleaving, since no place is right for
/// most of it.
///
/// # Errors
/// As for [`super::DataPolicy::place`].
pub fn suggest(problem: &DataProblem, groups: &[Vec<usize>]) -> Result<Vec<Decision>, String> {
    let fill = Fill::new(problem)?;
    Ok(groups.iter().map(|pages| suits(&fill, pages)).collect())
}

fn suits(fill: &Fill, pages: &[usize]) -> Decision {
    let exclusive = |per_node: &PerNode| {
        let (highest, second) = per_node.two_highest();
        Kmaf::PAPER.migrate(highest, second)
    };
    let (mut owned, mut all) = (0u128, 0u128);
    for &p in pages {
        let per_node = fill.accesses(p);
        let accesses = u128::from(per_node.total());
        all += accesses;
        owned += if exclusive(&per_node) { accesses } else { 0 };
    }
    if exclusive(&together(fill, pages)) {
        Decision::OneNode
    } else if 2 * owned >= all {
        Decision::PerPage
    } else {
        Decision::Interleave
    }
}

/// Accesses to all of some pages from each node.
fn together(fill: &Fill, pages: &[usize]) -> PerNode {
    let mut sum = PerNode(vec![0; fill.load.len()]);
    for &p in pages {
        for (sum, n) in sum.0.iter_mut().zip(fill.accesses(p).0) {
            *sum = sum.saturating_add(n);
        }
    }
    sum
}

/// The nodes that rules decide, for [`DataProblem::fixed`]: pages without one are the
/// policy's. What is fixed already stays.
///
/// # Errors
/// When a group that belongs on one node fits on none.
pub fn force(problem: &DataProblem, rules: &[Rule]) -> Result<Vec<Option<NodeIx>>, String> {
    let mut fill = Fill::new(problem)?;
    let mut taken: Vec<bool> = fill.placed().iter().map(Option::is_some).collect();
    for rule in rules {
        let mut free = Vec::new();
        for &p in &rule.pages {
            if !std::mem::replace(&mut taken[p], true) {
                free.push(p);
            }
        }
        match rule.decision {
            Decision::PerPage => {}
            Decision::Interleave => {
                for (turn, &p) in free.iter().enumerate() {
                    deal(&mut fill, p, turn)?;
                }
            }
            Decision::OneNode => gather(&mut fill, &free)?,
        }
    }
    Ok(fill.placed().to_vec())
}

/// Puts all of some pages on the node that accesses them most and has room for all.
fn gather(fill: &mut Fill, pages: &[usize]) -> Result<(), String> {
    let Some(&first) = pages.first() else {
        return Ok(());
    };
    let bytes: u64 = pages.iter().map(|&p| fill.page(p).bytes()).sum();
    let (per_node, home) = (together(fill, pages).0, fill.home(first));
    let fits = |n: usize| fill.has_room(n, bytes);
    let merit = |n: usize| fits(n).then(|| (per_node[n], fill.nearness(home, n)));
    let node = fill.best_if_any(first, merit).ok_or_else(|| {
        format!("no node has room for a data structure of {bytes} bytes: interleave it, or place it page by page")
    })?;
    for &p in pages {
        fill.put(p, node);
    }
    Ok(())
}
