use super::*;
use crate::run::guide::ActivePhases;
use hither_sys::Cpu;

fn two_phases() -> TestPlacement {
    let mut placed = TestPlacement::app();
    placed.thread(0, Some(0));
    placed.thread(0, Some(0));
    let place = |thread, unit| ThreadPlace(ThreadIx(thread), PuIx(unit), unit, NodeIx(0));
    for units in [[0, 1, 8], [4, 1, 8]] {
        placed.0.phases.push(PlacedPhase {
            threads: (0..3).map(|t| place(t, units[t as usize])).collect(),
            ..PlacedPhase::default()
        });
    }
    let first = placed.region(mmap(0, 20, 0), &[(0, 10, 0), (10, 10, 1)]);
    let second = placed.region(mmap(0, 30, 0), &[]);
    placed.places(1, first, &[(5, 5, 1)]);
    placed.places(2, first, &[(0, 1, 2)]);
    placed.places(2, second, &[(0, 30, 3)]);
    placed
}

/// Threads to units, and pages of processes to nodes.
type TestChange = (Vec<(Tid, Cpu)>, Vec<(Pid, Vec<PageTriple>)>);

fn enter(r: &mut ProfileGuide, threads: usize, pages_of: usize) -> TestChange {
    let change = r.enter_phases(ActivePhases {
        threads,
        pages: pages_of,
    });
    let by_process = change.pages.iter();
    (
        change.threads,
        by_process
            .map(|(pid, binds)| (*pid, pages(binds)))
            .collect(),
    )
}

#[test]
fn what_changes_moves() {
    let mut r = two_phases().recogniser();
    assert_eq!(r.phase_count(), 3);
    r.program_started(FIRST, &image("/bin/app"));
    r.thread_created(100, 101, 0);
    assert_eq!(
        pages(&r.mapped(100, &private(500, 20))),
        [(500, 10, 0), (510, 10, 1)]
    );
    assert!(r.mapped(100, &private(600, 30)).is_empty());
    assert_eq!(
        enter(&mut r, 1, 1),
        (vec![], vec![(FIRST, vec![(505, 5, 1)])])
    );
    // A thread that starts now starts where this phase has it.
    assert_eq!(r.thread_created(100, 102, 0).cpu, Some(Cpu(8)));
    let (threads, moved) = enter(&mut r, 2, 2);
    assert_eq!(threads, [(100, Cpu(4))]);
    assert_eq!(moved, [(FIRST, vec![(500, 1, 2), (600, 30, 3)])]);
    assert_eq!(
        found(&r, FIRST)[0].2,
        [(500, 1, 2), (501, 4, 0), (505, 15, 1)]
    );
    assert_eq!(enter(&mut r, 2, 2), (vec![], vec![]));
}

#[test]
fn phases_are_skipped_and_apart_for_threads_and_pages() {
    let mut r = two_phases().recogniser();
    r.program_started(FIRST, &image("/bin/app"));
    r.mapped(100, &private(500, 20));
    assert_eq!(enter(&mut r, 2, 0), (vec![(100, Cpu(4))], vec![]));
    let (threads, moved) = enter(&mut r, 2, 2);
    assert!(threads.is_empty());
    assert_eq!(moved, [(FIRST, vec![(500, 1, 2), (505, 5, 1)])]);
    // A phase that is not there is the last one.
    assert_eq!(enter(&mut r, 9, 9), (vec![], vec![]));
    assert_eq!(
        enter(&mut r, 0, 0),
        (vec![(100, Cpu(0))], vec![(FIRST, vec![(500, 10, 0)])])
    );
}

/// What is mapped later goes where it belongs by then.
#[test]
fn mappings_of_a_later_phase() {
    let mut r = two_phases().recogniser();
    r.program_started(FIRST, &image("/bin/app"));
    enter(&mut r, 2, 2);
    assert_eq!(pages(&r.mapped(100, &private(600, 30))), [(600, 30, 3)]);
    assert_eq!(
        pages(&r.mapped(100, &private(500, 20))),
        [(500, 1, 2), (501, 4, 0), (505, 15, 1)]
    );
}
