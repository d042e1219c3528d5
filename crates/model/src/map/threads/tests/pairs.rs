//! Matching, level by level.
use super::{machine, on_units, tree_of, Case};
use crate::rng::Rng;
use crate::topology::TopologyTree;

fn check(tree: TopologyTree, threads: usize, pairs: &[(u32, u32, u64)], expected: &[u32]) {
    assert_eq!(Case::new(tree, threads, pairs).place("matching"), expected);
}

#[test]
fn the_heaviest_matching_is_not_the_heaviest_pair() {
    // A chain 0 - 1 - 2 - 3 with 5, 6, 5 on two cores of two siblings. With the pair 1 2
    // goes 0 3: 6 + 0. The pairs 0 1 and 2 3 have 5 + 5 = 10.
    let chain = [(0, 1, 5), (1, 2, 6), (2, 3, 5)];
    check(machine("core:2 pu:2"), 4, &chain, &[0, 1, 2, 3]);
    // With 11 in the middle, 11 + 0 > 10: 0 3 on the first core, 1 2 on the second.
    let chain = [(0, 1, 5), (1, 2, 11), (2, 3, 5)];
    check(machine("core:2 pu:2"), 4, &chain, &[0, 2, 3, 1]);
}

#[test]
fn groups_communicate_by_heuristic_h() {
    // Pairs A = 0 7, B = 1 6, C = 2 5, D = 3 4 have 10 each. Between them, by eq. 1:
    //   H(A,B) = M(0,1) + M(0,6) + M(7,1) + M(7,6) = 3 + 0 + 0 + 0 = 3
    //   H(A,C) = M(0,2) + M(0,5) + M(7,2) + M(7,5) = 0 + 1 + 2 + 1 = 4
    //   H(B,C) = M(1,2) + M(1,5) + M(6,2) + M(6,5) = 0
    //   H(B,D) = M(1,3) + M(1,4) + M(6,3) + M(6,4) = 0
    //   H(C,D) = M(2,3) + M(2,4) + M(5,3) + M(5,4) = 3 + 0 + 0 + 0 = 3
    // so A B and C D (6) beat A C and B D (4): nodes hold 0 7 1 6 and 2 5 3 4.
    let within = [(0, 7, 10), (1, 6, 10), (2, 5, 10), (3, 4, 10)];
    let between = [(0, 1, 3), (0, 5, 1), (2, 7, 2), (5, 7, 1), (2, 3, 3)];
    let pairs = [&within[..], &between[..]].concat();
    let expected = [0, 2, 4, 6, 7, 5, 3, 1];
    check(machine("node:2 core:2 pu:2"), 8, &pairs, &expected);
}

#[test]
fn three_children_hold_a_pair_and_one_more() {
    // Two nodes of three cores. Pairs wanted: two, and two threads are left for the second
    // round. 0 4 (9) and 2 3 (8) pair up; 1 and 5 are left, M({0,4}, 5) = 3 and
    // M({2,3}, 1) = 2 against M({0,4}, 1) = 1 and M({2,3}, 5) = 0.
    let pairs = [(0, 4, 9), (2, 3, 8), (4, 5, 3), (1, 2, 2), (0, 1, 1)];
    let case = Case::new(machine("node:2 core:3 pu:1"), 6, &pairs);
    let node: Vec<u32> = case.place("matching").iter().map(|u| u / 3).collect();
    let same = |a: usize, b: usize| node[a] == node[b];
    assert!(same(0, 4) && same(4, 5) && same(2, 3) && same(1, 2) && !same(0, 1));
}

#[test]
fn fewer_threads_use_the_fewest_nodes() {
    // Cores before siblings, the first node before the second: cores 0 and 1 (units 0, 2).
    check(machine("node:2 core:2 pu:2"), 2, &[(0, 1, 1)], &[0, 2]);
    check(machine("node:2 core:2 pu:2"), 1, &[], &[0]);
    check(machine("node:2 core:2 pu:2"), 0, &[], &[]);
}

#[test]
fn siblings_and_units_are_shared_where_asked_for() {
    let mut case = Case::new(machine("node:2 core:2 pu:2"), 3, &[(0, 2, 1)]);
    case.siblings = true;
    // The first core and half of the second: 0 2, then 1.
    assert_eq!(case.place("matching"), [0, 2, 1]);
    // The first unit and half of its sibling.
    case.capacity = 2;
    assert_eq!(case.place("matching"), [0, 1, 0]);
}

#[test]
fn no_unit_idles_while_another_has_two() {
    for threads in 1..12 {
        for siblings in [false, true] {
            let mut case = Case::new(machine("node:2 core:2 pu:1"), threads, &[(0, 1, 5)]);
            case.siblings = siblings;
            let on = on_units(&case.place("matching"), &case.tree);
            let (least, most) = (on.iter().min(), on.iter().max());
            assert!(most.unwrap() - least.unwrap() <= 1, "{threads}: {on:?}");
        }
    }
}

#[test]
fn an_asymmetric_machine_gets_pairs_where_it_has_siblings() {
    // Cores of two, one and one units: 1 2 communicate most and share the core.
    let tree = tree_of("core:3 pu:2", |pu| pu != 3 && pu != 5);
    check(tree, 4, &[(0, 3, 5), (1, 2, 6)], &[2, 0, 1, 3]);
}

#[test]
fn two_threads_on_a_unit_are_a_pair() {
    let pairs = [(0, 3, 5), (1, 2, 6)];
    check(machine("core:2 pu:1"), 4, &pairs, &[0, 1, 1, 0]);
}

#[test]
fn nothing_said_is_fine_and_the_largest_numbers_too() {
    check(machine("core:2 pu:2"), 4, &[], &[0, 1, 2, 3]);
    let most = [(0, 2, u64::MAX), (1, 3, u64::MAX), (0, 1, u64::MAX - 1)];
    check(machine("core:2 pu:2"), 4, &most, &[0, 2, 1, 3]);
}

/// The heaviest perfect matching of `left` by trying all.
fn heaviest(case: &Case, left: &[u32]) -> u128 {
    let Some((&first, rest)) = left.split_first() else {
        return 0;
    };
    let with = |&other: &u32| {
        let others: Vec<u32> = rest.iter().copied().filter(|t| *t != other).collect();
        let row = case.comm.neighbours(first as usize);
        let events: u64 = row.filter(|e| e.0 == other as usize).map(|e| e.1).sum();
        u128::from(events) + heaviest(case, &others)
    };
    rest.iter().map(with).max().unwrap_or(0)
}

#[test]
fn pairs_are_the_best_of_all_matchings() {
    let mut draw = Rng::for_search(7);
    for round in 0..200 {
        let threads = 2 + 2 * draw.below(4) as u32;
        let all = (0..threads).flat_map(|i| (0..i).map(move |j| (j, i)));
        // Half of the rounds have many ties and silent pairs.
        let most = if round % 2 == 0 { 4 } else { 1000 };
        let pairs: Vec<_> = all.map(|(j, i)| (j, i, draw.below(most) as u64)).collect();
        let tree = machine(&format!("core:{} pu:2", threads / 2));
        let case = Case::new(tree, threads as usize, &pairs);
        let units = case.place("matching");
        let paired = |e: &(usize, usize, u64)| units[e.0] / 2 == units[e.1] / 2;
        let got: u128 = case
            .comm
            .pairs()
            .filter(paired)
            .map(|e| u128::from(e.2))
            .sum();
        let everyone: Vec<u32> = (0..threads).collect();
        assert_eq!(got, heaviest(&case, &everyone), "{pairs:?}");
    }
}

/// 1500 threads in one ring are more than are matched at once. In pieces, every second link
/// of the ring is still found, but for a few at the cuts.
#[test]
fn large_machines_are_matched_in_pieces() {
    let threads = 1500;
    let ring: Vec<_> = (0..threads).map(|t| (t, (t + 1) % threads, 10)).collect();
    let case = Case::new(machine("core:750 pu:2"), threads as usize, &ring);
    let units = case.place("matching");
    let paired = |e: &(usize, usize, u64)| units[e.0] / 2 == units[e.1] / 2;
    let found = case.comm.pairs().filter(paired).count();
    assert!((748..=750).contains(&found), "{found}");
}
