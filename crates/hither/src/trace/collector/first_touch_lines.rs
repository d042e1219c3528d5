//! Source lines that touched the pages of each data structure first: where a page is placed is
//! decided there.
use super::address_space::PageName;
use super::objects::ObjectTables;
use super::pages::FirstToucher;
use super::regions::{RegionMap, PAGE_BITS};
use crate::trace::symbolizer::{SourceLine, Symbolizer};
use hither_profile::{FirstTouchLine, ObjectIx, ThreadIx};
use hither_sys::Segment;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Lines kept of an object, those with most pages.
const MAX_LINES: usize = 8;

pub struct FirstTouchInput<'a> {
    pub segment: &'a Segment,
    pub regions: &'a mut RegionMap,
    pub found: &'a ObjectTables,
    /// Of all pages, in any order.
    pub touchers: Vec<FirstToucher>,
    /// How many threads the profile has.
    pub threads: usize,
}

/// Code site, and the caller of its function.
type TouchingCode = (u32, u64);

pub fn first_touch_lines(
    input: FirstTouchInput<'_>,
    naming: &mut dyn Symbolizer,
) -> Vec<FirstTouchLine> {
    let FirstTouchInput {
        segment,
        regions,
        found,
        touchers,
        threads,
    } = input;
    let mut lines: HashMap<TouchingCode, Option<SourceLine>> = HashMap::new();
    let mut sums: BTreeMap<(u32, u32, SourceLine), u64> = BTreeMap::new();
    for ((object, thread, code), pages) in count_pages(found, touchers) {
        let known = lines.entry(code);
        let known = known.or_insert_with(|| program_line(code, segment, regions, naming));
        let Some(line) = known.clone() else {
            continue;
        };
        if line.line > 0 && (thread as usize) <= threads && thread > 0 {
            *sums.entry((object, thread - 1, line)).or_default() += pages;
        }
    }
    let rows = sums.into_iter();
    let rows = rows.map(|((object, thread, line), pages)| FirstTouchLine {
        object: ObjectIx(object),
        thread: ThreadIx(thread),
        file: line.file,
        line: line.line,
        function: line.function,
        pages,
    });
    keep_most(rows.collect())
}

/// Pages by object, thread slot and code.
fn count_pages(
    found: &ObjectTables,
    mut touchers: Vec<FirstToucher>,
) -> BTreeMap<(u32, u32, TouchingCode), u64> {
    touchers.sort_unstable_by_key(|t| t.name);
    let mut sums = BTreeMap::new();
    for &(object, region, offset, length) in &found.ranges {
        let page = |at: u64| u32::try_from(at >> PAGE_BITS).unwrap_or(u32::MAX);
        let first: PageName = (region, page(offset));
        let last: PageName = (
            region,
            page(offset.saturating_add(length).saturating_sub(1)),
        );
        let from = touchers.partition_point(|t| t.name < first);
        let own = touchers[from..].iter().take_while(|t| t.name <= last);
        for t in own {
            let key = (object, t.thread, (t.site, t.caller));
            *sums.entry(key).or_default() += 1;
        }
    }
    sums
}

/// The line of the program that touched: that of the code itself, or, in a library that every
/// program uses, of its caller. `None` if neither is the program's own.
fn program_line(
    (site, caller): TouchingCode,
    segment: &Segment,
    regions: &mut RegionMap,
    naming: &mut dyn Symbolizer,
) -> Option<SourceLine> {
    let record = segment.site(site);
    let pcs = [record.pc, caller.wrapping_sub(1)];
    pcs.into_iter().find_map(|pc| {
        let (region, vaddr) = regions.locate_code(record.process, pc, Some(record.generation))?;
        let file = PathBuf::from(&regions.all.get(region as usize)?.region.file);
        naming.program_line(&file, vaddr)
    })
}

fn keep_most(mut lines: Vec<FirstTouchLine>) -> Vec<FirstTouchLine> {
    lines.sort_by_key(|l| (l.object, std::cmp::Reverse(l.pages)));
    let mut kept: Vec<FirstTouchLine> = Vec::new();
    for own in lines.chunk_by(|a, b| a.object == b.object) {
        kept.extend(own.iter().take(MAX_LINES).cloned());
    }
    kept
}
