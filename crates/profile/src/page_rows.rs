//! The tables of pages. A row stands for a page, or for several pages side by side where a run has
//! more of them than can be kept, and is read as what it says of each:
//!
//! ```text
//!   rows          (pages 4 to 7, thread 0, 6 reads)  (pages 4 to 7, thread 1, 2 reads)
//!   read as       page 4: thread 0 2 reads                         6 = 4 x 1 + 2, of which the
//!                 page 5: thread 0 2 reads                         first two pages have one more
//!                 page 6: thread 0 1 read, thread 1 1 read         and the next two those of the
//!                 page 7: thread 0 1 read, thread 1 1 read         next row
//! ```
//! So the counts of a row are those of its pages together, no count is lost or made up, and as long as
//! there is an access for each page, each has one.
use crate::ids::{PageNo, RegionIx, SliceIx, ThreadIx};
use crate::packed_rows::{PackedRow, PackedRows, Unpacker};
use crate::tables::{PageFirstTouch, PageUse};

/// Rows of single pages that readers go through. To keep them takes some 40 bytes each.
const MOST_SEEN: u64 = 200_000_000;

/// A row of a table of pages.
pub trait PageRow: PackedRow {
    /// Rows of the same pages follow one another.
    fn pages(&self) -> RowPages;
    /// Its counts, which its pages share.
    fn counts(&self) -> [u64; 3];
    /// The row of other pages, with other counts.
    #[must_use]
    fn with(&self, first: u32, following: u32, counts: [u64; 3]) -> Self;
}

/// The pages of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowPages {
    /// Of page use, when; else 0.
    pub slice: SliceIx,
    /// The region.
    pub region: RegionIx,
    /// The first page.
    pub first: u32,
    /// Pages that follow it.
    pub following: u32,
}

impl RowPages {
    /// The last page.
    #[must_use]
    pub fn last(self) -> u32 {
        self.first.saturating_add(self.following)
    }

    /// How many there are.
    #[must_use]
    pub fn count(self) -> u64 {
        u64::from(self.following) + 1
    }
}

impl PageRow for PageUse {
    fn pages(&self) -> RowPages {
        RowPages {
            slice: self.slice,
            region: self.region,
            first: self.page.0,
            following: self.following,
        }
    }

    fn counts(&self) -> [u64; 3] {
        [self.reads, self.writes, self.fetches]
    }

    fn with(&self, first: u32, following: u32, [reads, writes, fetches]: [u64; 3]) -> Self {
        PageUse {
            page: PageNo(first),
            following,
            reads,
            writes,
            fetches,
            ..*self
        }
    }
}

impl PageRow for PageFirstTouch {
    fn pages(&self) -> RowPages {
        RowPages {
            slice: SliceIx(0),
            region: self.region,
            first: self.page.0,
            following: self.following,
        }
    }

    fn counts(&self) -> [u64; 3] {
        [0; 3]
    }

    fn with(&self, first: u32, following: u32, _: [u64; 3]) -> Self {
        PageFirstTouch {
            page: PageNo(first),
            following,
            ..*self
        }
    }
}

impl PackedRow for PageUse {
    fn to_numbers(&self) -> [u64; 8] {
        let place = [self.slice.0, self.region.0, self.page.0, self.following];
        let [slice, region, page, following] = place.map(u64::from);
        let thread = self.thread.0.into();
        let [reads, writes, fetches] = self.counts();
        [
            slice, region, page, following, thread, reads, writes, fetches,
        ]
    }

    fn from_numbers(numbers: &[u64; 8]) -> Self {
        let [slice, region, page, following, thread, reads, writes, fetches] = *numbers;
        PageUse {
            slice: SliceIx(slice as u32),
            region: RegionIx(region as u32),
            page: PageNo(page as u32),
            following: following as u32,
            thread: ThreadIx(thread as u32),
            reads,
            writes,
            fetches,
        }
    }
}

impl PackedRow for PageFirstTouch {
    fn to_numbers(&self) -> [u64; 8] {
        let of = [self.region.0, self.page.0, self.following, self.thread.0];
        let [region, page, following, thread] = of.map(u64::from);
        [
            region,
            page,
            following,
            thread,
            self.slice.0.into(),
            0,
            0,
            0,
        ]
    }

    fn from_numbers(numbers: &[u64; 8]) -> Self {
        let [region, page, following, thread, slice, ..] = numbers.map(|n| n as u32);
        PageFirstTouch {
            region: RegionIx(region),
            page: PageNo(page),
            following,
            thread: ThreadIx(thread),
            slice: SliceIx(slice),
        }
    }
}

/// A table of pages, see the module.
pub type PageRows<R> = PackedRows<R>;

impl<R: PageRow> PackedRows<R> {
    /// Rows as there would be if each stood for one page.
    #[must_use]
    pub fn single_pages(&self) -> u64 {
        self.rows().map(|row| row.pages().count()).sum()
    }

    /// Pages that are seen as one, so that there are not many more than 200 million rows: 1, or a
    /// power of two.
    #[must_use]
    pub fn grain(&self) -> u32 {
        let fold = self.single_pages().div_ceil(MOST_SEEN).max(1);
        fold.next_power_of_two().min(1 << 20) as u32
    }

    /// A row for each page and thread. Of more pages than anybody could go through, each row is of
    /// [`PageRows::grain`] pages.
    pub fn iter(&self) -> impl Iterator<Item = R> + Clone + '_ {
        self.parts(1, |_| 0)
    }

    /// A row for each thread and what of a row lies in one large page of `size` pages, where `before`
    /// tells how many pages of the first one lie before a region.
    pub fn parts<'a, B>(&'a self, size: u32, before: B) -> impl Iterator<Item = R> + Clone + 'a
    where
        B: Fn(RegionIx) -> u64 + Clone + 'a,
    {
        PageParts {
            left: self.rows(),
            ahead: None,
            rows: Vec::new(),
            starts: Vec::new(),
            pages: 0,
            part: (0, 0),
            next: 0,
            size: size.max(self.grain()).into(),
            before,
        }
    }

    /// Hands over the rows of the same pages together.
    pub fn for_each_run(&self, mut visit: impl FnMut(&mut Vec<R>)) {
        let mut run: Vec<R> = Vec::new();
        for row in self.rows() {
            if run
                .first()
                .is_some_and(|first| first.pages() != row.pages())
            {
                visit(&mut run);
                run.clear();
            }
            run.push(row);
        }
        if !run.is_empty() {
            visit(&mut run);
        }
    }
}

impl PackedRows<PageUse> {
    /// Gives pages to other threads, and adds up what comes to be of one.
    pub(crate) fn change_threads(&mut self, new: impl Fn(ThreadIx) -> ThreadIx) {
        let mut changed = PackedRows::default();
        self.for_each_run(|run| {
            run.iter_mut().for_each(|row| row.thread = new(row.thread));
            run.sort_by_key(|row| row.thread);
            run.dedup_by(|row, before| {
                let same = row.thread == before.thread;
                if same {
                    before.reads += row.reads;
                    before.writes += row.writes;
                    before.fetches += row.fetches;
                }
                same
            });
            changed.extend(run.drain(..));
        });
        *self = changed;
    }
}

/// See [`PageRows::parts`].
#[derive(Clone)]
struct PageParts<'a, R, B> {
    left: Unpacker<'a, R>,
    ahead: Option<R>,
    /// The rows of one run of pages, and where the remainder of each count begins.
    rows: Vec<R>,
    starts: Vec<[u64; 3]>,
    pages: u64,
    /// Of its pages, those of the part that is being told, and the row that is next.
    part: (u64, u64),
    next: usize,
    size: u64,
    before: B,
}

impl<R: PageRow, B: Fn(RegionIx) -> u64> PageParts<'_, R, B> {
    /// The pages of a row that lie in the same large page as its first.
    fn first_part(&self, pages: RowPages) -> u64 {
        let before = (self.before)(pages.region).saturating_add(pages.first.into());
        (self.size - before % self.size).min(pages.count())
    }

    /// Reads on to the rows of the next run, of which `first` is the first.
    fn open_run(&mut self, first: R) {
        let pages = first.pages();
        self.rows.clear();
        self.rows.push(first);
        for row in self.left.by_ref() {
            if row.pages() != pages {
                self.ahead = Some(row);
                break;
            }
            self.rows.push(row);
        }
        self.pages = pages.count();
        self.part = (0, self.first_part(pages));
        self.next = 0;
        find_starts(&self.rows, self.pages, &mut self.starts);
    }

    /// The next row of the run that is open.
    fn next_of_run(&mut self) -> Option<R> {
        if self.next == self.rows.len() {
            let from = self.part.1;
            if from >= self.pages {
                return None;
            }
            self.part = (from, (from + self.size).min(self.pages));
            self.next = 0;
        }
        let row = self.rows.get(self.next)?;
        let starts = self.starts[self.next];
        self.next += 1;
        let (from, to) = self.part;
        let mut counts = row.counts();
        for (count, start) in counts.iter_mut().zip(starts) {
            let before = |page| count_before(*count, self.pages, start, page);
            *count = before(to) - before(from);
        }
        let first = row.pages().first.saturating_add(from as u32);
        Some(row.with(first, (to - from - 1) as u32, counts))
    }
}

impl<R: PageRow, B: Fn(RegionIx) -> u64> Iterator for PageParts<'_, R, B> {
    type Item = R;

    fn next(&mut self) -> Option<R> {
        if let Some(row) = self.next_of_run() {
            return Some(row);
        }
        let row = self.ahead.take().or_else(|| self.left.next())?;
        let pages = row.pages();
        if pages.following == 0 || self.first_part(pages) == pages.count() {
            return Some(row);
        }
        self.open_run(row);
        self.next_of_run()
    }
}

/// Remainders are laid end to end, so that they cover all pages: those of reads and writes, and those of
/// fetches.
fn find_starts<R: PageRow>(rows: &[R], pages: u64, starts: &mut Vec<[u64; 3]>) {
    let (mut accesses, mut fetches) = (0, 0);
    let next = |at: &mut u64, count: u64| {
        let start = *at;
        *at = (start + count % pages) % pages;
        start
    };
    starts.clear();
    starts.extend(rows.iter().map(|row| {
        let [reads, writes, fetched] = row.counts();
        let [reads, writes] = [reads, writes].map(|count| next(&mut accesses, count));
        [reads, writes, next(&mut fetches, fetched)]
    }));
}

/// What of a count falls on the pages before `page` of `pages`, where its remainder begins at `start`.
fn count_before(count: u64, pages: u64, start: u64, page: u64) -> u64 {
    let (each, remainder) = (count / pages, count % pages);
    let to_the_end = remainder.min(pages - start);
    let at_the_beginning = remainder - to_the_end;
    each * page + page.saturating_sub(start).min(to_the_end) + page.min(at_the_beginning)
}

#[cfg(test)]
mod tests;
