//! Whether a profile keeps within limits, and how it compares with an older one.
use super::assessment::{Assessment, AssessmentInput, AssessmentOptions};
use crate::report::build::compare::{compare_profiles, sampling_error_of_difference};
use crate::report::page::{ChangeKind, FindingChange, ProfileComparison};
use anyhow::{bail, Context, Result};
use hither_model::metrics::figures::{EXCLUSIVITY, REMOTE, REMOTE_FETCHES};
use hither_model::units::percent;
use hither_profile::strip_control_characters;
use hither_profile::FindingKind;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The limits, shares from 0 to 1.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// Most memory traffic to another node's memory.
    pub max_remote: Option<f64>,
    /// Least E_app, threads placed best.
    pub min_exclusivity: Option<f64>,
    /// Kinds of which no finding may be.
    pub absent: Vec<FindingKind>,
    /// An older profile of the program, which this one must not be worse than.
    pub baseline: Option<PathBuf>,
    /// Shares that differ by no more are the same.
    pub tolerance: f64,
}

/// A condition and whether it holds.
#[derive(Debug, Serialize)]
pub struct CheckCondition {
    /// The option that set it.
    pub option: &'static str,
    pub holds: bool,
    /// A line for people, with the figure.
    pub said: String,
}

#[derive(Debug, Serialize)]
pub struct CheckOutcome {
    pub profile: String,
    pub holds: bool,
    /// As `hither stat` says it, a sentence without its full stop.
    pub verdict: String,
    pub conditions: Vec<CheckCondition>,
    pub comparison: Option<ProfileComparison>,
}

/// Reads, computes, compares.
///
/// # Errors
/// One sentence when there is no condition, a profile cannot be read, or it does not say
/// what a condition asks for.
pub fn check(
    profile: &Path,
    on: &AssessmentOptions,
    options: &CheckOptions,
) -> Result<CheckOutcome> {
    let limits = [options.max_remote, options.min_exclusivity];
    let is_bare = options.absent.is_empty() && options.baseline.is_none();
    if limits.iter().all(Option::is_none) && is_bare {
        bail!("there is nothing to check: give --max-remote, --min-exclusivity, --no, or --baseline with --fail-on-regression");
    }
    let given = AssessmentInput::read(profile, on)?;
    let assessment = given.assess(given.page_table());
    let mut conditions = check_limits(options, &given, &assessment)?;
    conditions.extend(
        options
            .absent
            .iter()
            .map(|&kind| check_absent(kind, &assessment)),
    );
    let comparison = match &options.baseline {
        Some(_) => Some(compare_with_baseline(options, &given, &assessment)?),
        None => None,
    };
    if let Some(comparison) = &comparison {
        let report = &assessment.analysis.report;
        let sampled =
            sampling_error_of_difference(comparison.run.sampling_error, report.run.sampling_error);
        conditions.extend(regressions(comparison, options.tolerance.max(sampled)));
    }
    Ok(CheckOutcome {
        profile: profile.display().to_string(),
        holds: conditions.iter().all(|c| c.holds),
        verdict: assessment.analysis.report.verdict.sentence.clone(),
        conditions,
        comparison,
    })
}

fn check_limits(
    options: &CheckOptions,
    given: &AssessmentInput,
    assessment: &Assessment,
) -> Result<Vec<CheckCondition>> {
    let figure = |names: &[&str], option: &str| {
        let figures = assessment.figures();
        let named = |name: &&str| figures.iter().find(|f| f.name == *name);
        let found = names.iter().find_map(named);
        let value = found.and_then(|f| Some((f.name.clone(), f.value?)));
        value.with_context(|| {
            format!(
                "{} has no access to memory, so {option} says nothing; trace a run that does some work",
                given.file.display()
            )
        })
    };
    let nodes = assessment.analysis.report.setup.nodes;
    let mut out = Vec::new();
    if let Some(most) = options.max_remote {
        let (name, value) = figure(&[REMOTE_FETCHES, REMOTE], "--max-remote")?;
        out.push(CheckCondition {
            option: "--max-remote",
            holds: value <= most,
            said: format!(
                "{name}: {}, at most {} wanted ({nodes} nodes)",
                percent(value),
                percent(most)
            ),
        });
    }
    if let Some(least) = options.min_exclusivity {
        let (_, value) = figure(&[EXCLUSIVITY], "--min-exclusivity")?;
        out.push(CheckCondition {
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

fn check_absent(kind: FindingKind, assessment: &Assessment) -> CheckCondition {
    let found: Vec<_> = assessment
        .findings
        .iter()
        .filter(|f| f.kind == kind)
        .collect();
    let said = match found.as_slice() {
        [] => format!("no {} finding", kind.name()),
        [one] => format!("{}: {}", kind.name(), strip_control_characters(&one.title)),
        [first, rest @ ..] => format!(
            "{}: {}; and {} more",
            kind.name(),
            strip_control_characters(&first.title),
            rest.len()
        ),
    };
    CheckCondition {
        option: "--no",
        holds: found.is_empty(),
        said,
    }
}

fn compare_with_baseline(
    options: &CheckOptions,
    given: &AssessmentInput,
    assessment: &Assessment,
) -> Result<ProfileComparison> {
    let baseline = options.baseline.as_ref().context("no baseline")?;
    let before = given.load_other(baseline)?;
    let mut after = given.comparison_side(assessment);
    for figure in &mut after.figures {
        if TOLD_BY.contains(&figure.name.as_str()) {
            figure.spread = options.tolerance;
        }
    }
    Ok(compare_profiles(before, &after, options.tolerance))
}

/// Figures by which a regression is told. Fetches are none of them: they are estimated, so that shares
/// of few of them differ from run to run.
const TOLD_BY: [&str; 2] = [REMOTE, EXCLUSIVITY];

/// Findings that make no regression; `--no` asks for them. Communication differs so much
/// between runs of one program (`metrics/figures.rs`) that what is found of it comes and
/// goes. A finding about all accesses is covered by the figures above, of which a finding
/// says only that they passed a threshold: a memory that serves 1.5 times its share in one
/// run serves 1.4 times in the next.
const OF_THE_RUN: [FindingKind; 4] = [
    FindingKind::CommunicationImbalance,
    FindingKind::UnstablePhases,
    FindingKind::NodeImbalance,
    FindingKind::RemoteAccesses,
];

fn regressions(comparison: &ProfileComparison, tolerance: f64) -> Vec<CheckCondition> {
    let told = comparison.metrics.iter();
    let told = told.filter(|m| TOLD_BY.contains(&m.name.as_str()));
    let mut out: Vec<CheckCondition> = told
        .filter_map(|m| {
            let (before, after) = (m.before?, m.after?);
            Some(CheckCondition {
                option: "--fail-on-regression",
                holds: m.change != ChangeKind::Worse,
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
        out.push(CheckCondition {
            option: "--fail-on-regression",
            holds: true,
            said: "no finding about a data structure is new or worse".to_owned(),
        });
    }
    out.extend(worse.into_iter().map(|f| CheckCondition {
        option: "--fail-on-regression",
        holds: false,
        said: match (f.before, f.after) {
            (Some(before), Some(after)) => format!(
                "worse: {}: {} ({} of the accesses, {} in the baseline)",
                f.kind.name(),
                strip_control_characters(&f.title),
                percent(after),
                percent(before)
            ),
            _ => format!(
                "new: {}: {}",
                f.kind.name(),
                strip_control_characters(&f.title)
            ),
        },
    }));
    out
}

fn is_worse(change: &FindingChange, tolerance: f64) -> bool {
    let counts = !OF_THE_RUN.contains(&change.kind);
    match change.change {
        ChangeKind::Worse => counts,
        ChangeKind::New => counts && change.after.is_some_and(|severity| severity > tolerance),
        _ => false,
    }
}
