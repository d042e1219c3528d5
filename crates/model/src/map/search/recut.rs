//! Cutting parts of a placement again: what is below some children of a vertex is divided over
//! them again from the top, and kept if that, after local search, is no worse. How the threads
//! inside are best divided does not depend on where those outside are, so parts improve one by one,
//! while a whole restart would have to improve all of them at once.
use super::local_search::{improve_queued, ThreadQueue};
use super::recursive_bisection::{slots_of, IdlePlaces, RecursiveBisection};
use super::search_space::SearchSpace;
use super::search_state::{SearchMove, SearchState};
use crate::rng::Rng;

/// Threads below the smallest vertex that is worth it: swaps find the best of smaller ones.
const MIN_SUBTREE_THREADS: u32 = 8;

/// Recuts until the steps are spent, as many of them at one depth as at any other. `ways` are
/// those of leaving places idle that are to be tried.
pub fn recut_subtrees(state: &mut SearchState, rng: &mut Rng, limit: u64, ways: &[IdlePlaces]) {
    let depths = vertices_by_depth(state.space);
    let mut spent = vec![0u64; depths.len()];
    let mut queue = ThreadQueue::new(state.at.len());
    let mut top = RecursiveBisection::new(state.space, state.links, IdlePlaces::Free, 1);
    while state.steps < limit {
        let Some(depth) = (0..depths.len()).min_by_key(|&d| spent[d]) else {
            return;
        };
        let before = state.steps;
        let vertex = depths[depth][rng.below(depths[depth].len())];
        top.idle = ways[rng.below(ways.len())];
        recut_vertex(state, &mut top, &mut queue, vertex, rng);
        state.steps += 2 * std::mem::take(&mut top.steps) + 64;
        spent[depth] += state.steps - before;
    }
}

/// Vertices that can be divided again; depths without any are left out.
fn vertices_by_depth(space: &SearchSpace) -> Vec<Vec<u32>> {
    let mut depths: Vec<Vec<u32>> = Vec::new();
    for (v, vertex) in (0..).zip(&space.vertex) {
        if vertex.capacity < MIN_SUBTREE_THREADS || slots_of(space, v).len() < 2 {
            continue;
        }
        let depth = vertex.depth as usize;
        if depths.len() <= depth {
            depths.resize(depth + 1, Vec::new());
        }
        depths[depth].push(v);
    }
    depths.retain(|d| !d.is_empty());
    depths
}

/// Divides a vertex again, or two of its children; of the root always two, as all is what
/// a start does.
fn recut_vertex(
    state: &mut SearchState,
    top: &mut RecursiveBisection,
    queue: &mut ThreadQueue,
    vertex: u32,
    rng: &mut Rng,
) {
    let mut slots = slots_of(state.space, vertex);
    if slots.len() > 2 && (vertex == 0 || rng.below(2) == 0) {
        rng.shuffle(&mut slots);
        slots.truncate(2);
    }
    let threads = threads_below(state, vertex, &slots);
    if threads.len() < 2 {
        return;
    }
    let before = state.value;
    let old: Vec<(u32, u32)> = threads.iter().map(|&t| (t, state.at[t as usize])).collect();
    for (t, anchor) in top.divide_threads(threads, vertex, slots, rng) {
        if state.at[t as usize] != anchor {
            state.relocate(t, anchor);
            queue.push(t);
        }
    }
    let mut log = Vec::new();
    improve_queued(state, queue, u64::MAX, &mut log);
    if state.value > before {
        let moves = old
            .into_iter()
            .map(|(t, anchor)| SearchMove::Move(t, anchor));
        for change in log.into_iter().rev().chain(moves) {
            state.apply(change);
        }
    }
}

fn threads_below(state: &SearchState, vertex: u32, slots: &[u32]) -> Vec<u32> {
    let children = &state.space.vertex[vertex as usize].children;
    let mut threads = Vec::new();
    for &slot in slots {
        let anchors = match children.get(slot as usize) {
            Some(&c) => c..state.space.vertex[c as usize].end,
            None => vertex..vertex + 1,
        };
        for anchor in anchors {
            threads.extend_from_slice(&state.members[anchor as usize]);
        }
    }
    threads
}
