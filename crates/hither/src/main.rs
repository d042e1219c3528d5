//! hither: trace -> profile -> metrics -> placement -> run -> report.
#![forbid(unsafe_code)]
mod app;
mod cli;
mod doctor;
mod place;
mod program;
mod report;
mod trace;

fn main() -> std::process::ExitCode {
    cli::main()
}
