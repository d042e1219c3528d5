//! A placement from the root of the machine down: at each vertex the threads are cut into
//! as many parts as there are children, of the sizes the children take. For distances along a
//! tree the objective is the sum over levels of the distance step times the cut, so each cut
//! counts for itself.
use super::bisect::multilevel_bisection;
use super::csr_graph::CsrGraph;
use super::fm_refinement::WeightRange;
use super::search_space::{SearchSpace, NO_VERTEX};
use crate::rng::Rng;

/// Where idle places are left when there are fewer threads than places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdlePlaces {
    /// Wherever the cut is smallest.
    Free,
    /// Every part gets its share.
    Even,
    /// As many full parts as possible.
    Filled,
}

pub struct RecursiveBisection<'a> {
    pub space: &'a SearchSpace,
    pub links: &'a CsrGraph,
    pub idle: IdlePlaces,
    /// Bisections per cut, of which the best is kept.
    pub tries: usize,
    pub steps: u64,
    /// Scratch of [`CsrGraph::part`].
    place: Vec<u32>,
}

/// A part of the threads and what it is to be divided over.
struct ThreadPart {
    threads: Vec<u32>,
    vertex: u32,
    /// Children of the vertex, by position; its own units count as one more.
    slots: Vec<u32>,
}

impl<'a> RecursiveBisection<'a> {
    #[must_use]
    pub fn new(
        space: &'a SearchSpace,
        links: &'a CsrGraph,
        idle: IdlePlaces,
        tries: usize,
    ) -> RecursiveBisection<'a> {
        RecursiveBisection {
            space,
            links,
            idle,
            tries,
            steps: 0,
            place: Vec::new(),
        }
    }

    /// The anchor of each thread.
    #[must_use]
    pub fn place_threads(&mut self, rng: &mut Rng) -> Vec<u32> {
        let n = self.links.len();
        let mut anchors = vec![NO_VERTEX; n];
        let all = (0..n as u32).collect();
        for (t, anchor) in self.divide_threads(all, 0, slots_of(self.space, 0), rng) {
            anchors[t as usize] = anchor;
        }
        anchors
    }

    /// Anchors of some threads, over some children of a vertex, by position; its own units count
    /// as one more.
    #[must_use]
    pub fn divide_threads(
        &mut self,
        threads: Vec<u32>,
        vertex: u32,
        slots: Vec<u32>,
        rng: &mut Rng,
    ) -> Vec<(u32, u32)> {
        let mut anchors = Vec::with_capacity(threads.len());
        let mut place = std::mem::take(&mut self.place);
        place.resize(self.links.len(), u32::MAX);
        let mut stack = vec![ThreadPart {
            threads,
            vertex,
            slots,
        }];
        while let Some(part) = stack.pop() {
            if part.threads.is_empty() {
                continue;
            }
            if let [only] = part.slots[..] {
                let children = &self.space.vertex[part.vertex as usize].children;
                match children.get(only as usize) {
                    Some(&child) => stack.push(ThreadPart {
                        threads: part.threads,
                        vertex: child,
                        slots: slots_of(self.space, child),
                    }),
                    None => anchors.extend(part.threads.iter().map(|&t| (t, part.vertex))),
                }
                continue;
            }
            let (left, right) = self.split(part, &mut place, rng);
            stack.push(right);
            stack.push(left);
        }
        self.place = place;
        anchors
    }

    /// Threads that some slots of a vertex take.
    fn capacity(&self, vertex: u32, slots: &[u32]) -> u32 {
        let v = &self.space.vertex[vertex as usize];
        let of = |at: &u32| {
            let child = v.children.get(*at as usize);
            child.map_or(v.room, |&c| self.space.vertex[c as usize].capacity)
        };
        slots.iter().map(of).sum()
    }

    /// Halves by capacity, as near as the children allow.
    fn split(
        &mut self,
        part: ThreadPart,
        place: &mut [u32],
        rng: &mut Rng,
    ) -> (ThreadPart, ThreadPart) {
        let ThreadPart {
            threads,
            vertex,
            slots,
        } = part;
        let all = self.capacity(vertex, &slots);
        let middle = (1..slots.len())
            .min_by_key(|&m| (2 * self.capacity(vertex, &slots[..m])).abs_diff(all))
            .unwrap_or(1);
        let left_room = self.capacity(vertex, &slots[..middle]);
        // Of cuts that are as good the first is taken, and what is filled is on the left: where the sides are
        // not alike, either may be the better one for the larger part.
        let mirrored = self.sides_differ(vertex, slots.split_at(middle)) && rng.below(2) > 0;
        let rooms = [left_room, all - left_room];
        let [first, other] = if mirrored {
            [rooms[1], rooms[0]]
        } else {
            rooms
        };
        let range = self.left_weight_range(threads.len() as u32, first, other);
        let half = |threads, slots: &[u32]| ThreadPart {
            threads,
            vertex,
            slots: slots.to_vec(),
        };
        let mut sides = (Vec::new(), Vec::new());
        if range.high == 0 {
            sides.1 = threads;
        } else if range.low as usize == threads.len() {
            sides.0 = threads;
        } else {
            let links = self.links.induced_subgraph(&threads, place);
            self.steps += (links.link.len() + 4 * threads.len() + 64) as u64;
            let left = multilevel_bisection(links, range, self.tries, rng, &mut self.steps);
            for (&t, left) in threads.iter().zip(left) {
                let side = if left { &mut sides.0 } else { &mut sides.1 };
                side.push(t);
            }
        }
        if mirrored {
            sides = (sides.1, sides.0);
        }
        (
            half(sides.0, &slots[..middle]),
            half(sides.1, &slots[middle..]),
        )
    }

    /// Whether the children on two sides differ in distances or places.
    fn sides_differ(&self, vertex: u32, sides: (&[u32], &[u32])) -> bool {
        let children = &self.space.vertex[vertex as usize].children;
        let shapes = |slots: &[u32]| {
            let child = |at: &u32| {
                children
                    .get(*at as usize)
                    .map(|&c| &self.space.vertex[c as usize])
            };
            let shape = |at| child(at).map(|c| (c.cost, c.capacity));
            let mut shapes: Vec<_> = slots.iter().map(shape).collect();
            shapes.sort_unstable();
            shapes
        };
        shapes(sides.0) != shapes(sides.1)
    }

    fn left_weight_range(&self, threads: u32, left: u32, right: u32) -> WeightRange {
        let low = threads.saturating_sub(right);
        let high = threads.min(left);
        let one = |n: u32| WeightRange { low: n, high: n };
        match self.idle {
            IdlePlaces::Free => WeightRange { low, high },
            IdlePlaces::Filled => one(high),
            IdlePlaces::Even => {
                let share = u64::from(threads) * u64::from(left);
                let share = share.div_ceil(u64::from(left + right)) as u32;
                one(share.clamp(low, high))
            }
        }
    }
}

/// All slots of a vertex.
#[must_use]
pub fn slots_of(space: &SearchSpace, vertex: u32) -> Vec<u32> {
    let v = &space.vertex[vertex as usize];
    (0..v.children.len() as u32 + u32::from(v.room > 0)).collect()
}
