//! One node's memory serves much more traffic (fetches, or accesses where those were not counted) than
//! the others', for threads of other nodes.
//!
//! Found when the imbalance matters (`memory_balance.rs`); its severity is what could be served elsewhere without
//! making any of it remote. To deal out all pages evens the load too, but what is local now is so by chance then: it
//! is offered only where it takes more off the busiest memory than it makes remote.
use super::common::{fits_in_caches, format_percent, remote_accesses_text, unit};
use super::FindingContext;
use crate::metrics::memory_balance::MemoryImbalance;
use hither_profile::{Finding, FindingKind, FindingPicture, SuggestedFix};

/// Nodes named.
const NAMED: usize = 4;

pub fn find(case: &FindingContext) -> Vec<Finding> {
    let found = imbalance(case).map(|found| finding(case, &found));
    found.into_iter().collect()
}

/// Of the memories, where threads and pages are.
pub fn imbalance(case: &FindingContext) -> Option<MemoryImbalance> {
    if case.residence.nodes < 2 || fits_in_caches(case) {
        return None;
    }
    MemoryImbalance::of(&case.residence.traffic(&case.analysis.traffic))
}

fn finding(case: &FindingContext, found: &MemoryImbalance) -> Finding {
    let (served, busiest) = (&found.served, found.busiest);
    let unit = unit(case);
    let shown = served.iter().take(NAMED);
    let shown: Vec<String> = shown
        .map(|(served, n)| format!("node {n} {}", format_percent(*served)))
        .collect();
    let rest = match served.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", each of the {more} others less"),
    };
    let mut evidence = vec![
        format!(
            "Evenly, each of the {} nodes in use would serve {}; now it is {}{rest}.",
            served.len(),
            format_percent(1.0 / served.len() as f64),
            shown.join(", ")
        ),
        format!(
            "{} of all {unit} come to node {busiest} from other nodes, whose memory has less to do.",
            format_percent(found.foreign)
        ),
    ];
    evidence.extend(remote_accesses_text(case));
    Finding {
        kind: FindingKind::NodeImbalance,
        severity: found.movable.clamp(0.0, 1.0),
        severity_of: unit,
        title: format!(
            "The memory of node {busiest} serves {} of the {unit}, {:.1} times its share",
            format_percent(found.most()),
            found.times_its_share()
        ),
        evidence,
        object: None,
        lines: Vec::new(),
        fixes: fixes(case, found),
        picture: FindingPicture::Pages,
    }
}

fn fixes(case: &FindingContext, found: &MemoryImbalance) -> Vec<SuggestedFix> {
    let commands = &case.commands;
    let mut fixes = vec![SuggestedFix {
        what:
            "Let pages that belong to a node lie there, and the others where least is to be served."
                .to_owned(),
        copy: format!(
            "hither map {} --data balanced -o {}\nhither run -p {} -- {}",
            commands.profile, commands.placement, commands.placement, commands.program
        ),
    }];
    if found.is_evened_by_dealing_out() {
        fixes.push(SuggestedFix {
            what: "Without hither, deal the pages out to the nodes: each memory serves alike, and accesses are local only by chance."
                .to_owned(),
            copy: format!("numactl --interleave=all -- {}", commands.program),
        });
    }
    fixes
}
