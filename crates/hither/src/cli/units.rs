//! How a program ended, for people.
use hither_profile::RunEnd;
use nix::sys::signal::Signal;

pub use hither_model::units::{plural, show_bytes, show_count, show_duration};

/// How a program ended, to be put behind something; nothing where all is well.
pub fn show_end(end: &RunEnd) -> String {
    match end {
        RunEnd::Exited { status: 0 } => String::new(),
        RunEnd::Exited { status } => format!(", exit status {status}"),
        RunEnd::Signaled { signal } => {
            let name = Signal::try_from(*signal).map_or("", Signal::as_str);
            format!(", killed by signal {signal} {name}")
                .trim_end()
                .to_string()
        }
        RunEnd::Interrupted => ", interrupted".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_shown() {
        let check = |end: RunEnd, expected: &str, status| {
            assert_eq!(show_end(&end), expected);
            assert_eq!(crate::program::child::exit_status(&end), status);
        };
        check(RunEnd::Exited { status: 0 }, "", 0);
        check(RunEnd::Exited { status: 3 }, ", exit status 3", 3);
        check(
            RunEnd::Signaled { signal: 11 },
            ", killed by signal 11 SIGSEGV",
            139,
        );
    }
}
