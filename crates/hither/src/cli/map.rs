//! `hither map`: a unit for each thread and a node for each page, kept as a placement or
//! printed for another tool.
mod args;
mod build;
mod input;
mod list;
mod machine;
mod matrix;
mod output;
mod render;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{anyhow, bail, Result};
use hither_profile::{read_placement, Placement};

pub use args::Args;

use super::style::Style;
use crate::map::{threads, Assignment, Problem};
use crate::place::formats;
use input::Input;
use machine::Target;
use output::Output;

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
    let input = input::read(args)?;
    let target = machine::target(&args.machine)?;
    let placement = place(args, &input, &target)?;
    finish(&placement, &output, args)?;
    Ok(ExitCode::SUCCESS)
}

/// The placement that was given in place of a profile.
fn stored(args: &Args) -> Result<Option<Placement>> {
    let file = args.input.as_deref().filter(|path| path.is_file());
    Ok(file.map(read_placement).transpose()?)
}

/// Shows a placement in another format.
fn convert(placement: &Placement, args: &Args) -> Result<()> {
    let file = args.input.as_deref().unwrap_or(Path::new(""));
    if args.json {
        return output::print(&render::json(placement)?);
    }
    if args.format == "json" {
        bail!(
            "{} is a placement already; choose what to make of it with --format, or place anew with --from",
            file.display()
        );
    }
    let output = output::destination(args)?;
    finish(placement, &output, args)
}

fn place(args: &Args, input: &Input, target: &Target) -> Result<Placement> {
    let cost = machine::cost(&target.tree, args.choice.cost)?;
    let units = target.tree.units.len();
    let least = input.placed.len().div_ceil(units) as u32;
    let capacity = args.machine.capacity.unwrap_or(least);
    if capacity < least {
        bail!(
            "{} threads do not fit on {units} PUs with {capacity} each; give --capacity {least}, or more PUs",
            input.placed.len()
        );
    }
    let problem = Problem {
        tree: &target.tree,
        cost: &cost,
        comm: &input.comm,
        load: &input.load,
        capacity,
        current: None,
        seed: args.choice.seed,
    };
    let assignment = assign(&args.choice.policy, &problem)?;
    Ok(build::placement(args, input, target, &problem, &assignment))
}

fn assign(name: &str, problem: &Problem) -> Result<Assignment> {
    let policy = threads::ALL.iter().find(|p| p.name() == name);
    let policy =
        policy.ok_or_else(|| anyhow!("there is no policy {name}; see `hither map --list`"))?;
    policy
        .place(problem)
        .map_err(|why| anyhow!("policy {name}: {why}"))
}

/// Writes or prints the placement, and says what it is.
fn finish(placement: &Placement, output: &Output, args: &Args) -> Result<()> {
    match output {
        Output::Placement(path) => {
            output::write(placement, path)?;
            match args.json {
                true => output::print(&render::json(placement)?),
                false => output::print(&render::summary(placement, path, Style::of_stdout())),
            }
        }
        Output::Other(path) => output::write_text(&format(placement, &args.format)?, path),
        Output::Print if args.json => output::print(&render::json(placement)?),
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
