//! A placement under change: the PU of each thread, its cost, and what a change would gain.
//!
//! The cost of thread t at anchor h, were it there, is linear in how much t communicates with threads that sit
//! below each vertex:
//!
//! ```text
//!   C(t, h) = base[cell h][t] - sum over vertices a from h up to its cell of near[a][t]
//!   near[a][t] = (cost of a's parent - cost of a) x events of t with threads below a
//!   base[c][t] = sum over cells m of top[c][m] x events of t with threads in m
//! ```
//!
//! Rows near[a] and base[c] are kept as threads move, which takes a few additions for each
//! partner, and give the gain of one thread swapping with *every* other in a few additions
//! for each. Where the table would be too large, costs are summed over a thread's links.
use super::csr_graph::CsrGraph;
use super::search_space::SearchSpace;

/// Entries of the table, at most: 16 MiB.
const MAX_TABLE_ENTRIES: usize = 1 << 21;

pub struct SearchState<'a> {
    pub space: &'a SearchSpace,
    pub links: &'a CsrGraph,
    /// The anchor of each thread.
    pub at: Vec<u32>,
    /// Threads at each anchor, in no order.
    pub members: Vec<Vec<u32>>,
    /// Position of a thread among its anchor's members.
    slot: Vec<u32>,
    /// The objective, in scaled weights.
    pub value: i64,
    /// The cost of each thread where it is: value is half their sum.
    own: Vec<i64>,
    table: Option<CostTable>,
    /// Vertices with room: where threads can be.
    pub anchors: Vec<u32>,
    /// Places at all anchors that are free.
    pub idle: usize,
    pub scratch: ScanScratch,
    pub steps: u64,
}

struct CostTable {
    /// vertices x threads.
    near: Vec<i64>,
    /// cells x threads.
    base: Vec<i64>,
}

/// Rows that a scan fills.
#[derive(Default)]
pub struct ScanScratch {
    /// By thread.
    delta: Vec<i64>,
    /// By vertex.
    cost: Vec<i64>,
}

/// A change of a placement and what it adds to the objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchMove {
    Swap(u32, u32),
    Move(u32, u32),
}

impl<'a> SearchState<'a> {
    /// `table` asks for the table, if it is not too large.
    #[must_use]
    pub fn new(
        space: &'a SearchSpace,
        links: &'a CsrGraph,
        at: Vec<u32>,
        table: bool,
    ) -> SearchState<'a> {
        let n = links.len();
        let size = n * (space.len() + space.cells.len());
        let anchors = (0..space.len() as u32).filter(|&h| space.vertex[h as usize].room > 0);
        let table = (table && size <= MAX_TABLE_ENTRIES).then(|| CostTable {
            near: vec![0; n * space.len()],
            base: vec![0; n * space.cells.len()],
        });
        let mut state = SearchState {
            space,
            links,
            at: Vec::new(),
            members: vec![Vec::new(); space.len()],
            slot: vec![0; n],
            value: 0,
            own: vec![0; n],
            table,
            anchors: anchors.collect(),
            idle: (space.vertex[0].capacity as usize).saturating_sub(n),
            scratch: ScanScratch {
                delta: vec![0; n],
                cost: vec![0; space.len()],
            },
            steps: 0,
        };
        state.reset(at);
        state
    }

    #[must_use]
    pub fn has_table(&self) -> bool {
        self.table.is_some()
    }

    /// Another placement of the same threads.
    pub fn reset(&mut self, at: Vec<u32>) {
        for m in &mut self.members {
            m.clear();
        }
        for (t, &h) in at.iter().enumerate() {
            self.slot[t] = self.members[h as usize].len() as u32;
            self.members[h as usize].push(t as u32);
        }
        self.at = at;
        for t in 0..self.at.len() {
            self.own[t] = self.cost_by_links(t, self.at[t] as usize);
        }
        self.value = self.own.iter().sum::<i64>() / 2;
        self.steps += 2 * self.links.link.len() as u64;
        if let Some(mut table) = self.table.take() {
            table.near.fill(0);
            table.base.fill(0);
            for t in 0..self.at.len() {
                self.steps += (self.links.neighbours(t).len() * 4) as u64;
                self.add_to_partner_rows(&mut table, t);
            }
            self.table = Some(table);
        }
    }

    /// Adds thread t to the rows of its partners.
    fn add_to_partner_rows(&self, table: &mut CostTable, t: usize) {
        let n = self.at.len();
        let h = self.at[t] as usize;
        let cell = self.space.vertex[h].cell as usize;
        let root = self.space.cells[cell] as usize;
        let mut a = h;
        while a != root {
            let step = self.space.distance_step(a);
            let row = &mut table.near[a * n..][..n];
            for l in self.links.neighbours(t) {
                row[l.to as usize] += step * l.weight;
            }
            a = self.space.vertex[a].parent as usize;
        }
        let cells = self.space.cells.len();
        for c in 0..cells {
            let far = self.space.top[c * cells + cell];
            let row = &mut table.base[c * n..][..n];
            for l in self.links.neighbours(t) {
                row[l.to as usize] += far * l.weight;
            }
        }
    }

    fn cost_by_links(&self, t: usize, h: usize) -> i64 {
        let links = self.links.neighbours(t).iter();
        links
            .map(|l| l.weight * self.space.distance(h, self.at[l.to as usize] as usize))
            .sum()
    }

    /// Takes a thread to another anchor; the caller sees to the room there.
    pub fn relocate(&mut self, t: u32, to: u32) {
        let (t, to) = (t as usize, to as usize);
        let from = self.at[t] as usize;
        if from == to {
            return;
        }
        let mut own = 0;
        for l in self.links.neighbours(t) {
            let j = l.to as usize;
            let anchor = self.at[j] as usize;
            let after = l.weight * self.space.distance(to, anchor);
            self.own[j] += after - l.weight * self.space.distance(from, anchor);
            own += after;
        }
        self.value += own - self.own[t];
        self.own[t] = own;
        self.steps += 2 * self.links.neighbours(t).len() as u64 + 4;
        if let Some(mut table) = self.table.take() {
            self.count_move(&mut table, t, from, to);
            self.table = Some(table);
        }
        let slot = self.slot[t] as usize;
        self.members[from].swap_remove(slot);
        if let Some(&other) = self.members[from].get(slot) {
            self.slot[other as usize] = slot as u32;
        }
        self.slot[t] = self.members[to].len() as u32;
        self.members[to].push(t as u32);
        self.at[t] = to as u32;
    }

    fn count_move(&mut self, table: &mut CostTable, t: usize, from: usize, to: usize) {
        let n = self.at.len();
        let row = self.links.neighbours(t);
        let cells = self.space.cells.len();
        let (cf, ct) = (self.space.vertex[from].cell, self.space.vertex[to].cell);
        if cf != ct {
            for c in 0..cells {
                let change = self.space.top[c * cells + ct as usize]
                    - self.space.top[c * cells + cf as usize];
                for l in row {
                    table.base[c * n + l.to as usize] += change * l.weight;
                }
            }
        }
        for (h, other, sign) in [(from, to, -1), (to, from, 1)] {
            let mut a = h;
            while !self.contains_anchor(a, other)
                && a != self.space.cells[self.space.vertex[h].cell as usize] as usize
            {
                let step = sign * self.space.distance_step(a);
                let near = &mut table.near[a * n..][..n];
                for l in row {
                    near[l.to as usize] += step * l.weight;
                }
                self.steps += row.len() as u64;
                a = self.space.vertex[a].parent as usize;
            }
        }
    }

    fn contains_anchor(&self, a: usize, h: usize) -> bool {
        a <= h && h < self.space.vertex[a].end as usize
    }

    pub fn apply(&mut self, change: SearchMove) {
        match change {
            SearchMove::Move(t, to) => self.relocate(t, to),
            SearchMove::Swap(u, v) => {
                let (h, k) = (self.at[u as usize], self.at[v as usize]);
                self.relocate(u, k);
                self.relocate(v, h);
            }
        }
    }

    /// Free places at an anchor.
    #[must_use]
    pub fn free_places(&self, anchor: u32) -> u32 {
        self.space.vertex[anchor as usize].room - self.members[anchor as usize].len() as u32
    }

    /// What moving a thread to a free place adds to the objective, by its links.
    #[must_use]
    pub fn move_delta(&self, t: usize, to: usize) -> i64 {
        self.cost_by_links(t, to) - self.own[t]
    }

    #[must_use]
    pub fn cost_of(&self, t: usize) -> i64 {
        self.own[t]
    }

    /// The best change of thread u with any other thread or free place, by the table.
    pub fn best_move(&mut self, u: usize) -> Option<(i64, SearchMove)> {
        let table = self.table.as_ref()?;
        let n = self.at.len();
        let space = self.space;
        let h = self.at[u] as usize;
        let ScanScratch { delta, cost } = &mut self.scratch;
        costs_everywhere(table, space, u, n, cost);
        costs_at_anchor(table, space, h, n, delta);
        let own = self.own[u];
        for v in 0..n {
            delta[v] += cost[self.at[v] as usize] - self.own[v] - own;
        }
        for l in self.links.neighbours(u) {
            let k = self.at[l.to as usize] as usize;
            let both = 2 * space.distance(h, k) - space.vertex[h].cost - space.vertex[k].cost;
            delta[l.to as usize] += l.weight * both;
        }
        self.steps += (4 * n + 2 * space.len() + 2 * self.links.neighbours(u).len()) as u64;
        let mut best = (0, SearchMove::Move(u as u32, h as u32));
        for (v, &d) in delta.iter().enumerate() {
            if d < best.0 {
                best = (d, SearchMove::Swap(u as u32, v as u32));
            }
        }
        if self.idle > 0 {
            for &k in &self.anchors {
                let d = cost[k as usize] - own;
                let room = space.vertex[k as usize].room as usize;
                if d < best.0 && self.members[k as usize].len() < room {
                    best = (d, SearchMove::Move(u as u32, k));
                }
            }
        }
        (best.0 < 0).then_some(best)
    }
}

/// C(u, h) of every anchor h.
fn costs_everywhere(table: &CostTable, space: &SearchSpace, u: usize, n: usize, cost: &mut [i64]) {
    for (cell, &root) in space.cells.iter().enumerate() {
        let root = root as usize;
        cost[root] = table.base[cell * n + u];
        for a in root + 1..space.vertex[root].end as usize {
            cost[a] = cost[space.vertex[a].parent as usize] - table.near[a * n + u];
        }
    }
}

/// C(v, h) of every thread v.
fn costs_at_anchor(table: &CostTable, space: &SearchSpace, h: usize, n: usize, cost: &mut [i64]) {
    let cell = space.vertex[h].cell as usize;
    cost.copy_from_slice(&table.base[cell * n..][..n]);
    let mut a = h;
    while a != space.cells[cell] as usize {
        for (c, near) in cost.iter_mut().zip(&table.near[a * n..][..n]) {
            *c -= near;
        }
        a = space.vertex[a].parent as usize;
    }
}
