use crate::metrics::communication::{CommunicationMetrics, UpperTriangle};
use crate::metrics::evidence::SharingEvidence;
use crate::metrics::exclusivity::ExclusivityMetrics;
use crate::metrics::figures::verdict_figures;
use crate::metrics::memory_traffic::{PageTraffic, TrafficAccuracy};
use crate::metrics::metrics_report::PageReport;
use crate::metrics::placement_accuracy::{PageMigrationTimeline, PlacementAccuracy};
use crate::metrics::sharing::CoherenceMetrics;
use crate::metrics::structures::hot_lines;
use crate::metrics::thresholds::h_min;
use crate::metrics::verdict::{mapping_verdict, VerdictInput};
use crate::metrics::{MetricsReport, MetricsSetup, PageSize};
use hither_profile::*;

/// Threads, C_H, C_H between pairs, C_A/s, footprint, caches, E_app, Acc_app.
type Case = (usize, f64, f64, f64, u64, u64, f64, f64);

fn seen(communication: CommunicationMetrics) -> SharingEvidence<'static> {
    SharingEvidence {
        communication,
        ..SharingEvidence::default()
    }
}

fn judge(case: Case) -> (bool, bool, String) {
    let (threads, heterogeneity, heterogeneity_pairs, rate, footprint, cache_bytes, e, a) = case;
    let v = mapping_verdict(&VerdictInput {
        threads,
        sharing: seen(CommunicationMetrics {
            events: u64::from(rate > 0.0),
            heterogeneity,
            heterogeneity_pairs,
            heterogeneity_residual: heterogeneity_pairs,
            amount_per_second: rate,
            ..CommunicationMetrics::default()
        }),
        footprint,
        pages: 1000,
        nodes: 4,
        cache_bytes,
        page_traffic: Some(PageTraffic {
            best: e,
            worst: e,
            by_work: 0.0,
            lasting: e,
            first_touch: Some(TrafficAccuracy {
                app: a,
                local: 0.0,
                remote: 1.0,
            }),
        }),
        traffic: TrafficUnit::Accesses,
        ..VerdictInput::default()
    });
    (v.thread_mapping, v.data_mapping, v.sentence)
}

const BIG: u64 = 1 << 30;

fn check(case: Case, threads: bool, data: bool, part: &str) {
    let (t, d, sentence) = judge(case);
    assert_eq!((t, d), (threads, data), "{case:?}: {sentence}");
    assert!(sentence.contains(part), "{sentence}");
}

#[test]
fn threads_are_judged_by_heterogeneity_and_amount() {
    let both = "thread mapping and data mapping";
    let data = "data mapping, not for thread mapping";
    check(
        (64, 400.0, 400.0, 900.0, BIG, 1, 0.9, 0.2),
        true,
        true,
        both,
    );
    check(
        (64, 400.0, 400.0, 149.0, BIG, 1, 0.9, 0.2),
        false,
        true,
        data,
    );
    check((64, 99.0, 99.0, 900.0, BIG, 1, 0.9, 0.2), false, true, data);
    // All threads share alike: C_H is above H_min only because of the diagonal.
    check((64, 153.0, 0.0, 900.0, BIG, 1, 0.9, 0.2), false, true, data);
    // One pair.
    check((2, 2500.0, 0.0, 900.0, BIG, 1, 0.9, 0.2), false, true, data);
    let one = "one thread: nothing to place but data";
    check((1, 0.0, 0.0, 0.0, BIG, 1, 1.0, 0.2), false, true, one);
    check(
        (0, 0.0, 0.0, 0.0, 0, 1, 0.0, 0.0),
        false,
        false,
        "no memory access",
    );
}

#[test]
fn data_is_judged_by_size_exclusivity_and_first_touch() {
    let threads = "suitable for thread mapping, not for data mapping";
    let both = "thread mapping and data mapping";
    // Equation 7: it must be more than the caches; 0 is unknown.
    check(
        (64, 400.0, 400.0, 900.0, 100, 100, 0.9, 0.2),
        true,
        false,
        threads,
    );
    check(
        (64, 400.0, 400.0, 900.0, 101, 100, 0.9, 0.2),
        true,
        true,
        both,
    );
    check((64, 400.0, 400.0, 900.0, 1, 0, 0.9, 0.2), true, true, both);
    check(
        (64, 0.0, 0.0, 900.0, BIG, 1, 0.5, 0.2),
        false,
        false,
        "neither",
    );
    // Nobody's pages are nobody's gain, and no merit of first touch.
    let neither = "suitable for neither thread mapping nor data mapping";
    check(
        (64, 0.0, 0.0, 0.0, BIG, 1, 0.6, 0.95),
        false,
        false,
        neither,
    );
    let right = "nothing to gain, first touch is already right";
    check((64, 0.0, 0.0, 0.0, BIG, 1, 0.9, 0.95), false, false, right);
    check(
        (64, 400.0, 400.0, 900.0, BIG, 1, 0.9, 0.95),
        true,
        false,
        right,
    );
}

/// E_app 0.75: what first touch makes local must be 5 points less for data to be worth placing.
#[test]
fn data_is_worth_placing_if_that_makes_accesses_local() {
    let suits = |local| {
        let pages = PageTraffic {
            best: 0.75,
            worst: 0.0,
            by_work: 0.0,
            lasting: 0.75,
            first_touch: Some(TrafficAccuracy {
                app: 0.5,
                local,
                remote: 1.0 - local,
            }),
        };
        mapping_verdict(&VerdictInput {
            threads: 4,
            footprint: BIG,
            pages: 1000,
            nodes: 4,
            page_traffic: Some(pages),
            ..VerdictInput::default()
        })
        .data_mapping
    };
    assert!(suits(0.69));
    assert!(!suits(0.71));
}

/// Each page's first fault is by its first toucher, so that first touch seems right where no other was seen.
#[test]
fn first_faults_do_not_say_that_first_touch_is_right() {
    let verdict = |accesses_again, app| {
        mapping_verdict(&VerdictInput {
            threads: 4,
            footprint: BIG,
            pages: 1000,
            nodes: 4,
            page_traffic: Some(PageTraffic {
                best: 1.0,
                worst: 1.0,
                by_work: 0.0,
                lasting: 1.0,
                first_touch: Some(TrafficAccuracy {
                    app,
                    local: app,
                    remote: 1.0 - app,
                }),
            }),
            online: true,
            accesses_again,
            ..VerdictInput::default()
        })
    };
    let unknown = verdict(999, 1.0);
    assert!(unknown.data_undecided && !unknown.data_mapping);
    assert!(unknown
        .sentence
        .ends_with("whether for data mapping, this profile cannot tell"));
    assert!(unknown.reasons[1].contains("cannot tell"), "{unknown:?}");
    let right = verdict(1000, 1.0);
    assert!(!right.data_undecided && right.sentence.contains("first touch is already right"));
    // Faults of others on pages that one thread touched first are enough however few they are.
    let wrong = verdict(999, 0.5);
    assert!(wrong.data_mapping && !wrong.data_undecided);
}

#[test]
fn too_little_to_place_is_said() {
    let check = |pages, nodes, part: &str| {
        let v = mapping_verdict(&VerdictInput {
            threads: 4,
            pages,
            nodes,
            page_traffic: Some(PageTraffic::default()),
            sampling_error: 0.034,
            ..VerdictInput::default()
        });
        assert!(!v.data_mapping && v.reasons[1].contains(part), "{v:?}");
        assert!(v.reasons[2].contains("3.4 %"), "{v:?}");
    };
    check(3, 4, "3 pages are too few to spread over 4 nodes");
    check(1000, 1, "every page is local");
}

#[test]
fn h_min_falls_with_more_threads_than_the_papers_had() {
    let got = [4, 64, 128, 1024].map(h_min);
    assert_eq!(got, [100.0, 100.0, 50.0, 6.25]);
    // Pairs among 1024 threads, 10^4 x 1023 / 1024^2 = 9.76, are still found suitable.
    assert!(10_000.0 * 1023.0 / (1024.0 * 1024.0) > h_min(1024));
}

#[test]
fn an_empty_profile_has_a_report() {
    let setup = MetricsSetup {
        nodes: 4,
        nodes_from: String::new(),
        cache_bytes: 0,
        page_size: PageSize::K4,
    };
    let report = MetricsReport::from_profile(&Profile::default(), setup);
    assert!(report.pages.is_none() && report.phases.is_empty());
    assert!(report.verdict.sentence.contains("no memory access"));
    serde_json::to_string(&report).unwrap();
}

#[test]
fn structures_come_by_the_larger_of_their_shares() {
    let object = |name: &str, reads, fetches| Object {
        name: name.to_owned(),
        reads,
        fetches,
        ..Object::default()
    };
    let order = |fetched| {
        let used = PageUse {
            reads: 1000,
            fetches: fetched,
            ..PageUse::default()
        };
        let mut profile = Profile {
            threads: vec![Thread {
                reads: 1000,
                ..Thread::default()
            }],
            regions: vec![Region::default()],
            objects: vec![
                object("stack", 700, 0),
                object("flag", 200, 0),
                object("grid", 100, fetched),
            ],
            pages: vec![used].into(),
            ..Profile::default()
        };
        profile.meta.options.cache = 1 << 20;
        let setup = MetricsSetup {
            nodes: 1,
            nodes_from: String::new(),
            cache_bytes: 0,
            page_size: PageSize::K4,
        };
        let report = MetricsReport::from_profile(&profile, setup);
        let names = report.structures.into_iter().map(|s| s.name);
        names.collect::<Vec<_>>()
    };
    assert_eq!(order(64_000), ["grid", "stack", "flag"]);
    // Of a single line that is followed nobody can say much.
    assert_eq!(order(64), ["stack", "flag", "grid"]);
}

/// Of two structures with half of the accesses each, samples know the lines of one, which has no more than half.
#[test]
fn lines_share_the_accesses_of_the_run() {
    let object = |reads| Object {
        reads,
        ..Object::default()
    };
    let profile = Profile {
        threads: vec![Thread {
            reads: 1000,
            ..Thread::default()
        }],
        objects: vec![object(500), object(500)],
        sites: vec![SourceSite {
            object: Some(ObjectIx(0)),
            line: 1,
            reads: 500,
            ..SourceSite::default()
        }],
        ..Profile::default()
    };
    assert_eq!(hot_lines(&profile)[0].share, 0.5);
}

#[test]
fn of_a_sample_no_rate_is_judged() {
    let judged = |events, amount_per_second, online| {
        let v = mapping_verdict(&VerdictInput {
            threads: 8,
            sharing: seen(CommunicationMetrics {
                events,
                heterogeneity: 900.0,
                heterogeneity_pairs: 900.0,
                heterogeneity_residual: 900.0,
                amount_per_second,
                ..CommunicationMetrics::default()
            }),
            online,
            ..VerdictInput::default()
        });
        (v.thread_mapping, v.reasons[0].clone())
    };
    assert!(!judged(1000, 2.0, false).0);
    let (suits, why) = judged(1000, 2.0, true);
    assert!(suits && why.contains("1000 sampled events"), "{why}");
}

#[test]
fn the_figures_that_decide_are_told_with_what_they_take() {
    let setup = MetricsSetup {
        nodes: 4,
        nodes_from: String::new(),
        cache_bytes: 1 << 20,
        page_size: PageSize::K4,
    };
    let mut report = MetricsReport::from_profile(&Profile::default(), setup);
    report.run.active_threads = 128;
    report.communication.heterogeneity_residual = 60.0;
    report.communication.amount_per_second = 1500.0;
    report.coherence = Some(CoherenceMetrics {
        share: 0.3,
        communication: CommunicationMetrics::default(),
        matrix: UpperTriangle::default(),
    });
    let traffic = PageTraffic {
        best: 0.9,
        ..PageTraffic::default()
    };
    report.pages = Some(PageReport {
        pages: 4,
        best: ExclusivityMetrics::default(),
        worst: ExclusivityMetrics::default(),
        first_touch: Some(PlacementAccuracy::default()),
        traffic,
        timeline: PageMigrationTimeline::default(),
    });
    report.verdict.coherence_time = Some(0.1);
    let check = |report: &MetricsReport, expected: &[(&str, &str)]| {
        let told = verdict_figures(report);
        let told = told
            .iter()
            .map(|f| (&*f.name, f.required.as_deref().unwrap_or("")));
        assert_eq!(told.collect::<Vec<_>>(), expected);
    };
    let pages = [
        ("E_app best", "at least 66.7 %"),
        ("Acc_app", "less than 90.0 %"),
        ("local", "at most 85.0 %"),
        ("remote accesses", "at least 15.0 %"),
        ("footprint", "more than 1.00 MiB"),
    ];
    let threads = [
        ("C_H", "at least 50.0"),
        ("C_H pairs", "at least 50.0"),
        ("C_H residual", "at least 50.0"),
        ("C_A per second", "at least 150"),
        // 150 of the 1500.
        ("coherence", "at least 10.0 %"),
        ("C_H coherence", "at least 50.0"),
        ("coherence time", "at least 1.0 %"),
    ];
    check(&report, &[&threads[..], &pages[..]].concat());
    // Page faults have no rate.
    report.run.online = true;
    check(
        &report,
        &[&threads[..3], &threads[5..], &pages[..]].concat(),
    );
    report.setup.nodes = 1;
    check(&report, &[&threads[..3], &threads[5..]].concat());
}
