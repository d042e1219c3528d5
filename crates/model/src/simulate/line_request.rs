//! What a cache asks the next one for, and what comes back.
use super::cache_tree::DEPTH;

/// A request of a private hierarchy for a line.
#[derive(Clone, Copy)]
pub struct LineRequest {
    pub l1: usize,
    pub line: u32,
    pub write: bool,
    /// The level that asks, 0 for a core's access: levels below it do not get the line.
    pub first: usize,
    /// A prefetcher asks, not a core.
    pub ahead: bool,
    /// When it leaves the core.
    pub now: f64,
    /// Where its sets begin, for the levels that were searched.
    pub sets: [usize; DEPTH],
}

/// How a request was served: when, and the flags that the line gets in the caches on its way that
/// did not have it: the last level's, and those below.
pub struct RequestOutcome {
    pub done: f64,
    pub below: u32,
    pub last: u32,
}
