//! The placed threads by process, as launchers think of them.
use hither_profile::{Placement, ProcessIx, ThreadPlace};
use std::collections::BTreeMap;

/// A process with threads that are placed.
pub struct PlacedProcess {
    /// How many threads it has in the profile, placed or not.
    pub threads: usize,
    /// Which of them are placed, from 0 in order of creation, and where; in order.
    pub placed: Vec<(usize, ThreadPlace)>,
}

impl PlacedProcess {
    /// The kernel's number of each placed thread's PU, in order of threads.
    pub fn pus(&self) -> Vec<u32> {
        self.placed
            .iter()
            .map(|(_, place)| place.os_index())
            .collect()
    }
}

/// Processes with placed threads: MPI ranks in order of ranks, then others in order of
/// appearance.
pub fn placed_processes(placement: &Placement) -> Vec<PlacedProcess> {
    let mut order: Vec<ProcessIx> = (0..placement.processes.len() as u32)
        .map(ProcessIx)
        .collect();
    order.sort_by_key(|p| placement.processes[p.at()].rank.unwrap_or(u32::MAX));
    let mut by_process: BTreeMap<ProcessIx, PlacedProcess> = BTreeMap::new();
    let places = placement.phases.first().map_or(&[][..], |p| &p.threads);
    let mut places = places.iter().peekable();
    for (thread, id) in (0..).zip(&placement.threads) {
        let process = by_process.entry(id.process).or_insert(PlacedProcess {
            threads: 0,
            placed: Vec::new(),
        });
        if let Some(place) = places.next_if(|p| p.thread().0 == thread) {
            process.placed.push((process.threads, *place));
        }
        process.threads += 1;
    }
    let found = order.iter().filter_map(|p| by_process.remove(p));
    found.filter(|p| !p.placed.is_empty()).collect()
}

/// What a format for threads says of a placement of pages alone.
pub const NO_THREAD: &str = "the placement places no thread";

/// The ranks of an MPI job, or the rows of a matrix; every process with placed threads where none is known as one.
pub fn mpi_ranks(placement: &Placement) -> Vec<PlacedProcess> {
    // The rows of a matrix are what the launcher starts.
    if placement.source.command.is_empty() && placement.processes.len() == 1 {
        let places = placement.phases.first().map_or(&[][..], |p| &p.threads);
        let alone = |place: &ThreadPlace| PlacedProcess {
            threads: 1,
            placed: vec![(0, *place)],
        };
        return places.iter().map(alone).collect();
    }
    let known = placement.processes.iter().filter(|p| p.rank.is_some());
    let mut all = placed_processes(placement);
    match known.count() {
        0 => all,
        ranks => {
            all.truncate(ranks);
            all
        }
    }
}

/// The process with most placed threads, the first of several.
pub fn largest_process(placement: &Placement) -> Result<PlacedProcess, String> {
    let mut all = placed_processes(placement);
    let most = all.iter().map(|p| p.placed.len()).max();
    let at = all.iter().position(|p| Some(p.placed.len()) == most);
    at.map(|at| all.swap_remove(at))
        .ok_or_else(|| NO_THREAD.to_owned())
}

/// Numbers separated by commas.
pub fn comma_list(numbers: &[u32]) -> String {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    texts.join(",")
}

/// In ascending order, each once.
pub fn sorted_unique(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
