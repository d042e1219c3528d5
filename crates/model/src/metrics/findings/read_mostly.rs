//! A structure that several nodes read and hardly anybody writes, larger than caches can
//! hold: a copy for each node makes all its traffic local (TABARNAC 3.2: what is written
//! only while it is initialised can be duplicated). To fill the copies fetches each line once for each further node:
//! what is read about once, like a batch of input, is not worth that. Severity: 1 - E_app of its share, the
//! traffic that is remote wherever its pages lie and would be local with copies.
use super::common::{
    assess_structures, belonging, filled_once, format_percent, shares_evidence, structure_finding,
    structure_label, traffic_share, unit, write_share, TrafficByNode,
};
use super::fix_snippets::{describe_allocation, is_fortran, variable_name};
use super::FindingContext;
use crate::metrics::structures::StructureMetrics;
use crate::units::show_bytes;
use hither_profile::{Finding, FindingKind, SuggestedFix, TrafficUnit, PAGE_SIZE};

pub fn find(case: &FindingContext) -> Vec<Finding> {
    // Page faults do not tell reads from writes.
    if case.analysis.report.run.online {
        return Vec::new();
    }
    assess_structures(case, assess)
}

fn assess(case: &FindingContext, structure: &StructureMetrics, pages: &[usize]) -> Option<Finding> {
    let nodes = case.residence.nodes as u64;
    let size = pages.len() as u64 * PAGE_SIZE;
    // The caches of a node hold a copy of what is smaller, without anybody's doing.
    let cache = case.analysis.report.setup.cache_bytes / nodes;
    if size <= cache || !filled_once(structure, pages.len()) {
        return None;
    }
    let of_pages = belonging(case, pages.iter().copied());
    // Else its pages belong to one node each, and it is enough to put them there.
    if of_pages.belongs() {
        return None;
    }
    let exclusive = of_pages.app;
    let (remote, unit) = (1.0 - exclusive, unit(case));
    if unit == TrafficUnit::Fetches && !is_worth_copying(case, pages, remote) {
        return None;
    }
    let severity = remote * traffic_share(case, structure);
    let mut finding = structure_finding(case, FindingKind::ReadMostly, structure, severity);
    finding.title = format!(
        "{} is read by all nodes once it is filled: a copy per node saves {} remote {unit}",
        structure_label(structure),
        format_percent(remote)
    );
    let accessed_by = structure
        .threads
        .map_or_else(String::new, |n| format!("; {n} threads access it"));
    finding.evidence = vec![
        format!(
            "{} of its accesses are reads{accessed_by}.",
            format_percent(1.0 - write_share(structure)),
        ),
        format!(
            "Wherever its pages lie, {} of its {unit} come from another node (E_app \
             {exclusive:.2}); with a copy for each node none would.",
            format_percent(remote)
        ),
        cache_size_evidence(size, cache, nodes),
    ];
    finding.evidence.extend(shares_evidence(case, structure));
    finding.fixes = vec![replicate_fix(structure)];
    Some(finding)
}

/// Whether copies save more fetches than filling them takes.
fn is_worth_copying(case: &FindingContext, pages: &[usize], remote: f64) -> bool {
    let mut by_node = TrafficByNode::new(case);
    let fetches: f64 = pages.iter().map(|&page| by_node.sum_and_most(page).0).sum();
    let lines = pages.len() as u64 * PAGE_SIZE / u64::from(case.profile.meta.options.line.max(1));
    remote * fetches > lines as f64 * (case.residence.nodes - 1) as f64
}

fn cache_size_evidence(size: u64, cache: u64, nodes: u64) -> String {
    let copies = format!(
        "{nodes} copies take {}",
        show_bytes(size.saturating_mul(nodes))
    );
    if cache == 0 {
        return format!("It is {} large; {copies}.", show_bytes(size));
    }
    format!(
        "It is {} large, more than the {} of a node's caches; {copies}.",
        show_bytes(size),
        show_bytes(cache)
    )
}

fn replicate_fix(structure: &StructureMetrics) -> SuggestedFix {
    let what = "Make a copy for each node once it is filled, and let each thread read that of \
                its own node.";
    if is_fortran(structure) {
        return SuggestedFix {
            what: format!(
                "{what} In Fortran: an array with one more dimension, a column for each node, \
                 filled by a thread of that node."
            ),
            copy: String::new(),
        };
    }
    let (data, origin) = (variable_name(structure), describe_allocation(structure));
    SuggestedFix {
        what: what.to_owned(),
        copy: format!(
            "// {origin}; #include <numa.h>, link with -lnuma\n\
             for (int node = 0; node <= numa_max_node(); node++) {{\n  \
               copies[node] = numa_alloc_onnode(size, node);\n  \
               memcpy(copies[node], {data}, size);\n\
             }}\n\
             // in each thread, which has to stay on its node:\n\
             mine = copies[numa_node_of_cpu(sched_getcpu())];"
        ),
    }
}
