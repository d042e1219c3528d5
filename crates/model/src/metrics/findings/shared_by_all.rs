//! A structure whose pages (nearly) all threads use about alike and write (TABARNAC 5.2: the
//! bucket sort's `key_buff1`): wherever its pages lie, most of its traffic comes from elsewhere.
//! Its severity is 1 - E_app of its share: what a loop that gives each thread its own part
//! could make local. What is hardly written is `read_mostly`'s.
use super::common::{
    assess_structures, count_active_threads, filled_once, format_percent, ratio_or_zero_f64,
    shares_evidence, structure_finding, structure_label, traffic_share, unit, write_share,
    TrafficByNode,
};
use super::fix_snippets::{hottest_line, interleave_fix, is_fortran, uses_openmp};
use super::FindingContext;
use crate::metrics::structures::StructureMetrics;
use crate::metrics::thresholds::ALIKE;
use hither_profile::{Finding, FindingKind, ObjectKind, SuggestedFix};

/// Of the threads at work, those that use the structure: nearly all. Ours.
const NEARLY_ALL: f64 = 0.75;
/// Of these, those that use a page at least. Ours: a loop of few rounds with a dynamic
/// schedule gives a page to some of them only.
const OF_THEM: f64 = 0.5;
/// Of its traffic, that of such pages at least. Ours.
const MOST: f64 = 0.5;

pub fn find(case: &FindingContext) -> Vec<Finding> {
    assess_structures(case, assess)
}

fn assess(case: &FindingContext, structure: &StructureMetrics, pages: &[usize]) -> Option<Finding> {
    let (threads, users) = (active_threads_of(case, structure)?, structure.threads?);
    let written = write_share(structure);
    let few = (users as f64) < threads as f64 * NEARLY_ALL;
    if threads < 2 || few || filled_once(structure, pages.len()) {
        return None;
    }
    let nodes = case.residence.nodes as f64;
    let alike = 1.0 / nodes + ALIKE * (1.0 - 1.0 / nodes);
    let least_users = users as f64 * OF_THEM;
    let mut by_node = TrafficByNode::new(case);
    let (mut all, mut most, mut shared, mut shared_pages) = (0.0, 0.0, 0.0, 0);
    for &page in pages {
        let (sum, max) = by_node.sum_and_most(page);
        all += sum;
        most += max;
        let by = case.analysis.table.uses(page).len();
        if by as f64 >= least_users && ratio_or_zero_f64(max, sum) <= alike {
            shared += sum;
            shared_pages += 1;
        }
    }
    let (exclusive, shared) = (ratio_or_zero_f64(most, all), ratio_or_zero_f64(shared, all));
    if shared < MOST {
        return None;
    }
    let (remote, unit) = (1.0 - exclusive, unit(case));
    let severity = remote * traffic_share(case, structure);
    let mut finding = structure_finding(case, FindingKind::SharedByAll, structure, severity);
    finding.title = format!(
        "{}{users} threads share {}: wherever its pages lie, {} of its {unit} are remote",
        if users as usize == threads {
            "All "
        } else {
            ""
        },
        structure_label(structure),
        format_percent(remote)
    );
    finding.evidence = vec![
        format!(
            "{shared_pages} of {} pages, with {} of its {unit}, are used by at least {:.0} of \
             its {users} threads, and by the {nodes} nodes about alike.",
            pages.len(),
            format_percent(shared),
            least_users.ceil().max(1.0),
        ),
        format!(
            "The node that uses a page most makes {} of the {unit} to it (E_app {exclusive:.2}; \
             alike on {nodes} nodes is {:.2}).",
            format_percent(exclusive),
            1.0 / nodes
        ),
        format!(
            "{} of its accesses are writes, and not only to fill it: copies would have to be renewed.",
            format_percent(written)
        ),
    ];
    finding.evidence.extend(shares_evidence(case, structure));
    finding.fixes = fixes(case, structure);
    Some(finding)
}

/// Threads at work in the process that has the structure, or in all where they share it.
fn active_threads_of(case: &FindingContext, structure: &StructureMetrics) -> Option<usize> {
    let object = case.profile.objects.get(structure.object.at())?;
    let process = (object.kind != ObjectKind::Shared).then_some(object.process);
    Some(count_active_threads(case, process))
}

fn fixes(case: &FindingContext, structure: &StructureMetrics) -> Vec<SuggestedFix> {
    let own = if uses_openmp(case) {
        SuggestedFix {
            what: "Where the work allows it, let each thread keep to its own part. Two blocks of \
                   the loop for each thread, one of either half, also share out a middle that is \
                   hotter than the ends (the cyclic-split schedule of TABARNAC 5.2)."
                .to_owned(),
            copy: split_schedule(case, structure),
        }
    } else {
        SuggestedFix {
            what: format!(
                "Where the work allows it, let each thread keep to its own part, in the loop at {}, \
                 instead of taking whatever comes next.",
                hottest_line(case, structure)
            ),
            copy: String::new(),
        }
    };
    let spread = interleave_fix(
        case,
        structure,
        "Or deal its pages out to the nodes: accesses stay as remote, but no memory serves it alone.",
    );
    vec![own, spread]
}

/// Two blocks of the loop for each thread, one of either half (TABARNAC 5.2).
pub fn split_schedule(case: &FindingContext, structure: &StructureMetrics) -> String {
    let line = hottest_line(case, structure);
    if is_fortran(structure) {
        return format!(
            "! the loop around {line}, n rounds\n\
             !$omp do schedule(static, max(1, n / (2 * omp_get_num_threads())))"
        );
    }
    format!(
        "// the loop around {line}, n rounds of at least two for each thread\n\
         #pragma omp for schedule(static, n / (2 * omp_get_num_threads()))"
    )
}
