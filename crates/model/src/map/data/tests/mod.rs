//! Known answers, worked by hand from the definitions, and properties of all policies.
mod groups;
mod pages;
mod policies;
mod properties;

use super::*;
use hither_profile::{PageNo, RegionIx, SliceIx, ThreadIx};

/// A machine from a synthetic description, and hops through it.
pub struct Machine {
    pub tree: TopologyTree,
    pub cost: PuDistances,
}

pub fn machine(description: &str) -> Machine {
    let topology = crate::topology::load(description).unwrap();
    let tree = TopologyTree::new(&topology, |_| true).unwrap();
    let cost = PuDistances::from_hops(&tree);
    Machine { tree, cost }
}

/// Two nodes with one unit each.
pub fn two() -> Machine {
    machine("node:2 pu:1")
}

/// 4 KiB page number `number` of region 0, first touched by a thread in slice 0.
pub fn small(number: u32, toucher: Option<u32>) -> PlaceablePage {
    PlaceablePage {
        region: RegionIx(0),
        first: PageNo(number),
        count: 1,
        number,
        touch: toucher.map(|t| FirstAccess {
            slice: SliceIx(0),
            thread: ThreadIx(t),
        }),
    }
}

pub fn used(slice: u32, thread: u32, accesses: u64) -> PageSliceUse {
    PageSliceUse {
        slice: SliceIx(slice),
        thread: ThreadIx(thread),
        accesses,
    }
}

/// Pages from rows `(first toucher, accesses of each thread)`, all in slice 0.
pub fn rows(rows: &[(Option<u32>, &[u64])]) -> PlaceablePages {
    let page = |(at, (toucher, by_thread)): (usize, &(Option<u32>, &[u64]))| {
        let uses = (0..).zip(*by_thread);
        let uses = uses.map(|(t, &n)| used(0, t, n)).collect();
        (small(at as u32, *toucher), uses)
    };
    PlaceablePages::new(rows.iter().enumerate().map(page))
}

/// As many bytes as `pages` small pages.
pub fn room(pages: &[u64]) -> Vec<u64> {
    pages.iter().map(|n| n * 4096).collect()
}

/// Where a policy puts pages when thread t runs on unit t and nodes have room for `room`
/// small pages.
pub fn place(
    policy: &dyn DataPolicy,
    machine: &Machine,
    pages: &PlaceablePages,
    capacity: &[u64],
) -> Result<Vec<u32>, String> {
    let threads: Vec<u32> = (0..machine.tree.units.len() as u32).collect();
    let problem = DataProblem {
        tree: &machine.tree,
        cost: &machine.cost,
        threads: &threads,
        pages,
        capacity: &room(capacity),
        current: &[],
        fixed: &[],
    };
    let nodes = policy.place(&problem)?;
    Ok(nodes.iter().map(|n| n.0).collect())
}
