//! How much of the threads' time fetches can take decides, too.
use crate::metrics::communication::CommunicationMetrics;
use crate::metrics::evidence::SharingEvidence;
use crate::metrics::memory_traffic::{PageTraffic, TrafficAccuracy};
use crate::metrics::verdict::{mapping_verdict, FetchCounts, MappingVerdict, VerdictInput};
use hither_profile::TrafficUnit;

const PAIRS: f64 = 900.0;

fn seen(events: u64) -> SharingEvidence<'static> {
    SharingEvidence {
        communication: CommunicationMetrics {
            events,
            heterogeneity: PAIRS,
            heterogeneity_pairs: PAIRS,
            heterogeneity_residual: PAIRS,
            amount_per_second: 1e6,
            ..CommunicationMetrics::default()
        },
        comes_again: true,
        ..SharingEvidence::default()
    }
}

/// Eight threads that execute a million instructions, with so many coherence events and fetches.
fn program(coherence: u64, all: u64, shared: u64) -> VerdictInput<'static> {
    VerdictInput {
        threads: 8,
        sharing: seen(100_000),
        coherence: Some(seen(coherence)),
        instructions: 1_000_000,
        fetches: Some(FetchCounts { all, shared }),
        footprint: 2 << 20,
        pages: 512,
        nodes: 4,
        cache_bytes: 1 << 20,
        ..VerdictInput::default()
    }
}

fn said(v: &MappingVerdict, why: &str) {
    assert!(v.reasons.iter().any(|r| r.contains(why)), "{v:?}");
}

/// 300 instructions for each far fetch: 33 of them take 1 % of a million.
#[test]
fn what_takes_no_time_is_not_worth_placing() {
    let v = mapping_verdict(&program(34, 10_000, 10_000));
    assert!(v.thread_mapping);
    said(&v, "at most about 1.0 % of their time");
    assert_eq!(
        v.sentence_with_time(),
        "suitable for thread mapping, not for data mapping; what threads change for one another is at most \
         about 1.0 % of their time"
    );
    let v = mapping_verdict(&program(32, 10_000, 32));
    assert!(!v.thread_mapping && !v.threads_undecided);
    said(
        &v,
        "they fetch few lines, at most about 0.96 % of their time",
    );
    assert!(!v.may_gain());
    // They bring in again what all of them read: fewer copies are worth it.
    let v = mapping_verdict(&program(32, 10_000, 34));
    assert!(v.thread_mapping);
    said(&v, "fewer copies (replication)");
}

/// Where no pair is worth being close, all of them may be: if a tenth of the fetches is of what others use or change, and
/// takes time.
#[test]
fn whether_all_are_faster_close_together_is_undecided_where_they_share_much() {
    let alike = |events| SharingEvidence {
        communication: CommunicationMetrics {
            heterogeneity_pairs: 0.0,
            heterogeneity_residual: 0.0,
            ..seen(events).communication
        },
        ..seen(events)
    };
    let undecided = |coherence, all, shared, rate| {
        let mut sharing = alike(100_000);
        sharing.communication.amount_per_second = rate;
        let v = mapping_verdict(&VerdictInput {
            sharing,
            coherence: Some(alike(coherence)),
            ..program(coherence, all, shared)
        });
        assert!(!v.thread_mapping, "{v:?}");
        v.closeness_undecided
    };
    assert!(undecided(0, 10_000, 1000, 1e6));
    assert!(!undecided(0, 10_000, 999, 1e6), "too small a part");
    assert!(undecided(500, 9500, 500, 1e6));
    assert!(!undecided(0, 32, 32, 1e6), "less than 1 % of the time");
    assert!(undecided(2, 32, 32, 1e6));
    assert!(!undecided(0, 10_000, 1000, 149.0), "too seldom");
    assert!(!mapping_verdict(&program(34, 10_000, 10_000)).closeness_undecided);
}

/// The largest part is said up to one half.
#[test]
fn most_of_the_time_has_no_figure() {
    let v = mapping_verdict(&program(2_000, 10_000, 10_000));
    said(&v, "which may be most of their time");
    assert_eq!(v.sentence_with_time(), v.sentence);
}

/// A thread that waits for another one's turn executes as much as it likes.
#[test]
fn instructions_of_threads_that_spin_tell_nothing() {
    let taking_turns = |all, take_turns| {
        mapping_verdict(&VerdictInput {
            take_turns,
            ..program(32, all, 32)
        })
    };
    assert!(!taking_turns(330, false).thread_mapping);
    assert!(!taking_turns(330, true).thread_mapping);
    let v = taking_turns(310, true);
    assert!(v.thread_mapping, "{v:?}");
    assert_eq!(v.coherence_time, None);
}

#[test]
fn pages_that_are_hardly_fetched_may_lie_anywhere() {
    let fetched = |all| {
        mapping_verdict(&VerdictInput {
            page_traffic: Some(PageTraffic {
                best: 0.9,
                worst: 0.9,
                by_work: 0.0,
                lasting: 0.9,
                first_touch: Some(TrafficAccuracy {
                    app: 0.4,
                    local: 0.4,
                    remote: 0.6,
                }),
            }),
            traffic: TrafficUnit::Fetches,
            ..program(0, all, 0)
        })
    };
    // Half of them become near.
    assert!(fetched(68).data_mapping);
    let v = fetched(64);
    assert!(!v.data_mapping);
    said(&v, "at most about 0.96 % of the threads' time");
}
