//! A value for each of millions of pages: a sorted list, which takes less than half the memory of a
//! hash table.
use super::page_id::PageId;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Values by page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageMap<V> {
    /// In order; maps with other values of the same pages have them in common.
    pages: Arc<Vec<PageId>>,
    values: Vec<V>,
    hint: PositionHint,
}

/// Where the page lies that follows the last one looked up: mostly it is asked for next.
#[derive(Debug, Default)]
struct PositionHint(AtomicUsize);

impl Clone for PositionHint {
    fn clone(&self) -> Self {
        PositionHint::default()
    }
}

impl PartialEq for PositionHint {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<V> Default for PageMap<V> {
    fn default() -> Self {
        PageMap {
            pages: Arc::default(),
            values: Vec::new(),
            hint: PositionHint::default(),
        }
    }
}

impl<V> PageMap<V> {
    /// Of pages that are there several times the last value stays.
    #[must_use]
    pub fn from_pairs(mut pairs: Vec<(PageId, V)>) -> Self {
        pairs.sort_by_key(|pair| pair.0);
        PageMap::from_sorted(pairs.into_iter())
    }

    /// Of pages in order.
    pub fn from_sorted(pairs: impl Iterator<Item = (PageId, V)>) -> Self {
        let (mut pages, mut values): (Vec<PageId>, Vec<V>) = (Vec::new(), Vec::new());
        for (page, value) in pairs {
            match values.last_mut() {
                Some(last) if pages.last() == Some(&page) => *last = value,
                _ => {
                    pages.push(page);
                    values.push(value);
                }
            }
        }
        pages.shrink_to_fit();
        values.shrink_to_fit();
        PageMap {
            pages: Arc::new(pages),
            values,
            hint: PositionHint::default(),
        }
    }

    /// Other values for the same pages.
    #[must_use]
    pub fn map<W>(&self, value: impl FnMut(&V) -> W) -> PageMap<W> {
        PageMap {
            pages: Arc::clone(&self.pages),
            values: self.values.iter().map(value).collect(),
            hint: PositionHint::default(),
        }
    }

    fn position(&self, page: PageId) -> Option<usize> {
        let hint = self.hint.0.load(Ordering::Relaxed);
        let at = match self.pages.get(hint) {
            Some(found) if *found == page => hint,
            _ => self.pages.binary_search(&page).ok()?,
        };
        self.hint.0.store(at + 1, Ordering::Relaxed);
        Some(at)
    }

    /// The value of a page, if it has one.
    #[must_use]
    pub fn get(&self, page: PageId) -> Option<&V> {
        self.position(page).map(|at| &self.values[at])
    }

    /// The same to be changed.
    pub fn get_mut(&mut self, page: PageId) -> Option<&mut V> {
        self.position(page).map(|at| &mut self.values[at])
    }

    /// All values, in order of pages.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.values.iter()
    }

    /// All pages with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, &V)> {
        self.pages.iter().copied().zip(&self.values)
    }
}
