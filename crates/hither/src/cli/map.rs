//! `hither map`: a unit for each thread and a node for each page, kept as a placement or
//! printed for another tool.
pub mod args;
mod build;
pub mod input;
pub mod machine;
mod matrix;
mod output;
mod pages;
mod render;
mod render_explain;
mod threads;
mod why;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{anyhow, bail, Result};
use hither_profile::{read_placement, Objective, Placement};

pub use args::Args;
use args::BEST;

use super::style::Style;
use crate::formats;
use hither_model::map::explain::{explain, Explanation, Placed as Arrangement};
use hither_model::map::phases::Stage;
use input::Input;
use machine::Target;
use output::Output;
use pages::Placed;
use threads::Placer;

/// Reads, places, writes.
///
/// # Errors
/// One sentence when something cannot be read, placed or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.list {
        output::print(&render::list(Style::of_stdout()))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(placement) = stored(args)? {
        convert(&placement, args)?;
        return Ok(ExitCode::SUCCESS);
    }
    let output = output::destination(args)?;
    let old = args.from.as_deref().map(read_placement).transpose()?;
    let input = input::read(args)?;
    let target = machine::target(&args.on, input.placed.len())?;
    let judged = judged(args, &input)?;
    let args = judged.as_ref().map_or(args, |(args, _)| args);
    let placer = Placer::new(args, &input, &target)?;
    let solution = solve(args, &input, &target, &placer, None, old.as_ref())?;
    let mut placement = build::placement(args, &input, &target, &placer, &solution);
    if let Some((_, verdict)) = &judged {
        placement.why = format!("{verdict} {}", placement.why);
    }
    finish(&placement, Some(&solution), &output, args)?;
    Ok(ExitCode::SUCCESS)
}

/// With `--policy best`: the options with what is predicted to be the fastest instead, and the
/// verdict.
fn judged(args: &Args, input: &Input) -> Result<Option<(Args, String)>> {
    if args.choice.policy != BEST {
        return Ok(None);
    }
    if args.choice.fast {
        bail!("--fast goes with --policy locality");
    }
    let Some(profile) = args.input.as_ref().filter(|_| input.profile.is_some()) else {
        bail!("--policy best needs a profile with bursts, which `hither trace --bursts` records; a matrix says too little to simulate");
    };
    let found = super::sim::best(args, profile)?;
    let mut args = args.clone();
    args.choice.policy = found.threads;
    args.choice.data = Some(found.data);
    Ok(Some((args, found.verdict)))
}

/// What `hither map` says when it is asked for these policies, by whoever predicts what comes of
/// it. `seats`: a unit for every thread of the profile, where these are decided already.
///
/// # Errors
/// When a policy has one, or the threads do not fit.
pub fn decide(
    args: &Args,
    input: &Input,
    target: &Target,
    seats: Option<&[u32]>,
) -> Result<Placement> {
    let placer = Placer::new(args, input, target)?;
    let solution = solve(args, input, target, &placer, seats, None)?;
    Ok(build::placement(args, input, target, &placer, &solution))
}

/// A unit for every thread of the profile, as the policy for threads says.
///
/// # Errors
/// As [`decide`].
pub fn seats(args: &Args, input: &Input, target: &Target) -> Result<Vec<u32>> {
    let placer = Placer::new(args, input, target)?;
    let first = placer.stages(None)?.into_iter().next();
    let first = first.ok_or_else(|| anyhow!("there is nothing to place"))?;
    Ok(first.threads)
}

/// The placement that was given in place of a profile.
fn stored(args: &Args) -> Result<Option<Placement>> {
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
    finish(placement, None, &output::destination(args)?, args)
}

/// What was found: who is where when, and what that brings.
struct Solution {
    stages: Vec<Stage>,
    /// Of each stage, by what is communicated while it lasts.
    objectives: Vec<Objective>,
    pages: Option<Placed>,
    /// For the first stage, or the only one.
    explanation: Explanation,
    /// What `before` is.
    compared_with: String,
}

fn solve(
    args: &Args,
    input: &Input,
    target: &Target,
    placer: &Placer,
    seats: Option<&[u32]>,
    old: Option<&Placement>,
) -> Result<Solution> {
    let before = placer.before(old)?;
    let stages = match seats {
        Some(seats) => vec![Stage::whole_run(seats.to_vec())],
        None => placer.stages(old.map(|_| before.as_slice()))?,
    };
    let before = input.expand(&before);
    let pages = pages::place(args, input, target, &stages, &before)?;
    let comm = placer.communication(&stages);
    let state = |at: usize| {
        let arrangement = |threads, nodes: fn(&Placed) -> &[_]| Arrangement {
            tree: &target.tree,
            cost: &target.cost,
            comm: &comm[at],
            threads,
            pages: pages.as_ref().map(|p| (&p.pages, nodes(p))),
        };
        let before = arrangement(&before, |p| &p.before);
        explain(
            Some(&before),
            &arrangement(&stages[at].threads, |p| &p.after),
        )
    };
    let all: Vec<Explanation> = (0..stages.len()).map(state).collect();
    let objectives = all.iter().map(objective).collect();
    let explanation = all.into_iter().next();
    Ok(Solution {
        explanation: explanation.ok_or_else(|| anyhow!("there is nothing to place"))?,
        objectives,
        stages,
        pages,
        compared_with: match old {
            Some(_) => "the placement given".to_owned(),
            None => "threads spread in order of creation and pages where they are first touched"
                .to_owned(),
        },
    })
}

fn objective(explanation: &Explanation) -> Objective {
    let saturated = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
    let before = explanation.before.as_ref();
    Objective {
        before: before.map_or(0, |state| saturated(state.objective)),
        after: saturated(explanation.after.objective),
    }
}

/// Writes or prints the placement, and says what it is.
fn finish(
    placement: &Placement,
    solution: Option<&Solution>,
    output: &Output,
    args: &Args,
) -> Result<()> {
    let explained = solution.filter(|_| args.explain);
    let json = || render::json(placement, explained);
    match output {
        Output::Placement(path) => {
            output::write(placement, path)?;
            if args.json {
                return output::print(&json()?);
            }
            let style = Style::of_stdout();
            let mut text = render::summary(placement, solution, style);
            if let Some(solution) = explained {
                text += &render_explain::render(solution, style);
            }
            output::print(&(text + &render::next(placement, path)))
        }
        Output::PlacementPrinted => output::print(&hither_profile::placement_text(placement)?),
        Output::Other(path) => output::write_text(&format(placement, &args.format)?, path),
        Output::Print if args.json => output::print(&json()?),
        Output::Print => output::print(&format(placement, &args.format)?),
    }
}

fn format(placement: &Placement, name: &str) -> Result<String> {
    let format = formats::ALL.iter().find(|f| f.name() == name);
    let format =
        format.ok_or_else(|| anyhow!("there is no format {name}; see `hither map --list`"))?;
    format
        .write(placement)
        .map_err(|why| anyhow!("format {name}: {why}"))
}
