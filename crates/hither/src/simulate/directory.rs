//! The directory: who has a line, or had it.
//!
//! A *branch* is a first-level cache with all caches above it that no other first-level cache
//! shares: what one core has for itself. The caches that branches share follow, up to the last
//! level, whose caches divide the machine into *domains*.
//!
//! Of each line the directory knows which branches fetched it since the last write by another,
//! which lost it to a write before, how many caches of each level hold it read-only, and the
//! owner: the branch that last had it for itself. All writable and dirty copies lie in the owner's
//! branch or in the shared caches above it. Caches give up clean lines without a word, so an owner
//! may turn out to have nothing.
use super::machine::Machine;

/// Levels at most.
pub const DEPTH: usize = 6;
const CHUNK: usize = 1024;

/// What is known of a line: 16 bytes.
#[derive(Clone, Copy, Default)]
pub struct Line {
    /// Branches that fetched it since it was last written by another, as in [`Tree::mask`].
    pub held: u32,
    /// Branches that lost it to the write of another.
    pub taken: u32,
    /// By level: caches that hold it without [`super::cache::WRITABLE`]. Stays at 255 once there.
    copies: [u8; DEPTH],
    /// 0: none. Else branch + 1 and, in the lowest bit, whether it may have the line
    /// writable or dirty below the last level.
    owner: u16,
}

impl Line {
    /// The branch whose path has all writable and dirty copies.
    pub fn owner(&self) -> Option<usize> {
        (self.owner != 0).then(|| usize::from(self.owner >> 1) - 1)
    }

    /// The owner, where it may have the line writable or dirty below the last level, or in a last
    /// level of its own.
    pub fn private_owner(&self) -> Option<usize> {
        self.owner().filter(|_| self.owner & 1 == 1)
    }

    /// Makes a branch the owner, writable within the branch.
    pub fn own(&mut self, branch: usize) {
        self.owner = ((branch as u16 + 1) << 1) | 1;
    }

    /// The owner keeps no writable or dirty copy below the last level.
    pub fn share(&mut self) {
        self.owner &= !1;
    }

    pub fn disown(&mut self) {
        self.owner = 0;
    }

    pub fn copies(&self, level: usize) -> u8 {
        self.copies[level]
    }

    pub fn add_copy(&mut self, level: usize) {
        self.copies[level] = self.copies[level].saturating_add(1);
    }

    pub fn drop_copy(&mut self, level: usize) {
        let n = &mut self.copies[level];
        if *n != u8::MAX {
            *n = n.saturating_sub(1);
        }
    }

    pub fn no_copies(&mut self) {
        self.copies = [0; DEPTH];
    }

    /// Whether there is a read-only copy at one of the first `levels` levels.
    pub fn any_copy(&self, levels: usize) -> bool {
        self.copies[..levels].iter().any(|&n| n > 0)
    }
}

/// All lines, by number: pieces are made when a line in them is first asked for.
#[derive(Default)]
pub struct Lines {
    chunks: Vec<Option<Box<[Line; CHUNK]>>>,
}

impl Lines {
    #[inline]
    pub fn get(&self, line: u32) -> Line {
        match self.chunks.get(line as usize / CHUNK) {
            Some(Some(chunk)) => chunk[line as usize % CHUNK],
            _ => Line::default(),
        }
    }

    #[inline]
    pub fn at(&mut self, line: u32) -> &mut Line {
        let n = line as usize / CHUNK;
        if n >= self.chunks.len() {
            self.chunks.resize_with(n + 1, || None);
        }
        let chunk = self.chunks[n].get_or_insert_with(|| Box::new([Line::default(); CHUNK]));
        &mut chunk[line as usize % CHUNK]
    }
}

/// Branches that a cache serves, as bits: a set of branches has one of them if it meets both.
#[derive(Clone, Copy, Default)]
pub struct Mask {
    row: u32,
    column: u32,
}

impl Mask {
    /// All bits of the branches.
    pub fn bits(self) -> u32 {
        self.row | self.column
    }

    pub fn meets(self, set: u32) -> bool {
        set & self.row != 0 && set & self.column != 0
    }
}

/// How branches, caches and nodes hang together.
pub struct Tree {
    pub depth: usize,
    /// Levels that belong to a branch alone: at least the first.
    pub private: usize,
    pub branches: usize,
    /// Of each branch its cache at each level.
    paths: Vec<u32>,
    /// By branch: endpoint of the interconnect, package.
    pub at: Vec<u32>,
    /// By branch: the node nearest to it.
    pub node: Vec<u32>,
    pub package: Vec<u32>,
    /// By level and cache.
    masks: Vec<Vec<Mask>>,
    /// Sets of up to 32 branches are exact: a bit each. For more, branches are put into a table
    /// of rows, one for each domain or a few, and columns; a set is a set of rows and a set of
    /// columns, and stands for all branches in both. It may say too many, never too few.
    rows: u32,
    /// Branches by row and column.
    cells: Vec<Vec<u32>>,
}

impl Tree {
    /// Of a checked machine.
    pub fn new(machine: &Machine) -> Self {
        let depth = machine.levels.len();
        let branches = machine.levels[0].caches as usize;
        let mut paths = vec![0; branches * depth];
        let (mut at, mut node, mut package) =
            (vec![0; branches], vec![0; branches], vec![0; branches]);
        for unit in &machine.units {
            let branch = unit.caches[0] as usize;
            paths[branch * depth..(branch + 1) * depth].copy_from_slice(&unit.caches);
            at[branch] = unit.at;
            node[branch] = unit.node;
            package[branch] = unit.package;
        }
        let alone = |level: &usize| {
            let mut seen = vec![false; machine.levels[*level].caches as usize];
            let of = |b: usize| paths[b * depth + level] as usize;
            (0..branches).all(|b| !std::mem::replace(&mut seen[of(b)], true))
        };
        let private = (1..depth).take_while(alone).count() + 1;
        let mut tree = Tree {
            depth,
            private,
            branches,
            paths,
            at,
            node,
            package,
            masks: Vec::new(),
            rows: 0,
            cells: Vec::new(),
        };
        let masks = tree.lay_out(machine.levels[depth - 1].caches as usize);
        tree.masks = (0..depth)
            .map(|level| {
                let mut of = vec![Mask::default(); machine.levels[level].caches as usize];
                for (branch, mask) in masks.iter().enumerate() {
                    let all = &mut of[tree.cache(branch, level)];
                    all.row |= mask.row;
                    all.column |= mask.column;
                }
                of
            })
            .collect();
        tree
    }

    /// Gives each branch its bits.
    fn lay_out(&mut self, domains: usize) -> Vec<Mask> {
        let mut masks = vec![Mask::default(); self.branches];
        if self.branches <= 32 {
            self.cells = (0..self.branches as u32).map(|b| vec![b]).collect();
            for (branch, mask) in masks.iter_mut().enumerate() {
                (mask.row, mask.column) = (1 << branch, 1 << branch);
            }
            return masks;
        }
        let rows = domains.min(24);
        let columns = 32 - rows;
        let mut members = vec![Vec::new(); rows];
        for branch in 0..self.branches {
            members[self.cache(branch, self.depth - 1) * rows / domains].push(branch);
        }
        self.rows = rows as u32;
        self.cells = vec![Vec::new(); rows * columns];
        for (row, members) in members.iter().enumerate() {
            for (n, &branch) in members.iter().enumerate() {
                let column = n * columns / members.len().max(columns);
                self.cells[row * columns + column].push(branch as u32);
                masks[branch].row = 1 << row;
                masks[branch].column = 1 << (rows + column);
            }
        }
        masks
    }

    /// A branch's cache at a level.
    #[inline]
    pub fn cache(&self, branch: usize, level: usize) -> usize {
        self.paths[branch * self.depth + level] as usize
    }

    pub fn mask(&self, level: usize, cache: usize) -> Mask {
        self.masks[level][cache]
    }

    /// Begins a walk over the branches of a set.
    pub fn walk(&self, set: u32) -> Walk {
        let (rows, columns) = match self.rows {
            0 => (1, set),
            n => (set & ((1 << n) - 1), set >> n),
        };
        Walk {
            rows,
            columns,
            left: columns,
            cell: 0,
            next: 0,
        }
    }

    /// The next branch of a walk.
    #[inline]
    pub fn step(&self, walk: &mut Walk) -> Option<usize> {
        loop {
            if walk.next > 0 {
                if let Some(&branch) = self.cells[walk.cell].get(walk.next - 1) {
                    walk.next += 1;
                    return Some(branch as usize);
                }
                walk.next = 0;
            }
            if walk.left == 0 {
                walk.rows &= walk.rows.wrapping_sub(1);
                walk.left = walk.columns;
            }
            if walk.rows == 0 || walk.left == 0 {
                return None;
            }
            let column = walk.left.trailing_zeros() as usize;
            walk.left &= walk.left - 1;
            let row = walk.rows.trailing_zeros() as usize;
            walk.cell = row * (32 - self.rows as usize) + column;
            walk.next = 1;
        }
    }
}

/// A walk over a set of branches: see [`Tree::walk`]. It borrows nothing.
pub struct Walk {
    rows: u32,
    columns: u32,
    /// Columns left in the lowest row of `rows`.
    left: u32,
    cell: usize,
    /// Position in the cell + 1; 0: the next cell.
    next: usize,
}
