use super::super::controller::{Controller, Limits, Standing};
use hither_profile::Nanos;

const MS: Nanos = 1_000_000;

/// What is wanted after each standing (natural, extra, target's ms, spent us), at 1 us a page.
#[track_caller]
fn check(limits: Limits, standings: &[(u64, u64, u64, u64)], expected: &[u32]) {
    let mut controller = Controller::new(limits);
    let got: Vec<u32> = standings
        .iter()
        .map(|&(natural, extra, target, spent)| {
            let standing = Standing {
                natural,
                extra,
                target: target * MS,
                spent: spent * 1000,
            };
            controller.wanted(standing, 1000)
        })
        .collect();
    assert_eq!(got, expected);
}

#[test]
fn extra_faults_are_a_share_of_all() {
    // 900 natural faults allow 100 of our own, which are 10 % of 1000.
    check(
        Limits::default(),
        &[
            (900, 0, 1000, 0),
            (900, 40, 1000, 0),
            (900, 99, 1000, 0),
            (1800, 100, 1000, 0),
        ],
        &[100, 60, 4, 100],
    );
}

#[test]
fn a_program_that_faults_no_more_is_looked_at_all_the_same() {
    check(
        Limits::default(),
        &[(0, 0, 1000, 0), (0, 4, 1000, 0), (0, 8, 1000, 0)],
        &[4, 4, 4],
    );
}

#[test]
fn the_budget_is_hard() {
    let limits = Limits {
        budget: 1.0,
        most: 1_000_000,
        ..Limits::default()
    };
    check(
        limits,
        &[
            // The target has not run: nothing may be spent.
            (1_000_000, 0, 0, 0),
            // 1 % of 10 ms is 100 us, which buys 100 pages.
            (1_000_000, 0, 10, 0),
            // They cost 250 us, 150 too much; the next 10 ms leave 50 to be made up for.
            (1_000_000, 100, 10, 250),
            (1_000_000, 100, 20, 250),
            (1_000_000, 100, 30, 250),
        ],
        &[0, 100, 0, 0, 50],
    );
}

#[test]
fn a_long_rest_buys_no_burst() {
    let limits = Limits {
        most: 1_000_000,
        ..Limits::default()
    };
    // 2 % of a second are 20 ms, however long the target ran.
    check(limits, &[(1 << 40, 0, 60_000, 0)], &[20_000]);
    check(Limits::default(), &[(1 << 40, 0, 60_000, 0)], &[1024]);
}
