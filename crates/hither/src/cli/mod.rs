//! The command line: arguments, calls of the stages, printing.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
