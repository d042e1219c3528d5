//! The command line: arguments, calls of the stages, printing. One file per verb.
mod auto;
mod check;
mod confine;
mod doctor;
mod generate;
mod machine_args;
mod man;
mod map;
mod output;
mod policy_values;
mod printed;
mod profile_completion;
mod progress;
mod render_comparison;
mod render_findings;
mod render_lines;
mod render_matrix;
mod render_report;
mod render_sites;
mod render_slices;
mod render_structures;
mod render_topo;
mod report;
mod report_view;
mod run;
mod sim;
mod stat;
mod style;
mod topo;
mod trace;
mod units;
mod value_parsers;

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::program::target::TargetError;
use printed::{error_sentence, print_stderr};

/// Exit status for bad input and for whatever else hither could not do.
const FAILED: u8 = 2;

/// Puts threads next to their data: shows how a parallel program shares memory, what
/// placing its threads and pages on a NUMA machine would gain, and runs it with that placement.
#[derive(Parser)]
#[command(name = "hither", version, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
struct CommandLine {
    #[command(subcommand)]
    verb: CliVerb,
}

/// Every verb: one line here, one in [`CliVerb::run`].
#[derive(Subcommand)]
enum CliVerb {
    Trace(trace::Args),
    Stat(stat::Args),
    Map(Box<map::Args>),
    Sim(Box<sim::Args>),
    Report(report::Args),
    Check(check::Args),
    Run(run::Args),
    Auto(auto::Args),
    Topo(topo::Args),
    Doctor(doctor::Args),
    Completions(generate::CompletionsArgs),
    #[command(hide = true)]
    Man(generate::ManArgs),
}

impl CliVerb {
    /// Verbs that only read and write files get no other rights before they read one.
    fn confine(&self) {
        match self {
            CliVerb::Stat(args) => confine::to_folders_of(args.output()),
            CliVerb::Map(args) => confine::to_folders_of([map::output_path(args)]),
            CliVerb::Sim(args) => confine::to_folders_of(sim::output_paths(args)),
            CliVerb::Report(args) => confine::to_folders_of(args.output()),
            CliVerb::Check(_) | CliVerb::Topo(_) => confine::to_folders_of([]),
            _ => {}
        }
    }

    fn run(&self) -> Result<ExitCode> {
        match self {
            CliVerb::Trace(args) => trace::run(args),
            CliVerb::Stat(args) => stat::run(args),
            CliVerb::Map(args) => map::run(args),
            CliVerb::Sim(args) => sim::run(args),
            CliVerb::Report(args) => report::run(args),
            CliVerb::Check(args) => check::run(args),
            CliVerb::Run(args) => run::run(args),
            CliVerb::Auto(args) => auto::run(args),
            CliVerb::Topo(args) => topo::run(args),
            CliVerb::Doctor(args) => doctor::run(args),
            CliVerb::Completions(args) => generate::print_completions(args, CommandLine::command()),
            CliVerb::Man(args) => generate::write_man_pages(args, CommandLine::command()),
        }
    }
}

/// Runs the verb asked for; whatever went wrong becomes one sentence and a status here.
pub fn main() -> ExitCode {
    crate::program::withheld_environment::withhold();
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // That becomes a sentence about the profile.
        if !hither_profile::is_decoding() {
            told(panic);
        }
    }));
    let cli = match CommandLine::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            printed::print_usage(&usage);
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(FAILED));
        }
    };
    cli.verb.confine();
    match cli.verb.run() {
        Ok(code) => code,
        Err(error) if broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            print_stderr(&error_sentence(&error));
            ExitCode::from(exit_code(&error))
        }
    }
}

fn exit_code(error: &anyhow::Error) -> u8 {
    let target = error.chain().find_map(|e| e.downcast_ref::<TargetError>());
    target.map_or(FAILED, TargetError::status)
}

fn broken_pipe(error: &anyhow::Error) -> bool {
    let io = error
        .chain()
        .find_map(|e| e.downcast_ref::<std::io::Error>());
    io.is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        CommandLine::command().debug_assert();
    }
}
