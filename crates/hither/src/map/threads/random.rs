//! A placement drawn from the seed, to compare others with: every unit gets as many threads
//! as any other or one more.
use super::seats::{fit, ranks};
use super::ThreadPolicy;
use crate::map::{Assignment, Problem};

pub struct Random;

impl ThreadPolicy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn about(&self) -> &'static str {
        "units drawn from --seed, none shared without need (a baseline of SPCD)"
    }

    fn place(&self, problem: &Problem) -> Result<Assignment, String> {
        let mut left = fit(problem)?;
        let rank = ranks(problem.tree);
        let mut draw = SplitMix(problem.seed);
        let mut seats = Vec::new();
        while left > 0 {
            // Units in any order, but no second sibling of a core before all first ones.
            let mut units: Vec<u32> = (0..problem.tree.units.len() as u32).collect();
            draw.shuffle(&mut units);
            units.sort_by_key(|&at| rank[at as usize]);
            units.truncate(left);
            left -= units.len();
            seats.extend(units);
        }
        draw.shuffle(&mut seats);
        Ok(seats)
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014):
/// the same numbers on any machine.
pub struct SplitMix(pub u64);

impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, by the upper half of a product: uneven by less than
    /// bound / 2^64.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Fisher and Yates.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
