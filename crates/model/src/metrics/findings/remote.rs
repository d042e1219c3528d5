//! Much memory traffic (fetches, or accesses where those were not counted) goes to another node's memory, and need not.
//!
//! With MemAcc[p][n] of OPT eq. 5, threads where they run and page p on node h(p):
//!
//! ```text
//!   local     = sum over p of MemAcc[p][h(p)]      / all accesses
//!   reachable = sum over p of max n of MemAcc[p][n] / all accesses   (E_app, OPT eq. 6)
//! ```
//! less what does not last (`lasting_use.rs`).
//! Found when Acc_app (OPT eq. 9) is below [`ACC_RIGHT`] and reachable - local at least
//! [`MIN_LOCAL_GAIN`]; that difference is the severity. What is remote because nodes share pages is
//! left to other findings: of first touch, pages have to belong to nodes. The verdict on data has the same conditions.
use super::common::{
    fits_in_caches, format_percent, hottest_lines, remote_accesses_text, structure_label,
    traffic_share, unit,
};
use super::FindingContext;
use crate::locality::AccessLocality;
use crate::metrics::belonging::part_that_lasts;
use crate::metrics::structures::StructureMetrics;
use crate::metrics::thresholds::{ACC_RIGHT, MIN_LOCAL_GAIN};
use hither_profile::{Finding, FindingKind, FindingPicture, NodeIx, SuggestedFix};

/// Pairs of nodes and structures named.
const NAMED: usize = 3;
/// Pairs of nodes and structures with less of the run's traffic are not named.
const LEAST_SHARE: f64 = 0.01;
/// A structure with most of what could be local is what the finding is about.
const MOST: f64 = 0.5;

/// Traffic of one page.
#[derive(Clone, Copy, Default)]
struct PageLocality {
    all: f64,
    local: f64,
    /// With the page where it is used most.
    reachable: f64,
}

pub fn find(case: &FindingContext) -> Vec<Finding> {
    if case.residence.nodes < 2 || fits_in_caches(case) || !placed_or_owned(case) {
        return Vec::new();
    }
    let pages = page_localities(case);
    let sum = |of: fn(&PageLocality) -> f64| pages.iter().map(of).sum::<f64>();
    let (all, local, reachable) = (sum(|p| p.all), sum(|p| p.local), sum(|p| p.reachable));
    let right = pages.iter().filter(|p| p.local >= p.reachable);
    let right = right.map(|p| p.all).sum::<f64>();
    let is_right = right / all >= ACC_RIGHT;
    if all == 0.0 || is_right || reachable / all - local / all < MIN_LOCAL_GAIN {
        return Vec::new();
    }
    vec![finding(case, &pages, all, (local / all, reachable / all))]
}

/// Of first touch the verdict says where pages belong to no node; a placement was made all the same.
fn placed_or_owned(case: &FindingContext) -> bool {
    let pages = case.analysis.report.pages.as_ref();
    case.residence.from_placement || pages.is_some_and(|p| p.traffic.belongs())
}

/// By position in the table; nothing where the place is not known.
fn page_localities(case: &FindingContext) -> Vec<PageLocality> {
    let (table, residence) = (&case.analysis.traffic, case.residence);
    let mut per_node = vec![0u64; residence.nodes];
    // A placement says itself when which page lies where.
    let lasts = |at| match residence.from_placement {
        true => 1.0,
        false => part_that_lasts(&case.analysis.lasting, at),
    };
    let page = |at: usize| {
        let Some(home) = residence.node_of_page(table.id(at)) else {
            return PageLocality::default();
        };
        per_node.fill(0);
        for u in table.uses(at) {
            let cell = &mut per_node[residence.node_of_use(u).at()];
            *cell = cell.saturating_add(u.accesses());
        }
        let counted = AccessLocality::of_page(&per_node, home);
        PageLocality {
            all: counted.all() as f64,
            local: counted.local as f64,
            reachable: per_node.iter().copied().max().unwrap_or(0) as f64 * lasts(at),
        }
    };
    (0..table.len()).map(page).collect()
}

fn finding(
    case: &FindingContext,
    pages: &[PageLocality],
    all: f64,
    (local, reachable): (f64, f64),
) -> Finding {
    let unit = unit(case);
    let structures = remote_structures(case, pages, all);
    let wanted = (reachable - local) * all * MOST;
    let worst = structures.iter().max_by(|a, b| a.gain.total_cmp(&b.gain));
    let worst = worst.filter(|s| s.gain >= wanted).map(|s| s.of.object);
    let whose = if case.residence.from_placement {
        "The placement"
    } else {
        "First touch"
    };
    let mut evidence = vec![format!(
        "{whose} makes {} of the {unit} local; with every page on the node that uses it most it would be {}.",
        format_percent(local),
        format_percent(reachable)
    )];
    evidence.extend(busiest_node_pairs(case));
    let shown = structures.iter().take(NAMED).map(|s| {
        let of = structure_label(s.of);
        format!(
            "{of} {} ({} of the run's {unit})",
            format_percent(s.remote),
            format_percent(s.share)
        )
    });
    let shown: Vec<String> = shown.collect();
    if !shown.is_empty() {
        evidence.push(format!(
            "Remote of the {unit} to each: {}.",
            shown.join(", ")
        ));
    }
    evidence.extend(remote_accesses_text(case));
    Finding {
        kind: FindingKind::RemoteAccesses,
        severity: (reachable - local).clamp(0.0, 1.0),
        severity_of: unit,
        title: format!(
            "{} of the {unit} go to another node's memory; {} need to",
            format_percent(1.0 - local),
            format_percent(1.0 - reachable)
        ),
        evidence,
        object: worst,
        lines: worst.map_or(Vec::new(), |object| hottest_lines(case, object)),
        fixes: fixes(case, local, reachable),
        picture: FindingPicture::Pages,
    }
}

/// The pairs of nodes with most remote accesses.
fn busiest_node_pairs(case: &FindingContext) -> Option<String> {
    let traffic = case.residence.traffic(&case.analysis.traffic);
    let all = traffic.total_accesses() as f64;
    let nodes = || (0..case.residence.nodes as u32).map(NodeIx);
    let pairs = nodes().flat_map(|from| nodes().map(move |to| (from, to)));
    let mut pairs: Vec<_> = pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| (traffic.between(from, to) as f64 / all, from, to))
        .filter(|pair| pair.0 >= LEAST_SHARE)
        .collect();
    pairs.sort_by(|a, b| {
        b.0.total_cmp(&a.0)
            .then_with(|| (a.1, a.2).cmp(&(b.1, b.2)))
    });
    let more = match pairs.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more pairs of nodes"),
    };
    let shown = pairs.iter().take(NAMED);
    let shown: Vec<String> = shown
        .map(|(share, from, to)| {
            format!("{} from node {from} to node {to}", format_percent(*share))
        })
        .collect();
    (!shown.is_empty()).then(|| format!("Of all {} {}{more}.", unit(case), shown.join(", ")))
}

/// The remote traffic of a structure.
struct RemoteStructure<'a> {
    of: &'a StructureMetrics,
    /// Of the traffic of its pages.
    remote: f64,
    /// Of the traffic of the run.
    share: f64,
    /// Traffic that could be local.
    gain: f64,
}

/// Those with remote traffic to speak of, most first.
fn remote_structures<'a>(
    case: &FindingContext<'a>,
    pages: &[PageLocality],
    all: f64,
) -> Vec<RemoteStructure<'a>> {
    let structures = case.analysis.report.structures.iter();
    let mut out: Vec<RemoteStructure> = structures
        .filter(|s| traffic_share(case, s) >= LEAST_SHARE)
        .filter_map(|of| {
            let held = case.analysis.pages_of_object.get(&of.object.at())?;
            let sum =
                |part: fn(&PageLocality) -> f64| held.iter().map(|&p| part(&pages[p])).sum::<f64>();
            let (own, local) = (sum(|p| p.all), sum(|p| p.local));
            // Its pages may hold others as well: its part of them is what it has of the run.
            let part = (traffic_share(case, of) * all / own).min(1.0);
            let remote = 1.0 - local / own;
            (own > 0.0).then(|| RemoteStructure {
                of,
                remote,
                share: remote * own * part / all,
                gain: (sum(|p| p.reachable) - local) * part,
            })
        })
        .filter(|s| s.share >= LEAST_SHARE)
        .collect();
    out.sort_by(|a, b| b.share.total_cmp(&a.share));
    out
}

fn fixes(case: &FindingContext, local: f64, reachable: f64) -> Vec<SuggestedFix> {
    let commands = &case.commands;
    let mut fixes = Vec::new();
    // Else it leaves the program as it is.
    if case.residence.from_placement || case.analysis.report.verdict.may_gain() {
        fixes.push(SuggestedFix {
            what: format!(
                "On the machine that is to run it, put threads and pages where they belong; up to {} of the {} are local then.",
                format_percent(reachable),
                unit(case)
            ),
            copy: format!(
                "hither map {} -o {}\nhither run -p {} -- {}",
                commands.profile, commands.placement, commands.placement, commands.program
            ),
        });
    }
    let dealt_out = 1.0 / case.residence.nodes as f64;
    // It must not cost more than it brings.
    if local < dealt_out + MIN_LOCAL_GAIN {
        fixes.push(SuggestedFix {
            what: format!(
                "Without hither, deal the pages out to the nodes: {} of the {} are local then, and no memory serves them alone.",
                format_percent(dealt_out),
                unit(case)
            ),
            copy: format!("numactl --interleave=all -- {}", commands.program),
        });
    }
    fixes
}
