//! `hither report`: one HTML file that shows where memory behaves badly, why, and what to
//! change.
mod figures;
mod findings;
mod machine;
mod verdict;

use super::{output, stat};
use crate::metrics::{Analysis, PageSize};
use crate::report::page::{Page, Subject, PAGE_FORMAT};
use crate::report::{self, build};
use anyhow::{Context, Result};
use hither_profile::{Placement, Profile};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hither report app.hither                                    app.html, beside this one
  hither report app.hither -p app.place.json -o page.html     with a placement in it
  hither report app.hither --topology xeon-x7550x4            counted on another machine";

/// Make one HTML page of a profile: what is wrong, why, and what to change
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Profile, as `hither trace` wrote it
    profile: PathBuf,

    /// Placement to show, as `hither map` wrote it
    #[arg(short, long, value_name = "FILE")]
    placement: Option<PathBuf>,

    /// HTML file to write; one that is there is replaced [default: named after the profile]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// NUMA nodes to count the threads on [default: those of the machine, or 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(stat::MAX_NODES)))]
    nodes: Option<u16>,

    /// Machine: a name of `hither topo --list`, an hwloc XML file, or hwloc's short notation
    /// [default: that of the placement, or the traced one]
    #[arg(long, value_name = "NAME|FILE|STRING")]
    topology: Option<String>,
}

/// Reads, computes, writes.
///
/// # Errors
/// One sentence when something cannot be read, or the page cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let path = output::page(args.output.as_deref(), &args.profile)?;
    let profile = hither_profile::read(&args.profile)?;
    let placement = match &args.placement {
        Some(file) => Some((file.as_path(), hither_profile::read_placement(file)?)),
        None => None,
    };
    let page = Page {
        format: PAGE_FORMAT,
        writer: env!("CARGO_PKG_VERSION").to_owned(),
        subject: subject(&profile, placement.as_ref().map(|(f, p)| (*f, p)), args)?,
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

fn subject(
    profile: &Profile,
    placement: Option<(&Path, &Placement)>,
    args: &Args,
) -> Result<Subject> {
    let machine = machine::machine(profile, placement, args.topology.as_deref())?;
    let counted_on = machine.counted_on.as_deref();
    let setup = stat::setup(&profile.meta.machine, args.nodes, counted_on, PageSize::K4)?;
    let nodes = setup.nodes;
    // Three things that take long with many pages and do not need one another.
    let (analysis, larger, mut structures) = std::thread::scope(|scope| {
        let larger = scope.spawn(|| figures::larger_pages(profile, nodes));
        let structures = scope.spawn(|| build::structures::structures(profile));
        let analysis = Analysis::of(profile, setup);
        (analysis, joined(larger), joined(structures))
    });
    let report = &analysis.report;
    build::structures::judge(&mut structures, &figures::judged(report));
    Ok(Subject {
        run: figures::run(profile, report),
        verdict: verdict::verdict(report, placement.map(|p| p.1)),
        findings: findings::findings(profile, &analysis, &larger, placement, &args.profile),
        threads: figures::threads(report),
        processes: figures::processes(profile),
        communication: build::communication::communication(
            profile,
            figures::communication(report, machine.order),
        ),
        structures,
        pages: figures::pages(profile, report, larger),
        unseen: figures::unseen(profile, report),
        machine: machine.drawn,
    })
}

/// What a thread made; its panic becomes ours.
fn joined<T>(thread: std::thread::ScopedJoinHandle<T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
