//! One node's memory serves much more traffic (fetches, or accesses where those were not counted) than
//! the others', for threads of other nodes.
//!
//! With S[n] the traffic that the memory of node n serves, and the mean over the nodes that
//! make or serve any (as B_comm, Locality and Balance eq. 2, of memories in place of threads):
//!
//! ```text
//!   imbalance = max(S) / mean(S) - 1
//! ```
//! Found when it is at least [`IMBALANCE`] and at least [`WORTH`] of all traffic could be
//! served elsewhere without making any of it remote: what the busiest node serves above
//! the mean, but no more than it serves for other nodes. That share is the severity. A node
//! that is busy with its own threads is left alone: there work is uneven, not memory.
use super::common::{fits_in_caches, format_percent, remote_accesses_text, unit};
use super::FindingContext;
use crate::metrics::residence::NodeTraffic;
use hither_profile::{Finding, FindingKind, FindingPicture, NodeIx, SuggestedFix};

/// Half again as much as the mean. Ours: threads and pages that are spread well still differ
/// by some tens of per cent (the ends of a grid have one neighbour), and a memory that serves
/// all has N - 1 (1 with two nodes, 3 with four).
const IMBALANCE: f64 = 0.5;
/// Of all traffic. Ours: as many as are let pass as wrongly placed (1 - ACC_RIGHT).
const WORTH: f64 = 0.1;
/// Nodes named.
const NAMED: usize = 4;

pub fn find(case: &FindingContext) -> Vec<Finding> {
    if case.residence.nodes < 2 || fits_in_caches(case) {
        return Vec::new();
    }
    let traffic = case.residence.traffic(&case.analysis.traffic);
    assess(case, &traffic).into_iter().collect()
}

fn assess(case: &FindingContext, traffic: &NodeTraffic) -> Option<Finding> {
    let nodes = (0..case.residence.nodes as u32).map(NodeIx);
    let mut served: Vec<(u64, NodeIx)> = nodes
        .map(|n| (traffic.served_by(n), n))
        .filter(|(served, n)| *served > 0 || traffic.made_by(*n) > 0)
        .collect();
    served.sort_by_key(|&(served, n)| (std::cmp::Reverse(served), n));
    let &(most, busiest) = served.first()?;
    let all = traffic.total_accesses() as f64;
    let mean = all / served.len() as f64;
    let foreign = most as f64 - traffic.between(busiest, busiest) as f64;
    let movable = foreign.min(most as f64 - mean) / all;
    if all == 0.0 || most as f64 / mean - 1.0 < IMBALANCE || movable < WORTH {
        return None;
    }
    let unit = unit(case);
    let share = |count: f64| format_percent(count / all);
    let shown = served.iter().take(NAMED);
    let shown: Vec<String> = shown
        .map(|(served, n)| format!("node {n} {}", share(*served as f64)))
        .collect();
    let rest = match served.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", each of the {more} others less"),
    };
    let mut evidence = vec![
        format!(
            "Evenly, each of the {} nodes in use would serve {}; now it is {}{rest}.",
            served.len(),
            share(mean),
            shown.join(", ")
        ),
        format!(
            "{} of all {unit} come to node {busiest} from other nodes, whose memory has less to do.",
            share(foreign)
        ),
    ];
    evidence.extend(remote_accesses_text(case));
    Some(Finding {
        kind: FindingKind::NodeImbalance,
        severity: movable.clamp(0.0, 1.0),
        severity_of: unit,
        title: format!(
            "The memory of node {busiest} serves {} of the {unit}, {:.1} times its share",
            share(most as f64),
            most as f64 / mean
        ),
        evidence,
        object: None,
        lines: Vec::new(),
        fixes: fixes(case),
        picture: FindingPicture::Pages,
    })
}

fn fixes(case: &FindingContext) -> Vec<SuggestedFix> {
    let commands = &case.commands;
    vec![
        SuggestedFix {
            what: "Let pages that belong to a node lie there, and the others where least is to be served."
                .to_owned(),
            copy: format!(
                "hither map {} --data balanced -o {}\nhither run -p {} -- {}",
                commands.profile, commands.placement, commands.placement, commands.program
            ),
        },
        SuggestedFix {
            what: "Without hither, deal the pages out to the nodes: each memory serves alike, and accesses are local only by chance."
                .to_owned(),
            copy: format!("numactl --interleave=all -- {}", commands.program),
        },
    ]
}
