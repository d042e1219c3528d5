//! `hither doctor`: what this machine and user may do.
use super::style::clean;
use crate::doctor::{examine, Check, State, Verb};
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
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
    let checks = examine(args.program.as_deref());
    let traces = works(&checks, Verb::Trace);
    let text = if args.json {
        #[derive(Serialize)]
        struct Report<'a> {
            trace: bool,
            run: bool,
            auto: bool,
            checks: &'a [Check],
        }
        let report = Report {
            trace: traces,
            run: works(&checks, Verb::Run),
            auto: works(&checks, Verb::Auto),
            checks: &checks,
        };
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        let set = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        list(&checks, io::stdout().is_terminal() && !set)
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(u8::from(!traces)))
}

fn works(checks: &[Check], verb: Verb) -> bool {
    !checks
        .iter()
        .any(|c| c.verb == verb && c.state == State::Fails)
}

/// A part per verb, a line per check, and below it what to do if it is not well.
fn list(checks: &[Check], colour: bool) -> String {
    let mut out = String::new();
    let verbs = [
        (Verb::Trace, "trace", "see how threads share memory"),
        (Verb::Run, "run", "place threads and pages"),
        (Verb::Auto, "auto", "place them while the program runs"),
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
        let (failed, degraded) = (names(State::Fails), names(State::Degraded));
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

fn entry(out: &mut String, check: &Check, colour: bool) {
    let (word, code) = match check.state {
        State::Ok => ("ok      ", "32"),
        State::Degraded => ("degraded", "33"),
        State::Fails => ("fails   ", "31"),
    };
    let errno = check
        .errno
        .as_ref()
        .map(|e| format!("{e}: "))
        .unwrap_or_default();
    let found = clean(&format!("{errno}{}", check.found));
    let _ = writeln!(
        out,
        "  {} {:<14} {found}",
        paint(colour, code, word),
        check.name
    );
    if check.state == State::Ok {
        return;
    }
    for (label, text) in [
        ("tried", &check.tried),
        ("stops", &check.stops),
        ("still works", &check.works),
        ("fix", &check.fix),
    ] {
        let _ = writeln!(out, "             {label}: {}", clean(text));
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

    fn check(verb: Verb, state: State) -> Check {
        let bad = if state == State::Ok { "" } else { "x\x1b[2J" };
        Check {
            verb,
            name: "thing",
            state,
            tried: "try".to_string(),
            found: "found".to_string(),
            errno: (state != State::Ok).then(|| "EPERM".to_string()),
            stops: bad.to_string(),
            works: bad.to_string(),
            fix: bad.to_string(),
        }
    }

    #[test]
    fn the_list_ends_in_a_summary() {
        let checks = [
            check(Verb::Trace, State::Ok),
            check(Verb::Run, State::Degraded),
            check(Verb::Auto, State::Degraded),
            check(Verb::Auto, State::Fails),
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
            assert_eq!(works(&[check(verb, state)], Verb::Trace), expected);
        };
        check(Verb::Trace, State::Ok, true);
        check(Verb::Trace, State::Degraded, true);
        check(Verb::Trace, State::Fails, false);
        check(Verb::Run, State::Fails, true);
    }
}
