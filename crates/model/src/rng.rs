//! Pseudo-random numbers that are the same on every machine. The simulated scheduler, sampling
//! and the metrics draw from SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom
//! number generators", OOPSLA 2014). The search for placements draws from xorshift64* (Vigna, "An
//! experimental exploration of Marsaglia's xorshift generators, scrambled", 2016), so that a seed
//! keeps giving the placement that it always gave.

/// A generator of 64 bits of state. Any seed is good, small ones too.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
    next: fn(&mut u64) -> u64,
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn xorshift_star(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_F491_4F6C_DD1D)
}

impl Rng {
    /// SplitMix64. The same seed gives the same numbers.
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        Rng {
            state: seed,
            next: split_mix,
        }
    }

    /// xorshift64*, for the search for placements.
    #[must_use]
    pub fn for_search(seed: u64) -> Rng {
        // Spreads small seeds over all bits; zero, which the generator never leaves, is avoided.
        let mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        Rng {
            state: (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) | 1,
            next: xorshift_star,
        }
    }

    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        (self.next)(&mut self.state)
    }

    /// Uniform in 0..n; 0 for n = 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }

    /// True with this probability (0 to 1).
    pub fn happens(&mut self, probability: f64) -> bool {
        // 53 bits fill the mantissa.
        ((self.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// Puts `items` in random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_even_and_repeatable() {
        // The reference's first output for seed 0.
        assert_eq!(Rng::new(0).next_u64(), 0xE220_A839_7B1D_CDAF);
        let mut rng = Rng::new(3);
        let mut counts = [0; 4];
        (0..4000).for_each(|_| counts[rng.below(4)] += 1);
        assert!(counts.iter().all(|n| (850..1150).contains(n)), "{counts:?}");
        let happened = (0..4000).filter(|_| rng.happens(0.25)).count();
        assert!((850..1150).contains(&happened), "{happened}");
        assert_eq!(rng.below(0), 0);
    }
}
