//! Small cases worked by hand from the papers' definitions.
mod controller;
mod kmaf;
mod matrix;
mod spcd;

use super::sharing_matrix::EVENT_WEIGHT;
use super::*;
use hither_profile::PAGE_SIZE;

/// Thread `who` on node `node` accesses byte `at` of object 0 at `ms` milliseconds.
fn access(who: u16, node: u32, at: u64, ms: u64) -> FaultAccess {
    FaultAccess {
        was_taken: true,
        thread: SharerId(who),
        node: NodeIx(node),
        page: page(at / PAGE_SIZE),
        offset: (at % PAGE_SIZE) as u16,
        at: ms * 1_000_000,
    }
}

fn page(number: u64) -> ObjectPage {
    ObjectPage {
        object: MemoryObject(0),
        number,
    }
}

/// Events of all pairs that share.
fn events(matrix: &SharingMatrix) -> Vec<(u16, u16, u32)> {
    let pairs = matrix.pairs();
    pairs
        .map(|(i, j, w)| (i.0, j.0, w / EVENT_WEIGHT))
        .collect()
}
