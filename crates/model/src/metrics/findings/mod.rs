//! What is wrong with a program's use of memory, found in its profile (TABARNAC section 7
//! leaves this to future work). One file per kind of finding; a new one is a file and a
//! line in `FINDING_RULES`. A finder is silent unless its evidence is in the profile, and each has
//! a program that it finds something in and a twin that it finds nothing in
//! (`tests/findings`).
mod common;
mod communication_imbalance;
mod concentrated;
mod false_sharing;
mod falsely_shared;
mod first_touch;
mod fits_in_caches;
mod fix_snippets;
mod large_pages;
mod node_imbalance;
mod padding;
mod read_mostly;
mod remote;
mod repeated;
mod shared_by_all;
mod unstable_phases;

use super::metrics_report::ProfileAnalysis;
use super::residence::NodeResidence;
use hither_profile::{Finding, Profile};

/// What finders look at.
pub struct FindingContext<'a> {
    /// The run that is examined.
    pub profile: &'a Profile,
    /// Of pages of 4 KiB.
    pub analysis: &'a ProfileAnalysis,
    /// Where threads run and pages lie.
    pub residence: &'a NodeResidence,
    /// E_app by size of page, from 4 KiB up: bytes and the best E_app.
    pub sizes: &'a [(u64, f64)],
    /// The share of each node in the memory traffic of the run.
    pub work: Vec<f64>,
    /// Command lines to copy.
    pub commands: SuggestedCommands,
}

/// Command lines of this profile and program, quoted for a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuggestedCommands {
    /// `app.hither`, with the options that name the machine where the user did.
    pub profile: String,
    /// `app.place.json`
    pub placement: String,
    /// `./app 12`
    pub program: String,
}

/// A finder: what it finds, in any order.
type FindingRule = fn(&FindingContext) -> Vec<Finding>;

/// Every finder, one line each.
const FINDING_RULES: &[FindingRule] = &[
    first_touch::find,
    shared_by_all::find,
    concentrated::find,
    false_sharing::find,
    read_mostly::find,
    large_pages::find,
    remote::find,
    node_imbalance::find,
    communication_imbalance::find,
    unstable_phases::find,
    fits_in_caches::find,
];

/// Of what is found in a library's own data, in the order of findings. Ours: where the program's data is about as
/// bad, the finding that can be acted on comes first.
const OF_LIBRARY: f64 = 0.5;

/// All findings, worst first.
#[must_use]
pub fn find_all(case: &FindingContext) -> Vec<Finding> {
    let mut found: Vec<Finding> = FINDING_RULES
        .iter()
        .flat_map(|finder| finder(case))
        .collect();
    let weight = |f: &Finding| match f.object {
        Some(object) if common::is_of_library(case, object) => f.severity * OF_LIBRARY,
        _ => f.severity,
    };
    found.sort_by(|a, b| {
        let worst = weight(b).total_cmp(&weight(a));
        worst.then_with(|| (a.kind, a.object).cmp(&(b.kind, b.object)))
    });
    repeated::say_once(case, &mut found);
    found
}

#[cfg(test)]
mod tests;
