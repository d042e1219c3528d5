//! A placement from the root of the machine down: at each vertex the threads are cut into
//! as many parts as there are children, of the sizes the children take. For distances along a
//! tree the objective is the sum over levels of the distance step times the cut, so each cut
//! counts for itself.
use super::bisect::bisect;
use super::fm::Range;
use super::links::Links;
use super::rng::Rng;
use super::space::{Space, NONE};

/// Where idle places are left when there are fewer threads than places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Wherever the cut is smallest.
    Free,
    /// Every part gets its share.
    Even,
    /// As many full parts as possible.
    Filled,
}

pub struct TopDown<'a> {
    pub space: &'a Space,
    pub links: &'a Links,
    pub idle: Idle,
    /// Bisections per cut, of which the best is kept.
    pub tries: usize,
    pub steps: u64,
}

/// A part of the threads and what it is to be divided over.
struct Part {
    threads: Vec<u32>,
    /// Consecutive children of a vertex; its own units count as one more.
    vertex: u32,
    first: usize,
    last: usize,
}

impl TopDown<'_> {
    /// The home of each thread.
    #[must_use]
    pub fn solve(&mut self, rng: &mut Rng) -> Vec<u32> {
        let n = self.links.len();
        let mut homes = vec![NONE; n];
        let mut place = vec![u32::MAX; n];
        let mut stack = vec![self.whole((0..n as u32).collect(), 0)];
        while let Some(part) = stack.pop() {
            if part.threads.is_empty() {
                continue;
            }
            if part.last - part.first == 1 {
                let children = &self.space.vertex[part.vertex as usize].children;
                match children.get(part.first) {
                    Some(&child) => stack.push(self.whole(part.threads, child)),
                    None => {
                        for t in part.threads {
                            homes[t as usize] = part.vertex;
                        }
                    }
                }
                continue;
            }
            let (left, right) = self.split(part, &mut place, rng);
            stack.push(right);
            stack.push(left);
        }
        homes
    }

    fn whole(&self, threads: Vec<u32>, vertex: u32) -> Part {
        let v = &self.space.vertex[vertex as usize];
        Part {
            threads,
            vertex,
            first: 0,
            last: v.children.len() + usize::from(v.room > 0),
        }
    }

    /// Threads that parts `first..last` of a vertex take.
    fn capacity(&self, vertex: u32, first: usize, last: usize) -> u32 {
        let v = &self.space.vertex[vertex as usize];
        let of = |at: usize| {
            let child = v.children.get(at);
            child.map_or(v.room, |&c| self.space.vertex[c as usize].capacity)
        };
        (first..last).map(of).sum()
    }

    /// Halves by capacity, as near as the children allow.
    fn split(&mut self, part: Part, place: &mut [u32], rng: &mut Rng) -> (Part, Part) {
        let Part {
            threads,
            vertex,
            first,
            last,
        } = part;
        let all = self.capacity(vertex, first, last);
        let middle = (first + 1..last)
            .min_by_key(|&m| (2 * self.capacity(vertex, first, m)).abs_diff(all))
            .unwrap_or(first + 1);
        let left_room = self.capacity(vertex, first, middle);
        let range = self.range(threads.len() as u32, left_room, all - left_room);
        let half = |threads, first, last| Part {
            threads,
            vertex,
            first,
            last,
        };
        let mut sides = (Vec::new(), Vec::new());
        if range.high == 0 {
            sides.1 = threads;
        } else if range.low as usize == threads.len() {
            sides.0 = threads;
        } else {
            let links = self.links.part(&threads, place);
            self.steps += links.link.len() as u64;
            let left = bisect(links, range, self.tries, rng, &mut self.steps);
            for (&t, left) in threads.iter().zip(left) {
                let side = if left { &mut sides.0 } else { &mut sides.1 };
                side.push(t);
            }
        }
        (half(sides.0, first, middle), half(sides.1, middle, last))
    }

    fn range(&self, threads: u32, left: u32, right: u32) -> Range {
        let low = threads.saturating_sub(right);
        let high = threads.min(left);
        let one = |n: u32| Range { low: n, high: n };
        match self.idle {
            Idle::Free => Range { low, high },
            Idle::Filled => one(high),
            Idle::Even => {
                let share = u64::from(threads) * u64::from(left);
                let share = share.div_ceil(u64::from(left + right)) as u32;
                one(share.clamp(low, high))
            }
        }
    }
}
