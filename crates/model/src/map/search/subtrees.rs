//! Local search on whole subtrees: the threads below two vertices of the same shape change
//! places, all at once. Each such step would take many swaps of single threads, most of which
//! make things worse at first.
use super::search_space::{SearchSpace, NO_VERTEX};
use super::search_state::SearchState;
use std::collections::BTreeMap;

/// Swaps at every depth, the largest subtrees first, where there are at most `most` of one
/// shape: the work grows with the cube. Whether anything changed.
pub fn swap_subtrees(state: &mut SearchState, most: usize) -> bool {
    let mut changed = false;
    for alike in vertices_by_shape(state.space) {
        if alike.len() > 1 && alike.len() <= most {
            changed |= QuotientGraph::new(state, alike).improve(state);
        }
    }
    changed
}

/// A number for each vertex; the same for vertices of one depth and shape.
#[must_use]
pub fn shape_numbers(space: &SearchSpace) -> Vec<u32> {
    let mut kinds: BTreeMap<(u32, Vec<u32>), u32> = BTreeMap::new();
    let mut kind = vec![0u32; space.len()];
    for v in (0..space.len()).rev() {
        let vertex = &space.vertex[v];
        let mut shape = vec![vertex.room, vertex.cost as u32];
        shape.extend(vertex.children.iter().map(|&c| kind[c as usize]));
        let next = kinds.len() as u32;
        kind[v] = *kinds.entry((vertex.depth, shape)).or_insert(next);
    }
    kind
}

/// Vertices of the same depth and shape, by depth. Those above cells are not as far from one place
/// as from the next, so nothing is said of them as a whole.
fn vertices_by_shape(space: &SearchSpace) -> Vec<Vec<u32>> {
    let kind = shape_numbers(space);
    let mut alike: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for (v, &kind) in kind.iter().enumerate().skip(1) {
        if space.vertex[v].cell == NO_VERTEX {
            continue;
        }
        let key = (space.vertex[v].depth, kind);
        alike.entry(key).or_default().push(v as u32);
    }
    alike.into_values().collect()
}

/// Items that are swapped over places, and what is elsewhere.
struct QuotientGraph {
    /// The vertex of each place.
    place: Vec<u32>,
    /// items x items: weight between what was below each place.
    weight: Vec<i64>,
    /// items x places: cost towards threads outside all places.
    outside: Vec<i64>,
    /// places x places.
    distance: Vec<i64>,
}

impl QuotientGraph {
    fn new(state: &mut SearchState, place: Vec<u32>) -> QuotientGraph {
        let m = place.len();
        let space = state.space;
        let mut item = vec![u32::MAX; space.len()];
        for (i, &p) in (0..).zip(&place) {
            for v in p..space.vertex[p as usize].end {
                item[v as usize] = i;
            }
        }
        let mut weight = vec![0; m * m];
        let mut outside = vec![0; m * m];
        for t in 0..state.at.len() {
            let i = item[state.at[t] as usize];
            if i == u32::MAX {
                continue;
            }
            for l in state.links.neighbours(t) {
                let k = state.at[l.to as usize] as usize;
                if item[k] != u32::MAX {
                    weight[i as usize * m + item[k] as usize] += l.weight;
                } else {
                    for (p, &v) in place.iter().enumerate() {
                        outside[i as usize * m + p] += l.weight * space.distance(v as usize, k);
                    }
                }
            }
        }
        let between = |a: &u32, b: &u32| space.distance(*a as usize, *b as usize);
        let distance = place
            .iter()
            .flat_map(|a| place.iter().map(move |b| between(a, b)))
            .collect();
        state.steps += (state.links.link.len() + m * m) as u64;
        QuotientGraph {
            place,
            weight,
            outside,
            distance,
        }
    }

    /// Swaps while that helps; then moves the threads.
    fn improve(&self, state: &mut SearchState) -> bool {
        let m = self.place.len();
        // The item at each place.
        let mut at: Vec<usize> = (0..m).collect();
        let mut changed = false;
        loop {
            let mut better = false;
            for p in 0..m {
                for q in p + 1..m {
                    if self.swap_delta(&at, p, q) < 0 {
                        at.swap(p, q);
                        better = true;
                    }
                }
            }
            state.steps += (m * m * m) as u64;
            changed |= better;
            if !better {
                break;
            }
        }
        if changed {
            self.apply(state, &at);
        }
        changed
    }

    /// What swapping the items at two places adds to the objective.
    fn swap_delta(&self, at: &[usize], p: usize, q: usize) -> i64 {
        let m = self.place.len();
        let (a, b) = (at[p], at[q]);
        let mut delta = self.outside[a * m + q] - self.outside[a * m + p];
        delta += self.outside[b * m + p] - self.outside[b * m + q];
        let (wa, wb) = (&self.weight[a * m..][..m], &self.weight[b * m..][..m]);
        let (dp, dq) = (&self.distance[p * m..][..m], &self.distance[q * m..][..m]);
        for r in 0..m {
            if r != p && r != q {
                delta += (wa[at[r]] - wb[at[r]]) * (dq[r] - dp[r]);
            }
        }
        delta
    }

    fn apply(&self, state: &mut SearchState, at: &[usize]) {
        let mut anchors = state.at.clone();
        for (p, &item) in at.iter().enumerate() {
            let (to, from) = (self.place[p], self.place[item]);
            let end = state.space.vertex[from as usize].end;
            for v in from..end {
                for &t in &state.members[v as usize] {
                    // Same shape, so the same offset within the subtree.
                    anchors[t as usize] = v - from + to;
                }
            }
        }
        state.reset(anchors);
    }
}
