//! hither: trace -> profile -> metrics -> placement -> run -> report.
#![forbid(unsafe_code)]
mod cli;
mod doctor;
mod map;
mod metrics;
mod place;
mod program;
mod report;
#[allow(dead_code)] // Until the verb `sim` uses it.
mod simulate;
mod topology;
mod trace;

fn main() -> std::process::ExitCode {
    cli::main()
}
