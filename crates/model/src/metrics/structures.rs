//! Data structures and source lines: threads that use them, first touch, how exclusive they
//! are (TABARNAC 3: accesses by structure and thread, and first touch).
use super::allocation_paths::calls;
use super::exclusivity::exclusivity_of;
use super::memory_traffic::{all_fetches, larger_share};
use super::page_access::PageAccessTable;
use super::page_id::{PageId, PageSize};
use super::page_map::PageMap;
use super::placement_accuracy::accuracy_of;
use hither_profile::{
    FirstTouchLine, NodeIx, ObjectIx, ObjectKind, Profile, ThreadIx, TrafficUnit, PAGE_SIZE,
};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// One data structure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StructureMetrics {
    /// Its row in this profile.
    #[serde(skip)]
    pub object: ObjectIx,
    /// Its process, a row of the profile.
    pub process: u32,
    /// Its name in the source, or a description.
    pub name: String,
    /// Its type in the source; empty where unknown.
    pub type_name: String,
    /// Static, heap, stack and so on.
    pub kind: ObjectKind,
    /// Bytes of its blocks that lived at the same time, at most.
    pub size: u64,
    /// Blocks.
    pub count: u64,
    /// Bytes of all blocks that were ever allocated at its site; 0 for others than heap blocks.
    pub allocated: u64,
    /// Bytes of the smallest of them.
    pub smallest: u64,
    /// Bytes of the largest of them.
    pub largest: u64,
    /// Source file that defines or allocates it; empty where unknown.
    pub file: String,
    /// Line there; 0 where unknown.
    pub line: u32,
    /// Function that allocates it; empty where unknown.
    pub function: String,
    /// Reads of it.
    pub reads: u64,
    /// Writes to it.
    pub writes: u64,
    /// Of the accesses of the run.
    pub share: f64,
    /// Times that a thread brought one of its lines into its private cache, an estimate.
    pub fetches: u64,
    /// Of the fetches of the run; `None` where they were not counted.
    pub fetch_share: Option<f64>,
    /// Reads and writes are a share of what several variables in one symbol have.
    pub estimated: bool,
    /// Pages used that hold a part of it.
    pub pages: u64,
    /// Threads that access it; where the profile does not have them, threads that use those pages,
    /// and `None` without such pages.
    pub threads: Option<u64>,
    /// E_app over those pages.
    pub exclusivity: Option<f64>,
    /// Acc_app of first touch over those pages.
    pub first_touch_accuracy: Option<f64>,
    /// Threads that touched its pages first, with how many, most first.
    pub first_touch: Vec<(ThreadIx, u64)>,
    /// The source line that touched more of its pages first than others did; `None` where it is not known of most.
    pub first_touch_line: Option<TouchingLine>,
}

/// A source line that touched pages first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TouchingLine {
    /// Source file.
    pub file: String,
    /// Line in it.
    pub line: u32,
    /// Function it belongs to; empty where unknown.
    pub function: String,
    /// How many of the pages, of 4 KiB.
    pub pages: u64,
    /// The thread that touched most of these.
    pub thread: ThreadIx,
    /// `function (file:line)` of the calls that led there in that thread, innermost first; empty in
    /// older profiles.
    pub path: Vec<String>,
    /// Whether most of these were touched in a parallel region; `None` in older profiles.
    pub in_parallel: Option<bool>,
}

impl StructureMetrics {
    /// Its share of the memory traffic of the run.
    #[must_use]
    pub fn traffic_share(&self, unit: TrafficUnit) -> f64 {
        match (unit, self.fetch_share) {
            (TrafficUnit::Fetches, Some(share)) => share,
            _ => self.share,
        }
    }

    /// Reads and writes.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }
}

/// One source line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HotLine {
    /// Source file.
    pub file: String,
    /// Line in it.
    pub line: u32,
    /// Function it belongs to, and that of a library which accesses for it; empty where unknown.
    pub function: String,
    /// The data structure it uses, or an empty string.
    pub structure: String,
    /// Reads from this line.
    pub reads: u64,
    /// Writes from this line.
    pub writes: u64,
    /// Fetches from this line, from samples.
    pub fetches: u64,
    /// Of the accesses of the run.
    pub share: f64,
}

/// The basis of page figures: pages at the size chosen, and the node of each thread.
pub struct PageContext<'a> {
    /// Their size.
    pub size: PageSize,
    /// Accesses to each by thread.
    pub table: &'a PageAccessTable,
    /// The thread that touched each page first.
    pub first_touchers: &'a PageMap<ThreadIx>,
    /// NUMA nodes of the machine, N.
    pub nodes: usize,
    /// The node of each thread.
    pub node_of: &'a [NodeIx],
}

/// All structures with accesses, by the larger of their shares of accesses and of fetches.
#[must_use]
pub fn structure_metrics(
    profile: &Profile,
    pages: &PageContext,
    held: &HashMap<usize, Vec<usize>>,
) -> Vec<StructureMetrics> {
    let accesses: u64 = profile.threads.iter().map(|t| t.accesses()).sum();
    let total = (accesses, all_fetches(profile));
    let users = users_of_objects(profile);
    let mut out: Vec<(f64, StructureMetrics)> = (0..profile.objects.len())
        .filter(|&o| profile.objects[o].reads + profile.objects[o].writes > 0)
        .map(|o| {
            let held = held.get(&o).map_or(&[][..], Vec::as_slice);
            let larger = larger_share(&profile.objects[o], accesses, total.1);
            let mut metrics = metrics_of_structure(profile, pages, o, held, total);
            metrics.threads = users.get(&o).copied().or(metrics.threads);
            (larger, metrics)
        })
        .collect();
    out.sort_by(|(of_a, a), (of_b, b)| {
        let names = (&a.name, &a.file, a.line).cmp(&(&b.name, &b.file, b.line));
        of_b.total_cmp(of_a).then(names)
    });
    out.into_iter().map(|(_, metrics)| metrics).collect()
}

/// Positions in the page table of each object's pages, each once.
#[must_use]
pub fn pages_of_objects(profile: &Profile, pages: &PageContext) -> HashMap<usize, Vec<usize>> {
    let mut held: HashMap<usize, Vec<usize>> = HashMap::new();
    for range in profile.object_ranges.iter().filter(|r| r.length > 0) {
        let page = |offset: u64| {
            let small = PageId::of_region(range.region, offset / PAGE_SIZE);
            small.at_size(&profile.regions, pages.size)
        };
        let last = range.offset.saturating_add(range.length - 1);
        let span = pages.table.page_range(page(range.offset), page(last));
        held.entry(range.object.at()).or_default().extend(span);
    }
    for list in held.values_mut() {
        list.sort_unstable();
        list.dedup();
    }
    held
}

/// How many threads access each object, where the profile has it.
fn users_of_objects(profile: &Profile) -> HashMap<usize, u64> {
    let mut users: HashMap<usize, u64> = HashMap::new();
    for row in &profile.object_threads {
        *users.entry(row.object.at()).or_default() += 1;
    }
    users
}

fn metrics_of_structure(
    profile: &Profile,
    pages: &PageContext,
    object: usize,
    held: &[usize],
    (total, all_fetches): (u64, Option<u64>),
) -> StructureMetrics {
    let o = &profile.objects[object];
    let mut touched: BTreeMap<ThreadIx, u64> = BTreeMap::new();
    // By thread.
    let mut users = vec![false; profile.threads.len()];
    for &p in held {
        if let Some(&t) = pages.first_touchers.get(pages.table.id(p)) {
            *touched.entry(t).or_default() += 1;
        }
        for u in pages.table.uses(p) {
            users[u.thread().at()] = true;
        }
    }
    let mut first_touch: Vec<(ThreadIx, u64)> = touched.into_iter().collect();
    first_touch.sort_by_key(|&(t, n)| (std::cmp::Reverse(n), t));
    let (nodes, node_of) = (pages.nodes, pages.node_of);
    let place = |id| {
        pages
            .first_touchers
            .get(id)
            .map(|t: &ThreadIx| node_of[t.at()])
    };
    let each = || held.iter().copied();
    StructureMetrics {
        object: ObjectIx(object as u32),
        process: o.process.0,
        name: o.name.clone(),
        type_name: o.type_name.clone(),
        kind: o.kind,
        size: o.size,
        count: o.count,
        allocated: o.allocated,
        smallest: o.smallest,
        largest: o.largest,
        file: o.file.clone(),
        line: o.line,
        function: o.function.clone(),
        reads: o.reads,
        writes: o.writes,
        share: ratio_or_zero(o.reads + o.writes, total),
        fetches: o.fetches,
        fetch_share: fetch_share(all_fetches, o.fetches),
        estimated: o.estimated,
        pages: held.len() as u64,
        threads: (!held.is_empty()).then(|| users.iter().filter(|uses| **uses).count() as u64),
        exclusivity: exclusivity_of(pages.table, each(), nodes, node_of).map(|e| e.app),
        first_touch_accuracy: accuracy_of(pages.table, each(), nodes, node_of, place)
            .map(|a| a.app),
        first_touch_line: first_touch_line(profile, object, &first_touch),
        first_touch,
    }
}

/// Part of the fetches of the run; `None` where they were not counted.
fn fetch_share(all: Option<u64>, fetches: u64) -> Option<f64> {
    let all = all.filter(|&all| all > 0)?;
    Some(ratio_or_zero(fetches, all).min(1.0))
}

/// Of the pages of an object, of which a line touched at least one in so many first to be told of.
const FEWEST_TOUCHED: u64 = 10;

/// The line that touched most pages of an object first, whatever thread ran it. Pages that code without source
/// touched have no line: one that touched a few says nothing about the others.
fn first_touch_line(
    profile: &Profile,
    object: usize,
    touched: &[(ThreadIx, u64)],
) -> Option<TouchingLine> {
    let own = profile.first_touch_lines.iter();
    let own = own.filter(|l| l.object.at() == object && l.line > 0);
    let mut lines: BTreeMap<(&str, u32, &str), Vec<&FirstTouchLine>> = BTreeMap::new();
    for l in own {
        let rows = lines.entry((&l.file, l.line, &l.function)).or_default();
        rows.push(l);
    }
    let sum = |rows: &[&FirstTouchLine]| rows.iter().map(|l| l.pages).sum::<u64>();
    let (_, rows) = lines.into_iter().max_by_key(|(_, rows)| sum(rows))?;
    let most = rows.iter().max_by_key(|l| (l.pages, Reverse(l.thread)))?;
    let pages = sum(&rows);
    let all: u64 = touched.iter().map(|&(_, pages)| pages).sum();
    if pages.saturating_mul(FEWEST_TOUCHED) < all {
        return None;
    }
    let parallel: u64 = rows.iter().filter(|l| l.in_parallel).map(|l| l.pages).sum();
    Some(TouchingLine {
        file: most.file.clone(),
        line: most.line,
        function: most.function.clone(),
        pages,
        thread: most.thread,
        path: calls(&most.path),
        in_parallel: (!most.path.is_empty()).then_some(parallel * 2 > pages),
    })
}

/// All source lines seen, most accesses first.
#[must_use]
pub fn hot_lines(profile: &Profile) -> Vec<HotLine> {
    let of_lines: u64 = profile.sites.iter().map(|s| s.reads + s.writes).sum();
    // Samples may stand for more than was counted.
    let accesses: u64 = profile.threads.iter().map(|t| t.accesses()).sum();
    let total = of_lines.max(accesses);
    let name = |o: Option<ObjectIx>| {
        let object = o.and_then(|o| profile.objects.get(o.at()));
        object.map(|o| o.name.clone()).unwrap_or_default()
    };
    let mut out: Vec<HotLine> = profile
        .sites
        .iter()
        .map(|s| HotLine {
            file: s.file.clone(),
            line: s.line,
            function: s.function_and_callee(),
            structure: name(s.object),
            reads: s.reads,
            writes: s.writes,
            fetches: s.fetches,
            share: ratio_or_zero(s.reads + s.writes, total),
        })
        .collect();
    out.sort_by(|a, b| {
        let key = |l: &HotLine| std::cmp::Reverse(l.reads + l.writes);
        (key(a), &a.file, a.line, &a.structure).cmp(&(key(b), &b.file, b.line, &b.structure))
    });
    out
}

fn ratio_or_zero(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}
