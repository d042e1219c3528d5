//! hither: trace -> profile -> metrics -> placement -> run -> report.
#![forbid(unsafe_code)]
mod app;
mod auto;
mod cli;
mod doctor;
mod follow;
mod formats;
mod program;
mod report;
mod run;
mod trace;

fn main() -> std::process::ExitCode {
    cli::main()
}
