//! How a page is used over time, and where it is when on the node that accesses it most. Each page is
//! decided on its own.
use crate::locality::AccessLocality;
use crate::map::cheapest_stages::StageChoice;
use crate::map::migration::{MigrationLimits, PhaseRule};
use hither_profile::{Nanos, NodeIx, SliceIx};

/// Accesses to one page in one slice of the page table, by node.
pub struct PageUseStep {
    /// The slice.
    pub slice: SliceIx,
    /// Its start, ns since the start of the run.
    pub start: Nanos,
    /// Accesses from each node.
    pub by_node: Vec<u64>,
}

/// How a page is used over time.
pub struct PageHistory {
    /// The node of its first toucher.
    pub home: usize,
    /// Slices in which it is used, in order.
    pub steps: Vec<PageUseStep>,
}

/// The most steps of a page that are told apart: what is decided takes time that grows with their
/// square.
const MOST_STEPS: usize = 64;

/// How a policy follows the use of a page: a position in [`PageHistory::steps`] and a node for its
/// first place and each move.
pub type PageMoves = Vec<(usize, NodeIx)>;

/// Each page on the node that accesses it most, over time.
#[must_use]
pub fn most_access_moves(
    history: &PageHistory,
    rule: PhaseRule,
    limits: &MigrationLimits,
) -> PageMoves {
    match rule {
        PhaseRule::Together => cheapest_moves(history, limits),
        PhaseRule::Opt | PhaseRule::Kmaf => moves_by_rule(history, limits.page_interval),
    }
}

/// OPT 6.3: in every step where eq. 8 has it, moved at most once in t_min; the first move is at once.
/// Of nodes with equally many accesses the page stays on its own, else it is on the first.
fn moves_by_rule(history: &PageHistory, interval: Nanos) -> PageMoves {
    let mut moves = PageMoves::new();
    let mut last: Option<Nanos> = None;
    for (at, step) in history.steps.iter().enumerate() {
        let now = moves.last().map(|(_, node): &(usize, NodeIx)| node.at());
        let most = step.by_node.iter().copied().max().unwrap_or(0);
        let stays = now.is_some_and(|now| step.by_node[now] == most);
        let best = step.by_node.iter().position(|n| *n == most);
        let early = last.is_some_and(|last| step.start < last.saturating_add(interval));
        let Some(best) = best.filter(|_| !stays && !early) else {
            continue;
        };
        last = now.map(|_| step.start);
        moves.push((at, NodeIx(best as u32)));
    }
    moves
}

/// The moves after which least is remote, each being worth what it costs.
fn cheapest_moves(history: &PageHistory, limits: &MigrationLimits) -> PageMoves {
    let steps = &history.steps;
    let of_node = |n: usize| steps.iter().map(|s| u128::from(s.by_node[n])).sum::<u128>();
    let nodes = steps.first().map_or(0, |s| s.by_node.len());
    // The node with most accesses is first, where equals are to stay.
    let mut users: Vec<usize> = (0..nodes).filter(|n| of_node(*n) > 0).collect();
    users.sort_by_key(|n| std::cmp::Reverse(of_node(*n)));
    let merged = steps.len().div_ceil(MOST_STEPS).max(1);
    let groups: Vec<&[PageUseStep]> = steps.chunks(merged).collect();
    let remote = |group: &&[PageUseStep]| -> Vec<u128> {
        let all = group.iter().flat_map(|s| &s.by_node);
        let all: u128 = all.map(|n| u128::from(*n)).sum();
        let local = |n: &usize| {
            group
                .iter()
                .map(|s| u128::from(s.by_node[*n]))
                .sum::<u128>()
        };
        let locality = |n| AccessLocality::of_all(all, local(n));
        users.iter().map(|n| locality(n).remote).collect()
    };
    let choice = StageChoice {
        costs: &groups.iter().map(remote).collect::<Vec<_>>(),
        starts: &groups.iter().map(|g| g[0].start).collect::<Vec<_>>(),
        interval: limits.page_interval,
    };
    let stages = choice.cheapest(|_, _, _| limits.page_move.into());
    let node = |user: usize| NodeIx(users[user] as u32);
    stages
        .into_iter()
        .map(|(group, user)| (group * merged, node(user)))
        .collect()
}
