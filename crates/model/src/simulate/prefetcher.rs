//! Prefetchers: predict the next lines from those that a cache is asked for and misses.
//!
//! Each cache has its own. It sees requests that miss, and the first use of a prefetched line; it
//! stays within a page, because it does not know the address of the next one.
use super::simulated_machine::PrefetcherKind;

/// Pages that the stride prefetcher follows.
const STRIDE_TRACKERS: usize = 16;

#[derive(Clone, Copy, Default)]
struct PrefetchTracker {
    /// Page + 1; 0: unused.
    page: u32,
    last: u32,
    /// Stride: the distance seen last. Stream: 1 or -1, 0 until a second line was seen.
    step: i32,
    /// Stride: how often the distance was seen. Stream: lines that were fetched ahead of `last`.
    seen: u32,
}

/// The prefetchers of a level.
pub struct LevelPrefetchers {
    kind: PrefetcherKind,
    /// By cache, its runs, the latest used first.
    runs: Vec<PrefetchTracker>,
    each: usize,
    /// Lines of a page, as the power of two.
    page_bits: u32,
}

impl LevelPrefetchers {
    pub fn new(kind: &PrefetcherKind, caches: u32, lines_per_page: u32) -> Self {
        let each = match kind {
            PrefetcherKind::Stride { .. } => STRIDE_TRACKERS,
            PrefetcherKind::Stream { streams, .. } => *streams as usize,
        };
        LevelPrefetchers {
            kind: *kind,
            runs: vec![PrefetchTracker::default(); each * caches as usize],
            each,
            page_bits: lines_per_page.trailing_zeros(),
        }
    }

    /// A cache was asked for `line`: the lines to fetch, into `ahead`.
    pub fn observe(&mut self, cache: usize, line: u32, ahead: &mut Vec<u32>) {
        ahead.clear();
        let page = line >> self.page_bits;
        let runs = &mut self.runs[cache * self.each..(cache + 1) * self.each];
        let Some(at) = runs.iter().position(|r| r.page == page + 1) else {
            runs.copy_within(..self.each.saturating_sub(1), 1.min(self.each));
            if let Some(run) = runs.first_mut() {
                *run = PrefetchTracker {
                    page: page + 1,
                    last: line,
                    ..PrefetchTracker::default()
                };
            }
            return;
        };
        let found = runs[at];
        runs.copy_within(..at, 1);
        runs[0] = found;
        let run = &mut runs[0];
        let (first, reach) = match self.kind {
            PrefetcherKind::Stride { degree } => run.stride(line, degree),
            PrefetcherKind::Stream {
                degree, distance, ..
            } => run.stream(line, degree, distance),
        };
        for n in first..reach {
            let next = i64::from(line) + i64::from(run.step) * i64::from(n);
            if next >> self.page_bits != i64::from(page) {
                break;
            }
            ahead.push(next as u32);
        }
    }
}

impl PrefetchTracker {
    /// The steps from `line` to fetch: the first, and one behind the last.
    fn stride(&mut self, line: u32, degree: u32) -> (u32, u32) {
        let step = line as i32 - self.last as i32;
        if step == 0 {
            return (0, 0);
        }
        self.seen = if step == self.step { self.seen + 1 } else { 1 };
        (self.step, self.last) = (step, line);
        if self.seen >= 2 {
            (1, degree.saturating_add(1))
        } else {
            (0, 0)
        }
    }

    fn stream(&mut self, line: u32, degree: u32, distance: u32) -> (u32, u32) {
        let moved = line as i32 - self.last as i32;
        if moved == 0 {
            return (0, 0);
        }
        let near = moved.unsigned_abs() <= distance.max(1);
        self.last = line;
        if !near || (self.step != 0 && moved.signum() != self.step) {
            (self.step, self.seen) = (if near { moved.signum() } else { 0 }, 0);
            return (0, 0);
        }
        if self.step == 0 {
            self.step = moved.signum();
        }
        let fetched = self.seen.saturating_sub(moved.unsigned_abs());
        self.seen = fetched.saturating_add(degree).min(distance);
        (fetched + 1, self.seen + 1)
    }
}
