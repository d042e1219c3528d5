use super::*;

/// Thread 0 on node 0, 1 on node 1. Page 2 is used most by node 1, so eq. 8 wants it there.
#[test]
fn most_access_follows_the_accesses() {
    let pages = rows(&[
        (Some(1), &[5, 1]),
        (Some(0), &[0, 7]),
        (Some(0), &[3, 4]),
        // A tie stays with the first toucher, as does a page that nobody accesses.
        (Some(1), &[2, 2]),
        (Some(1), &[]),
        (None, &[0, 1]),
        (None, &[]),
    ]);
    let got = place(&MostAccessPolicy, &two(), &pages, &[9, 9]).unwrap();
    assert_eq!(got, [0, 1, 1, 1, 1, 1, 0]);
}

/// Node 0 wants all three pages and takes two. At stake are 10 - 0, 9 - 8 and 5 - 1: the
/// second page loses least by going to node 1.
#[test]
fn when_a_node_is_full_the_least_is_lost() {
    let pages = rows(&[(None, &[10, 0]), (None, &[9, 8]), (None, &[5, 1])]);
    let got = place(&MostAccessPolicy, &two(), &pages, &[2, 2]).unwrap();
    assert_eq!(got, [0, 1, 0]);
}

#[test]
fn first_touch_asks_who_came_first() {
    let pages = rows(&[(Some(1), &[9, 1]), (Some(0), &[0, 9]), (None, &[1, 2])]);
    let got = place(&FirstTouchPolicy, &two(), &pages, &[9, 9]).unwrap();
    assert_eq!(got, [1, 0, 1]);
}

/// Nodes 0, 1 share a package, 2, 3 the other. Node 0 takes one page, then come its
/// neighbour and only then the far ones.
#[test]
fn a_full_node_sends_to_the_nearest() {
    let four = machine("pack:2 node:2 pu:1");
    let pages = rows(&[(Some(3), &[]), (Some(3), &[]), (Some(3), &[])]);
    let got = place(&FirstTouchPolicy, &four, &pages, &[5, 5, 1, 1]).unwrap();
    assert_eq!(got, [3, 2, 0]);
}

/// In the order of their touches, not of their numbers: the page of slice 1 comes last and
/// finds node 0 full.
#[test]
fn first_touch_goes_by_time() {
    let at = |number, slice| {
        let page = small(number, Some(0));
        let touch = page.touch.map(|t| FirstAccess {
            slice: SliceIx(slice),
            ..t
        });
        (PlaceablePage { touch, ..page }, Vec::new())
    };
    let pages = PlaceablePages::new([at(0, 1), at(1, 0)]);
    let got = place(&FirstTouchPolicy, &two(), &pages, &[1, 1]).unwrap();
    assert_eq!(got, [1, 0]);
}

#[test]
fn interleave_deals_in_turn() {
    let pages = rows(&[(Some(0), &[9][..]); 5]);
    let got = place(&InterleavePolicy, &two(), &pages, &[9, 9]).unwrap();
    assert_eq!(got, [0, 1, 0, 1, 0]);
    let full = place(&InterleavePolicy, &two(), &pages, &[1, 9]).unwrap();
    assert_eq!(full, [0, 1, 1, 1, 1]);
}

/// Eq. 6 and ageing step by step; the page starts on node 0, its first toucher's.
///
///   slice  adds      NV          max > 2 max2 + 1
///   0      n0 +10    [10,  0]    at home
///   1      n1 +15    [10, 15]    15 > 21  no
///   2      n1 + 7    [10, 22]    22 > 21  yes: to node 1, NV = [5, 11]
///   3      n0 +18    [23, 11]    23 > 23  no
///   4      n0 + 1    [24, 11]    24 > 23  yes: back to node 0
///
/// Without ageing slice 4 has NV = [29, 22], and the page stays on node 1.
#[test]
fn kmaf_moves_at_equation_6_and_ages() {
    let history = [(0, 0, 10), (1, 1, 15), (2, 1, 7), (3, 0, 18), (4, 0, 1)];
    let after = |steps: usize| {
        let uses = history[..steps].iter().map(|&(s, t, n)| used(s, t, n));
        PlaceablePages::new([(small(0, Some(0)), uses.collect())])
    };
    let check = |policy: &KmafPolicy, steps, node| {
        let got = place(policy, &two(), &after(steps), &[9, 9]).unwrap();
        assert_eq!(got, [node], "{policy:?} after {steps} slices");
    };
    for (steps, node) in [(1, 0), (2, 0), (3, 1), (4, 1), (5, 0)] {
        check(&KmafPolicy::PAPER, steps, node);
    }
    let ageless = KmafPolicy {
        ageing: 1,
        ..KmafPolicy::PAPER
    };
    check(&ageless, 5, 1);
}

/// Eq. 6 at its edges: the first access alone moves nothing, the second does; 5 against 2
/// is not more than double plus one, 6 is. Ratio and margin are what they are called.
#[test]
fn equation_6_at_its_edges() {
    for (highest, second, moves) in [(0, 0, false), (1, 0, false), (2, 0, true), (5, 2, false)] {
        assert_eq!(KmafPolicy::PAPER.should_migrate(highest, second), moves);
    }
    assert!(KmafPolicy::PAPER.should_migrate(6, 2));
    let eager = KmafPolicy {
        ratio: 1,
        margin: 0,
        ageing: 2,
    };
    assert!(eager.should_migrate(5, 4) && !eager.should_migrate(4, 4));
    assert!(!KmafPolicy::PAPER.should_migrate(u64::MAX, u64::MAX / 2));
}

/// Exclusive pages (2 x second + 1 < first) stay with their node: page 0 on 0, giving loads
/// 30 / 0. The others by accesses: page 2 (8 + 8) to node 1: 30 / 16; page 1 (6 + 5) to
/// node 1: 30 / 27; page 3 (3 + 4) to node 1: 30 / 34; page 4 (3 + 2) to node 0: 35 / 34.
#[test]
fn balanced_evens_with_the_pages_of_nobody() {
    let pages = rows(&[
        (Some(0), &[30, 0]),
        (Some(0), &[6, 5]),
        (Some(0), &[8, 8]),
        (Some(0), &[3, 4]),
        (Some(0), &[3, 2]),
        (Some(1), &[]),
    ]);
    let got = place(&BalancedDataPolicy::default(), &two(), &pages, &[9, 9]).unwrap();
    assert_eq!(got, [0, 1, 1, 1, 0, 1]);
}

/// Node 2 has least to do, but uses page 0 too little to be a place for it: 10 > 2 * 4 + 1.
/// Nodes 0 and 1 use it alike; they have 12 and 5 to do, so it goes to node 1.
#[test]
fn balanced_keeps_to_nodes_that_use_the_page() {
    let three = machine("node:3 pu:1");
    let pages = rows(&[
        (Some(0), &[10, 10, 4]),
        (Some(0), &[12, 0, 0]),
        (Some(0), &[0, 5, 0]),
    ]);
    let got = place(&BalancedDataPolicy::default(), &three, &pages, &[9, 9, 9]).unwrap();
    assert_eq!(got, [1, 0, 1]);
}

/// Four pages of node 0 with 4, 3, 2, 1 accesses and none of node 1: total 10, average 5.
///
///   mix 0    limit 5:   4 -> 0 (load 4), 3 -> 0 (7, full), 2 -> 1, 1 -> 1
///   mix 0.5  limit 7.5: 4, 3 -> 0 (7), 2 -> 0 (9, full), 1 -> 1
///   mix 1    limit 10:  all on node 0, as most-access has it
#[test]
fn locality_balance_stops_at_its_limit() {
    let pages = rows(&[
        (Some(0), &[4, 0]),
        (Some(0), &[3, 0]),
        (Some(0), &[2, 0]),
        (Some(0), &[1, 0]),
    ]);
    let check = |mix, expected: [u32; 4]| {
        let got = place(&LocalityBalancePolicy { mix }, &two(), &pages, &[9, 9]);
        assert_eq!(got.unwrap(), expected, "mix {mix}");
    };
    check(0.0, [0, 0, 1, 1]);
    check(0.5, [0, 0, 0, 1]);
    check(1.0, [0, 0, 0, 0]);
}

/// hwloc puts the second memory of each package beside the first: a node without units.
/// It takes what does not fit elsewhere and nothing of its own accord.
#[test]
fn memory_only_nodes_take_what_is_left() {
    let boxed = machine("pack:2 [numa] [numa] core:1 pu:1");
    let with_units: Vec<bool> = boxed
        .tree
        .nodes
        .iter()
        .map(|n| !n.units.is_empty())
        .collect();
    assert_eq!(with_units, [true, false, true, false]);
    let pages = rows(&[(Some(0), &[3, 2][..]); 6]);
    for policy in &data_policies() {
        let got = place(&**policy, &boxed, &pages, &[9, 9, 9, 9]).unwrap();
        assert!(got.iter().all(|n| n % 2 == 0), "{}", policy.name());
        let got = place(&**policy, &boxed, &pages, &[2, 9, 2, 9]).unwrap();
        let ordinary = got.iter().filter(|n| **n % 2 == 0).count();
        assert_eq!(ordinary, 4, "{}: {got:?}", policy.name());
    }
}

#[test]
fn nodes_without_memory_get_nothing() {
    let pages = rows(&[(Some(0), &[9, 0]), (Some(0), &[9, 8]), (Some(0), &[])]);
    for policy in &data_policies() {
        let got = place(&**policy, &two(), &pages, &[0, 9]).unwrap();
        assert_eq!(got, [1, 1, 1], "{}", policy.name());
    }
}

#[test]
fn pages_that_do_not_fit_are_refused_with_the_figures() {
    let pages = rows(&[(None, &[1][..]); 3]);
    for policy in &data_policies() {
        let message = place(&**policy, &two(), &pages, &[1, 1]).unwrap_err();
        assert!(message.contains("12288 bytes"), "{message}");
        assert!(message.contains("can take 8192"), "{message}");
    }
}

#[test]
fn no_pages_is_fine() {
    for policy in &data_policies() {
        assert!(place(&**policy, &two(), &rows(&[]), &[1, 1])
            .unwrap()
            .is_empty());
    }
}

/// The same page is node 0's or node 1's depending on where the thread runs.
#[test]
fn the_thread_mapping_decides_what_is_near() {
    let boxed = two();
    let pages = rows(&[(Some(0), &[9, 1])]);
    for threads in [[0, 1], [1, 0]] {
        let problem = DataProblem {
            tree: &boxed.tree,
            cost: &boxed.cost,
            threads: &threads,
            pages: &pages,
            capacity: &room(&[1, 1]),
            current: &[],
            fixed: &[],
        };
        for policy in [
            &MostAccessPolicy as &dyn DataPolicy,
            &KmafPolicy::PAPER,
            &FirstTouchPolicy,
        ] {
            assert_eq!(policy.place(&problem).unwrap(), [NodeIx(threads[0])]);
        }
    }
}

/// What is now on a node stays there when nothing speaks against it, and what is fixed
/// stays in any case and takes room.
#[test]
fn current_and_fixed_places_count() {
    let boxed = two();
    let pages = rows(&[(Some(0), &[5, 5]), (Some(0), &[9, 0]), (Some(0), &[8, 0])]);
    let problem = DataProblem {
        tree: &boxed.tree,
        cost: &boxed.cost,
        threads: &[0, 1],
        pages: &pages,
        capacity: &room(&[1, 9]),
        current: &[Some(NodeIx(1)); 3],
        fixed: &[None, None, Some(NodeIx(0))],
    };
    let got = MostAccessPolicy.place(&problem).unwrap();
    assert_eq!(got, [NodeIx(1), NodeIx(1), NodeIx(0)]);
}

/// Pages 0 and 1 are anybody's, 10 accesses each. Dealt afresh they would go to 0 and 1;
/// being on 1 and 0 they stay. Both on node 1, one leaves: the average is 10.
#[test]
fn balanced_moves_no_more_than_it_must() {
    let boxed = two();
    let pages = rows(&[(Some(0), &[5, 5]), (Some(0), &[5, 5])]);
    let from = |now: [u32; 2]| {
        let problem = DataProblem {
            tree: &boxed.tree,
            cost: &boxed.cost,
            threads: &[0, 1],
            pages: &pages,
            capacity: &room(&[9, 9]),
            current: &now.map(|n| Some(NodeIx(n))),
            fixed: &[],
        };
        let got = BalancedDataPolicy::default().place(&problem).unwrap();
        [got[0].0, got[1].0]
    };
    assert_eq!(from([0, 1]), [0, 1]);
    assert_eq!(from([1, 0]), [1, 0]);
    assert_eq!(from([1, 1]), [1, 0]);
}

#[test]
fn policies_are_found_by_name() {
    for policy in &data_policies() {
        assert_eq!(
            data_policy_by_name(policy.name()).map(|p| p.about()),
            Ok(policy.about())
        );
    }
    assert!(data_policy_by_name("locality-balance:0.5").is_ok());
    let refused = |text: &str, part: &str| {
        let message = data_policy_by_name(text).map(|p| p.name()).unwrap_err();
        assert!(message.contains(part), "{message}");
    };
    refused("nearest", "most-access, locality-balance");
    refused("locality-balance:2", "from 0");
    refused("locality-balance:nan", "from 0");
    refused("kmaf:2", "no data policy");
}

#[test]
fn a_machine_of_unknown_size_has_room() {
    let boxed = two();
    let mut tree = boxed.tree.clone();
    for (node, bytes) in tree.nodes.iter_mut().zip([0, 0]) {
        node.bytes = bytes;
    }
    assert_eq!(node_capacities(&tree), [u64::MAX, u64::MAX]);
    tree.nodes[1].bytes = 4096;
    assert_eq!(node_capacities(&tree), [0, 4096]);
}
