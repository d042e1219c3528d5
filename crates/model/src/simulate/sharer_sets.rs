//! The directory's state of lines on machines of any size: as many bits for each line as the
//! machine has caches, packed. The functions are described at those of the same names in
//! [`super::directory::Directory`].
use super::cache_tree::{CacheTree, DEPTH};
use hither_table::{prefetch, ZeroedMapping};

const WORD: usize = u64::BITS as usize;
/// Lines for which there is room at first, and how much more each time that there is none. Room that
/// is not used costs no memory.
pub const INITIAL_LINES: usize = 1 << 16;
const GROWTH_FACTOR: usize = 8;
/// Bits of an owner: see [`super::directory::Directory::owner`].
const OWNER: usize = 16;

/// Lines to make room for, with this one. They are not numbered without gaps: what was never touched is not
/// touched by growing either.
#[cold]
pub fn room_for(line: u32) -> usize {
    let mut lines = INITIAL_LINES;
    while lines <= line as usize {
        lines *= GROWTH_FACTOR;
    }
    lines
}

/// A field of a line's state. Fields of up to 64 bits lie within one word.
#[derive(Clone, Copy, Default)]
struct EntryField {
    word: usize,
    /// Words, and of a field within one where that begins and which bits it has there.
    words: usize,
    shift: usize,
    mask: u64,
}

impl EntryField {
    /// The word and the bit within it of the field's n-th.
    #[inline]
    fn bit(self, n: usize) -> (usize, u64) {
        let n = self.shift + n;
        (self.word + n / WORD, 1 << (n % WORD))
    }
}

/// The state of all lines, by number.
pub struct PackedSharerSets {
    words: ZeroedMapping<u64>,
    /// Lines for which there is room, and words of each.
    lines: usize,
    each: usize,
    /// Private hierarchies that fetched a line since it was last written by another; those that lost it so.
    held: EntryField,
    taken: EntryField,
    /// By level: caches that hold it without [`super::tag_array::WRITABLE`].
    copies: [EntryField; DEPTH],
    /// 0: none. Else L1 + 1 and, in the lowest bit, whether it may have the line
    /// writable or dirty below the last level.
    owner: EntryField,
}

impl PackedSharerSets {
    /// For caches by level.
    pub fn new(caches: &[usize], l1s: usize) -> Self {
        let mut used = Vec::new();
        let held = allocate_field(&mut used, l1s);
        let taken = allocate_field(&mut used, l1s);
        let mut copies = [EntryField::default(); DEPTH];
        for (copies, caches) in copies.iter_mut().zip(caches) {
            *copies = allocate_field(&mut used, *caches);
        }
        let owner = allocate_field(&mut used, OWNER);
        PackedSharerSets {
            words: ZeroedMapping::new(0, false),
            lines: 0,
            each: used.len(),
            held,
            taken,
            copies,
            owner,
        }
    }

    pub fn reserve(&mut self, line: u32) {
        if line as usize >= self.lines {
            self.lines = room_for(line);
            // What is far apart would take far too much in large pages.
            self.words = self.words.grown(self.lines * self.each, false);
        }
    }

    #[inline]
    pub fn lines(&self) -> usize {
        self.lines
    }

    #[inline]
    pub fn prefetch_entry(&self, line: u32) {
        let first = line as usize * self.each;
        prefetch(&self.words, first);
        prefetch(&self.words, first + self.each - 1);
    }

    #[inline]
    fn word(&self, line: u32, n: usize) -> u64 {
        self.words[line as usize * self.each + n]
    }

    #[inline]
    fn word_mut(&mut self, line: u32, n: usize) -> &mut u64 {
        &mut self.words[line as usize * self.each + n]
    }

    /// The n-th word of a field.
    #[inline]
    fn field_word(&self, line: u32, field: EntryField, n: usize) -> u64 {
        let word = self.word(line, field.word + n);
        if n + 1 < field.words {
            word
        } else {
            (word >> field.shift) & field.mask
        }
    }

    #[inline]
    fn is_nonzero(&self, line: u32, field: EntryField) -> bool {
        let last = field.words - 1;
        self.field_word(line, field, last) != 0
            || (0..last).any(|n| self.field_word(line, field, n) != 0)
    }

    #[inline]
    fn set_owner(&mut self, line: u32, owner: u64) {
        let EntryField {
            word, shift, mask, ..
        } = self.owner;
        let word = self.word_mut(line, word);
        *word = (*word & !(mask << shift)) | (owner << shift);
    }

    /// The private hierarchy whose path has all writable and dirty copies.
    pub fn owner(&self, line: u32) -> Option<usize> {
        let owner = self.field_word(line, self.owner, 0) as usize;
        (owner >> 1).checked_sub(1)
    }

    /// The owner, where it may have the line writable or dirty below the last level, or in a last
    /// level of its own.
    pub fn private_owner(&self, line: u32) -> Option<usize> {
        let owner = self.field_word(line, self.owner, 0) as usize;
        (owner & 1 == 1).then(|| (owner >> 1) - 1)
    }

    /// Makes a private hierarchy the owner, writable within the private hierarchy.
    pub fn own_writable(&mut self, line: u32, l1: usize) {
        self.set_owner(line, ((l1 as u64 + 1) << 1) | 1);
    }

    /// The owner keeps no writable or dirty copy below the last level.
    pub fn downgrade_owner(&mut self, line: u32) {
        let owner = self.field_word(line, self.owner, 0);
        self.set_owner(line, owner & !1);
    }

    pub fn clear_owner(&mut self, line: u32) {
        self.set_owner(line, 0);
    }

    /// Whether a cache holds a line read-only.
    pub fn is_sharer(&self, line: u32, level: usize, cache: usize) -> bool {
        let (word, bit) = self.copies[level].bit(cache);
        self.word(line, word) & bit != 0
    }

    pub fn add_sharer(&mut self, line: u32, level: usize, cache: usize) {
        let (word, bit) = self.copies[level].bit(cache);
        *self.word_mut(line, word) |= bit;
    }

    pub fn remove_sharer(&mut self, line: u32, level: usize, cache: usize) {
        let (word, bit) = self.copies[level].bit(cache);
        *self.word_mut(line, word) &= !bit;
    }

    /// Words of [`super::directory::Directory::sharer_bits`] at a level.
    pub fn sharer_words(&self, level: usize) -> usize {
        self.copies[level].words
    }

    /// Caches 64 n and following of a level that hold a line read-only, as bits.
    pub fn sharer_bits(&self, line: u32, level: usize, n: usize) -> u64 {
        self.field_word(line, self.copies[level], n)
    }

    /// Whether a cache of a level holds a line read-only.
    pub fn has_sharers_at(&self, line: u32, level: usize) -> bool {
        self.is_nonzero(line, self.copies[level])
    }

    /// Whether one of the first `levels` levels has a read-only copy.
    pub fn has_sharers_below(&self, line: u32, levels: usize) -> bool {
        (0..levels).any(|level| self.has_sharers_at(line, level))
    }

    /// A private hierarchy has a line now.
    pub fn add_holder(&mut self, line: u32, l1: usize) {
        let (word, bit) = self.held.bit(l1);
        *self.word_mut(line, word) |= bit;
    }

    /// All lost it to a write.
    pub fn invalidate_holders(&mut self, line: u32) {
        let (held, taken) = (self.held, self.taken);
        for n in 0..held.words {
            let lost = self.field_word(line, held, n);
            *self.word_mut(line, held.word + n) ^= lost << held.shift;
            *self.word_mut(line, taken.word + n) |= lost << taken.shift;
        }
    }

    /// Whether one of the private hierarchies below a cache fetched a line since it was last written by
    /// another.
    pub fn was_held(&self, tree: &CacheTree, line: u32, level: usize, cache: usize) -> bool {
        self.intersects_below(self.held, tree, line, level, cache)
    }

    /// Whether one lost it.
    pub fn was_invalidated(&self, tree: &CacheTree, line: u32, level: usize, cache: usize) -> bool {
        self.intersects_below(self.taken, tree, line, level, cache)
    }

    #[inline]
    fn intersects_below(
        &self,
        field: EntryField,
        tree: &CacheTree,
        line: u32,
        level: usize,
        cache: usize,
    ) -> bool {
        if level < tree.private {
            let (word, bit) = field.bit(cache);
            return self.word(line, word) & bit != 0;
        }
        match tree.l1s_below(level, cache) {
            &[below] => self.field_word(line, field, 0) & below != 0,
            words => (0..field.words).any(|n| self.field_word(line, field, n) & words[n] != 0),
        }
    }
}

/// Finds room for a field in words of which `used` bits are used.
fn allocate_field(used: &mut Vec<usize>, bits: usize) -> EntryField {
    let room = used.iter().position(|used| used + bits <= WORD);
    let word = room.unwrap_or_else(|| {
        used.push(0);
        used.len() - 1
    });
    let shift = used[word];
    used[word] += bits.min(WORD);
    let words = bits.div_ceil(WORD);
    let last = bits - (words - 1) * WORD;
    if words > 1 {
        used.extend(std::iter::repeat_n(WORD, words - 2));
        used.push(last);
    }
    EntryField {
        word,
        words,
        shift,
        mask: u64::MAX >> (WORD - last),
    }
}
