//! A value for each of millions of pages: a sorted list, which takes less than half the memory of a
//! hash table.
use super::page_id::PageId;

/// Values by page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageMap<V> {
    /// In order.
    pages: Vec<PageId>,
    values: Vec<V>,
}

impl<V> Default for PageMap<V> {
    fn default() -> Self {
        PageMap {
            pages: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl<V> PageMap<V> {
    /// Of pages that are there several times the last value stays.
    #[must_use]
    pub fn from_pairs(mut pairs: Vec<(PageId, V)>) -> Self {
        pairs.sort_by_key(|pair| pair.0);
        let mut map = PageMap::default();
        map.reserve(pairs.len());
        for (page, value) in pairs {
            match map.values.last_mut() {
                Some(last) if map.pages.last() == Some(&page) => *last = value,
                _ => map.push(page, value),
            }
        }
        map
    }

    /// Room for so many more.
    pub fn reserve(&mut self, more: usize) {
        self.pages.reserve_exact(more);
        self.values.reserve_exact(more);
    }

    /// Adds a page behind all that are there.
    fn push(&mut self, page: PageId, value: V) {
        self.pages.push(page);
        self.values.push(value);
    }

    /// Other values for the same pages.
    #[must_use]
    pub fn map<W>(&self, value: impl FnMut(&V) -> W) -> PageMap<W> {
        PageMap {
            pages: self.pages.clone(),
            values: self.values.iter().map(value).collect(),
        }
    }

    fn position(&self, page: PageId) -> Option<usize> {
        self.pages.binary_search(&page).ok()
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
