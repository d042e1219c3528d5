//! What `hither run` says on stderr at the end: asked against got.
use std::time::Duration;

use super::Args;
use crate::cli::print_stderr;
use crate::cli::style::{count, percent, shell_line, strip_control_characters, TerminalStyle};
use crate::cli::units::{show_duration, show_end};
use crate::run::outcome::{FollowMethod, RegionOutcome, RunOutcome, ThreadOutcome};
use hither_model::units::{counted, plural};

/// Columns that the tables need to be read.
const LEAST_WIDTH: usize = 80;

/// What to type next, as far as the arguments tell.
pub struct NextStep {
    /// A shell would read it as the command that was given.
    command: String,
    by_rule: bool,
    verbose: bool,
}

impl NextStep {
    pub fn new(args: &Args) -> NextStep {
        let words = args.command.iter().map(|w| w.to_string_lossy());
        NextStep {
            command: shell_line(words),
            by_rule: args.placement.is_none(),
            verbose: args.verbose,
        }
    }

    /// A rule knows nothing of the program, a profile does; a placement that did not fit
    /// is looked at more closely.
    fn next_command(&self, sums: &OutcomeTotals) -> Option<String> {
        let command = &self.command;
        if self.by_rule {
            return Some(format!(
                "hither trace -- {command} (for a placement that knows what it shares)"
            ));
        }
        let fits = sums.right == sums.placed && sums.pages_right == sums.pages;
        (!fits && !self.verbose).then(|| {
            format!("hither run -v with the same arguments, for each thread and region; or trace and map again: hither trace -- {command}")
        })
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct OutcomeTotals {
    /// Threads asked for somewhere, those found there, and those that could not be looked at.
    placed: usize,
    right: usize,
    unknown: usize,
    /// Threads that chose their units themselves.
    themselves: usize,
    /// Pages asked for somewhere that have memory, and those of them that are right.
    pages: u64,
    pages_right: u64,
    migrations: u64,
}

impl OutcomeTotals {
    fn of(outcome: &RunOutcome) -> OutcomeTotals {
        let placed = || outcome.threads.iter().filter(|t| t.asked.is_some());
        let nodes = outcome.regions.iter().flat_map(|r| &r.nodes);
        OutcomeTotals {
            placed: placed().count(),
            right: placed().filter(|t| is_right(t)).count(),
            unknown: placed().filter(|t| t.ran.is_none()).count(),
            themselves: outcome.threads.iter().filter(|t| t.chose_itself).count(),
            pages: nodes.map(|(_, pages)| pages).sum(),
            pages_right: outcome.regions.iter().map(|r| r.right).sum(),
            migrations: outcome.threads.iter().filter_map(|t| t.migrations).sum(),
        }
    }
}

/// Where it was asked to be when it was last looked at, and bound to stay.
fn is_right(thread: &ThreadOutcome) -> bool {
    let asked = thread.asked.map(|cpu| cpu.0.to_string());
    thread.ran.is_some() && thread.ran == thread.asked && thread.allowed == asked
}

/// Prints it.
pub fn report(outcome: &RunOutcome, verbose: bool, next: &NextStep) {
    let sums = OutcomeTotals::of(outcome);
    print_stderr(&headline(outcome, &sums));
    if verbose {
        for line in tables(outcome, TerminalStyle::of_stderr()).lines() {
            print_stderr(line);
        }
    }
    for note in &outcome.notes {
        print_stderr(&format!("note: {note}"));
    }
    if let Some(next) = next.next_command(&sums) {
        print_stderr(&format!("next: {next}"));
    }
}

fn headline(outcome: &RunOutcome, sums: &OutcomeTotals) -> String {
    let mut parts = vec![format!(
        "{}{}",
        show_duration(Duration::from_nanos(outcome.duration)),
        show_end(&outcome.end)
    )];
    parts.push(match (sums.placed, sums.unknown) {
        (0, _) => {
            let left = plural(outcome.threads.len() as u64, "thread", "threads");
            format!("{left} left to the system")
        }
        (1, 0) => format!("{} of 1 thread where it was asked to be", sums.right),
        (placed, 0) => format!(
            "{} of {placed} threads where they were asked to be",
            sums.right
        ),
        (placed, unknown) => format!(
            "{} of {placed} threads where they were asked to be ({unknown} ended unseen)",
            sums.right
        ),
    });
    if sums.themselves > 0 {
        parts.push(format!("{} chose their PUs themselves", sums.themselves));
    }
    if sums.pages > 0 {
        let share = sums.pages_right as f64 / sums.pages as f64;
        parts.push(format!(
            "{} of {} pages on their node",
            percent(share),
            count(sums.pages)
        ));
    }
    let moved: u64 = outcome.phases.iter().map(|p| p.pages_moved).sum();
    if !outcome.phases.is_empty() {
        parts.push(format!(
            "{}, {}",
            plural(
                outcome.phases.len() as u64,
                "change of phase",
                "changes of phase"
            ),
            counted(moved, "page moved", "pages moved")
        ));
    }
    parts.push(counted(
        sums.migrations,
        "migration of threads",
        "migrations of threads",
    ));
    let cost = Duration::from_nanos(outcome.cost.cpu);
    let how = match outcome.method {
        FollowMethod::Ptrace => "",
        FollowMethod::Polling => ", by polling",
    };
    parts.push(format!(
        "{:.3} s of CPU for hither{how}",
        cost.as_secs_f64()
    ));
    parts.join(", ")
}

/// A line per thread and per region.
fn tables(outcome: &RunOutcome, style: TerminalStyle) -> String {
    // Launchers give their programs terminals of no width.
    let style = TerminalStyle {
        width: style.width.max(LEAST_WIDTH),
        ..style
    };
    let mut out = String::new();
    if !outcome.threads.is_empty() {
        let header = [
            "process",
            "thread",
            "profile's",
            "name",
            "asked",
            "ran",
            "mask",
            "moves",
            "",
        ];
        let rows = outcome.threads.iter().map(thread_row).collect();
        out += &style.table(&header, rows, &[0, 1, 2, 4, 5, 6, 7]);
    }
    if !outcome.regions.is_empty() {
        let header = ["process", "region", "asked", "right", "by node", ""];
        let rows = outcome.regions.iter().map(region_row).collect();
        out += &style.table(&header, rows, &[0, 2, 3]);
    }
    out
}

fn thread_row(thread: &ThreadOutcome) -> Vec<String> {
    let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let remark = match (is_right(thread), thread.asked) {
        _ if thread.chose_itself => "chose itself",
        (_, None) | (true, _) => "",
        (false, Some(_)) if thread.ran.is_none() => "ended unseen",
        (false, Some(_)) => "elsewhere",
    };
    vec![
        thread.pid.to_string(),
        thread.tid.to_string(),
        shown(thread.thread.map(|t| t.to_string())),
        strip_control_characters(&thread.name),
        shown(thread.asked.map(|cpu| cpu.0.to_string())),
        shown(thread.ran.map(|cpu| cpu.0.to_string())),
        shown(thread.allowed.clone()),
        shown(thread.migrations.map(count)),
        remark.to_owned(),
    ]
}

fn region_row(region: &RegionOutcome) -> Vec<String> {
    let there: u64 = region.nodes.iter().map(|(_, pages)| pages).sum();
    let right = match there {
        0 => "-".to_owned(),
        _ => percent(region.right as f64 / there as f64),
    };
    let nodes = region.nodes.iter();
    let nodes = nodes.map(|(node, pages)| format!("N#{}: {}", node.0, count(*pages)));
    vec![
        region.pid.to_string(),
        strip_control_characters(&region.name),
        count(region.asked),
        right,
        nodes.collect::<Vec<_>>().join(", "),
        if region.nearest { "nearest" } else { "" }.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_profile::RunEnd;
    use hither_sys::{Cpu, Node};

    fn thread(asked: Option<u32>, ran: Option<u32>, allowed: &str) -> ThreadOutcome {
        ThreadOutcome {
            asked: asked.map(Cpu),
            ran: ran.map(Cpu),
            allowed: ran.map(|_| allowed.to_owned()),
            migrations: Some(1),
            ..ThreadOutcome::default()
        }
    }

    fn outcome() -> RunOutcome {
        RunOutcome {
            duration: 1_500_000_000,
            end: RunEnd::Exited { status: 3 },
            threads: vec![
                thread(Some(2), Some(2), "2"),
                thread(Some(3), Some(1), "1"),
                thread(Some(3), Some(3), "0-7"),
                thread(Some(4), None, ""),
                thread(None, Some(1), "0-7"),
            ],
            regions: vec![RegionOutcome {
                asked: 100,
                nodes: vec![(Node(0), 20), (Node(1), 60)],
                right: 60,
                ..RegionOutcome::default()
            }],
            ..RunOutcome::default()
        }
    }

    #[test]
    fn what_was_asked_is_counted_against_what_was_got() {
        let outcome = outcome();
        let sums = OutcomeTotals::of(&outcome);
        let expected = OutcomeTotals {
            placed: 4,
            right: 1,
            unknown: 1,
            themselves: 0,
            pages: 80,
            pages_right: 60,
            migrations: 5,
        };
        assert_eq!(sums, expected);
        assert_eq!(
            headline(&outcome, &sums),
            "1.5 s, exit status 3, 1 of 4 threads where they were asked to be (1 ended unseen), 75.0 % of 80 pages on their node, 5 migrations of threads, 0.000 s of CPU for hither"
        );
        let style = TerminalStyle {
            width: 100,
            height: 40,
            colour: false,
            unicode: false,
        };
        let tables = tables(&outcome, style);
        assert_eq!(tables.matches("elsewhere").count(), 2, "{tables}");
        assert!(tables.contains("N#0: 20, N#1: 60"), "{tables}");
    }

    #[test]
    fn what_comes_next() {
        let next = |by_rule| NextStep {
            command: "./app 'a b'".to_owned(),
            by_rule,
            verbose: false,
        };
        let sums = OutcomeTotals::of(&outcome());
        let check = |by_rule, sums: &OutcomeTotals, expected: Option<&str>| {
            let line = next(by_rule).next_command(sums);
            let start = expected.unwrap_or("");
            assert_eq!(line.is_some(), expected.is_some());
            assert!(line.is_none_or(|l| l.starts_with(start)));
        };
        check(true, &sums, Some("hither trace -- ./app 'a b'"));
        check(false, &sums, Some("hither run -v"));
        check(false, &OutcomeTotals::default(), None);
    }
}
