//! The assignment of threads to NUMA nodes that makes E_app (OPT eq. 6) highest or lowest,
//! with at most ceil(T/N) threads on a node, of all and of those that work: or the four that do of
//! twenty could all be on one node. OPT figures 6 and 7 show these two extremes; how the paper finds them
//! it does not say.
//!
//! Finding the best is a graph partitioning problem, so this is a search: several starts
//! (greedy, blocks of neighbours, round robin, shuffles), each improved by swaps of two
//! threads until none helps. E_app is sum(max over nodes) / sum, and the denominator does
//! not depend on the assignment, so the search works on the numerator:
//!
//! ```text
//!   pages with one thread ........ a constant, left out
//!   pages alike (same threads, about the same shares) ... summed into one group
//!   swap of a and b .............. only groups that a or b touch change
//! ```
//! The result is the same on every machine: work is bounded by a count, not a clock.
use super::exclusivity::exclusivity;
use super::page_access::PageAccessTable;
use crate::rng::Rng;
use hither_profile::NodeIx;
use std::collections::HashMap;

/// What to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExclusivityGoal {
    /// Make E_app as large as possible.
    Maximise,
    /// Make it as small as possible.
    Minimise,
}

/// Cells of group x node that one search may look at: a fraction of a second.
const MAX_SEARCH_WORK: u64 = 100_000_000;
/// Cells of group x thread that a search handles well.
const MAX_CELLS: usize = 50_000;
/// Starts from a shuffle, beside the three constructed ones, as far as the work allows: small
/// cases, which are cheap, have the most uneven landscapes.
const SHUFFLES: u64 = 64;
/// Shares of a page's accesses are compared in these units, coarser ones when there are
/// too many different pages.
const SHARE_STEPS: [u64; 3] = [64, 8, 2];

/// The assignments with the highest and the lowest E_app: the node of each thread. `working` says which
/// threads work; if none does, all count.
#[must_use]
pub fn best_and_worst_assignment(
    table: &PageAccessTable,
    working: &[bool],
    nodes: usize,
) -> (Vec<NodeIx>, Vec<NodeIx>) {
    let groups = if nodes <= 1 || working.len() <= 1 {
        PageClasses::new()
    } else {
        limited_groups(table)
    };
    let best = multi_start_search(&groups, working, nodes, ExclusivityGoal::Maximise);
    let worst = multi_start_search(&groups, working, nodes, ExclusivityGoal::Minimise);
    let app = |of: &[NodeIx]| exclusivity(table, nodes, of).map_or(0.0, |e| e.app);
    // The search works on groups of pages: if all assignments are equal, best and worst may be
    // swapped.
    if app(&best) < app(&worst) {
        (worst, best)
    } else {
        (best, worst)
    }
}

/// The node of each thread.
#[cfg(test)]
#[must_use]
pub fn assign_threads_to_nodes(
    table: &PageAccessTable,
    working: &[bool],
    nodes: usize,
    goal: ExclusivityGoal,
) -> Vec<NodeIx> {
    multi_start_search(&limited_groups(table), working, nodes, goal)
}

fn multi_start_search(
    groups: &PageClasses,
    working: &[bool],
    nodes: usize,
    goal: ExclusivityGoal,
) -> Vec<NodeIx> {
    if nodes <= 1 || working.len() <= 1 {
        return vec![NodeIx(0); working.len()];
    }
    let (mut search, idle) = AssignmentSearch::new(groups, working, nodes, goal);
    let slots = search.slots();
    let mut starts = vec![search.greedy_start()];
    starts.push((0..slots).map(|t| t / search.capacity).collect());
    starts.push((0..slots).map(|t| t % nodes).collect());
    for seed in 1..=SHUFFLES {
        let mut nodes_of: Vec<usize> = (0..slots).map(|t| t / search.capacity).collect();
        Rng::new(seed).shuffle(&mut nodes_of);
        starts.push(nodes_of);
    }
    let mut work = MAX_SEARCH_WORK;
    let mut best: Option<(i64, Vec<usize>)> = None;
    for start in starts {
        if work == 0 {
            break;
        }
        // The best starts come first and may use most.
        search.work = work / 2;
        let value = search.improve_by_swaps(start);
        work = work / 2 + search.work;
        if best.as_ref().is_none_or(|(v, _)| value > *v) {
            best = Some((value, search.node_of.clone()));
        }
    }
    search.node_of = best.map_or_else(Vec::new, |(_, node_of)| node_of);
    search.nodes_of_all(working, &idle)
}

/// Groups that a thread touches, in order, with its accesses.
type Touches = Vec<(u32, i64)>;

/// A state of the search. Threads are padded with idle ones to nodes x capacity, so that
/// a move to a free place is a swap as well.
struct AssignmentSearch {
    nodes: usize,
    capacity: usize,
    goal: ExclusivityGoal,
    /// Of each thread that works.
    touches: Vec<Touches>,
    groups: usize,
    node_of: Vec<usize>,
    /// Accesses per group and node.
    sums: Vec<i64>,
    /// The largest of each group's sums.
    maxima: Vec<i64>,
    work: u64,
}

impl AssignmentSearch {
    /// With what the threads touch that do not take part in the search.
    fn new(
        groups: &PageClasses,
        working: &[bool],
        nodes: usize,
        goal: ExclusivityGoal,
    ) -> (Self, Vec<Touches>) {
        let mut of_thread = vec![Touches::new(); working.len()];
        for (group, cells) in groups.iter().enumerate() {
            for &(thread, accesses) in cells {
                of_thread[thread as usize].push((group as u32, accesses));
            }
        }
        let (mut touches, mut idle) = (Vec::new(), Vec::new());
        for (of_thread, works) in of_thread.into_iter().zip(working) {
            let to = if *works { &mut touches } else { &mut idle };
            to.push(of_thread);
        }
        if touches.is_empty() {
            std::mem::swap(&mut touches, &mut idle);
        }
        let capacity = touches.len().div_ceil(nodes);
        touches.resize(nodes * capacity, Touches::new());
        let search = AssignmentSearch {
            nodes,
            capacity,
            goal,
            touches,
            groups: groups.len(),
            node_of: Vec::new(),
            sums: Vec::new(),
            maxima: Vec::new(),
            work: 0,
        };
        (search, idle)
    }

    /// The nodes of all threads, in their order: of those of the search, and of the idle ones.
    fn nodes_of_all(&mut self, working: &[bool], idle: &[Touches]) -> Vec<NodeIx> {
        let of_search = self.node_of[..working.len() - idle.len()].to_vec();
        let mut free = vec![working.len().div_ceil(self.nodes); self.nodes];
        for &node in &of_search {
            free[node] -= 1;
        }
        self.sums = self.sums_per_node();
        let of_idle: Vec<usize> = idle
            .iter()
            .map(|t| self.add_to_best(t, &mut free))
            .collect();
        let (mut of_search, mut of_idle) = (of_search.iter(), of_idle.iter());
        let node = working.iter().map(|works| {
            let node = match *works || idle.is_empty() {
                true => of_search.next(),
                false => of_idle.next(),
            };
            NodeIx(node.copied().unwrap_or(0) as u32)
        });
        node.collect()
    }

    /// Adds what a thread touches to the node with a free place where most is gained by it; which that is.
    fn add_to_best(&mut self, touches: &Touches, free: &mut [usize]) -> usize {
        let node = (0..self.nodes).filter(|&n| free[n] > 0);
        let node = node
            .max_by_key(|&n| (self.gain_on(&self.sums, touches, n), std::cmp::Reverse(n)))
            .unwrap_or(0);
        free[node] = free[node].saturating_sub(1);
        for &(group, accesses) in touches {
            self.sums[group as usize * self.nodes + node] += accesses;
        }
        node
    }

    fn sums_per_node(&self) -> Vec<i64> {
        let mut sums = vec![0; self.groups * self.nodes];
        for (cells, node) in self.touches.iter().zip(&self.node_of) {
            for &(g, c) in cells {
                sums[g as usize * self.nodes + node] += c;
            }
        }
        sums
    }

    /// What is gained, with these sums, by what a thread touches if it is on a node.
    fn gain_on(&self, sums: &[i64], touches: &Touches, node: usize) -> i64 {
        let gain = touches.iter().map(|&(g, c)| {
            let row = &sums[g as usize * self.nodes..][..self.nodes];
            (row[node] + c - row_max(row)).max(0)
        });
        self.objective(gain.sum())
    }

    fn slots(&self) -> usize {
        self.touches.len()
    }

    /// Value to be raised: the numerator of E_app, or its negative.
    fn objective(&self, numerator: i64) -> i64 {
        match self.goal {
            ExclusivityGoal::Maximise => numerator,
            ExclusivityGoal::Minimise => -numerator,
        }
    }

    /// Threads in order of accesses, each to the node where it gains most at that moment.
    fn greedy_start(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.slots()).collect();
        let weight = |t: &usize| self.touches[*t].iter().map(|c| c.1).sum::<i64>();
        order.sort_by_key(|t| (-weight(t), *t));
        let mut sums = vec![0i64; self.groups * self.nodes];
        let mut free = vec![self.capacity; self.nodes];
        let mut node_of = vec![0; self.slots()];
        for t in order {
            let gain = |node: usize| self.gain_on(&sums, &self.touches[t], node);
            let node = (0..self.nodes)
                .filter(|&n| free[n] > 0)
                .max_by_key(|&n| (gain(n), std::cmp::Reverse(n)))
                .unwrap_or(0);
            free[node] -= 1;
            node_of[t] = node;
            for &(g, c) in &self.touches[t] {
                sums[g as usize * self.nodes + node] += c;
            }
        }
        node_of
    }

    /// Takes a start to a local optimum, or as far as the work allows; its value.
    fn improve_by_swaps(&mut self, start: Vec<usize>) -> i64 {
        self.node_of = start;
        self.sums = self.sums_per_node();
        self.maxima = self.sums.chunks(self.nodes).map(row_max).collect();
        let mut improved = true;
        while improved && self.work > 0 {
            improved = false;
            for a in 0..self.slots() {
                let mut best = (0, a);
                for b in 0..self.slots() {
                    if self.node_of[a] == self.node_of[b] || self.work == 0 {
                        continue;
                    }
                    let gain = self.gain_of_swap(a, b);
                    if gain > best.0 {
                        best = (gain, b);
                    }
                }
                if best.0 > 0 {
                    self.swap_threads(a, best.1);
                    improved = true;
                }
            }
        }
        self.objective(self.maxima.iter().sum())
    }

    fn gain_of_swap(&mut self, a: usize, b: usize) -> i64 {
        // Rows of known length stay in registers, which is most of a search's time.
        let (change, looked) = match self.nodes {
            2 => self.swap_gain::<2>(a, b),
            4 => self.swap_gain::<4>(a, b),
            8 => self.swap_gain::<8>(a, b),
            _ => self.change_of_any(a, b),
        };
        self.work = self.work.saturating_sub(looked);
        self.objective(change)
    }

    /// What the sum of maxima changes by if a and b swap, and the cells that were looked at.
    fn swap_gain<const N: usize>(&self, a: usize, b: usize) -> (i64, u64) {
        let (from, to) = (self.node_of[a], self.node_of[b]);
        // All bits where a node gains, or loses, what moves.
        let gains: [i64; N] = std::array::from_fn(|n| -i64::from(n == to));
        let loses: [i64; N] = std::array::from_fn(|n| -i64::from(n == from));
        let (mut change, mut groups) = (0, 0);
        for_merged(&self.touches[a], &self.touches[b], |group, ca, cb| {
            groups += 1;
            let moved = ca - cb;
            let Some(row) = self.sums[group as usize * N..].first_chunk::<N>() else {
                return;
            };
            let after = |n: usize| row[n] + (moved & gains[n]) - (moved & loses[n]);
            let most = (1..N).fold(after(0), |most, n| most.max(after(n)));
            change += most - self.maxima[group as usize];
        });
        (change, 1 + groups * N as u64)
    }

    fn change_of_any(&mut self, a: usize, b: usize) -> (i64, u64) {
        let (from, to) = (self.node_of[a], self.node_of[b]);
        let (mut change, mut looked) = (0, 1);
        let (sums, nodes) = (&mut self.sums, self.nodes);
        for_merged(&self.touches[a], &self.touches[b], |group, ca, cb| {
            looked += nodes as u64;
            let moved = ca - cb;
            if moved == 0 {
                return;
            }
            // Moved and moved back: cheaper than to ask of every node whether it is one of the two.
            let row = &mut sums[group as usize * nodes..][..nodes];
            row[from] -= moved;
            row[to] += moved;
            change += row_max(row) - self.maxima[group as usize];
            row[from] += moved;
            row[to] -= moved;
        });
        (change, looked)
    }

    fn swap_threads(&mut self, a: usize, b: usize) {
        let (from, to) = (self.node_of[a], self.node_of[b]);
        for (thread, leaves, enters) in [(a, from, to), (b, to, from)] {
            for &(g, c) in &self.touches[thread] {
                let row = &mut self.sums[g as usize * self.nodes..][..self.nodes];
                row[leaves] -= c;
                row[enters] += c;
                self.maxima[g as usize] = row_max(row);
            }
        }
        self.node_of.swap(a, b);
    }
}

fn row_max(row: &[i64]) -> i64 {
    row.iter().copied().max().unwrap_or(0)
}

/// Calls `f(group, accesses of a, accesses of b)` for every group either touches.
fn for_merged(a: &[(u32, i64)], b: &[(u32, i64)], mut f: impl FnMut(u32, i64, i64)) {
    // What both touch from the first group on needs no merging.
    let both = a.iter().zip(b).take_while(|(x, y)| x.0 == y.0);
    let alike = both.map(|(x, y)| f(x.0, x.1, y.1)).count();
    let (mut i, mut j) = (alike, alike);
    while i < a.len() || j < b.len() {
        let ga = a.get(i).map_or(u32::MAX, |c| c.0);
        let gb = b.get(j).map_or(u32::MAX, |c| c.0);
        let group = ga.min(gb);
        let mut counts = (0, 0);
        if ga == group {
            counts.0 = a[i].1;
            i += 1;
        }
        if gb == group {
            counts.1 = b[j].1;
            j += 1;
        }
        f(group, counts.0, counts.1);
    }
}

/// Threads with their accesses, per group of pages.
type PageClasses = Vec<Vec<(u32, i64)>>;

/// Groups that a search can handle: as fine as possible, and if even the coarsest are too
/// many, those with most accesses.
fn limited_groups(table: &PageAccessTable) -> PageClasses {
    for steps in SHARE_STEPS {
        if let Some(groups) = group_pages(table, steps, MAX_CELLS) {
            return groups;
        }
    }
    let [.., coarsest] = SHARE_STEPS;
    let mut groups = group_pages(table, coarsest, usize::MAX).unwrap_or_default();
    groups.sort_by_key(|cells| -cells.iter().map(|c| c.1).sum::<i64>());
    let mut cells = 0;
    groups.retain(|group| {
        cells += group.len();
        cells <= MAX_CELLS
    });
    groups
}

/// Shared pages, those alike summed; `None` when that leaves more cells than these.
fn group_pages(
    table: &PageAccessTable,
    share_steps: u64,
    most_cells: usize,
) -> Option<PageClasses> {
    let mut cells_of_groups = 0;
    let mut groups = PageClasses::new();
    let mut by_shape: HashMap<Vec<(u32, u8)>, usize> = HashMap::new();
    for page in 0..table.len() {
        let uses = table.uses(page);
        if uses.len() < 2 {
            continue;
        }
        let total: u64 = uses.iter().map(|u| u.accesses()).sum();
        let share = |n: u64| {
            let steps = u128::from(n) * u128::from(share_steps) + u128::from(total / 2);
            (steps / u128::from(total)) as u8
        };
        let shape = uses
            .iter()
            .map(|u| (u.thread().0, share(u.accesses())))
            .collect();
        let cells = uses.iter().map(|u| (u.thread().0, u.accesses() as i64));
        match by_shape.get(&shape) {
            Some(&group) => {
                for (sum, cell) in groups[group].iter_mut().zip(cells) {
                    sum.1 += cell.1;
                }
            }
            None => {
                cells_of_groups += uses.len();
                if cells_of_groups > most_cells {
                    return None;
                }
                by_shape.insert(shape, groups.len());
                groups.push(cells.collect());
            }
        }
    }
    Some(groups)
}
