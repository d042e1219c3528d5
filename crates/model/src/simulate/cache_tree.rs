//! How private hierarchies, caches and nodes are connected.
use super::simulated_machine::SimulatedMachine;

/// Levels at most.
pub const DEPTH: usize = 6;

pub struct CacheTree {
    pub depth: usize,
    /// Levels that belong to a private hierarchy alone: at least the first. Their caches have the numbers of
    /// their private hierarchies.
    pub private: usize,
    pub l1s: usize,
    /// Of each private hierarchy its cache at each level.
    paths: Vec<[u32; DEPTH]>,
    /// By L1: endpoint of the interconnect, package.
    pub at: Vec<u32>,
    /// By L1: the node nearest to it.
    pub node: Vec<u32>,
    pub package: Vec<u32>,
    /// By shared level and cache: private hierarchies below it, a bit each.
    below: Vec<Vec<u64>>,
    /// Words of those of a cache.
    words: usize,
    /// By shared level and cache: one private hierarchy below it.
    first: Vec<Vec<u32>>,
}

impl CacheTree {
    /// Of a checked machine.
    pub fn new(machine: &SimulatedMachine) -> Self {
        let depth = machine.levels.len();
        let l1s = machine.levels[0].caches as usize;
        let mut paths = vec![[0; DEPTH]; l1s];
        let (mut at, mut node, mut package) = (vec![0; l1s], vec![0; l1s], vec![0; l1s]);
        for unit in &machine.units {
            let l1 = unit.caches[0] as usize;
            paths[l1][..depth].copy_from_slice(&unit.caches);
            at[l1] = unit.at;
            node[l1] = unit.node;
            package[l1] = unit.package;
        }
        let alone = |level: &usize| {
            let mut seen = vec![false; machine.levels[*level].caches as usize];
            let of = |b: usize| paths[b][*level] as usize;
            (0..l1s).all(|b| !std::mem::replace(&mut seen[of(b)], true))
        };
        let private = (1..depth).take_while(alone).count() + 1;
        for (l1, path) in paths.iter_mut().enumerate() {
            path[..private].fill(l1 as u32);
        }
        let words = l1s.div_ceil(u64::BITS as usize);
        let shared = &machine.levels[private..];
        let mut tree = CacheTree {
            depth,
            private,
            l1s,
            paths,
            at,
            node,
            package,
            below: shared
                .iter()
                .map(|l| vec![0; l.caches as usize * words])
                .collect(),
            words,
            first: shared.iter().map(|l| vec![0; l.caches as usize]).collect(),
        };
        for l1 in 0..l1s {
            for level in private..depth {
                let cache = tree.cache(l1, level);
                tree.below[level - private][cache * words + l1 / 64] |= 1 << (l1 % 64);
                tree.first[level - private][cache] = l1 as u32;
            }
        }
        tree
    }

    /// A private hierarchy's cache at a level.
    #[inline]
    pub fn cache(&self, l1: usize, level: usize) -> usize {
        self.paths[l1][level] as usize
    }

    /// Private hierarchies below a shared cache, as bits.
    #[inline]
    pub fn l1s_below(&self, level: usize, cache: usize) -> &[u64] {
        &self.below[level - self.private][cache * self.words..][..self.words]
    }

    /// The same of any cache, where there are no more than 64 private hierarchies.
    #[inline]
    pub fn l1_mask_below(&self, level: usize, cache: usize) -> u64 {
        if level < self.private {
            return 1 << cache;
        }
        self.below[level - self.private][cache]
    }

    /// A private hierarchy below a cache.
    #[inline]
    pub fn l1_below(&self, level: usize, cache: usize) -> usize {
        if level < self.private {
            return cache;
        }
        self.first[level - self.private][cache] as usize
    }
}
