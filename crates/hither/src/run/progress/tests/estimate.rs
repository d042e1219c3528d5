use crate::run::progress::sync_estimate::SyncEstimate;

const MS: u64 = 1_000_000;

/// Four threads that pass a barrier per millisecond, each; a call costs 100 us: a tenth of
/// the time, ten times what it may.
fn costly() -> SyncEstimate {
    let mut estimate = SyncEstimate::new(4);
    estimate.cost = 100_000;
    estimate
}

fn barriers(n: u64) -> [Option<u64>; 4] {
    [Some(n), None, None, None]
}

#[test]
fn what_costs_little_is_counted_all_the_time() {
    let mut estimate = SyncEstimate::new(4);
    estimate.cost = 1_000;
    for at in 1..2_000 {
        let counts = barriers(4 * at);
        assert_eq!(estimate.estimate_passed(at * MS, &counts), counts);
    }
    assert!(estimate.is_on() && !estimate.has_paused());
}

#[test]
fn while_counting_pauses_points_come_as_fast_as_before() {
    let mut estimate = costly();
    estimate.estimate_passed(MS, &barriers(0));
    assert_eq!(
        estimate.estimate_passed(101 * MS, &barriers(400)),
        barriers(400)
    );
    assert!(!estimate.is_on() && estimate.has_paused());
    assert_eq!(
        estimate.estimate_passed(201 * MS, &barriers(400)),
        barriers(800)
    );
    // 100 calls of each thread cost 10 ms: half a per cent of two seconds.
    estimate.estimate_passed(1_999 * MS, &barriers(400));
    assert!(!estimate.is_on());
    assert_eq!(
        estimate.estimate_passed(2_001 * MS, &barriers(400)),
        barriers(8_000)
    );
    assert!(estimate.is_on());
    // Now they come half as fast.
    assert_eq!(
        estimate.estimate_passed(2_101 * MS, &barriers(600)),
        barriers(8_200)
    );
}

/// The time before the first barrier says nothing about how fast they come.
#[test]
fn a_late_start_does_not_slow_the_estimate_down() {
    let mut estimate = costly();
    for at in [500, 1_000, 1_500] {
        assert_eq!(estimate.estimate_passed(at * MS, &barriers(0)), barriers(0));
    }
    assert_eq!(
        estimate.estimate_passed(1_700 * MS, &barriers(800)),
        barriers(800)
    );
    assert!(!estimate.is_on());
    assert_eq!(
        estimate.estimate_passed(1_800 * MS, &barriers(800)),
        barriers(1_200)
    );
}
