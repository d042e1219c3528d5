//! How branches, caches and nodes are connected.
use super::simulated_machine::SimulatedMachine;

/// Levels at most.
pub const DEPTH: usize = 6;

pub struct CacheTree {
    pub depth: usize,
    /// Levels that belong to a branch alone: at least the first. Their caches have the numbers of
    /// their branches.
    pub private: usize,
    pub branches: usize,
    /// Of each branch its cache at each level.
    paths: Vec<[u32; DEPTH]>,
    /// By branch: endpoint of the interconnect, package.
    pub at: Vec<u32>,
    /// By branch: the node nearest to it.
    pub node: Vec<u32>,
    pub package: Vec<u32>,
    /// By shared level and cache: branches below it, a bit each.
    below: Vec<Vec<u64>>,
    /// Words of those of a cache.
    words: usize,
    /// By shared level and cache: one branch below it.
    first: Vec<Vec<u32>>,
}

impl CacheTree {
    /// Of a checked machine.
    pub fn new(machine: &SimulatedMachine) -> Self {
        let depth = machine.levels.len();
        let branches = machine.levels[0].caches as usize;
        let mut paths = vec![[0; DEPTH]; branches];
        let (mut at, mut node, mut package) =
            (vec![0; branches], vec![0; branches], vec![0; branches]);
        for unit in &machine.units {
            let branch = unit.caches[0] as usize;
            paths[branch][..depth].copy_from_slice(&unit.caches);
            at[branch] = unit.at;
            node[branch] = unit.node;
            package[branch] = unit.package;
        }
        let alone = |level: &usize| {
            let mut seen = vec![false; machine.levels[*level].caches as usize];
            let of = |b: usize| paths[b][*level] as usize;
            (0..branches).all(|b| !std::mem::replace(&mut seen[of(b)], true))
        };
        let private = (1..depth).take_while(alone).count() + 1;
        for (branch, path) in paths.iter_mut().enumerate() {
            path[..private].fill(branch as u32);
        }
        let words = branches.div_ceil(u64::BITS as usize);
        let shared = &machine.levels[private..];
        let mut tree = CacheTree {
            depth,
            private,
            branches,
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
        for branch in 0..branches {
            for level in private..depth {
                let cache = tree.cache(branch, level);
                tree.below[level - private][cache * words + branch / 64] |= 1 << (branch % 64);
                tree.first[level - private][cache] = branch as u32;
            }
        }
        tree
    }

    /// A branch's cache at a level.
    #[inline]
    pub fn cache(&self, branch: usize, level: usize) -> usize {
        self.paths[branch][level] as usize
    }

    /// Branches below a shared cache, as bits.
    #[inline]
    pub fn branches_below(&self, level: usize, cache: usize) -> &[u64] {
        &self.below[level - self.private][cache * self.words..][..self.words]
    }

    /// The same of any cache, where there are no more than 64 branches.
    #[inline]
    pub fn branch_mask_below(&self, level: usize, cache: usize) -> u64 {
        if level < self.private {
            return 1 << cache;
        }
        self.below[level - self.private][cache]
    }

    /// A branch below a cache.
    #[inline]
    pub fn branch_below(&self, level: usize, cache: usize) -> usize {
        if level < self.private {
            return cache;
        }
        self.first[level - self.private][cache] as usize
    }
}
