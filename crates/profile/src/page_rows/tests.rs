use super::*;
use proptest::prelude::*;

fn used(first: u32, following: u32, thread: u32, reads: u64, writes: u64) -> PageUse {
    PageUse {
        page: PageNo(first),
        following,
        thread: ThreadIx(thread),
        reads,
        writes,
        ..PageUse::default()
    }
}

#[test]
fn the_example_of_the_module() {
    let rows = PageRows::from(vec![used(4, 3, 0, 6, 0), used(4, 3, 1, 2, 0)]);
    let read: Vec<_> = rows
        .iter()
        .map(|u| (u.page.0, u.thread.0, u.reads))
        .collect();
    let first = [(4, 0, 2), (4, 1, 0), (5, 0, 2), (5, 1, 0)];
    let then = [(6, 0, 1), (6, 1, 1), (7, 0, 1), (7, 1, 1)];
    assert_eq!(read, [first, then].concat());
    assert!(rows.iter().all(|u| u.following == 0));
    assert_eq!((rows.row_count(), rows.single_pages()), (2, 8));
}

#[test]
fn parts_end_where_large_pages_do() {
    // The region begins three pages into a large page of four.
    let rows = PageRows::from(vec![used(0, 5, 0, 12, 0), used(6, 0, 0, 1, 0)]);
    let parts = rows.parts(4, |_| 3);
    let parts: Vec<_> = parts.map(|u| (u.page.0, u.following, u.reads)).collect();
    assert_eq!(parts, [(0, 0, 2), (1, 3, 8), (5, 0, 2), (6, 0, 1)]);
}

#[test]
fn of_too_many_pages_neighbours_are_seen_as_one() {
    let following = (3 * MOST_SEEN - 1) as u32;
    let rows = PageRows::from(vec![used(0, following, 0, 6 * MOST_SEEN, 0)]);
    assert_eq!(rows.grain(), 4);
    let first = rows.iter().next().unwrap();
    assert_eq!((first.following, first.reads), (3, 8));
    assert_eq!(PageRows::from(vec![used(0, 9, 0, 1, 0)]).grain(), 1);
}

#[test]
fn threads_that_become_one_are_added_up() {
    let mut rows = PageRows::from(vec![
        used(0, 1, 0, 1, 2),
        used(0, 1, 2, 4, 5),
        used(2, 0, 2, 1, 0),
    ]);
    rows.change_threads(|_| ThreadIx(1));
    let expected = [used(0, 1, 1, 5, 7), used(2, 0, 1, 1, 0)];
    assert_eq!(rows.rows().collect::<Vec<_>>(), expected);
}

proptest! {
    #[test]
    fn counts_are_divided_and_no_page_is_left_out(
        pages in 1u64..40,
        counts in prop::collection::vec((0u64..90, 0u64..90), 1..6),
        large in 1u32..20,
        before in 0u64..20,
    ) {
        let rows = counts.iter().zip(0..).map(|(&(r, w), t)| used(7, pages as u32 - 1, t, r, w));
        let rows: PageRows<PageUse> = rows.collect();
        let sum = |of: &dyn Fn(&PageUse) -> u64| rows.iter().map(|u| of(&u)).sum::<u64>();
        prop_assert_eq!(sum(&|u| u.reads), counts.iter().map(|c| c.0).sum::<u64>());
        prop_assert_eq!(sum(&|u| u.writes), counts.iter().map(|c| c.1).sum::<u64>());
        let accesses = sum(&|u| u.reads + u.writes);
        let mut touched: Vec<u32> = rows.iter().filter(|u| u.reads + u.writes > 0).map(|u| u.page.0).collect();
        touched.dedup();
        prop_assert_eq!(touched.len() as u64, pages.min(accesses));
        // Large parts have what their pages have.
        for part in rows.parts(large, move |_| before) {
            let inside = part.page.0..=part.page.0 + part.following;
            let of = |u: &PageUse| u.thread == part.thread && inside.contains(&u.page.0);
            let sum: u64 = rows.iter().filter(of).map(|u| u.reads).sum();
            prop_assert_eq!(part.reads, sum);
            let first = (before + u64::from(part.page.0)) / u64::from(large);
            let last = (before + u64::from(part.page.0 + part.following)) / u64::from(large);
            prop_assert_eq!(first, last);
        }
    }
}
