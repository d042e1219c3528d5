//! Which pages of the segment have ever been written.
//!
//! A page of the memory file that was never written takes memory once it is read. The target says
//! what is to be read, in a few bytes that may be forged: which threads have caches, objects, rows.
//! So records are read from pages only that the target has written itself; others are zeros.
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: u64 = 4096;

/// A bit per page that is known to have been written.
pub(crate) struct WrittenPages(Vec<AtomicU64>);

impl WrittenPages {
    pub(crate) fn new(bytes: u64) -> WrittenPages {
        let words = bytes.div_ceil(PAGE * 64) as usize;
        WrittenPages((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Whether the page around a place has ever been written; `ask` tells of a page of which that is not
    /// known.
    pub(crate) fn is_written(&self, at: u64, ask: impl FnOnce(u64, u64) -> bool) -> bool {
        let Some((word, bit)) = self.word(at) else {
            return false;
        };
        if word.load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        let written = ask(at / PAGE * PAGE, PAGE);
        if written {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        written
    }

    fn word(&self, at: u64) -> Option<(&AtomicU64, u64)> {
        let page = at / PAGE;
        let word = self.0.get((page / 64) as usize)?;
        Some((word, 1 << (page % 64)))
    }

    /// Whole pages of a range are as never written.
    pub(crate) fn forget(&self, start: u64, length: u64) {
        let (first, end) = (start.div_ceil(PAGE), start.saturating_add(length) / PAGE);
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

/// What is known of the page that a scan is in. A page that is not written is asked for once.
#[derive(Default)]
pub(crate) struct WrittenPage(Option<(u64, bool)>);

impl WrittenPage {
    pub(crate) fn is_written(&mut self, at: u64, ask: impl FnOnce(u64) -> bool) -> bool {
        let page = at / PAGE;
        match self.0 {
            Some((known, written)) if known == page => written,
            _ => {
                let written = ask(at);
                self.0 = Some((page, written));
                written
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_forgotten_by_whole_pages() {
        let pages = WrittenPages::new(200 * PAGE);
        let all = || pages.0.iter().map(|word| word.load(Ordering::Relaxed));
        let set = || all().map(u64::count_ones).sum::<u32>();
        for page in 0..200 {
            let (word, bit) = pages.word(page * PAGE + 5).unwrap();
            word.fetch_or(bit, Ordering::Relaxed);
        }
        assert_eq!(set(), 200);
        pages.forget(PAGE / 2, PAGE);
        assert_eq!(set(), 200, "no page as a whole");
        pages.forget(PAGE - 1, 2 * PAGE + 2);
        assert_eq!(set(), 198);
        pages.forget(60 * PAGE, 80 * PAGE);
        assert_eq!(set(), 118);
        pages.forget(150 * PAGE, u64::MAX);
        assert_eq!(set(), 68);
        assert!(pages.word(1 << 40).is_none());
    }
}
