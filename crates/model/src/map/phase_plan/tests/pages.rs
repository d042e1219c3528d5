//! Pages over time.
use super::*;
use crate::map::data::{
    DataPolicy, DataProblem, FirstAccess, InterleavePolicy, KmafPolicy, MostAccessPolicy,
    PageSliceUse, PlaceablePage, PlaceablePages,
};
use hither_profile::{NodeIx, PageNo, RegionIx};
use std::ops::Range;

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
    how: (PhaseRule, &MigrationLimits),
) -> PagePlan {
    plan_with(&MostAccessPolicy, pages, stages, whole_run, how)
}

fn plan_with(
    policy: &dyn DataPolicy,
    pages: &PlaceablePages,
    stages: &[ThreadStage],
    whole_run: bool,
    (rule, limits): (PhaseRule, &MigrationLimits),
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
    let timing = PageTiming {
        stages,
        slices: &seconds(40),
        whole_run,
        rule,
        limits: *limits,
    };
    plan_pages(&problem, policy, &timing).unwrap()
}

fn steps(plan: &PagePlan) -> Steps {
    let plain = |list: &[(usize, NodeIx)]| list.iter().map(|(p, n)| (*p, n.0)).collect();
    let row = |s: &PageStep| (s.slice.0, plain(&s.placed), plain(&s.moved));
    plan.steps.iter().map(row).collect()
}

/// Page 0 changes hands at 4 s and moves at once, the first time; back at 9 s, for which it waits until
/// 14 s. Page 1 is used by thread 1 from 12 s on, its first place. Page 2 is never counted.
#[test]
fn pages_follow_their_users_by_the_papers_rule() {
    let pages = PlaceablePages::new([
        page(0, 0, &[(0..4, 0, 1), (4..9, 1, 1), (9..30, 0, 1)]),
        page(1, 12, &[(12..14, 1, 1)]),
        page(2, 20, &[]),
    ]);
    let limits = MigrationLimits::default();
    let got = plan(
        &pages,
        &[stage(0, &[0, 1])],
        false,
        (PhaseRule::Opt, &limits),
    );
    let expected: Steps = vec![
        (0, vec![(0, 0), (1, 1), (2, 0)], vec![]),
        (4, vec![], vec![(0, 1)]),
        (14, vec![], vec![(0, 0)]),
    ];
    assert_eq!(steps(&got), expected);
}

/// A move costs 10 accesses: page 0 moves for 11 and page 1 does not for 10, nor does page 2 go to
/// thread 1 and come back for 15.
#[test]
fn pages_move_where_it_is_worth_a_move() {
    let pages = PlaceablePages::new([
        page(0, 0, &[(0..9, 0, 9), (9..10, 1, 11)]),
        page(1, 0, &[(0..9, 0, 9), (9..10, 1, 10)]),
        page(2, 0, &[(0..9, 0, 9), (9..10, 1, 15), (10..20, 0, 9)]),
    ]);
    let limits = MigrationLimits {
        page_interval: 0,
        page_move: 10,
        ..MigrationLimits::default()
    };
    let got = plan(
        &pages,
        &[stage(0, &[0, 1])],
        false,
        (PhaseRule::Together, &limits),
    );
    let expected: Steps = vec![
        (0, vec![(0, 0), (1, 0), (2, 0)], vec![]),
        (9, vec![], vec![(0, 1)]),
    ];
    assert_eq!(steps(&got), expected);
}

/// Threads 0 and 1 change places at 13 s, and what they do counts where they are then.
#[test]
fn pages_know_where_the_threads_are() {
    let pages = PlaceablePages::new([page(0, 0, &[(0..30, 0, 1)])]);
    let stages = [stage(0, &[0, 1]), stage(13, &[1, 0])];
    let limits = MigrationLimits::default();
    let got = plan(&pages, &stages, false, (PhaseRule::Opt, &limits));
    let expected: Steps = vec![(0, vec![(0, 0)], vec![]), (13, vec![], vec![(0, 1)])];
    assert_eq!(steps(&got), expected);
}

/// Policies that place once do so over phases too: interleaving never moves one.
#[test]
fn interleaved_pages_stay() {
    let pages = PlaceablePages::new([
        page(0, 0, &[(0..30, 0, 1)]),
        page(1, 0, &[(0..5, 0, 1)]),
        page(2, 0, &[(12..25, 0, 1)]),
    ]);
    let (stages, limits) = ([stage(0, &[0, 1])], MigrationLimits::default());
    let how = (PhaseRule::Together, &limits);
    let got = plan_with(&InterleavePolicy, &pages, &stages, false, how);
    assert_eq!(got.total_moves(), 0);
    assert_eq!(got.initial_nodes(3), [0, 1, 0].map(|n| Some(NodeIx(n))));
}

/// kMAF starts with first touch, and moves after the step in which eq. 6 holds: 1 > 2 x 0 + 1 does not,
/// 2 does. What was counted before is aged by the move, and counts on.
#[test]
fn kmaf_moves_pages_over_time() {
    let pages = PlaceablePages::new([page(0, 0, &[(0..5, 1, 1), (20..30, 0, 1)])]);
    let limits = MigrationLimits::default();
    let how = (PhaseRule::Together, &limits);
    let got = plan_with(&KmafPolicy::PAPER, &pages, &[stage(0, &[0, 1])], false, how);
    // NV of thread 1 is 2 after second 1: move at 2, NV 1; then 4 after second 4. Thread 0 has to have
    // more than 2 x 4 + 1 = 9 accesses: 10 after second 29, the last.
    let expected: Steps = vec![(0, vec![(0, 0)], vec![]), (2, vec![], vec![(0, 1)])];
    assert_eq!(steps(&got), expected);
}

/// Without slices everything belongs to the stage that lasts longest: the second.
#[test]
fn pages_of_the_whole_run_are_placed_once() {
    let pages = PlaceablePages::new([page(0, 0, &[(0..1, 0, 9)])]);
    let stages = [stage(0, &[0, 1]), stage(13, &[1, 0])];
    let limits = MigrationLimits::default();
    let got = plan(&pages, &stages, true, (PhaseRule::Together, &limits));
    assert_eq!(steps(&got), [(0, vec![(0, 1)], vec![])]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Pages move at most once per interval; remote accesses and moves together cost no more than
    /// those of any placement that never moves.
    #[test]
    fn plans_keep_their_interval_and_gain(
        uses in prop::collection::vec((0..3u32, 0..40u32, 0..2u32, 1..9u64), 1..60),
        swap in 0..40u32,
        interval in 1..20u64,
        page_move in 0..20u64,
    ) {
        let of = |number: u32| {
            let own = uses.iter().filter(|u| u.0 == number);
            let own: Vec<_> = own.map(|&(_, s, t, n)| (s..s + 1, t, n)).collect();
            page(number, 0, &own)
        };
        let pages = PlaceablePages::new((0..3).map(of));
        let stages = [stage(0, &[0, 1]), stage(swap, &[1, 0])];
        let limits = MigrationLimits {
            page_interval: interval * 1000 * MS,
            page_move,
            ..MigrationLimits::default()
        };
        let plan = plan(&pages, &stages, false, (PhaseRule::Together, &limits));
        let node = |slice: u32, thread: u32| if slice < swap { thread } else { 1 - thread };
        let mut cost = page_move * plan.total_moves() as u64;
        let mut fixed = [[0u64; 2]; 3];
        for &(p, slice, thread, accesses) in &uses {
            let so_far = plan.steps.iter().filter(|s| s.slice.0 <= slice);
            let mut changes = so_far.flat_map(|s| s.placed.iter().chain(&s.moved));
            let at = changes.rfind(|(page, _)| *page == p as usize).map(|(_, n)| n.0);
            let from = node(slice, thread);
            cost += if at == Some(from) { 0 } else { accesses };
            fixed[p as usize][from as usize] += accesses;
        }
        for page in 0..3 {
            let moves = plan.steps.iter().filter(|s| s.moved.iter().any(|m| m.0 == page));
            let starts: Vec<u64> = moves.map(|s| s.start).collect();
            prop_assert!(starts.windows(2).all(|w| w[1] - w[0] >= limits.page_interval));
        }
        let best: u64 = fixed.iter().map(|[a, b]| a.min(b)).sum();
        prop_assert!(cost <= best, "{cost} > {best}");
    }
}
