//! What `--text` and `--json` say: verdict and findings without the page's pictures.
use crate::app::assessment::{figures, Assessment, AssessmentInput};
use crate::cli::render_report::{counted, fetched, seen};
use crate::cli::style::{bytes, count, strip_control_characters};
use crate::report::build::safe_text::plain_text;
use crate::report::build::source_quotes::SourceQuotes;
use crate::report::build::structures::{declaration_site, object_blocks};
use crate::report::page::{
    DeclarationSite, FirstTouchRow, ProfileComparison, ReportRun, ReportVerdict, SourceQuote,
    UnseenData,
};
use hither_model::metrics::structures::StructureMetrics;
use hither_profile::{Finding, ObjectKind, PlacementComparison, Profile, RunFigure};
use serde::Serialize;

/// All of it; serialised as it stands by `--json`.
#[derive(Debug, Serialize)]
pub struct ReportView {
    /// Its folder.
    pub profile: String,
    pub run: ReportRun,
    pub verdict: ReportVerdict,
    /// Worst first.
    pub findings: Vec<FindingView>,
    pub figures: Vec<RunFigure>,
    pub comparison: Option<ProfileComparison>,
    /// What `hither sim` predicted, by machine.
    pub predictions: Vec<PlacementComparison>,
    pub unseen: Vec<UnseenData>,
}

/// A finding, and the structure that it is about.
#[derive(Debug, Serialize)]
pub struct FindingView {
    #[serde(flatten)]
    pub finding: Finding,
    pub structure: Option<FindingStructure>,
    /// The source of the places that it names, where the profile keeps it: of the structure's and
    /// its first touch, then of the lines that use it.
    pub quotes: Vec<SourceQuote>,
}

/// What people need to know to find it in the source.
#[derive(Debug, Serialize)]
pub struct FindingStructure {
    pub name: String,
    pub type_name: String,
    pub kind: ObjectKind,
    pub size: u64,
    /// Its size, and in what blocks.
    pub blocks: String,
    pub site: Option<DeclarationSite>,
    /// Of the accesses of the run, where it has any.
    pub share: Option<f64>,
    /// Of the fetches of the run; `None` where they were not counted.
    pub fetch_share: Option<f64>,
    /// The line that touched most of its pages first.
    pub first_touch: Option<FirstTouchRow>,
}

pub fn view(
    given: &AssessmentInput,
    assessment: Assessment,
    comparison: Option<ProfileComparison>,
    predictions: Vec<PlacementComparison>,
) -> ReportView {
    let figures = assessment.figures();
    let report = &assessment.analysis.report;
    let source = SourceQuotes::of_profile(&given.profile);
    let view = |finding: Finding| {
        let listed = |s: &&StructureMetrics| Some(s.object) == finding.object;
        let metrics = report.structures.iter().find(listed);
        let structure = structure(&given.profile, &finding, metrics);
        FindingView {
            quotes: quotes(&source, &finding, structure.as_ref()),
            structure,
            finding,
        }
    };
    let found = assessment.findings.into_iter().map(view);
    ReportView {
        profile: plain_text(&given.file.display().to_string()),
        run: figures::run(&given.profile, report),
        findings: found.collect(),
        figures,
        comparison,
        predictions,
        unseen: figures::unseen(&given.profile, report),
        verdict: assessment.verdict,
    }
}

fn structure(
    profile: &Profile,
    finding: &Finding,
    metrics: Option<&StructureMetrics>,
) -> Option<FindingStructure> {
    let object = profile.objects.get(finding.object?.at())?;
    Some(FindingStructure {
        name: plain_text(&object.name),
        type_name: plain_text(&object.type_name),
        kind: object.kind,
        size: object.size,
        blocks: object_blocks(object),
        site: declaration_site(object),
        share: metrics.map(|s| s.share),
        fetch_share: metrics.and_then(|s| s.fetch_share),
        first_touch: metrics.and_then(figures::first_touch_line),
    })
}

fn quotes(
    source: &SourceQuotes,
    finding: &Finding,
    structure: Option<&FindingStructure>,
) -> Vec<SourceQuote> {
    let declared = structure.and_then(|s| s.site.as_ref());
    let touched = structure.and_then(|s| s.first_touch.as_ref());
    let sites = declared.into_iter().chain(touched.map(|t| &t.site));
    let sites = sites.map(|site| (&*site.file, site.line));
    let used = finding.lines.iter().map(|l| (&*l.file, l.line));
    let mut quotes: Vec<SourceQuote> = Vec::new();
    for (file, line) in sites.chain(used) {
        let quote = source.around(file, line);
        quotes.extend(quote.filter(|quote| !quotes.contains(quote)));
    }
    quotes
}

/// Command, size and end of a run.
pub fn header(run: &ReportRun) -> String {
    format!(
        "{}: {:.2} s {}, {} active threads, {} {}{}, {} of memory used, {}",
        strip_control_characters(&run.command),
        run.seconds,
        seen(run.online),
        run.active_threads,
        count(run.reads.saturating_add(run.writes)),
        counted(run.online),
        fetched(run.fetches),
        bytes(run.footprint),
        run.end
    )
}
