//! The data structures panel: sizes, accesses, and for each structure its pages with
//! the thread of first touch and the accesses by thread (TABARNAC 3.2, figures 2 and 3).
use super::page_usage::{PageKey, PageUsage};
use super::safe_text::{plain_site, plain_text};
use crate::report::page::{
    DeclarationSite, FirstTouchRow, SourceLineRow, StructurePageMap, StructureRow, StructuresPanel,
    UnlistedStructures,
};
use crate::report::sparse_table::SparseTable;
use hither_model::metrics::memory_traffic::{all_fetches, larger_share};
use hither_model::metrics::page_access::{first_toucher_of_pages, PageAccessTable};
use hither_model::metrics::page_map::PageMap;
use hither_model::metrics::structure_rows::{
    group_structures, mean_by_accesses, ListedStructure, StructureGroup,
};
use hither_model::metrics::PageSize;
use hither_model::units::{bytes, count, heap_blocks};
use hither_profile::{
    Object, ObjectIx, ObjectKind, ObjectRange, PageNo, Profile, RegionIx, ThreadIx, PAGE_SIZE,
};
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

/// Structures below this share of the accesses, and of the fetches, are folded (TABARNAC 3.2).
pub const FOLD_BELOW_SHARE: f64 = 0.0001;
/// Most structures that are listed at all, and that have their pages drawn.
const MOST_ROWS: usize = 1000;
const MOST_MAPS: usize = 200;
/// Most cells of all maps together; beyond, the largest are merged until they fit.
const MOST_CELLS: usize = 14_000_000;
/// Maps keep every count to the last digit as long as all together have no more cells.
const EXACT_CELLS: usize = 1_000_000;
/// Unused pages are drawn as gaps unless they outnumber the used ones by this factor.
const MAX_GAP_RATIO: u64 = 2;
const MAX_LINES: usize = 5;

/// What the metrics say of an object.
#[derive(Clone, Debug, Default)]
pub struct ObjectAssessment {
    pub accesses: u64,
    pub exclusivity: Option<f64>,
    pub accuracy: Option<f64>,
    pub first_touch: Option<FirstTouchRow>,
    pub fetch_share: Option<f64>,
}

/// Of a profile, whose pages of 4 KiB `table` has.
#[must_use]
pub fn structures_panel(profile: &Profile, table: &PageAccessTable) -> StructuresPanel {
    let accesses: u64 = profile.threads.iter().map(|t| t.accesses()).sum();
    let mut objects: Vec<ObjectIx> = (0..profile.objects.len() as u32).map(ObjectIx).collect();
    let all = |o: ObjectIx| object_accesses(&profile.objects[o.at()]);
    objects.retain(|&o| all(o) > 0);
    let fetches = all_fetches(profile);
    let larger = |o: ObjectIx| larger_share(&profile.objects[o.at()], accesses, fetches);
    objects.sort_by(|&a, &b| larger(b).total_cmp(&larger(a)));
    let mut groups = row_groups(profile, &objects);
    let largest = |group: &RowGroup| group.objects.iter().map(|&o| larger(o)).sum::<f64>();
    groups.sort_by(|a, b| largest(b).total_cmp(&largest(a)));
    let rest = groups.split_off(groups.len().min(MOST_ROWS));
    let folded_from = groups.partition_point(|g| largest(g) >= FOLD_BELOW_SHARE);
    let drawn = &groups[..folded_from.min(MOST_MAPS)];
    let mut maps = page_maps(profile, table, drawn).into_iter();
    let mut lines = lines_of_objects(profile);
    let rows = groups.iter().map(|group| {
        let row = structure_row(profile, group);
        StructureRow {
            share: row.reads.saturating_add(row.writes) as f64 / accesses.max(1) as f64,
            lines: hottest_lines(&group.objects, &mut lines),
            map: maps.next().flatten(),
            ..row
        }
    });
    let rows = rows.collect();
    let left = rest.iter().flat_map(|group| &group.objects);
    StructuresPanel {
        rows,
        folded_from,
        rest: UnlistedStructures {
            structures: rest.len(),
            size: left.clone().map(|o| profile.objects[o.at()].size).sum(),
            accesses: left.map(|&o| all(o)).sum(),
        },
        accesses,
    }
}

/// The objects of a row, the first with most traffic.
struct RowGroup {
    name: String,
    objects: Vec<ObjectIx>,
    processes: Vec<u32>,
}

fn row_groups(profile: &Profile, objects: &[ObjectIx]) -> Vec<RowGroup> {
    let listed = objects.iter().map(|o| &profile.objects[o.at()]);
    let listed: Vec<_> = listed.map(ListedStructure::from).collect();
    let groups = group_structures(&listed).into_iter();
    let group = |group: StructureGroup| RowGroup {
        name: group.name,
        objects: group.members.iter().map(|&at| objects[at]).collect(),
        processes: group.processes.iter().map(|p| p.0).collect(),
    };
    groups.map(group).collect()
}

/// Adds what the metrics say.
pub fn add_assessments(
    structures: &mut StructuresPanel,
    assessments: &HashMap<ObjectIx, ObjectAssessment>,
) {
    for row in &mut structures.rows {
        let members = row.objects.iter();
        let members = members.filter_map(|&o| assessments.get(&ObjectIx(o)));
        let mean = |of: fn(&ObjectAssessment) -> Option<f64>| {
            mean_by_accesses(members.clone().map(|a| (of(a), a.accesses)))
        };
        row.exclusivity = mean(|a| a.exclusivity);
        row.accuracy = mean(|a| a.accuracy);
        row.fetch_share = members
            .clone()
            .filter_map(|a| a.fetch_share)
            .reduce(|a, b| a + b);
        let touches = members.filter_map(|a| a.first_touch.as_ref());
        row.first_touch = touches.max_by_key(|touch| touch.pages).cloned();
    }
}

fn object_accesses(object: &Object) -> u64 {
    object.reads.saturating_add(object.writes)
}

/// Where it is declared or allocated, if that is known.
#[must_use]
pub fn declaration_site(object: &Object) -> Option<DeclarationSite> {
    let site = plain_site(&object.file, object.line, &object.function);
    (!object.file.is_empty()).then_some(site)
}

/// Its size, and in what blocks.
#[must_use]
pub fn object_blocks(object: &Object) -> String {
    if object.kind == ObjectKind::ThreadLocal && object.count > 1 {
        let copies = count(object.count);
        return format!("{copies} copies, {} at once", bytes(object.size));
    }
    heap_blocks(
        object.count,
        object.size,
        object.allocated,
        (object.smallest, object.largest),
    )
}

fn structure_row(profile: &Profile, group: &RowGroup) -> StructureRow {
    let members = group.objects.iter().map(|o| &profile.objects[o.at()]);
    let sum = |of: fn(&Object) -> u64| members.clone().map(of).fold(0, u64::saturating_add);
    let object = &profile.objects[group.objects[0].at()];
    let (size, allocated) = (sum(|o| o.size), sum(|o| o.allocated));
    StructureRow {
        objects: group.objects.iter().map(|o| o.0).collect(),
        name: plain_text(&group.name),
        type_name: plain_text(&object.type_name),
        kind: object.kind,
        processes: group.processes.clone(),
        size,
        blocks: match (group.objects.len(), allocated) {
            (1, _) => object_blocks(object),
            (_, 0) => bytes(size),
            _ => {
                let smallest = members.clone().map(|o| o.smallest).filter(|&n| n > 0);
                let largest = members.clone().map(|o| o.largest).max().unwrap_or(0);
                let sizes = (smallest.min().unwrap_or(0), largest);
                heap_blocks(sum(|o| o.count), size, allocated, sizes)
            }
        },
        site: declaration_site(object),
        reads: sum(|o| o.reads),
        writes: sum(|o| o.writes),
        share: 0.0,
        fetches: sum(|o| o.fetches),
        fetch_share: None,
        estimated: members.clone().any(|o| o.estimated),
        exclusivity: None,
        accuracy: None,
        lines: Vec::new(),
        first_touch: None,
        map: None,
    }
}

fn lines_of_objects(profile: &Profile) -> HashMap<ObjectIx, Vec<SourceLineRow>> {
    let mut lines: HashMap<ObjectIx, Vec<SourceLineRow>> = HashMap::new();
    for s in &profile.sites {
        let Some(object) = s.object else { continue };
        lines.entry(object).or_default().push(SourceLineRow {
            site: plain_site(&s.file, s.line, &s.function_and_callee()),
            reads: s.reads,
            writes: s.writes,
            fetches: s.fetches,
        });
    }
    lines
}

/// The lines that use these objects most.
fn hottest_lines(
    objects: &[ObjectIx],
    lines: &mut HashMap<ObjectIx, Vec<SourceLineRow>>,
) -> Vec<SourceLineRow> {
    let all = objects.iter().filter_map(|o| lines.remove(o)).flatten();
    let mut sums: BTreeMap<DeclarationSite, SourceLineRow> = BTreeMap::new();
    for line in all {
        match sums.entry(line.site.clone()) {
            Entry::Vacant(new) => {
                new.insert(line);
            }
            Entry::Occupied(mut known) => {
                let sum = known.get_mut();
                sum.reads = sum.reads.saturating_add(line.reads);
                sum.writes = sum.writes.saturating_add(line.writes);
                sum.fetches = sum.fetches.saturating_add(line.fetches);
            }
        }
    }
    let mut rows: Vec<_> = sums.into_values().collect();
    rows.sort_by_key(|l| Reverse(l.reads.saturating_add(l.writes)));
    rows.truncate(MAX_LINES);
    rows
}

/// A map before it is packed.
struct UnpackedPageMap {
    row: usize,
    density: SparseTable,
    map: StructurePageMap,
}

/// The pages of each row.
fn page_maps(
    profile: &Profile,
    table: &PageAccessTable,
    rows: &[RowGroup],
) -> Vec<Option<StructurePageMap>> {
    let usage = PageUsage::new(profile, table);
    let first_touchers =
        first_toucher_of_pages(&profile.first_touch, &profile.regions, PageSize::K4);
    let spans = page_spans(&profile.object_ranges, rows);
    let mut drawn: Vec<UnpackedPageMap> = Vec::new();
    for (row, spans) in spans.iter().enumerate() {
        drawn.extend(draw_page_map(profile, &usage, &first_touchers, row, spans));
        // What is too much of some is too much of all, so that none has to be kept at its full size.
        shrink_to_fit(&mut drawn);
    }
    let exact = drawn.iter().map(|d| d.density.cells()).sum::<usize>() <= EXACT_CELLS;
    let mut maps = vec![None; rows.len()];
    for d in drawn {
        let density = d.density.pack(exact);
        maps[d.row] = Some(StructurePageMap { density, ..d.map });
    }
    maps
}

/// Merges columns of the largest maps until all together fit into the page.
fn shrink_to_fit(drawn: &mut [UnpackedPageMap]) {
    let cells = |drawn: &[UnpackedPageMap]| drawn.iter().map(|d| d.density.cells()).sum::<usize>();
    while cells(drawn) > MOST_CELLS {
        let largest = drawn.iter_mut().max_by_key(|d| d.density.cells());
        match largest {
            Some(d) if d.density.columns() > 1 => d.density = d.density.merge_columns(),
            _ => return,
        }
    }
}

/// Pages `first..=last` of a region.
type PageSpan = (RegionIx, u32, u32);

/// The pages of each row, those of different blocks in one span where they touch.
fn page_spans(ranges: &[ObjectRange], rows: &[RowGroup]) -> Vec<Vec<PageSpan>> {
    let mut spans = vec![Vec::new(); rows.len()];
    let rows = rows.iter().enumerate();
    let of_row = rows.flat_map(|(at, row)| row.objects.iter().map(move |&o| (o, at)));
    let of_row: HashMap<ObjectIx, usize> = of_row.collect();
    for range in ranges.iter().filter(|r| r.length > 0) {
        let Some(list) = of_row.get(&range.object).map(|&at| &mut spans[at]) else {
            continue;
        };
        let page = |offset: u64| u32::try_from(offset / PAGE_SIZE).unwrap_or(u32::MAX);
        let last = range.offset.saturating_add(range.length - 1);
        list.push((range.region, page(range.offset), page(last)));
    }
    for list in &mut spans {
        list.sort_unstable();
        list.dedup_by(|next, before| {
            let joins = next.0 == before.0 && next.1 <= before.2.saturating_add(1);
            if joins {
                before.2 = before.2.max(next.2);
            }
            joins
        });
    }
    spans
}

fn draw_page_map(
    profile: &Profile,
    usage: &PageUsage,
    first_touchers: &PageMap<ThreadIx>,
    row: usize,
    spans: &[PageSpan],
) -> Option<UnpackedPageMap> {
    let used: u64 = spans
        .iter()
        .map(|s| usage.page_range(s.0, s.1, s.2).len() as u64)
        .sum();
    if used == 0 {
        return None;
    }
    let spanned: u64 = spans.iter().map(|s| u64::from(s.2 - s.1) + 1).sum();
    let with_gaps = spanned <= used.saturating_mul(MAX_GAP_RATIO);
    let threads = profile.threads.len() as u32;
    let mut density = SparseTable::new(threads);
    let mut first_touch = SparseTable::new(threads);
    let mut totals: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for &(region, first, last) in spans {
        let mut next = first;
        for page in usage.page_range(region, first, last) {
            let place = usage.page_key(page);
            while with_gaps && next < place.1 .0 {
                push_page(&mut density, []);
                first_touch.push(find_first_toucher(first_touchers, (region, PageNo(next))));
                next += 1;
            }
            next = place.1 .0.saturating_add(1);
            let uses = usage.uses(page);
            push_page(
                &mut density,
                uses.clone().map(|u| (u.thread.0, u.accesses())),
            );
            first_touch.push(find_first_toucher(first_touchers, place));
            for u in uses {
                let total = totals.entry(u.thread.0).or_default();
                total.0 = total.0.saturating_add(u.reads);
                total.1 = total.1.saturating_add(u.writes);
            }
        }
        while with_gaps && next <= last {
            push_page(&mut density, []);
            first_touch.push(find_first_toucher(first_touchers, (region, PageNo(next))));
            next += 1;
        }
    }
    let map = StructurePageMap {
        pages: first_touch.columns(),
        unused: if with_gaps { 0 } else { spanned - used },
        first_touch: first_touch.pack(true),
        threads: totals.into_iter().map(|(t, (r, w))| (t, r, w)).collect(),
        ..StructurePageMap::default()
    };
    Some(UnpackedPageMap { row, density, map })
}

/// Merges the columns of a map that would not fit into the page alone.
fn push_page(density: &mut SparseTable, cells: impl IntoIterator<Item = (u32, u64)>) {
    density.push(cells);
    if density.cells() > MOST_CELLS && density.columns() > 1 {
        *density = density.merge_columns();
    }
}

fn find_first_toucher(
    first_touchers: &PageMap<ThreadIx>,
    (region, page): PageKey,
) -> Option<(u32, u64)> {
    let first_toucher = first_touchers.get(PageSize::K4.page_of(&[], region, page))?;
    Some((first_toucher.0, 1))
}
