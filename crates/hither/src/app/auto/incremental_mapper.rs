//! Maps threads by the communication seen so far with the policies of `map`, and decides
//! whether migrating is worth it.
use crate::auto::analysis::SharerId;
use crate::auto::mechanism::DetectionMechanism;
use crate::auto::request::{MappingQuery, OnlineMapper};
use hither_model::map::communication_filter::CommunicationFilter;
use hither_model::map::mapping_trial::{MappingTrial, TrialEvent};
use hither_model::map::threads::ThreadPolicy;
use hither_model::map::{CommGraph, PuDistances, ThreadProblem};
use hither_model::topology::TopologyTree;
use hither_sys::Cpu;

/// Maps behind SPCD's filter, from where the threads are, and only what has proved itself.
pub struct IncrementalMapper {
    tree: TopologyTree,
    cost: PuDistances,
    mechanism: DetectionMechanism,
    policy: &'static dyn ThreadPolicy,
    /// Why it could not map.
    error: Option<String>,
    filter: CommunicationFilter,
    trial: MappingTrial,
    /// What was proposed last: the units by sharer.
    proposal: Vec<Option<u32>>,
}

/// A proposal is tried only if it shortens the distance of what is known by this share.
const GAIN: f64 = 0.05;

/// The threads that are to be placed, and where they are.
struct MappableThreads {
    sharers: Vec<SharerId>,
    comm: CommGraph,
    /// By place in `sharers`.
    assigned: Vec<Option<u32>>,
    /// Distance of two threads that sit anywhere, and its variance.
    anywhere: f64,
    variance: f64,
}

impl IncrementalMapper {
    /// Threads are mapped again, where the mechanism filters, once `threshold` of them have another
    /// partner.
    pub fn new(
        tree: TopologyTree,
        mechanism: DetectionMechanism,
        policy: &'static dyn ThreadPolicy,
        threshold: usize,
    ) -> IncrementalMapper {
        IncrementalMapper {
            cost: PuDistances::from_hops(&tree),
            tree,
            mechanism,
            policy,
            error: None,
            filter: CommunicationFilter::new(threshold),
            trial: MappingTrial::default(),
            proposal: Vec::new(),
        }
    }

    fn distance(&self, a: u32, b: u32) -> f64 {
        f64::from(self.cost.distance(&self.tree, a as usize, b as usize))
    }

    /// Mean distance of two of `threads` threads that are spread evenly and otherwise at random, and its
    /// variance: what a mapping is compared with while the system schedules them.
    fn random_distance(&self, threads: usize) -> (f64, f64) {
        let units = self.tree.units.len();
        let on = |unit: usize| (threads / units + usize::from(unit < threads % units)) as f64;
        let (mut sum, mut squares) = (0.0, 0.0);
        for a in 0..units {
            for b in 0..units {
                let distance = self.distance(a as u32, b as u32);
                sum += on(a) * on(b) * distance;
                squares += on(a) * on(b) * distance * distance;
            }
        }
        let pairs = ((threads * (threads - 1)) as f64).max(1.0);
        let mean = sum / pairs;
        (mean, squares / pairs - mean * mean)
    }

    /// Threads that communicate, and threads bound to a PU that others cannot have.
    fn mappable_threads(&self, whole: &CommGraph, question: &MappingQuery) -> MappableThreads {
        let unit_of = |cpu: Cpu| {
            let at = self.tree.units.iter().position(|unit| unit.os == cpu.0);
            at.map(|at| at as u32)
        };
        let assigned: Vec<Option<u32>> = question.assigned.iter().map(|s| unit_of((*s)?)).collect();
        let counts = |m: &usize| whole.neighbours(*m).len() > 0 || assigned[*m].is_some();
        let sharers: Vec<usize> = (0..whole.threads()).filter(counts).collect();
        let mut number = vec![u32::MAX; whole.threads()];
        for (at, &sharer) in (0..).zip(&sharers) {
            number[sharer] = at;
        }
        let pairs = whole.pairs().map(|(i, j, w)| (number[i], number[j], w));
        let (anywhere, variance) = self.random_distance(sharers.len());
        MappableThreads {
            comm: CommGraph::new(sharers.len(), pairs),
            assigned: sharers.iter().map(|&m| assigned[m]).collect(),
            anywhere,
            variance,
            sharers: sharers.iter().map(|&m| SharerId(m as u16)).collect(),
        }
    }

    /// Distance of two threads, by their places in `known`.
    fn current_distance(&self, known: &MappableThreads, i: usize, j: usize) -> f64 {
        match (known.assigned[i], known.assigned[j]) {
            (Some(a), Some(b)) => self.distance(a, b),
            _ => known.anywhere,
        }
    }

    /// Tells the trial how far the events since the last question went, and how far they
    /// would have as proposed then. Where nothing was, they judge nothing.
    fn rate_last_mapping(&mut self, known: &MappableThreads, question: &MappingQuery) {
        if self.proposal.is_empty() {
            return;
        }
        let place = |m: &SharerId| known.sharers.binary_search(m).ok();
        let proposed = |m: &SharerId| self.proposal.get(m.at()).copied().flatten();
        let events = question.new_events.iter().filter_map(|(a, b)| {
            let (i, j) = (place(a)?, place(b)?);
            let now = self.current_distance(known, i, j);
            let (Some(a), Some(b)) = (proposed(a), proposed(b)) else {
                return Some(TrialEvent::between_placed(now, now));
            };
            let event = TrialEvent::between_placed(now, self.distance(a, b));
            let are_placed = known.assigned[i].is_some() && known.assigned[j].is_some();
            let variance = if are_placed {
                event.variance
            } else {
                known.variance
            };
            Some(TrialEvent { variance, ..event })
        });
        let events: Vec<TrialEvent> = events.collect();
        self.trial.add_intervals(question.intervals, events);
    }

    /// Where all would be if those without a unit took the nearest one that is free.
    fn fill_nearest_free(&self, known: &MappableThreads, capacity: u32) -> Vec<u32> {
        let mut free = vec![capacity; self.tree.units.len()];
        for unit in known.assigned.iter().flatten() {
            free[*unit as usize] = free[*unit as usize].saturating_sub(1);
        }
        let mut assigned = known.assigned.clone();
        for thread in 0..assigned.len() {
            if assigned[thread].is_some() {
                continue;
            }
            let far = |unit: u32| {
                let of = |(j, w): (usize, u64)| Some(w as f64 * self.distance(unit, assigned[j]?));
                known.comm.neighbours(thread).filter_map(of).sum::<f64>()
            };
            let room = (0..).zip(&free).filter(|(_, free)| **free > 0);
            // The emptiest of the nearest.
            let best = room.map(|(unit, free)| (far(unit), u32::MAX - free, unit));
            let best = best.min_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
            if let Some((_, _, unit)) = best {
                free[unit as usize] -= 1;
                assigned[thread] = Some(unit);
            }
        }
        assigned
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect()
    }

    /// A unit for each thread, if that is better than what is.
    fn propose_mapping(&mut self, known: &MappableThreads) -> Option<Vec<u32>> {
        let threads = known.sharers.len();
        let capacity = threads.div_ceil(self.tree.units.len().max(1)) as u32;
        let current = self.fill_nearest_free(known, capacity);
        let load = vec![1; threads];
        let problem = ThreadProblem {
            tree: &self.tree,
            cost: &self.cost,
            comm: &known.comm,
            load: &load,
            capacity,
            siblings: false,
            current: Some(&current),
            seed: 0,
        };
        let placed = self.policy.place(&problem);
        let after = placed.as_ref().map_or(0, |units| problem.objective(units)) as f64;
        let units = match placed {
            Ok(units) => units,
            Err(error) => {
                self.error = Some(error);
                return None;
            }
        };
        let pairs = known.comm.pairs();
        let before: f64 = pairs
            .map(|(i, j, w)| w as f64 * self.current_distance(known, i, j))
            .sum();
        let least = match self.mechanism {
            DetectionMechanism::Adaptive => GAIN,
            DetectionMechanism::Kmaf | DetectionMechanism::Spcd => 0.0,
        };
        (after < before * (1.0 - least)).then_some(units)
    }
}

impl OnlineMapper for IncrementalMapper {
    fn place_threads(&mut self, question: &MappingQuery) -> Option<Vec<(SharerId, Cpu)>> {
        let all = question.pairs.iter();
        let all = all.map(|&(i, j, w)| (u32::from(i.0), u32::from(j.0), u64::from(w)));
        let whole = CommGraph::new(question.assigned.len(), all);
        let known = self.mappable_threads(&whole, question);
        self.rate_last_mapping(&known, question);
        self.proposal.clear();
        let mut filter = self.filter.clone();
        // kMAF has none (3.4.1), SPCD does (III.D).
        if self.mechanism != DetectionMechanism::Kmaf && !filter.is_due(&whole) {
            return None;
        }
        let units = self.propose_mapping(&known)?;
        let cpu = |unit: u32| Cpu(self.tree.units[unit as usize].os);
        if self.mechanism != DetectionMechanism::Adaptive {
            self.filter = filter;
            let placed = known.sharers.iter().zip(units);
            return Some(placed.map(|(&m, unit)| (m, cpu(unit))).collect());
        }
        let moved = units.iter().zip(&known.assigned);
        let moved = moved
            .filter(|(unit, before)| Some(**unit) != **before)
            .count();
        if !self
            .trial
            .is_worth_moving(moved as f64 / units.len() as f64)
        {
            self.proposal.resize(question.assigned.len(), None);
            for (sharer, &unit) in known.sharers.iter().zip(&units) {
                self.proposal[sharer.at()] = Some(unit);
            }
            return None;
        }
        self.filter = filter;
        self.trial = MappingTrial::default();
        let placed = known.sharers.iter().zip(units);
        Some(placed.map(|(&m, unit)| (m, cpu(unit))).collect())
    }

    fn policy(&self) -> &'static str {
        self.policy.name()
    }

    fn take_error(&mut self) -> Option<String> {
        self.error.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::analysis::sharing_matrix::{SharingMatrix, EVENT_WEIGHT};
    use hither_model::map::threads::THREAD_POLICIES;
    use hither_model::topology::{select_machine, MachineRestrictions};
    use std::hash::{DefaultHasher, Hash, Hasher};

    /// Four nodes of two units.
    fn mapper(mechanism: DetectionMechanism) -> IncrementalMapper {
        let machine =
            select_machine(Some("node:4 pu:2"), &MachineRestrictions::default()).expect("machine");
        let name = mechanism.usual_policy();
        let policy = THREAD_POLICIES.iter().find(|policy| policy.name() == name);
        IncrementalMapper::new(machine.tree, mechanism, *policy.expect("a policy"), 2)
    }

    /// Asks until threads are moved, with the same events each time; where they are then.
    /// `None` if they are not within a minute.
    fn assign(
        mapper: &mut IncrementalMapper,
        assigned: &[Option<Cpu>],
        pairs: &[(u16, u16)],
    ) -> Option<Vec<u32>> {
        let news: Vec<_> = pairs
            .iter()
            .map(|p| (SharerId(p.0), SharerId(p.1)))
            .collect();
        let news = [news.clone(), news].concat();
        let weight = |&(i, j): &(u16, u16)| (SharerId(i), SharerId(j), 8 * EVENT_WEIGHT);
        let pairs: Vec<_> = pairs.iter().map(weight).collect();
        let ask = |mapper: &mut IncrementalMapper, assigned: &[Option<Cpu>]| {
            let question = MappingQuery {
                pairs: &pairs,
                new_events: &news,
                intervals: 1,
                assigned,
            };
            mapper.place_threads(&question)
        };
        let answer = (0..600).find_map(|_| ask(mapper, assigned))?;
        let mut now = assigned.to_vec();
        for &(sharer, cpu) in &answer {
            now[sharer.at()] = Some(cpu);
        }
        for _ in 0..600 {
            assert_eq!(ask(mapper, &now), None, "the same again");
        }
        Some(answer.into_iter().map(|(_, cpu)| cpu.0).collect())
    }

    const NEAR: [(u16, u16); 4] = [(0, 1), (2, 3), (4, 5), (6, 7)];
    const FAR: [(u16, u16); 4] = [(0, 4), (1, 5), (2, 6), (3, 7)];

    #[test]
    fn pairs_sit_together_and_follow_a_change() {
        for mechanism in [
            DetectionMechanism::Adaptive,
            DetectionMechanism::Kmaf,
            DetectionMechanism::Spcd,
        ] {
            let mut mapper = mapper(mechanism);
            let first = assign(&mut mapper, &[None; 8], &NEAR).expect("units");
            let together = |assigned: &[u32], (i, j): (u16, u16)| {
                assigned[usize::from(i)] / 2 == assigned[usize::from(j)] / 2
            };
            assert!(NEAR.iter().all(|&pair| together(&first, pair)), "{first:?}");
            let now: Vec<_> = first.iter().map(|&cpu| Some(Cpu(cpu))).collect();
            let second = assign(&mut mapper, &now, &FAR).expect("units");
            assert!(
                FAR.iter().all(|&pair| together(&second, pair)),
                "{second:?}"
            );
        }
    }

    /// Of eight threads whose partners change two at a time.
    #[test]
    fn spcd_maps_again_when_as_many_partners_changed_as_its_threshold_says() {
        let check = |threshold: usize, expected: bool| {
            let mut mapper = mapper(DetectionMechanism::Spcd);
            mapper.filter = CommunicationFilter::new(threshold);
            let first = assign(&mut mapper, &[None; 8], &NEAR).expect("units");
            let now: Vec<_> = first.iter().map(|&cpu| Some(Cpu(cpu))).collect();
            let changed = [(0, 2), (1, 3), (4, 5), (6, 7)];
            let again = assign(&mut mapper, &now, &changed).is_some();
            assert_eq!(again, expected, "{threshold}");
        };
        check(4, true);
        check(5, false);
    }

    /// A policy that always fails.
    #[derive(Debug)]
    struct Broken;

    impl ThreadPolicy for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }

        fn about(&self) -> &'static str {
            ""
        }

        fn place(&self, _: &ThreadProblem) -> Result<Vec<u32>, String> {
            Err("no luck".to_owned())
        }
    }

    #[test]
    fn a_policy_that_cannot_map_says_why() {
        let mut mapper = mapper(DetectionMechanism::Kmaf);
        mapper.policy = &Broken;
        assert_eq!(assign(&mut mapper, &[None; 8], &NEAR), None);
        assert_eq!(mapper.take_error(), Some("no luck".to_owned()));
        assert_eq!(mapper.take_error(), None);
    }

    #[test]
    fn nothing_moves_where_all_talk_alike() {
        let all: Vec<(u16, u16)> = (0..8)
            .flat_map(|i| (i + 1..8).map(move |j| (i, j)))
            .collect();
        assert_eq!(
            assign(&mut mapper(DetectionMechanism::Adaptive), &[None; 8], &all),
            None
        );
    }

    #[test]
    fn silent_threads_are_left_alone() {
        let mut mapper = mapper(DetectionMechanism::Adaptive);
        let assigned = assign(&mut mapper, &[None; 20], &[(3, 19), (4, 7)]).expect("units");
        assert_eq!(assigned.len(), 4);
    }

    /// Few events, all of chance: each question has other ones, and those that are left of
    /// earlier ones.
    #[test]
    fn chance_moves_nobody() {
        let mut mapper = mapper(DetectionMechanism::Adaptive);
        let mut matrix = SharingMatrix::default();
        let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut thread = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            SharerId((random % 16) as u16)
        };
        for _ in 0..600 {
            for _ in 0..17 {
                matrix.share(thread(), thread());
            }
            let (pairs, news): (Vec<_>, _) = (
                matrix.pairs().collect(),
                matrix.take_fresh().collect::<Vec<_>>(),
            );
            let question = MappingQuery {
                pairs: &pairs,
                new_events: &news,
                intervals: 1,
                assigned: &[None; 16],
            };
            assert_eq!(mapper.place_threads(&question), None);
            matrix.age(0.75);
        }
    }

    /// Events of four threads on two units, four at a time, and how many of them there were until the
    /// threads were placed. `None` if they were not after an hour of ten questions a second.
    fn events_until_placed(pairs: &[(u16, u16)]) -> Option<usize> {
        let machine = select_machine(Some("node:2 pu:1"), &MachineRestrictions::default());
        let policy = THREAD_POLICIES.iter().find(|p| p.name() == "locality-fast");
        let tree = machine.expect("machine").tree;
        let policy = *policy.expect("a policy");
        let mut mapper = IncrementalMapper::new(tree, DetectionMechanism::Adaptive, policy, 2);
        let (mut matrix, mut random) = (SharingMatrix::default(), DefaultHasher::new());
        let question = (1..36_000).find(|_| {
            for event in 0..4 {
                event.hash(&mut random);
                let (a, b) = pairs[(random.finish() % pairs.len() as u64) as usize];
                matrix.share(SharerId(a), SharerId(b));
            }
            let (known, news): (Vec<_>, _) = (
                matrix.pairs().collect(),
                matrix.take_fresh().collect::<Vec<_>>(),
            );
            let question = MappingQuery {
                pairs: &known,
                new_events: &news,
                intervals: 2,
                assigned: &[None; 4],
            };
            matrix.age(0.75);
            mapper.place_threads(&question).is_some()
        });
        Some(question? * 4)
    }

    #[test]
    fn few_events_place_couples_and_chance_places_nobody() {
        let events = events_until_placed(&[(0, 1), (2, 3)]).expect("placed");
        assert!((16..=24).contains(&events), "{events}");
        let all = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
        assert_eq!(events_until_placed(&all), None);
    }

    #[test]
    fn who_comes_later_moves_nobody_else() {
        let mut mapper = mapper(DetectionMechanism::Adaptive);
        let first = assign(&mut mapper, &[None; 8], &NEAR[..3]).expect("units");
        let mut now = [None; 8];
        for (at, &cpu) in first.iter().enumerate() {
            now[at] = Some(Cpu(cpu));
        }
        let second = assign(&mut mapper, &now, &NEAR).expect("units");
        assert_eq!(second[..6], first);
        assert_eq!(second[6] / 2, second[7] / 2);
    }
}
