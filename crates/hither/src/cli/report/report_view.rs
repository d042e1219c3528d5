//! What `--text` and `--json` say: verdict and findings without the page's pictures.
use crate::app::assessment::{figures, Assessment, AssessmentInput};
use crate::cli::render_report::{counted, seen};
use crate::cli::style::{bytes, count, strip_control_characters};
use crate::report::build::safe_text::plain_text;
use crate::report::build::source_quotes::SourceQuotes;
use crate::report::page::{
    DeclarationSite, ProfileComparison, ReportRun, ReportVerdict, SourceQuote, UnseenData,
};
use hither_model::metrics::structures;
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
    /// The source of the places that it names, where the profile keeps it: of the structure's,
    /// then of the lines that use it.
    pub quotes: Vec<SourceQuote>,
}

/// What people need to know to find it in the source.
#[derive(Debug, Serialize)]
pub struct FindingStructure {
    pub name: String,
    pub type_name: String,
    pub kind: ObjectKind,
    pub size: u64,
    pub site: Option<DeclarationSite>,
    /// Of the accesses of the run, where it has any.
    pub share: Option<f64>,
}

pub fn view(
    given: &AssessmentInput,
    judged: Assessment,
    comparison: Option<ProfileComparison>,
    predictions: Vec<PlacementComparison>,
) -> ReportView {
    let figures = judged.figures();
    let report = &judged.analysis.report;
    let structure = |finding: &Finding| {
        let listed = |s: &&structures::StructureMetrics| Some(s.object) == finding.object;
        let share = report.structures.iter().find(listed).map(|s| s.share);
        structure(&given.profile, finding, share)
    };
    let source = SourceQuotes::of_profile(&given.profile);
    let found = judged.findings.into_iter().map(|finding| FindingView {
        structure: structure(&finding),
        quotes: quotes(&given.profile, &source, &finding),
        finding,
    });
    ReportView {
        profile: plain_text(&given.file.display().to_string()),
        run: figures::run(&given.profile, report),
        findings: found.collect(),
        figures,
        comparison,
        predictions,
        unseen: figures::unseen(&given.profile, report),
        verdict: judged.verdict,
    }
}

fn structure(profile: &Profile, finding: &Finding, share: Option<f64>) -> Option<FindingStructure> {
    let object = profile.objects.get(finding.object?.at())?;
    let site = DeclarationSite {
        file: plain_text(&object.file),
        line: object.line,
        function: plain_text(&object.function),
    };
    Some(FindingStructure {
        name: plain_text(&object.name),
        type_name: plain_text(&object.type_name),
        kind: object.kind,
        size: object.size,
        site: (!object.file.is_empty()).then_some(site),
        share,
    })
}

fn quotes(profile: &Profile, source: &SourceQuotes, finding: &Finding) -> Vec<SourceQuote> {
    let object = finding.object.and_then(|o| profile.objects.get(o.at()));
    let declared = object.map(|o| (&*o.file, o.line));
    let used = finding.lines.iter().map(|l| (&*l.file, l.line));
    let mut quotes: Vec<SourceQuote> = Vec::new();
    for (file, line) in declared.into_iter().chain(used) {
        let quote = source.around(file, line);
        quotes.extend(quote.filter(|quote| !quotes.contains(quote)));
    }
    quotes
}

/// Command, size and end of a run.
pub fn header(run: &ReportRun) -> String {
    format!(
        "{}: {:.2} s {}, {} active threads, {} {}, {} of memory used, {}",
        strip_control_characters(&run.command),
        run.seconds,
        seen(run.online),
        run.active_threads,
        count(run.reads.saturating_add(run.writes)),
        counted(run.online),
        bytes(run.footprint),
        run.end
    )
}
