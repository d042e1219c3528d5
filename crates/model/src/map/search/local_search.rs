//! Local search: threads swap anchors, or move to free ones, as long as that helps.
use super::csr_graph::CsrGraph;
use super::search_state::{SearchMove, SearchState};
use std::collections::VecDeque;

/// Partners of a thread that are looked at again after it moved; of threads with more, none.
pub const MAX_REQUEUED_PARTNERS: usize = 24;

/// Whether looking at all other threads by a state's table costs less than at those where a
/// thread's partners are by their links: per thread about n steps against about
/// 9 d^2 + 12 d for d partners, as there are two threads at most anchors.
#[must_use]
pub fn prefers_table(links: &CsrGraph) -> bool {
    let partners = links.link.len() / links.len().max(1);
    9 * partners * partners + 12 * partners > links.len()
}

/// Threads still to be looked at.
#[derive(Default)]
pub struct ThreadQueue {
    waiting: VecDeque<u32>,
    queued: Vec<bool>,
}

impl ThreadQueue {
    #[must_use]
    pub fn new(threads: usize) -> ThreadQueue {
        ThreadQueue {
            waiting: VecDeque::new(),
            queued: vec![false; threads],
        }
    }

    pub fn push(&mut self, t: u32) {
        if !std::mem::replace(&mut self.queued[t as usize], true) {
            self.waiting.push_back(t);
        }
    }

    fn pop(&mut self) -> Option<u32> {
        let t = self.waiting.pop_front()?;
        self.queued[t as usize] = false;
        Some(t)
    }

    /// A thread that moved, and its partners.
    pub fn push_around(&mut self, state: &SearchState, t: u32) {
        self.push(t);
        let row = state.links.neighbours(t as usize);
        if row.len() <= MAX_REQUEUED_PARTNERS {
            for l in row {
                self.push(l.to);
            }
        }
    }

    fn clear(&mut self) {
        while self.pop().is_some() {}
    }
}

/// Threads of a change.
#[must_use]
pub fn moved_threads(change: SearchMove) -> [u32; 2] {
    match change {
        SearchMove::Swap(u, v) => [u, v],
        SearchMove::Move(t, _) => [t, t],
    }
}

/// Looks at queued threads until none is left or `limit` steps are done; every change is
/// put into `log`.
pub fn improve_queued(
    state: &mut SearchState,
    queue: &mut ThreadQueue,
    limit: u64,
    log: &mut Vec<SearchMove>,
) {
    while let Some(u) = queue.pop() {
        if state.steps >= limit {
            queue.clear();
            return;
        }
        let best = if state.has_table() {
            state.best_move(u as usize)
        } else {
            best_move_near_partners(state, u as usize)
        };
        let Some((_, change)) = best else {
            continue;
        };
        log.push(inverse_move(state, change));
        state.apply(change);
        for t in moved_threads(change) {
            queue.push_around(state, t);
        }
    }
}

/// The change that takes `change`, about to be made, back.
#[must_use]
pub fn inverse_move(state: &SearchState, change: SearchMove) -> SearchMove {
    match change {
        SearchMove::Swap(u, v) => SearchMove::Swap(u, v),
        SearchMove::Move(t, _) => SearchMove::Move(t, state.at[t as usize]),
    }
}

/// All threads, again and again until a round changes nothing.
pub fn descend_to_optimum(state: &mut SearchState, limit: u64) {
    let mut queue = ThreadQueue::new(state.at.len());
    let mut log = Vec::new();
    loop {
        for t in 0..state.at.len() as u32 {
            queue.push(t);
        }
        log.clear();
        improve_queued(state, &mut queue, limit, &mut log);
        let complete = state.links.link.len() <= MAX_REQUEUED_PARTNERS * state.at.len();
        if log.is_empty() || state.steps >= limit || (complete && !state.has_table()) {
            return;
        }
    }
}

/// The best change of u with threads or free places where its partners are.
fn best_move_near_partners(state: &mut SearchState, u: usize) -> Option<(i64, SearchMove)> {
    let links = state.links;
    let h = state.at[u];
    let mut best = (0, SearchMove::Move(u as u32, h));
    let mut seen = [u32::MAX; MAX_REQUEUED_PARTNERS];
    let mut count = 0;
    for l in links.neighbours(u) {
        let k = state.at[l.to as usize];
        if k == h || seen[..count].contains(&k) {
            continue;
        }
        if count == MAX_REQUEUED_PARTNERS {
            break;
        }
        seen[count] = k;
        count += 1;
        try_anchor(state, u, k, &mut best);
    }
    (best.0 < 0).then_some(best)
}

fn try_anchor(state: &mut SearchState, u: usize, k: u32, best: &mut (i64, SearchMove)) {
    let h = state.at[u] as usize;
    let arrives = state.move_delta(u, k as usize);
    state.steps += 5 * state.links.neighbours(u).len() as u64 + 8;
    if state.free_places(k) > 0 && arrives < best.0 {
        *best = (arrives, SearchMove::Move(u as u32, k));
    }
    let space = state.space;
    for at in 0..state.members[k as usize].len() {
        let v = state.members[k as usize][at];
        // v can win at most all that it costs now.
        if arrives - state.cost_of(v as usize) >= best.0 {
            continue;
        }
        state.steps += 5 * state.links.neighbours(v as usize).len() as u64 + 8;
        let mut delta = arrives + state.move_delta(v as usize, h);
        let row = state.links.neighbours(v as usize);
        if let Some(l) = row.iter().find(|l| l.to as usize == u) {
            let both = 2 * space.distance(h, k as usize) - space.vertex[h].cost;
            delta += l.weight * (both - space.vertex[k as usize].cost);
        }
        if delta < best.0 {
            *best = (delta, SearchMove::Swap(u as u32, v));
        }
    }
}
