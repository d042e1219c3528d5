//! Software prefetches by the host of the simulation: state of lines that accesses will need soon
//! is fetched into the host's caches. Results do not depend on it, only the speed.
use super::hierarchy::CacheHierarchy;

impl CacheHierarchy {
    /// A private hierarchy will soon access a line: prefetches the state of the line. If the private hierarchy has the
    /// line in its first-level cache, this is likely a sequential run: then that of the next line.
    #[inline]
    pub fn prefetch_line_state(&self, l1: usize, line: u32) {
        let line = line + u32::from(self.is_mru_in_first_level(l1, line));
        self.lines.prefetch_entry(line);
        self.pages.prefetch_frame(line);
        for (level, caches) in self.caches.iter().enumerate() {
            caches.prefetch_set(caches.set_of(self.tree.cache(l1, level), line));
        }
    }

    /// The same for the lines that will be evicted to make room for one, and for the sets that will
    /// be searched for it at its owner.
    #[inline]
    pub fn prefetch_victim_state(&self, l1: usize, line: u32) {
        if !self.lines.exceeds_host_cache() || self.is_mru_in_first_level(l1, line) {
            return;
        }
        let owner = self.lines.owner_if_any(line);
        for (level, caches) in self.caches.iter().enumerate() {
            let cache = self.tree.cache(l1, level);
            self.lines
                .prefetch_entry(caches.lru_victim(caches.set_of(cache, line)));
            let other = owner.map(|o| self.tree.cache(o, level));
            if let Some(other) = other.filter(|&other| other != cache) {
                caches.prefetch_set(caches.set_of(other, line));
            }
        }
    }

    #[inline]
    fn is_mru_in_first_level(&self, l1: usize, line: u32) -> bool {
        self.caches[0].is_mru(self.caches[0].set_of(l1, line), line)
    }
}
