//! Known counter sequences and what holds when.
mod counters;
mod estimate;
mod intervals;
mod pace;

use hither_profile::{NodeIx, PlacedPhase, PuIx, RegionPlacement, ThreadIx, ThreadPlace};

/// A phase that starts after `start` of the traced run and `sync` synchronisation points.
fn phase(start: u64, sync: [u64; 4]) -> PlacedPhase {
    PlacedPhase {
        start: start * 1_000_000_000,
        sync,
        ..PlacedPhase::default()
    }
}

/// Moves thread 0 to a unit, and pages where asked for.
fn moves(unit: u32, pages: bool) -> PlacedPhase {
    PlacedPhase {
        threads: vec![ThreadPlace(ThreadIx(0), PuIx(unit), unit, NodeIx(0))],
        pages: vec![RegionPlacement::default(); usize::from(pages)],
        ..PlacedPhase::default()
    }
}
