//! The intervals of an address space that are no more, by page and generation.
//!
//! A segment tree over page numbers (de Berg et al., Computational Geometry, 10.3): an interval
//! lies in the aligned blocks of 2^level pages that make it up, two a level at most. One that
//! holds a page is in the block around the page of some level, and the intervals of a block
//! existed one after the other: a binary search in each finds which of them did at a time. A few are in no
//! blocks, which take many times their memory: most processes of a script have no more.
use super::region_interval::RegionInterval;
use std::collections::HashMap;

/// Blocks are at most the whole address space.
const LEVELS: u32 = 52;

#[derive(Clone, Default)]
pub struct EndedIntervals {
    /// In the order of their ends.
    all: Vec<RegionInterval>,
    /// Numbers in `all` by block, in the order of their generations; none of [`FEW`].
    blocks: HashMap<u64, Vec<u32>>,
    /// Bit per level that has blocks.
    levels: u64,
    /// Numbers in all blocks.
    numbers: usize,
}

/// So many are looked at one by one.
const FEW: usize = 32;
/// Later ones that a number is put before at most. Intervals of a block exist one after the other, and
/// are reported nearly so; a target that reports them backwards would have us move all of them.
const MOST_MOVED: usize = 64;
/// Memory that a block and an interval take, and its number in a block, roughly.
const BLOCK_BYTES: u64 = 96;
const INTERVAL_BYTES: u64 = 40;
const NUMBER_BYTES: u64 = 4;

/// The generation of an interval and its number.
type Found = (u32, u32);

fn block(page: u64, level: u32) -> u64 {
    u64::from(level) << 56 | page >> level
}

impl EndedIntervals {
    pub fn add(&mut self, interval: RegionInterval) {
        self.all.push(interval);
        let count = self.all.len();
        if count > FEW {
            let new = if self.blocks.is_empty() { 0 } else { count - 1 };
            (new..count).for_each(|number| self.put_into_blocks(number as u32));
        }
    }

    fn put_into_blocks(&mut self, number: u32) {
        let interval = self.all[number as usize];
        let mut at = interval.start;
        while at < interval.end {
            // The largest block that begins here and ends within the interval.
            let fits = (interval.end - at).ilog2();
            let level = at.trailing_zeros().min(fits).min(LEVELS - 1);
            let numbers = self.blocks.entry(block(at, level)).or_default();
            let later = |n: &u32| self.all[*n as usize].generation <= interval.generation;
            let before = numbers.partition_point(later);
            if numbers.len() - before <= MOST_MOVED {
                numbers.insert(before, number);
                self.numbers += 1;
            }
            self.levels |= 1 << level;
            at += 1 << level;
        }
    }

    /// Memory that it takes, roughly.
    pub fn bytes(&self) -> u64 {
        self.all.len() as u64 * INTERVAL_BYTES
            + self.blocks.len() as u64 * BLOCK_BYTES
            + self.numbers as u64 * NUMBER_BYTES
    }

    /// The last `count`, in the order of their ends.
    pub fn last(&self, count: usize) -> &[RegionInterval] {
        &self.all[self.all.len().saturating_sub(count)..]
    }

    /// Of the intervals around a page, the youngest that existed at a generation, and the oldest
    /// that came later.
    pub fn around(
        &self,
        page: u64,
        generation: u32,
    ) -> (Option<RegionInterval>, Option<RegionInterval>) {
        let (existed, later) = match self.blocks.is_empty() {
            true => self.around_of_few(page, generation),
            false => self.around_in_blocks(page, generation),
        };
        let interval = |(_, n): (u32, u32)| self.all[n as usize];
        (existed.map(interval), later.map(interval))
    }

    /// As generation and number.
    fn around_of_few(&self, page: u64, generation: u32) -> (Option<Found>, Option<Found>) {
        let all = (0..).zip(&self.all);
        let around = all.filter(|(_, i)| (i.start..i.end).contains(&page));
        let keys = around.map(|(n, i)| (i.generation, n));
        let existed = keys.clone().filter(|key| key.0 <= generation).max();
        (existed, keys.filter(|key| key.0 > generation).min())
    }

    fn around_in_blocks(&self, page: u64, generation: u32) -> (Option<Found>, Option<Found>) {
        let (mut existed, mut later) = (None, None);
        for level in (0..LEVELS).filter(|level| self.levels >> level & 1 != 0) {
            let Some(numbers) = self.blocks.get(&block(page, level)) else {
                continue;
            };
            let key = |n: &u32| (self.all[*n as usize].generation, *n);
            let after = numbers.partition_point(|n| key(n).0 <= generation);
            let before = after.checked_sub(1).and_then(|at| numbers.get(at));
            existed = existed.max(before.map(key));
            later = [later, numbers.get(after).map(key)]
                .into_iter()
                .flatten()
                .min();
        }
        (existed, later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with looking at all of them.
    #[test]
    fn finds_what_a_search_of_all_finds() {
        let mut ended = EndedIntervals::default();
        let mut all = Vec::new();
        let mut random = 1u64;
        let mut draw = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        for generation in 0..400u32 {
            let start = draw(60);
            let interval = RegionInterval {
                start,
                end: start + 1 + draw(40),
                region: generation,
                offset: 0,
                generation,
            };
            ended.add(interval);
            all.push(interval);
            let looks = if generation == 399 { 2_000 } else { 20 };
            for _ in 0..looks {
                let (page, generation) = (draw(110), draw(u64::from(generation) + 1) as u32);
                let around = || all.iter().filter(|i| (i.start..i.end).contains(&page));
                let existed = around().rfind(|i| i.generation <= generation);
                let later = around().find(|i| i.generation > generation);
                assert_eq!(
                    ended.around(page, generation),
                    (existed.copied(), later.copied())
                );
            }
        }
        assert_eq!(ended.last(3), &all[397..]);
    }

    #[test]
    fn of_equal_generations_the_last_that_ended_existed() {
        let mut ended = EndedIntervals::default();
        for region in [1, 2] {
            ended.add(RegionInterval {
                start: 4,
                end: 9,
                region,
                offset: 0,
                generation: 7,
            });
        }
        let region = |found: Option<RegionInterval>| found.map(|i| i.region);
        assert_eq!(region(ended.around(5, 7).0), Some(2));
        assert_eq!(region(ended.around(5, 6).1), Some(1));
    }

    /// Which would have all that came before moved each time.
    #[test]
    fn intervals_reported_backwards_are_not_sorted_in() {
        let mut ended = EndedIntervals::default();
        for generation in (0..100_000).rev() {
            ended.add(RegionInterval {
                start: 4,
                end: 5,
                region: generation,
                offset: 0,
                generation,
            });
        }
        assert!(ended.numbers <= MOST_MOVED + 1, "{}", ended.numbers);
    }
}
