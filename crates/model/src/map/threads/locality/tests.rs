use super::super::exact::ExactPolicy;
use super::*;
use crate::map::{CommGraph, PuDistances};
use crate::rng::Rng;
use crate::topology::{load, TopologyTree};
use proptest::prelude::*;

fn tree(synthetic: &str, without: &[u32]) -> TopologyTree {
    TopologyTree::new(&load(synthetic).unwrap(), |pu| !without.contains(&pu)).unwrap()
}

fn problem<'a>(
    tree: &'a TopologyTree,
    cost: &'a PuDistances,
    comm: &'a CommGraph,
) -> ThreadProblem<'a> {
    ThreadProblem {
        tree,
        cost,
        comm,
        load: &[],
        capacity: comm.threads().div_ceil(tree.units.len()).max(1) as u32,
        siblings: false,
        current: None,
        seed: 1,
    }
}

/// Objective of both variants, after checking that each placement is valid.
fn objectives(problem: &ThreadProblem) -> [u128; 2] {
    [false, true].map(|fast| {
        let units = LocalityPolicy { fast }.place(problem).unwrap();
        assert_eq!(units.len(), problem.comm.threads());
        let mut room = problem.unit_capacities();
        for &unit in &units {
            assert!(room[unit as usize] > 0, "{units:?}");
            room[unit as usize] -= 1;
        }
        assert_eq!(LocalityPolicy { fast }.place(problem).unwrap(), units);
        problem.objective(&units)
    })
}

fn check(synthetic: &str, comm: &CommGraph, expected: u128) {
    let tree = tree(synthetic, &[]);
    let cost = PuDistances::from_hops(&tree);
    let found = objectives(&problem(&tree, &cost, comm));
    assert_eq!(found, [expected, expected], "{synthetic}");
}

#[test]
fn pairs_sit_on_the_siblings_of_a_core() {
    // Four pairs at distance 2, whatever their numbers.
    let pairs = [(0, 5, 10), (1, 6, 10), (2, 7, 10), (3, 4, 10)];
    check("pack:2 core:2 pu:2", &CommGraph::new(8, pairs), 4 * 10 * 2);
}

#[test]
fn a_ring_parts_where_it_must() {
    // A ring of 8: four links inside cores (2), two inside packages (4), two across (6).
    let ring = (0..8).map(|i| (i, (i + 1) % 8, 1));
    check(
        "pack:2 core:2 pu:2",
        &CommGraph::new(8, ring),
        4 * 2 + 2 * 4 + 2 * 6,
    );
}

#[test]
fn blocks_get_a_package_each() {
    // Threads of one parity talk: 6 pairs each, of which 2 share a core.
    let all = (0..8u32).flat_map(|i| (i + 1..8).map(move |j| (i, j, 1)));
    let blocks = all.filter(|(i, j, _)| i % 2 == j % 2);
    check(
        "pack:2 core:2 pu:2",
        &CommGraph::new(8, blocks),
        2 * (2 * 2 + 4 * 4),
    );
}

#[test]
fn nothing_to_say_and_nobody_to_say_it() {
    check("pack:2 core:2 pu:2", &CommGraph::new(8, []), 0);
    check("pack:2 core:2 pu:2", &CommGraph::new(1, []), 0);
    check("pack:2 core:2 pu:2", &CommGraph::new(0, []), 0);
    check("core:1 pu:1", &CommGraph::new(1, []), 0);
    check("core:1 pu:1", &CommGraph::new(3, [(0, 1, 9)]), 0);
}

#[test]
fn events_beyond_what_64_bits_add_up_to() {
    let all = (0..8u32).flat_map(|i| (i + 1..8).map(move |j| (i, j, u64::MAX / 2)));
    let tree = tree("pack:2 core:2 pu:2", &[]);
    let cost = PuDistances::from_hops(&tree);
    let comm = CommGraph::new(8, all);
    // 4 pairs at 2, 8 at 4, 16 at 6.
    let expected = u128::from(u64::MAX / 2) * (4 * 2 + 8 * 4 + 16 * 6);
    assert_eq!(objectives(&problem(&tree, &cost, &comm)), [expected; 2]);
}

#[test]
fn cores_are_filled_before_siblings() {
    let tree = tree("pack:2 core:2 pu:2", &[]);
    let cost = PuDistances::from_hops(&tree);
    let comm = CommGraph::new(4, [(0, 1, 5), (2, 3, 5)]);
    let mut problem = problem(&tree, &cost, &comm);
    let units = LocalityPolicy { fast: false }.place(&problem).unwrap();
    let mut cores: Vec<u32> = units.iter().map(|&u| tree.units[u as usize].core).collect();
    cores.sort_unstable();
    assert_eq!(cores, [0, 1, 2, 3]);
    assert_eq!(objectives(&problem), [2 * 5 * 4; 2]);
    // Told otherwise, each pair shares a core.
    problem.siblings = true;
    assert_eq!(objectives(&problem), [2 * 5 * 2; 2]);
}

#[test]
fn distances_between_nodes_may_be_any() {
    // Node 0 is near 2 and 1 is near 3, which no tree over 0..4 in order says.
    let tree = tree("pack:4 [numa] core:2 pu:1", &[]);
    let d = |a: usize, b: usize| if a % 2 == b % 2 { 3 } else { 9 };
    let matrix = (0..16).map(|i| d(i / 4, i % 4)).collect();
    let cost = PuDistances::from_hops(&tree).with_node_matrix(matrix);
    let square = [(0, 1, 9), (2, 3, 9), (4, 5, 9), (6, 7, 9)];
    let bridges = [(1, 2, 4), (5, 6, 4)];
    let comm = CommGraph::new(8, square.into_iter().chain(bridges));
    assert_eq!(
        objectives(&problem(&tree, &cost, &comm))[0],
        4 * 9 * 2 + 2 * 4 * 3
    );
}

#[test]
fn noise_moves_nobody() {
    let tree = tree("pack:4 core:8 pu:2", &[]);
    let cost = PuDistances::from_hops(&tree);
    let mut stays = 0;
    for case in 0..10u64 {
        let mut rng = Rng::for_search(case);
        let mut clean = Vec::new();
        for i in 0..64u32 {
            for _ in 0..3 {
                let other = (u64::from(i) + 1 + rng.next_u64() % (2 + case * 6)) % 64;
                clean.push((i, other as u32, 1000 + rng.next_u64() % 9000));
            }
        }
        let noisy: Vec<_> = clean
            .iter()
            .map(|&(i, j, w)| (i, j, w * (990 + rng.next_u64() % 21) / 1000))
            .collect();
        let (before, after) = (CommGraph::new(64, clean), CommGraph::new(64, noisy));
        let old = LocalityPolicy { fast: false }
            .place(&problem(&tree, &cost, &before))
            .unwrap();
        let fresh = objectives(&problem(&tree, &cost, &after))[0];
        let mut again = problem(&tree, &cost, &after);
        again.current = Some(&old);
        let new = LocalityPolicy { fast: false }.place(&again).unwrap();
        stays += u32::from(new == old);
        assert!(again.objective(&new) * 1000 <= fresh * 1005);
    }
    assert!(stays >= 9, "{stays} of 10 stay");
}

#[test]
fn another_communication_moves_threads_no_further_than_it_must() {
    let tree = tree("pack:2 core:4 pu:1", &[]);
    let cost = PuDistances::from_hops(&tree);
    // Two blocks of four, now sitting on the packages the other way round, with 3 and 7
    // exchanged.
    let all = (0..8u32).flat_map(|i| (i + 1..8).map(move |j| (i, j, 1)));
    let comm = CommGraph::new(8, all.filter(|(i, j, _)| i / 4 == j / 4));
    let current = [4, 5, 6, 0, 1, 2, 3, 7];
    let mut again = problem(&tree, &cost, &comm);
    again.current = Some(&current);
    let units = LocalityPolicy { fast: false }.place(&again).unwrap();
    let moved = units.iter().zip(&current).filter(|(a, b)| a != b).count();
    assert_eq!((moved, again.objective(&units)), (2, 2 * 6 * 2));
}

/// The package that lacks a unit has two cores with a step less between them than the other one has.
#[test]
fn of_sides_that_differ_the_better_is_taken() {
    let tree = tree("pack:2 core:2 pu:2", &[4]);
    let cost = PuDistances::from_hops(&tree);
    for (threads, pairs, siblings, best) in [
        (3, vec![(0, 1, 1)], false, 3),
        (4, vec![(1, 2, 913), (3, 2, 35), (0, 2, 578)], true, 3770),
    ] {
        let comm = CommGraph::new(threads, pairs);
        let problem = ThreadProblem {
            siblings,
            ..problem(&tree, &cost, &comm)
        };
        assert_eq!(objectives(&problem)[0], best);
    }
}

fn machines() -> impl Strategy<Value = TopologyTree> {
    let text = prop_oneof![
        Just("pack:2 core:2 pu:2"),
        Just("pack:2 core:4 pu:1"),
        Just("pack:3 l2:2 core:2 pu:2"),
        Just("pack:4 core:3 pu:1"),
    ];
    let tree = (text, proptest::collection::vec(0..12u32, 0..4));
    tree.prop_map(|(text, without)| self::tree(text, &without))
}

fn graphs(threads: usize) -> impl Strategy<Value = Vec<(u32, u32, u64)>> {
    let n = threads as u32;
    proptest::collection::vec((0..n, 0..n, 1..1000u64), 0..3 * threads)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn as_good_as_any_placement(
        tree in machines(),
        (threads, pairs) in (1..8usize).prop_flat_map(|n| (Just(n), graphs(n))),
        near in proptest::option::of(1..9u32),
        siblings: bool,
    ) {
        let mut cost = PuDistances::from_hops(&tree);
        if let Some(near) = near {
            let nodes = tree.nodes.len();
            let d = |i: usize| near + 3 * ((i / nodes + i % nodes) % 3) as u32;
            cost = cost.with_node_matrix((0..nodes * nodes).map(d).collect());
        }
        let comm = CommGraph::new(threads, pairs);
        let problem = ThreadProblem { siblings, ..problem(&tree, &cost, &comm) };
        let best = problem.objective(&ExactPolicy.place(&problem).unwrap());
        let found = objectives(&problem);
        prop_assert_eq!(found[0], best);
        prop_assert!(found[1] >= best);
    }

    #[test]
    fn the_numbers_of_threads_do_not_matter(pairs in graphs(8), turn in 1..8u32) {
        let tree = tree("pack:2 core:2 pu:2", &[]);
        let cost = PuDistances::from_hops(&tree);
        let turned = pairs.iter().map(|&(i, j, w)| ((i + turn) % 8, (j + turn) % 8, w));
        let turned = CommGraph::new(8, turned.collect::<Vec<_>>());
        let comm = CommGraph::new(8, pairs);
        let value = |comm| objectives(&problem(&tree, &cost, comm))[0];
        prop_assert_eq!(value(&comm), value(&turned));
    }
}
