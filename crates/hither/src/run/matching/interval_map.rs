//! One process' address space now: intervals of pages, each a part of something found.
use super::page_runs::AreaPiece;
use std::collections::BTreeMap;

/// What a policy does for the pages of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindEffect {
    /// They can be bound.
    Bindable,
    /// Pages of a file that are only read, or shared with whoever maps it: they lie where the page cache has them.
    Cached,
    /// A stack has not grown so far; what it grows by is bound as its lowest page is.
    Later,
}

/// Pages [start, end) of the address space that lie at `offset` of something found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceInterval {
    pub start: u64,
    pub end: u64,
    /// Position among what was found in the process.
    pub area: usize,
    /// Pages from its start.
    pub offset: u64,
    pub memory: BindEffect,
}

impl SpaceInterval {
    fn part(self, start: u64, end: u64) -> SpaceInterval {
        SpaceInterval {
            start,
            end,
            offset: self.offset + (start - self.start),
            ..self
        }
    }

    pub fn piece(&self) -> AreaPiece {
        AreaPiece {
            offset: self.offset,
            pages: self.end - self.start,
            at: self.start,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct IntervalMap(BTreeMap<u64, SpaceInterval>);

impl IntervalMap {
    /// Takes [start, end) out and returns the pieces that were there, in order.
    pub fn take(&mut self, start: u64, end: u64) -> Vec<SpaceInterval> {
        let before = self.0.range(..start).next_back();
        let before = before.filter(|(_, i)| i.end > start).map(|(s, _)| *s);
        let inside = self.0.range(start..end.max(start)).map(|(s, _)| *s);
        let keys: Vec<u64> = before.into_iter().chain(inside).collect();
        let mut pieces = Vec::new();
        for key in keys {
            let Some(old) = self.0.remove(&key) else {
                continue;
            };
            for (start, end) in [(old.start, start), (end, old.end)] {
                if start < end {
                    self.0.insert(start, old.part(start, end));
                }
            }
            pieces.push(old.part(old.start.max(start), old.end.min(end)));
        }
        pieces
    }

    /// Puts an interval in place of whatever is there.
    pub fn put(&mut self, interval: SpaceInterval) {
        if interval.start < interval.end {
            self.take(interval.start, interval.end);
            self.0.insert(interval.start, interval);
        }
    }

    /// The interval around a page.
    pub fn at(&self, page: u64) -> Option<SpaceInterval> {
        let (_, interval) = self.0.range(..=page).next_back()?;
        (page < interval.end).then_some(*interval)
    }

    /// All, by address.
    pub fn iter(&self) -> impl Iterator<Item = &SpaceInterval> {
        self.0.values()
    }

    /// Those of one area that was found, by address.
    pub fn intervals_of(&self, area: usize) -> impl Iterator<Item = &SpaceInterval> {
        self.0.values().filter(move |i| i.area == area)
    }
}
