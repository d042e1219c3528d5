//! Most accesses to a structure go to few of its pages (TABARNAC 5.2: the bucket sort's
//! `key_buff1`, a bell curve of accesses over its pages), and that does harm: one thread has
//! more of them than its part, or they belong to no node. What is hot in each thread's own
//! part alike does none. Hot pages that belong to nodes are dealt out only by a loop that is, so they must lie in one
//! stretch of one block: to interleave them would make remote what is local, and blocks that an allocator hands out
//! here and there belong to no loop. What is hot goes by accesses, since who uses it works there; how much that is of the
//! run, by memory traffic. Hot pages that belong to no node load the memory that serves them no more than by their
//! own traffic: locks that stay in caches, beside blocks that are filled once, have next to none.
//! Severity: the accesses to hot pages beyond an even spread (where they belong to no node, at most their part of the
//! structure's traffic), times the structure's share of the traffic.
use super::common::{
    assess_structures, belonging, format_percent, no_owner_text, ratio_or_zero_f64,
    shares_evidence, structure_finding, structure_label, thread_label, traffic_share, unit,
    LEAST_PAGES,
};
use super::fix_snippets::{interleave_fix, uses_openmp};
use super::shared_by_all::split_schedule;
use super::FindingContext;
use crate::metrics::structures::StructureMetrics;
use crate::metrics::thresholds::E_HIGH;
use crate::units::show_bytes;
use hither_profile::{Finding, FindingKind, SuggestedFix, ThreadIx, PAGE_SIZE};

/// Share of the accesses beyond an even spread that go to pages used more than the average.
/// Ours: accesses that rise evenly from nothing at one end to the other have 0.25, a bell
/// curve of four dice (the keys of the benchmark IS) 0.43, and all in one page nearly 1.
const EXCESS: f64 = 0.25;
/// A thread that takes part uses the structure at least by this share of an even part. Ours.
const USER: f64 = 0.05;
/// One thread has more than its part from this many times an even one on. Ours: less comes of
/// any loop whose rounds do not divide evenly.
const UNEVEN: f64 = 1.5;
/// Hot pages lie in one place if they are this much of the stretch that holds nearly all of
/// them. Ours.
const DENSE: f64 = 0.75;
/// Hot pages at either end of the structure that do not count for where they lie. Ours.
const STRAY: f64 = 0.05;

/// Of the accesses to its pages, those to the structure itself. Ours: most.
const OWN: f64 = 0.5;

pub fn find(case: &FindingContext) -> Vec<Finding> {
    assess_structures(case, assess)
}

fn assess(case: &FindingContext, structure: &StructureMetrics, pages: &[usize]) -> Option<Finding> {
    // Blocks of one allocation site may each have a hot page of their own, or one of them be used for longer.
    if structure.count > 1 || !has_most_of_its_pages(case, structure, pages) {
        return None;
    }
    let table = &case.analysis.table;
    let sum = |page: usize| table.uses(page).iter().map(|u| u.accesses() as f64).sum();
    let accesses: Vec<f64> = pages.iter().map(|&page| sum(page)).collect();
    let all: f64 = accesses.iter().sum();
    let mean = all / pages.len() as f64;
    let hot: Vec<usize> = (0..pages.len()).filter(|&at| accesses[at] > mean).collect();
    let share = ratio_or_zero_f64(hot.iter().map(|&at| accesses[at]).sum(), all);
    let of_pages = ratio_or_zero_f64(hot.len() as f64, pages.len() as f64);
    let excess = share - of_pages;
    let place = hot_page_span(&hot, pages.len());
    if excess < EXCESS || hot.len() < LEAST_PAGES {
        return None;
    }
    let of_hot = belonging(case, hot.iter().map(|&at| pages[at]));
    let uneven = dominant_user(case, pages);
    let belongs = of_hot.belongs();
    if belongs && (uneven.is_none() || place.is_none()) {
        return None;
    }
    let of_traffic = traffic_of(case, hot.iter().map(|&at| pages[at]))
        / traffic_of(case, pages.iter().copied()).max(1.0);
    let harm = match belongs {
        true => excess,
        false => excess.min(of_traffic),
    };
    if harm < EXCESS {
        return None;
    }
    let unit = unit(case);
    let severity = harm * traffic_share(case, structure);
    let mut finding = structure_finding(case, FindingKind::Concentrated, structure, severity);
    finding.title = format!(
        "{} of the accesses to {} go to {} of its pages{}",
        format_percent(share),
        structure_label(structure),
        format_percent(of_pages),
        place.map_or("", HotPageSpan::describe_position)
    );
    finding.evidence = vec![hot_pages_evidence(&hot, pages.len(), share, place)];
    if let Some((busiest, its, users)) = uneven {
        finding.evidence.push(format!(
            "Of {users} threads {} makes {} of the accesses to it; an even part is {}.",
            thread_label(case, busiest),
            format_percent(its),
            format_percent(1.0 / users as f64)
        ));
    }
    if !belongs {
        finding.evidence.push(format!(
            "The hot pages belong to no node: {}.",
            no_owner_text(&of_hot, unit)
        ));
    }
    finding.evidence.extend(shares_evidence(case, structure));
    finding.fixes = fixes(case, structure, place, belongs);
    Some(finding)
}

/// Memory of a block that was freed is given to the next, and a page counts all: the hot ones have to be its own.
fn has_most_of_its_pages(
    case: &FindingContext,
    structure: &StructureMetrics,
    pages: &[usize],
) -> bool {
    let uses = pages
        .iter()
        .flat_map(|&page| case.analysis.table.uses(page));
    let all: f64 = uses.map(|u| u.accesses() as f64).sum();
    structure.accesses() as f64 >= all * OWN
}

/// The memory traffic of pages.
fn traffic_of(case: &FindingContext, pages: impl Iterator<Item = usize>) -> f64 {
    let uses = pages.flat_map(|page| case.analysis.traffic.uses(page));
    uses.map(|u| u.accesses() as f64).sum()
}

/// The thread that uses a structure most, its share and how many use it, if several do and it
/// has clearly more than an even part, but not about all.
fn dominant_user(case: &FindingContext, pages: &[usize]) -> Option<(ThreadIx, f64, usize)> {
    let mut by_thread = vec![0.0; case.profile.threads.len()];
    for u in pages
        .iter()
        .flat_map(|&page| case.analysis.table.uses(page))
    {
        by_thread[u.thread().at()] += u.accesses() as f64;
    }
    let all: f64 = by_thread.iter().sum();
    let users = by_thread
        .iter()
        .filter(|n| ratio_or_zero_f64(**n, all) >= USER / by_thread.len() as f64)
        .count();
    let most = by_thread.iter().copied().fold(0.0, f64::max);
    let thread = by_thread.iter().position(|n| *n >= most)?;
    let its = ratio_or_zero_f64(most, all);
    let uneven = users > 1 && its * users as f64 >= UNEVEN && its < E_HIGH;
    uneven.then_some((ThreadIx(thread as u32), its, users))
}

/// The stretch of a structure where its hot pages lie: first and last, and all of its pages.
#[derive(Clone, Copy)]
struct HotPageSpan {
    first: usize,
    last: usize,
    pages: usize,
}

impl HotPageSpan {
    fn describe_position(self) -> &'static str {
        let middle = (self.first + self.last + 1) as f64 / 2.0 / self.pages as f64;
        match middle {
            m if m < 1.0 / 3.0 => ", at its start",
            m if m <= 2.0 / 3.0 => ", in its middle",
            _ => ", at its end",
        }
    }
}

/// `None` when hot pages lie here and there.
fn hot_page_span(hot: &[usize], pages: usize) -> Option<HotPageSpan> {
    let stray = (hot.len() as f64 * STRAY) as usize;
    let within = hot.get(stray..hot.len() - stray)?;
    let (&first, &last) = (within.first()?, within.last()?);
    let stretch = HotPageSpan { first, last, pages };
    (within.len() as f64 >= (last - first + 1) as f64 * DENSE).then_some(stretch)
}

fn hot_pages_evidence(
    hot: &[usize],
    pages: usize,
    share: f64,
    place: Option<HotPageSpan>,
) -> String {
    let lie = match place {
        Some(p) => format!(", nearly all of them from page {} to {},", p.first, p.last),
        None => ", here and there,".to_owned(),
    };
    format!(
        "{} of {pages} pages ({} of {}){lie} take {} of the accesses; spread evenly it would be {}.",
        hot.len(),
        show_bytes(hot.len() as u64 * PAGE_SIZE),
        show_bytes(pages as u64 * PAGE_SIZE),
        format_percent(share),
        format_percent(ratio_or_zero_f64(hot.len() as f64, pages as f64))
    )
}

fn fixes(
    case: &FindingContext,
    structure: &StructureMetrics,
    place: Option<HotPageSpan>,
    belongs: bool,
) -> Vec<SuggestedFix> {
    let mut fixes = Vec::new();
    let openmp = uses_openmp(case);
    if belongs || openmp && place.is_some() {
        fixes.push(SuggestedFix {
            what:
                "Give each thread two blocks of the loop, one of either half: hot and cold parts \
                   are then shared out evenly, and each thread still has its own (the \
                   cyclic-split schedule of TABARNAC 5.2)."
                    .to_owned(),
            copy: if openmp {
                split_schedule(case, structure)
            } else {
                String::new()
            },
        });
    }
    if belongs {
        return fixes;
    }
    fixes.push(interleave_fix(
        case,
        structure,
        "Deal its pages out to the nodes, so that no memory serves the hot ones alone.",
    ));
    fixes
}
