//! Source lines that touched the pages of each data structure first: where a page is placed is
//! decided there.
use super::address_space::PageName;
use super::allocation_paths::folded;
use super::code_lines::CodePlace;
use super::deadline::Deadline;
use super::objects::ObjectTables;
use super::pages::FirstToucher;
use super::regions::{RegionMap, PAGE_BITS};
use crate::trace::symbolizer::{SourceLine, Symbolizer};
use hither_profile::{FirstTouchLine, ObjectIx, Thread, ThreadIx};
use hither_sys::Segment;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

/// Lines kept of an object, those with most pages.
const MAX_LINES: usize = 8;
/// Rows of these: of a thousand threads and more, those that touched least may lack.
const MAX_ROWS: usize = 4096;

pub struct FirstTouchInput<'a> {
    pub segment: &'a Segment,
    pub regions: &'a mut RegionMap,
    pub found: &'a ObjectTables,
    /// Of all pages, by their names.
    pub first_touchers: &'a [FirstToucher],
    /// Those of the profile.
    pub threads: &'a [Thread],
    pub deadline: &'a Deadline,
}

/// What is known of a code site and the calls that led to it.
#[derive(Clone)]
struct TouchPlace {
    line: SourceLine,
    /// A folded stack.
    path: String,
    /// The body of a parallel region that it is in.
    body: Option<String>,
}

/// First touches of pages of an object by a thread, from one place.
struct Touches {
    object: u32,
    thread: u32,
    pages: u64,
    place: TouchPlace,
}

/// What rows tell apart: object, thread, line, and whether it was in parallel.
type TouchKey = (u32, u32, SourceLine, bool);

pub fn first_touch_lines(
    input: FirstTouchInput<'_>,
    naming: &mut dyn Symbolizer,
) -> Vec<FirstTouchLine> {
    let first_of_process: Vec<bool> = input.threads.iter().map(|t| t.creator.is_none()).collect();
    let touches = touches_by_place(input, naming);
    let by_others = touches
        .iter()
        .filter(|t| !first_of_process[t.thread as usize]);
    let bodies: HashSet<String> = by_others.filter_map(|t| t.place.body.clone()).collect();
    let mut sums: BTreeMap<TouchKey, BTreeMap<String, u64>> = BTreeMap::new();
    for Touches {
        object,
        thread,
        pages,
        place,
    } in touches
    {
        // A region whose body no other thread runs is parallel by name only.
        let in_team = place.body.is_some_and(|body| bodies.contains(&body));
        let in_parallel = in_team || !first_of_process[thread as usize];
        let paths = sums
            .entry((object, thread, place.line, in_parallel))
            .or_default();
        *paths.entry(place.path).or_default() += pages;
    }
    keep_most(sums.into_iter().map(first_touch_row).collect())
}

/// Those from lines that are known.
fn touches_by_place(input: FirstTouchInput<'_>, naming: &mut dyn Symbolizer) -> Vec<Touches> {
    let FirstTouchInput {
        segment,
        regions,
        found,
        first_touchers,
        threads,
        deadline,
    } = input;
    let mut places: HashMap<(u32, u32), Option<TouchPlace>> = HashMap::new();
    let mut touches = Vec::new();
    for ((object, number, site, path), pages) in count_pages(found, first_touchers, deadline) {
        let known = places
            .entry((site, path))
            .or_insert_with(|| touch_place(site, path, segment, regions, naming));
        let place = known.clone().filter(|place| place.line.line > 0);
        let thread = number
            .checked_sub(1)
            .filter(|&t| (t as usize) < threads.len());
        if let (Some(place), Some(thread)) = (place, thread) {
            touches.push(Touches {
                object,
                thread,
                pages,
                place,
            });
        }
    }
    touches
}

/// With the path by which most pages were touched.
fn first_touch_row(
    ((object, thread, line, in_parallel), paths): (TouchKey, BTreeMap<String, u64>),
) -> FirstTouchLine {
    let pages = paths.values().sum();
    let most = paths.into_iter().max_by_key(|&(_, pages)| pages);
    FirstTouchLine {
        object: ObjectIx(object),
        thread: ThreadIx(thread),
        file: line.file,
        line: line.line,
        function: line.function,
        path: most.map(|(path, _)| path).unwrap_or_default(),
        in_parallel,
        pages,
    }
}

fn touch_place(
    site: u32,
    path: u32,
    segment: &Segment,
    regions: &mut RegionMap,
    naming: &mut dyn Symbolizer,
) -> Option<TouchPlace> {
    let place = CodePlace::of_site(site, segment, regions);
    let line = SourceLine {
        callee: String::new(),
        ..place.program_line(regions, naming)?
    };
    let calls = naming.call_path(&touching_frames(place.code, path, segment, regions));
    let body = parallel_body(&calls);
    // Without the library's functions that touch for the line.
    let own = |call: &SourceLine| call.line == line.line && call.file == line.file;
    let from = calls.iter().position(own).unwrap_or(0);
    Some(TouchPlace {
        body,
        path: folded(&calls[from..]),
        line,
    })
}

/// The code that touches and the calls of the path, innermost first.
fn touching_frames(
    code: Option<(u32, u64)>,
    path: u32,
    segment: &Segment,
    regions: &mut RegionMap,
) -> Vec<(PathBuf, u64)> {
    let mut frames: Vec<(u32, u64)> = code.into_iter().collect();
    if path != 0 {
        let record = segment.site(path);
        let callers = record.path().into_iter();
        frames.extend(
            callers.filter_map(|pc| {
                regions.locate_code(record.process, pc - 1, Some(record.generation))
            }),
        );
    }
    let named = frames.into_iter().filter_map(|(region, vaddr)| {
        let file = &regions.all.get(region as usize)?.region.file;
        Some((PathBuf::from(file), vaddr))
    });
    named.collect()
}

/// The body of the innermost parallel region: what a library of OpenMP calls.
fn parallel_body(calls: &[SourceLine]) -> Option<String> {
    let inside = calls
        .windows(2)
        .find(|pair| !runs_teams(&pair[0]) && runs_teams(&pair[1]))?;
    Some(format!("{} {}", inside[0].file, inside[0].function))
}

/// Whether a call is within a library of OpenMP, which may be part of the program.
fn runs_teams(call: &SourceLine) -> bool {
    let libraries = ["libgomp", "libomp", "libiomp"];
    let named = |name: &str| libraries.iter().any(|library| name.starts_with(library));
    let functions = ["GOMP_parallel", "gomp_thread_start", "__kmp_"];
    let own = functions
        .iter()
        .any(|function| call.function.starts_with(function));
    own || named(&call.file) || named(&call.function)
}

/// Pages by object, number of the thread from 1, code site and path.
fn count_pages(
    found: &ObjectTables,
    first_touchers: &[FirstToucher],
    deadline: &Deadline,
) -> BTreeMap<(u32, u32, u32, u32), u64> {
    let mut sums = BTreeMap::new();
    for &(object, region, offset, length) in &found.ranges {
        let page = |at: u64| u32::try_from(at >> PAGE_BITS).unwrap_or(u32::MAX);
        let first: PageName = (region, page(offset));
        let last: PageName = (
            region,
            page(offset.saturating_add(length).saturating_sub(1)),
        );
        let from = first_touchers.partition_point(|t| t.name < first);
        let own = first_touchers[from..].iter().take_while(|t| t.name <= last);
        for t in own.take_while(|_| !deadline.passed()) {
            let key = (object, t.thread, t.site, t.path);
            *sums.entry(key).or_default() += 1;
        }
    }
    sums
}

/// Of each object the lines that touched most of its pages, all threads together, with the rows of
/// these threads.
fn keep_most(mut lines: Vec<FirstTouchLine>) -> Vec<FirstTouchLine> {
    lines.sort_by_key(|l| (l.object, std::cmp::Reverse(l.pages)));
    let mut kept: Vec<FirstTouchLine> = Vec::new();
    for own in lines.chunk_by(|a, b| a.object == b.object) {
        let mut sums: BTreeMap<LinePlace<'_>, u64> = BTreeMap::new();
        for row in own {
            *sums.entry(place_of(row)).or_default() += row.pages;
        }
        let mut most: Vec<(LinePlace<'_>, u64)> = sums.into_iter().collect();
        most.sort_by_key(|&(_, pages)| std::cmp::Reverse(pages));
        most.truncate(MAX_LINES);
        let is_kept = |row: &&FirstTouchLine| most.iter().any(|(place, _)| *place == place_of(row));
        kept.extend(own.iter().filter(is_kept).take(MAX_ROWS).cloned());
    }
    kept
}

/// File, line and function.
type LinePlace<'a> = (&'a str, u32, &'a str);

fn place_of(row: &FirstTouchLine) -> LinePlace<'_> {
    (&row.file, row.line, &row.function)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that many threads run counts with what all of them touch.
    #[test]
    fn lines_are_ranked_by_the_pages_of_all_threads() {
        let row = |object, thread, line, pages| FirstTouchLine {
            object: ObjectIx(object),
            thread: ThreadIx(thread),
            file: "a.c".to_owned(),
            line,
            pages,
            ..FirstTouchLine::default()
        };
        let mut rows: Vec<FirstTouchLine> = (0..64).map(|t| row(0, t, 10, 100)).collect();
        rows.push(row(0, 0, 20, 900));
        rows.extend((0..20).map(|n| row(0, 0, 30 + n, 101 + u64::from(n))));
        rows.push(row(1, 0, 99, 1));
        let kept = keep_most(rows);
        let pages = |line: u32| {
            let own = kept.iter().filter(|l| l.object.0 == 0 && l.line == line);
            own.map(|l| l.pages).sum::<u64>()
        };
        assert_eq!((pages(10), pages(20)), (6400, 900));
        let mut lines: Vec<u32> = kept.iter().map(|l| l.line).collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines, [10, 20, 44, 45, 46, 47, 48, 49, 99]);
    }
}
