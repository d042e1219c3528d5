//! Questions to a profile, in the terms of the workloads.
use std::collections::{BTreeMap, BTreeSet};

use hither_profile::{CommMatrix, Object, Profile, SliceIx, PAGE_SIZE};

/// Reads and writes of a thread.
pub type Counts = (u64, u64);
/// Who used a page, by thread.
pub type Users = BTreeMap<usize, Counts>;

/// The objects of that name, at least one; static pointers to them are left out.
pub fn named<'p>(profile: &'p Profile, name: &str) -> Vec<(usize, &'p Object)> {
    let all = profile.objects.iter().enumerate();
    let found: Vec<_> = all.filter(|(_, o)| o.name == name && o.size > 8).collect();
    assert!(
        !found.is_empty(),
        "no object {name}; there are {:?}",
        names(profile)
    );
    found
}

/// Names of all objects that were accessed.
pub fn names(profile: &Profile) -> Vec<&str> {
    profile
        .objects
        .iter()
        .filter(|o| o.reads + o.writes > 0)
        .map(|o| o.name.as_str())
        .collect()
}

/// Byte ranges of objects of that name: region, offset in it, length.
fn ranges(profile: &Profile, name: &str) -> Vec<(usize, u64, u64)> {
    let of: Vec<usize> = named(profile, name).iter().map(|(at, _)| *at).collect();
    let mine = profile
        .object_ranges
        .iter()
        .filter(|r| of.contains(&r.object.at()));
    mine.map(|r| (r.region.at(), r.offset, r.length)).collect()
}

/// Pages of the objects of that name, one block after the other, each from its first page,
/// and what identifies the block: its position.
fn numbering(profile: &Profile, name: &str) -> BTreeMap<(usize, u64), u64> {
    let mut next = 0;
    let mut numbers = BTreeMap::new();
    for (region, offset, length) in ranges(profile, name) {
        for page in offset / PAGE_SIZE..(offset + length).div_ceil(PAGE_SIZE) {
            numbers.insert((region, page), next);
            next += 1;
        }
    }
    numbers
}

/// Use of the pages of an object, by slice and page of the object.
pub fn pages_by_slice(profile: &Profile, name: &str) -> BTreeMap<(SliceIx, u64), Users> {
    let numbers = numbering(profile, name);
    let mut pages: BTreeMap<_, Users> = BTreeMap::new();
    for u in profile.pages.iter() {
        let Some(&page) = numbers.get(&(u.region.at(), u.page.at() as u64)) else {
            continue;
        };
        let users = pages.entry((u.slice, page)).or_default();
        add(users, u.thread.at(), (u.reads, u.writes));
    }
    pages
}

fn add(users: &mut Users, thread: usize, (reads, writes): Counts) {
    let sum = users.entry(thread).or_default();
    *sum = (sum.0 + reads, sum.1 + writes);
}

/// The same over the whole run, by page.
pub fn pages(profile: &Profile, name: &str) -> BTreeMap<u64, Users> {
    let mut pages: BTreeMap<u64, Users> = BTreeMap::new();
    for ((_, page), users) in pages_by_slice(profile, name) {
        for (thread, counts) in users {
            add(pages.entry(page).or_default(), thread, counts);
        }
    }
    pages
}

/// The thread that touched each page of an object first.
pub fn first_touch(profile: &Profile, name: &str) -> BTreeMap<u64, usize> {
    let numbers = numbering(profile, name);
    let touched = profile.first_touch.iter().filter_map(|f| {
        let page = numbers.get(&(f.region.at(), f.page.at() as u64))?;
        Some((*page, f.thread.at()))
    });
    touched.collect()
}

/// Sum over the pages and threads of an object.
pub fn total(profile: &Profile, name: &str) -> Counts {
    let pages = pages(profile, name);
    let all = pages.values().flat_map(BTreeMap::values);
    all.fold((0, 0), |sum, c| (sum.0 + c.0, sum.1 + c.1))
}

/// Exactly these users, page after page.
pub fn check_pages(
    profile: &Profile,
    name: &str,
    expected: impl Fn(u64) -> Vec<(usize, Counts)>,
    number: u64,
) {
    let found = pages(profile, name);
    let expected: BTreeMap<u64, Users> = (0..number)
        .map(|page| (page, expected(page).into_iter().collect::<Users>()))
        .filter(|(_, users): &(u64, Users)| !users.is_empty())
        .collect();
    let mut wrong = Vec::new();
    for page in 0..number.max(found.len() as u64) {
        let of = |all: &BTreeMap<u64, Users>, thread| all.get(&page)?.get(&thread).copied();
        let threads = [&found, &expected].map(|all| all.get(&page).into_iter().flatten());
        let threads: BTreeSet<usize> = threads.into_iter().flatten().map(|(t, _)| *t).collect();
        for thread in threads {
            let (found, expected) = (of(&found, thread), of(&expected, thread));
            if found != expected {
                wrong.push((page, thread, found, expected));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{name}: (page, thread, found, expected) {wrong:?}"
    );
}

/// The first toucher of every page of an object that somebody touched, 0.. < `number`.
pub fn check_first_touch(
    profile: &Profile,
    name: &str,
    expected: impl Fn(u64) -> usize,
    number: u64,
) {
    let found = first_touch(profile, name);
    assert_eq!(found.len() as u64, number, "{name}: pages touched");
    for (page, thread) in found {
        assert_eq!(thread, expected(page), "{name}: first touch of page {page}");
    }
}

/// Each cell against its bounds.
pub fn check_matrix(m: &CommMatrix, bounds: impl Fn(usize, usize) -> (u64, u64)) {
    for i in 0..m.threads() {
        for j in i + 1..m.threads() {
            let (low, high) = bounds(i, j);
            let found = m.get(i, j);
            assert!(
                (low..=high).contains(&found),
                "M[{i}][{j}] = {found}, expected {low} to {high} in\n{}",
                show(m)
            );
        }
    }
}

/// The matrix as text, for messages.
pub fn show(m: &CommMatrix) -> String {
    let n = m.threads().min(16);
    let row = |i| (0..n).map(|j| m.get(i, j)).collect::<Vec<_>>();
    (0..n).map(|i| format!("{:?}\n", row(i))).collect()
}

/// The line of a workload's source that contains `text` first.
pub fn line_of(file: &str, text: &str) -> u32 {
    lines_of(file, text)[0]
}

/// The lines of a workload that contain a text.
pub fn lines_of(file: &str, text: &str) -> Vec<u32> {
    let path = crate::run::source(file);
    let source = std::fs::read_to_string(&path).expect("the workload's source");
    let lines = (1..).zip(source.lines());
    let found = lines.filter(|(_, line)| line.contains(text));
    let found: Vec<u32> = found.map(|(number, _)| number).collect();
    assert!(!found.is_empty(), "{file} has no {text}");
    found
}

/// `found` differs from `expected` by no more than that share of it.
pub fn assert_within(found: u64, expected: u64, share: f64, what: &str) {
    let off = found.abs_diff(expected) as f64;
    assert!(
        off <= expected as f64 * share,
        "{what}: {found}, expected {expected} within {}%",
        share * 100.0
    );
}
