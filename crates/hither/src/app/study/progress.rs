//! Progress of a study.

/// Shows it.
pub trait Progress: Sync {
    /// Begins a row of steps; `steps`: how many there will be, 0 where that is not known. It ends
    /// when the result is dropped.
    fn begin(&self, steps: u64, what: &'static str) -> Box<dyn Steps>;
}

/// Steps under way; several threads may do them.
pub trait Steps: Sync {
    fn step(&self);
}
