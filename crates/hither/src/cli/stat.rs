//! `hither stat`: what a profile says, for people and for programs.
use super::output::is_stdout;
use super::printed::print;
use super::report_view;
use super::style::{shell_line, strip_control_characters, TerminalStyle};
use super::{render_comparison, render_report, render_sites, render_slices};
use crate::app::assessment::setup::{setup, MAX_NODES};
use crate::app::assessment::{AssessmentInput, AssessmentOptions};
use crate::report::build::compare::compare_profiles;
use anyhow::{Context, Result};
use hither_model::metrics::figures::SHARE_SPREAD;
use hither_model::metrics::{MetricsReport, PageSize};
use hither_profile::OutputPlace;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hither stat app.hither                           the verdict and the figures behind it
  hither stat app.hither --slices                  the same over the time of the run
  hither stat app.hither --topology xeon-x7550x4   counted on another machine
  hither stat old.hither app.hither                what changed from one profile to the next
  hither stat app.hither --sites                   call paths that allocate what is accessed
  hither stat app.hither --page-size 2m            as if pages were huge
  hither stat app.hither --slices --csv            a row per slice, for a plot
  hither stat app.hither --json                    everything, for scripts";

/// Show verdict and metrics of a profile: would placing threads or data help, and why
///
/// An access is local if its page lies on the node that the thread runs on, else remote: with each
/// page where first touch puts it, threads being where most accesses can be local.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Profile, as `hither trace` wrote it
    profile: PathBuf,
    /// A second profile to compare with
    other: Option<PathBuf>,
    /// NUMA nodes to count the threads on [default: those of the traced machine, or 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_NODES)))]
    nodes: Option<u16>,
    /// Machine to count on: hwloc XML file, or synthetic as "node:4 core:8 pu:2"
    #[arg(long, value_name = "FILE|STRING")]
    topology: Option<String>,
    /// Show the run over time
    #[arg(long)]
    slices: bool,
    /// Show the call paths by which heap blocks are allocated
    #[arg(long, conflicts_with_all = ["slices", "json"])]
    sites: bool,
    /// With --slices: every slice as comma-separated values
    #[arg(long, requires = "slices", conflicts_with = "json")]
    csv: bool,
    /// Size of a page: 4k, 2m or 64m
    #[arg(long, value_name = "SIZE", default_value = "4k")]
    page_size: PageSize,
    /// Everything as JSON (names: docs/metrics.md)
    #[arg(long)]
    json: bool,
    /// Also write the communication matrix to this new file (-: only the matrix, to standard output), a row
    /// per thread of --json, as `hither map --matrix` reads it
    #[arg(long, value_name = "FILE", conflicts_with = "other")]
    matrix: Option<PathBuf>,
    /// Data structures, source lines and call paths to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    top: usize,
}

impl Args {
    /// The file that may be written.
    pub fn output(&self) -> Option<PathBuf> {
        self.matrix.clone()
    }
}

/// Reads, computes, prints.
///
/// # Errors
/// One sentence when a profile or a topology cannot be read.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(file) = &args.matrix {
        let table = matrix_table(&args.profile)?;
        if is_stdout(file) {
            print(&table)?;
            return Ok(ExitCode::SUCCESS);
        }
        let written = OutputPlace::new(file).and_then(|place| place.create(table.as_bytes()));
        written.with_context(|| {
            let file = file.display();
            format!("cannot write the matrix {file}; choose the name of a new file, or - for standard output")
        })?;
    }
    let style = TerminalStyle::of_stdout();
    let text = match &args.other {
        Some(after) if args.json || args.slices || args.sites => both(
            &load(&args.profile, args)?,
            &load(after, args)?,
            args,
            style,
        ),
        Some(after) => comparison(&args.profile, after, args, style)?,
        None => text(&load(&args.profile, args)?, args, style),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What changed, as `hither report --text --before` says it.
fn comparison(before: &Path, after: &Path, args: &Args, style: TerminalStyle) -> Result<String> {
    let options = AssessmentOptions {
        nodes: args.nodes,
        topology: args.topology.clone(),
        page_size: args.page_size,
        ..AssessmentOptions::default()
    };
    let given = AssessmentInput::read(after, &options)?;
    let assessment = given.assess(given.page_table());
    let side = given.comparison_side(&assessment);
    let comparison = compare_profiles(given.load_other(before)?, &side, SHARE_SPREAD);
    let files = [after, before].map(|file| file.display().to_string());
    let words = ["hither", "report", &files[0], "--before", &files[1]];
    let words = words.into_iter().map(str::to_owned);
    let next = shell_line(words.chain(options.machine()));
    let mut out = style.wrap("", &report_view::header(&side.run), 2);
    out += &style.wrap(
        "Verdict: ",
        &strip_control_characters(&side.verdict.sentence),
        2,
    );
    out += &render_comparison::render(&comparison, args.top, style);
    Ok(format!("{out}\nnext: {next}\n"))
}

/// A comma-separated table, each pair on both sides of the diagonal.
fn matrix_table(profile: &Path) -> Result<String> {
    let matrix = hither_profile::read(profile)?.by_roles().matrix();
    let row = |i: usize| {
        let cells = (0..matrix.threads()).map(|j| matrix.get(i, j).to_string());
        cells.collect::<Vec<_>>().join(",") + "\n"
    };
    Ok((0..matrix.threads()).map(row).collect())
}

fn load(path: &Path, args: &Args) -> Result<MetricsReport> {
    let profile = hither_profile::read(path)?.by_roles();
    let topology = args.topology.as_deref();
    let setup = setup(&profile.meta.machine, args.nodes, topology, args.page_size)?;
    Ok(MetricsReport::from_profile(&profile, setup))
}

fn text(report: &MetricsReport, args: &Args, style: TerminalStyle) -> String {
    if args.json {
        return json(&serde_json::json!(report));
    }
    if args.slices {
        return slices(report, args, style);
    }
    let name = args.profile.display().to_string();
    if args.sites {
        let next = shell_line([name.as_str()].into_iter());
        let sites = sites(report, args, style);
        return format!("{sites}\nnext: hither report {next}\n");
    }
    render_report::render(report, &name, args.top, style)
}

/// Each of two profiles by itself.
fn both(
    before: &MetricsReport,
    after: &MetricsReport,
    args: &Args,
    style: TerminalStyle,
) -> String {
    if args.json {
        return json(&serde_json::json!({ "before": before, "after": after }));
    }
    let text = |report| match args.slices {
        true => slices(report, args, style),
        false => sites(report, args, style),
    };
    format!("A\n{}B\n{}", text(before), text(after))
}

fn json(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

fn sites(report: &MetricsReport, args: &Args, style: TerminalStyle) -> String {
    render_sites::render(&report.allocation_paths, args.top, style)
}

fn slices(report: &MetricsReport, args: &Args, style: TerminalStyle) -> String {
    if args.csv {
        render_slices::csv(&report.slices)
    } else {
        render_slices::render(&report.slices, style)
    }
}
