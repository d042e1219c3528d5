//! Runs of pages: which pages of a region belong on which node, and what that means for a
//! piece of it that lies somewhere in an address space.
use crate::run::guide::PageBind;
use hither_sys::Node;
use std::collections::BTreeMap;

pub use hither_profile::PAGE_BITS;

/// Pages [first, end) of a region that belong on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRun {
    pub first: u64,
    pub end: u64,
    pub node: Node,
}

impl From<&PageBind> for NodeRun {
    fn from(bind: &PageBind) -> Self {
        NodeRun {
            first: bind.start >> PAGE_BITS,
            end: (bind.start + bind.length) >> PAGE_BITS,
            node: bind.node,
        }
    }
}

/// How the pages of a region of the profile lie in what was found in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionFit {
    /// That many pages further on.
    Shift(i64),
    /// In proportion: `from` pages of the profile are `to` pages now.
    Scale { from: u64, to: u64 },
}

impl RegionFit {
    pub const SAME: RegionFit = RegionFit::Shift(0);

    /// Pages [first, end) of the profile's region here, cut off at 0. Keeps order, and apart
    /// what is apart.
    fn fit(self, (first, end): (u64, u64)) -> (u64, u64) {
        let place = |page: u64| match self {
            RegionFit::Shift(by) => page.saturating_add_signed(by),
            RegionFit::Scale { from, to } => scale(page, from, to),
        };
        (place(first), place(end))
    }
}

fn scale(page: u64, from: u64, to: u64) -> u64 {
    let place = u128::from(page) * u128::from(to) / u128::from(from.max(1));
    u64::try_from(place).unwrap_or(u64::MAX)
}

/// Pages of what was found that lie side by side at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AreaPiece {
    /// First page, counted from the start of what was found.
    pub offset: u64,
    pub pages: u64,
    /// Page number of the first in the address space.
    pub at: u64,
}

/// What to do with pages between runs on one node, which the profile never saw touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapRule {
    /// Leave them out.
    Skip,
    /// Bind them with their neighbours: fewer calls, fewer areas for the kernel to keep.
    Fill,
}

/// Where the pages of a piece belong. Appends to `binds`.
pub fn append_binds(
    runs: &[NodeRun],
    fit: RegionFit,
    piece: AreaPiece,
    gaps: GapRule,
    binds: &mut Vec<PageBind>,
) {
    let (low, high) = (piece.offset, piece.offset.saturating_add(piece.pages));
    let from = runs.partition_point(|run| fit.fit((run.first, run.end)).1 <= low);
    let mut last: Option<NodeRun> = None;
    let mut put = |run: NodeRun| {
        binds.push(PageBind {
            start: (run.first - low + piece.at) << PAGE_BITS,
            length: (run.end - run.first) << PAGE_BITS,
            node: run.node,
        });
    };
    for run in &runs[from..] {
        let (first, end) = fit.fit((run.first, run.end));
        if first >= high {
            break;
        }
        let run = NodeRun {
            first: first.max(low),
            end: end.min(high),
            node: run.node,
        };
        if run.first >= run.end {
            continue;
        }
        last = match last {
            Some(l) if l.node == run.node && (l.end == run.first || gaps == GapRule::Fill) => {
                Some(NodeRun { end: run.end, ..l })
            }
            Some(l) => {
                put(l);
                Some(run)
            }
            None => Some(run),
        };
    }
    last.into_iter().for_each(put);
}

/// Lays `over` on top of `under`; both in order.
pub fn overlay(under: &[NodeRun], over: &[NodeRun]) -> Vec<NodeRun> {
    let mut all: Vec<NodeRun> = over.to_vec();
    let mut above = over.iter().peekable();
    for run in under {
        let mut first = run.first;
        while above.next_if(|o| o.end <= first).is_some() {}
        let mut look = above.clone();
        while first < run.end {
            let next = look.next().filter(|o| o.first < run.end);
            let end = next.map_or(run.end, |o| o.first);
            if first < end {
                all.push(NodeRun { first, end, ..*run });
            }
            first = next.map_or(run.end, |o| o.end);
        }
    }
    all.sort_unstable_by_key(|run| run.first);
    all.dedup_by(|next, run| {
        let joined = run.node == next.node && run.end == next.first;
        if joined {
            run.end = next.end;
        }
        joined
    });
    all
}

/// What has to be bound to get from `old` to `new`: of each stretch of `new` on one
/// node the part from the first to the last page that was not on it before.
pub fn changed_runs(old: &[NodeRun], new: &[NodeRun]) -> Vec<NodeRun> {
    let mut all: Vec<NodeRun> = Vec::new();
    let mut stretch = 0usize;
    let mut of_last = None;
    for (at, run) in new.iter().enumerate() {
        if at > 0 && new[at - 1].node != run.node {
            stretch = at;
        }
        let Some((first, end)) = changed(old, run) else {
            continue;
        };
        match all.last_mut() {
            Some(last) if of_last == Some(stretch) => last.end = end,
            _ => all.push(NodeRun { first, end, ..*run }),
        }
        of_last = Some(stretch);
    }
    all
}

/// First page and end of what of `run` is not on its node in `old`.
fn changed(old: &[NodeRun], run: &NodeRun) -> Option<(u64, u64)> {
    let from = old.partition_point(|o| o.end <= run.first);
    let same = old[from..].iter().take_while(|o| o.first < run.end);
    let mut found: Option<(u64, u64)> = None;
    let mut see = |first: u64, end: u64| {
        if first < end {
            found = Some((found.map_or(first, |f| f.0), end));
        }
    };
    let mut first = run.first;
    for o in same.filter(|o| o.node == run.node) {
        see(first, o.first);
        first = o.end;
    }
    see(first, run.end);
    found
}

/// Stretches on one node, gaps between them filled: as many areas as the kernel has to keep.
pub fn count_stretches(runs: &[NodeRun]) -> usize {
    let changes = runs.windows(2).filter(|w| w[0].node != w[1].node);
    changes.count() + usize::from(!runs.is_empty())
}

/// Blocks of pages, as small as they can be for at most `most` stretches, each on the node
/// that most of its pages belong on. Of equals the node that has got fewest of what it
/// should have. Returns the pages of a block too.
pub fn coarsen(runs: &[NodeRun], most: usize) -> (Vec<NodeRun>, u64) {
    let mut block = 2;
    loop {
        let blocks = majority_runs(runs, block);
        if count_stretches(&blocks) <= most.max(1) || block >= 1 << 51 {
            return (blocks, block);
        }
        block *= 2;
    }
}

/// One run per block of `block` pages that has any, counted from page 0.
pub fn majority_runs(runs: &[NodeRun], block: u64) -> Vec<NodeRun> {
    let mut deficit: BTreeMap<Node, i64> = BTreeMap::new();
    let mut blocks: Vec<NodeRun> = Vec::new();
    let mut inside: BTreeMap<Node, u64> = BTreeMap::new();
    let mut current = None;
    for run in runs {
        let mut first = run.first;
        while first < run.end {
            let number = first / block;
            if let Some(last) = current.filter(|c| *c != number) {
                settle(last, block, &mut inside, &mut deficit, &mut blocks);
            }
            current = Some(number);
            let end = run.end.min((number + 1).saturating_mul(block));
            *inside.entry(run.node).or_default() += end - first;
            first = end;
        }
    }
    if let Some(last) = current {
        settle(last, block, &mut inside, &mut deficit, &mut blocks);
    }
    blocks
}

fn settle(
    number: u64,
    block: u64,
    inside: &mut BTreeMap<Node, u64>,
    deficit: &mut BTreeMap<Node, i64>,
    blocks: &mut Vec<NodeRun>,
) {
    let all: u64 = inside.values().sum();
    for (node, pages) in inside.iter() {
        *deficit.entry(*node).or_default() += pages.cast_signed();
    }
    let due = |node: &Node| deficit.get(node).copied().unwrap_or(0);
    let best = inside
        .iter()
        .max_by_key(|(node, pages)| (**pages, due(node), std::cmp::Reverse(**node)));
    let Some((&node, _)) = best else { return };
    *deficit.entry(node).or_default() -= all.cast_signed();
    inside.clear();
    let (first, end) = (number * block, (number + 1) * block);
    match blocks.last_mut() {
        Some(last) if last.node == node && last.end == first => last.end = end,
        _ => blocks.push(NodeRun { first, end, node }),
    }
}
