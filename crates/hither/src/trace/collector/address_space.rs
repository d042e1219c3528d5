//! One process' address space over time: intervals of pages, each a part of a region,
//! with the generation in which it appeared. What was unmapped is remembered for pages
//! that are identified only afterwards.
use super::ended_intervals::EndedIntervals;
use super::region_interval::RegionInterval;
use std::collections::BTreeMap;

/// A page named for the profile: (region, page number in it).
pub type PageName = (u32, u32);

#[derive(Clone, Default)]
pub struct AddressSpaceHistory {
    live: BTreeMap<u64, RegionInterval>,
    ended: EndedIntervals,
    /// Generation up to which changes have been reported. A page of a later one may lie in a
    /// mapping that is not known yet, at the address of one that is.
    pub reported: u32,
}

impl AddressSpaceHistory {
    /// What a forked child starts with.
    pub fn fork(&self, generation: u32) -> AddressSpaceHistory {
        let mut live = self.live.clone();
        live.values_mut().for_each(|i| i.generation = generation);
        AddressSpaceHistory {
            live,
            ended: EndedIntervals::default(),
            reported: generation,
        }
    }

    /// Takes [start, end) out of the live intervals and returns the pieces.
    pub fn carve(&mut self, start: u64, end: u64) -> Vec<RegionInterval> {
        if start >= end {
            return Vec::new();
        }
        let before = self.live.range(..start).next_back().map(|(s, _)| *s);
        let hit: Vec<u64> = before
            .into_iter()
            .chain(self.live.range(start..end).map(|(s, _)| *s))
            .collect();
        let mut pieces = Vec::new();
        for key in hit {
            let Some(old) = self.live.get(&key).copied().filter(|i| i.end > start) else {
                continue;
            };
            self.live.remove(&key);
            for rest in [(old.start, start), (end, old.end)] {
                if rest.0 < rest.1 {
                    self.live.insert(rest.0, old.subinterval(rest.0, rest.1));
                }
            }
            pieces.push(old.subinterval(old.start.max(start), old.end.min(end)));
        }
        pieces
    }

    /// Ends what lies in [start, end); pages touched before may still ask for it.
    /// Returns it.
    pub fn unmap(&mut self, start: u64, end: u64) -> Vec<RegionInterval> {
        let pieces = self.carve(start, end);
        pieces.iter().for_each(|piece| self.ended.add(*piece));
        pieces
    }

    /// Puts an interval in place of whatever is there, which it returns.
    pub fn map(&mut self, interval: RegionInterval) -> Vec<RegionInterval> {
        if interval.start >= interval.end {
            return Vec::new();
        }
        let replaced = self.unmap(interval.start, interval.end);
        self.live.insert(interval.start, interval);
        replaced
    }

    /// The live interval around a page.
    pub fn live_at(&self, page: u64) -> Option<RegionInterval> {
        let (_, interval) = self.live.range(..=page).next_back()?;
        (page < interval.end).then_some(*interval)
    }

    /// The live intervals in [start, end), whole.
    pub fn live_in(&self, start: u64, end: u64) -> impl Iterator<Item = &RegionInterval> {
        let first = self.live_at(start).map_or(start, |i| i.start);
        self.live.range(first..end.max(first)).map(|(_, i)| i)
    }

    /// The intervals to put in place one after the other for what is there now, over the
    /// last `gone` of those that are not any more.
    pub fn snapshot(&self, gone: usize) -> Vec<RegionInterval> {
        let ended = self.ended.last(gone).iter();
        ended.chain(self.live.values()).copied().collect()
    }

    /// What was around a page when the process was at `generation`: the youngest interval
    /// that existed then, else (the target may have been between announcing a change and
    /// making it) the oldest that came later.
    pub fn interval_at(&self, page: u64, generation: u32) -> Option<RegionInterval> {
        let live = self.live_at(page);
        if live.is_some_and(|i| i.generation <= generation) {
            return live;
        }
        let (existed, later) = self.ended.around(page, generation);
        existed.or(later).or(live)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(start: u64, end: u64, region: u32, born: u32) -> RegionInterval {
        RegionInterval {
            start,
            end,
            region,
            offset: 0,
            generation: born,
        }
    }

    #[test]
    fn unmapping_the_middle_keeps_offsets() {
        let mut s = AddressSpaceHistory::default();
        s.map(interval(10, 20, 1, 1));
        s.unmap(13, 15);
        assert_eq!(s.live_at(12).unwrap().end, 13);
        assert_eq!(s.live_at(13), None);
        assert_eq!(s.live_at(17).unwrap().offset, 5);
        assert_eq!(
            s.interval_at(14, 1).unwrap().offset,
            3,
            "touched before the unmap"
        );
    }

    #[test]
    fn generations_tell_reused_addresses_apart() {
        let mut s = AddressSpaceHistory::default();
        s.map(interval(10, 20, 1, 3));
        s.unmap(10, 20);
        s.map(interval(10, 20, 2, 5));
        let region = |generation| s.interval_at(11, generation).map(|i| i.region);
        assert_eq!([3, 4, 5, 9, 1].map(region), [1, 1, 2, 2, 1].map(Some));
        assert_eq!(s.interval_at(9, 5), None);
    }

    #[test]
    fn of_many_mappings_in_turn_none_is_forgotten() {
        let mut s = AddressSpaceHistory::default();
        for born in 1..=100_000 {
            s.map(interval(10, 14, born, born));
            s.unmap(10, 14);
        }
        let region = |generation| s.interval_at(12, generation).map(|i| i.region);
        assert_eq!([1, 7, 99_999].map(region), [1, 7, 99_999].map(Some));
    }

    #[test]
    fn mapping_over_the_end_of_another() {
        let mut s = AddressSpaceHistory::default();
        s.map(interval(10, 20, 1, 1));
        s.map(interval(15, 25, 2, 2));
        assert_eq!(
            s.live_in(0, 100)
                .map(|i| (i.start, i.end))
                .collect::<Vec<_>>(),
            [(10, 15), (15, 25)]
        );
        assert_eq!(s.live_in(12, 15).count(), 1);
    }
}
