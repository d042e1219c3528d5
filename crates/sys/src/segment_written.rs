//! Which pages of the segment have ever been written.
//!
//! A page of the memory file that was never written takes memory once it is read. The target says
//! what is to be read, in a few bytes that may be forged: which threads have caches, objects, rows.
//! So records are read from pages only that the target has written itself; others are zeros.
use hither_profile::PAGE_SIZE;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A bit per page that is known to have been written.
pub(crate) struct WrittenPages(Vec<AtomicU64>);

impl WrittenPages {
    pub(crate) fn new(bytes: u64) -> WrittenPages {
        let words = bytes.div_ceil(PAGE_SIZE * 64) as usize;
        WrittenPages((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Where, from the page around a place on, the first byte lies that was ever written; `next_data`
    /// tells of a page of which that is not known.
    pub(crate) fn written_from(&self, at: u64, next_data: impl FnOnce(u64) -> u64) -> u64 {
        let Some((word, bit)) = self.word(at) else {
            return u64::MAX;
        };
        let page = at / PAGE_SIZE * PAGE_SIZE;
        if word.load(Ordering::Relaxed) & bit != 0 {
            return page;
        }
        let next = next_data(page).max(page);
        if next < page + PAGE_SIZE {
            word.fetch_or(bit, Ordering::Relaxed);
            return page;
        }
        next
    }

    fn word(&self, at: u64) -> Option<(&AtomicU64, u64)> {
        let page = at / PAGE_SIZE;
        let word = self.0.get((page / 64) as usize)?;
        Some((word, 1 << (page % 64)))
    }

    /// Whole pages of a range are as never written.
    pub(crate) fn forget(&self, start: u64, length: u64) {
        let (first, end) = (
            start.div_ceil(PAGE_SIZE),
            start.saturating_add(length) / PAGE_SIZE,
        );
        let mut page = first;
        while page < end {
            let Some(word) = self.0.get((page / 64) as usize) else {
                return;
            };
            let last = end.min((page / 64 + 1) * 64);
            let bits = (u64::MAX >> (64 - (last - page))) << (page % 64);
            if word.load(Ordering::Relaxed) & bits != 0 {
                word.fetch_and(!bits, Ordering::Relaxed);
            }
            page = last;
        }
    }
}

/// What a scan knows of the pages that it is in: whether those of this range were written. Of pages that
/// are not written the kernel is asked once for all that follow one another.
#[derive(Default)]
pub(crate) struct WrittenPage(Option<(Range<u64>, bool)>);

impl WrittenPage {
    /// `written_from`: as [`WrittenPages::written_from`].
    pub(crate) fn is_written(&mut self, at: u64, written_from: impl FnOnce(u64) -> u64) -> bool {
        if let Some((known, written)) = &self.0 {
            if known.contains(&at) {
                return *written;
            }
        }
        let (page, from) = (at / PAGE_SIZE * PAGE_SIZE, written_from(at));
        let written = from <= at;
        let end = if written { page + PAGE_SIZE } else { from };
        self.0 = Some((page..end, written));
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each page of a part that was never written was asked for, thousands of times for each thread.
    #[test]
    fn pages_that_were_not_written_are_asked_for_together() {
        let pages = WrittenPages::new(1000 * PAGE_SIZE);
        let mut asked = Vec::new();
        let mut scan = |places: &[u64]| {
            let mut page = WrittenPage::default();
            let is_written = |&at: &u64| {
                page.is_written(at, |at| {
                    pages.written_from(at, |from| {
                        asked.push(from / PAGE_SIZE);
                        // Of pages 7 and 500 there is something.
                        [7, 500]
                            .map(|n| n * PAGE_SIZE)
                            .into_iter()
                            .find(|n| *n >= from)
                            .unwrap_or(u64::MAX)
                    })
                })
            };
            places.iter().map(is_written).filter(|&w| w).count()
        };
        let all: Vec<u64> = (0..1000 * PAGE_SIZE).step_by(32).collect();
        assert_eq!(scan(&all), 2 * 128);
        assert_eq!(scan(&[3, 7 * PAGE_SIZE + 9]), 1);
        assert_eq!(asked, [0, 7, 8, 500, 501, 0]);
    }

    #[test]
    fn a_range_is_forgotten_by_whole_pages() {
        let pages = WrittenPages::new(200 * PAGE_SIZE);
        let all = || pages.0.iter().map(|word| word.load(Ordering::Relaxed));
        let set = || all().map(u64::count_ones).sum::<u32>();
        for page in 0..200 {
            let (word, bit) = pages.word(page * PAGE_SIZE + 5).unwrap();
            word.fetch_or(bit, Ordering::Relaxed);
        }
        assert_eq!(set(), 200);
        pages.forget(PAGE_SIZE / 2, PAGE_SIZE);
        assert_eq!(set(), 200, "no page as a whole");
        pages.forget(PAGE_SIZE - 1, 2 * PAGE_SIZE + 2);
        assert_eq!(set(), 198);
        pages.forget(60 * PAGE_SIZE, 80 * PAGE_SIZE);
        assert_eq!(set(), 118);
        pages.forget(150 * PAGE_SIZE, u64::MAX);
        assert_eq!(set(), 68);
        assert!(pages.word(1 << 40).is_none());
    }
}
