//! What the metrics say, as the page has it.
use crate::report::build::communication::CommunicationInput;
use crate::report::build::safe_text::{plain_site, plain_text};
use crate::report::build::structures::ObjectAssessment;
use crate::report::page;
use hither_model::metrics::communication::CommunicationMetrics;
use hither_model::metrics::exclusivity::exclusivity;
use hither_model::metrics::metrics_report::PageReport;
use hither_model::metrics::node_assignment::best_and_worst_assignment;
use hither_model::metrics::page_access::{first_toucher_of_pages, PageAccessTable};
use hither_model::metrics::placement_accuracy::{accuracy_of, PageMigrationTimeline};
use hither_model::metrics::structures::StructureMetrics;
use hither_model::metrics::thresholds::{h_min, A_MIN};
use hither_model::metrics::{MetricsReport, PageSize};
use hither_profile::{Object, ObjectIx, ObjectKind, Profile, Slice, ThreadIx};
use std::collections::{HashMap, HashSet};

/// Most points of a line over time.
const MOST_POINTS: usize = 2048;

pub fn run(profile: &Profile, report: &MetricsReport) -> page::ReportRun {
    let meta = &profile.meta;
    page::ReportRun {
        command: plain_text(&meta.command.join(" ")),
        directory: plain_text(&meta.working_directory),
        started: meta.started_unix,
        seconds: report.run.seconds,
        host: plain_text(&meta.machine.hostname),
        cpu: plain_text(&meta.machine.cpu),
        kernel: plain_text(&meta.machine.kernel),
        active_threads: report.run.active_threads,
        instructions: report.run.instructions,
        reads: report.run.reads,
        writes: report.run.writes,
        fetches: report.run.fetches,
        footprint: report.run.footprint,
        cache_bytes: report.setup.cache_bytes,
        end: meta.end.to_string(),
        sampling_error: report.run.sampling_error,
        online: report.run.online,
        nodes: report.setup.nodes,
        nodes_from: plain_text(&report.setup.nodes_from),
    }
}

pub fn threads(report: &MetricsReport) -> Vec<page::ReportThread> {
    let rows = report.threads.iter().map(|t| page::ReportThread {
        name: plain_text(&t.name),
        process: t.process,
        instructions: t.instructions,
        reads: t.reads,
        writes: t.writes,
        node: t.node.0,
    });
    rows.collect()
}

pub fn processes(profile: &Profile) -> Vec<page::ReportProcess> {
    let rows = profile.meta.processes.iter().map(|p| page::ReportProcess {
        rank: p.rank,
        executable: plain_text(&p.executable),
    });
    rows.collect()
}

pub fn communication(report: &MetricsReport, placed: Option<Vec<u32>>) -> CommunicationInput {
    let figures = |metrics: CommunicationMetrics| page::CommunicationFigures {
        metrics,
        load_balance: report.load_balance,
        least_heterogeneity: h_min(report.run.active_threads),
        least_amount_per_second: A_MIN,
    };
    let phases = report.phases.iter();
    CommunicationInput {
        figures: figures(report.communication),
        phases: phases
            .map(|p| (p.first..p.end, figures(p.communication)))
            .collect(),
        too_short: report.too_short_for_phases,
        placed,
    }
}

pub fn object_assessments(report: &MetricsReport) -> HashMap<ObjectIx, ObjectAssessment> {
    let rows = report.structures.iter().map(|s| {
        let assessment = ObjectAssessment {
            accesses: s.accesses(),
            exclusivity: s.exclusivity,
            accuracy: s.first_touch_accuracy,
            first_touch: first_touch_line(s),
            fetch_share: s.fetch_share,
        };
        (s.object, assessment)
    });
    rows.collect()
}

/// The line that touched most pages of a structure first.
pub fn first_touch_line(structure: &StructureMetrics) -> Option<page::FirstTouchRow> {
    let line = structure.first_touch_line.as_ref()?;
    Some(page::FirstTouchRow {
        site: plain_site(&line.file, line.line, &line.function),
        pages: line.pages,
        thread: line.thread.0,
        path: line.path.iter().map(|call| plain_text(call)).collect(),
        in_parallel: line.in_parallel,
    })
}

pub fn pages(
    profile: &Profile,
    report: &MetricsReport,
    larger: Vec<page::PageSizeFigures>,
) -> Option<page::PagesPanel> {
    let found = report.pages.as_ref()?;
    Some(page::PagesPanel {
        sizes: std::iter::once(smallest(found)).chain(larger).collect(),
        timeline: timeline(&profile.slices, &found.timeline),
    })
}

/// The same run with larger pages, as `hither stat --page-size` has it: threads at their best
/// and worst for each size. `small` has the pages of 4 KiB.
pub fn larger_pages(
    profile: &Profile,
    small: &PageAccessTable,
    nodes: usize,
) -> Vec<page::PageSizeFigures> {
    let sizes = [PageSize::M2, PageSize::M64].into_iter();
    sizes
        .filter_map(|size| of_size(profile, small, size, nodes))
        .collect()
}

fn smallest(found: &PageReport) -> page::PageSizeFigures {
    page::PageSizeFigures {
        bytes: PageSize::K4.bytes(),
        pages: found.pages,
        best: found.best.clone(),
        worst: found.worst.clone(),
        first_touch: found.first_touch,
    }
}

fn of_size(
    profile: &Profile,
    small: &PageAccessTable,
    size: PageSize,
    nodes: usize,
) -> Option<page::PageSizeFigures> {
    let table = small.merge_into(&profile.regions, size);
    let first_touchers = first_toucher_of_pages(&profile.first_touch, &profile.regions, size);
    let (best, worst) = best_and_worst_assignment(&table, &profile.working_threads(), nodes);
    let place = |id| first_touchers.get(id).map(|t: &ThreadIx| best[t.at()]);
    let first_touch = accuracy_of(&table, 0..table.len(), nodes, &best, place);
    Some(page::PageSizeFigures {
        bytes: size.bytes(),
        pages: table.len(),
        best: exclusivity(&table, nodes, &best)?,
        worst: exclusivity(&table, nodes, &worst)?,
        first_touch,
    })
}

/// Page slices, several in one where they are many: their migrations added up, their
/// exclusivity weighted with accesses.
fn timeline(slices: &[Slice], found: &PageMigrationTimeline) -> page::PageTimeline {
    let mut out = page::PageTimeline {
        total: found.migrations,
        moved_once: found.moved_once,
        moved_more: found.moved_more,
        ..page::PageTimeline::default()
    };
    let width = found.slices.len().div_ceil(MOST_POINTS).max(1);
    for rows in found.slices.chunks(width) {
        let start = slices.get(rows[0].first.at()).map_or(0, |s| s.start);
        let accesses: f64 = rows.iter().map(|r| r.accesses as f64).sum();
        let local: f64 = rows.iter().map(|r| r.exclusivity * r.accesses as f64).sum();
        out.start.push(start as f64 / 1e9);
        out.exclusivity.push(if accesses > 0.0 {
            local / accesses
        } else {
            0.0
        });
        out.migrations.push(rows.iter().map(|r| r.migrations).sum());
    }
    out
}

/// What could not be seen: what the tracer says, and what the tables show to be missing.
pub fn unseen(profile: &Profile, report: &MetricsReport) -> Vec<page::UnseenData> {
    let said = profile.meta.limits.iter().map(|text| page::UnseenData {
        what: plain_text(text),
        effect: String::new(),
    });
    let mut all: Vec<page::UnseenData> = said.collect();
    let mut add = |what: String, effect: &str| {
        all.push(page::UnseenData {
            what,
            effect: effect.to_owned(),
        });
    };
    if let Some(share) = profile.meta.options.sample {
        add(
            format!("{:.1} % of the run was traced, the rest estimated from it; totals are good to about {:.1} %.", share * 100.0, report.run.sampling_error * 100.0),
            "Pages used only between the traced slices are missing.",
        );
    }
    if let Some(share) = anonymous(profile) {
        add(
            format!("{:.1} % of the accesses go to memory of no known structure, or to a heap block without a source line.", share * 100.0),
            match profile.objects.iter().any(|o| !o.file.is_empty()) {
                _ if report.run.online => "Who allocates what, only hither trace sees.",
                true => "It belongs to libraries, the allocator, or code compiled without -g.",
                false => "Compile with -g to get names and lines.",
            },
        );
    }
    if !profile.meta.options.follow {
        add(
            "Child processes were not followed.".to_owned(),
            "What they share with this one is not shown.",
        );
    }
    all
}

/// The share of accesses that no structure with a source line explains, if it matters.
fn anonymous(profile: &Profile) -> Option<f64> {
    let total: u64 = profile.threads.iter().map(|t| t.accesses()).sum();
    let files = profile.object_ranges.iter().filter(|range| {
        let region = profile.regions.get(range.region.at());
        region.is_some_and(|region| region.mapped_file().is_some())
    });
    let files: HashSet<usize> = files.map(|range| range.object.at()).collect();
    let is_named = |(at, o): &(usize, &Object)| {
        !o.file.is_empty()
            || matches!(o.kind, ObjectKind::Stack | ObjectKind::ThreadLocal)
            || o.name.starts_with(Object::CONSTANTS_OF)
            || files.contains(at)
    };
    let named = profile.objects.iter().enumerate().filter(is_named);
    let known: u64 = named.map(|(_, o)| o.reads.saturating_add(o.writes)).sum();
    let share = 1.0 - known as f64 / total.max(1) as f64;
    (total > 0 && share >= 0.01).then_some(share)
}
