//! What `--text` and `--json` say: verdict and findings without the page's pictures.
use crate::app::assessment::{figures, Given, Judged};
use crate::cli::render_report::{counted, seen};
use crate::cli::style::{bytes, clean, count};
use crate::report::build::text::plain;
use crate::report::page::{Comparison, Run, Site, Unseen, Verdict};
use hither_model::metrics::structures;
use hither_profile::{Figure, Finding, Forecast, ObjectKind, Profile};
use serde::Serialize;

/// All of it; serialised as it stands by `--json`.
#[derive(Debug, Serialize)]
pub struct View {
    /// Its folder.
    pub profile: String,
    pub run: Run,
    pub verdict: Verdict,
    /// Worst first.
    pub findings: Vec<Found>,
    pub figures: Vec<Figure>,
    pub comparison: Option<Comparison>,
    /// What `hither sim` predicted, by machine.
    pub predictions: Vec<Forecast>,
    pub unseen: Vec<Unseen>,
}

/// A finding, and the structure that it is about.
#[derive(Debug, Serialize)]
pub struct Found {
    #[serde(flatten)]
    pub finding: Finding,
    pub structure: Option<Structure>,
}

/// What people need to know to find it in the source.
#[derive(Debug, Serialize)]
pub struct Structure {
    pub name: String,
    pub type_name: String,
    pub kind: ObjectKind,
    pub size: u64,
    pub site: Option<Site>,
    /// Of the accesses of the run, where it has any.
    pub share: Option<f64>,
}

pub fn view(
    given: &Given,
    judged: Judged,
    comparison: Option<Comparison>,
    predictions: Vec<Forecast>,
) -> View {
    let figures = judged.figures();
    let report = &judged.analysis.report;
    let structure = |finding: &Finding| {
        let listed = |s: &&structures::Structure| Some(s.object) == finding.object;
        let share = report.structures.iter().find(listed).map(|s| s.share);
        structure(&given.profile, finding, share)
    };
    let found = judged.findings.into_iter().map(|finding| Found {
        structure: structure(&finding),
        finding,
    });
    View {
        profile: plain(&given.file.display().to_string()),
        run: figures::run(&given.profile, report),
        findings: found.collect(),
        figures,
        comparison,
        predictions,
        unseen: figures::unseen(&given.profile, report),
        verdict: judged.verdict,
    }
}

fn structure(profile: &Profile, finding: &Finding, share: Option<f64>) -> Option<Structure> {
    let object = profile.objects.get(finding.object?.at())?;
    let site = Site {
        file: plain(&object.file),
        line: object.line,
        function: plain(&object.function),
    };
    Some(Structure {
        name: plain(&object.name),
        type_name: plain(&object.type_name),
        kind: object.kind,
        size: object.size,
        site: (!object.file.is_empty()).then_some(site),
        share,
    })
}

/// Command, size and end of a run.
pub fn header(run: &Run) -> String {
    format!(
        "{}: {:.2} s {}, {} active threads, {} {}, {} of memory used, {}",
        clean(&run.command),
        run.seconds,
        seen(run.online),
        run.active_threads,
        count(run.reads.saturating_add(run.writes)),
        counted(run.online),
        bytes(run.footprint),
        run.end
    )
}
