use super::*;
use crate::map::data::{PageSliceUse, PlaceablePage};
use crate::topology::load;
use hither_profile::{SliceIx, ThreadIx};

/// Two nodes, each with one L3, two cores with an L2 and two units in each. Threads 0 and 1
/// share a core, 2 is on the other core of their node, 3 on the other node.
struct Example {
    tree: TopologyTree,
    cost: PuDistances,
    comm: CommGraph,
    pages: PlaceablePages,
}

fn example() -> Example {
    let topology = load("node:2 l3:1 l2:2 core:1 pu:2").unwrap();
    let tree = TopologyTree::new(&topology, |_| true).unwrap();
    let uses = |list: &[(u32, u64)]| {
        let each = list.iter().map(|&(thread, accesses)| PageSliceUse {
            slice: SliceIx(0),
            thread: ThreadIx(thread),
            accesses,
        });
        (
            PlaceablePage::default(),
            each.collect::<Vec<PageSliceUse>>(),
        )
    };
    Example {
        cost: PuDistances::from_hops(&tree),
        comm: CommGraph::new(4, [(0, 1, 1), (0, 2, 2), (0, 3, 5)]),
        pages: PlaceablePages::new([uses(&[(0, 6), (3, 2)]), uses(&[(3, 2)])]),
        tree,
    }
}

const THREADS: [u32; 4] = [0, 1, 2, 4];
const NODES: [NodeIx; 2] = [NodeIx(0), NodeIx(0)];

impl Example {
    fn placed<'a>(&'a self, threads: &'a [u32], nodes: &'a [NodeIx]) -> PlacedRun<'a> {
        PlacedRun {
            tree: &self.tree,
            cost: &self.cost,
            comm: &self.comm,
            threads,
            pages: Some((&self.pages, nodes)),
        }
    }
}

/// Hops: 2 inside a core, 4 inside an L3, 6 beyond: 1 * 2 + 2 * 4 + 5 * 6 = 40.
#[test]
fn objective_is_hops_times_events() {
    let x = example();
    assert_eq!(placement_quality(&x.placed(&THREADS, &NODES)).objective, 40);
}

/// Of 8 events 1 stays in a core, 1 + 2 in an L3 and node, all 8 in the machine.
#[test]
fn communication_is_where_both_threads_are() {
    let x = example();
    let got = placement_quality(&x.placed(&THREADS, &NODES)).communication;
    let row = |name: &str| {
        let found = got.iter().find(|l| l.level == name);
        found.map(|l| (l.inside * 8.0, l.closest * 8.0))
    };
    assert_eq!(row("machine"), Some((8.0, 5.0)));
    assert_eq!(row("node"), Some((3.0, 0.0)));
    assert_eq!(row("L3"), Some((3.0, 2.0)));
    assert_eq!(row("L2"), Some((1.0, 0.0)));
    assert_eq!(row("core"), Some((1.0, 1.0)));
    assert_eq!(row("pu"), Some((0.0, 0.0)));
    assert_eq!(row("L4"), None);
    assert_eq!(got.iter().map(|l| l.closest).sum::<f64>(), 1.0);
    let order: Vec<_> = got.iter().map(|l| l.level).collect();
    assert_eq!(order.first(), Some(&"machine"));
    assert_eq!(order.last(), Some(&"pu"));
}

/// CommV is 8, 1, 2, 5. Per L3: 11 and 5, mean 8: 37.5 %. Per L2: 9, 2, 5, 0, mean 4: 125 %.
#[test]
fn caches_are_weighed_by_their_threads() {
    let x = example();
    let expected = [("L3", 2, 37.5), ("L2", 4, 125.0)];
    let got = placement_quality(&x.placed(&THREADS, &NODES)).caches;
    let got: Vec<_> = got.iter().map(|c| (c.level, c.caches, c.balance)).collect();
    assert_eq!(got, expected);
}

/// Both pages on node 0; of their 10 accesses thread 3 makes 4, from node 1. On node 1 the
/// second page is local to it.
#[test]
fn remote_accesses_come_from_other_nodes() {
    let x = example();
    let remote = |nodes: &[NodeIx]| placement_quality(&x.placed(&THREADS, nodes)).remote;
    assert_eq!(remote(&NODES), Some(0.4));
    assert_eq!(remote(&[NodeIx(0), NodeIx(1)]), Some(0.2));
    assert_eq!(remote(&[NodeIx(1), NodeIx(0)]), Some(0.8));
}

#[test]
fn moves_are_what_differs() {
    let x = example();
    let after_nodes = [NodeIx(0), NodeIx(1)];
    let before = x.placed(&THREADS, &NODES);
    let after = x.placed(&[0, 1, 2, 3], &after_nodes);
    let all = [0, 1, 2, 3].map(ThreadIx);
    let got = explain_placement(Some(&before), &after, &all);
    assert_eq!((got.threads_moved, got.threads), (1, 4));
    assert_eq!((got.pages_moved, got.pages), (1, 2));
    assert_eq!(got.before, Some(placement_quality(&before)));
    let unknown = explain_placement(None, &after, &all);
    assert_eq!((unknown.threads_moved, unknown.pages_moved), (4, 2));
    let same = explain_placement(Some(&after), &after, &all);
    assert_eq!((same.threads_moved, same.pages_moved), (0, 0));
}

/// Thread 3, which is on another unit, is left to the system.
#[test]
fn threads_that_are_not_placed_do_not_move() {
    let x = example();
    let before = x.placed(&THREADS, &NODES);
    let after = x.placed(&[0, 1, 3, 5], &NODES);
    let got = explain_placement(Some(&before), &after, &[0, 1, 2].map(ThreadIx));
    assert_eq!((got.threads_moved, got.threads), (1, 3));
}

#[test]
fn nothing_to_explain_is_no_division_by_zero() {
    let x = example();
    let silent = CommGraph::new(4, []);
    let placed = PlacedRun {
        comm: &silent,
        pages: None,
        ..x.placed(&THREADS, &NODES)
    };
    let got = explain_placement(None, &placed, &[ThreadIx(0)]);
    assert_eq!(
        (got.after.objective, got.after.remote, got.pages),
        (0, None, 0)
    );
    assert!(got.after.communication.iter().all(|l| l.inside == 0.0));
    assert!(got.after.caches.iter().all(|c| c.balance == 0.0));
    let json = serde_json::to_value(&got).unwrap();
    assert_eq!(json["after"]["communication"][0]["level"], "machine");
}
