//! Local search: threads swap homes, or move to free ones, as long as that helps.
use super::links::Links;
use super::state::{Change, State};
use std::collections::VecDeque;

/// Partners of a thread that are looked at again after it moved; of threads with more, none.
pub const FEW: usize = 24;

/// Whether looking at all other threads by a state's table costs less than at those where a
/// thread's partners are by their links: per thread about n steps against about
/// 9 d^2 + 12 d for d partners, as there are two threads at most homes.
#[must_use]
pub fn dense(links: &Links) -> bool {
    let partners = links.link.len() / links.len().max(1);
    9 * partners * partners + 12 * partners > links.len()
}

/// Threads still to be looked at.
#[derive(Default)]
pub struct Queue {
    waiting: VecDeque<u32>,
    queued: Vec<bool>,
}

impl Queue {
    #[must_use]
    pub fn new(threads: usize) -> Queue {
        Queue {
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
    pub fn push_around(&mut self, state: &State, t: u32) {
        self.push(t);
        let row = state.links.of(t as usize);
        if row.len() <= FEW {
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
pub fn threads_of(change: Change) -> [u32; 2] {
    match change {
        Change::Swap(u, v) => [u, v],
        Change::Move(t, _) => [t, t],
    }
}

/// Looks at queued threads until none is left or `limit` steps are done; every change is
/// put into `log`.
pub fn drain(state: &mut State, queue: &mut Queue, limit: u64, log: &mut Vec<Change>) {
    while let Some(u) = queue.pop() {
        if state.steps >= limit {
            queue.clear();
            return;
        }
        let best = if state.has_table() {
            state.scan(u as usize)
        } else {
            scan_near(state, u as usize)
        };
        let Some((_, change)) = best else {
            continue;
        };
        log.push(undo_of(state, change));
        state.apply(change);
        for t in threads_of(change) {
            queue.push_around(state, t);
        }
    }
}

/// The change that takes `change`, about to be made, back.
#[must_use]
pub fn undo_of(state: &State, change: Change) -> Change {
    match change {
        Change::Swap(u, v) => Change::Swap(u, v),
        Change::Move(t, _) => Change::Move(t, state.at[t as usize]),
    }
}

/// All threads, again and again until a round changes nothing.
pub fn descend(state: &mut State, limit: u64) {
    let mut queue = Queue::new(state.at.len());
    let mut log = Vec::new();
    loop {
        for t in 0..state.at.len() as u32 {
            queue.push(t);
        }
        log.clear();
        drain(state, &mut queue, limit, &mut log);
        let complete = state.links.link.len() <= FEW * state.at.len();
        if log.is_empty() || state.steps >= limit || (complete && !state.has_table()) {
            return;
        }
    }
}

/// The best change of u with threads or free places where its partners are.
fn scan_near(state: &mut State, u: usize) -> Option<(i64, Change)> {
    let links = state.links;
    let h = state.at[u];
    let mut best = (0, Change::Move(u as u32, h));
    let mut seen = [u32::MAX; FEW];
    let mut count = 0;
    for l in links.of(u) {
        let k = state.at[l.to as usize];
        if k == h || seen[..count].contains(&k) {
            continue;
        }
        if count == FEW {
            break;
        }
        seen[count] = k;
        count += 1;
        try_home(state, u, k, &mut best);
    }
    (best.0 < 0).then_some(best)
}

fn try_home(state: &mut State, u: usize, k: u32, best: &mut (i64, Change)) {
    let h = state.at[u] as usize;
    let arrives = state.move_delta(u, k as usize);
    state.steps += 5 * state.links.of(u).len() as u64 + 8;
    if state.free(k) > 0 && arrives < best.0 {
        *best = (arrives, Change::Move(u as u32, k));
    }
    let space = state.space;
    for at in 0..state.members[k as usize].len() {
        let v = state.members[k as usize][at];
        // v can win at most all that it costs now.
        if arrives - state.own(v as usize) >= best.0 {
            continue;
        }
        state.steps += 5 * state.links.of(v as usize).len() as u64 + 8;
        let mut delta = arrives + state.move_delta(v as usize, h);
        let row = state.links.of(v as usize);
        if let Some(l) = row.iter().find(|l| l.to as usize == u) {
            let both = 2 * space.distance(h, k as usize) - space.vertex[h].cost;
            delta += l.weight * (both - space.vertex[k as usize].cost);
        }
        if delta < best.0 {
            *best = (delta, Change::Swap(u as u32, v));
        }
    }
}
