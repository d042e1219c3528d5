//! A small generator whose numbers are the same on every machine: xorshift64* (Vigna, "An
//! experimental exploration of Marsaglia's xorshift generators, scrambled", 2016).

#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        // Spreads small seeds over all bits; zero, which the generator never leaves, is avoided.
        let mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        Rng((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// In 0..n; 0 for n = 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}
