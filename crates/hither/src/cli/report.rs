//! `hither report`: one HTML file that shows where memory behaves badly, why, and what to
//! change.
pub mod on;

use super::printed::{print, print_as_is};
use super::style::{self, TerminalStyle};
use super::{output, render_findings};
use crate::app::assessment::{
    figures, join_thread, prediction, Assessment, AssessmentInput, AssessmentOptions,
};
use crate::report::build::compare::compare_profiles;
use crate::report::build::safe_text::plain_text;
use crate::report::build::source_quotes::SourceQuotes;
use crate::report::page::{
    ProfileComparison, ReportPage, ReportSubject, ReportVerdict, StructuresPanel, PAGE_FORMAT,
};
use crate::report::{self, build};
use anyhow::{Context, Result};
use hither_model::metrics::figures::SHARE_SPREAD;
use hither_profile::{Finding, PlacementComparison};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  hither report app.hither                                    app.html, beside this one
  hither report app.hither --text                             the findings in the terminal
  hither report app.hither --before old.hither                what changed
  hither report app.hither -p app.place.json -o page.html     with a placement in it
  hither report app.hither --topology xeon-x7550x4            counted on another machine
  hither sim app.hither; hither report app.hither             with what placements would bring";

/// Make one HTML page of a profile: what is wrong, why, and what to change
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Profile, as `hither trace` wrote it
    profile: PathBuf,

    /// Another profile to compare with: what changed since
    #[arg(long, value_name = "PROFILE")]
    before: Option<PathBuf>,

    /// Prediction to show, as `hither sim -o` wrote it [default: the one kept in the profile]
    #[arg(long, value_name = "FILE")]
    prediction: Option<PathBuf>,

    /// HTML file to write, - for standard output; one that is there is replaced [default:
    /// named after the profile]
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["text", "json"])]
    output: Option<PathBuf>,

    /// Print verdict and findings here instead of writing a page
    #[arg(long)]
    text: bool,

    /// The same as JSON
    #[arg(long)]
    json: bool,

    /// With --text: findings to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Say nothing of the program's arguments, of folders, of the host's name and of source lines
    #[arg(long)]
    redact: bool,

    #[command(flatten)]
    on: on::ReportMachineArgs,
}

impl Args {
    /// The file that may be written, by default one here.
    pub fn output(&self) -> Option<PathBuf> {
        Some(self.output.clone().unwrap_or_else(|| "page.html".into()))
    }

    fn options(&self) -> AssessmentOptions {
        AssessmentOptions {
            redact: self.redact,
            ..self.on.options()
        }
    }
}

/// Reads, computes, writes.
///
/// # Errors
/// One sentence when something cannot be read, or the page cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.text || args.json {
        print(&text(args)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = output::page_path(args.output.as_deref(), &args.profile)?;
    let (page, next) = page(args)?;
    let html = report::render_html(&page).map_err(anyhow::Error::from_boxed);
    let html = html.context("cannot put the page together")?;
    let size = super::units::show_bytes(html.len() as u64);
    if output::is_stdout(&path) {
        print_as_is(&html)?;
        super::print_stderr(&format!("page: standard output ({size})"));
    } else {
        output::write_page(&html, &path)?;
        super::print_stderr(&format!("page: {} ({size})", path.display()));
    }
    super::print_stderr(&format!("next: {next}"));
    Ok(ExitCode::SUCCESS)
}

/// What is printed in place of a page.
fn text(args: &Args) -> Result<String> {
    let given = AssessmentInput::read(&args.profile, &args.options())?;
    let predictions = prediction::read(&given, args.prediction.as_deref(), &super::print_stderr)?;
    let mut assessment = given.assess(given.page_table());
    prediction::gain(&mut assessment.verdict, &given, &predictions);
    let comparison = comparison(args, &given, &assessment)?;
    let view = super::report_view::view(&given, assessment, comparison, predictions);
    if args.json {
        return Ok(format!("{:#}\n", serde_json::to_value(&view)?));
    }
    let worst = view.findings.first().map(|found| &found.finding);
    let next = next(args, &given, worst, &view.verdict);
    let style = TerminalStyle::of_stdout();
    Ok(render_findings::render(&view, &next, args.top, style))
}

/// What to type now: run it as placed, else what acts on the worst finding, else place it.
fn next(
    args: &Args,
    given: &AssessmentInput,
    worst: Option<&Finding>,
    verdict: &ReportVerdict,
) -> String {
    let words = |words: &[&str], more: Vec<String>| {
        let words = words.iter().map(|&word| word.to_owned());
        style::shell_line(words.chain(more))
    };
    let file = given.file.display().to_string();
    if let Some((placement, _)) = given.placement_given() {
        let placement = placement.display().to_string();
        let command = given.profile.meta.command.clone();
        return words(&["hither", "run", "-p", &placement, "--"], command);
    }
    let worst = worst.filter(|finding| finding.severity > 0.0);
    let copied = worst.into_iter().flat_map(|w| &w.fixes);
    let mut lines = copied.flat_map(|fix| fix.copy.lines());
    match lines.find(|line| line.starts_with("hither ")) {
        Some(line) => line.to_owned(),
        None if worst.is_some() && args.text => {
            words(&["hither", "report", &file], args.on.words())
        }
        None if verdict.threads || verdict.data => {
            words(&["hither", "map", &file], args.on.options().machine())
        }
        None => words(&["hither", "stat", &file], args.on.options().machine()),
    }
}

fn comparison(
    args: &Args,
    given: &AssessmentInput,
    assessment: &Assessment,
) -> Result<Option<ProfileComparison>> {
    let Some(file) = &args.before else {
        return Ok(None);
    };
    let before = given.load_other(file)?;
    let mut comparison = compare_profiles(before, &given.comparison_side(assessment), SHARE_SPREAD);
    if let Some((file, _)) = given.placement_given() {
        let file = plain_text(&file.display().to_string());
        comparison.notes.push(format!(
            "After is counted as {file} places threads and pages, before as first touch does."
        ));
    }
    Ok(Some(comparison))
}

/// The page, and what to type after reading it.
fn page(args: &Args) -> Result<(ReportPage, String)> {
    let given = AssessmentInput::read(&args.profile, &args.options())?;
    let predictions = prediction::read(&given, args.prediction.as_deref(), &super::print_stderr)?;
    let table = given.page_table();
    // Two things that take long with many pages and do not need one another.
    let (mut assessment, mut structures) = std::thread::scope(|scope| {
        let structures = || build::structures::structures_panel(&given.profile, &table);
        let structures = scope.spawn(structures);
        (given.assess(Arc::clone(&table)), join_thread(structures))
    });
    prediction::gain(&mut assessment.verdict, &given, &predictions);
    let comparison = comparison(args, &given, &assessment)?;
    build::structures::add_assessments(
        &mut structures,
        &figures::object_assessments(&assessment.analysis.report),
    );
    let next = next(
        args,
        &given,
        assessment.findings.first(),
        &assessment.verdict,
    );
    let page = ReportPage {
        format: PAGE_FORMAT,
        writer: env!("CARGO_PKG_VERSION").to_owned(),
        subject: report_subject(given, assessment, structures, predictions),
        comparison,
    };
    Ok((page, next))
}

fn report_subject(
    given: AssessmentInput,
    assessment: Assessment,
    structures: StructuresPanel,
    predictions: Vec<PlacementComparison>,
) -> ReportSubject {
    let report = &assessment.analysis.report;
    let profile = &given.profile;
    ReportSubject {
        run: figures::run(profile, report),
        threads: figures::threads(report),
        processes: figures::processes(profile),
        communication: build::communication::communication_panel(
            profile,
            figures::communication(report, given.machine.order),
        ),
        structures,
        pages: figures::pages(profile, report, assessment.larger),
        predictions,
        quotes: SourceQuotes::of_profile(profile).of_all_places(profile),
        unseen: figures::unseen(profile, report),
        machine: given.machine.drawn,
        verdict: assessment.verdict,
        findings: assessment.findings,
    }
}
