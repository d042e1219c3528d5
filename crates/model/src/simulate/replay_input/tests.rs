//! By hand: where threads and pages are, how windows are cut, and how sure ratios are.
use super::linux_scheduler::LinuxScheduler;
use super::page_homes::{first_touches, FirstTouches, PageHomeInput, PageHomeRule, PageHomes};
use super::partitioned_source::{accesses_by_time, PartitionedSource};
use super::ratio_estimator::{one_seed_half_width, ratio_estimate, student_t_975};
use super::replay_plan::{PlanStage, ReplayPlan};
use super::replay_space::ReplaySpace;
use crate::simulate::AccessSource;
use crate::topology::{load, TopologyTree};
use hither_profile::bursts::{BurstAccess, BurstPiece, NamedPages};
use hither_profile::{PageBudget, PageFirstTouch, PageNo, ProcessIx, Profile, RegionIx, ThreadIx};
use proptest::prelude::*;

fn tree(description: &str) -> TopologyTree {
    let topology = load(description).expect("a topology");
    TopologyTree::new(&topology, |_| true).expect("units")
}

#[test]
fn linux_fills_packages_then_cores_then_siblings() {
    let tree = tree("pack:2 core:2 pu:2");
    let check = |seed: u64| {
        let mut kernel = LinuxScheduler::new(&tree, seed);
        let units: Vec<u32> = (0..8).map(|_| kernel.place_thread()).collect();
        let package = |at: usize| units[at] / 4;
        let core = |at: usize| units[at] / 2;
        assert_ne!(package(0), package(1), "{units:?}");
        assert_ne!(package(2), package(3), "{units:?}");
        let mut cores: Vec<u32> = (0..4).map(core).collect();
        cores.sort_unstable();
        assert_eq!(cores, [0, 1, 2, 3], "{units:?}");
        let mut all = units.clone();
        all.sort_unstable();
        assert_eq!(all, (0..8).collect::<Vec<u32>>());
        units
    };
    let all: Vec<Vec<u32>> = (0..20).map(check).collect();
    assert!(
        all.iter().any(|units| *units != all[0]),
        "chance has no part"
    );
    assert_eq!(check(7), all[7]);
}

#[test]
fn threads_move_to_idle_cores_or_change_places() {
    let tree = tree("pack:2 core:2 pu:2");
    let mut kernel = LinuxScheduler::new(&tree, 1);
    let mut units: Vec<u32> = (0..2).map(|_| kernel.place_thread()).collect();
    for _ in 0..50 {
        let before = units.clone();
        kernel.migrate(&mut units, &[0, 1], 1.0);
        assert_ne!(units[0], before[0]);
        assert_ne!(units[0] / 2, units[1] / 2, "they share a core: {units:?}");
    }
    let mut full: Vec<u32> = (0..6).map(|_| kernel.place_thread()).collect();
    full.extend(&units);
    let threads: Vec<usize> = (0..8).collect();
    for _ in 0..50 {
        kernel.migrate(&mut full, &threads, 0.5);
        let mut sorted = full.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<u32>>());
    }
    let before = full.clone();
    kernel.migrate(&mut full, &threads, 0.0);
    assert_eq!(full, before);
}

fn place(process: u32, page: u64, pages: u64, region: u32, first: u32) -> NamedPages {
    NamedPages {
        process: ProcessIx(process),
        page,
        pages,
        region: RegionIx(region),
        first: PageNo(first),
    }
}

#[test]
fn shared_memory_has_one_address() {
    let places = [
        place(0, 100, 10, 0, 0),
        place(0, 500, 4, 1, 2),
        place(1, 100, 10, 2, 0),
        place(1, 700, 4, 1, 2),
    ];
    let space = ReplaySpace::new(places.iter());
    let layout = space.layout(&places);
    let at = |process, page: u64| layout.replay_address(ProcessIx(process), page * 4096 + 5);
    assert_eq!(at(0, 101), 101 * 4096 + 5);
    assert_eq!(at(1, 101), (1 << 48) + 101 * 4096 + 5);
    assert_eq!(at(0, 501), at(1, 701));
    assert_ne!(at(0, 501), at(1, 700));
    assert_eq!(
        layout.region_of_page(at(1, 701) / 4096),
        Some((RegionIx(1), 3))
    );
    assert_eq!(
        layout.region_of_page(at(1, 103) / 4096),
        Some((RegionIx(2), 3))
    );
    assert_eq!(layout.region_of_page(99), None);
    assert_eq!(layout.region_of_page(110), None);
    assert!(!layout.is_plain(ProcessIx(0)));
}

#[test]
fn one_process_keeps_its_addresses() {
    let places = [place(0, 100, 10, 0, 0)];
    let layout = ReplaySpace::new(places.iter()).layout(&places);
    assert!(layout.is_plain(ProcessIx(0)));
    assert_eq!(
        layout.replay_address(ProcessIx(0), u64::MAX >> 17),
        u64::MAX >> 17
    );
}

#[test]
fn pages_lie_where_the_stage_and_the_rule_say() {
    let stage = |start, units: &[u32]| PlanStage {
        start,
        units: units.to_vec(),
        ..PlanStage::default()
    };
    let plan = ReplayPlan {
        next_touch: false,
        stages: vec![stage(0, &[0, 2]), stage(50, &[3, 0])],
    };
    assert_eq!(
        [0, 49, 50, 90].map(|time| plan.stage_at(time)),
        [0, 0, 1, 1]
    );
    let places = [place(0, 100, 10, 0, 0)];
    let layout = ReplaySpace::new(places.iter()).layout(&places);
    let touches: FirstTouches = [
        ((RegionIx(0), PageNo(0)), (ThreadIx(1), 10)),
        ((RegionIx(0), PageNo(1)), (ThreadIx(1), 60)),
    ]
    .into();
    let of = |rule, page: u64| {
        let input = PageHomeInput {
            plan: &plan,
            touches: &touches,
            rule,
            unit_nodes: &[0, 0, 1, 1],
            nodes: &[0, 1],
        };
        PageHomes::new(input, &layout, 1).node_of(page * 4096)
    };
    // Thread 1 was on node 1 when it touched the first page, on node 0 for the second.
    assert_eq!(of(PageHomeRule::FirstTouch, 100), Some(1));
    assert_eq!(of(PageHomeRule::FirstTouch, 101), Some(0));
    assert_eq!(of(PageHomeRule::FirstTouch, 102), None);
    assert_eq!(of(PageHomeRule::Replay, 100), None);
    assert_eq!(
        (
            of(PageHomeRule::Interleave, 100),
            of(PageHomeRule::Interleave, 101)
        ),
        (Some(0), Some(1))
    );
}

/// Two pages of region 0, at page 100, that threads 1 and 0 touched first, and a third one.
#[test]
fn plans_are_told_apart_by_where_threads_and_pages_are() {
    let places = [place(0, 100, 3, 0, 0)];
    let layout = ReplaySpace::new(places.iter()).layout(&places);
    let touches: FirstTouches = [
        ((RegionIx(0), PageNo(0)), (ThreadIx(1), 10)),
        ((RegionIx(0), PageNo(1)), (ThreadIx(0), 10)),
    ]
    .into();
    let plan = |units: &[u32], runs: &[(u64, u64, u32)]| {
        let mut plan = ReplayPlan::from_units(units.to_vec());
        let pages = &mut plan.stages[0].pages.0;
        pages.insert(RegionIx(0), runs.to_vec());
        plan
    };
    let left = ReplayPlan::from_units(vec![0, 2]);
    let check = |rule, other: ReplayPlan, expected: bool| {
        let input = |plan| PageHomeInput {
            plan,
            touches: &touches,
            rule,
            unit_nodes: &[0, 0, 1, 1],
            nodes: &[0, 1],
        };
        let same = input(&left).are_those_of(&input(&other), [&layout, &layout].into_iter());
        assert_eq!(same, expected, "{rule:?} {other:?}");
    };
    let touched = PageHomeRule::FirstTouch;
    check(touched, left.clone(), true);
    // Placed where first touch puts them.
    check(touched, plan(&[0, 2], &[(0, 1, 1), (1, 2, 0)]), true);
    check(touched, plan(&[0, 2], &[(0, 1, 1)]), true);
    check(touched, plan(&[0, 2], &[(0, 1, 0)]), false);
    // One that nobody is known to have touched first, and one that no window names.
    check(touched, plan(&[0, 2], &[(2, 3, 0)]), false);
    check(touched, plan(&[0, 2], &[(3, 9, 0)]), true);
    check(PageHomeRule::Replay, plan(&[0, 2], &[(0, 1, 1)]), false);
    // The same nodes by other cores.
    check(touched, plan(&[1, 2], &[]), false);
    let moves = ReplayPlan {
        next_touch: true,
        ..left.clone()
    };
    check(touched, moves, false);
    let later = PlanStage {
        start: 50,
        ..left.stages[0].clone()
    };
    let mut longer = left.clone();
    longer.stages.push(later);
    check(touched, longer, false);
}

/// Pieces of one thread, numbered accesses.
struct Pieces(Vec<u64>, u64);

impl AccessSource for Pieces {
    fn threads(&self) -> &[u32] {
        &[0]
    }

    fn next_piece(&mut self, _: u32, into: &mut Vec<BurstAccess>) -> Option<BurstPiece> {
        into.clear();
        let length = self.0.pop()?;
        into.extend((self.1..self.1 + length).map(|n| BurstAccess {
            address: n,
            bytes: 1,
            after: 2,
            ..BurstAccess::default()
        }));
        self.1 += length;
        Some(BurstPiece {
            start: self.1 * 10,
            end: self.1 * 10 + length * 10,
            waited: true,
            accesses: length,
            instructions: length * 2,
            ..BurstPiece::default()
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn parts_together_are_the_window(
        lengths in prop::collection::vec(1u64..50, 1..10),
        shares in prop::collection::vec(0.0f64..1.0, 0..5),
        skipped in 0.0f64..1.0,
    ) {
        let total: u64 = lengths.iter().sum();
        let mut cut = PartitionedSource::new(Pieces(lengths, 0), vec![total]);
        let begin = cut.accesses_up_to(skipped)[0];
        cut.skip_to(&[begin]);
        let mut shares = shares;
        shares.sort_by(f64::total_cmp);
        shares.push(1.0);
        let (mut seen, mut into) = (Vec::new(), Vec::new());
        for share in shares {
            let ends = cut.accesses_up_to(share);
            cut.extend_to(&ends);
            while let Some(piece) = cut.next_piece(0, &mut into) {
                prop_assert_eq!(piece.accesses, into.len() as u64);
                prop_assert_eq!(piece.instructions, 2 * into.len() as u64);
                prop_assert!(piece.start <= piece.end);
                seen.extend(into.iter().map(|a| a.address));
            }
            let end = (total as f64 * share).round() as u64;
            prop_assert_eq!(seen.len() as u64, end.saturating_sub(begin));
        }
        prop_assert_eq!(seen, (begin..total).collect::<Vec<_>>());
    }
}

/// One piece each of two threads.
struct Two([Option<BurstPiece>; 2]);

impl AccessSource for Two {
    fn threads(&self) -> &[u32] {
        &[0, 1]
    }

    fn next_piece(&mut self, thread: u32, into: &mut Vec<BurstAccess>) -> Option<BurstPiece> {
        let piece = self.0[thread as usize].take()?;
        into.clear();
        into.resize(piece.accesses as usize, BurstAccess::default());
        Some(piece)
    }
}

fn piece(thread: u32, start: u64, waited: bool) -> BurstPiece {
    BurstPiece {
        thread: ThreadIx(thread),
        start,
        end: start + 100,
        waited,
        accesses: 10,
        ..BurstPiece::default()
    }
}

#[test]
fn who_waited_still_waits_where_a_part_begins() {
    // The second thread began when the first was through, and so it does in the second half.
    let pieces = [piece(0, 0, false), piece(1, 100, true)];
    let mut cut = PartitionedSource::new(Two(pieces.map(Some)), vec![10, 10]);
    let mut into = Vec::new();
    for (share, starts) in [(0.5, [0, 100]), (1.0, [50, 100])] {
        let ends = cut.accesses_up_to(share);
        assert!(cut.extend_to(&ends));
        for (thread, start) in [0, 1].into_iter().zip(starts) {
            let piece = cut.next_piece(thread, &mut into).expect("a piece");
            assert_eq!((piece.start, piece.waited), (start, thread == 1));
            assert_eq!(cut.next_piece(thread, &mut into), None);
        }
    }
    assert!(!cut.extend_to(&[10, 10]));
    // Nor does leaving out the first half change when it began.
    let mut cut = PartitionedSource::new(Two(pieces.map(Some)), vec![10, 10]);
    cut.skip_to(&[5, 5]);
    cut.extend_to(&[10, 10]);
    let mut begun = |cut: &mut PartitionedSource<Two>| {
        [0, 1].map(|thread| {
            let piece = cut.next_piece(thread, &mut into);
            piece.map(|p| (p.start, p.waited))
        })
    };
    assert_eq!(begun(&mut cut), [Some((50, false)), Some((100, true))]);
    // What somebody else read of its pieces does neither: thread 1 has another one, for which it did not wait.
    let behind = [piece(0, 0, false), piece(1, 200, false)];
    let mut cut = PartitionedSource::new(Two(behind.map(Some)), vec![10, 20]);
    cut.begin_behind(ThreadIx(1), 10, Some(100));
    cut.skip_to(&[5, 15]);
    cut.extend_to(&[10, 20]);
    assert_eq!(begun(&mut cut), [Some((50, false)), Some((100, true))]);
}

#[test]
fn accesses_are_made_evenly_over_a_piece() {
    let pieces = [
        piece(0, 0, false),
        piece(1, 50, false),
        piece(0, 100, false),
    ];
    let check = |time, expected: [u64; 2]| assert_eq!(accesses_by_time(time, &pieces, 2), expected);
    check(0, [0, 0]);
    check(50, [5, 0]);
    check(110, [11, 6]);
    check(1000, [20, 10]);
}

#[test]
fn ratios_and_their_intervals() {
    let x = vec![vec![10.0, 20.0, 30.0]];
    let one = |y: Vec<Vec<f64>>| ratio_estimate(&x, &y).expect("a ratio");
    // Half of everything: no window says anything else.
    let half = one(vec![vec![5.0, 10.0, 15.0]]);
    assert_eq!((half.value, half.half_width), (0.5, Some(0.0)));
    // By hand: R = 66/60 = 1.1; residuals 1, -2, 1; var = 6 / (3 * 2 * 400) = 0.0025.
    let found = one(vec![vec![12.0, 20.0, 34.0]]);
    assert_eq!(found.value, 1.1);
    let expected = 4.302_652_73 * 0.0025f64.sqrt();
    assert!((found.half_width.expect("a width") - expected).abs() < 1e-8);
    // Seeds differ by 6 in all, windows not at all: mean 60, se = 3, t(1) = 12.7062.
    let found = one(vec![vec![9.5, 19.0, 28.5], vec![10.5, 21.0, 31.5]]);
    assert_eq!(found.value, 1.0);
    assert!((found.half_width.expect("a width") - 12.706_204_74 * 3.0 / 60.0).abs() < 1e-8);
    // Another seed differs from these by t(1) times their deviation, sqrt(18), whose mean is 60.
    let found = one_seed_half_width(&[vec![9.5, 19.0, 28.5], vec![10.5, 21.0, 31.5]]);
    let expected = 12.706_204_74 * 18f64.sqrt() / 60.0;
    assert!((found.expect("a width") - expected).abs() < 1e-8);
    assert_eq!(one_seed_half_width(&x), None);
    assert_eq!(ratio_estimate(&[vec![0.0, 0.0]], &x), None);
    assert_eq!(ratio_estimate(&[], &x), None);
    let single = ratio_estimate(&[vec![2.0]], &[vec![1.0]]).expect("a ratio");
    assert_eq!((single.value, single.half_width), (0.5, None));
    // With one window the seeds still tell: mean 10, se = 1, t(1) = 12.7062.
    let seeds = ratio_estimate(&[vec![10.0]], &[vec![9.0], vec![11.0]]).expect("a ratio");
    assert!((seeds.half_width.expect("a width") - 1.270_620_474).abs() < 1e-8);
}

#[test]
fn student_is_as_in_tables() {
    let check = |degrees, expected: f64| {
        let found = student_t_975(degrees);
        assert!((found - expected).abs() < 1e-6, "{degrees}: {found}");
    };
    check(1, 12.706_205);
    check(4, 2.776_445);
    check(11, 2.200_985);
    check(30, 2.042_272);
    check(120, 1.979_930);
}

#[test]
fn first_touches_of_merged_rows_are_those_of_their_pages() {
    let touch = |page| PageFirstTouch {
        page: PageNo(page),
        thread: ThreadIx(1),
        ..PageFirstTouch::default()
    };
    let single = Profile {
        first_touch: (0..40).map(touch).collect(),
        ..Profile::default()
    };
    let mut merged = single.clone();
    let budget = PageBudget {
        rows: 1,
        bytes: u64::MAX,
    };
    assert!(merged.merge_pages(budget).is_some());
    assert_eq!(merged.first_touch.row_count(), 1);
    assert_eq!(first_touches(&merged), first_touches(&single));
}
