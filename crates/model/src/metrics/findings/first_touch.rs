//! One thread touches first most pages of a structure that others use (TABARNAC 5.1:
//! Ondes3D, whose thread 0 initialises everything), so Linux puts all of them on its node.
//!
//! Two stories. Where each page belongs to one node, what could be gained is E_app less the
//! traffic that is local now, and the repair is to touch first in parallel. Where all nodes
//! use all pages no place is local for most; what is wrong is that one memory serves them,
//! and the severity is what it serves beyond an even part.
use super::common::{
    assess_structures, belonging, format_percent, mapped_file, no_owner_text, ratio_or_zero_f64,
    shares_evidence, shares_served_by_node, shortened, structure_finding, structure_label,
    thread_label, traffic_share, unit, TrafficByNode, LEAST_GAIN,
};
use super::fix_snippets::{
    describe_allocation, hither_run_fix, interleave_fix, is_fortran, parallel_loop, uses_openmp,
    variable_name,
};
use super::{node_imbalance, FindingContext};
use crate::metrics::belonging::PageBelonging;
use crate::metrics::structures::{StructureMetrics, TouchingLine};
use crate::metrics::thresholds::{ACC_RIGHT, E_HIGH};
use hither_profile::{
    file_name, shell_quote, Finding, FindingKind, ObjectKind, SuggestedFix, ThreadIx,
};
use std::collections::HashMap;

/// Of the structure's pages, those that one thread touches first. Ours: most, but a few may
/// have been touched by others at the borders.
const MOST_PAGES: f64 = 0.75;
/// Calls named that led to the first touch.
const CALLS: usize = 3;
const IN_PARALLEL: &str = "Initialise it in parallel, with the schedule of the loops that use it \
                           and threads that stay where they are: each page then lies on the node \
                           that uses it.";
const EACH_ITS_PART: &str = "Let each thread write first the part that it will use, from a \
                             processor that it stays on: each page then lies on the node that \
                             uses it.";

/// No policy of a mapping says where the page cache puts a file.
const IN_PAGE_CACHE: &str =
    "It is a file that the program maps: its pages lie in the page cache, where they were put \
                             when it was first read or written, also by an earlier run. Take it out of the cache, and";
const AS_USED: &str = "The loop that touches it first runs in parallel already, but deals it out otherwise \
                       than the loops that use it, or to one thread: give it their schedule and bounds, so that \
                       each page is touched first by the thread that uses it.";

const DEAL_OUT_ALL: &str = "Or deal out all pages of the program.";
const OWN_COPY: &str = "Its copies are filled by the thread that creates the others, before they run: let each \
                        thread allocate its copy and keep a pointer to it in the variable, so that it touches \
                        the copy first itself.";

pub fn find(case: &FindingContext) -> Vec<Finding> {
    let mut found = assess_structures(case, assess);
    drop_repeated_fixes(case, &mut found);
    drop_dealing_out_all(case, &mut found);
    found
}

/// Where it makes more remote than it evens.
fn drop_dealing_out_all(case: &FindingContext, found: &mut [Finding]) {
    let deals_out = |fix: &SuggestedFix| fix.what == DEAL_OUT_ALL;
    if !found.iter().any(|f| f.fixes.iter().any(deals_out)) {
        return;
    }
    if !node_imbalance::imbalance(case).is_some_and(|i| i.is_evened_by_dealing_out()) {
        for finding in found {
            finding.fixes.retain(|fix| !deals_out(fix));
        }
    }
}

/// Structures that are initialised alike are repaired alike: it is said in full of the worst
/// one in each file.
fn drop_repeated_fixes(case: &FindingContext, found: &mut [Finding]) {
    let structures = &case.analysis.report.structures;
    let mut said: HashMap<&str, &StructureMetrics> = HashMap::new();
    for finding in found {
        let structure = structures.iter().find(|s| Some(s.object) == finding.object);
        let (Some(structure), Some(fix)) = (structure, finding.fixes.first()) else {
            continue;
        };
        if structure.file.is_empty() || ![IN_PARALLEL, EACH_ITS_PART].contains(&&*fix.what) {
            continue;
        }
        match said.get(&*structure.file) {
            None => drop(said.insert(&structure.file, structure)),
            Some(first) => {
                finding.fixes = vec![SuggestedFix {
                    what: format!("As for {}, in the same place.", structure_label(first)),
                    copy: first_write_code(case, structure),
                }];
            }
        }
    }
}

/// First touch and use of the pages of one structure.
struct FirstTouchStats {
    first_toucher: ThreadIx,
    /// Pages that it touched first, and all whose first toucher is known.
    first: u64,
    known: u64,
    /// Whose they are.
    belonging: PageBelonging,
    /// Shares of the traffic: by other threads than the first toucher, and to pages that lie on the node they
    /// come from.
    others: f64,
    local: f64,
    /// Share of the traffic of pages on the right node (Acc_app).
    right: f64,
}

fn assess(case: &FindingContext, structure: &StructureMetrics, pages: &[usize]) -> Option<Finding> {
    let &(first_toucher, first) = structure.first_touch.first()?;
    let known: u64 = structure.first_touch.iter().map(|t| t.1).sum();
    if ratio_or_zero_f64(first as f64, known as f64) < MOST_PAGES {
        return None;
    }
    let mut facts = FirstTouchStats {
        first_toucher,
        first,
        known,
        ..first_touch_stats(case, pages, first_toucher)
    };
    facts.others = facts.others.clamp(0.0, 1.0);
    if facts.belonging.belongs() {
        exclusive_pages_finding(case, structure, &facts)
    } else {
        shared_pages_finding(case, structure, pages, &facts)
    }
}

fn first_touch_stats(
    case: &FindingContext,
    pages: &[usize],
    first_toucher: ThreadIx,
) -> FirstTouchStats {
    let mut by_node = TrafficByNode::new(case);
    let (mut all, mut own, mut local, mut right) = (0.0, 0.0, 0.0, 0.0);
    for &page in pages {
        let table = &case.analysis.traffic;
        let uses = table.uses(page);
        if let Ok(at) = uses.binary_search_by_key(&first_toucher, |u| u.thread()) {
            own += uses[at].accesses() as f64;
        }
        let here = case.residence.node_of_page(table.id(page));
        let (sum, max) = by_node.sum_and_most(page);
        all += sum;
        let near = here.map_or(0.0, |node| by_node.of_page(page)[node.at()] as f64);
        local += near;
        if near >= max {
            right += sum;
        }
    }
    FirstTouchStats {
        belonging: belonging(case, pages.iter().copied()),
        first_toucher,
        first: 0,
        known: 0,
        others: 1.0 - ratio_or_zero_f64(own, all),
        local: ratio_or_zero_f64(local, all),
        right: ratio_or_zero_f64(right, all),
    }
}

/// Each page belongs to one node, but lies on that of the first toucher.
fn exclusive_pages_finding(
    case: &FindingContext,
    structure: &StructureMetrics,
    facts: &FirstTouchStats,
) -> Option<Finding> {
    let gain = facts.belonging.lasting - facts.local;
    let whole = case.analysis.report.pages.as_ref();
    let right = whole
        .and_then(|p| p.traffic.first_touch)
        .is_some_and(|a| a.app >= ACC_RIGHT);
    // Where first touch is right for nearly all of the run, the verdict says so.
    if gain < LEAST_GAIN || right {
        return None;
    }
    let unit = unit(case);
    let severity = gain * traffic_share(case, structure);
    let mut finding = structure_finding(case, FindingKind::FirstTouch, structure, severity);
    finding.title = title(case, structure, facts);
    finding.evidence = vec![
        first_toucher_text(case, structure, facts),
        format!(
            "Its pages belong to one node each (E_app {:.2}), but only {} of the {unit} go to \
             pages on the right one (Acc_app).",
            facts.belonging.app,
            format_percent(facts.right)
        ),
        format!(
            "{} of its {unit} are local now; touched first by the threads that use it, {} would be.",
            format_percent(facts.local),
            format_percent(facts.belonging.lasting)
        ),
    ];
    finding.evidence.extend(touching_line_text(case, structure));
    finding.evidence.extend(shares_evidence(case, structure));
    if let Some(file) = mapped_file(case, structure) {
        finding.fixes = vec![page_cache_fix(
            file,
            "have each thread read its part of it first.",
        )];
        return Some(finding);
    }
    finding.fixes = vec![match structure.kind {
        ObjectKind::ThreadLocal => SuggestedFix {
            what: OWN_COPY.to_owned(),
            copy: String::new(),
        },
        _ => parallel_init_fix(case, structure),
    }];
    finding.fixes.extend(hither_run_fix(
        case,
        "Or leave the program as it is: hither puts each page on the node that uses it most.",
    ));
    Some(finding)
}

/// All nodes use all pages, and one memory serves them.
fn shared_pages_finding(
    case: &FindingContext,
    structure: &StructureMetrics,
    pages: &[usize],
    facts: &FirstTouchStats,
) -> Option<Finding> {
    let most = shares_served_by_node(case, pages)
        .into_iter()
        .fold(0.0, f64::max);
    let even = 1.0 / case.residence.nodes as f64;
    let excess = most - even;
    // Where one node works most, it may be the one that they lie on: dealt out, they would be far from it.
    let busiest_has_them = facts.belonging.app >= E_HIGH && facts.local > even;
    if excess < LEAST_GAIN || busiest_has_them {
        return None;
    }
    let unit = unit(case);
    let severity = excess * traffic_share(case, structure);
    let mut finding = structure_finding(case, FindingKind::FirstTouch, structure, severity);
    finding.title = title(case, structure, facts);
    finding.evidence = vec![
        first_toucher_text(case, structure, facts),
        format!(
            "One node's memory serves {} of its {unit}; an even part would be {}.",
            format_percent(most),
            format_percent(even)
        ),
        format!(
            "No node is right for its pages: {}.",
            no_owner_text(&facts.belonging, unit)
        ),
    ];
    finding.evidence.extend(touching_line_text(case, structure));
    finding.evidence.extend(shares_evidence(case, structure));
    if let Some(file) = mapped_file(case, structure) {
        let mut fix = page_cache_fix(file, "have it read under an interleaving policy.");
        fix.copy += &format!("\nnumactl --interleave=all -- {}", case.commands.program);
        finding.fixes = vec![fix];
        return Some(finding);
    }
    finding.fixes = vec![
        interleave_fix(
            case,
            structure,
            "Deal its pages out to the nodes, so that all memories serve it.",
        ),
        SuggestedFix {
            what: DEAL_OUT_ALL.to_owned(),
            copy: format!("numactl --interleave=all -- {}", case.commands.program),
        },
    ];
    Some(finding)
}

fn title(case: &FindingContext, structure: &StructureMetrics, facts: &FirstTouchStats) -> String {
    let unit = unit(case);
    let name = structure_label(structure);
    let others = format_percent(facts.others);
    if facts.first == facts.known {
        format!("One thread touches all of {name} first, others make {others} of the {unit}")
    } else {
        let first = format_percent(ratio_or_zero_f64(facts.first as f64, facts.known as f64));
        format!("One thread touches {first} of {name} first, others make {others} of the {unit}")
    }
}

/// The line to edit, if it is known, and how the program came there.
fn touching_line_text(case: &FindingContext, structure: &StructureMetrics) -> Option<String> {
    let line = structure.first_touch_line.as_ref()?;
    let function = match line.function.as_str() {
        "" => String::new(),
        name => format!(", in {}", shortened(name)),
    };
    let at = format!("{}:{}{function}", file_name(&line.file), line.line);
    let region = match line.in_parallel {
        Some(true) if uses_openmp(case) => ", inside a parallel region",
        Some(true) => ", in a thread that the program started",
        Some(false) if in_region_of_one(line) => {
            ", in a parallel region that one thread does alone"
        }
        Some(false) => ", outside of any parallel region",
        None => "",
    };
    let calls = line.path.iter().skip(1).take(CALLS);
    let calls = calls.map(|call| shortened(call));
    let calls = calls.collect::<Vec<_>>().join(", ");
    let called = match calls.as_str() {
        "" => String::new(),
        calls => format!(" It was called from {calls}."),
    };
    let all: u64 = structure.first_touch.iter().map(|&(_, pages)| pages).sum();
    if line.pages * 2 < all {
        let share = format_percent(ratio_or_zero_f64(line.pages as f64, all as f64));
        return Some(format!(
            "{share} of the first touches are at {at}{region}, the others elsewhere.{called}"
        ));
    }
    let change = match (
        mapped_file(case, structure),
        earlier_owner(case, structure, line),
    ) {
        (Some(_), _) => String::new(),
        (None, None) => ": that is the line to change".to_owned(),
        (None, Some(owner)) => format!(", when the memory was that of {}", structure_label(owner)),
    };
    Some(format!(
        "The first touch is at {at}{region}{change}.{called}"
    ))
}

/// Starts of the functions by which OpenMP runs a parallel region.
const REGIONS: [&str; 2] = ["GOMP_parallel", "__kmpc_fork_call"];

fn in_region_of_one(line: &TouchingLine) -> bool {
    let region = |call: &String| REGIONS.iter().any(|name| call.starts_with(name));
    line.path.iter().any(region)
}

/// The structure that had most of the pages when they were touched, before it was freed: the touch is on the way of
/// the function that allocates it, and not of that which allocates this one.
fn earlier_owner<'a>(
    case: &'a FindingContext,
    structure: &StructureMetrics,
    line: &TouchingLine,
) -> Option<&'a StructureMetrics> {
    let pages = |s: &StructureMetrics| case.analysis.pages_of_object.get(&s.object.at());
    let on_the_way = |s: &StructureMetrics| {
        let called = |call: &String| {
            call.strip_prefix(&*s.function)
                .is_some_and(|r| r.starts_with(" ("))
        };
        !s.function.is_empty() && line.path.iter().any(called)
    };
    if structure.function.is_empty() || on_the_way(structure) {
        return None;
    }
    let own = pages(structure)?;
    let most_of_them = |s: &StructureMetrics| {
        let theirs = pages(s).map_or(&[][..], Vec::as_slice);
        let shared = own.iter().filter(|page| theirs.binary_search(page).is_ok());
        shared.count() * 2 > own.len()
    };
    let structures = case.analysis.report.structures.iter();
    let mut others = structures.filter(|s| s.object != structure.object && on_the_way(s));
    others.find(|s| most_of_them(s))
}

fn first_toucher_text(
    case: &FindingContext,
    structure: &StructureMetrics,
    facts: &FirstTouchStats,
) -> String {
    let who = thread_label(case, facts.first_toucher).replacen('t', "T", 1);
    let placed = match mapped_file(case, structure) {
        // Unless it was read or written before: the fix says so.
        Some(_) => "",
        None => ", and Linux puts them on its node",
    };
    format!(
        "{who} touches {} of {} pages first{placed}; other threads make {} of the {}.",
        facts.first,
        facts.known,
        format_percent(facts.others),
        unit(case)
    )
}

/// The usual repair: TABARNAC 5.1.
fn parallel_init_fix(case: &FindingContext, structure: &StructureMetrics) -> SuggestedFix {
    let touched = structure.first_touch_line.as_ref();
    if uses_openmp(case) && touched.is_some_and(|line| line.in_parallel == Some(true)) {
        return SuggestedFix {
            what: AS_USED.to_owned(),
            copy: String::new(),
        };
    }
    let (origin, write) = (
        describe_allocation(structure),
        first_write_code(case, structure),
    );
    // Without a source there is nothing to write it into.
    let known = !structure.file.is_empty();
    if uses_openmp(case) && known {
        return SuggestedFix {
            what: IN_PARALLEL.to_owned(),
            copy: parallel_loop(structure, &origin, "static", &write),
        };
    }
    let code = format!("// {origin}; in each thread, before anybody else writes to it:\n{write}");
    SuggestedFix {
        what: EACH_ITS_PART.to_owned(),
        copy: if known { code } else { String::new() },
    }
}

fn page_cache_fix(file: &str, then: &str) -> SuggestedFix {
    SuggestedFix {
        what: format!("{IN_PAGE_CACHE} {then}"),
        copy: format!("dd if={} iflag=nocache count=0", shell_quote(file)),
    }
}

/// What writes a structure for the first time.
fn first_write_code(case: &FindingContext, structure: &StructureMetrics) -> String {
    let variable = variable_name(structure);
    match (uses_openmp(case), is_fortran(structure)) {
        (true, true) => format!("{variable}(i) = 0"),
        (true, false) => format!("{variable}[i] = 0;"),
        (false, _) => {
            format!("memset(&{variable}[first_of_mine], 0, count_of_mine * sizeof {variable}[0]);")
        }
    }
}
