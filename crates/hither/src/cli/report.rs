//! `hither report`: one HTML file that shows where memory behaves badly, why, and what to
//! change.
mod figures;
mod findings;
pub mod judge;
mod machine;
mod verdict;
pub mod view;

use super::style::{self, Style};
use super::{output, render_findings};
use crate::report::page::{Page, Subject, PAGE_FORMAT};
use crate::report::{self, build};
use anyhow::{Context, Result};
use judge::Given;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use view::View;

const EXAMPLES: &str = "\
Examples:
  hither report app.hither                                    app.html, beside this one
  hither report app.hither --text                             the findings in the terminal
  hither report app.hither -p app.place.json -o page.html     with a placement in it
  hither report app.hither --topology xeon-x7550x4            counted on another machine";

/// Make one HTML page of a profile: what is wrong, why, and what to change
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Profile, as `hither trace` wrote it
    profile: PathBuf,

    /// HTML file to write; one that is there is replaced [default: named after the profile]
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

    #[command(flatten)]
    on: judge::On,
}

/// Reads, computes, writes.
///
/// # Errors
/// One sentence when something cannot be read, or the page cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.text || args.json {
        return print(args);
    }
    let path = output::page(args.output.as_deref(), &args.profile)?;
    let given = Given::read(&args.profile, &args.on)?;
    let page = Page {
        format: PAGE_FORMAT,
        writer: env!("CARGO_PKG_VERSION").to_owned(),
        subject: subject(given),
        before: None,
    };
    let html = report::html(&page).map_err(anyhow::Error::from_boxed);
    let html = html.context("cannot put the page together")?;
    output::write_page(&html, &path)?;
    super::say(&format!(
        "page: {} ({})",
        path.display(),
        super::units::show_bytes(html.len() as u64)
    ));
    Ok(ExitCode::SUCCESS)
}

fn print(args: &Args) -> Result<ExitCode> {
    let given = Given::read(&args.profile, &args.on)?;
    let view = view::view(&given, given.judge());
    let text = if args.json {
        format!("{:#}\n", serde_json::to_value(&view)?)
    } else {
        let next = next(&given, &view);
        render_findings::render(&view, &next, args.top, Style::of_stdout())
    };
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("cannot write the report")?;
    Ok(ExitCode::SUCCESS)
}

/// What to type now: place it, run it so placed, or look at the page.
fn next(given: &Given, view: &View) -> String {
    let file = given.file.display().to_string();
    let mut words = vec!["hither".to_owned()];
    if let Some((placement, _)) = given.placed() {
        words.extend(["run", "-p"].map(str::to_owned));
        words.extend([placement.display().to_string(), "--".to_owned()]);
        words.extend(given.profile.meta.command.iter().cloned());
    } else if view.verdict.threads || view.verdict.data {
        words.extend(["map".to_owned(), file]);
    } else {
        words.extend(["report".to_owned(), file]);
    }
    style::shell_line(words.iter())
}

fn subject(given: Given) -> Subject {
    // Two things that take long with many pages and do not need one another.
    let (judged, mut structures) = std::thread::scope(|scope| {
        let structures = scope.spawn(|| build::structures::structures(&given.profile));
        (given.judge(), judge::joined(structures))
    });
    let report = &judged.analysis.report;
    let profile = &given.profile;
    build::structures::judge(&mut structures, &figures::judged(report));
    Subject {
        run: figures::run(profile, report),
        threads: figures::threads(report),
        processes: figures::processes(profile),
        communication: build::communication::communication(
            profile,
            figures::communication(report, given.machine.order),
        ),
        structures,
        pages: figures::pages(profile, report, judged.larger),
        unseen: figures::unseen(profile, report),
        machine: given.machine.drawn,
        verdict: judged.verdict,
        findings: judged.findings,
    }
}
