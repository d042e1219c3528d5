//! The phases of a placement: what moves as each begins.
use hither_profile::{Nanos, Placement};

use crate::cli::style::count;
use hither_model::units::counted;

/// Changes that are listed.
const MOST_CHANGES: usize = 12;

/// The changes of a placement by phase, and what each must gain; `moves`: of pages, in all.
pub fn phases(placement: &Placement, moves: usize) -> String {
    let number = placement.phases.len();
    let mut out = format!(
        "{number} placed phases, {} moves of pages\n",
        count(moves as u64)
    );
    let changes = phase_changes(placement);
    for change in changes.iter().take(MOST_CHANGES) {
        out += &format!(
            "  from {:.2} s: {}\n",
            change.start as f64 / 1e9,
            change.moves()
        );
    }
    if changes.len() > MOST_CHANGES {
        out += &format!("  and {} more\n", changes.len() - MOST_CHANGES);
    }
    let costs = ["thread-move", "page-move"].map(|name| placement.policy.options.get(name));
    if let [Some(thread), Some(page)] = costs {
        out += &format!("  each to gain more than it costs: {thread} events a hop for a thread (--thread-move), {page} remote accesses for a page (--page-move)\n");
    }
    out
}

/// What moves as a phase begins.
struct ListedChange {
    start: Nanos,
    threads: u64,
    pages: u64,
    /// Changes of pages alone, one after the other, that are listed as one.
    times: u64,
}

impl ListedChange {
    fn moves(&self) -> String {
        let threads = counted(self.threads, "thread", "threads");
        let pages = counted(self.pages, "page", "pages");
        match (self.threads, self.pages, self.times) {
            (0, 1, _) => format!("{pages} moves"),
            (0, _, 1) => format!("{pages} move"),
            (0, _, times) => format!("{pages} move, at {} times", count(times)),
            (1, 0, _) => format!("{threads} moves"),
            (_, 0, _) => format!("{threads} move"),
            _ => format!("{threads} and {pages} move"),
        }
    }
}

fn phase_changes(placement: &Placement) -> Vec<ListedChange> {
    let mut changes: Vec<ListedChange> = Vec::new();
    for phases in placement.phases.windows(2) {
        let [before, phase] = phases else { continue };
        let moved = before.threads.iter().zip(&phase.threads);
        let threads = moved.filter(|(a, b)| a != b).count() as u64;
        let pages = Placement::pages(phase);
        match changes
            .last_mut()
            .filter(|last| last.threads + threads == 0)
        {
            Some(last) => {
                last.pages += pages;
                last.times += 1;
            }
            None => changes.push(ListedChange {
                start: phase.start,
                threads,
                pages,
                times: 1,
            }),
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_profile::{
        NodeIx, PageRun, PlacedPhase, PuIx, RegionPlacement, ThreadIx, ThreadPlace,
    };

    #[test]
    fn changes_of_pages_alone_are_listed_as_one() {
        let phase = |start, pu, pages| PlacedPhase {
            start,
            threads: vec![ThreadPlace(ThreadIx(0), PuIx(pu), pu, NodeIx(0))],
            pages: vec![RegionPlacement {
                runs: vec![PageRun(0, pages, NodeIx(0))],
                ..RegionPlacement::default()
            }],
            ..PlacedPhase::default()
        };
        let placement = Placement {
            phases: vec![
                phase(0, 0, 9),
                phase(1_000_000_000, 0, 2),
                phase(1_500_000_000, 0, 3),
                phase(2_000_000_000, 1, 4),
                phase(3_000_000_000, 1, 1),
            ],
            ..Placement::default()
        };
        assert_eq!(
            phases(&placement, 10),
            "5 placed phases, 10 moves of pages\n  \
             from 1.00 s: 5 pages move, at 2 times\n  \
             from 2.00 s: 1 thread and 4 pages move\n  \
             from 3.00 s: 1 page moves\n"
        );
    }

    #[test]
    fn changes_are_told_in_words() {
        let check = |threads, pages, times, words: &str| {
            let change = ListedChange {
                start: 0,
                threads,
                pages,
                times,
            };
            assert_eq!(change.moves(), words);
        };
        check(2, 378, 1, "2 threads and 378 pages move");
        check(1, 1, 1, "1 thread and 1 page move");
        check(2, 0, 1, "2 threads move");
        check(1, 0, 1, "1 thread moves");
        check(0, 1, 1, "1 page moves");
        check(0, 2048, 1, "2.05 k pages move");
        check(0, 513, 2, "513 pages move, at 2 times");
    }
}
