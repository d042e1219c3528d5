//! What this computer will need to simulate accesses that come soon: it fetches that into its own
//! caches meanwhile, which changes how fast it is and nothing else.
use super::hierarchy::Hierarchy;

impl Hierarchy {
    /// A branch will soon read or write a line: this computer fetches what is known of it
    /// meanwhile. If the branch has it at hand, that is likely to be a run: the next, then.
    #[inline]
    pub fn expect(&self, branch: usize, line: u32) {
        let line = line + u32::from(self.is_front(branch, line));
        self.lines.fetch(line);
        self.pages.fetch_place(line);
        for (level, caches) in self.caches.iter().enumerate() {
            caches.fetch(caches.set(self.tree.cache(branch, level), line));
        }
    }

    /// The same of the lines that will go to make room for one, and of the sets in which it may be
    /// looked for at its owner.
    #[inline]
    pub fn expect_others(&self, branch: usize, line: u32) {
        if !self.lines.are_many() || self.is_front(branch, line) {
            return;
        }
        let owner = self.lines.owner_if_any(line);
        for (level, caches) in self.caches.iter().enumerate() {
            let cache = self.tree.cache(branch, level);
            self.lines.fetch(caches.next_out(caches.set(cache, line)));
            let other = owner.map(|o| self.tree.cache(o, level));
            if let Some(other) = other.filter(|&other| other != cache) {
                caches.fetch(caches.set(other, line));
            }
        }
    }

    #[inline]
    fn is_front(&self, branch: usize, line: u32) -> bool {
        self.caches[0].is_front(self.caches[0].set(branch, line), line)
    }
}
