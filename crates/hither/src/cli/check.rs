//! `hither check`: does a profile keep within limits? A gate for scripts and CI.
use super::report::on::On;
use super::style::{self, clean, percent};
use crate::app::assessment::{Given, Judged};
use crate::report::build::compare::{compare, error};
use crate::report::page::{Change, Comparison, FindingChange};
use anyhow::{bail, Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hither_model::metrics::figures::{EXCLUSIVITY, REMOTE, SHARE_SPREAD};
use hither_profile::FindingKind;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit status when a condition does not hold.
const BROKEN: u8 = 1;

const EXAMPLES: &str = "\
Examples:
  hither check app.hither --max-remote 10% --min-exclusivity 0.8
  hither check app.hither --no first-touch,false-sharing
  hither check app.hither --baseline old.hither --fail-on-regression

Exits with 0 when all holds, with 1 and a line for each reason when it does not, with 2 when
it cannot be told.";

/// Check a profile against limits or an older one: a gate for scripts and CI
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Profile, as `hither trace` wrote it
    profile: PathBuf,

    /// Fail when more of the accesses go to another node's memory: 10% or 0.1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    max_remote: Option<f64>,

    /// Fail when E_app, threads placed best, is lower: 80% or 0.8
    #[arg(long, value_name = "SHARE", value_parser = share)]
    min_exclusivity: Option<f64>,

    /// Fail when there is a finding of this kind; may be given several times
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kinds())]
    no: Vec<FindingKind>,

    /// An older profile of the program, counted on the same machine
    #[arg(long, value_name = "PROFILE", requires = "fail_on_regression")]
    baseline: Option<PathBuf>,

    /// Fail when remote accesses or E_app are worse than the baseline's, or a finding about a
    /// data structure is worse or new
    #[arg(long, requires = "baseline")]
    fail_on_regression: bool,

    /// Shares that differ by no more are the same; what is not the program's doing differs by
    /// up to 5 points from run to run
    #[arg(long, value_name = "SHARE", value_parser = share, default_value_t = SHARE_SPREAD, requires = "baseline")]
    tolerance: f64,

    /// Everything as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    on: On,
}

/// `10%`, `0.1` -> 0.1.
fn share(text: &str) -> Result<f64, String> {
    let wrong = || "write a share as 10% or 0.1, from 0 to 100%".to_owned();
    let (number, whole) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let value = number.parse::<f64>().map_err(|_| wrong())? / whole;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(wrong())
    }
}

fn kinds() -> impl TypedValueParser<Value = FindingKind> {
    let names = FindingKind::ALL.map(FindingKind::name);
    PossibleValuesParser::new(names).map(|name| {
        let mut all = FindingKind::ALL.into_iter();
        let kind = all.find(|kind| kind.name() == name);
        kind.expect("one of the possible values")
    })
}

/// A condition and whether it holds.
#[derive(Debug, Serialize)]
struct Condition {
    /// The option that set it.
    option: &'static str,
    holds: bool,
    /// A line for people, with the figure.
    said: String,
}

#[derive(Debug, Serialize)]
struct Outcome {
    profile: String,
    holds: bool,
    conditions: Vec<Condition>,
    comparison: Option<Comparison>,
}

/// Reads, computes, compares, prints.
///
/// # Errors
/// One sentence when there is no condition, a profile cannot be read, or it does not say
/// what a condition asks for.
pub fn run(args: &Args) -> Result<ExitCode> {
    let limits = [args.max_remote, args.min_exclusivity];
    if limits.iter().all(Option::is_none) && args.no.is_empty() && args.baseline.is_none() {
        bail!("there is nothing to check: give --max-remote, --min-exclusivity, --no, or --baseline with --fail-on-regression");
    }
    let given = Given::read(&args.profile, &args.on.options())?;
    let judged = given.judge();
    let mut conditions = limited(args, &given, &judged)?;
    conditions.extend(args.no.iter().map(|&kind| absent(kind, &judged)));
    let comparison = match &args.baseline {
        Some(_) => Some(compared(args, &given, &judged)?),
        None => None,
    };
    if let Some(comparison) = &comparison {
        let report = &judged.analysis.report;
        let sampled = error(comparison.run.sampling_error, report.run.sampling_error);
        conditions.extend(regressions(comparison, args.tolerance.max(sampled)));
    }
    let outcome = Outcome {
        profile: args.profile.display().to_string(),
        holds: conditions.iter().all(|c| c.holds),
        conditions,
        comparison,
    };
    let text = if args.json {
        format!("{:#}\n", serde_json::to_value(&outcome)?)
    } else {
        text(&outcome, args)
    };
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        // The status is what counts, and `| head -1` is no reason for another.
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {}
        result => result.context("cannot write what was found")?,
    }
    Ok(match outcome.holds {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(BROKEN),
    })
}

fn limited(args: &Args, given: &Given, judged: &Judged) -> Result<Vec<Condition>> {
    let figure = |name: &str, option: &str| {
        let figures = judged.figures();
        let value = figures.into_iter().find(|f| f.name == name);
        let value = value.and_then(|f| f.value);
        value.with_context(|| {
            format!(
                "{} has no access to memory, so {option} says nothing; trace a run that does some work",
                given.file.display()
            )
        })
    };
    let nodes = judged.analysis.report.setup.nodes;
    let mut out = Vec::new();
    if let Some(most) = args.max_remote {
        let value = figure(REMOTE, "--max-remote")?;
        out.push(Condition {
            option: "--max-remote",
            holds: value <= most,
            said: format!(
                "remote accesses: {}, at most {} wanted ({nodes} nodes)",
                percent(value),
                percent(most)
            ),
        });
    }
    if let Some(least) = args.min_exclusivity {
        let value = figure(EXCLUSIVITY, "--min-exclusivity")?;
        out.push(Condition {
            option: "--min-exclusivity",
            holds: value >= least,
            said: format!(
                "exclusivity E_app: {}, at least {} wanted ({nodes} nodes)",
                percent(value),
                percent(least)
            ),
        });
    }
    Ok(out)
}

fn absent(kind: FindingKind, judged: &Judged) -> Condition {
    let found: Vec<_> = judged.findings.iter().filter(|f| f.kind == kind).collect();
    let said = match found.as_slice() {
        [] => format!("no {} finding", kind.name()),
        [one] => format!("{}: {}", kind.name(), clean(&one.title)),
        [first, rest @ ..] => format!(
            "{}: {}; and {} more",
            kind.name(),
            clean(&first.title),
            rest.len()
        ),
    };
    Condition {
        option: "--no",
        holds: found.is_empty(),
        said,
    }
}

fn compared(args: &Args, given: &Given, judged: &Judged) -> Result<Comparison> {
    let baseline = args.baseline.as_ref().context("no baseline")?;
    let before = given.other(baseline)?;
    let mut after = given.side(judged);
    for figure in &mut after.figures {
        if TOLD_BY.contains(&figure.name.as_str()) {
            figure.spread = args.tolerance;
        }
    }
    Ok(compare(before, &after, args.tolerance))
}

/// Figures that a regression is told by.
const TOLD_BY: [&str; 2] = [REMOTE, EXCLUSIVITY];

/// Findings that make no regression; `--no` asks for them. Communication differs so much
/// between runs of one program (`metrics/figures.rs`) that what is found of it comes and
/// goes. What is found of all accesses is told by the figures above, of which a finding
/// says only that they passed a threshold: a memory that serves 1.5 times its share in one
/// run serves 1.4 times in the next.
const OF_THE_RUN: [FindingKind; 4] = [
    FindingKind::CommunicationImbalance,
    FindingKind::UnstablePhases,
    FindingKind::NodeImbalance,
    FindingKind::RemoteAccesses,
];

fn regressions(comparison: &Comparison, tolerance: f64) -> Vec<Condition> {
    let told = comparison.metrics.iter();
    let told = told.filter(|m| TOLD_BY.contains(&m.name.as_str()));
    let mut out: Vec<Condition> = told
        .filter_map(|m| {
            let (before, after) = (m.before?, m.after?);
            Some(Condition {
                option: "--fail-on-regression",
                holds: m.change != Change::Worse,
                said: format!(
                    "{}: {}, {} in the baseline",
                    m.name,
                    percent(after),
                    percent(before)
                ),
            })
        })
        .collect();
    let worse = comparison.findings.iter();
    let worse: Vec<_> = worse.filter(|f| is_worse(f, tolerance)).collect();
    if worse.is_empty() {
        out.push(Condition {
            option: "--fail-on-regression",
            holds: true,
            said: "no finding about a data structure is new or worse".to_owned(),
        });
    }
    out.extend(worse.into_iter().map(|f| Condition {
        option: "--fail-on-regression",
        holds: false,
        said: match (f.before, f.after) {
            (Some(before), Some(after)) => format!(
                "worse: {}: {} ({} of the accesses, {} in the baseline)",
                f.kind.name(),
                clean(&f.title),
                percent(after),
                percent(before)
            ),
            _ => format!("new: {}: {}", f.kind.name(), clean(&f.title)),
        },
    }));
    out
}

fn is_worse(change: &FindingChange, tolerance: f64) -> bool {
    let counts = !OF_THE_RUN.contains(&change.kind);
    match change.change {
        Change::Worse => counts,
        Change::New => counts && change.after.is_some_and(|severity| severity > tolerance),
        _ => false,
    }
}

fn text(outcome: &Outcome, args: &Args) -> String {
    let line = |c: &Condition| format!("{}  {}\n", if c.holds { "ok  " } else { "FAIL" }, c.said);
    let mut out: String = outcome.conditions.iter().map(line).collect();
    for note in outcome.comparison.iter().flat_map(|c| &c.notes) {
        out.push_str(&format!("note  {}\n", clean(note)));
    }
    if !outcome.holds {
        let words = ["hither", "report", "--text", &outcome.profile];
        let mut words: Vec<String> = words.map(str::to_owned).into();
        words.extend(args.on.words());
        if let Some(baseline) = &args.baseline {
            words.extend(["--before".to_owned(), baseline.display().to_string()]);
        }
        out.push_str(&format!("next: {}\n", style::shell_line(words.iter())));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        let check = |text: &str, want: Option<f64>| assert_eq!(share(text).ok(), want, "{text}");
        check("10%", Some(0.1));
        check("10 %", Some(0.1));
        check("0.1", Some(0.1));
        check("0", Some(0.0));
        check("1", Some(1.0));
        check("100%", Some(1.0));
        check("10", None);
        check("101%", None);
        check("-1%", None);
        check("nan", None);
        check("NaN%", None);
        check("", None);
        check("%", None);
        check("ten", None);
    }
}
