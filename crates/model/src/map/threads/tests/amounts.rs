//! Balance, load balance, balanced locality.
use super::{machine, named, Case};
use crate::rng::Rng;
use std::collections::BTreeSet;

/// Eight threads in pairs on four nodes of four cores: `locality` needs two nodes, `locality-spread`
/// uses all four, with the pairs together.
#[test]
fn spreading_keeps_pairs_together() {
    let tree = machine("node:4 core:4 pu:1");
    let pairs = [(0, 4, 9), (1, 5, 9), (2, 6, 9), (3, 7, 9)];
    let case = Case::new(tree.clone(), 8, &pairs);
    let units = case.place("locality-spread");
    let node = |t: usize| tree.units[units[t] as usize].node;
    let of_pairs: BTreeSet<_> = (0..4).map(node).collect();
    assert_eq!(of_pairs.len(), 4);
    assert!((0..4).all(|t| node(t) == node(t + 4)));
}

#[test]
fn balance_gives_the_busiest_thread_to_the_idlest_unit() {
    // CommV = 16, 10, 7, 1. On two units: 0 to the first (16), 1 to the second (10), 2 to
    // the second (10 < 16: 17), 3 to the first (16 < 17: 17).
    let pairs = [(0, 1, 10), (0, 2, 6), (2, 3, 1)];
    let case = Case::new(machine("core:2 pu:1"), 4, &pairs);
    assert_eq!(case.place("balance"), [0, 1, 1, 0]);
}

#[test]
fn balance_evens_out_nodes_too() {
    // As above on two nodes of two units. All units are empty for 0. Then node 0 has 16 and
    // node 1 nothing: 1 to node 1. Then 16 against 10: 2 to node 1, which is full. 17 each.
    let pairs = [(0, 1, 10), (0, 2, 6), (2, 3, 1)];
    let case = Case::new(machine("node:2 core:2 pu:1"), 4, &pairs);
    assert_eq!(case.place("balance"), [0, 2, 3, 1]);
}

#[test]
fn balance_spreads_silent_threads() {
    let mut case = Case::new(machine("node:2 core:2 pu:2"), 6, &[]);
    (case.capacity, case.siblings) = (6, true);
    assert_eq!(case.place("balance"), [0, 4, 2, 6, 1, 5]);
}

#[test]
fn load_balance_counts_work() {
    // Work 5 4 3 3 3: 5 to unit 0, 4 to 1, 3 to 1 (7), 3 to 0 (8), 3 to 1 (10).
    let mut case = Case::new(machine("core:2 pu:1"), 5, &[(0, 1, 1000)]);
    case.load = vec![5, 4, 3, 3, 3];
    assert_eq!(case.place("load-balance"), [0, 1, 1, 0, 1]);
}

#[test]
fn load_balance_needs_the_work_of_every_thread() {
    let mut case = Case::new(machine("core:2 pu:1"), 2, &[]);
    case.load.clear();
    let refusal = named("load-balance").place(&case.problem()).unwrap_err();
    assert_eq!(
        refusal,
        "it needs the work of 2 threads, but the input has that of 0; give it with --load, or a profile"
    );
}

/// Where capacity is no limit, the thread that came last to the fullest unit found it the
/// least full: units differ by no more than the greatest amount.
#[test]
fn no_two_units_differ_by_more_than_one_thread_has() {
    let mut draw = Rng::for_search(3);
    for _ in 0..100 {
        let threads = 1 + draw.below(60);
        let mut case = Case::new(machine("node:2 core:3 pu:2"), threads, &[]);
        (case.capacity, case.siblings) = (threads as u32, true);
        case.load = (0..threads).map(|_| draw.below(1000) as u64).collect();
        let mut sums = vec![0; case.tree.units.len()];
        for (&unit, &work) in case.place("load-balance").iter().zip(&case.load) {
            sums[unit as usize] += work;
        }
        let spread = sums.iter().max().unwrap() - sums.iter().min().unwrap();
        assert!(spread <= *case.load.iter().max().unwrap(), "{sums:?}");
    }
}

#[test]
fn balanced_locality_stops_at_the_average() {
    // CommV = 22, 10, 8, 4, together 44, an average of 22 for two nodes. 0 starts the first
    // and has reached it, so the quietest joins: 0 3 (26) and 1 2 (18).
    let pairs = [(0, 1, 10), (0, 2, 8), (0, 3, 4)];
    let case = Case::new(machine("node:2 core:2 pu:1"), 4, &pairs);
    assert_eq!(case.place("balanced-locality"), [0, 2, 3, 1]);
    // eagermap puts 0 with 1: 32 and 12.
    assert_eq!(case.place("eagermap"), [0, 1, 2, 3]);
}

#[test]
fn balanced_locality_is_local_where_communication_is_balanced() {
    // Four pairs far apart, 10 each: all threads have 10, caches of two are at 10 < 20 when
    // the second joins, so partners share a core.
    let pairs = [(0, 4, 10), (1, 5, 10), (2, 6, 10), (3, 7, 10)];
    let case = Case::new(machine("node:2 core:2 pu:2"), 8, &pairs);
    assert_eq!(case.place("balanced-locality"), [0, 2, 4, 6, 1, 3, 5, 7]);
}

#[test]
fn balanced_locality_fills_units_to_their_average() {
    // CommV = 10, 12, 2, 0 on four units of two threads each, an average of 6. 1 fills a unit
    // and so does 0; 2 has 2 < 6 and 3 joins. Three units are used: 1 first, then 0, which
    // has 10 with it, then 2 3.
    let mut case = Case::new(machine("core:4 pu:1"), 4, &[(0, 1, 10), (1, 2, 2)]);
    case.capacity = 2;
    case.siblings = true;
    assert_eq!(case.place("balanced-locality"), [1, 0, 2, 2]);
    // Where units are not to be shared, 2 has most communication of what is left.
    case.siblings = false;
    assert_eq!(case.place("balanced-locality"), [1, 0, 2, 3]);
}

#[test]
fn balanced_locality_keeps_room_for_all() {
    // Three threads have all communication and one unit each would hold them, but then five
    // silent ones were left for one unit of two.
    let pairs = [(0, 1, 10), (1, 2, 10), (0, 2, 10)];
    let mut case = Case::new(machine("core:4 pu:1"), 8, &pairs);
    case.capacity = 2;
    case.siblings = true;
    let units = case.place("balanced-locality");
    let busy = |thread: usize| units.iter().filter(|u| **u == units[thread]).count();
    // The average is 15, above 20 each: all share their unit with a silent one.
    assert_eq!([busy(0), busy(1), busy(2)], [2, 2, 2]);
    assert_eq!(super::on_units(&units, &case.tree), [2, 2, 2, 2]);
    assert!(units[0] != units[1] && units[1] != units[2] && units[0] != units[2]);
}
