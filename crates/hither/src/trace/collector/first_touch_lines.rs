//! Source lines that touched the pages of each data structure first: where a page is placed is
//! decided there.
use super::address_space::PageName;
use super::code_lines::CodePlace;
use super::objects::ObjectTables;
use super::pages::FirstToucher;
use super::regions::{RegionMap, PAGE_BITS};
use crate::trace::symbolizer::{SourceLine, Symbolizer};
use hither_profile::{FirstTouchLine, ObjectIx, ThreadIx};
use hither_sys::Segment;
use std::collections::{BTreeMap, HashMap};

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
    let mut lines: HashMap<u32, Option<SourceLine>> = HashMap::new();
    let mut sums: BTreeMap<(u32, u32, SourceLine), u64> = BTreeMap::new();
    for ((object, thread, site), pages) in count_pages(found, touchers) {
        let known = lines.entry(site).or_insert_with(|| {
            CodePlace::of_site(site, segment, regions).program_line(regions, naming)
        });
        let Some(mut line) = known.clone() else {
            continue;
        };
        line.callee.clear();
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

/// Pages by object, thread slot and code site.
fn count_pages(
    found: &ObjectTables,
    mut touchers: Vec<FirstToucher>,
) -> BTreeMap<(u32, u32, u32), u64> {
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
            let key = (object, t.thread, t.site);
            *sums.entry(key).or_default() += 1;
        }
    }
    sums
}

fn keep_most(mut lines: Vec<FirstTouchLine>) -> Vec<FirstTouchLine> {
    lines.sort_by_key(|l| (l.object, std::cmp::Reverse(l.pages)));
    let mut kept: Vec<FirstTouchLine> = Vec::new();
    for own in lines.chunk_by(|a, b| a.object == b.object) {
        kept.extend(own.iter().take(MAX_LINES).cloned());
    }
    kept
}
