//! kMAF's mapping of threads (kMAF 3.4): every 100 ms, whatever the phases, by all communication so far, of which
//! the older counts less.
//!
//! ```text
//!   M += what is communicated in 100 ms;  map(M);  M = M - (M >> 2)
//! ```
use super::{threads_that_move, ThreadStage};
use crate::map::PuAssignment;
use hither_profile::{CommMatrix, Nanos, PairComm, Profile, SliceIx};

/// Where the threads are when. The run starts with the first mapping calculated.
///
/// # Errors
/// When `map` has one.
pub fn plan_threads_by_period(
    profile: &Profile,
    period: Nanos,
    mut map: impl FnMut(&CommMatrix, Option<&[u32]>) -> Result<PuAssignment, String>,
) -> Result<Vec<ThreadStage>, String> {
    let mut rows: Vec<&PairComm> = profile.comm.iter().collect();
    rows.sort_by_key(|c| c.slice);
    let mut rows = rows.into_iter().peekable();
    let mut matrix = CommMatrix::new(profile.threads.len());
    let mut stages: Vec<ThreadStage> = Vec::new();
    let mut due = period;
    for (at, slice) in (0u32..).zip(&profile.slices) {
        while let Some(row) = rows.next_if(|row| row.slice.0 <= at) {
            matrix.add(row.i.at(), row.j.at(), row.events);
        }
        let end = slice.start.saturating_add(slice.length);
        let last = at as usize + 1 == profile.slices.len();
        let first = last && stages.is_empty();
        if end < due && !first || matrix.total() == 0 {
            continue;
        }
        due = end.saturating_add(period);
        let now = stages.last().map(|stage| stage.threads.as_slice());
        let threads = map(&matrix, now)?;
        matrix = aged(&matrix);
        match now.map(|now| threads_that_move(now, &threads)) {
            None => stages.push(ThreadStage::whole_run(threads)),
            Some(moved) if moved > 0 && !last => stages.push(ThreadStage {
                slice: SliceIx(at + 1),
                start: end,
                phase: None,
                threads,
                moved,
            }),
            Some(_) => {}
        }
    }
    if stages.is_empty() {
        stages.push(ThreadStage::whole_run(map(&matrix, None)?));
    }
    Ok(stages)
}

/// Three quarters of it (kMAF 3.4.2).
fn aged(matrix: &CommMatrix) -> CommMatrix {
    let threads = matrix.threads();
    let mut aged = CommMatrix::new(threads);
    for i in 0..threads {
        for j in i + 1..threads {
            let old = matrix.get(i, j);
            aged.add(i, j, old - (old >> 2));
        }
    }
    aged
}
