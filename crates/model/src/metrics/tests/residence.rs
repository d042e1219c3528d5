//! Where threads run and pages lie.
use crate::metrics::figures::{remote_figures, REMOTE, REMOTE_FETCHES};
use crate::metrics::node_traffic::NodeTraffic;
use crate::metrics::page_id::PageId;
use crate::metrics::residence::NodeResidence;
use crate::metrics::{MetricsSetup, PageSize, ProfileAnalysis};
use hither_profile::*;

/// Two threads on two nodes. Pages 0 to 3 of each of two regions, all touched first by
/// thread 0; page 0 is used by thread 0, 10 times, the others by thread 1, 10 times.
fn profile() -> Profile {
    let region = |size| Region {
        size,
        ..Region::default()
    };
    let at = |region: u32, page: u32| (RegionIx(region), PageNo(page));
    let all = (0..2).flat_map(|r| (0..4).map(move |p| at(r, p)));
    let thread = |page: PageNo| ThreadIx(u32::from(page.0 > 0));
    Profile {
        threads: vec![Thread::default(); 2],
        regions: vec![region(4 * PAGE_SIZE), region(8 * PAGE_SIZE)],
        pages: (all.clone())
            .map(|(region, page)| PageUse {
                region,
                page,
                thread: thread(page),
                reads: 10,
                ..PageUse::default()
            })
            .collect(),
        first_touch: all
            .map(|(region, page)| PageFirstTouch {
                region,
                page,
                ..PageFirstTouch::default()
            })
            .collect(),
        ..Profile::default()
    }
}

fn analysis(profile: &Profile) -> ProfileAnalysis {
    let setup = MetricsSetup {
        nodes: 2,
        nodes_from: String::new(),
        cache_bytes: 0,
        page_size: PageSize::K4,
    };
    ProfileAnalysis::from_profile(profile, setup)
}

fn known(size: u64) -> RegionIdentity {
    RegionIdentity {
        size,
        ..RegionIdentity::default()
    }
}

type Runs<'a> = &'a [(u64, u64, u32)];

/// A phase: node of each thread placed, and for each region its runs.
fn phase(threads: &[(u32, u32)], pages: &[(u32, Runs)]) -> PlacedPhase {
    let place = |&(t, n): &(u32, u32)| ThreadPlace(ThreadIx(t), PuIx(t), t, NodeIx(n));
    let places = |&(region, runs): &(u32, Runs)| RegionPlacement {
        region,
        runs: runs
            .iter()
            .map(|r| PageRun(r.0, r.1, NodeIx(r.2)))
            .collect(),
    };
    PlacedPhase {
        threads: threads.iter().map(place).collect(),
        pages: pages.iter().map(places).collect(),
        ..PlacedPhase::default()
    }
}

fn placement(regions: &[RegionIdentity], phases: Vec<PlacedPhase>) -> Placement {
    Placement {
        machine: MachineIdentity {
            nodes: vec![0, 1],
            ..MachineIdentity::default()
        },
        regions: regions.to_vec(),
        phases,
        ..Placement::default()
    }
}

/// Threads are on these nodes, and the pages of regions 0 and 1 on those.
#[track_caller]
fn check(profile: &Profile, placement: &Placement, threads: [u32; 2], pages: [[u32; 4]; 2]) {
    let residence = NodeResidence::from_placement(&analysis(profile), profile, placement);
    assert_eq!(residence.threads, threads.map(NodeIx));
    for (region, wanted) in pages.iter().enumerate() {
        let page = |number| PageId::of_region(RegionIx(region as u32), number);
        let nodes: Vec<_> = (0..4)
            .map(|n| residence.node_of_page(page(n)).map(|n| n.0))
            .collect();
        assert_eq!(nodes, wanted.map(Some), "region {region}");
    }
    assert!(residence.from_placement);
}

/// What a thread reads again and again in its own cache is not fetched again.
#[test]
fn remote_is_what_is_fetched_where_that_was_counted() {
    let mut profile = profile();
    let shares = |profile: &Profile| {
        let analysis = analysis(profile);
        let residence = NodeResidence::from_first_touch(&analysis);
        let figures = remote_figures(&analysis, &residence);
        let shares = figures.into_iter().map(|f| (f.name, f.value));
        shares.collect::<Vec<_>>()
    };
    assert_eq!(shares(&profile), [(REMOTE.to_owned(), Some(0.75))]);
    profile.meta.options.cache = 1 << 20;
    profile.pages.retain_mut(|page| {
        page.fetches = if page.thread == ThreadIx(0) {
            9000
        } else {
            1000
        };
        true
    });
    let both = [(REMOTE_FETCHES, 0.25), (REMOTE, 0.75)];
    let both = both.map(|(name, share)| (name.to_owned(), Some(share)));
    assert_eq!(shares(&profile), both);
}

#[test]
fn first_touch_follows_the_thread() {
    let profile = profile();
    let analysis = analysis(&profile);
    let residence = NodeResidence::from_first_touch(&analysis);
    assert!(!residence.from_placement);
    let node = residence.threads[0];
    assert_ne!(node, residence.threads[1]);
    for page in 0..analysis.table.len() {
        assert_eq!(residence.node_of_page(analysis.table.id(page)), Some(node));
    }
    // Thread 0 makes 20 accesses, thread 1 60, all to node 0.
    assert_eq!(residence.remote_share(&analysis.table), Some(0.75));
    let none = PageId::of_region(RegionIx(9), 0);
    assert_eq!(residence.node_of_page(none), None);
}

#[test]
fn pages_left_alone_follow_the_thread_that_touches_them_first() {
    let profile = profile();
    let regions = [known(8 * PAGE_SIZE)];
    let phases = vec![phase(&[(0, 1), (1, 0)], &[(0, &[(1, 2, 0)])])];
    let placement = placement(&regions, phases);
    check(&profile, &placement, [1, 0], [[1, 1, 1, 1], [1, 0, 0, 1]]);
    let analysis = analysis(&profile);
    let residence = NodeResidence::from_placement(&analysis, &profile, &placement);
    let traffic = residence.traffic(&analysis.table);
    // Region 0: 10 by thread 0 at home, 30 by thread 1 to node 1; region 1: 10 at home, 20 by
    // thread 1 at home on node 0, 10 to node 1.
    let between = |from, to| traffic.between(NodeIx(from), NodeIx(to));
    assert_eq!([between(0, 0), between(0, 1)], [20, 40]);
    assert_eq!([between(1, 0), between(1, 1)], [0, 20]);
    assert_eq!(
        [traffic.served_by(NodeIx(0)), traffic.served_by(NodeIx(1))],
        [20, 60]
    );
    assert_eq!(
        [traffic.made_by(NodeIx(0)), traffic.made_by(NodeIx(1))],
        [60, 20]
    );
    assert_eq!(traffic.total_accesses(), 80);
    assert_eq!(residence.remote_share(&analysis.table), Some(0.5));
}

#[test]
fn the_first_phase_that_places_something_counts() {
    let regions = [known(4 * PAGE_SIZE), known(8 * PAGE_SIZE)];
    let phases = vec![
        phase(&[(0, 0)], &[(0, &[(0, 2, 1)])]),
        phase(&[(0, 1), (1, 1)], &[(0, &[(0, 3, 0)]), (1, &[(3, 1, 1)])]),
        phase(&[(1, 0)], &[(1, &[(0, 4, 0)])]),
    ];
    check(
        &profile(),
        &placement(&regions, phases),
        [0, 1],
        [[1, 1, 0, 0], [0, 0, 0, 1]],
    );
}

#[test]
fn regions_of_another_profile_are_left_where_first_touch_has_them() {
    let regions = [known(12 * PAGE_SIZE), known(4 * PAGE_SIZE)];
    let phases = vec![phase(
        &[(0, 0), (1, 1)],
        &[(0, &[(0, 4, 1)]), (1, &[(2, 1, 1)]), (7, &[(0, 1, 1)])],
    )];
    check(
        &profile(),
        &placement(&regions, phases),
        [0, 1],
        [[0, 0, 1, 0], [0, 0, 0, 0]],
    );
}

#[test]
fn of_regions_known_as_the_same_the_first_is_the_first() {
    let mut profile = profile();
    profile.regions[1].size = 4 * PAGE_SIZE;
    let regions = [
        known(4 * PAGE_SIZE),
        known(4 * PAGE_SIZE),
        known(4 * PAGE_SIZE),
    ];
    let runs: [Runs; 3] = [&[(1, 1, 1)], &[(2, 1, 1)], &[(0, 4, 1)]];
    let pages = [(0, runs[0]), (1, runs[1]), (2, runs[2])];
    let phases = vec![phase(&[(0, 0), (1, 1)], &pages)];
    check(
        &profile,
        &placement(&regions, phases),
        [0, 1],
        [[0, 1, 0, 0], [0, 0, 1, 0]],
    );
}

#[test]
fn damaged_runs_and_threads_do_no_harm() {
    let regions = [known(4 * PAGE_SIZE)];
    let runs: Runs = &[(2, 0, 1), (3, u64::MAX, 1), (u64::MAX, 2, 1)];
    let phases = vec![phase(&[(0, 0), (1, 1), (9, 1)], &[(0, runs)])];
    check(
        &profile(),
        &placement(&regions, phases),
        [0, 1],
        [[0, 0, 0, 1], [0, 0, 0, 0]],
    );
    let empty = Placement::default();
    let residence = NodeResidence::from_placement(&analysis(&profile()), &profile(), &empty);
    assert_eq!(residence.nodes, 2);
    let nothing = Profile::default();
    let residence = NodeResidence::from_first_touch(&analysis(&nothing));
    assert_eq!(residence.remote_share(&analysis(&nothing).table), None);
    assert_eq!(NodeTraffic::default().total_accesses(), 0);
}
