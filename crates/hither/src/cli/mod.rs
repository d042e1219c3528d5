//! The command line: arguments, calls of the stages, printing.
mod render_compare;
mod render_matrix;
mod render_report;
mod render_slices;
mod stat;
mod style;

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "hither")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Stat(stat::Args),
}

pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Stat(args) => stat::run(&args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("hither: {error:#}");
        ExitCode::from(2)
    })
}
