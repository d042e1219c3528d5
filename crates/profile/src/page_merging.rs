//! Fewer rows of pages, where a run has used more of them than can be kept: neighbours become one row
//! (see [`crate::PageRows`]), those that are most alike first.
//!
//! ```text
//!   neighbours with the same users and like counts      any number of them
//!   neighbours with the same users                      in units of 64 KiB
//!   neighbours                                          in units of 64 KiB
//!   the same two                                        in units of 2 MiB
//!   with the pages between, which nobody has used       in units of 2 MiB, 16 MiB, 128 MiB...
//! ```
//! Each step goes on from what the one before has left, and the first that keeps within the budget is the
//! last. No unit reaches from one data structure into another that is as large as the unit.
use crate::ids::RegionIx;
use crate::io::encoded_bytes;
use crate::page_rows::{PageRow, PageRows, RowPages};
use crate::tables::{ObjectRange, PageFirstTouch, PageUse, PAGE_SIZE};
use crate::Profile;
use std::cmp::Reverse;

/// What the tables of page use and of first touches may take together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageBudget {
    /// Rows: each takes memory of those who read the profile.
    pub rows: usize,
    /// Bytes of both files.
    pub bytes: u64,
}

/// More bytes than a row takes on disk, so that small tables need not be measured.
const MOST_ROW_BYTES: u64 = 40;

/// Structures smaller than this do not keep a row from being merged with others.
const LEAST_STRUCTURE: u64 = 64 << 10;

/// What becomes one row.
#[derive(Clone, Copy)]
struct MergeRule {
    /// Only pages with the same users.
    same_users: bool,
    /// Only pages with about as many accesses.
    alike: bool,
    /// Only pages in the same unit of so many.
    unit: Option<u32>,
    /// Pages between them are taken for used.
    bridges: bool,
}

const K64: u32 = 16;
const M2: u32 = 512;

fn rules() -> impl Iterator<Item = MergeRule> {
    let rule = |same_users, alike, unit, bridges| MergeRule {
        same_users,
        alike,
        unit,
        bridges,
    };
    let first = [
        rule(true, true, None, false),
        rule(true, false, Some(K64), false),
        rule(false, false, Some(K64), false),
        rule(true, false, Some(M2), false),
        rule(false, false, Some(M2), false),
    ];
    let larger = (0..8).map(move |step| rule(false, false, M2.checked_mul(1 << (3 * step)), true));
    first.into_iter().chain(larger)
}

impl MergeRule {
    /// For people: what a row stands for.
    fn describe(self) -> String {
        let unit = self.unit.map(|pages| match u64::from(pages) * PAGE_SIZE {
            bytes if bytes < 1 << 20 => format!("{} KiB", bytes >> 10),
            bytes => format!("{} MiB", bytes >> 20),
        });
        let Some(unit) = unit else {
            return "neighbouring pages with the same users and like counts".to_owned();
        };
        match (self.same_users, self.bridges) {
            (true, _) => format!("neighbouring pages with the same users, up to {unit} of them,"),
            (_, false) => format!("neighbouring pages, up to {unit} of them,"),
            (_, true) => format!("pages of up to {unit}, with those between that nobody used,"),
        }
    }

    fn joins(self, a: RowPages, b: RowPages, borders: &Borders) -> bool {
        if (a.slice, a.region) != (b.slice, b.region) || b.first <= a.last() {
            return false;
        }
        let in_unit = self.unit.is_none_or(|u| a.first / u == b.last() / u);
        let side_by_side = self.bridges || a.last() + 1 == b.first;
        in_unit && side_by_side && !borders.between(a, b)
    }
}

impl Profile {
    /// Merges rows of pages until they keep within the budget; the sentence that says so for the profile's
    /// limits, where it was needed.
    pub fn merge_pages(&mut self, budget: PageBudget) -> Option<String> {
        let before = self.pages.row_count();
        let mut done = None;
        let mut rules = rules();
        while !self.keeps_within(budget) {
            let Some(rule) = rules.next() else { break };
            let unit = rule.unit.map_or(0, |pages| u64::from(pages) * PAGE_SIZE);
            let borders = Borders::of(&self.object_ranges, unit.max(LEAST_STRUCTURE));
            self.pages = merge_uses(&self.pages, rule, &borders);
            self.first_touch = merge_touches(&self.first_touch, rule, &borders);
            done = Some(rule);
        }
        let kept = self.pages.row_count();
        done.map(|rule| {
            let what = rule.describe();
            format!("There are {kept} rows of page use in place of {before}: {what} are kept together, to stay within the size budget. Their accesses are divided equally among them; totals are exact.")
        })
    }

    fn keeps_within(&self, budget: PageBudget) -> bool {
        let (uses, touches) = (&self.pages, &self.first_touch);
        let rows = [uses.row_count(), touches.row_count()];
        if rows.iter().any(|&rows| rows > budget.rows) {
            return false;
        }
        let bound = (rows[0] + rows[1]) as u64 * MOST_ROW_BYTES;
        bound <= budget.bytes || encoded_bytes(uses) + encoded_bytes(touches) <= budget.bytes
    }
}

/// Where large structures begin and end, by region and page.
struct Borders(Vec<(RegionIx, u32)>);

impl Borders {
    fn of(ranges: &[ObjectRange], least: u64) -> Borders {
        let large = ranges.iter().filter(|range| range.length >= least);
        let ends = large.flat_map(|range| {
            let end = range.offset.saturating_add(range.length);
            let pages = [range.offset / PAGE_SIZE, end.div_ceil(PAGE_SIZE)];
            pages.map(|page| (range.region, u32::try_from(page).unwrap_or(u32::MAX)))
        });
        let mut borders: Vec<_> = ends.collect();
        borders.sort_unstable();
        borders.dedup();
        Borders(borders)
    }

    /// Whether there is one after the first page of `a`, up to that of `b`.
    fn between(&self, a: RowPages, b: RowPages) -> bool {
        let passed = |pages: RowPages| {
            let place = (pages.region, pages.first);
            self.0.partition_point(|border| *border <= place)
        };
        passed(a) != passed(b)
    }
}

/// Pages that are becoming one row for each of their users.
struct OpenRun {
    pages: RowPages,
    rows: Vec<PageUse>,
}

impl OpenRun {
    fn accesses(rows: &[PageUse]) -> u64 {
        let all = rows.iter().map(|row| row.reads.saturating_add(row.writes));
        all.fold(0, u64::saturating_add)
    }

    fn has_users_of(&self, rows: &[PageUse]) -> bool {
        let own = self.rows.iter().map(|row| row.thread);
        own.eq(rows.iter().map(|row| row.thread))
    }

    /// Whether the accesses to a page of each are within a factor of two.
    fn is_like(&self, pages: RowPages, rows: &[PageUse]) -> bool {
        let each = |pages: RowPages, rows: &[PageUse]| Self::accesses(rows) / pages.count();
        let (a, b) = (each(self.pages, &self.rows), each(pages, rows));
        a.max(b) <= a.min(b).saturating_mul(2)
    }

    fn add(&mut self, pages: RowPages, rows: &[PageUse]) {
        self.pages.following = pages.last() - self.pages.first;
        for row in rows {
            match self.rows.binary_search_by_key(&row.thread, |r| r.thread) {
                Ok(at) => {
                    let sum = &mut self.rows[at];
                    sum.reads = sum.reads.saturating_add(row.reads);
                    sum.writes = sum.writes.saturating_add(row.writes);
                    sum.fetches = sum.fetches.saturating_add(row.fetches);
                }
                Err(at) => self.rows.insert(at, *row),
            }
        }
    }

    /// Its rows, and what goes on from other pages.
    fn close(&mut self, merged: &mut PageRows<PageUse>, next: RowPages) {
        let RowPages {
            first, following, ..
        } = std::mem::replace(&mut self.pages, next);
        let rows = self.rows.drain(..);
        merged.extend(rows.map(|row| row.with(first, following, row.counts())));
    }
}

fn merge_uses(all: &PageRows<PageUse>, rule: MergeRule, borders: &Borders) -> PageRows<PageUse> {
    let mut merged = PageRows::default();
    let mut open = OpenRun {
        pages: PageUse::default().pages(),
        rows: Vec::new(),
    };
    all.for_each_run(|run| {
        let pages = run[0].pages();
        let joins = !open.rows.is_empty()
            && rule.joins(open.pages, pages, borders)
            && (!rule.same_users || open.has_users_of(run))
            && (!rule.alike || open.is_like(pages, run));
        if !joins {
            open.close(&mut merged, pages);
        }
        open.add(pages, run);
    });
    let end = open.pages;
    open.close(&mut merged, end);
    merged
}

/// First touches of pages that are becoming one.
struct OpenTouch {
    pages: RowPages,
    /// The first of each thread, and how many pages it touched first.
    by_thread: Vec<(PageFirstTouch, u64)>,
}

impl OpenTouch {
    fn is_of(&self, row: &PageFirstTouch) -> bool {
        let of = |t: &PageFirstTouch| (t.thread, t.slice);
        self.by_thread.iter().all(|(own, _)| of(own) == of(row))
    }

    fn add(&mut self, row: PageFirstTouch) {
        let pages = row.pages();
        self.pages.following = pages.last() - self.pages.first;
        match self
            .by_thread
            .iter_mut()
            .find(|(t, _)| t.thread == row.thread)
        {
            Some((touch, count)) => {
                touch.slice = touch.slice.min(row.slice);
                *count += pages.count();
            }
            None => self.by_thread.push((row, pages.count())),
        }
    }

    /// The pages count as touched by the thread that touched most of them.
    fn close(&mut self, merged: &mut PageRows<PageFirstTouch>, next: RowPages) {
        let pages = std::mem::replace(&mut self.pages, next);
        let most = self.by_thread.drain(..).max_by_key(|(touch, count)| {
            let earliest = (touch.slice, touch.thread);
            (*count, Reverse(earliest))
        });
        merged.extend(most.map(|(touch, _)| touch.with(pages.first, pages.following, [0; 3])));
    }
}

fn merge_touches(
    all: &PageRows<PageFirstTouch>,
    rule: MergeRule,
    borders: &Borders,
) -> PageRows<PageFirstTouch> {
    let mut merged = PageRows::default();
    let mut open = OpenTouch {
        pages: PageFirstTouch::default().pages(),
        by_thread: Vec::new(),
    };
    for row in all.rows() {
        let joins = !open.by_thread.is_empty()
            && rule.joins(open.pages, row.pages(), borders)
            && (!rule.same_users || open.is_of(&row));
        if !joins {
            open.close(&mut merged, row.pages());
        }
        open.add(row);
    }
    let end = open.pages;
    open.close(&mut merged, end);
    merged
}

#[cfg(test)]
mod tests;
