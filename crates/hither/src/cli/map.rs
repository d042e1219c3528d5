//! `hither map`: a unit for each thread and a node for each page, kept as a placement or
//! printed for another tool.
pub mod args;
mod output;
mod render;
mod render_explain;
mod render_phases;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{anyhow, bail, Context, Result};
use hither_profile::bursts::BurstTrace;
use hither_profile::{read_placement, Placement};

pub use args::Args;
pub use output::output_path;

use super::printed::{print, print_stderr};
use super::progress::Counters;
use super::style::{strip_control_characters, TerminalStyle};
use crate::app::best;
use crate::app::default_placement::{choose, choose_for_matrix, DefaultPlacement};
use crate::app::map::input::{MapInput, Source};
use crate::app::map::machine::MapTarget;
use crate::app::map::options::MapOptions;
use crate::app::map::{input, machine, phase_note, place, MapSolution};
use crate::app::study::progress::Progress;
use crate::app::study::run_recording::RunRecording;
use crate::formats;
use output::PlacementOutput;

/// Reads, places, writes.
///
/// # Errors
/// One sentence when something cannot be read, placed or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.list {
        print(&render::list(TerminalStyle::of_stdout()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(placement) = stored_placement(args)? {
        convert(&placement, args)?;
        return Ok(ExitCode::SUCCESS);
    }
    let output = output::destination(args)?;
    let unbound = UnboundNext::of(args);
    let mut options = args.options()?;
    let source = args.source();
    let source = source.context("give a profile, or a matrix with --matrix")?;
    let old = options.from.as_deref().map(read_placement).transpose()?;
    let mut input = input::read(&source, options.threads.as_ref(), true)?;
    if let Some(file) = &args.load {
        input.read_load(file)?;
    }
    let roles = input.profile.as_ref().map_or(&[][..], |p| &p.roles);
    let old = old.map(|placement| placement.by_roles(roles));
    let target = machine::target(&options, input.placed.len())?;
    if args.leaves_choice() && options.phases.is_some() {
        let (placement, solution) = place(&options, &input, &target, None)?;
        if solution.changes_in_time() {
            finish(&placement, (Some(&solution), unbound), &output, args)?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    let mut because = String::new();
    match choice(args, &options, &source, (&input, &target))? {
        None => {}
        Some(DefaultPlacement::Place(with, why)) => (options, because) = (*with, why),
        Some(DefaultPlacement::Leave {
            why,
            recording_would_tell,
        }) => {
            let phases = input.profile.as_ref().zip(options.phases.as_ref());
            let note = phases.and_then(|(profile, phases)| phase_note(profile, phases, 1));
            // Where pages would lie is not asked, and to place millions takes as long as to find that out.
            input.keep_one_page();
            let (placement, _) = place(&options, &input, &target, None)?;
            let why = why + &note.unwrap_or_default();
            let next = match recording_would_tell {
                true => UnboundNext::Record,
                false => UnboundNext::Force,
            };
            finish(
                &placement.without_bindings(why),
                (None, next),
                &output,
                args,
            )?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    let (mut placement, solution) = place(&options, &input, &target, old.as_ref())?;
    if !because.is_empty() {
        placement.why = format!("{because} {}", placement.why);
    }
    if let Some(named) = args.named_policy() {
        placement = named.left_to_system(placement);
    }
    finish(&placement, (Some(&solution), unbound), &output, args)?;
    Ok(ExitCode::SUCCESS)
}

/// How to place, or whether at all; `None` where that is said.
fn choice(
    args: &Args,
    options: &MapOptions,
    source: &Source,
    (input, target): (&MapInput, &MapTarget),
) -> Result<Option<DefaultPlacement>> {
    let progress = Counters { quiet: false };
    if args.wants_best() {
        let found = best::best(options, source, &progress)?;
        let options = Box::new(found.options);
        return Ok(Some(DefaultPlacement::Place(options, found.verdict)));
    }
    if !args.leaves_choice() {
        return Ok(None);
    }
    let Some(profile) = &input.profile else {
        return choose_for_matrix(options, &input.comm).map(Some);
    };
    let recording = recording(source, options)?;
    let how = (args.insists(), &progress as &dyn Progress);
    // None of its phases is worth a placement of its own.
    let of_run = MapOptions {
        phases: None,
        ..options.clone()
    };
    let chosen = choose(&of_run, (input, profile), target, recording.as_ref(), how)?;
    Ok(Some(match chosen {
        DefaultPlacement::Place(mut with, why) => {
            with.phases = options.phases;
            DefaultPlacement::Place(with, why)
        }
        leave => leave,
    }))
}

/// What was recorded for simulation, if anything was that can be used; with a word on what cannot.
fn recording(source: &Source, options: &MapOptions) -> Result<Option<RunRecording>> {
    let Source::Profile(file) = source else {
        return Ok(None);
    };
    if BurstTrace::open(file)?.is_none() {
        return Ok(None);
    }
    let opened = RunRecording::open(file, options.threads.as_ref());
    Ok(opened
        .map_err(|why| print_stderr(&format!("note: placed without simulation: {why:#}")))
        .ok())
}

/// The placement that was given in place of a profile.
fn stored_placement(args: &Args) -> Result<Option<Placement>> {
    let file = args.input.as_deref().filter(|path| path.is_file());
    Ok(file.map(read_placement).transpose()?)
}

/// Shows a placement in another format.
fn convert(placement: &Placement, args: &Args) -> Result<()> {
    let file = args.input.as_deref().unwrap_or(Path::new(""));
    if args.format == "json" && !args.json {
        bail!(
            "{} is a placement already; choose what to make of it with --format, or place anew with --from",
            file.display()
        );
    }
    finish(
        placement,
        (None, UnboundNext::of(args)),
        &output::destination(args)?,
        args,
    )
}

/// Writes or prints the placement, and says what it is.
fn finish(
    placement: &Placement,
    (solution, unbound): (Option<&MapSolution>, UnboundNext),
    output: &PlacementOutput,
    args: &Args,
) -> Result<()> {
    let explained = solution.filter(|_| args.explain);
    let json = || render::json(placement, solution, args.explain);
    match output {
        PlacementOutput::Placement(path) => {
            output::write(placement, path)?;
            if args.json {
                return print(&json()?);
            }
            let style = TerminalStyle::of_stdout();
            let mut text = render::summary(placement, solution, style);
            if let Some(solution) = explained {
                text += &render_explain::render(solution, placement.objective, style);
            }
            print(&(text + &render::next(placement, path, unbound)))
        }
        PlacementOutput::PlacementPrinted => print(&hither_profile::placement_text(placement)?),
        PlacementOutput::Other(path) => {
            output::write_text(&format(placement, &args.format, unbound)?, path)
        }
        PlacementOutput::Print if args.json => print(&json()?),
        PlacementOutput::Print => print(&format(placement, &args.format, unbound)?),
    }
}

/// What to do where nothing is bound.
#[derive(Clone, Copy)]
enum UnboundNext {
    /// The policy was named.
    Nothing,
    Force,
    /// Record accesses, by which placements can be compared.
    Record,
}

impl UnboundNext {
    fn of(args: &Args) -> UnboundNext {
        match args.named_policy() {
            Some(_) => UnboundNext::Nothing,
            None => UnboundNext::Force,
        }
    }
}

/// Empty, with the reason on standard error, where there is nothing to bind.
fn format(placement: &Placement, name: &str, unbound: UnboundNext) -> Result<String> {
    if placement.binds_nothing() {
        let why = strip_control_characters(&placement.why);
        let cure = match unbound {
            UnboundNext::Nothing => "",
            UnboundNext::Force | UnboundNext::Record => "; --force places all the same",
        };
        print_stderr(&format!(
            "nothing is bound, so --format {name} is empty{cure}. {why}"
        ));
        return Ok(String::new());
    }
    let format = formats::ALL.iter().find(|f| f.name() == name);
    let format =
        format.ok_or_else(|| anyhow!("there is no format {name}; see `hither map --list`"))?;
    format
        .write(placement)
        .map_err(|why| anyhow!("format {name}: {why}"))
}
