use super::{nodes, table};
use crate::metrics::exclusivity::exclusivity;
use crate::metrics::node_assignment::{assign_threads_to_nodes, ExclusivityGoal};
use crate::metrics::page_access::PageAccessTable;
use crate::metrics::page_id::PageSize;
use hither_profile::*;
use proptest::prelude::*;

fn value(t: &PageAccessTable, n: usize, of: &[NodeIx]) -> f64 {
    exclusivity(t, n, of).map_or(1.0, |e| e.app)
}

/// Lowest and highest E_app over every assignment within capacity.
fn brute_force(t: &PageAccessTable, threads: usize, n: usize) -> (f64, f64) {
    let capacity = threads.div_ceil(n);
    let mut range = (f64::INFINITY, 0.0f64);
    for code in 0..n.pow(threads as u32) {
        let of: Vec<u32> = (0..threads)
            .map(|i| (code / n.pow(i as u32) % n) as u32)
            .collect();
        if (0..n).all(|k| of.iter().filter(|&&o| o as usize == k).count() <= capacity) {
            let e = value(t, n, &nodes(&of));
            range = (range.0.min(e), range.1.max(e));
        }
    }
    range
}

/// Threads 0, 2 share page 0 and 1, 3 share page 1. Together: E = 1. Apart: 1/2.
#[test]
fn sharers_go_together_or_apart() {
    let t = table(&[&[5, 0, 5, 0], &[0, 5, 0, 5]]);
    let best = assign_threads_to_nodes(&t, &[true; 4], 2, ExclusivityGoal::Maximise);
    assert_eq!((best[0], best[1]), (best[2], best[3]));
    assert_eq!(value(&t, 2, &best), 1.0);
    let worst = assign_threads_to_nodes(&t, &[true; 4], 2, ExclusivityGoal::Minimise);
    assert_eq!(value(&t, 2, &worst), 0.5);
}

#[test]
fn nothing_to_assign() {
    assert_eq!(
        assign_threads_to_nodes(&table(&[]), &[true; 0], 4, ExclusivityGoal::Maximise),
        []
    );
    assert_eq!(
        assign_threads_to_nodes(&table(&[&[3]]), &[true; 1], 4, ExclusivityGoal::Maximise),
        nodes(&[0])
    );
    assert_eq!(
        assign_threads_to_nodes(&table(&[&[3, 3]]), &[true; 2], 1, ExclusivityGoal::Minimise),
        nodes(&[0, 0])
    );
    assert_eq!(
        assign_threads_to_nodes(&table(&[]), &[true; 3], 8, ExclusivityGoal::Minimise).len(),
        3
    );
}

/// Stockfish: 20 threads, of which four work, and those use all pages alike. Each has a node to itself, as
/// four threads alone have; those that idle beside them do not let them crowd on one.
#[test]
fn idle_threads_take_no_place() {
    let mut row = [0u64; 20];
    let mut working = [false; 20];
    for thread in [0, 7, 8, 19] {
        row[thread] = 1_000;
        working[thread] = true;
    }
    row[3] = 1;
    let t = table(&[&row, &row]);
    for goal in [ExclusivityGoal::Maximise, ExclusivityGoal::Minimise] {
        let of = assign_threads_to_nodes(&t, &working, 4, goal);
        let mut held: Vec<NodeIx> = [0, 7, 8, 19].map(|t: usize| of[t]).to_vec();
        held.sort();
        held.dedup();
        assert_eq!((held.len(), of.len()), (4, 20));
    }
    let [a, b] = [[false; 3], [true; 3]];
    let t = table(&[&[4, 4, 0], &[4, 0, 4]]);
    let of = |working: &[bool]| assign_threads_to_nodes(&t, working, 2, ExclusivityGoal::Maximise);
    assert_eq!(of(&a), of(&b), "if none works, all count");
}

/// One that hardly works is where its pages are used.
#[test]
fn idle_threads_sit_with_those_they_share_with() {
    let t = table(&[&[100, 1, 0], &[0, 1, 100], &[0, 2, 100]]);
    let of = assign_threads_to_nodes(&t, &[true, false, true], 2, ExclusivityGoal::Maximise);
    assert_ne!(of[0], of[2]);
    assert_eq!(of[1], of[2]);
    let of = assign_threads_to_nodes(&t, &[true, false, true], 2, ExclusivityGoal::Minimise);
    assert_eq!(of[1], of[0]);
}

/// Numbers below a bound, the same in every run.
fn numbers() -> impl FnMut(u32) -> u32 {
    let mut state = 7u64;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((state >> 33) % u64::from(below)) as u32
    }
}

/// A group for each of 64 threads, `members` threads in each, as no simple start has them.
fn hidden_groups(members: u32) -> Vec<u32> {
    let mut random = numbers();
    let mut groups: Vec<u32> = (0..64).map(|t| t / members).collect();
    for i in (1..64).rev() {
        groups.swap(i, random(i as u32 + 1) as usize);
    }
    groups
}

/// 64 threads, 250 000 pages of four sharers each: 1 M rows. No clock here, but the
/// work is bounded, so it must come back, and the best is known: sharers together.
#[test]
fn a_large_run_is_solved() {
    let groups = hidden_groups(4);
    let mut members = vec![Vec::new(); 16];
    for (thread, &group) in groups.iter().enumerate() {
        members[group as usize].push(thread as u32);
    }
    let rows: Vec<PageUse> = (0..250_000u32)
        .flat_map(|page| {
            let threads = &members[page as usize % 16];
            (0..4).map(move |k| PageUse {
                page: PageNo(page),
                thread: ThreadIx(threads[k as usize]),
                reads: 1 + u64::from((page * 7 + k * 13) % 50),
                ..PageUse::default()
            })
        })
        .collect();
    let t = PageAccessTable::from_rows(&rows.iter().copied().collect(), &[], PageSize::K4);
    let best = assign_threads_to_nodes(&t, &[true; 64], 4, ExclusivityGoal::Maximise);
    assert_eq!(value(&t, 4, &best), 1.0);
    for node in 0..4 {
        assert_eq!(best.iter().filter(|n| n.0 == node).count(), 16);
    }
}

/// 64 threads in four hidden groups; nine of ten pages are shared within a group, the
/// others by any three threads. The search must do as well as the hidden groups, and the
/// opposite assignment must be worse.
#[test]
fn hidden_groups_are_found_in_noise() {
    let hidden = hidden_groups(16);
    let mut random = numbers();
    let mut rows = Vec::new();
    for page in 0..20_000 {
        let group = random(4);
        for _ in 0..3 {
            let thread = loop {
                let thread = random(64);
                if page % 10 == 0 || hidden[thread as usize] == group {
                    break thread;
                }
            };
            rows.push(PageUse {
                page: PageNo(page),
                thread: ThreadIx(thread),
                reads: 1 + u64::from(random(100)),
                ..PageUse::default()
            });
        }
    }
    let t = PageAccessTable::from_rows(&rows.iter().copied().collect(), &[], PageSize::K4);
    let (found, wanted) = (
        value(
            &t,
            4,
            &assign_threads_to_nodes(&t, &[true; 64], 4, ExclusivityGoal::Maximise),
        ),
        value(&t, 4, &nodes(&hidden)),
    );
    assert!(found >= 0.99 * wanted, "{found} of {wanted}");
    let worst = value(
        &t,
        4,
        &assign_threads_to_nodes(&t, &[true; 64], 4, ExclusivityGoal::Minimise),
    );
    assert!(worst < 0.8 * wanted, "{worst} of {wanted}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn the_search_is_near_the_best(
        rows in prop::collection::vec(
            prop::collection::vec(prop_oneof![Just(0u64), 1u64..100], 7), 1..12),
        threads in 2usize..=7,
        n in 2usize..=3,
    ) {
        let rows: Vec<&[u64]> = rows.iter().map(|r| &r[..threads]).collect();
        let t = table(&rows);
        let (lowest, highest) = if t.is_empty() { (1.0, 1.0) } else { brute_force(&t, threads, n) };
        let best = assign_threads_to_nodes(&t, &vec![true; threads], n, ExclusivityGoal::Maximise);
        let worst = assign_threads_to_nodes(&t, &vec![true; threads], n, ExclusivityGoal::Minimise);
        let (e_best, e_worst) = (value(&t, n, &best), value(&t, n, &worst));
        prop_assert!(e_best >= 0.99 * highest, "{} of {}", e_best, highest);
        prop_assert!(e_worst * 0.99 <= lowest, "{} of {}", e_worst, lowest);
        prop_assert!(e_best >= e_worst);
        for of in [&best, &worst] {
            for node in 0..n {
                let held = of.iter().filter(|o| o.at() == node).count();
                prop_assert!(held <= threads.div_ceil(n));
            }
        }
        prop_assert_eq!(assign_threads_to_nodes(&t, &vec![true; threads], n, ExclusivityGoal::Maximise), best);
    }
}
