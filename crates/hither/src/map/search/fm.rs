//! Refinement of a bisection (Fiduccia and Mattheyses, 1982): vertices change sides one by
//! one, best gain first, losses included, each once; then back to the best state seen.
use super::coarsen::Weighted;
use std::collections::BinaryHeap;

/// Weight that the left side may have, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub low: u32,
    pub high: u32,
}

impl Range {
    /// How far a weight is from the range.
    #[must_use]
    pub fn misses(self, weight: u32) -> u32 {
        self.low.saturating_sub(weight) + weight.saturating_sub(self.high)
    }
}

const PASSES: usize = 8;
/// A pass ends after this many moves without a new best, and a part of the vertices.
const PATIENCE: usize = 24;

/// Scratch of a refinement.
pub struct Fm<'a> {
    graph: &'a Weighted,
    range: Range,
    /// Whether a vertex is left.
    left: Vec<bool>,
    /// What the cut loses when a vertex changes sides.
    gain: Vec<i64>,
    locked: Vec<bool>,
    left_weight: u32,
    slack: u32,
    /// By side; entries whose gain is out of date are passed over. `None` where looking at
    /// all vertices is cheaper.
    heaps: Option<[BinaryHeap<Entry>; 2]>,
    stamp: u32,
    pub steps: u64,
}

/// Gain, then the latest first.
type Entry = (i64, u32, u32);

impl<'a> Fm<'a> {
    #[must_use]
    pub fn new(graph: &'a Weighted, range: Range, left: Vec<bool>) -> Fm<'a> {
        let n = left.len();
        let weights = graph.weight.iter().zip(&left);
        let left_weight = weights.filter(|(_, l)| **l).map(|(w, _)| *w).sum();
        let scan = n <= 64 || graph.links.link.len() * 16 > n * n;
        Fm {
            graph,
            range,
            left,
            gain: vec![0; n],
            locked: vec![false; n],
            left_weight,
            slack: graph.weight.iter().copied().max().unwrap_or(1),
            heaps: (!scan).then(Default::default),
            stamp: 0,
            steps: 0,
        }
    }

    /// Passes until one gains nothing. The sides, and the cut's weight.
    #[must_use]
    pub fn run(mut self) -> (Vec<bool>, i64, u64) {
        for _ in 0..PASSES {
            if !self.pass() {
                break;
            }
        }
        let mut cut = 0;
        for v in 0..self.left.len() {
            for l in self.graph.links.of(v) {
                if self.left[v] != self.left[l.to as usize] {
                    cut += l.weight;
                }
            }
        }
        (self.left, cut / 2, self.steps)
    }

    fn pass(&mut self) -> bool {
        let n = self.left.len();
        self.start_pass();
        let mut moved: Vec<u32> = Vec::new();
        let mut gained = 0;
        let begin = (self.range.misses(self.left_weight), 0);
        let mut best = begin;
        let mut best_len = 0;
        let patience = PATIENCE + n / 8;
        while moved.len() < n && moved.len() - best_len < patience {
            let Some(v) = self.choose() else {
                break;
            };
            gained += self.gain[v];
            self.flip(v);
            moved.push(v as u32);
            let now = (self.range.misses(self.left_weight), -gained);
            if now < best {
                best = now;
                best_len = moved.len();
            }
        }
        for &v in moved[best_len..].iter().rev() {
            self.set_side(v as usize);
        }
        best < begin
    }

    /// Gains; the heaps get vertices at the cut, or all when the sides have to be evened.
    fn start_pass(&mut self) {
        let all = self.range.misses(self.left_weight) > 0;
        self.locked.fill(false);
        if let Some(heaps) = &mut self.heaps {
            heaps[0].clear();
            heaps[1].clear();
        }
        for v in 0..self.left.len() {
            let mut gain = 0;
            let mut at_cut = false;
            for l in self.graph.links.of(v) {
                if self.left[v] == self.left[l.to as usize] {
                    gain -= l.weight;
                } else {
                    gain += l.weight;
                    at_cut = true;
                }
            }
            self.gain[v] = gain;
            if all || at_cut {
                self.push(v);
            }
        }
        self.steps += (self.left.len() + self.graph.links.link.len()) as u64;
    }

    fn push(&mut self, v: usize) {
        if let Some(heaps) = &mut self.heaps {
            self.stamp += 1;
            heaps[usize::from(self.left[v])].push((self.gain[v], self.stamp, v as u32));
        }
    }

    /// The best vertex of a side, and its gain.
    fn top(&mut self, from_left: bool) -> Option<(i64, usize)> {
        let Some(heaps) = &mut self.heaps else {
            self.steps += self.left.len() as u64 / 4;
            let mut best = (i64::MIN, usize::MAX);
            let sides = self.left.iter().zip(&self.locked).zip(&self.gain);
            for (v, ((&left, &locked), &gain)) in sides.enumerate() {
                if gain >= best.0 && left == from_left && !locked {
                    best = (gain, v);
                }
            }
            return (best.1 != usize::MAX).then_some(best);
        };
        let heap = &mut heaps[usize::from(from_left)];
        while let Some(&(gain, _, v)) = heap.peek() {
            let at = v as usize;
            if !self.locked[at] && self.left[at] == from_left && self.gain[at] == gain {
                return Some((gain, at));
            }
            heap.pop();
        }
        None
    }

    /// The vertex to move next: from the side that is too heavy, else the better gain of
    /// the sides that can spare one.
    fn choose(&mut self) -> Option<usize> {
        let weight = self.left_weight;
        let (from_left, from_right) = if weight > self.range.high {
            (true, false)
        } else if weight < self.range.low {
            (false, true)
        } else {
            (true, true)
        };
        let left = if from_left { self.top(true) } else { None };
        let right = if from_right { self.top(false) } else { None };
        let low = self.range.low.saturating_sub(self.slack);
        let left = left.filter(|&(_, v)| weight - self.graph.weight[v] >= low);
        let high = self.range.high + self.slack;
        let right = right.filter(|&(_, v)| weight + self.graph.weight[v] <= high);
        match (left, right) {
            (Some(l), Some(r)) => Some(if l.0 >= r.0 { l.1 } else { r.1 }),
            (l, r) => l.or(r).map(|(_, v)| v),
        }
    }

    /// Moves a vertex for this pass.
    fn flip(&mut self, v: usize) {
        self.set_side(v);
        self.locked[v] = true;
        self.gain[v] = -self.gain[v];
        let graph = self.graph;
        let row = graph.links.of(v);
        self.steps += row.len() as u64 + 4;
        for l in row {
            let u = l.to as usize;
            if self.left[u] == self.left[v] {
                self.gain[u] -= 2 * l.weight;
            } else {
                self.gain[u] += 2 * l.weight;
            }
            if !self.locked[u] {
                self.push(u);
            }
        }
    }

    fn set_side(&mut self, v: usize) {
        let weight = self.graph.weight[v];
        if self.left[v] {
            self.left_weight -= weight;
        } else {
            self.left_weight += weight;
        }
        self.left[v] = !self.left[v];
    }
}
