//! Iterated local search (Lourenco, Martin, Stutzle, "Iterated local search", 2003): a few
//! swaps of threads near one another, local search around them, and back if that was for the
//! worse.
use super::local_search::{improve_queued, inverse_move, moved_threads, ThreadQueue};
use super::search_state::{SearchMove, SearchState};
use crate::rng::Rng;

/// Kicks until the steps are spent.
pub fn iterated_local_search(state: &mut SearchState, rng: &mut Rng, limit: u64) {
    let n = state.at.len();
    if n < 2 || state.anchors.len() < 2 {
        return;
    }
    let mut queue = ThreadQueue::new(n);
    let mut log = Vec::new();
    while state.steps < limit {
        let before = state.value;
        log.clear();
        perturb(state, rng, &mut queue, &mut log);
        improve_queued(state, &mut queue, u64::MAX, &mut log);
        if state.value > before {
            for &change in log.iter().rev() {
                state.apply(change);
            }
        }
        state.steps += 256;
    }
}

fn perturb(
    state: &mut SearchState,
    rng: &mut Rng,
    queue: &mut ThreadQueue,
    log: &mut Vec<SearchMove>,
) {
    let mut u = rng.below(state.at.len());
    for _ in 0..2 + rng.below(3) {
        let change = random_change(state, u, rng);
        if let Some(change) = change {
            log.push(inverse_move(state, change));
            state.apply(change);
            for t in moved_threads(change) {
                queue.push_around(state, t);
            }
        }
        // The next one is near, so that all of them together can be for the better.
        let [a, b] = change.map_or([u as u32; 2], moved_threads);
        u = if rng.below(2) == 0 { a } else { b } as usize;
        let row = state.links.neighbours(u);
        if !row.is_empty() && rng.below(4) > 0 {
            u = row[rng.below(row.len())].to as usize;
        }
    }
}

/// Thread u goes to where one of its partners is, in exchange for another from there, or
/// swaps with any thread.
fn random_change(state: &SearchState, u: usize, rng: &mut Rng) -> Option<SearchMove> {
    let n = state.at.len();
    let row = state.links.neighbours(u);
    let anchor = if row.is_empty() || rng.below(4) == 0 {
        state.at[rng.below(n)]
    } else {
        state.at[row[rng.below(row.len())].to as usize]
    };
    if anchor == state.at[u] {
        return None;
    }
    if state.free_places(anchor) > 0 {
        return Some(SearchMove::Move(u as u32, anchor));
    }
    let members = &state.members[anchor as usize];
    Some(SearchMove::Swap(
        u as u32,
        members[rng.below(members.len())],
    ))
}
