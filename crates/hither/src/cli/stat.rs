//! `hither stat`: what a profile says, for people and for programs.
use super::output::is_stdout;
use super::printed::print;
use super::style::{shell_line, TerminalStyle};
use super::{render_compare, render_report, render_sites, render_slices};
use crate::app::assessment::setup::{setup, MAX_NODES};
use anyhow::{Context, Result};
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

/// Say what a profile shows: would placing threads or data help, and why
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
    let report = load(&args.profile, args)?;
    let other = match &args.other {
        Some(path) => Some(load(path, args)?),
        None => None,
    };
    let text = text(&report, other.as_ref(), args, TerminalStyle::of_stdout())?;
    print(&text)?;
    Ok(ExitCode::SUCCESS)
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

fn text(
    report: &MetricsReport,
    other: Option<&MetricsReport>,
    args: &Args,
    style: TerminalStyle,
) -> Result<String> {
    let json = |value: serde_json::Value| Ok(format!("{value:#}\n"));
    Ok(match other {
        Some(other) if args.json => {
            return json(serde_json::json!({ "before": report, "after": other }))
        }
        None if args.json => return json(serde_json::to_value(report)?),
        Some(other) if args.slices => format!(
            "A\n{}B\n{}",
            slices(report, args, style),
            slices(other, args, style)
        ),
        None if args.slices => slices(report, args, style),
        Some(other) if args.sites => format!(
            "A\n{}B\n{}",
            sites(report, args, style),
            sites(other, args, style)
        ),
        None if args.sites => {
            let name = args.profile.display().to_string();
            let next = shell_line([name.as_str()].into_iter());
            format!(
                "{}\nnext: hither report {next}\n",
                sites(report, args, style)
            )
        }
        Some(other) => render_compare::render(report, other, args.top, style),
        None => {
            let name = args.profile.display().to_string();
            render_report::render(report, &name, args.top, style)
        }
    })
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
