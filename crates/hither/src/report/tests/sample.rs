//! A page with something of everything. `report-ui/test/sample.ts` is written from it, and
//! the TypeScript compiler says whether `model.ts` mirrors `page.rs`.
use super::panel;
use crate::report::build::communication::{communication_panel, CommunicationInput};
use crate::report::build::source_quotes::SourceQuotes;
use crate::report::build::structures::{add_assessments, ObjectAssessment};
use crate::report::page::*;
use hither_model::metrics::communication::CommunicationMetrics;
use hither_model::metrics::exclusivity::ExclusivityMetrics;
use hither_model::metrics::placement_accuracy::PlacementAccuracy;
use hither_model::topology::{OutlineItem, OutlinePart};
use hither_profile::{
    self as profile, BetterWhen, FigureUnit, Finding, FindingKind, FindingLine, FindingPicture,
    ObjectIx, ObjectKind, Profile, RunFigure, SuggestedFix, TrafficUnit,
};
use std::path::PathBuf;

const PICTURES: [FindingPicture; 5] = [
    FindingPicture::Structure {
        object: ObjectIx(0),
    },
    FindingPicture::Machine,
    FindingPicture::Communication,
    FindingPicture::Timeline,
    FindingPicture::Pages,
];

const OBJECTS: [ObjectKind; 5] = [
    ObjectKind::Static,
    ObjectKind::Heap,
    ObjectKind::Mmap,
    ObjectKind::Stack,
    ObjectKind::Shared,
];

pub fn page() -> ReportPage {
    ReportPage {
        format: PAGE_FORMAT,
        writer: "0.0.0".to_owned(),
        subject: subject(),
        comparison: Some(comparison()),
    }
}

/// A value of every kind, and what is missing on either side.
fn comparison() -> ProfileComparison {
    let sides = [
        (ChangeKind::New, None, Some(0.9)),
        (ChangeKind::Worse, Some(0.2), Some(0.82)),
        (ChangeKind::Changed, Some(0.5), Some(0.7)),
        (ChangeKind::Same, Some(0.6), Some(0.61)),
        (ChangeKind::Better, Some(0.6), Some(0.1)),
        (ChangeKind::Gone, Some(0.3), None),
    ];
    let units = [
        FigureUnit::Share,
        FigureUnit::Percent,
        FigureUnit::Bytes,
        FigureUnit::Seconds,
        FigureUnit::Count,
        FigureUnit::Number,
    ];
    let better = [BetterWhen::Higher, BetterWhen::Lower, BetterWhen::Neither];
    let finding = |(at, &(change, before, after)): (usize, &(ChangeKind, _, _))| FindingChange {
        change,
        kind: FindingKind::ALL[at],
        title: "Thread 0 touches first what all threads use".to_owned(),
        structure: "data_Static".to_owned(),
        before,
        after,
        evidence: vec!["It was 60 %.".to_owned()],
        finding: after.map(|_| at),
    };
    let metric = |(at, &(change, before, after)): (usize, &(ChangeKind, _, _))| MetricChange {
        name: "E_app best".to_owned(),
        meaning: "accesses by each page's main node".to_owned(),
        unit: units[at],
        better: better[at % 3],
        before,
        after,
        change,
        within_error: change == ChangeKind::Same,
    };
    let figures = |share: f64| StructureFigures {
        size: 32768,
        reads: 800,
        writes: 200,
        share,
        exclusivity: Some(share),
        ..StructureFigures::default()
    };
    let structure =
        |(at, &(change, before, after)): (usize, &(ChangeKind, Option<f64>, Option<f64>))| {
            StructureChange {
                change,
                name: "data".to_owned(),
                type_name: "double [512]".to_owned(),
                kind: OBJECTS[at % OBJECTS.len()],
                site: (at % 2 == 0).then(DeclarationSite::default),
                before: before.map(figures),
                after: after.map(figures),
            }
        };
    ProfileComparison {
        file: "before.hither".to_owned(),
        run: ReportRun::default(),
        verdict: ReportVerdict::default(),
        sentence: "1 finding is gone.".to_owned(),
        notes: vec!["The commands differ.".to_owned()],
        findings: sides.iter().enumerate().map(finding).collect(),
        metrics: sides.iter().enumerate().map(metric).collect(),
        structures: sides.iter().enumerate().map(structure).collect(),
        structures_left: 3,
    }
}

fn subject() -> ReportSubject {
    let profile = small();
    ReportSubject {
        run: ReportRun {
            command: "sample 4".to_owned(),
            seconds: 0.4,
            active_threads: 4,
            reads: 4000,
            writes: 1000,
            fetches: Some(1200),
            footprint: 32768,
            cache_bytes: 4096,
            nodes: 2,
            end: "exited with 0".to_owned(),
            ..ReportRun::default()
        },
        verdict: ReportVerdict {
            sentence: "Suitable for thread mapping and data mapping.".to_owned(),
            threads: true,
            threads_undecided: false,
            data: true,
            data_undecided: false,
            reasons: vec!["Threads: C_H 1875.".to_owned()],
            figures: vec![RunFigure::new(
                "C_H residual",
                Some(1875.0),
                FigureUnit::Number,
                "beside how much each thread shares",
            )
            .requires(Some("at least 100".to_owned()))],
            gain: vec!["First touch makes 25 % of the accesses local.".to_owned()],
        },
        findings: FindingKind::ALL.iter().enumerate().map(finding).collect(),
        machine: Some(machine()),
        threads: vec![ReportThread::default(); 4],
        processes: vec![ReportProcess {
            rank: None,
            executable: "/opt/sample".to_owned(),
        }],
        communication: communication_panel(&profile, given()),
        structures: assessed(panel(&profile)),
        pages: Some(pages()),
        predictions: vec![super::forecast::forecast()],
        quotes: SourceQuotes::of_profile(&profile).of_all_places(&profile),
        unseen: vec![UnseenData {
            what: "Something.".to_owned(),
            effect: "Nothing much.".to_owned(),
        }],
    }
}

fn assessed(mut structures: StructuresPanel) -> StructuresPanel {
    let assessment = ObjectAssessment {
        accesses: 5000,
        exclusivity: Some(0.9),
        accuracy: Some(0.25),
        first_touch: Some(FirstTouchRow {
            site: DeclarationSite {
                file: "/src/sample.c".to_owned(),
                line: 12,
                function: "main".to_owned(),
            },
            pages: 8,
            thread: 0,
            path: vec!["main (sample.c:12)".to_owned()],
            in_parallel: Some(false),
        }),
        fetch_share: Some(0.4),
    };
    add_assessments(&mut structures, &[(ObjectIx(0), assessment)].into());
    structures
}

fn finding((at, &kind): (usize, &FindingKind)) -> Finding {
    Finding {
        kind,
        severity: 0.9 - at as f64 * 0.08,
        severity_of: [TrafficUnit::Accesses, TrafficUnit::Fetches][at % 2],
        title: "Thread 0 touches first what all threads use".to_owned(),
        evidence: vec![
            "Thread 0 touches 8 of 8 pages first; it makes 25 % of the accesses to them."
                .to_owned(),
            "75 % of the accesses come from other nodes.".to_owned(),
        ],
        object: at.is_multiple_of(2).then_some(ObjectIx(0)),
        lines: vec![FindingLine {
            file: "/src/sample.c".to_owned(),
            line: 42,
            function: "step".to_owned(),
            share: 0.6,
        }],
        fixes: vec![SuggestedFix {
            what: "Initialise it in parallel, with the schedule of the loops that use it."
                .to_owned(),
            copy: "#pragma omp parallel for schedule(static)".to_owned(),
        }],
        picture: PICTURES[at % PICTURES.len()],
    }
}

/// Four threads in a chain over four slices, eight pages.
fn small() -> Profile {
    let object = |kind: ObjectKind| profile::Object {
        name: format!("data_{kind:?}"),
        type_name: "double [512]".to_owned(),
        kind,
        size: 32768,
        count: 1,
        file: "/src/sample.c".to_owned(),
        line: 12,
        function: "main".to_owned(),
        reads: 800,
        writes: 200,
        ..profile::Object::default()
    };
    let comm = (0..4u32).flat_map(|slice| (0..3u32).map(move |i| (slice, i)));
    let pages = (0..8u32).flat_map(|page| (0..4u32).map(move |thread| (page, thread)));
    let source = [(11, "int main(void) {"), (12, "    data = malloc(32768);")];
    let source_text = source.map(|(line, text)| profile::SourceText {
        file: "/src/sample.c".to_owned(),
        line,
        text: text.to_owned(),
    });
    Profile {
        source_text: source_text.to_vec(),
        threads: vec![
            profile::Thread {
                reads: 1000,
                writes: 250,
                ..Default::default()
            };
            4
        ],
        slices: (0..4)
            .map(|s| profile::Slice {
                start: s * 100_000_000,
                length: 100_000_000,
                amount: 10.0,
                heterogeneity: 1875.0,
                threads: 4,
                traced: true,
                ..Default::default()
            })
            .collect(),
        comm: comm
            .map(|(slice, i)| profile::PairComm {
                slice: profile::SliceIx(slice),
                i: profile::ThreadIx(i),
                j: profile::ThreadIx(i + 1),
                events: 100,
                ..profile::PairComm::default()
            })
            .collect(),
        regions: vec![profile::Region::default()],
        objects: OBJECTS.map(object).to_vec(),
        object_ranges: vec![profile::ObjectRange {
            length: 32768,
            ..Default::default()
        }],
        pages: pages
            .map(|(page, thread)| profile::PageUse {
                page: profile::PageNo(page),
                thread: profile::ThreadIx(thread),
                reads: if page / 2 == thread { 400 } else { 2 },
                writes: 1,
                ..Default::default()
            })
            .collect(),
        first_touch: (0..8)
            .map(|page| profile::PageFirstTouch {
                page: profile::PageNo(page),
                ..Default::default()
            })
            .collect(),
        sites: vec![profile::SourceSite {
            object: Some(ObjectIx(0)),
            file: "/src/sample.c".to_owned(),
            line: 42,
            function: "step".to_owned(),
            callee: String::new(),
            reads: 500,
            writes: 100,
            fetches: 0,
        }],
        ..Profile::default()
    }
}

fn given() -> CommunicationInput {
    let figures = CommunicationFigures {
        metrics: CommunicationMetrics {
            events: 1200,
            heterogeneity: 1200.0,
            ..CommunicationMetrics::default()
        },
        least_heterogeneity: 100.0,
        least_amount_per_second: 150.0,
        ..CommunicationFigures::default()
    };
    CommunicationInput {
        figures,
        phases: vec![(0..2, figures), (2..4, figures)],
        too_short: false,
        placed: Some(vec![0, 1, 2, 3]),
    }
}

fn machine() -> MachinePanel {
    let item = |what, os| OutlineItem {
        what,
        logical: 0,
        os,
        bytes: 0,
    };
    let node = |at: u32| OutlinePart {
        items: vec![item("Node", Some(at)), item("L3", None)],
        units: at * 2..at * 2 + 2,
        parts: Vec::new(),
    };
    MachinePanel {
        title: "Two nodes".to_owned(),
        source: "Made up.".to_owned(),
        root: OutlinePart {
            items: vec![item("Machine", None)],
            units: 0..4,
            parts: vec![node(0), node(1)],
        },
        units: vec![0, 1, 2, 3],
        unit_nodes: vec![0, 0, 1, 1],
        placement: Some(PlacementPanel {
            file: "sample.place.json".to_owned(),
            policy: "locality".to_owned(),
            data: Some("most-access".to_owned()),
            why: "It costs less.".to_owned(),
            phases: vec![PlacementPhase {
                start: 0.0,
                threads: vec![(0, 0), (1, 1), (2, 2), (3, 3)],
                node_bytes: vec![16384, 16384],
            }],
        }),
    }
}

fn pages() -> PagesPanel {
    let exclusivity = ExclusivityMetrics {
        app: 0.9,
        page_mean: 0.8,
        histogram_pages: [0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 4],
        histogram_accesses: [0, 0, 0, 0, 0, 10, 10, 20, 0, 0, 900],
    };
    PagesPanel {
        sizes: vec![PageSizeFigures {
            bytes: 4096,
            pages: 8,
            best: exclusivity.clone(),
            worst: exclusivity,
            first_touch: Some(PlacementAccuracy {
                page: 0.25,
                app: 0.25,
                local: 0.3,
                remote: 0.7,
                pages: 8,
            }),
        }],
        timeline: PageTimeline {
            start: vec![0.0, 0.2],
            exclusivity: vec![0.9, 0.8],
            migrations: vec![6, 0],
            total: 6,
            moved_once: 6,
            moved_more: 0,
        },
    }
}

/// Set `HITHER_WRITE` to rewrite the file.
#[test]
fn the_sample_for_typescript_is_current() {
    let json = serde_json::to_string_pretty(&page()).expect("JSON");
    let text = format!(
        "// Written by crates/hither/src/report/tests/sample.rs; HITHER_WRITE=1 cargo test writes it anew.\n\
         import type {{ Page }} from \"../src/model\";\n\nexport const page: Page = {json};\n"
    );
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../report-ui/test/sample.ts");
    if std::env::var_os("HITHER_WRITE").is_some() {
        std::fs::write(&file, &text).expect("a file that can be written");
    }
    let is = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        is == text,
        "page.rs has changed: HITHER_WRITE=1 cargo test -p hither sample"
    );
}
