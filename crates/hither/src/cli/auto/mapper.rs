//! Joins what was seen while the program runs to the policies: who had better sit where, and
//! whether moving is worth it.
use crate::map::filter::Filter;
use crate::map::threads::locality::Locality;
use crate::map::threads::ThreadPolicy;
use crate::map::{Cost, Graph, Problem};
use crate::place::online::analysis::Member;
use crate::place::online::{Mapper, Mechanism, Question};
use crate::place::run::guide::Cpu;
use crate::topology::Tree;

/// Maps behind SPCD's filter, from where the threads are.
pub struct Warm {
    tree: Tree,
    cost: Cost,
    mechanism: Mechanism,
    filter: Filter,
}

/// A new mapping shortens the distance by this share at least...
const GAIN: f64 = 0.05;
/// ...and by this times the reciprocal root of the events more: of few events, the better
/// part of what seems to be a pattern is chance.
const CHANCE: f64 = 0.6;

impl Warm {
    pub fn new(tree: Tree, mechanism: Mechanism) -> Warm {
        Warm {
            cost: Cost::hops(&tree),
            tree,
            mechanism,
            filter: Filter::default(),
        }
    }

    /// Distance of all events if threads sat anywhere: what a mapping is compared with while
    /// they are where the system happens to run them.
    fn anywhere(&self, comm: &Graph) -> f64 {
        let units = self.tree.units.len();
        let pairs =
            (0..units).flat_map(|a| (0..units).filter(move |&b| b != a).map(move |b| (a, b)));
        let (mut sum, mut count) = (0.0, 0.0);
        for (a, b) in pairs {
            sum += f64::from(self.cost.between(&self.tree, a, b));
            count += 1.0;
        }
        let events: f64 = comm.pairs().map(|(_, _, w)| w as f64).sum();
        events * sum / f64::max(count, 1.0)
    }

    /// A unit for each thread of the graph, if that is much better than what is.
    fn place(&self, comm: &Graph, seats: Option<&[u32]>, event: f64) -> Option<Vec<u32>> {
        let threads = comm.threads();
        let load = vec![1; threads];
        let problem = Problem {
            tree: &self.tree,
            cost: &self.cost,
            comm,
            load: &load,
            capacity: threads.div_ceil(self.tree.units.len().max(1)) as u32,
            siblings: false,
            current: seats,
            seed: 0,
        };
        let policy: &dyn ThreadPolicy = match self.mechanism {
            Mechanism::Kmaf => &Locality { fast: true },
            Mechanism::Spcd => &crate::map::threads::MATCHING,
        };
        let units = policy.place(&problem).ok()?;
        let before = match seats {
            Some(seats) => problem.objective(seats) as f64,
            None => self.anywhere(comm),
        };
        let events: f64 = comm.pairs().map(|(_, _, w)| w as f64).sum::<f64>() / event;
        let needed = GAIN + CHANCE / f64::max(events, 1.0).sqrt();
        let after = problem.objective(&units) as f64;
        (after < before * (1.0 - needed)).then_some(units)
    }
}

impl Mapper for Warm {
    fn map(&mut self, question: &Question) -> Option<Vec<(Member, Cpu)>> {
        let all = question.pairs.iter();
        let all = all.map(|&(i, j, w)| (u32::from(i.0), u32::from(j.0), u64::from(w)));
        let whole = Graph::new(question.seats.len(), all);
        let mut filter = self.filter.clone();
        if !filter.is_due(&whole) {
            return None;
        }
        let talks = |m: &usize| whole.row(*m).len() > 0;
        let members: Vec<usize> = (0..whole.threads()).filter(talks).collect();
        let mut number = vec![u32::MAX; whole.threads()];
        for (at, &member) in (0..).zip(&members) {
            number[member] = at;
        }
        let pairs = whole.pairs().map(|(i, j, w)| (number[i], number[j], w));
        let comm = Graph::new(members.len(), pairs);
        let unit_of = |cpu: Cpu| self.tree.units.iter().position(|unit| unit.os == cpu.0);
        let seats = members
            .iter()
            .map(|&m| Some(unit_of(question.seats[m]?)? as u32));
        let seats: Option<Vec<u32>> = seats.collect();
        let units = self.place(&comm, seats.as_deref(), f64::from(question.event))?;
        self.filter = filter;
        let cpu = |unit: u32| Cpu(self.tree.units[unit as usize].os);
        let members = members.iter().map(|&m| Member(m as u16));
        Some(members.zip(units).map(|(m, unit)| (m, cpu(unit))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{select, Restrictions};

    /// Four nodes of two units.
    fn warm(mechanism: Mechanism) -> Warm {
        let machine = select(Some("node:4 pu:2"), &Restrictions::default()).expect("machine");
        Warm::new(machine.tree, mechanism)
    }

    /// Asks twice: the seats that threads get, and whether the same pairs move them again.
    #[track_caller]
    fn seats(warm: &mut Warm, seats: &[Option<Cpu>], pairs: &[(u16, u16)]) -> Option<Vec<u32>> {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|&(i, j)| (Member(i), Member(j), 320))
            .collect();
        let question = Question {
            pairs: &pairs,
            seats,
            event: 16,
        };
        let answer = warm.map(&question)?;
        assert_eq!(warm.map(&question), None, "the same again");
        Some(answer.into_iter().map(|(_, cpu)| cpu.0).collect())
    }

    const NEAR: [(u16, u16); 4] = [(0, 1), (2, 3), (4, 5), (6, 7)];
    const FAR: [(u16, u16); 4] = [(0, 4), (1, 5), (2, 6), (3, 7)];

    #[test]
    fn pairs_sit_together_and_follow_a_change() {
        for mechanism in [Mechanism::Kmaf, Mechanism::Spcd] {
            let mut warm = warm(mechanism);
            let first = seats(&mut warm, &[None; 8], &NEAR).expect("seats");
            let together = |seats: &[u32], (i, j): (u16, u16)| {
                seats[usize::from(i)] / 2 == seats[usize::from(j)] / 2
            };
            assert!(NEAR.iter().all(|&pair| together(&first, pair)), "{first:?}");
            let now: Vec<_> = first.iter().map(|&cpu| Some(Cpu(cpu))).collect();
            let second = seats(&mut warm, &now, &FAR).expect("seats");
            assert!(
                FAR.iter().all(|&pair| together(&second, pair)),
                "{second:?}"
            );
        }
    }

    #[test]
    fn nothing_moves_where_all_talk_alike() {
        let all: Vec<(u16, u16)> = (0..8)
            .flat_map(|i| (i + 1..8).map(move |j| (i, j)))
            .collect();
        assert_eq!(seats(&mut warm(Mechanism::Kmaf), &[None; 8], &all), None);
    }

    #[test]
    fn silent_threads_are_left_alone() {
        let mut warm = warm(Mechanism::Kmaf);
        let seats = seats(&mut warm, &[None; 20], &[(3, 19), (4, 7)]).expect("seats");
        assert_eq!(seats.len(), 4);
    }
}
