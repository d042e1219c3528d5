//! One process' address space over time: intervals of pages, each a part of a region,
//! with the generation in which it appeared. What was unmapped is remembered for pages
//! that are identified only afterwards.
use super::ended_intervals::EndedIntervals;
use super::region_interval::RegionInterval;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A page named for the profile: (region, page number in it).
pub type PageName = (u32, u32);

/// Memory that an interval takes, roughly.
const LIVE_BYTES: u64 = 64;

#[derive(Clone, Default)]
pub struct AddressSpaceHistory {
    /// A forked child has its parent's, until one of them changes.
    live: Arc<BTreeMap<u64, RegionInterval>>,
    /// The generation at the fork, from which on the child has had the intervals that it shares.
    forked: Option<u32>,
    /// Intervals that were left to children when it changed.
    left: usize,
    ended: EndedIntervals,
    /// Generation up to which changes have been reported. A page of a later one may lie in a
    /// mapping that is not known yet, at the address of one that is.
    pub reported: u32,
}

impl AddressSpaceHistory {
    /// What a forked child starts with.
    pub fn fork(&self, generation: u32) -> AddressSpaceHistory {
        AddressSpaceHistory {
            live: Arc::clone(&self.live),
            forked: Some(generation),
            left: 0,
            ended: EndedIntervals::default(),
            reported: generation,
        }
    }

    /// Forgets where other regions lay than these.
    pub fn keep_only(&mut self, is_kept: impl Fn(u32) -> bool) {
        let ended = std::mem::take(&mut self.ended);
        let ended = ended.last(usize::MAX).iter();
        for interval in ended.filter(|i| is_kept(i.region)) {
            self.ended.add(*interval);
        }
        let live = self.live.iter().filter(|(_, i)| is_kept(i.region));
        self.live = Arc::new(live.map(|(start, i)| (*start, self.own(*i))).collect());
        self.forked = None;
    }

    /// Memory that it takes for itself, roughly.
    pub fn bytes(&self) -> u64 {
        let own = self.forked.map_or(self.live.len(), |_| 0);
        (own + self.left) as u64 * LIVE_BYTES + self.ended.bytes()
    }

    /// The live intervals, to be changed.
    fn own_live(&mut self) -> &mut BTreeMap<u64, RegionInterval> {
        let forked = self.forked.take();
        if forked.is_none() && Arc::strong_count(&self.live) > 1 {
            self.left += self.live.len();
        }
        let live = Arc::make_mut(&mut self.live);
        if let Some(generation) = forked {
            live.values_mut().for_each(|i| i.generation = generation);
        }
        live
    }

    /// As this process has it.
    fn own(&self, interval: RegionInterval) -> RegionInterval {
        RegionInterval {
            generation: self.forked.unwrap_or(interval.generation),
            ..interval
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
            let old = self.live.get(&key).filter(|i| i.end > start);
            let Some(old) = old.map(|old| self.own(*old)) else {
                continue;
            };
            let live = self.own_live();
            live.remove(&key);
            for rest in [(old.start, start), (end, old.end)] {
                if rest.0 < rest.1 {
                    live.insert(rest.0, old.subinterval(rest.0, rest.1));
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
        self.own_live().insert(interval.start, interval);
        replaced
    }

    /// The live interval around a page.
    pub fn live_at(&self, page: u64) -> Option<RegionInterval> {
        let (_, interval) = self.live.range(..=page).next_back()?;
        (page < interval.end).then(|| self.own(*interval))
    }

    /// The live intervals in [start, end), whole.
    pub fn live_in(&self, start: u64, end: u64) -> impl Iterator<Item = RegionInterval> + '_ {
        let first = self.live_at(start).map_or(start, |i| i.start);
        let live = self.live.range(first..end.max(first));
        live.map(|(_, i)| self.own(*i))
    }

    /// The intervals to put in place one after the other for what is there now, over the
    /// last `gone` of those that are not any more.
    pub fn snapshot(&self, gone: usize) -> Vec<RegionInterval> {
        let ended = self.ended.last(gone).iter().copied();
        let live = self.live.values().map(|i| self.own(*i));
        ended.chain(live).collect()
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

    fn interval(start: u64, end: u64, region: u32, generation: u32) -> RegionInterval {
        RegionInterval {
            start,
            end,
            region,
            offset: 0,
            generation,
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
    fn a_forked_child_has_what_was_there_from_its_fork_on() {
        let mut parent = AddressSpaceHistory::default();
        parent.map(interval(10, 20, 1, 3));
        parent.map(interval(30, 40, 2, 4));
        let mut child = parent.fork(7);
        assert_eq!(child.bytes(), 0, "nothing of its own yet");
        assert_eq!(child.live_at(12).unwrap().generation, 7);
        parent.unmap(10, 20);
        assert_eq!(parent.live_at(12), None);
        assert_eq!(child.live_at(12).unwrap().region, 1);
        child.unmap(15, 16);
        child.map(interval(15, 16, 3, 8));
        let all = child.live_in(0, 100);
        let all: Vec<_> = all.map(|i| (i.start, i.region, i.generation)).collect();
        assert_eq!(all, [(10, 1, 7), (15, 3, 8), (16, 1, 7), (30, 2, 7)]);
        assert_eq!(child.interval_at(15, 7).unwrap().region, 1);
        assert_eq!(parent.live_at(30).unwrap().generation, 4);
        assert!(child.bytes() > 0 && parent.bytes() > 0);
    }

    #[test]
    fn what_is_kept_is_as_it_was() {
        let mut parent = AddressSpaceHistory::default();
        for (start, region) in [(10, 1), (20, 2), (30, 1)] {
            parent.map(interval(start, start + 5, region, 3));
        }
        let mut s = parent.fork(7);
        s.unmap(10, 25);
        s.keep_only(|region| region == 1);
        let at = |page| s.interval_at(page, 7).map(|i| (i.region, i.generation));
        assert_eq!([12, 22, 32].map(at), [Some((1, 7)), None, Some((1, 7))]);
        assert_eq!((s.live_at(12), s.live_in(0, 99).count()), (None, 1));
        assert_eq!(parent.live_in(0, 99).count(), 3);
    }

    #[test]
    fn of_many_mappings_in_turn_none_is_forgotten() {
        let mut s = AddressSpaceHistory::default();
        for generation in 1..=100_000 {
            s.map(interval(10, 14, generation, generation));
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
