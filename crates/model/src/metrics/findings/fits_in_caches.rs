//! All data fits in the caches (OPT eq. 7): pages matter little wherever they lie. With one
//! node they do not matter anyway.
use super::common::fits_in_caches;
use super::FindingContext;
use crate::units::show_bytes;
use hither_profile::{Finding, FindingKind, FindingPicture, SuggestedFix, TrafficUnit};

pub fn find(case: &FindingContext) -> Vec<Finding> {
    let report = &case.analysis.report;
    let nothing = report.run.footprint == 0 || case.residence.nodes < 2;
    if nothing || !fits_in_caches(case) {
        return Vec::new();
    }
    // What was used between the slices of a sample only was not seen.
    let at_least = if report.run.sampling_error > 0.0 {
        "at least "
    } else {
        ""
    };
    vec![Finding {
        kind: FindingKind::FitsInCaches,
        // Nothing is wrong: it comes last.
        severity: 0.0,
        severity_of: TrafficUnit::Accesses,
        title: "All data fits in the caches: placing pages gains little".to_owned(),
        evidence: vec![format!(
            "The run uses {at_least}{} of memory; the caches together hold {} (eq. 7 of OPT).",
            show_bytes(report.run.footprint),
            show_bytes(report.setup.cache_bytes)
        )],
        object: None,
        lines: Vec::new(),
        fixes: vec![SuggestedFix {
            what: "Trace a larger problem if that is what will be run.".to_owned(),
            copy: String::new(),
        }],
        picture: FindingPicture::Pages,
    }]
}
