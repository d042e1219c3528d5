//! The directory: who has a line, or had it.
//!
//! A *branch* is a first-level cache with all caches above it that no other first-level cache
//! shares: what one core has for itself. The caches that branches share follow, up to the last
//! level, whose caches divide the machine into *domains*.
//!
//! Of each line the directory knows which branches fetched it since the last write by another,
//! which lost it to a write before, which caches of each level hold it read-only, and the owner:
//! the branch that last had it for itself. All writable and dirty copies lie in the owner's branch
//! or in the shared caches above it; so a cache that is neither on the owner's path nor among
//! those that hold it read-only does not have it. Caches give up clean lines without a word, so an
//! owner may turn out to have nothing.
use super::tree::Tree;

/// Levels at most.
pub const DEPTH: usize = 6;
/// Lines of which is known in one piece.
const CHUNK: usize = 1 << 16;
const WORD: usize = u64::BITS as usize;
/// Bits of an owner: see [`Lines::owner`].
const OWNER: usize = 16;

/// Some bits of what is known of a line. Those of no more than a word lie in one.
#[derive(Clone, Copy, Default)]
struct Field {
    word: usize,
    shift: usize,
    bits: usize,
}

impl Field {
    /// The word and the bit within it of the field's n-th.
    #[inline]
    fn bit(self, n: usize) -> (usize, u64) {
        let n = self.shift + n;
        (self.word + n / WORD, 1 << (n % WORD))
    }

    fn words(self) -> usize {
        self.bits.div_ceil(WORD)
    }

    /// Its n-th word.
    #[inline]
    fn get(self, known: &[u64], n: usize) -> u64 {
        let word = known[self.word + n] >> self.shift;
        match self.bits - n * WORD {
            bits if bits < WORD => word & ((1 << bits) - 1),
            _ => word,
        }
    }
}

/// All lines, by number.
pub struct Lines {
    /// Pieces are made when a line in them is first asked for.
    chunks: Vec<Vec<u64>>,
    /// Words of a line.
    each: usize,
    /// Branches that fetched a line since it was last written by another; those that lost it so.
    held: Field,
    taken: Field,
    /// By level: caches that hold it without [`super::cache::WRITABLE`].
    copies: [Field; DEPTH],
    /// 0: none. Else branch + 1 and, in the lowest bit, whether it may have the line
    /// writable or dirty below the last level.
    owner: Field,
}

impl Lines {
    /// For caches by level.
    pub fn new(caches: &[usize], branches: usize) -> Self {
        let mut lines = Lines {
            chunks: Vec::new(),
            each: 0,
            held: Field::default(),
            taken: Field::default(),
            copies: [Field::default(); DEPTH],
            owner: Field::default(),
        };
        let mut used = Vec::new();
        lines.held = field(&mut used, branches);
        lines.taken = field(&mut used, branches);
        for (copies, caches) in lines.copies.iter_mut().zip(caches) {
            *copies = field(&mut used, *caches);
        }
        lines.owner = field(&mut used, OWNER);
        lines.each = used.len();
        lines
    }

    /// What is known of a line.
    #[inline]
    fn at(&mut self, line: u32) -> &mut [u64] {
        let (chunk, line) = (line as usize / CHUNK, line as usize % CHUNK);
        if chunk >= self.chunks.len() || self.chunks[chunk].is_empty() {
            self.add(chunk);
        }
        &mut self.chunks[chunk][line * self.each..(line + 1) * self.each]
    }

    #[cold]
    fn add(&mut self, chunk: usize) {
        let all = self.chunks.len().max(chunk + 1);
        self.chunks.resize(all, Vec::new());
        self.chunks[chunk] = vec![0; CHUNK * self.each];
    }

    /// The same of one that may never have been asked for.
    #[inline]
    fn look(&self, line: u32) -> Option<&[u64]> {
        let (chunk, line) = (line as usize / CHUNK, line as usize % CHUNK);
        let chunk = self.chunks.get(chunk)?;
        chunk.get(line * self.each..(line + 1) * self.each)
    }

    #[inline]
    fn raw_owner(&self, line: u32) -> u64 {
        self.look(line).map_or(0, |known| self.owner.get(known, 0))
    }

    #[inline]
    fn set_owner(&mut self, line: u32, owner: u64) {
        let field = self.owner;
        let word = &mut self.at(line)[field.word];
        *word = *word & !(((1 << OWNER) - 1) << field.shift) | owner << field.shift;
    }

    /// The branch whose path has all writable and dirty copies.
    #[inline]
    pub fn owner(&self, line: u32) -> Option<usize> {
        let owner = self.raw_owner(line);
        (owner != 0).then(|| (owner >> 1) as usize - 1)
    }

    /// The owner, where it may have the line writable or dirty below the last level, or in a last
    /// level of its own.
    #[inline]
    pub fn private_owner(&self, line: u32) -> Option<usize> {
        let owner = self.raw_owner(line);
        (owner & 1 == 1).then(|| (owner >> 1) as usize - 1)
    }

    /// Makes a branch the owner, writable within the branch.
    pub fn own(&mut self, line: u32, branch: usize) {
        self.set_owner(line, (branch as u64 + 1) << 1 | 1);
    }

    /// The owner keeps no writable or dirty copy below the last level.
    pub fn share(&mut self, line: u32) {
        let owner = self.raw_owner(line);
        self.set_owner(line, owner & !1);
    }

    pub fn disown(&mut self, line: u32) {
        self.set_owner(line, 0);
    }

    /// Whether a cache holds a line read-only.
    #[inline]
    pub fn is_copy(&self, line: u32, level: usize, cache: usize) -> bool {
        let (word, bit) = self.copies[level].bit(cache);
        self.look(line).is_some_and(|known| known[word] & bit != 0)
    }

    #[inline]
    pub fn add_copy(&mut self, line: u32, level: usize, cache: usize) {
        let (word, bit) = self.copies[level].bit(cache);
        self.at(line)[word] |= bit;
    }

    #[inline]
    pub fn drop_copy(&mut self, line: u32, level: usize, cache: usize) {
        let (word, bit) = self.copies[level].bit(cache);
        self.at(line)[word] &= !bit;
    }

    /// Words of [`Lines::copies`] at a level.
    #[inline]
    pub fn copy_words(&self, level: usize) -> usize {
        self.copies[level].words()
    }

    /// Caches 64 n and following of a level that hold a line read-only, as bits.
    #[inline]
    pub fn copies(&self, line: u32, level: usize, n: usize) -> u64 {
        let known = self.look(line);
        known.map_or(0, |known| self.copies[level].get(known, n))
    }

    /// Whether a cache of a level holds a line read-only.
    #[inline]
    pub fn any_at(&self, line: u32, level: usize) -> bool {
        let field = self.copies[level];
        let any = |known: &[u64]| (0..field.words()).any(|n| field.get(known, n) != 0);
        self.look(line).is_some_and(any)
    }

    /// Whether one of the first `levels` levels has a read-only copy.
    #[inline]
    pub fn any_below(&self, line: u32, levels: usize) -> bool {
        (0..levels).any(|level| self.any_at(line, level))
    }

    /// A branch has a line now.
    #[inline]
    pub fn hold(&mut self, line: u32, branch: usize) {
        let (word, bit) = self.held.bit(branch);
        self.at(line)[word] |= bit;
    }

    /// All lost it to a write.
    pub fn take(&mut self, line: u32) {
        let (held, taken) = (self.held, self.taken);
        let known = self.at(line);
        for n in 0..held.words() {
            let lost = held.get(known, n);
            known[held.word + n] ^= lost << held.shift;
            known[taken.word + n] |= lost << taken.shift;
        }
    }

    /// Whether one of the branches below a cache fetched a line since it was last written by
    /// another.
    #[inline]
    pub fn was_held(&self, tree: &Tree, line: u32, level: usize, cache: usize) -> bool {
        self.meets(self.held, tree, line, level, cache)
    }

    /// Whether one lost it.
    #[inline]
    pub fn was_taken(&self, tree: &Tree, line: u32, level: usize, cache: usize) -> bool {
        self.meets(self.taken, tree, line, level, cache)
    }

    #[inline]
    fn meets(&self, field: Field, tree: &Tree, line: u32, level: usize, cache: usize) -> bool {
        let Some(known) = self.look(line) else {
            return false;
        };
        if level < tree.private {
            let (word, bit) = field.bit(cache);
            return known[word] & bit != 0;
        }
        let mut below = tree.below(level, cache).iter().enumerate();
        below.any(|(n, below)| field.get(known, n) & below != 0)
    }
}

/// Finds room for a field in words of which so many bits are used.
fn field(used: &mut Vec<usize>, bits: usize) -> Field {
    let room = used.iter().position(|used| used + bits <= WORD);
    let word = room.unwrap_or_else(|| {
        used.push(0);
        used.len() - 1
    });
    let shift = used[word];
    used[word] += bits.min(WORD);
    for more in 1..bits.div_ceil(WORD) {
        used.push((bits - more * WORD).min(WORD));
    }
    Field { word, shift, bits }
}
