//! The command line: arguments, calls of the stages, printing. One file per verb.
mod doctor;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "hither", version, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_required = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// Every verb: one line here, one in [`main`].
#[derive(Subcommand)]
enum Verb {
    Doctor(doctor::Args),
}

pub fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Doctor(args) => doctor::run(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("hither: {error:#}");
        ExitCode::from(2)
    })
}
