//! Refinement of a bisection (Fiduccia and Mattheyses, 1982): vertices change sides one by
//! one, best gain first, losses included, each once; then back to the best state seen.
use super::coarsen::WeightedGraph;
use std::collections::BinaryHeap;

/// Weight that the left side may have, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightRange {
    pub low: u32,
    pub high: u32,
}

impl WeightRange {
    /// How far a weight is from the range.
    #[must_use]
    pub fn distance_from(self, weight: u32) -> u32 {
        self.low.saturating_sub(weight) + weight.saturating_sub(self.high)
    }
}

const PASSES: usize = 8;
/// A pass ends after this many moves without a new best, and a part of the vertices.
const PATIENCE: usize = 24;

/// Scratch of a refinement.
pub struct FmRefinement<'a> {
    graph: &'a WeightedGraph,
    range: WeightRange,
    /// Whether a vertex is left.
    left: Vec<bool>,
    /// What the cut loses when a vertex changes sides.
    gain: Vec<i64>,
    locked: Vec<bool>,
    left_weight: u32,
    cut: i64,
    slack: u32,
    candidates: MoveCandidates,
    stamp: u32,
    pub steps: u64,
}

/// Vertices that may move, by side.
enum MoveCandidates {
    /// Where looking at all is cheaper.
    All([Vec<u32>; 2]),
    /// Entries whose gain is out of date are passed over.
    Heaps([BinaryHeap<GainEntry>; 2]),
}

/// Gain, then the latest first.
type GainEntry = (i64, u32, u32);

/// The sides, the cut's weight, and the steps it took.
pub type Bisection = (Vec<bool>, i64, u64);

impl<'a> FmRefinement<'a> {
    #[must_use]
    pub fn new(graph: &'a WeightedGraph, range: WeightRange, left: Vec<bool>) -> FmRefinement<'a> {
        let n = left.len();
        let weights = graph.weight.iter().zip(&left);
        let left_weight = weights.filter(|(_, l)| **l).map(|(w, _)| *w).sum();
        let (mut gain, mut cut) = (Vec::with_capacity(n), 0);
        for (v, &side) in left.iter().enumerate() {
            let mut sum = 0;
            for l in graph.links.neighbours(v) {
                let across = left[l.to as usize] != side;
                sum += if across { l.weight } else { -l.weight };
                cut += if across { l.weight } else { 0 };
            }
            gain.push(sum);
        }
        let all = n <= 64 || graph.links.link.len() * 16 > n * n;
        FmRefinement {
            graph,
            range,
            left,
            gain,
            locked: vec![false; n],
            left_weight,
            cut: cut / 2,
            slack: graph.weight.iter().copied().max().unwrap_or(1),
            candidates: if all {
                MoveCandidates::All(Default::default())
            } else {
                MoveCandidates::Heaps(Default::default())
            },
            stamp: 0,
            steps: (n + graph.links.link.len()) as u64,
        }
    }

    /// Passes until one gains nothing.
    #[must_use]
    pub fn run(mut self) -> Bisection {
        let mut moved = Vec::new();
        for _ in 0..PASSES {
            if !self.run_pass(&mut moved) {
                break;
            }
        }
        (self.left, self.cut, self.steps)
    }

    fn run_pass(&mut self, moved: &mut Vec<u32>) -> bool {
        let n = self.left.len();
        self.start_pass();
        moved.clear();
        let begin = (self.range.distance_from(self.left_weight), self.cut);
        let mut best = begin;
        let mut best_len = 0;
        let patience = PATIENCE + n / 8;
        while moved.len() < n && moved.len() - best_len < patience {
            let Some(v) = self.choose_move() else {
                break;
            };
            self.locked[v] = true;
            self.move_vertex(v);
            moved.push(v as u32);
            let now = (self.range.distance_from(self.left_weight), self.cut);
            if now < best {
                best = now;
                best_len = moved.len();
            }
        }
        for &v in moved[..best_len].iter() {
            self.locked[v as usize] = false;
        }
        for &v in moved[best_len..].iter().rev() {
            self.move_vertex(v as usize);
            self.locked[v as usize] = false;
        }
        best < begin
    }

    /// Candidates are all vertices, or those at the cut, if the sides are even enough.
    fn start_pass(&mut self) {
        let n = self.left.len();
        self.steps += n as u64 / 2;
        match &mut self.candidates {
            MoveCandidates::All(lists) => {
                lists[0].clear();
                lists[1].clear();
                for (v, &side) in self.left.iter().enumerate() {
                    lists[usize::from(side)].push(v as u32);
                }
            }
            MoveCandidates::Heaps(heaps) => {
                heaps[0].clear();
                heaps[1].clear();
                let all = self.range.distance_from(self.left_weight) > 0;
                for v in 0..n {
                    let row = self.graph.links.neighbours(v).iter();
                    if all
                        || row
                            .clone()
                            .any(|l| self.left[l.to as usize] != self.left[v])
                    {
                        self.stamp += 1;
                        heaps[usize::from(self.left[v])].push((self.gain[v], self.stamp, v as u32));
                    }
                }
                self.steps += self.graph.links.link.len() as u64;
            }
        }
    }

    /// The best vertex of a side: its gain, itself, and its place among the candidates.
    fn best_candidate(&mut self, from_left: bool) -> Option<(i64, usize, usize)> {
        match &mut self.candidates {
            MoveCandidates::All(lists) => {
                let list = &lists[usize::from(from_left)];
                self.steps += list.len() as u64 / 2;
                let mut best = (i64::MIN, usize::MAX);
                for (at, &v) in list.iter().enumerate() {
                    let gain = self.gain[v as usize];
                    if gain >= best.0 {
                        best = (gain, at);
                    }
                }
                let v = *list.get(best.1)?;
                Some((best.0, v as usize, best.1))
            }
            MoveCandidates::Heaps(heaps) => {
                let heap = &mut heaps[usize::from(from_left)];
                while let Some(&(gain, _, v)) = heap.peek() {
                    let at = v as usize;
                    if !self.locked[at] && self.left[at] == from_left && self.gain[at] == gain {
                        return Some((gain, at, 0));
                    }
                    heap.pop();
                }
                None
            }
        }
    }

    /// The vertex to move next: from the side that is too heavy, else the better gain of
    /// the sides that can spare one. It is no candidate any more.
    fn choose_move(&mut self) -> Option<usize> {
        let weight = self.left_weight;
        let (from_left, from_right) = if weight > self.range.high {
            (true, false)
        } else if weight < self.range.low {
            (false, true)
        } else {
            (true, true)
        };
        let left = if from_left {
            self.best_candidate(true)
        } else {
            None
        };
        let right = if from_right {
            self.best_candidate(false)
        } else {
            None
        };
        let low = self.range.low.saturating_sub(self.slack);
        let left = left.filter(|&(_, v, _)| weight - self.graph.weight[v] >= low);
        let high = self.range.high + self.slack;
        let right = right.filter(|&(_, v, _)| weight + self.graph.weight[v] <= high);
        let (_, v, at) = match (left, right) {
            (Some(l), Some(r)) => Some(if l.0 >= r.0 { l } else { r }),
            (l, r) => l.or(r),
        }?;
        if let MoveCandidates::All(lists) = &mut self.candidates {
            lists[usize::from(self.left[v])].swap_remove(at);
        }
        Some(v)
    }

    /// Takes a vertex to the other side; its partners' gains follow.
    fn move_vertex(&mut self, v: usize) {
        let weight = self.graph.weight[v];
        if self.left[v] {
            self.left_weight -= weight;
        } else {
            self.left_weight += weight;
        }
        let side = !self.left[v];
        self.left[v] = side;
        self.cut -= self.gain[v];
        self.gain[v] = -self.gain[v];
        let graph = self.graph;
        let row = graph.links.neighbours(v);
        self.steps += row.len() as u64 + 4;
        for l in row {
            let u = l.to as usize;
            let same = self.left[u] == side;
            self.gain[u] += if same { -2 * l.weight } else { 2 * l.weight };
            if let MoveCandidates::Heaps(heaps) = &mut self.candidates {
                if !self.locked[u] {
                    self.stamp += 1;
                    heaps[usize::from(self.left[u])].push((self.gain[u], self.stamp, l.to));
                }
            }
        }
    }
}
