use super::ProgramEvent::*;
use super::*;

fn of(process: u32, region: RegionIdentity) -> RegionIdentity {
    RegionIdentity {
        process: ProcessIx(process),
        thread: None,
        ..region
    }
}

#[test]
fn copies_have_places_of_their_own() {
    let mut placed = TestPlacement::app();
    let child = placed.process("/bin/app", Some(0), None);
    let heap = region(RegionKind::Brk, None, 0, 10);
    placed.region(heap.clone(), &[(0, 4, 0)]);
    placed.region(mmap(0, 20, 0), &[(0, 20, 0)]);
    placed.region(mmap(0, 30, 0), &[(0, 30, 0)]);
    placed.region(of(child, heap), &[(2, 4, 3)]);
    placed.region(of(child, mmap(0, 20, 0)), &[(5, 5, 2)]);
    let own = RegionIdentity {
        process: ProcessIx(child),
        ..mmap(1, 20, 0)
    };
    placed.region(own, &[(0, 1, 1)]);
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Brk(100, 200), &[]),
            (Brk(100, 206), &[(200, 4, 0)]),
            (Map(100, private(500, 20)), &[(500, 20, 0)]),
            (Map(100, private(600, 30)), &[(600, 30, 0)]),
            (Fork(100, 200), &[(202, 4, 3), (505, 5, 2)]),
            // The child counts its mappings from 0.
            (Map(200, private(700, 20)), &[(700, 1, 1)]),
            (Brk(200, 210), &[]),
        ],
    );
    assert_eq!(found(&r, FIRST).len(), 3);
    let told: Vec<_> = r
        .recognised_regions(200)
        .iter()
        .map(|f| (f.name.clone(), f.copied))
        .collect();
    let names = [
        ("heap", true),
        ("mapping 0 of 80 KiB", true),
        ("mapping 0 of 80 KiB by thread 1", false),
    ];
    assert_eq!(told, names.map(|(name, copied)| (name.to_owned(), copied)));
}

/// The parent's own is placed nowhere, the copy is.
#[test]
fn copies_of_what_is_not_placed() {
    let mut placed = TestPlacement::app();
    let child = placed.process("/bin/app", Some(0), None);
    placed.region(of(child, mmap(0, 20, 1)), &[(5, 5, 2)]);
    check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, private(500, 20)), &[]),
            (Map(100, private(600, 20)), &[]),
            (Fork(100, 200), &[(605, 5, 2)]),
        ],
    );
}

/// Two threads' arenas look alike in a child, which has neither thread.
#[test]
fn copies_that_look_alike() {
    let mut placed = TestPlacement::app();
    placed.thread(0, Some(0));
    let child = placed.process("/bin/app", Some(0), None);
    placed.region(mmap(0, 20, 0), &[(0, 20, 0)]);
    placed.region(mmap(1, 20, 0), &[(0, 20, 0)]);
    placed.region(of(child, mmap(0, 20, 0)), &[(5, 5, 2)]);
    placed.region(of(child, mmap(1, 20, 0)), &[(5, 5, 3)]);
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Thread(100, 101, 0), &[]),
            (Map(100, private(500, 20)), &[(500, 20, 0)]),
            (Map(101, private(600, 20)), &[(600, 20, 0)]),
            (Fork(100, 200), &[]),
        ],
    );
    assert!(r.recognised_regions(200).is_empty());
    assert!(r
        .notes()
        .iter()
        .any(|n| n.starts_with("2 mappings could be one of several")));
}

#[test]
fn a_vforked_process_maps_for_its_parent() {
    let mut placed = TestPlacement::app();
    placed.process("/bin/app", Some(0), None);
    placed.region(mmap(0, 20, 0), &[(0, 20, 1)]);
    let mut r = placed.recogniser();
    r.program_started(FIRST, &image("/bin/app"));
    assert_eq!(r.process_forked(100, 200, true), Default::default());
    assert!(r.mapped(200, &private(500, 20)).is_empty());
    r.thread_ended(200);
    assert_eq!(pages(&r.mapped(100, &private(600, 20))), [(600, 20, 1)]);
    // The process id comes again, for a real copy.
    assert_eq!(r.process_forked(100, 200, false).thread, Some(ThreadIx(1)));
    assert_eq!(r.recognised_regions(FIRST).len(), 1);
}
