//! Where pages lie, who communicates and when.
use super::Made;
use crate::metrics::findings::{fits_in_caches, node_imbalance, remote};
use hither_profile::*;

/// Equation 7 of OPT: data that is larger than the caches together does not fit.
#[test]
fn what_is_as_large_as_the_caches_fits() {
    let mut made = Made::new(2).pages(10, 0, &[1, 1]);
    made.cache_bytes = 10 * PAGE_SIZE;
    let found = made.finds(fits_in_caches::find);
    assert_eq!(found.kind, FindingKind::FitsInCaches);
    made.cache_bytes -= 1;
    made.finds_nothing(fits_in_caches::find);
    // Unknown caches.
    made.cache_bytes = 0;
    made.finds_nothing(fits_in_caches::find);
}

/// A placement of the pages of the region made: node by run of pages.
fn placed(made: &Made, threads: &[u32], runs: &[(u64, u64, u32)]) -> Placement {
    let place = |(t, &n): (u32, &u32)| ThreadPlace(ThreadIx(t), PuIx(t), t, NodeIx(n));
    let runs = runs.iter().map(|r| PageRun(r.0, r.1, NodeIx(r.2)));
    Placement {
        machine: MachineId {
            nodes: (0..made.nodes as u32).collect(),
            ..MachineId::default()
        },
        regions: vec![RegionId {
            size: made.profile.regions[0].size,
            ..RegionId::default()
        }],
        phases: vec![PlacedPhase {
            threads: (0..).zip(threads).map(place).collect(),
            pages: vec![RegionPlaces {
                region: 0,
                runs: runs.collect(),
            }],
            ..PlacedPhase::default()
        }],
        ..Placement::default()
    }
}

/// Of 100 pages alike, thread 0 touches all first and thread 1 uses `others`: Acc_app and the
/// local share are 1 - others / 100, and everything could be local.
fn touched_by_one(others: u32) -> Made {
    let made = Made::new(2).pages(100 - others, 0, &[10, 0]);
    made.pages(others, 0, &[0, 10]).named("field", 100)
}

#[test]
fn remote_is_found_where_first_touch_is_right_for_less_than_nine_tenths() {
    let found = touched_by_one(11).finds(remote::find);
    assert_eq!(found.kind, FindingKind::RemoteAccesses);
    assert!((found.severity - 0.11).abs() < 1e-9, "{found:?}");
    assert_eq!(found.object, Some(ObjectIx(0)));
    assert_eq!(
        found.title,
        "11 % of the accesses go to another node's memory; 0 % need to"
    );
    assert_eq!(
        found.evidence,
        [
            "First touch makes 89 % of the accesses local; with every page on the node that uses it most it would be 100 %.",
            "Of all accesses 11 % from node 1 to node 0.",
            "Remote of the accesses to each: field 11 % (11 % of the run's accesses).",
        ]
    );
    assert_eq!(
        found.fixes[0].copy,
        "hither map app.hither -o app.place.json\nhither run -p app.place.json -- ./app 12"
    );
    // Dealing out would cost more than it brings: 89 % is more than half.
    assert_eq!(found.fixes.len(), 1);
    touched_by_one(10).finds_nothing(remote::find);
}

#[test]
fn dealing_out_is_said_where_it_costs_nothing() {
    let found = touched_by_one(46).finds(remote::find);
    assert_eq!(found.fixes[1].copy, "numactl --interleave=all -- ./app 12");
    assert_eq!(touched_by_one(45).finds(remote::find).fixes.len(), 1);
}

/// Half the accesses are to pages that node 1 uses a little more than node 0, which has them:
/// only the little can be gained.
#[test]
fn remote_that_cannot_be_lowered_is_not_found() {
    let shared = |by_1| {
        let made = Made::new(2).pages(50, 0, &[100, 0]);
        made.pages(50, 0, &[100 - by_1, by_1])
    };
    // (50 * 55 - 50 * 45) / 10000 = 0.05
    let found = shared(55).finds(remote::find);
    assert!((found.severity - 0.05).abs() < 1e-9, "{found:?}");
    shared(54).finds_nothing(remote::find);
    // All share all alike.
    Made::new(2)
        .pages(50, 0, &[10, 10])
        .finds_nothing(remote::find);
}

#[test]
fn remote_looks_at_the_placement_given() {
    let mut made = touched_by_one(50);
    made.placement = Some(placed(&made, &[0, 1], &[(0, 50, 0), (50, 50, 1)]));
    made.finds_nothing(remote::find);
    made.finds_nothing(node_imbalance::find);
    // The other way round everything is remote.
    made.placement = Some(placed(&made, &[1, 0], &[(0, 50, 0), (50, 50, 1)]));
    let found = made.finds(remote::find);
    assert!(found.evidence[0].starts_with("The placement makes 0 % of"));
    assert_eq!(
        found.evidence[1],
        "Of all accesses 50 % from node 0 to node 1, 50 % from node 1 to node 0."
    );
    made.finds_nothing(node_imbalance::find);
}

#[test]
fn where_nothing_can_be_placed_pages_are_not_judged() {
    for finder in [remote::find, node_imbalance::find] {
        let mut made = touched_by_one(80);
        made.finds(finder);
        made.cache_bytes = 100 * PAGE_SIZE;
        made.finds_nothing(finder);
        touched_by_one(80).on(1).finds_nothing(finder);
        Made::new(1)
            .on(4)
            .pages(100, 0, &[10])
            .finds_nothing(finder);
        Made::new(4).finds_nothing(finder);
    }
}

#[test]
fn counts_of_a_damaged_profile_do_no_harm() {
    let made = Made::new(2).pages(50, 0, &[0, u64::MAX]).named("field", 50);
    made.finds(remote::find);
    made.finds(node_imbalance::find);
}

/// Each of four threads makes 100 accesses to its pages; of those of thread 1, thread 0 has
/// touched some first: its node serves 100 + taken, the mean is 100.
fn taken(taken: u32) -> Made {
    let made = Made::new(4).pages(100, 0, &[1]);
    let made = made.pages(taken, 0, &[0, 1]).pages(100 - taken, 1, &[0, 1]);
    made.pages(100, 2, &[0, 0, 1]).pages(100, 3, &[0, 0, 0, 1])
}

#[test]
fn a_node_is_overloaded_from_half_more_than_the_mean() {
    let found = taken(50).finds(node_imbalance::find);
    assert_eq!(found.kind, FindingKind::NodeImbalance);
    assert!((found.severity - 0.125).abs() < 1e-9, "{found:?}");
    assert!(found
        .title
        .ends_with("serves 38 % of the accesses, 1.5 times its share"));
    assert!(
        found.evidence[0].starts_with("Evenly, each of 4 nodes would serve 25 %; now it is node ")
    );
    assert!(
        found.evidence[1].starts_with("12 % of all accesses come to node "),
        "{found:?}"
    );
    taken(49).finds_nothing(node_imbalance::find);
}

/// Of 100 accesses thread 0 makes 70 to its own pages; its node serves some of thread 1's 30:
/// the imbalance is beyond a half (80 against 50), but only what it serves for others counts.
#[test]
fn a_node_busy_with_its_own_threads_is_not_overloaded() {
    let foreign = |n: u32| {
        let made = Made::new(2).pages(70, 0, &[1]).pages(n, 0, &[0, 1]);
        made.pages(30 - n, 1, &[0, 1])
    };
    let found = foreign(10).finds(node_imbalance::find);
    assert!((found.severity - 0.1).abs() < 1e-9, "{found:?}");
    foreign(9).finds_nothing(node_imbalance::find);
    foreign(0).finds_nothing(node_imbalance::find);
}

/// Two threads on a machine of four nodes keep two memories busy.
#[test]
fn nodes_without_threads_are_no_imbalance() {
    let made = Made::new(2).on(4).pages(50, 0, &[1]);
    made.pages(50, 1, &[0, 1])
        .finds_nothing(node_imbalance::find);
}
