//! `hither doctor`: what this machine and user may do.
use super::printed::print;
use super::style::strip_control_characters;
use crate::doctor::{run_checks, CheckState, CheckedVerb, DoctorCheck};
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hither doctor           what works here, what does not, and what to do
  hither doctor ./app     the same, and whether ./app has symbols and debug information
  hither doctor --json    for scripts

Exit status: 0 when `hither trace` can work, 1 when it cannot.";

/// Try what hither needs from this machine, and say what fails, why, and what to do
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A program to look at as well
    program: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// # Errors
/// When the answers cannot be printed.
pub fn run(args: &Args) -> Result<ExitCode> {
    let checks = run_checks(args.program.as_deref());
    let traces = all_passed(&checks, CheckedVerb::Trace);
    let text = if args.json {
        #[derive(Serialize)]
        struct DoctorReport<'a> {
            trace: bool,
            run: bool,
            auto: bool,
            checks: &'a [DoctorCheck],
        }
        let report = DoctorReport {
            trace: traces,
            run: all_passed(&checks, CheckedVerb::Run),
            auto: all_passed(&checks, CheckedVerb::Auto),
            checks: &checks,
        };
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        let set = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        list(&checks, io::stdout().is_terminal() && !set)
    };
    print(&text)?;
    Ok(ExitCode::from(u8::from(!traces)))
}

fn all_passed(checks: &[DoctorCheck], verb: CheckedVerb) -> bool {
    !checks
        .iter()
        .any(|c| c.verb == verb && c.state == CheckState::Fails)
}

/// A part per verb, a line per check, and below it what to do if it is not well.
fn list(checks: &[DoctorCheck], colour: bool) -> String {
    let mut out = String::new();
    let verbs = [
        (CheckedVerb::Trace, "trace", "see how threads share memory"),
        (CheckedVerb::Run, "run", "place threads and pages"),
        (
            CheckedVerb::Auto,
            "auto",
            "place them while the program runs",
        ),
    ];
    for (verb, name, purpose) in verbs {
        let _ = writeln!(out, "{}: {purpose}", paint(colour, "1", name));
        for check in checks.iter().filter(|c| c.verb == verb) {
            entry(&mut out, check, colour);
        }
        out.push('\n');
    }
    let parts = verbs.map(|(verb, name, _)| {
        let names = |state| {
            let mine = checks
                .iter()
                .filter(move |c| c.verb == verb && c.state == state);
            mine.map(|c| c.name).collect::<Vec<_>>()
        };
        let (failed, degraded) = (names(CheckState::Fails), names(CheckState::Degraded));
        match (failed.is_empty(), degraded.len()) {
            (false, _) => format!("{name} does not work ({})", failed.join(", ")),
            (true, 0) => format!("{name} works"),
            (true, 1) => format!("{name} works with 1 restriction"),
            (true, n) => format!("{name} works with {n} restrictions"),
        }
    });
    let _ = writeln!(out, "Here {}.", parts.join(", "));
    out
}

fn entry(out: &mut String, check: &DoctorCheck, colour: bool) {
    let (word, code) = match check.state {
        CheckState::Ok => ("ok      ", "32"),
        CheckState::Degraded => ("degraded", "33"),
        CheckState::Fails => ("fails   ", "31"),
    };
    let errno = check
        .errno
        .as_ref()
        .map(|e| format!("{e}: "))
        .unwrap_or_default();
    let found = strip_control_characters(&format!("{errno}{}", check.found));
    let _ = writeln!(
        out,
        "  {} {:<14} {found}",
        paint(colour, code, word),
        check.name
    );
    if check.state == CheckState::Ok {
        return;
    }
    for (label, text) in [
        ("tried", &check.tried),
        ("stops", &check.stops),
        ("still works", &check.works),
        ("fix", &check.fix),
    ] {
        let _ = writeln!(
            out,
            "             {label}: {}",
            strip_control_characters(text)
        );
    }
}

fn paint(colour: bool, code: &str, text: &str) -> String {
    if colour {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(verb: CheckedVerb, state: CheckState) -> DoctorCheck {
        let bad = if state == CheckState::Ok {
            ""
        } else {
            "x\x1b[2J"
        };
        DoctorCheck {
            verb,
            name: "thing",
            state,
            tried: "try".to_string(),
            found: "found".to_string(),
            errno: (state != CheckState::Ok).then(|| "EPERM".to_string()),
            stops: bad.to_string(),
            works: bad.to_string(),
            fix: bad.to_string(),
        }
    }

    #[test]
    fn the_list_ends_in_a_summary() {
        let checks = [
            check(CheckedVerb::Trace, CheckState::Ok),
            check(CheckedVerb::Run, CheckState::Degraded),
            check(CheckedVerb::Auto, CheckState::Degraded),
            check(CheckedVerb::Auto, CheckState::Fails),
        ];
        let text = list(&checks, false);
        let last = text.lines().last();
        let expected =
            "Here trace works, run works with 1 restriction, auto does not work (thing).";
        assert_eq!(last, Some(expected));
        assert!(
            text.contains("  fails    thing          EPERM: found\n"),
            "{text}"
        );
        assert!(text.contains("             fix: x?[2J\n"), "{text}");
        assert!(!text.contains('\x1b'));
        assert!(list(&checks, true).contains("\x1b[31mfails   \x1b[0m"));
    }

    #[test]
    fn only_failures_of_trace_stop_trace() {
        let check = |verb, state, expected| {
            assert_eq!(
                all_passed(&[check(verb, state)], CheckedVerb::Trace),
                expected
            );
        };
        check(CheckedVerb::Trace, CheckState::Ok, true);
        check(CheckedVerb::Trace, CheckState::Degraded, true);
        check(CheckedVerb::Trace, CheckState::Fails, false);
        check(CheckedVerb::Run, CheckState::Fails, true);
    }
}
