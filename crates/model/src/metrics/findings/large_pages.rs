//! Pages of 2 MiB would hold together what threads of several nodes use apart (OPT 5.2.1,
//! figure 6): exclusivity is lower than with pages of 4 KiB. Severity: the traffic that is
//! local with small pages, each on its best node, and remote with large ones.
use super::common::{
    assess_structures, format_percent, ratio_or_zero_f64, shares_evidence, structure_finding,
    structure_label, traffic_share, unit, TrafficByNode, LEAST_GAIN,
};
use super::fix_snippets::{describe_allocation, variable_name};
use super::FindingContext;
use crate::metrics::page_id::{PageId, PageSize};
use crate::metrics::structures::StructureMetrics;
use hither_profile::{Finding, FindingKind, SuggestedFix, PAGE_SIZE};
use std::collections::HashMap;

pub fn find(case: &FindingContext) -> Vec<Finding> {
    let of = |size: PageSize| {
        let found = case.sizes.iter().find(|s| s.0 == size.bytes());
        found.map(|s| s.1)
    };
    let (Some(small), Some(large)) = (of(PageSize::K4), of(PageSize::M2)) else {
        return Vec::new();
    };
    // Of the whole run: threads at their best for either size.
    if small - large < LEAST_GAIN {
        return Vec::new();
    }
    let best = best_nodes(case);
    assess_structures(case, |case, s, pages| {
        assess(case, s, pages, &best, (small, large))
    })
}

/// For each page of the table the node that uses most the page of 2 MiB around it.
fn best_nodes(case: &FindingContext) -> Vec<usize> {
    let table = &case.analysis.table;
    let large = |page| table.id(page).at_size(&case.profile.regions, PageSize::M2);
    let mut by_node = TrafficByNode::new(case);
    let mut sums: HashMap<PageId, Vec<f64>> = HashMap::new();
    for page in 0..table.len() {
        let nodes = || vec![0.0; case.residence.nodes];
        let sums = sums.entry(large(page)).or_insert_with(nodes);
        for (sum, traffic) in sums.iter_mut().zip(by_node.of_page(page)) {
            *sum += *traffic as f64;
        }
    }
    let most_used = |sums: &Vec<f64>| {
        let most = sums.iter().copied().fold(0.0, f64::max);
        sums.iter().position(|s| *s >= most).unwrap_or(0)
    };
    let best: HashMap<PageId, usize> = sums.iter().map(|(id, s)| (*id, most_used(s))).collect();
    (0..table.len()).map(|page| best[&large(page)]).collect()
}

fn assess(
    case: &FindingContext,
    structure: &StructureMetrics,
    pages: &[usize],
    best: &[usize],
    (small, large): (f64, f64),
) -> Option<Finding> {
    let mut by_node = TrafficByNode::new(case);
    let (mut all, mut apart, mut together) = (0.0, 0.0, 0.0);
    for &page in pages {
        let (sum, max) = by_node.sum_and_most(page);
        all += sum;
        apart += max;
        together += by_node.of_page(page)[best[page]] as f64;
    }
    let (apart, together) = (
        ratio_or_zero_f64(apart, all),
        ratio_or_zero_f64(together, all),
    );
    let lost = apart - together;
    // Where a part for each node ends within a large page, half of it is lost. The larger
    // the data, the less that is, and it says nothing of how threads use it.
    let size = pages.len() as u64 * PAGE_SIZE;
    let borders = case.residence.nodes as f64 * PageSize::M2.bytes() as f64 / 2.0 / size as f64;
    if lost - borders < LEAST_GAIN {
        return None;
    }
    let unit = unit(case);
    let severity = lost * traffic_share(case, structure);
    let mut finding = structure_finding(case, FindingKind::LargePages, structure, severity);
    finding.title = format!(
        "Pages of 2 MiB would make {} of the {unit} to {} remote that pages of 4 KiB keep local",
        format_percent(lost),
        structure_label(structure)
    );
    finding.evidence = vec![
        format!(
            "On the node that uses it most, a page of 4 KiB has {} of its {unit} local, one of \
             2 MiB {} (E_app {apart:.2} and {together:.2}): threads of several nodes use parts of \
             the same 2 MiB.",
            format_percent(apart),
            format_percent(together)
        ),
        format!("Of the accesses of the whole run, E_app is {small:.2} with 4 KiB and {large:.2} with 2 MiB."),
        "Linux takes pages of 2 MiB unasked where /sys/kernel/mm/transparent_hugepage/enabled says \
         always."
            .to_owned(),
    ];
    finding.evidence.extend(shares_evidence(case, structure));
    finding.fixes = fixes(structure);
    Some(finding)
}

fn fixes(structure: &StructureMetrics) -> Vec<SuggestedFix> {
    let (data, origin) = (variable_name(structure), describe_allocation(structure));
    vec![
        SuggestedFix {
            what: "Keep pages of 4 KiB for it.".to_owned(),
            copy: format!(
                "// {origin}; aligned to a page, before it is touched\n\
                 madvise({data}, size, MADV_NOHUGEPAGE);"
            ),
        },
        SuggestedFix {
            what: "Or give each thread whole blocks of 2 MiB, aligned to 2 MiB, so that large \
                   pages belong to one node as well."
                .to_owned(),
            copy: String::new(),
        },
    ]
}
