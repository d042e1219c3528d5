use super::close;
use crate::metrics::communication::CommunicationMetrics;
use crate::metrics::evidence::{
    insufficient_evidence, repeatability, InsufficientEvidence, SharingEvidence,
};
use crate::metrics::verdict::{mapping_verdict, VerdictInput};
use crate::metrics::{MetricsReport, MetricsSetup, PageSize};
use hither_profile::*;

/// Slices of 10 ms in which these pairs communicate: `pairs(slice)`, with events. Four threads on a
/// machine of as many processing units as given.
fn run(slices: u32, units: u32, pairs: impl Fn(u32) -> Vec<(u32, u32, u64)>) -> Profile {
    let mut profile = Profile {
        threads: vec![
            Thread {
                instructions: 1000,
                reads: 1000,
                ..Thread::default()
            };
            4
        ],
        ..Profile::default()
    };
    profile.meta.machine.processing_units = units;
    profile.meta.duration = u64::from(slices) * 10_000_000;
    for s in 0..slices {
        profile.slices.push(Slice {
            start: u64::from(s) * 10_000_000,
            length: 10_000_000,
            traced: true,
            ..Slice::default()
        });
        profile
            .comm
            .extend(pairs(s).into_iter().map(|(i, j, events)| PairComm {
                slice: SliceIx(s),
                i: ThreadIx(i),
                j: ThreadIx(j),
                events,
                ..PairComm::default()
            }));
    }
    profile
}

fn insufficiency_of(profile: &Profile) -> Option<InsufficientEvidence> {
    let matrix = profile.matrix().among(&profile.working_threads());
    insufficient_evidence(profile, &matrix, |pair| pair.events)
}

fn side_by_side(_: u32) -> Vec<(u32, u32, u64)> {
    vec![(0, 1, 100), (2, 3, 100)]
}

/// In even slices 0-1 and 2-3, in odd ones 0-2 and 1-3: of six pairs x = 1 1 0 0 0 0 and
/// y = 0 0 1 1 0 0, each with mean 1/3 and variance 2/9; r = (0 - 1/9) / (2/9) = -1/2.
#[test]
fn pairs_that_come_again_are_the_programs() {
    let changing = |s: u32| match s % 2 {
        0 => side_by_side(s),
        _ => vec![(0, 2, 100), (1, 3, 100)],
    };
    close(
        repeatability(&run(100, 2, changing), |pair| pair.events).unwrap(),
        -0.5,
    );
    close(
        repeatability(&run(100, 2, side_by_side), |pair| pair.events).unwrap(),
        1.0,
    );
    assert_eq!(
        repeatability(&run(9, 2, side_by_side), |pair| pair.events),
        None
    );
    // It matters only where threads take turns.
    let crowded = insufficiency_of(&run(100, 2, changing));
    assert!(
        matches!(
            crowded,
            Some(InsufficientEvidence::Unrepeated { units: Some(2), .. })
        ),
        "{crowded:?}"
    );
    assert_eq!(insufficiency_of(&run(100, 2, side_by_side)), None);
    assert_eq!(insufficiency_of(&run(100, 4, changing)), None);
}

/// In the first slice, with 300 times the events of another, all take over what thread 0 made. Weighted by
/// events it would be all that is seen: r = 0.04.
#[test]
fn a_slice_that_is_like_no_other_does_not_decide() {
    let beginning = |s: u32| match s {
        0 => vec![(0, 1, 20_000), (0, 2, 20_000), (0, 3, 20_000)],
        _ => side_by_side(s),
    };
    let r = repeatability(&run(20, 2, beginning), |pair| pair.events).unwrap();
    assert!((0.55..0.65).contains(&r), "{r}");
}

#[test]
fn too_short_a_run_and_too_few_events_do_not_suffice() {
    let short = insufficiency_of(&run(9, 4, side_by_side));
    assert_eq!(
        short,
        Some(InsufficientEvidence::TooShort { seconds: 0.09 })
    );
    let few = |s: u32| if s < 39 { vec![(0, 1, 1)] } else { Vec::new() };
    let mut sampled = run(100, 4, few);
    assert!(!matches!(
        insufficiency_of(&sampled),
        Some(InsufficientEvidence::TooFewEvents { .. })
    ));
    sampled.meta.options.sample = Some(0.5);
    let wanted = InsufficientEvidence::TooFewEvents {
        events: 39,
        needed: 40,
    };
    assert_eq!(insufficiency_of(&sampled), Some(wanted));
    // Half of the slices were skipped: their events are those of the others.
    let mut scaled = run(100, 4, |s| vec![(0, 1, u64::from(s < 78))]);
    scaled.meta.options.sample = Some(0.5);
    scaled
        .slices
        .iter_mut()
        .step_by(2)
        .for_each(|s| s.traced = false);
    assert_eq!(insufficiency_of(&scaled), Some(wanted));
}

/// Pairs that share alike, 20 events each but for chance: the largest has 24. Chance gives
/// 20 x (100 / 24)^2 = 347, more than the 185 of rows 66.7 83.3 100.
#[test]
fn a_heterogeneity_that_chance_gives_does_not_suffice() {
    let cells = [16, 20, 24, 24, 20, 16];
    let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let once = |s: u32| match s {
        0 => pairs
            .iter()
            .zip(cells)
            .map(|(&(i, j), n)| (i, j, n))
            .collect(),
        _ => Vec::new(),
    };
    let Some(InsufficientEvidence::Chance { heterogeneity }) = insufficiency_of(&run(100, 4, once))
    else {
        panic!("enough evidence");
    };
    close(heterogeneity, 20.0 * (100.0f64 / 24.0).powi(2));
}

#[test]
fn what_cannot_be_told_is_neither_yes_nor_no() {
    let verdict = |events, heterogeneity, insufficient| {
        let v = mapping_verdict(&VerdictInput {
            threads: 4,
            sharing: SharingEvidence {
                communication: CommunicationMetrics {
                    events,
                    heterogeneity,
                    heterogeneity_pairs: heterogeneity,
                    heterogeneity_residual: heterogeneity,
                    amount_per_second: 1e6,
                    ..CommunicationMetrics::default()
                },
                insufficient,
                ..SharingEvidence::default()
            },
            ..VerdictInput::default()
        });
        assert!(!(v.thread_mapping && v.threads_undecided));
        (v.thread_mapping, v.threads_undecided)
    };
    let pairs = Some(InsufficientEvidence::Unrepeated {
        correlation: 0.1,
        units: Some(2),
    });
    assert_eq!(verdict(1000, 900.0, None), (true, false));
    assert_eq!(verdict(1000, 900.0, pairs), (false, true));
    // All share alike, whoever runs with whom.
    assert_eq!(verdict(1000, 50.0, pairs), (false, false));
    let short = Some(InsufficientEvidence::TooShort { seconds: 0.01 });
    assert_eq!(verdict(0, 0.0, short), (false, true));
}

/// Pairs change between two halves: in the sum, all six pairs or four of them share alike, but in
/// either phase two do. A phase with little of the communication decides nothing.
#[test]
fn each_phase_is_asked() {
    let phase = |events, heterogeneity_pairs| CommunicationMetrics {
        events,
        heterogeneity: 1000.0,
        heterogeneity_pairs,
        heterogeneity_residual: heterogeneity_pairs,
        amount_per_second: 1e6,
        ..CommunicationMetrics::default()
    };
    let suits = |phases: &[CommunicationMetrics]| {
        let v = mapping_verdict(&VerdictInput {
            threads: 4,
            sharing: SharingEvidence {
                communication: phase(2000, 50.0),
                phases,
                ..SharingEvidence::default()
            },
            ..VerdictInput::default()
        });
        (v.thread_mapping, v.reasons[0].clone())
    };
    let (yes, why) = suits(&[phase(1000, 2222.0), phase(1000, 2222.0)]);
    assert!(
        yes && why.contains("2 of 2 phases, with 100 % of the events"),
        "{why}"
    );
    let (yes, why) = suits(&[phase(50, 2222.0), phase(1950, 50.0)]);
    assert!(
        !yes && why.contains("1 of 2 phases, with 2 % of the events"),
        "{why}"
    );
    assert!(!suits(&[phase(50, 20.0), phase(1950, 50.0)]).0);
    assert!(!suits(&[phase(2000, 50.0)]).0);
}

/// A launcher that does nothing is no part of T.
#[test]
fn threads_that_do_not_work_do_not_dilute() {
    let metrics = |profile: &Profile| {
        let setup = MetricsSetup {
            nodes: 2,
            nodes_from: String::new(),
            cache_bytes: 0,
            page_size: PageSize::K4,
        };
        let report = MetricsReport::from_profile(profile, setup);
        (
            report.run.active_threads,
            report.communication,
            report.load_balance,
        )
    };
    let profile = run(100, 4, side_by_side);
    let mut with_launcher = profile.clone();
    with_launcher.threads.push(Thread::default());
    assert_eq!(metrics(&with_launcher), metrics(&profile));
}

/// All events, and those that find a line changed, each with its heterogeneity between pairs, its rate and
/// whether pairs come again: yes, no or cannot tell, and what the reason says.
#[test]
fn both_kinds_of_events_are_asked() {
    let seen = |(heterogeneity_pairs, amount_per_second, comes_again)| SharingEvidence {
        communication: CommunicationMetrics {
            events: 1000,
            heterogeneity: 1000.0,
            heterogeneity_pairs,
            heterogeneity_residual: heterogeneity_pairs,
            amount_per_second,
            ..CommunicationMetrics::default()
        },
        comes_again,
        ..SharingEvidence::default()
    };
    let check = |all, coherence, [footprint, cache_bytes]: [u64; 2], expected: &str, why: &str| {
        let v = mapping_verdict(&VerdictInput {
            threads: 8,
            sharing: seen(all),
            coherence: Some(seen(coherence)),
            footprint,
            cache_bytes,
            ..VerdictInput::default()
        });
        let got = match (v.thread_mapping, v.threads_undecided) {
            (true, false) => "yes",
            (false, true) => "cannot tell",
            (suits, _) => ["no", "both"][usize::from(suits)],
        };
        assert!(got == expected && v.reasons[0].contains(why), "{v:?}");
    };
    let (often, seldom, small, large) = (1e6, 10.0, [1, 2], [2, 1]);
    check(
        (900.0, often, false),
        (500.0, often, false),
        small,
        "yes",
        "coherence misses, C_H residual 500",
    );
    check(
        (20.0, often, true),
        (8.0, often, true),
        small,
        "no",
        "all share alike",
    );
    // They spin on flags, or read the same tables, beside what they exchange; and the other way round.
    check(
        (20.0, often, false),
        (900.0, often, true),
        small,
        "yes",
        "hides them (C_H residual 20 of all)",
    );
    check(
        (250.0, often, true),
        (30.0, often, true),
        large,
        "yes",
        "250 between pairs, threshold 100",
    );
    check(
        (250.0, often, true),
        (30.0, often, true),
        small,
        "no",
        "what one writes all read alike (C_H residual 30 of the coherence events)",
    );
    // One or two slices.
    check(
        (20.0, often, false),
        (900.0, often, false),
        small,
        "cannot tell",
        "trace a longer run",
    );
    check(
        (160.0, often, false),
        (8.0, often, false),
        large,
        "yes",
        "160 between pairs",
    );
    // What is only read costs the space of copies.
    check(
        (900.0, often, true),
        (900.0, seldom, true),
        small,
        "no",
        "room for a copy of the rest each",
    );
    check(
        (900.0, often, true),
        (900.0, seldom, true),
        large,
        "yes",
        "replication",
    );
    check(
        (20.0, often, true),
        (900.0, seldom, true),
        large,
        "no",
        "all share alike",
    );
}

/// GROMACS: what two ranks exchange in one phase tells them apart, over the whole run it does not.
#[test]
fn a_reason_shows_the_figures_that_decided() {
    let events = |residual| CommunicationMetrics {
        events: 1000,
        heterogeneity: 1000.0,
        heterogeneity_pairs: 900.0,
        heterogeneity_residual: residual,
        amount_per_second: 1e6,
        ..CommunicationMetrics::default()
    };
    let chance = InsufficientEvidence::Chance {
        heterogeneity: 30.0,
    };
    let reason = |all: &[CommunicationMetrics], writes: &[CommunicationMetrics], few| {
        let seen = |phases, insufficient| SharingEvidence {
            communication: events(12.0),
            phases,
            insufficient,
            comes_again: true,
        };
        let verdict = mapping_verdict(&VerdictInput {
            threads: 8,
            sharing: seen(all, None),
            coherence: Some(seen(writes, few)),
            footprint: 2,
            cache_bytes: 1,
            ..VerdictInput::default()
        });
        assert!(verdict.thread_mapping, "{verdict:?}");
        verdict.reasons[0].clone()
    };
    let (apart, alike) = ([events(700.0); 2], [events(30.0); 2]);
    let why = reason(&apart, &apart, None);
    assert!(
        why.contains("(coherence misses, C_H residual 700 in that phase)"),
        "{why}"
    );
    let why = reason(&alike, &apart, None);
    assert!(why.contains("hides them (C_H residual 30 of all)"), "{why}");
    let why = reason(&apart, &alike, None);
    assert!(
        why.contains("read alike (C_H residual 30 of the coherence events)"),
        "{why}"
    );
    let why = reason(&apart, &apart, Some(chance));
    assert!(
        why.contains("(coherence misses, which pairs have them cannot be told)"),
        "{why}"
    );
    for why in [
        reason(&apart, &apart, None),
        reason(&apart, &apart, Some(chance)),
    ] {
        assert!(!why.contains("residual 12"), "{why}");
    }
}

/// The figure that is below the threshold is the one that is named first.
#[test]
fn what_is_alike_is_said_with_the_figure_that_is_low() {
    let reason = |heterogeneity, heterogeneity_pairs| {
        let v = mapping_verdict(&VerdictInput {
            threads: 8,
            sharing: SharingEvidence {
                communication: CommunicationMetrics {
                    events: 1000,
                    heterogeneity,
                    heterogeneity_pairs,
                    heterogeneity_residual: 300.0,
                    amount_per_second: 1e6,
                    ..CommunicationMetrics::default()
                },
                ..SharingEvidence::default()
            },
            ..VerdictInput::default()
        });
        v.reasons[0].clone()
    };
    let (of_pairs, of_all) = (reason(1000.0, 20.0), reason(90.0, 120.0));
    assert!(
        of_pairs.contains("heterogeneity 20 between pairs (C_H 1000; threshold 100)"),
        "{of_pairs}"
    );
    assert!(
        of_all.contains("heterogeneity C_H 90 (120 between pairs; threshold 100)"),
        "{of_all}"
    );
}
