//! How many threads each unit takes, independently of which: full rounds of all units first, then
//! first siblings of cores, second siblings, and so on, so that no core is shared while another is
//! idle. Where sharing is asked for, packing fills every unit.
use crate::map::ThreadProblem;
use crate::topology::TopologyTree;

/// Where the threads of the last, incomplete round go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotDistribution {
    /// To every vertex its share by units, as EagerMap does: caches and memory are used
    /// evenly.
    Even,
    /// To the first units: the fewest nodes are used.
    Packed,
}

/// Threads of each unit, by position in [`TopologyTree::units`].
///
/// # Errors
/// When the threads do not fit.
pub fn slots(problem: &ThreadProblem, fill: SlotDistribution) -> Result<Vec<u32>, String> {
    let threads = check_fit(problem)?;
    if fill == SlotDistribution::Even || !problem.siblings {
        return Ok(slots_for(threads, problem.tree, fill));
    }
    let (threads, units) = (threads as u32, problem.tree.units.len() as u32);
    // More than must share a unit where that is asked for; else none idles while another has two.
    let (each, more) = match problem.capacity > threads.div_ceil(units) {
        true => (0, problem.capacity),
        false => (threads / units, 1),
    };
    let mut rest = threads - each * units;
    let take = |_| {
        let slots = rest.min(more);
        rest -= slots;
        each + slots
    };
    Ok((0..units).map(take).collect())
}

/// Most threads of a unit: as few as possible unless sharing is asked for.
pub fn max_threads_per_unit(problem: &ThreadProblem) -> u32 {
    if problem.siblings {
        return problem.capacity;
    }
    let (threads, units) = (problem.comm.threads(), problem.tree.units.len());
    problem.capacity.min(threads.div_ceil(units) as u32)
}

/// As [`slots`], for this many threads, where sharing is not asked for.
pub fn slots_for(threads: usize, tree: &TopologyTree, fill: SlotDistribution) -> Vec<u32> {
    let units = tree.units.len();
    let mut slots = vec![(threads / units) as u32; units];
    let mut rest = (threads % units) as u32;
    let rank = smt_ranks(tree);
    for round in 0.. {
        if rest == 0 {
            break;
        }
        let of_round = |at: &u32| rank[*at as usize] == round;
        let here = (0..units as u32).filter(of_round);
        if fill == SlotDistribution::Packed || rest >= here.clone().count() as u32 {
            for at in here.take(rest as usize) {
                slots[at as usize] += 1;
                rest -= 1;
            }
        } else {
            distribute_slots(tree, 0, rest, &of_round, &mut slots);
            rest = 0;
        }
    }
    slots
}

/// The number of threads, if they fit.
pub fn check_fit(problem: &ThreadProblem) -> Result<usize, String> {
    let (threads, units) = (problem.comm.threads(), problem.tree.units.len());
    let needed = threads.div_ceil(units);
    if needed > problem.capacity as usize {
        return Err(format!(
            "{threads} threads do not fit on {units} units with {} each; allow {needed} with --capacity {needed}",
            problem.capacity
        ));
    }
    Ok(threads)
}

/// For each unit how many units of its core come before it.
pub fn smt_ranks(tree: &TopologyTree) -> Vec<u32> {
    let mut seen = vec![0; tree.units.len()];
    let next = |unit: &crate::topology::UsablePu| {
        let rank = &mut seen[unit.core as usize];
        *rank += 1;
        *rank - 1
    };
    tree.units.iter().map(next).collect()
}

/// Gives `threads`, fewer than there are units of the round below `vertex`, to its children
/// in proportion to those; what is left goes to the largest remainders, the first of equals.
fn distribute_slots(
    tree: &TopologyTree,
    vertex: u32,
    threads: u32,
    of_round: &impl Fn(&u32) -> bool,
    slots: &mut [u32],
) {
    let vertex = &tree.vertices[vertex as usize];
    if vertex.children.is_empty() {
        slots[vertex.units.start as usize] += threads;
        return;
    }
    let room = |v: u32| {
        tree.vertices[v as usize]
            .units
            .clone()
            .filter(of_round)
            .count() as u64
    };
    let total: u64 = vertex.children.iter().map(|v| room(*v)).sum();
    // Rooms are at most 2^16 units.
    let exact = |v: u32| u64::from(threads) * room(v);
    let mut by_remainder: Vec<(u64, u32)> = vertex
        .children
        .iter()
        .filter(|v| room(**v) > 0)
        .map(|&v| (total - exact(v) % total, v))
        .collect();
    by_remainder.sort_unstable();
    let whole: u64 = by_remainder.iter().map(|(_, v)| exact(*v) / total).sum();
    let left = u64::from(threads) - whole;
    for (&(_, v), n) in by_remainder.iter().zip(0..) {
        let its = exact(v) / total + u64::from(n < left);
        if its > 0 {
            distribute_slots(tree, v, its as u32, of_round, slots);
        }
    }
}
