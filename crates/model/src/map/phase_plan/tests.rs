//! OPT's five conditions one by one, and pages over time.
use super::*;
use crate::map::data::{
    DataPolicy, DataProblem, FirstAccess, InterleavePolicy, MostAccessPolicy, PageSliceUse,
    PlaceablePage, PlaceablePages,
};
use crate::map::PuDistances;
use crate::topology::TopologyTree;
use hither_profile::{NodeIx, PageNo, PairComm, RegionIx, Slice, Thread, ThreadIx};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// Four threads; pairs 0-1 and 2-3 ("a"), or 0-2 and 1-3 ("b"), or none, with `events`
/// per pair.
fn phase(kind: char, from_ms: u64, to_ms: u64, events: u64) -> PhaseCommunication {
    let mut matrix = CommMatrix::new(4);
    let pairs: &[(usize, usize)] = match kind {
        'a' => &[(0, 1), (2, 3)],
        'b' => &[(0, 2), (1, 3)],
        _ => &[],
    };
    for &(i, j) in pairs {
        matrix.add(i, j, events);
    }
    PhaseCommunication {
        slices: (from_ms / 10) as usize..(to_ms / 10) as usize,
        start: from_ms * MS,
        counted: (to_ms - from_ms) * MS,
        working: vec![true; matrix.threads()],
        matrix,
    }
}

/// Pairs side by side.
fn pairs_together(matrix: &CommMatrix, _: Option<&[u32]>) -> Result<PuAssignment, String> {
    let b = matrix.get(0, 2) > matrix.get(0, 1);
    Ok(if b {
        vec![0, 2, 1, 3]
    } else {
        vec![0, 1, 2, 3]
    })
}

/// (first slice, phase) of every stage.
fn stages(phases: &[PhaseCommunication], limits: &MigrationLimits) -> Vec<(u32, Option<usize>)> {
    let plan = plan_threads(phases, limits, pairs_together).unwrap();
    plan.stages.iter().map(|s| (s.slice.0, s.phase)).collect()
}

/// Both kinds have C_H = 1875: a row normalised is 0, 100, 0, 0 in some order, with mean 25
/// and variance (75^2 + 3 * 25^2) / 4. C_A is 4 * events / 16.
#[test]
fn threads_move_when_all_conditions_hold() {
    let phases = [phase('a', 0, 2000, 9000), phase('b', 2000, 4000, 9000)];
    let plan = plan_threads(&phases, &MigrationLimits::default(), pairs_together).unwrap();
    let [before, after] = &plan.stages[..] else {
        panic!("{plan:?}");
    };
    assert_eq!(
        (before.start, before.threads.as_slice()),
        (0, &[0, 1, 2, 3][..])
    );
    assert_eq!(
        (after.start, after.threads.as_slice()),
        (2000 * MS, &[0, 2, 1, 3][..])
    );
    assert_eq!((after.slice, after.moved), (SliceIx(200), 2));
    let c = &plan.conditions[1];
    assert!(c.allow_migration());
    assert_eq!((c.heterogeneity_value, c.amount_value), (1875.0, 1125.0));
    assert!(!plan.conditions[0].phase_changed && !plan.conditions[0].allow_migration());
}

#[test]
fn condition_2_heterogeneity_is_above_its_limit() {
    let phases = [phase('a', 0, 2000, 9000), phase('b', 2000, 4000, 9000)];
    let with = |heterogeneity| MigrationLimits {
        heterogeneity,
        ..MigrationLimits::default()
    };
    assert_eq!(
        stages(&phases, &with(1874.9)),
        [(0, Some(0)), (200, Some(1))]
    );
    assert_eq!(stages(&phases, &with(1875.0)), [(0, None)]);
}

/// The migration at 1 s is the first. The next phase begins 999 ms or 1 s later.
#[test]
fn condition_3_migrations_are_a_second_apart() {
    let at = |third: u64| {
        [
            phase('a', 0, 1000, 9000),
            phase('b', 1000, third, 9000),
            phase('a', third, 4000, 9000),
        ]
    };
    let limits = MigrationLimits::default();
    assert_eq!(stages(&at(1990), &limits), [(0, Some(0)), (100, Some(1))]);
    let refused = plan_threads(&at(1990), &limits, pairs_together).unwrap();
    assert!(!refused.conditions[2].time);
    assert_eq!(refused.conditions[2].mapping_differs, None);
    let all = [(0, Some(0)), (100, Some(1)), (200, Some(2))];
    assert_eq!(stages(&at(2000), &limits), all);
    let quick = MigrationLimits {
        thread_interval: 990 * MS,
        ..limits
    };
    assert_eq!(stages(&at(1990), &quick).len(), 3);
}

/// C_A of b over its 2 s: 4 * 1200 / 16 / 2 = 150 per second is not above 150; 1204 is.
#[test]
fn condition_4_enough_communication_per_second() {
    let with = |events| [phase('a', 0, 2000, 9000), phase('b', 2000, 4000, events)];
    assert_eq!(
        stages(&with(1200), &MigrationLimits::default()),
        [(0, Some(0))]
    );
    assert_eq!(stages(&with(1204), &MigrationLimits::default()).len(), 2);
    let modest = MigrationLimits {
        amount: 149.0,
        ..MigrationLimits::default()
    };
    assert_eq!(stages(&with(1200), &modest).len(), 2);
}

#[test]
fn condition_5_the_mapping_is_another() {
    let phases = [phase('a', 0, 2000, 9000), phase('a', 2000, 4000, 99000)];
    let plan = plan_threads(&phases, &MigrationLimits::default(), pairs_together).unwrap();
    assert_eq!(plan.stages.len(), 1);
    assert_eq!(plan.conditions[1].mapping_differs, Some(false));
}

/// A quiet start is no reason to be anywhere: the run starts as the first busy phase wants.
#[test]
fn a_run_starts_with_the_first_mapping_calculated() {
    let quiet = [
        phase('-', 0, 2000, 0),
        phase('b', 2000, 4000, 9000),
        phase('a', 4000, 6000, 9000),
    ];
    assert_eq!(
        stages(&quiet, &MigrationLimits::default()),
        [(0, Some(1)), (400, Some(2))]
    );
    // Nothing is worth a mapping of its own: all together decide, here b with 90 of 150.
    let little = [phase('a', 0, 2000, 60), phase('b', 2000, 4000, 90)];
    let plan = plan_threads(&little, &MigrationLimits::default(), pairs_together).unwrap();
    assert_eq!(plan.stages.len(), 1);
    assert_eq!((plan.stages[0].phase, plan.stages[0].threads[1]), (None, 2));
}

#[test]
fn mapping_starts_from_the_one_in_use_and_its_errors_come_through() {
    let phases = [phase('a', 0, 2000, 9000), phase('b', 2000, 4000, 9000)];
    let mut seen = Vec::new();
    let plan = plan_threads(&phases, &MigrationLimits::default(), |m, now| {
        seen.push(now.map(<[u32]>::to_vec));
        pairs_together(m, now)
    });
    assert!(plan.is_ok());
    assert_eq!(seen, [None, Some(vec![0, 1, 2, 3])]);
    let failed = plan_threads(&phases, &MigrationLimits::default(), |_, _| {
        Err("no".to_owned())
    });
    assert_eq!(failed, Err("no".to_owned()));
    assert!(plan_threads(&[], &MigrationLimits::default(), |_, _| Ok(vec![])).is_ok());
}

/// Slices of 10 ms, the second phase from slice 2 on.
#[test]
fn phases_have_their_own_communication() {
    let comm = |slice: u32, events| PairComm {
        slice: SliceIx(slice),
        i: ThreadIx(0),
        j: ThreadIx(1),
        events,
        ..PairComm::default()
    };
    let mut slices = seconds(5);
    slices[4].paused = 400 * MS;
    let profile = Profile {
        threads: vec![Thread::default(); 2],
        slices,
        comm: vec![comm(0, 1), comm(1, 2), comm(2, 4), comm(4, 8)],
        ..Profile::default()
    };
    let got = phases_of_profile(&profile, &[0..2, 2..5]);
    let of = |p: &PhaseCommunication| (p.start, p.counted, p.matrix.get(1, 0));
    assert_eq!(of(&got[0]), (0, 2_000 * MS, 3));
    assert_eq!(of(&got[1]), (2_000 * MS, 2_600 * MS, 12));
}

fn seconds(count: u64) -> Vec<Slice> {
    let slice = |s| Slice {
        start: s * 1000 * MS,
        length: 1000 * MS,
        ..Slice::default()
    };
    (0..count).map(slice).collect()
}

fn stage(second: u32, threads: &[u32]) -> ThreadStage {
    ThreadStage {
        slice: SliceIx(second),
        start: u64::from(second) * 1000 * MS,
        phase: None,
        threads: threads.to_vec(),
        moved: 0,
    }
}

/// A page first touched by thread 0, with uses `(seconds, thread, accesses in each)`.
fn page(
    number: u32,
    touched: u32,
    uses: &[(Range<u32>, u32, u64)],
) -> (PlaceablePage, Vec<PageSliceUse>) {
    let each = uses.iter().flat_map(|(seconds, thread, accesses)| {
        let use_in = move |s| PageSliceUse {
            slice: SliceIx(s),
            thread: ThreadIx(*thread),
            accesses: *accesses,
        };
        seconds.clone().map(use_in)
    });
    let mut uses: Vec<PageSliceUse> = each.collect();
    uses.sort_by_key(|u| (u.slice, u.thread));
    let page = PlaceablePage {
        region: RegionIx(0),
        first: PageNo(number),
        count: 1,
        number,
        touch: Some(FirstAccess {
            slice: SliceIx(touched),
            thread: ThreadIx(0),
        }),
    };
    (page, uses)
}

/// Steps of a plan for two threads on two nodes, as (second, placed, moved).
type Steps = Vec<(u32, Vec<(usize, u32)>, Vec<(usize, u32)>)>;

fn plan(
    pages: &PlaceablePages,
    stages: &[ThreadStage],
    whole_run: bool,
    limits: &MigrationLimits,
) -> PagePlan {
    plan_with(&MostAccessPolicy, pages, stages, whole_run, limits)
}

fn plan_with(
    policy: &dyn DataPolicy,
    pages: &PlaceablePages,
    stages: &[ThreadStage],
    whole_run: bool,
    limits: &MigrationLimits,
) -> PagePlan {
    let topology = crate::topology::load("node:2 pu:1").unwrap();
    let tree = TopologyTree::new(&topology, |_| true).unwrap();
    let problem = DataProblem {
        tree: &tree,
        cost: &PuDistances::from_hops(&tree),
        threads: &[],
        pages,
        capacity: &[u64::MAX, u64::MAX],
        current: &[],
        fixed: &[],
    };
    plan_pages(&problem, policy, stages, &seconds(40), whole_run, limits).unwrap()
}

fn steps(plan: &PagePlan) -> Steps {
    let plain = |list: &[(usize, NodeIx)]| list.iter().map(|(p, n)| (*p, n.0)).collect();
    let row = |s: &PageStep| (s.slice.0, plain(&s.placed), plain(&s.moved));
    plan.steps.iter().map(row).collect()
}

/// Windows of 10 s. Page 0 changes hands at 10 s and moves. Page 1 changes hands at 4 s: in
/// its window thread 1 has 6 of 10 and gets it. Page 2 is first used at 12 s. Page 3 is
/// touched by thread 0 and never counted.
#[test]
fn pages_follow_their_users_every_ten_seconds() {
    let pages = PlaceablePages::new([
        page(0, 0, &[(0..10, 0, 1), (10..30, 1, 1)]),
        page(1, 0, &[(0..4, 0, 1), (4..10, 1, 1)]),
        page(2, 12, &[(12..14, 1, 1)]),
        page(3, 20, &[]),
    ]);
    let got = plan(
        &pages,
        &[stage(0, &[0, 1])],
        false,
        &MigrationLimits::default(),
    );
    let expected: Steps = vec![
        (0, vec![(0, 0), (1, 1)], vec![]),
        (10, vec![(2, 1)], vec![(0, 1)]),
        (20, vec![(3, 0)], vec![]),
    ];
    assert_eq!(steps(&got), expected);
    assert_eq!(got.total_moves(), 1);
    let first = [
        Some(NodeIx(0)),
        Some(NodeIx(1)),
        Some(NodeIx(1)),
        Some(NodeIx(0)),
    ];
    assert_eq!(got.initial_nodes(4), first);
}

/// Threads 0 and 1 change places at 13 s: the window that may begin at 10 s waits for it.
/// A migration at 5 s is too early for pages; what they do after it counts where they are
/// then: page 0 is used from node 0 for 5 s and from node 1 for 8 s.
#[test]
fn pages_know_where_the_threads_are() {
    let pages = PlaceablePages::new([page(0, 0, &[(0..30, 0, 1)])]);
    let stages = [stage(0, &[0, 1]), stage(13, &[1, 0])];
    let got = plan(&pages, &stages, false, &MigrationLimits::default());
    let expected: Steps = vec![
        (0, vec![(0, 0)], vec![]),
        (13, vec![], vec![(0, 1)]),
        (23, vec![], vec![]),
    ];
    assert_eq!(steps(&got), expected);
    let stages = [stage(0, &[0, 1]), stage(5, &[1, 0]), stage(13, &[0, 1])];
    let got = plan(&pages, &stages, false, &MigrationLimits::default());
    let expected: Steps = vec![
        (0, vec![(0, 1)], vec![]),
        (13, vec![], vec![(0, 0)]),
        (23, vec![], vec![]),
    ];
    assert_eq!(steps(&got), expected);
}

/// Pages used at different times keep their turns: interleaving never moves one.
#[test]
fn interleaved_pages_stay() {
    let pages = PlaceablePages::new([
        page(0, 0, &[(0..30, 0, 1)]),
        page(1, 0, &[(0..5, 0, 1)]),
        page(2, 0, &[(12..25, 0, 1)]),
    ]);
    let (stages, limits) = ([stage(0, &[0, 1])], MigrationLimits::default());
    let got = plan_with(&InterleavePolicy, &pages, &stages, false, &limits);
    assert_eq!(got.total_moves(), 0);
    assert_eq!(got.initial_nodes(3), [0, 1, 0].map(|n| Some(NodeIx(n))));
}

/// Without slices everything belongs to the stage that lasts longest: the second.
#[test]
fn pages_of_the_whole_run_are_placed_once() {
    let pages = PlaceablePages::new([page(0, 0, &[(0..1, 0, 9)])]);
    let stages = [stage(0, &[0, 1]), stage(13, &[1, 0])];
    let got = plan(&pages, &stages, true, &MigrationLimits::default());
    assert_eq!(steps(&got), [(0, vec![(0, 1)], vec![])]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Pages move at most once per interval; with room for all, the plan has at least as
    /// many local accesses as any placement that never moves.
    #[test]
    fn plans_keep_their_interval_and_gain(
        uses in prop::collection::vec((0..3u32, 0..40u32, 0..2u32, 1..9u64), 1..60),
        swap in 0..40u32,
        interval in 1..20u64,
    ) {
        let of = |number: u32| {
            let own = uses.iter().filter(|u| u.0 == number);
            let own: Vec<_> = own.map(|&(_, s, t, n)| (s..s + 1, t, n)).collect();
            page(number, 0, &own)
        };
        let pages = PlaceablePages::new((0..3).map(of));
        let stages = [stage(0, &[0, 1]), stage(swap, &[1, 0])];
        let limits = MigrationLimits { page_interval: interval * 1000 * MS, ..MigrationLimits::default() };
        let plan = plan(&pages, &stages, false, &limits);
        for pair in plan.steps.windows(2) {
            prop_assert!(pair[1].start - pair[0].start >= limits.page_interval);
        }
        let node = |slice: u32, thread: u32| if slice < swap { thread } else { 1 - thread };
        let mut planned = 0;
        let mut fixed = [[0u64; 2]; 3];
        for &(p, slice, thread, accesses) in &uses {
            let so_far = plan.steps.iter().filter(|s| s.slice.0 <= slice);
            let mut changes = so_far.flat_map(|s| s.placed.iter().chain(&s.moved));
            let at = changes.rfind(|(page, _)| *page == p as usize).map(|(_, n)| n.0);
            let from = node(slice, thread);
            planned += if at == Some(from) { accesses } else { 0 };
            fixed[p as usize][from as usize] += accesses;
        }
        let best: u64 = fixed.iter().map(|[a, b]| a.max(b)).sum();
        prop_assert!(planned >= best, "{planned} < {best}");
    }
}
