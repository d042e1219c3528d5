use super::super::fault_rate::{ControllerInput, FaultRateController, SamplingLimits, REST, TICK};
use hither_profile::Nanos;

const MS: Nanos = 1_000_000;

/// What is wanted after each input (natural, extra, target's ms, spent us), at 1 us a page.
#[track_caller]
fn check(limits: SamplingLimits, inputs: &[(u64, u64, u64, u64)], expected: &[u32]) {
    let mut controller = FaultRateController::new(limits);
    let mut at = 0;
    let got: Vec<u32> = inputs
        .iter()
        .map(|&(natural, extra, target, spent)| {
            at += TICK;
            let input = ControllerInput {
                at,
                threads: 4,
                units: 4,
                waiting: None,
                natural,
                extra,
                events: 0,
                target: target * MS,
                spent: spent * 1000,
            };
            controller.pages_to_take(input, 1000)
        })
        .collect();
    assert_eq!(got, expected);
}

#[test]
fn extra_faults_are_a_share_of_all() {
    // 900 natural faults allow 100 of our own, which are 10 % of 1000.
    check(
        SamplingLimits::default(),
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
        SamplingLimits::default(),
        &[(0, 0, 1000, 0), (0, 4, 1000, 0), (0, 8, 1000, 0)],
        &[4, 4, 4],
    );
}

#[test]
fn the_budget_is_hard() {
    let limits = SamplingLimits {
        budget: 1.0,
        most: 1_000_000,
        ..SamplingLimits::default()
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
    let limits = SamplingLimits {
        most: 1_000_000,
        ..SamplingLimits::default()
    };
    // 2 % of a second are 20 ms, however long the target ran.
    check(limits, &[(1 << 40, 0, 60_000, 0)], &[20_000]);
    check(
        SamplingLimits::default(),
        &[(1 << 40, 0, 60_000, 0)],
        &[1024],
    );
}

#[test]
fn many_threads_want_more_pages() {
    let check = |threads: usize, ticks: u64, expected: u32| {
        let mut controller = FaultRateController::new(SamplingLimits::default());
        let input = ControllerInput {
            at: ticks * TICK,
            threads,
            target: 1000 * MS,
            ..ControllerInput::default()
        };
        assert_eq!(controller.pages_to_take(input, 1000), expected, "{threads}");
    };
    check(1, 1, 4);
    check(8, 1, 4);
    check(16, 1, 8);
    check(64, 1, 32);
    check(100_000, 1, 128);
    // After a longer time those of the whole time, but not of a very long one.
    check(16, 5, 40);
    check(16, 5000, 160);
}

/// After (caused faults, events from them).
#[test]
fn a_thread_that_stands_still_stops_the_others_unless_there_are_more() {
    let price = |threads: usize, running: u64, waiting: Option<f64>| {
        let mut controller = FaultRateController::new(SamplingLimits::default());
        for tick in 1..100 {
            let input = ControllerInput {
                at: tick * TICK,
                threads,
                units: 16,
                waiting,
                target: tick * TICK * running,
                ..ControllerInput::default()
            };
            controller.pages_to_take(input, 1000);
        }
        controller.price(1000, 3000)
    };
    assert_eq!(price(16, 16, None), 47_999);
    assert_eq!(price(16, 0, None), 3000);
    // Fewer of them run than could.
    assert_eq!(price(32, 8, None), 23_999);
    assert_eq!(price(32, 16, None), 1000);
    // A pool that sleeps takes nobody's place; of a program that has half of the machine for itself
    // threads wait.
    assert_eq!(price(32, 16, Some(0.0)), 47_999);
    assert_eq!(price(32, 8, Some(3.0)), 1000);
    assert_eq!(price(32, 8, Some(0.5)), 12_499);
}

#[test]
fn where_few_faults_tell_more_pages_are_taken() {
    let check = |extra: u64, events: u64, expected: u32| {
        let mut controller = FaultRateController::new(SamplingLimits::default());
        let input = ControllerInput {
            at: TICK,
            threads: 8,
            extra,
            events,
            target: 1000 * MS,
            ..ControllerInput::default()
        };
        assert_eq!(controller.pages_to_take(input, 1000), expected, "{extra}");
    };
    check(255, 0, 4);
    check(300, 50, 12);
    check(300, 300, 4);
    check(300, 25, 24);
    check(300, 0, 32);
    // What is known is forgotten in favour of what is new.
    let mut controller = FaultRateController::new(SamplingLimits::default());
    let mut last = 0;
    for step in 1..20 {
        let input = ControllerInput {
            at: step * TICK,
            threads: 8,
            extra: 512 * step,
            events: 256 * step.saturating_sub(10),
            target: 1000 * MS * step,
            ..ControllerInput::default()
        };
        last = controller.pages_to_take(input, 1000);
        assert!(step > 10 || last == 32, "{step}: {last}");
    }
    assert_eq!(last, 4);
}

#[test]
fn who_has_spent_too_much_waits_until_it_is_made_up_for() {
    let limits = SamplingLimits {
        budget: 1.0,
        ..SamplingLimits::default()
    };
    let mut controller = FaultRateController::new(limits);
    let mut check = |ms: u64, spent_us: u64, expected: Nanos| {
        let input = ControllerInput {
            at: ms * MS,
            threads: 4,
            target: 2 * ms * MS,
            spent: spent_us * 1000,
            ..ControllerInput::default()
        };
        controller.pages_to_take(input, 1000);
        let wait = controller.next_wait();
        assert!(wait.abs_diff(expected) < MS, "{wait}");
    };
    // Two processors at 1 % bring 20 us a millisecond; the estimate of that is there after
    // some time.
    for step in 1..40 {
        check(10 * step, 200 * step, TICK);
    }
    // 1 ms too much, which was 1.2 ms at once; so one costs 450 us now: 1450 us take 72.5 ms.
    check(400, 9000, 72_500_000);
    check(473, 9000, TICK);
    // Never longer than that, whatever was spent.
    check(460, 900_000, REST);
}

/// Pages that are taken use up the budget, so that looks are far apart; threads that live shortly would be put
/// in their places too late.
#[test]
fn who_takes_over_a_role_is_looked_for_often_within_the_budget() {
    let run = |returning: bool| {
        let mut controller = FaultRateController::new(SamplingLimits::default());
        let (mut now, mut looks) = (ControllerInput::default(), 0);
        while now.at < 20_000 * MS {
            if returning && now.at > 0 {
                controller.roles_returned();
            }
            let pages = controller.pages_to_take(now, 300_000);
            let wait = controller.next_wait();
            now.at += wait;
            // It has half a processor.
            now.target += wait / 2;
            now.spent += 100_000 + u64::from(pages) * 300_000;
            now.extra += u64::from(pages);
            now.threads = 4;
            looks += 1;
        }
        (looks, 100.0 * now.spent as f64 / now.target as f64)
    };
    let (looks, cost) = run(false);
    assert!(looks < 200 && cost < 2.3, "{looks}, {cost} %");
    let (looks, cost) = run(true);
    assert!(looks > 800 && cost < 2.3, "{looks}, {cost} %");
}

/// What few records took is the price of waking up: it must not make many look dear.
#[test]
fn what_a_record_takes_is_known_from_many_at_a_time() {
    let kept = |looks: &[(u64, Nanos)]| {
        let mut controller = FaultRateController::new(SamplingLimits::default());
        for &(records, took) in looks {
            controller.looked_at(records, took);
        }
        // A second's budget is 20 ms.
        (1e5 * controller.share_of_records(100_000, 1 << 20)).round()
    };
    assert_eq!(kept(&[]), 10_000.0);
    assert_eq!(kept(&[(1, MS), (100, 100 * MS)]), 10_000.0);
    assert_eq!(kept(&[(1, MS), (10_000, 8 * MS)]), 25_000.0);
    // No machine makes it free, or takes all of the budget.
    assert_eq!(kept(&[(10_000, 0)]), 66_667.0);
    assert_eq!(kept(&[(1000, 1000 * MS)]), 4000.0);
}

/// Memory that is given back and taken again faults for ever: what that costs leaves half of the budget
/// for pages that are taken.
#[test]
fn faults_that_tell_nothing_new_have_half_of_the_budget() {
    let mut controller = FaultRateController::new(SamplingLimits::default());
    let kept = |controller: &FaultRateController| {
        (1e5 * controller.share_of_records(100_000, 1 << 20)).round()
    };
    let run = |controller: &mut FaultRateController, target: Nanos| {
        let input = ControllerInput {
            at: target,
            target,
            ..ControllerInput::default()
        };
        controller.pages_to_take(input, 1000);
    };
    // What a second's budget pays for may be spent beforehand, and another one was kept.
    controller.repeats_cost(20 * MS);
    assert_eq!(kept(&controller), 10_000.0);
    controller.repeats_cost(10 * MS);
    assert_eq!(kept(&controller), 5000.0);
    controller.repeats_cost(10 * MS);
    assert_eq!(kept(&controller), 1563.0);
    // In a second 20 ms may be spent: 10 on such faults.
    run(&mut controller, 1000 * MS);
    assert_eq!(kept(&controller), 5000.0);
    run(&mut controller, 2000 * MS);
    assert_eq!(kept(&controller), 10_000.0);
}
