//! hither: trace -> profile -> metrics -> placement -> run -> report.
#![forbid(unsafe_code)]
mod cli;
mod doctor;
mod map;
mod metrics;
mod place;
mod program;
mod report;
mod simulate;
mod topology;
mod trace;

fn main() -> std::process::ExitCode {
    cli::main()
}
