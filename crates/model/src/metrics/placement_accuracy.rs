//! Accuracy of the page placement (OPT eq. 8 and 9) of first touch, and the pages that would have
//! to move during the run (OPT 5.1.5, 5.2.2).
use super::exclusivity::accesses_per_node;
use super::page_access::PageAccessTable;
use super::page_id::{PageId, PageSize};
use super::page_map::PageMap;
use crate::locality::AccessLocality;
use hither_profile::{NodeIx, PageRows, PageUse, Profile, SliceIx, ThreadIx};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Accuracy of a placement of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PlacementAccuracy {
    /// Mean of Acc_page (OPT eq. 8) over pages.
    pub page: f64,
    /// Acc_app (OPT eq. 9): the same, weighted with accesses.
    pub app: f64,
    /// Share of all accesses that this placement makes local: what Acc_app stands for.
    pub local: f64,
    /// Share of all accesses that it leaves remote: the rest.
    pub remote: f64,
    /// Pages whose place is known; only these count.
    pub pages: u64,
}

/// Accuracy over the pages named by `pages`. A page that several nodes use most counts as
/// right on any of them: moving it would gain nothing.
pub fn accuracy_of(
    table: &PageAccessTable,
    pages: impl Iterator<Item = usize>,
    nodes: usize,
    node_of: &[NodeIx],
    place: impl Fn(PageId) -> Option<NodeIx>,
) -> Option<PlacementAccuracy> {
    let mut per_node = vec![0; nodes];
    let (mut known, mut right) = (0u64, 0u64);
    let mut right_accesses = 0.0;
    let mut sum = AccessLocality::default();
    for page in pages {
        let Some(node) = place(table.id(page)) else {
            continue;
        };
        accesses_per_node(table.uses(page), node_of, &mut per_node);
        let locality = AccessLocality::of_page(&per_node, node);
        known += 1;
        sum += locality;
        if Some(&per_node[node.at()]) == per_node.iter().max() {
            right += 1;
            right_accesses += locality.all() as f64;
        }
    }
    Some(PlacementAccuracy {
        page: right as f64 / known as f64,
        app: right_accesses / sum.all() as f64,
        local: sum.local_share()?,
        remote: sum.remote_share()?,
        pages: known,
    })
}

/// The pages in one page slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PageSlice {
    /// First slice of the profile that it covers.
    pub first: SliceIx,
    /// Accesses counted in it.
    pub accesses: u64,
    /// E_app (OPT eq. 6) of the slice.
    pub exclusivity: f64,
    /// Pages whose best node is another than where they are: they move.
    pub migrations: u64,
}

/// The pages over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageMigrationTimeline {
    /// In order of time.
    pub slices: Vec<PageSlice>,
    /// Moves of pages to their best node in all.
    pub migrations: u64,
    /// Pages that moved once.
    pub moved_once: u64,
    /// Pages that moved more than once.
    pub moved_more: u64,
}

/// The uses of pages by page slice, in order of time.
pub(super) fn rows_by_page_slice(profile: &Profile) -> BTreeMap<SliceIx, PageRows<PageUse>> {
    let mut by_slice: BTreeMap<SliceIx, PageRows<PageUse>> = BTreeMap::new();
    let rows = profile.pages.rows();
    rows.for_each(|row| by_slice.entry(row.slice).or_default().push(row));
    by_slice
}

/// Follows every page: it starts where its first toucher runs (first touch) and moves in
/// each page slice to the node that uses it most, threads staying where they are. `whole` is
/// the table of the whole run.
#[must_use]
pub fn page_migrations(
    profile: &Profile,
    whole: (&PageAccessTable, PageSize),
    nodes: usize,
    node_of: &[NodeIx],
    first_touchers: &PageMap<ThreadIx>,
) -> PageMigrationTimeline {
    let (whole, size) = whole;
    let first = profile.pages.rows().next().map(|row| row.slice);
    let alone = first.filter(|first| profile.pages.rows().all(|row| row.slice == *first));
    let by_slice = match alone {
        Some(slice) => BTreeMap::from([(slice, PageRows::default())]),
        None => rows_by_page_slice(profile),
    };
    let mut out = PageMigrationTimeline::default();
    let mut place = first_touchers.map(|t| (node_of[t.at()], 0u32));
    // Of a profile that does not say who touched them first.
    let mut untouched: HashMap<PageId, (NodeIx, u32)> = HashMap::new();
    let mut per_node = vec![0; nodes];
    for (first, rows) in by_slice {
        let made;
        let table = if alone.is_some() {
            whole
        } else {
            made = PageAccessTable::from_rows(&rows, &profile.regions, size);
            &made
        };
        let mut slice = PageSlice {
            first,
            ..PageSlice::default()
        };
        let mut most = 0.0;
        for page in 0..table.len() {
            accesses_per_node(table.uses(page), node_of, &mut per_node);
            let max = per_node.iter().copied().max().unwrap_or(0);
            let best = per_node.iter().position(|&c| c == max).unwrap_or(0);
            most += max as f64;
            slice.accesses = slice.accesses.saturating_add(per_node.iter().sum());
            let id = table.id(page);
            let now = match place.get_mut(id) {
                Some(now) => now,
                None => untouched.entry(id).or_insert((NodeIx(best as u32), 0)),
            };
            if per_node[now.0.at()] < max {
                *now = (NodeIx(best as u32), now.1 + 1);
                slice.migrations += 1;
            }
        }
        if slice.accesses > 0 {
            slice.exclusivity = most / slice.accesses as f64;
        }
        out.migrations += slice.migrations;
        out.slices.push(slice);
    }
    let moves = || place.values().chain(untouched.values()).map(|p| p.1);
    out.moved_once = moves().filter(|&n| n == 1).count() as u64;
    out.moved_more = moves().filter(|&n| n > 1).count() as u64;
    out
}
