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
use hither_model::units::heap_blocks;
use hither_profile::{
    Object, ObjectIx, ObjectRange, PageFirstTouch, PageNo, PageRows, Profile, RegionIx, PAGE_SIZE,
};
use std::cmp::Reverse;
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
    pub exclusivity: Option<f64>,
    pub accuracy: Option<f64>,
    pub first_touch: Option<FirstTouchRow>,
    pub fetch_share: Option<f64>,
}

#[must_use]
pub fn structures_panel(profile: &Profile) -> StructuresPanel {
    let accesses: u64 = profile.threads.iter().map(|t| t.accesses()).sum();
    let mut objects: Vec<ObjectIx> = (0..profile.objects.len() as u32).map(ObjectIx).collect();
    let all = |o: ObjectIx| object_accesses(&profile.objects[o.at()]);
    objects.retain(|&o| all(o) > 0);
    let fetches = all_fetches(profile);
    let larger = |o: ObjectIx| larger_share(&profile.objects[o.at()], accesses, fetches);
    objects.sort_by(|&a, &b| larger(b).total_cmp(&larger(a)));
    let rest = objects.split_off(objects.len().min(MOST_ROWS));
    let share = |o: ObjectIx| all(o) as f64 / accesses.max(1) as f64;
    let folded_from = objects.partition_point(|&o| larger(o) >= FOLD_BELOW_SHARE);
    let drawn = &objects[..folded_from.min(MOST_MAPS)];
    let mut maps = page_maps(profile, drawn);
    let mut lines = hottest_lines(profile);
    let rows = objects.iter().map(|&o| StructureRow {
        share: share(o),
        lines: lines.remove(&o).unwrap_or_default(),
        map: maps.remove(&o),
        ..structure_row(o, &profile.objects[o.at()])
    });
    StructuresPanel {
        rows: rows.collect(),
        folded_from,
        rest: UnlistedStructures {
            structures: rest.len(),
            size: rest.iter().map(|o| profile.objects[o.at()].size).sum(),
            accesses: rest.iter().map(|&o| all(o)).sum(),
        },
        accesses,
    }
}

/// Adds what the metrics say.
pub fn add_assessments(
    structures: &mut StructuresPanel,
    assessments: &HashMap<ObjectIx, ObjectAssessment>,
) {
    for row in &mut structures.rows {
        let assessment = assessments.get(&ObjectIx(row.object)).cloned();
        let assessment = assessment.unwrap_or_default();
        row.exclusivity = assessment.exclusivity;
        row.accuracy = assessment.accuracy;
        row.first_touch = assessment.first_touch;
        row.fetch_share = assessment.fetch_share;
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
    heap_blocks(
        object.count,
        object.size,
        object.allocated,
        (object.smallest, object.largest),
    )
}

fn structure_row(at: ObjectIx, object: &Object) -> StructureRow {
    StructureRow {
        object: at.0,
        name: plain_text(&object.name),
        type_name: plain_text(&object.type_name),
        kind: object.kind,
        process: object.process.0,
        size: object.size,
        blocks: object_blocks(object),
        site: declaration_site(object),
        reads: object.reads,
        writes: object.writes,
        share: 0.0,
        fetches: object.fetches,
        fetch_share: None,
        estimated: object.estimated,
        exclusivity: None,
        accuracy: None,
        lines: Vec::new(),
        first_touch: None,
        map: None,
    }
}

/// The lines that use each object most.
fn hottest_lines(profile: &Profile) -> HashMap<ObjectIx, Vec<SourceLineRow>> {
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
    for list in lines.values_mut() {
        list.sort_by_key(|l| Reverse(l.reads.saturating_add(l.writes)));
        list.truncate(MAX_LINES);
    }
    lines
}

/// A map before it is packed.
struct UnpackedPageMap {
    object: ObjectIx,
    density: SparseTable,
    map: StructurePageMap,
}

fn page_maps(profile: &Profile, objects: &[ObjectIx]) -> HashMap<ObjectIx, StructurePageMap> {
    let usage = PageUsage::from_rows(&profile.pages);
    let touchers = first_touch_index(&profile.first_touch);
    let mut spans = page_spans(&profile.object_ranges, objects);
    let drawn = objects.iter().filter_map(|&object| {
        let spans = spans.remove(&object)?;
        draw_page_map(profile, &usage, &touchers, object, &spans)
    });
    let mut drawn: Vec<UnpackedPageMap> = drawn.collect();
    shrink_to_fit(&mut drawn);
    let exact = drawn.iter().map(|d| d.density.cells()).sum::<usize>() <= EXACT_CELLS;
    let packed = drawn.into_iter().map(|d| {
        let density = d.density.pack(exact);
        (d.object, StructurePageMap { density, ..d.map })
    });
    packed.collect()
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

/// The pages of each object, those of different blocks in one span where they touch.
fn page_spans(ranges: &[ObjectRange], objects: &[ObjectIx]) -> HashMap<ObjectIx, Vec<PageSpan>> {
    let mut spans: HashMap<ObjectIx, Vec<PageSpan>> =
        objects.iter().map(|&o| (o, Vec::new())).collect();
    for range in ranges.iter().filter(|r| r.length > 0) {
        let Some(list) = spans.get_mut(&range.object) else {
            continue;
        };
        let page = |offset: u64| u32::try_from(offset / PAGE_SIZE).unwrap_or(u32::MAX);
        let last = range.offset.saturating_add(range.length - 1);
        list.push((range.region, page(range.offset), page(last)));
    }
    for list in spans.values_mut() {
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

fn first_touch_index(rows: &PageRows<PageFirstTouch>) -> Vec<(PageKey, u32)> {
    let mut touchers: Vec<_> = rows
        .iter()
        .map(|f| ((f.region, f.page), f.thread.0))
        .collect();
    touchers.sort_by_key(|t| t.0);
    touchers
}

fn draw_page_map(
    profile: &Profile,
    usage: &PageUsage,
    touchers: &[(PageKey, u32)],
    object: ObjectIx,
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
                density.push([]);
                first_touch.push(find_first_toucher(touchers, (region, PageNo(next))));
                next += 1;
            }
            next = place.1 .0.saturating_add(1);
            let uses = usage.uses(page);
            density.push(uses.clone().map(|u| (u.thread.0, u.accesses())));
            first_touch.push(find_first_toucher(touchers, place));
            for u in uses {
                let total = totals.entry(u.thread.0).or_default();
                total.0 = total.0.saturating_add(u.reads);
                total.1 = total.1.saturating_add(u.writes);
            }
        }
        while with_gaps && next <= last {
            density.push([]);
            first_touch.push(find_first_toucher(touchers, (region, PageNo(next))));
            next += 1;
        }
    }
    let map = StructurePageMap {
        pages: density.columns(),
        unused: if with_gaps { 0 } else { spanned - used },
        scattered: spans.len() > 1,
        first_touch: first_touch.pack(true),
        threads: totals.into_iter().map(|(t, (r, w))| (t, r, w)).collect(),
        ..StructurePageMap::default()
    };
    Some(UnpackedPageMap {
        object,
        density,
        map,
    })
}

fn find_first_toucher(touchers: &[(PageKey, u32)], place: PageKey) -> Option<(u32, u64)> {
    let at = touchers.binary_search_by_key(&place, |t| t.0).ok()?;
    Some((touchers[at].1, 1))
}
