//! Communication patterns of the bench, from seeded random numbers.
use hither_model::map::CommGraph;
use hither_model::rng::Rng;

pub struct CommPattern {
    pub name: &'static str,
    make: fn(&mut PatternBuilder),
    /// Entries grow with the square of the threads.
    dense: bool,
}

const fn sparse(name: &'static str, make: fn(&mut PatternBuilder)) -> CommPattern {
    CommPattern {
        name,
        make,
        dense: false,
    }
}

pub const PATTERNS: &[CommPattern] = &[
    sparse("ring", ring_with_master),
    sparse("far-pairs", far_pairs),
    sparse("stencil-2d", stencil_2d),
    sparse("stencil-3d", stencil_3d),
    sparse("pipelines", pipelines),
    sparse("blocks", |m| blocks(m, 8)),
    sparse("blocks-misfit", |m| blocks(m, 6)),
    CommPattern {
        name: "all-to-all",
        make: all_to_all,
        dense: true,
    },
    sparse("power-law", power_law),
    sparse("zones", uneven_zones),
    sparse("fft", fft),
    sparse("cg", conjugate_gradient),
];

/// Threads of which a dense pattern is made at most.
const MAX_DENSE_THREADS: usize = 1024;

impl CommPattern {
    pub fn graph(&self, threads: usize, seed: u64) -> Option<CommGraph> {
        if self.dense && threads > MAX_DENSE_THREADS {
            return None;
        }
        let mut maker = PatternBuilder {
            n: threads as u64,
            rng: Rng::new(seed ^ 0x5851_F42D_4C95_7F2D),
            pairs: Vec::new(),
        };
        (self.make)(&mut maker);
        Some(crate::graph_of(threads, maker.pairs))
    }
}

struct PatternBuilder {
    n: u64,
    rng: Rng,
    pairs: Vec<(u32, u32, u64)>,
}

impl PatternBuilder {
    /// In 0..n.
    fn below(&mut self, n: u64) -> u64 {
        self.rng.below(n as usize) as u64
    }

    fn add(&mut self, i: u64, j: u64, weight: u64) {
        self.pairs.push((i as u32, j as u32, weight));
    }

    /// `weight` give or take a tenth.
    fn add_with_noise(&mut self, i: u64, j: u64, weight: u64) {
        let weight = weight * 9 / 10 + self.below(weight / 5 + 1);
        self.add(i, j, weight);
    }

    /// Threads get random numbers, as when a runtime starts them in no particular order.
    fn relabel(&mut self) {
        let mut label: Vec<u32> = (0..self.n as u32).collect();
        for i in (1..label.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            label.swap(i, j);
        }
        for pair in &mut self.pairs {
            pair.0 = label[pair.0 as usize];
            pair.1 = label[pair.1 as usize];
        }
    }
}

fn ring_with_master(m: &mut PatternBuilder) {
    for i in 0..m.n {
        m.add_with_noise(i, (i + 1) % m.n, 1000);
        m.add_with_noise(0, i, 100);
    }
}

fn far_pairs(m: &mut PatternBuilder) {
    for i in 0..m.n / 2 {
        m.add_with_noise(i, i + m.n / 2, 1000);
        let other = m.below(m.n);
        m.add(i, other, 50);
    }
}

/// The largest divisor of n that is at most its root.
fn near_root(n: u64) -> u64 {
    (1..=n)
        .take_while(|d| d * d <= n)
        .filter(|d| n.is_multiple_of(*d))
        .last()
        .unwrap_or(1)
}

fn stencil_2d(m: &mut PatternBuilder) {
    let width = m.n / near_root(m.n);
    for i in 0..m.n {
        if (i + 1) % width != 0 {
            m.add_with_noise(i, i + 1, 1000);
        }
        if i + width < m.n {
            m.add_with_noise(i, i + width, 1000);
        }
    }
    m.relabel();
}

fn stencil_3d(m: &mut PatternBuilder) {
    let depth = (1..=m.n)
        .take_while(|d| d * d * d <= m.n)
        .filter(|d| m.n.is_multiple_of(*d))
        .last()
        .unwrap_or(1);
    let height = near_root(m.n / depth);
    let width = m.n / depth / height;
    for i in 0..m.n {
        let (x, y, z) = (i % width, i / width % height, i / width / height);
        if x + 1 < width {
            m.add_with_noise(i, i + 1, 1000);
        }
        if y + 1 < height {
            m.add_with_noise(i, i + width, 1000);
        }
        if z + 1 < depth {
            m.add_with_noise(i, i + width * height, 1000);
        }
    }
    m.relabel();
}

/// Chains of several lengths, with a collector for all.
fn pipelines(m: &mut PatternBuilder) {
    let mut at = 1;
    while at < m.n {
        let length = (3 + m.below(9)).min(m.n - at);
        for i in at..at + length - 1 {
            m.add_with_noise(i, i + 1, 1000);
        }
        m.add_with_noise(at + length - 1, 0, 100);
        at += length;
    }
    m.relabel();
}

/// Groups that talk among themselves, and a little noise.
fn blocks(m: &mut PatternBuilder, size: u64) {
    for i in 0..m.n {
        for j in i + 1..m.n.min((i / size + 1) * size) {
            m.add_with_noise(i, j, 500);
        }
        for _ in 0..3 {
            let other = m.below(m.n);
            m.add_with_noise(i, other, 60);
        }
    }
    m.relabel();
}

fn all_to_all(m: &mut PatternBuilder) {
    for i in 0..m.n {
        for j in i + 1..m.n {
            let weight = 500 + m.below(1000);
            m.add(i, j, weight);
        }
    }
}

/// Preferential attachment: a few threads talk to many.
fn power_law(m: &mut PatternBuilder) {
    let mut ends: Vec<u64> = vec![0];
    for i in 1..m.n {
        for _ in 0..3 {
            let other = ends[m.below(ends.len() as u64) as usize];
            let weight = 100 + m.below(900);
            m.add(i, other, weight);
            ends.push(other);
            ends.push(i);
        }
    }
    m.relabel();
}

/// Zones of uneven size, each a two-dimensional stencil; neighbours exchange borders.
fn uneven_zones(m: &mut PatternBuilder) {
    let mut at = 0;
    let mut before = None;
    while at < m.n {
        let size = (2 + m.below(m.n / 4 + 6)).min(m.n - at);
        let width = size.isqrt().max(1);
        for i in 0..size {
            if (i + 1) % width != 0 && i + 1 < size {
                m.add_with_noise(at + i, at + i + 1, 1000);
            }
            if i + width < size {
                m.add_with_noise(at + i, at + i + width, 1000);
            }
        }
        if let Some((start, length)) = before {
            for i in 0..width {
                let other = start + m.below(length);
                m.add_with_noise(at + i, other, 300);
            }
        }
        before = Some((at, size));
        at += size;
    }
    m.relabel();
}

fn fft(m: &mut PatternBuilder) {
    let mut stride = 1;
    while stride < m.n {
        for i in 0..m.n {
            let j = i ^ stride;
            if i < j && j < m.n {
                m.add_with_noise(i, j, 1000);
            }
        }
        stride *= 2;
    }
    m.relabel();
}

/// Rows of a grid exchange halves, and every thread talks to its transpose.
fn conjugate_gradient(m: &mut PatternBuilder) {
    let width = m.n / near_root(m.n);
    let height = m.n / width;
    for i in 0..m.n {
        let (x, y) = (i % width, i / width);
        let mut stride = 1;
        while stride < width {
            let other = x ^ stride;
            if x < other && other < width {
                m.add_with_noise(i, y * width + other, 1000);
            }
            stride *= 2;
        }
        let transpose = (x % height) * width + (y % width);
        m.add_with_noise(i, transpose, 1500);
    }
}
