//! What several finders need.
use super::FindingContext;
use crate::metrics::belonging::PageBelonging;
use crate::metrics::exclusivity::accesses_per_node;
use crate::metrics::structures::StructureMetrics;
use crate::metrics::thresholds::E_HIGH;
use hither_profile::{
    file_name, working_threads, Finding, FindingKind, FindingLine, FindingPicture, Object,
    ObjectIx, ObjectKind, ProcessIx, SourceSite, ThreadIx, TrafficUnit, PAGE_SIZE,
};
use std::collections::{BTreeSet, HashMap};

/// Least pages of a structure for it to matter where they lie. Ours: 64 KiB stay in a core's
/// own caches.
pub const LEAST_PAGES: usize = 16;
/// Least share of the run's memory traffic for a structure to be worth a change. Ours; TABARNAC 3.2
/// hides structures below 0.01 %.
pub const LEAST_SHARE: f64 = 0.01;
/// Least share of a structure's traffic that a change must concern to be worth it. Ours: the
/// assignments of OPT figure 7 lie 6 points apart on average, this is above it.
pub const LEAST_GAIN: f64 = 0.1;
/// Up to this share of writes a structure counts as read only: ten reads for a write, as
/// of a table that is filled once. Ours.
const MOSTLY_READ: f64 = 0.1;
/// Findings of one kind that are shown; the rest are summed up in the last.
const MOST_FINDINGS: usize = 8;
/// Source lines named with a finding.
const LINES: usize = 3;
/// Lines that touch a structure less than a tenth as often as the code that does most are not named. Ours.
const LEAST_OF_HOTTEST: u64 = 10;
/// Characters of a name in a sentence.
const LONGEST: usize = 60;

/// What `assess` finds in the structures for which it matters where their pages lie, given with the
/// positions of these in the table. Stacks are left out: each belongs to its thread.
pub fn assess_structures(
    case: &FindingContext,
    assess: impl Fn(&FindingContext, &StructureMetrics, &[usize]) -> Option<Finding>,
) -> Vec<Finding> {
    let report = &case.analysis.report;
    // The one that touches first need not work.
    let threads = report.threads.iter().filter(|t| t.reads + t.writes > 0);
    if case.residence.nodes < 2 || threads.count() < 2 || fits_in_caches(case) {
        return Vec::new();
    }
    // Of many ranks none has much of the run.
    let mut shares: HashMap<Declaration, f64> = HashMap::new();
    for s in &report.structures {
        *shares.entry(declaration(s)).or_default() += traffic_share(case, s);
    }
    let worth = |s: &&StructureMetrics| {
        s.kind != ObjectKind::Stack && shares[&declaration(s)] >= LEAST_SHARE
    };
    let structures = report.structures.iter().filter(worth);
    let found = structures.filter_map(|s| {
        let pages = case.analysis.pages_of_object.get(&s.object.at())?;
        (pages.len() >= LEAST_PAGES).then(|| assess(case, s, pages))?
    });
    limit_findings(case, join_processes(case, found.collect()))
}

/// What makes structures of several processes the same to who reads of them.
type Declaration<'a> = (&'a str, ObjectKind, &'a str, u32);

fn declaration(s: &StructureMetrics) -> Declaration<'_> {
    (&s.name, s.kind, &s.file, s.line)
}

/// What was found in a structure of several processes, such as the ranks of an MPI job, is one finding: that of the
/// process where it is worst, with the severity of all.
fn join_processes(case: &FindingContext, mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort_by(|a, b| b.severity.total_cmp(&a.severity));
    let structures = case.analysis.report.structures.iter();
    let by_object: HashMap<ObjectIx, &StructureMetrics> =
        structures.map(|s| (s.object, s)).collect();
    let mut joined: Vec<(Finding, BTreeSet<u32>)> = Vec::new();
    let mut worst: HashMap<Declaration, usize> = HashMap::new();
    for finding in found {
        let Some(s) = finding.object.and_then(|o| by_object.get(&o)) else {
            joined.push((finding, BTreeSet::new()));
            continue;
        };
        let at = *worst.entry(declaration(s)).or_insert(joined.len());
        match joined.get_mut(at) {
            Some((first, processes)) if !processes.contains(&s.process) => {
                first.severity = (first.severity + finding.severity).min(1.0);
                processes.insert(s.process);
            }
            _ => joined.push((finding, BTreeSet::from([s.process]))),
        }
    }
    let said = joined.into_iter().map(|(mut finding, processes)| {
        if processes.len() > 1 {
            finding.evidence.push(format!(
                "The same was found in it in {} more processes: with them it is {} of the {}.",
                processes.len() - 1,
                format_percent(finding.severity),
                unit(case)
            ));
        }
        finding
    });
    said.collect()
}

/// Whether a structure is of a library that no line of the program declares, allocates or maps: nobody who reads a
/// finding can change it.
pub fn is_of_library(case: &FindingContext, object: ObjectIx) -> bool {
    let Some(own) = case.profile.objects.get(object.at()) else {
        return false;
    };
    let mut ranges = case.profile.object_ranges.iter();
    let region = ranges
        .find(|r| r.object == object)
        .and_then(|r| case.profile.regions.get(r.region.at()));
    let in_library = region.is_some_and(|r| file_name(&r.file).contains(".so"));
    own.name.starts_with(Object::BLOCKS_OF)
        || own.file.is_empty()
            && (own.kind == ObjectKind::Shared || in_library || own.name.contains(".so"))
}

/// The file that a structure is, mapped from the page cache.
pub fn mapped_file<'a>(case: &FindingContext<'a>, structure: &StructureMetrics) -> Option<&'a str> {
    let mut ranges = case.profile.object_ranges.iter();
    let region = ranges.find(|r| r.object == structure.object)?.region;
    case.profile.regions.get(region.at())?.mapped_file()
}

/// What shares of memory traffic are shares of.
pub fn unit(case: &FindingContext) -> TrafficUnit {
    case.analysis.report.run.traffic
}

/// A structure's share of the memory traffic of the run.
pub fn traffic_share(case: &FindingContext, structure: &StructureMetrics) -> f64 {
    structure.traffic_share(unit(case))
}

/// Memory traffic of pages by the node that it comes from, page by page.
pub struct TrafficByNode<'a> {
    case: &'a FindingContext<'a>,
    per_node: Vec<u64>,
}

impl<'a> TrafficByNode<'a> {
    #[must_use]
    pub fn new(case: &'a FindingContext<'a>) -> Self {
        TrafficByNode {
            case,
            per_node: vec![0; case.residence.nodes],
        }
    }

    /// Of the page at this position of the table.
    pub fn of_page(&mut self, page: usize) -> &[u64] {
        let uses = self.case.analysis.traffic.uses(page);
        accesses_per_node(uses, &self.case.residence.threads, &mut self.per_node);
        &self.per_node
    }

    /// All traffic of a page, and that from the node that uses it most.
    pub fn sum_and_most(&mut self, page: usize) -> (f64, f64) {
        let per_node = self.of_page(page);
        let most = per_node.iter().copied().max().unwrap_or(0);
        (per_node.iter().sum::<u64>() as f64, most as f64)
    }
}

/// Shares of the traffic of pages that the memory of each node serves, where the pages
/// lie. Pages of an unknown place are left out.
pub fn shares_served_by_node(case: &FindingContext, pages: &[usize]) -> Vec<f64> {
    let mut served = vec![0.0; case.residence.nodes];
    for &page in pages {
        if let Some(node) = case.residence.node_of_page(case.analysis.table.id(page)) {
            let uses = case.analysis.traffic.uses(page).iter();
            served[node.at()] += uses.map(|u| u.accesses()).sum::<u64>() as f64;
        }
    }
    let all: f64 = served.iter().sum();
    served.iter().map(|s| ratio_or_zero_f64(*s, all)).collect()
}

/// Whose the traffic of pages is, threads where the case has them; E_app is 1 without any.
pub fn belonging(case: &FindingContext, pages: impl Iterator<Item = usize>) -> PageBelonging {
    let (table, threads) = (&case.analysis.traffic, &case.residence.threads);
    let lasting = &case.analysis.lasting;
    PageBelonging::of_pages(table, pages, threads, &case.work, lasting).unwrap_or(PageBelonging {
        app: 1.0,
        by_work: 0.0,
        lasting: 1.0,
    })
}

/// Of pages that belong to no node: how much of them the node has that uses each most, and what its work makes of that.
pub fn no_owner_text(of: &PageBelonging, unit: TrafficUnit) -> String {
    let by_work = match of.app {
        few if few < E_HIGH => String::new(),
        _ => format!("; {:.2} comes of how much each node works", of.by_work),
    };
    format!(
        "the one that uses a page most makes {} of the {unit} to it (E_app {:.2}{by_work})",
        format_percent(of.app),
        of.app
    )
}

/// Threads of a process (of all where none is given) that take part in its work.
pub fn count_active_threads(case: &FindingContext, process: Option<ProcessIx>) -> usize {
    let threads = case.profile.threads.iter();
    let threads = threads.filter(|t| process.is_none_or(|p| t.process == p));
    let working = working_threads(threads);
    working.into_iter().filter(|works| *works).count()
}

/// The share of its accesses that are writes.
pub fn write_share(structure: &StructureMetrics) -> f64 {
    let (reads, writes) = (structure.reads as f64, structure.writes as f64);
    ratio_or_zero_f64(writes, reads + writes)
}

/// Whether a structure on this many pages is filled once and then read. What is written more than once
/// for each byte is renewed as the run goes on, however often it is read in between.
pub fn filled_once(structure: &StructureMetrics, pages: usize) -> bool {
    let once = structure.writes <= (pages as u64).saturating_mul(PAGE_SIZE);
    once && write_share(structure) <= MOSTLY_READ
}

/// 0 of nothing.
pub fn ratio_or_zero_f64(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole
    } else {
        0.0
    }
}

/// The worst findings; the last of them says what the others come to.
fn limit_findings(case: &FindingContext, mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort_by(|a, b| b.severity.total_cmp(&a.severity));
    if found.len() > MOST_FINDINGS {
        let rest = found.split_off(MOST_FINDINGS);
        let sum: f64 = rest.iter().map(|f| f.severity).sum();
        if let Some(last) = found.last_mut() {
            last.evidence.push(format!(
                "The same was found in {} more structures, with {} of the run's {} together.",
                rest.len(),
                format_percent(sum),
                unit(case)
            ));
        }
    }
    found
}

/// `thread 0 (ondes)`
pub fn thread_label(case: &FindingContext, thread: ThreadIx) -> String {
    let row = case.analysis.report.threads.get(thread.at());
    match row.map(|t| t.name.trim()) {
        Some(name) if !name.is_empty() => format!("thread {} ({name})", thread.0),
        _ => format!("thread {}", thread.0),
    }
}

/// What a structure has of the fetches and of the accesses, where the two differ.
pub fn shares_evidence(case: &FindingContext, structure: &StructureMetrics) -> Option<String> {
    (unit(case) == TrafficUnit::Fetches).then(|| {
        format!(
            "It has {} of the run's fetches (lines brought into a private cache), {} of its accesses.",
            format_percent(traffic_share(case, structure)),
            format_percent(structure.share)
        )
    })
}

/// The share of remote accesses, where the traffic is counted in fetches.
pub fn remote_accesses_text(case: &FindingContext) -> Option<String> {
    let remote = case.residence.remote_share(&case.analysis.table)?;
    (unit(case) == TrafficUnit::Fetches).then(|| {
        format!(
            "A fetch brings a line into a private cache; of the accesses, most of which find it there, \
             {} are remote.",
            format_percent(remote)
        )
    })
}

/// A finding about a structure, without evidence and fixes yet.
pub fn structure_finding(
    case: &FindingContext,
    kind: FindingKind,
    structure: &StructureMetrics,
    severity: f64,
) -> Finding {
    Finding {
        kind,
        severity: severity.clamp(0.0, 1.0),
        severity_of: unit(case),
        title: String::new(),
        evidence: Vec::new(),
        object: Some(structure.object),
        lines: hottest_lines(case, structure.object),
        fixes: Vec::new(),
        picture: FindingPicture::Structure {
            object: structure.object,
        },
    }
}

/// The source lines that touch a structure most, where code without lines does not touch it much more:
/// what little a copy in libc makes of it says nothing of the library that computes on it.
pub fn hottest_lines(case: &FindingContext, object: ObjectIx) -> Vec<FindingLine> {
    let sites = case.profile.sites.iter();
    let mut sites: Vec<_> = sites.filter(|s| s.object == Some(object)).collect();
    let accesses = |s: &SourceSite| s.reads.saturating_add(s.writes);
    let of_sites: f64 = sites.iter().map(|s| accesses(s) as f64).sum();
    let counted = case
        .profile
        .objects
        .get(object.at())
        .map_or(0, |o| o.reads.saturating_add(o.writes));
    let all = of_sites.max(counted as f64);
    sites.sort_by_key(|s| (std::cmp::Reverse(accesses(s)), &s.file, s.line));
    let least = sites.first().map_or(0, |s| accesses(s) / LEAST_OF_HOTTEST);
    let sites = sites
        .into_iter()
        .filter(|s| s.line > 0 && accesses(s) >= least);
    let sites = sites.take(LINES);
    let lines = sites.map(|s| FindingLine {
        file: s.file.clone(),
        line: s.line,
        function: s.function_and_callee(),
        share: ratio_or_zero_f64(accesses(s) as f64, all),
    });
    lines.collect()
}

/// Of the run's accesses, those that communicate: its events per access, at most 1.
pub fn communication_share(case: &FindingContext) -> f64 {
    let report = &case.analysis.report;
    let accesses = report.run.accesses().max(1) as f64;
    (report.communication.events as f64 / accesses).min(1.0)
}

/// A structure's name, its middle left out where it is long: `key_buff1`.
pub fn structure_label(structure: &StructureMetrics) -> String {
    shortened(&structure.name)
}

/// A name for a sentence, its middle left out where it is long.
pub fn shortened(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= LONGEST {
        return name.to_owned();
    }
    let (start, end) = (&chars[..LONGEST / 2], &chars[chars.len() - LONGEST / 2..]);
    let [start, end] = [start, end].map(|part| part.iter().collect::<String>());
    format!("{start}...{end}")
}

/// A share as people read it: `63 %`, `0.4 %`.
pub fn format_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 1.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Does all data fit in the caches (OPT eq. 7)? Then it matters little where pages lie, and
/// what is about pages alone stays silent.
pub fn fits_in_caches(case: &FindingContext) -> bool {
    let report = &case.analysis.report;
    report.setup.cache_bytes > 0 && report.run.footprint <= report.setup.cache_bytes
}

/// The name of a structure.
pub fn name_of(case: &FindingContext, object: ObjectIx) -> String {
    let structures = &case.analysis.report.structures;
    match structures.iter().find(|s| s.object == object) {
        Some(structure) => structure_label(structure),
        None => {
            let object = &case.profile.objects[object.at()];
            object.name.chars().take(60).collect()
        }
    }
}
