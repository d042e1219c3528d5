//! `hither run`: start a program with its threads and pages where they are wanted.
mod args;
pub mod output;
mod render;
mod render_plan;

use std::process::ExitCode;

use anyhow::Result;

pub use args::Args;

use super::printed::print;
use super::{print_stderr, style::TerminalStyle};
use crate::app::run::RunPlan;
use crate::program::{child, target};
use crate::run as runner;
use crate::trace::launch::refuse_nested;

/// Runs the command; the result is its exit status.
///
/// # Errors
/// When what was asked for cannot be done here, or the command not be started.
pub fn run(args: &Args) -> Result<ExitCode> {
    refuse_nested()?;
    hither_sys::process::lift_file_size_limit();
    let target = target::resolve_target(&args.command, std::env::var_os("PATH").as_deref())?;
    let output = args
        .export_json
        .as_deref()
        .map(output::destination)
        .transpose()?;
    let options = args.options()?;
    let plan = RunPlan::new(&options, &target)?;
    if args.dry_run {
        print(&render_plan::plan_text(
            &plan,
            &target,
            TerminalStyle::of_stdout(),
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.quiet {
        for warning in &plan.warnings {
            print_stderr(&format!("warning: {warning}"));
        }
    }
    if let Some(note) = render_plan::binds_nothing(&plan).filter(|_| !args.quiet) {
        print_stderr(&format!("note: {note}"));
    }
    if args.verbose {
        print_stderr(&render_plan::plan_summary(&plan));
    }
    let next = render::NextStep::new(args);
    let (request, guide) = plan.request(&options, target);
    let outcome = runner::run(request, guide)?;
    if !args.quiet {
        render::report(&outcome, args.verbose, &next);
    }
    let status = child::exit_status(&outcome.end);
    if let Some(output) = output {
        output.write(&outcome)?;
    }
    Ok(ExitCode::from(status))
}
