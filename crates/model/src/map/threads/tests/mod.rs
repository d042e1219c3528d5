//! What every policy in [`THREAD_POLICIES`] must hold, on machines and programs of all kinds. A policy
//! that is added there is covered; its own examples are in a file beside this one.
mod amounts;
mod fixed;
mod greedy;
mod pairs;
mod slots;

use super::{ThreadPolicy, THREAD_POLICIES};
use crate::map::{CommGraph, PuAssignment, PuDistances, ThreadProblem};
use crate::rng::Rng;
use crate::topology::tests::trees::tree_of;
use crate::topology::{load, TopologyTree};
use proptest::prelude::*;

/// A problem that owns its parts.
#[derive(Clone, Debug)]
struct Case {
    tree: TopologyTree,
    cost: PuDistances,
    comm: CommGraph,
    load: Vec<u64>,
    capacity: u32,
    siblings: bool,
    seed: u64,
}

fn machine(text: &str) -> TopologyTree {
    tree_of(text, |_| true)
}

impl Case {
    /// As many threads to a unit as there must be, hops as distance.
    fn new(tree: TopologyTree, threads: usize, pairs: &[(u32, u32, u64)]) -> Case {
        Case {
            cost: PuDistances::from_hops(&tree),
            comm: CommGraph::new(threads, pairs.to_vec()),
            load: vec![1; threads],
            siblings: false,
            capacity: threads.div_ceil(tree.units.len()).max(1) as u32,
            seed: 0,
            tree,
        }
    }

    fn problem(&self) -> ThreadProblem<'_> {
        ThreadProblem {
            tree: &self.tree,
            cost: &self.cost,
            comm: &self.comm,
            load: &self.load,
            capacity: self.capacity,
            siblings: self.siblings,
            current: None,
            seed: self.seed,
        }
    }

    fn place(&self, policy: &str) -> PuAssignment {
        named(policy).place(&self.problem()).unwrap()
    }

    fn objective(&self, policy: &str) -> u128 {
        self.problem().objective(&self.place(policy))
    }

    /// The same program with thread t called `name[t]`.
    fn renamed(&self, name: &[u32]) -> Case {
        let of = |t: usize| name[t];
        let pairs = self.comm.pairs().map(|(i, j, w)| (of(i), of(j), w));
        let mut load = self.load.clone();
        for (&work, &t) in self.load.iter().zip(name) {
            load[t as usize] = work;
        }
        Case {
            comm: CommGraph::new(self.comm.threads(), pairs),
            load,
            ..self.clone()
        }
    }
}

fn named(policy: &str) -> &'static dyn ThreadPolicy {
    let of_name = |p: &&&dyn ThreadPolicy| p.name() == policy;
    *THREAD_POLICIES.iter().find(of_name).unwrap()
}

/// Threads of each unit.
fn on_units(units: &[u32], tree: &TopologyTree) -> Vec<u32> {
    let mut on = vec![0; tree.units.len()];
    for &unit in units {
        on[unit as usize] += 1;
    }
    on
}

/// Threads of each core.
fn on_cores(units: &[u32], tree: &TopologyTree) -> Vec<u32> {
    let cores = tree.units.iter().map(|u| u.core).max().map_or(0, |c| c + 1);
    let mut on = vec![0; cores as usize];
    for &unit in units {
        on[tree.units[unit as usize].core as usize] += 1;
    }
    on
}

const MACHINES: &[&str] = &[
    "pu:1",
    "core:3 pu:1",
    "core:2 pu:2",
    "node:2 core:2 pu:2",
    "node:4 l3:2 core:3 pu:1",
    "pack:2 node:2 l2:2 core:1 pu:4",
    "pack:3 l3:1 core:5 pu:2",
];

/// One of [`MACHINES`], whole or with some units left out.
fn any_tree() -> impl Strategy<Value = TopologyTree> {
    let kept = prop_oneof![
        Just(u64::MAX),
        any::<u64>(),
        any::<(u64, u64)>().prop_map(|(a, b)| a | b)
    ];
    (prop::sample::select(MACHINES), kept).prop_map(|(text, kept)| {
        let part = TopologyTree::new(&load(text).unwrap(), |pu| kept >> (pu % 64) & 1 == 1);
        part.unwrap_or_else(|| machine(text))
    })
}

/// Silent, sparse with many ties, or dense with numbers up to the greatest there is.
fn any_comm() -> impl Strategy<Value = CommGraph> {
    let threads = 0u32..40;
    threads.prop_flat_map(|n| {
        let end = 0..n.max(1);
        let pair = |events| (end.clone(), end.clone(), events);
        let few = prop::collection::vec(pair(boxed(0u64..4)), 0..60);
        let many = prop::collection::vec(pair(boxed(0..=u64::MAX)), 0..500);
        prop_oneof![Just(Vec::new()), few, many]
            .prop_map(move |pairs| CommGraph::new(n as usize, pairs))
    })
}

fn boxed(events: impl Strategy<Value = u64> + 'static) -> BoxedStrategy<u64> {
    events.boxed()
}

fn any_case() -> impl Strategy<Value = Case> {
    let numbers = (any::<u64>(), 0u32..3);
    let choices = (any::<bool>(), any::<bool>());
    let all = (any_tree(), any_comm(), numbers, choices);
    all.prop_map(|(tree, comm, (seed, spare), (busy, siblings))| {
        let threads = comm.threads();
        let mut draw = Rng::for_search(seed);
        let mut work = |_| if busy { draw.next_u64() } else { 0 };
        Case {
            load: (0..threads).map(&mut work).collect(),
            cost: PuDistances::from_hops(&tree),
            capacity: threads.div_ceil(tree.units.len()).max(1) as u32 + spare,
            siblings,
            seed,
            tree,
            comm,
        }
    })
}

/// Every thread has a unit, none more than it may, and the same again when asked again.
fn check_placement(policy: &dyn ThreadPolicy, case: &Case) -> Result<(), TestCaseError> {
    let (name, threads) = (policy.name(), case.comm.threads());
    let placed = policy.place(&case.problem());
    prop_assert_eq!(&placed, &policy.place(&case.problem()), "{}", name);
    let units = match placed {
        Ok(units) => units,
        Err(_) if may_refuse(name, case) => return Ok(()),
        Err(refusal) => return Err(TestCaseError::fail(format!("{name}: {refusal}"))),
    };
    prop_assert_eq!(units.len(), threads, "{}", name);
    let exist = units.iter().all(|u| (*u as usize) < case.tree.units.len());
    prop_assert!(exist, "{}: {:?}", name, units);
    let on = on_units(&units, &case.tree);
    let within = on.iter().all(|n| *n <= case.capacity);
    prop_assert!(within, "{}: {:?}", name, units);
    // No core, and no unit, has two threads while another has none.
    if !case.siblings && name != MAY_SHARE {
        for on in [on_cores(&units, &case.tree), on] {
            let shared = on.iter().any(|n| *n > 1);
            prop_assert!(!(shared && on.contains(&0)), "{}: {:?}", name, on);
        }
    }
    Ok(())
}

/// A policy with no row here takes every problem in which all is known and all threads fit.
fn may_refuse(policy: &str, case: &Case) -> bool {
    policy == "exact" && case.comm.threads() > 10
}

/// Compact fills siblings first, that is its point.
const MAY_SHARE: &str = "compact";

/// Policies that take so long that they are tried on fewer cases.
const SEARCHING: &[&str] = &["locality", "locality-fast", "exact", "scotch"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn placements_of_searches_are_complete_and_repeatable(case in any_case()) {
        for policy in THREAD_POLICIES.iter().filter(|p| SEARCHING.contains(&p.name())) {
            check_placement(*policy, &case)?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn placements_are_complete_and_repeatable(case in any_case()) {
        for policy in THREAD_POLICIES.iter().filter(|p| !SEARCHING.contains(&p.name())) {
            check_placement(*policy, &case)?;
        }
    }

    /// What threads are called makes no difference, where no two choices are equally good.
    #[test]
    fn names_of_threads_do_not_matter(
        text in prop::sample::select(MACHINES), of_unit in 1usize..3, seed in any::<u64>(),
    ) {
        let mut draw = Rng::for_search(seed);
        let tree = machine(text);
        let threads = tree.units.len() * of_unit;
        let all = (0..threads as u32).flat_map(|i| (0..i).map(move |j| (j, i)));
        // Numbers this large all differ, and so do their sums.
        let pairs: Vec<_> = all.map(|(j, i)| (j, i, draw.next_u64() >> 20)).collect();
        let mut case = Case::new(tree, threads, &pairs);
        case.load = (0..threads).map(|_| draw.next_u64() >> 20).collect();
        let mut name: Vec<u32> = (0..threads as u32).collect();
        draw.shuffle(&mut name);
        let renamed = case.renamed(&name);
        for policy in NAMELESS {
            prop_assert_eq!(case.objective(policy), renamed.objective(policy), "{}", policy);
        }
    }
}

/// Policies whose choices depend on communication or work alone. EagerMap and distance begin
/// each group with the first thread that is left.
const NAMELESS: &[&str] = &["matching", "balance", "balanced-locality", "load-balance"];

#[test]
fn policies_have_a_name_of_their_own_and_say_whose_they_are() {
    for (at, policy) in THREAD_POLICIES.iter().enumerate() {
        let name = policy.name();
        assert!(
            THREAD_POLICIES[..at].iter().all(|p| p.name() != name),
            "{name}"
        );
        let plain = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(name.chars().all(plain), "{name}");
        let about = policy.about();
        assert!(about.is_ascii() && !about.contains('\n'), "{about}");
        assert!((20..=90).contains(&about.len()), "{about}");
    }
}

#[test]
fn too_many_threads_are_refused_with_the_fix() {
    let mut case = Case::new(machine("core:2 pu:2"), 9, &[]);
    case.capacity = 2;
    for policy in [
        "compact", "scatter", "random", "matching", "eagermap", "balance",
    ] {
        assert_eq!(
            named(policy).place(&case.problem()).unwrap_err(),
            "9 threads do not fit on 4 units with 2 each; allow 3 with --capacity 3"
        );
    }
}
