use super::*;
use hither_sys::Cpu;

/// Which thread of the profile each is, and its unit.
#[track_caller]
fn check_threads(placed: TestPlacement, made: &[(Tid, Tid, Option<u32>)]) {
    let mut r = placed.recogniser();
    assert_eq!(
        r.program_started(FIRST, &image("/bin/app")).cpu,
        Some(Cpu(0))
    );
    for (creator, tid, expected) in made {
        let initial = r.thread_created(*creator, *tid, 0);
        let got = (initial.thread, initial.cpu);
        assert_eq!(
            got,
            (expected.map(ThreadIx), expected.map(Cpu)),
            "thread {tid}"
        );
    }
}

/// Threads 1 and 3 are made by thread 0, thread 2 by thread 1.
fn family() -> TestPlacement {
    let mut placed = TestPlacement::app();
    placed.thread(0, Some(0));
    placed.thread(0, Some(1));
    placed.thread(0, Some(0));
    placed
}

#[test]
fn by_creator_and_order() {
    check_threads(
        family(),
        &[
            (100, 101, Some(1)),
            (101, 102, Some(2)),
            (100, 103, Some(3)),
        ],
    );
    // In another order, as a faster machine might have it.
    check_threads(
        family(),
        &[
            (100, 101, Some(1)),
            (100, 103, Some(3)),
            (101, 102, Some(2)),
        ],
    );
}

#[test]
fn more_threads_than_in_the_profile() {
    check_threads(
        family(),
        &[
            (100, 101, Some(1)),
            (100, 102, Some(3)),
            (100, 103, None),
            (101, 104, Some(2)),
            (101, 105, None),
        ],
    );
}

#[test]
fn more_generations_than_in_the_profile() {
    let mut placed = TestPlacement::app();
    for _ in 0..4 {
        placed.thread(0, Some(0));
    }
    for (follower, first) in [(3, 1), (4, 2)] {
        placed.0.threads[follower].role = Some(ThreadIx(first));
    }
    let mut r = placed.recogniser();
    r.program_started(FIRST, &image("/bin/app"));
    for tid in 101..=104 {
        let thread = r.thread_created(100, tid, 0).thread;
        assert_eq!(thread, Some(ThreadIx(tid as u32 - 100)));
    }
    let mut next = |gone: &[Tid], tid: Tid, expected: Option<u32>| {
        gone.iter().for_each(|tid| r.thread_ended(*tid));
        let initial = r.thread_created(100, tid, 0);
        assert_eq!(initial.thread, expected.map(ThreadIx), "thread {tid}");
        assert_eq!(initial.cpu, expected.map(Cpu), "thread {tid}");
    };
    next(&[], 105, None);
    next(&[101, 102, 103, 104], 106, Some(1));
    next(&[], 107, Some(2));
    next(&[], 108, None);
    next(&[107], 109, Some(2));
}

#[test]
fn made_by_somebody_else() {
    // In the profile thread 3 makes none, so what it makes is known by its number.
    check_threads(
        family(),
        &[
            (100, 101, Some(1)),
            (100, 103, Some(3)),
            (103, 104, Some(3)),
            (104, 105, None),
        ],
    );
}

#[test]
fn thread_ids_are_used_again() {
    let mut r = family().recogniser();
    r.program_started(FIRST, &image("/bin/app"));
    assert_eq!(r.thread_created(100, 101, 0).thread, Some(ThreadIx(1)));
    r.thread_ended(101);
    assert_eq!(r.thread_created(100, 101, 0).thread, Some(ThreadIx(3)));
    assert_eq!(r.thread_created(100, 102, 0).thread, None);
    let notes = r.notes();
    assert_eq!(
        notes,
        ["1 thread is not in the placement and runs wherever the system puts it."]
    );
}

#[test]
fn strangers() {
    let mut r = family().recogniser();
    r.program_started(FIRST, &image("/bin/app"));
    assert_eq!(r.thread_created(7, 8, 0), Default::default());
    assert_eq!(r.process_forked(7, 8, false), Default::default());
    assert!(r.mapped(7, &private(1, 1)).is_empty());
    r.thread_ended(7);
    assert!(r.recognised_regions(7).is_empty());
}
