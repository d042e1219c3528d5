//! When to change from one place to another, all changes decided together: the sequence of stages
//! whose cost is least, where a stage costs what its place costs while it lasts, and a change what
//! moving costs. One place for all of the time is among them, so the result never costs more.
//!
//! ```text
//!   begin(s, c)   least cost of all before segment s, with a change to place c there
//!   until(e, c) = min over s < e of begin(s, c) + cost of c from s to e
//!   begin(e, c') = min over c of until(e, c) + moving from c to c'
//! ```
use hither_profile::Nanos;

/// What there is to choose from.
pub struct StageChoice<'a> {
    /// By segment of time, then by place: what it costs to be there.
    pub costs: &'a [Vec<u128>],
    /// When each segment begins.
    pub starts: &'a [Nanos],
    /// Least time between two changes.
    pub interval: Nanos,
}

/// A stage: its first segment and its place.
type ChosenStage = (usize, usize);

/// Least cost so far, and where the stage began or what place came before.
type Reached = (u128, usize);

impl StageChoice<'_> {
    /// The stages, in order; of equal ones the fewest, and the first place. `moving` is what a change costs at
    /// the beginning of a segment, from one place to another.
    pub fn cheapest(&self, moving: impl Fn(usize, usize, usize) -> u128) -> Vec<ChosenStage> {
        let segments = self.costs.len();
        let places = self.costs.first().map_or(0, Vec::len);
        if places == 0 {
            return Vec::new();
        }
        let sums = self.sums(places);
        let mut begin: Vec<Vec<Reached>> = vec![vec![(0, 0); places]];
        let mut until: Vec<Vec<Reached>> = vec![Vec::new()];
        for end in 1..=segments {
            let ends = (0..places).map(|c| self.until(end, c, &begin, &sums));
            let ends: Vec<Reached> = ends.collect();
            let begins = (0..places).map(|to| {
                let from = (0..places).filter(|from| *from != to);
                let change = |from: usize| match end < segments {
                    true => ends[from].0.saturating_add(moving(end, from, to)),
                    // Nothing comes after.
                    false => u128::MAX,
                };
                let costs = from.map(|from| (change(from), from));
                costs.min().unwrap_or((u128::MAX, to))
            });
            begin.push(begins.collect());
            until.push(ends);
        }
        let last = (0..places).min_by_key(|c| until[segments][*c].0);
        let mut stages = Vec::new();
        let (mut end, mut place) = (segments, last.unwrap_or(0));
        while end > 0 {
            let first = until[end][place].1;
            stages.push((first, place));
            place = begin[first][place].1;
            end = first;
        }
        stages.reverse();
        stages
    }

    /// By place, what it costs up to each segment.
    fn sums(&self, places: usize) -> Vec<Vec<u128>> {
        let mut sums: Vec<Vec<u128>> = vec![vec![0; places]];
        for costs in self.costs {
            let before = &sums[sums.len() - 1];
            let next = before.iter().zip(costs).map(|(a, b)| a.saturating_add(*b));
            let next = next.collect();
            sums.push(next);
        }
        sums
    }

    fn until(&self, end: usize, c: usize, begin: &[Vec<Reached>], sums: &[Vec<u128>]) -> Reached {
        let next = self.starts.get(end);
        let may_end = |first: &usize| {
            let lasts = next.map(|next| next.saturating_sub(self.starts[*first]));
            *first == 0 || lasts.is_none_or(|lasts| lasts >= self.interval)
        };
        let cost = |first: usize| {
            let there = sums[end][c] - sums[first][c];
            (begin[first][c].0.saturating_add(there), first)
        };
        let all = (0..end).filter(may_end).map(cost);
        all.min().unwrap_or((u128::MAX, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stages(costs: &[[u128; 2]], moving: u128, interval: Nanos) -> Vec<ChosenStage> {
        let costs: Vec<Vec<u128>> = costs.iter().map(|c| c.to_vec()).collect();
        let starts: Vec<Nanos> = (0..costs.len() as u64).collect();
        let choice = StageChoice {
            costs: &costs,
            starts: &starts,
            interval,
        };
        choice.cheapest(|_, _, _| moving)
    }

    /// 30 to be in the wrong place in the middle, 300 at the ends.
    #[test]
    fn a_change_must_gain_more_than_moving_there_and_back() {
        let costs = [[0, 300], [30, 0], [0, 300]];
        assert_eq!(stages(&costs, 14, 0), [(0, 0), (1, 1), (2, 0)]);
        assert_eq!(stages(&costs, 15, 0), [(0, 0)], "no gain is no reason");
        assert_eq!(stages(&costs, 14, 2), [(0, 0)], "too short");
        assert_eq!(stages(&[], 1, 0), []);
    }

    proptest! {
        /// Against all sequences of two places.
        #[test]
        fn no_sequence_costs_less(
            costs in prop::collection::vec([0..9u128, 0..9u128], 1..9),
            moving in 0..9u128,
            interval in 0..4u64,
        ) {
            let cost = |places: &dyn Fn(usize) -> usize| {
                let there: u128 = (0..costs.len()).map(|s| costs[s][places(s)]).sum();
                let changes: Vec<usize> = (1..costs.len()).filter(|s| places(*s) != places(s - 1)).collect();
                let apart = changes.windows(2).all(|w| (w[1] - w[0]) as u64 >= interval);
                apart.then_some(there + moving * changes.len() as u128)
            };
            let best = (0..1usize << costs.len()).filter_map(|set| cost(&|s| set >> s & 1)).min();
            let found = stages(&costs, moving, interval);
            let of = |s: usize| found[found.partition_point(|stage| stage.0 <= s) - 1].1;
            prop_assert_eq!(cost(&of), best);
        }
    }
}
