//! Who uses a page most must go on to do so.
use super::{close, four_nodes, nodes, table, uses};
use crate::metrics::lasting_use::lasting_use;
use crate::metrics::{MetricsReport, PageSize};
use hither_profile::*;

/// Four threads, one on each node, of which `who(slice, page)` makes ten accesses to a page in each of `slices`; thread 0
/// touches all first.
fn run(slices: u32, pages: u32, who: impl Fn(u32, u32) -> usize) -> Profile {
    let mut profile = Profile {
        threads: vec![Thread::default(); 4],
        regions: vec![Region {
            size: 1 << 30,
            ..Region::default()
        }],
        ..Profile::default()
    };
    for slice in 0..slices {
        let row = |page: u32| -> Vec<u64> {
            let mut row = vec![0; 4];
            row[who(slice, page)] = 10;
            row
        };
        let rows: Vec<Vec<u64>> = (0..pages).map(row).collect();
        let rows: Vec<&[u64]> = rows.iter().map(Vec::as_slice).collect();
        for use_ in uses(slice, &rows) {
            if use_.reads > 0 {
                profile.threads[use_.thread.at()].reads += use_.reads;
                profile.threads[use_.thread.at()].instructions += use_.reads;
                profile.pages.push(use_);
            }
        }
    }
    for page in (0..pages).map(PageNo) {
        profile.first_touch.push(PageFirstTouch {
            page,
            ..PageFirstTouch::default()
        });
    }
    profile.meta.duration = 1_000_000_000;
    profile.meta.page_slices = slices;
    profile
}

fn lasting(profile: &Profile, pages: usize) -> Vec<f32> {
    let rows = vec![[1u64; 4]; pages];
    let rows: Vec<&[u64]> = rows.iter().map(|r| r.as_slice()).collect();
    let table = table(&rows);
    lasting_use(profile, (&table, PageSize::K4), 4, &nodes(&[0, 1, 2, 3]))
}

/// Thread 0 initialises. Page 0 stays with 1. Page 1 is used by 1 2 1 2: X has 20 of 1, Y 20 of 2, so nothing lasts.
/// Page 2 by 1 1 3 1 1 3: X = 1 3 1 and Y = 1 1 3, 20 of 1 and 10 of 3 either, of 40 of 1 all.
/// Page 3 by 1 1 1 2 1 2: X is 30 of 1, Y 10 of 1 and 20 of 2; Y has 10 of 1, X has 0 of 2: 10 of 40.
#[test]
fn what_one_uses_most_at_one_time_it_need_not_at_another() {
    let in_turn = [
        [1, 1, 1, 1],
        [1, 2, 1, 1],
        [1, 1, 3, 1],
        [1, 2, 1, 2],
        [1, 1, 1, 1],
        [1, 2, 3, 2],
    ];
    let profile = run(7, 4, |slice, page| match slice {
        0 => 0,
        _ => in_turn[slice as usize - 1][page as usize],
    });
    let found = lasting(&profile, 4);
    let expected = [1.0, 0.0, 1.0, 0.25];
    for (found, expected) in found.iter().zip(expected) {
        close(f64::from(*found), expected);
    }
}

/// Two slices of each kind, and the first.
#[test]
fn few_slices_do_not_tell_what_lasts() {
    let in_turn = |slice: u32, _| slice as usize % 2;
    assert!(lasting(&run(4, 1, in_turn), 1).is_empty());
    close(f64::from(lasting(&run(5, 1, in_turn), 1)[0]), 0.0);
    // The page that is used now and then is not told apart, however long the run is.
    let mut seldom = run(5, 1, in_turn);
    seldom.pages.retain_mut(|row| row.slice.0 != 3);
    seldom.pages.push(PageUse {
        slice: SliceIx(3),
        page: PageNo(9),
        reads: 1,
        ..PageUse::default()
    });
    close(f64::from(lasting(&seldom, 1)[0]), 1.0);
}

fn verdict(profile: &Profile) -> crate::metrics::verdict::MappingVerdict {
    MetricsReport::from_profile(profile, four_nodes()).verdict
}

/// Pages that threads take as they come have an E_app of 0.75 here by chance alone.
#[test]
fn pages_that_are_used_by_whoever_comes_belong_to_no_node() {
    // The slices of a page's main user are 1 to 3 of four, in an order of its own.
    let mixed = |slice: u32, page: u32| {
        (page + u32::from((slice + page) % 8 >= 6) + slice / 8 * 2) as usize % 4
    };
    let stay = |slice: u32, page: u32| match slice {
        0 => 0,
        _ => page as usize % 4,
    };
    let v = verdict(&run(16, 64, stay));
    assert!(v.data_mapping, "{v:?}");
    // Half of the time each: E_app is 0.4, and never 2/3.
    let v = verdict(&run(16, 64, mixed));
    assert!(!v.data_mapping, "{v:?}");
    // A few uses, three of five by one thread: E_app is 0.7.
    let turns = |slice: u32, page: u32| match slice {
        0 => page as usize % 4,
        1 | 3 => (page as usize + 1) % 4,
        _ => page as usize % 4,
    };
    let mut by_chance = run(5, 64, turns);
    by_chance.first_touch = (0..64)
        .map(|page| PageFirstTouch {
            page: PageNo(page),
            thread: ThreadIx((page + 2) % 4),
            ..PageFirstTouch::default()
        })
        .collect::<Vec<_>>()
        .into();
    // Of the first use the most, so that all uses together seem to be one node's.
    for page in 0..64 {
        by_chance.pages.push(PageUse {
            page: PageNo(page),
            thread: ThreadIx(page % 4),
            reads: 20,
            ..PageUse::default()
        });
        by_chance.threads[page as usize % 4].reads += 20;
    }
    let v = verdict(&by_chance);
    assert!(!v.data_mapping, "{v:?}");
    assert!(
        v.reasons[1].contains("another one at another time"),
        "{v:?}"
    );
}
