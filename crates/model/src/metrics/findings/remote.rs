//! Many accesses go to another node's memory, and need not.
//!
//! With MemAcc[p][n] of OPT eq. 5, threads where they run and page p on node h(p):
//!
//! ```text
//!   local     = sum over p of MemAcc[p][h(p)]      / all accesses
//!   reachable = sum over p of max n of MemAcc[p][n] / all accesses   (E_app, OPT eq. 6)
//! ```
//! Found when Acc_app (OPT eq. 9) is below [`ACC_RIGHT`] and reachable - local at least
//! [`WORTH`]; that difference is the severity. What is remote because nodes share pages is
//! left to other findings. The verdict on data has the same two conditions.
use super::common::{fits_in_caches, lines_of, name, percent};
use super::Case;
use crate::metrics::structures::Structure;
use crate::metrics::verdict::{ACC_RIGHT, WORTH};
use hither_profile::{Finding, FindingKind, Fix, NodeIx, Picture};

/// Pairs of nodes and structures named.
const NAMED: usize = 3;
/// Pairs of nodes and structures with fewer of the run's accesses are not named.
const LEAST_SHARE: f64 = 0.01;
/// A structure with most of what could be local is what the finding is about.
const MOST: f64 = 0.5;

/// Accesses to one page.
#[derive(Clone, Copy, Default)]
struct Page {
    all: f64,
    local: f64,
    /// With the page where it is used most.
    reachable: f64,
}

pub fn find(case: &Case) -> Vec<Finding> {
    if case.ground.nodes < 2 || fits_in_caches(case) {
        return Vec::new();
    }
    let pages = pages(case);
    let sum = |of: fn(&Page) -> f64| pages.iter().map(of).sum::<f64>();
    let (all, local, reachable) = (sum(|p| p.all), sum(|p| p.local), sum(|p| p.reachable));
    let right = pages.iter().filter(|p| p.local >= p.reachable);
    let right = right.map(|p| p.all).sum::<f64>();
    let is_right = right / all >= ACC_RIGHT;
    if all == 0.0 || is_right || reachable / all - local / all < WORTH {
        return Vec::new();
    }
    vec![finding(case, &pages, all, (local / all, reachable / all))]
}

/// By position in the table; nothing where the place is not known.
fn pages(case: &Case) -> Vec<Page> {
    let (table, ground) = (&case.analysis.table, case.ground);
    let mut per_node = vec![0u64; ground.nodes];
    let page = |at: usize| {
        let Some(home) = ground.page(table.id(at)) else {
            return Page::default();
        };
        per_node.fill(0);
        for u in table.uses(at) {
            let cell = &mut per_node[ground.user(u).at()];
            *cell = cell.saturating_add(u.accesses);
        }
        Page {
            all: per_node.iter().map(|&n| n as f64).sum(),
            local: per_node[home.at()] as f64,
            reachable: per_node.iter().copied().max().unwrap_or(0) as f64,
        }
    };
    (0..table.len()).map(page).collect()
}

fn finding(case: &Case, pages: &[Page], all: f64, (local, reachable): (f64, f64)) -> Finding {
    let structures = structures(case, pages, all);
    let wanted = (reachable - local) * all * MOST;
    let worst = structures.iter().max_by(|a, b| a.gain.total_cmp(&b.gain));
    let worst = worst.filter(|s| s.gain >= wanted).map(|s| s.of.object);
    let whose = if case.ground.placed {
        "The placement"
    } else {
        "First touch"
    };
    let mut evidence = vec![format!(
        "{whose} makes {} of the accesses local; with every page on the node that uses it most it would be {}.",
        percent(local),
        percent(reachable)
    )];
    evidence.extend(pairs(case));
    let shown = structures.iter().take(NAMED).map(|s| {
        let of = name(s.of);
        format!(
            "{of} {} ({} of the run's accesses)",
            percent(s.remote),
            percent(s.share)
        )
    });
    let shown: Vec<String> = shown.collect();
    if !shown.is_empty() {
        evidence.push(format!(
            "Remote of the accesses to each: {}.",
            shown.join(", ")
        ));
    }
    Finding {
        kind: FindingKind::RemoteAccesses,
        severity: (reachable - local).clamp(0.0, 1.0),
        title: format!(
            "{} of the accesses go to another node's memory; {} need to",
            percent(1.0 - local),
            percent(1.0 - reachable)
        ),
        evidence,
        object: worst,
        lines: worst.map_or(Vec::new(), |object| lines_of(case, object)),
        fixes: fixes(case, local, reachable),
        picture: Picture::Pages,
    }
}

/// The pairs of nodes with most remote accesses.
fn pairs(case: &Case) -> Option<String> {
    let traffic = case.ground.traffic(&case.analysis.table);
    let all = traffic.all() as f64;
    let nodes = || (0..case.ground.nodes as u32).map(NodeIx);
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
        .map(|(share, from, to)| format!("{} from node {from} to node {to}", percent(*share)))
        .collect();
    (!shown.is_empty()).then(|| format!("Of all accesses {}{more}.", shown.join(", ")))
}

/// The remote accesses to a structure.
struct Remote<'a> {
    of: &'a Structure,
    /// Of the accesses to its pages.
    remote: f64,
    /// Of the accesses of the run.
    share: f64,
    /// Accesses that could be local.
    gain: f64,
}

/// Those with remote accesses to speak of, most first.
fn structures<'a>(case: &Case<'a>, pages: &[Page], all: f64) -> Vec<Remote<'a>> {
    let structures = case.analysis.report.structures.iter();
    let mut out: Vec<Remote> = structures
        .filter(|s| s.share >= LEAST_SHARE)
        .filter_map(|of| {
            let held = case.analysis.held.get(&of.object.at())?;
            let sum = |part: fn(&Page) -> f64| held.iter().map(|&p| part(&pages[p])).sum::<f64>();
            let (own, local) = (sum(|p| p.all), sum(|p| p.local));
            // Its pages may hold others as well: its part of them is what it accesses.
            let part = (of.share * all / own).min(1.0);
            let remote = 1.0 - local / own;
            (own > 0.0).then(|| Remote {
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

fn fixes(case: &Case, local: f64, reachable: f64) -> Vec<Fix> {
    let commands = &case.commands;
    let mut fixes = vec![Fix {
        what: format!(
            "On the machine that is to run it, put threads and pages where they belong; up to {} of the accesses are local then.",
            percent(reachable)
        ),
        copy: format!(
            "hither map {} -o {}\nhither run -p {} -- {}",
            commands.profile, commands.placement, commands.placement, commands.program
        ),
    }];
    let dealt_out = 1.0 / case.ground.nodes as f64;
    // It must not cost more than it brings.
    if local < dealt_out + WORTH {
        fixes.push(Fix {
            what: format!(
                "Without hither, deal the pages out to the nodes: {} of the accesses are local then, and no memory serves them alone.",
                percent(dealt_out)
            ),
            copy: format!("numactl --interleave=all -- {}", commands.program),
        });
    }
    fixes
}
