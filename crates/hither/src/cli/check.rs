//! `hither check`: does a profile keep within limits? A gate for scripts and CI.
use super::printed::print;
use super::report::on::ReportMachineArgs;
use super::style::{self, strip_control_characters};
use super::value_parsers::{one_of, share_to};
use crate::app::check::{check, CheckCondition, CheckOptions, CheckOutcome};
use anyhow::Result;
use clap::builder::TypedValueParser;
use hither_model::metrics::figures::SHARE_SPREAD;
use hither_profile::FindingKind;
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

    /// Fail when more of the memory traffic (fetches, or accesses where those were not counted) goes
    /// to another node's memory: 10% or 0.1
    #[arg(long, value_name = "SHARE", value_parser = share_to(1.0))]
    max_remote: Option<f64>,

    /// Fail when E_app, threads placed best, is lower: 80% or 0.8
    #[arg(long, value_name = "SHARE", value_parser = share_to(1.0))]
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
    #[arg(long, value_name = "SHARE", value_parser = share_to(1.0), default_value_t = SHARE_SPREAD, requires = "baseline")]
    tolerance: f64,

    /// Everything as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    on: ReportMachineArgs,
}

impl Args {
    fn limits(&self) -> CheckOptions {
        CheckOptions {
            max_remote: self.max_remote,
            min_exclusivity: self.min_exclusivity,
            absent: self.no.clone(),
            baseline: self.baseline.clone(),
            tolerance: self.tolerance,
        }
    }
}

fn kinds() -> impl TypedValueParser<Value = FindingKind> {
    one_of(FindingKind::ALL.map(|kind| (kind, kind.name().into())))
}

/// Reads, computes, compares, prints.
///
/// # Errors
/// One sentence when there is no condition, a profile cannot be read, or it does not say
/// what a condition asks for.
pub fn run(args: &Args) -> Result<ExitCode> {
    let outcome = check(&args.profile, &args.on.options(), &args.limits())?;
    let text = if args.json {
        format!("{:#}\n", serde_json::to_value(&outcome)?)
    } else {
        text(&outcome, args)
    };
    // The status is what counts, and `| head -1` is no reason for another.
    print(&text)?;
    Ok(match outcome.holds {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(BROKEN),
    })
}

fn text(outcome: &CheckOutcome, args: &Args) -> String {
    let line = |c: &CheckCondition| {
        format!(
            "{}  {}\n",
            if c.holds { "ok  " } else { "FAIL" },
            strip_control_characters(&c.said)
        )
    };
    let mut out: String = outcome.conditions.iter().map(line).collect();
    out.push_str(&format!("note  verdict: {}\n", outcome.verdict));
    for note in outcome.comparison.iter().flat_map(|c| &c.notes) {
        out.push_str(&format!("note  {}\n", strip_control_characters(note)));
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
