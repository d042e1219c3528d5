//! Chance that is the same on every machine: splitmix64 (Steele, Lea, Flood, "Fast splittable
//! pseudorandom number generators", OOPSLA 2014).

#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    #[must_use]
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In 0..n; 0 for n = 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// True with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        // 53 bits fill the mantissa.
        ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}
