use super::ProgramEvent::*;
use super::*;

/// Mappings of 64, 32 and 32 pages by thread 0, and one of 40 by thread 1.
fn profile() -> TestPlacement {
    let mut placed = TestPlacement::app();
    placed.thread(0, Some(0));
    placed.region(mmap(0, 64, 0), &[(0, 32, 0), (32, 32, 1)]);
    placed.region(mmap(0, 32, 0), &[(0, 32, 2)]);
    placed.region(mmap(0, 32, 1), &[(0, 32, 3)]);
    placed.region(mmap(1, 40, 0), &[(0, 40, 1)]);
    placed
}

#[test]
fn another_size_is_placed_in_proportion() {
    let r = check(
        profile(),
        &[
            (Start("/bin/app"), &[]),
            (Map(100, private(1000, 72)), &[(1000, 36, 0), (1036, 36, 1)]),
            (Map(100, private(2000, 32)), &[(2000, 32, 2)]),
            (Map(100, private(3000, 32)), &[(3000, 32, 3)]),
        ],
    );
    assert_eq!(r.notes(), [
        "1 mapping differs from the profile in size, by 13 %; its pages were placed in proportion.",
        "1 of 4 mappings of the placement were not found in this run, the largest of 160 KiB.",
    ]);
}

/// A problem four times as large: the order of mappings tells what their sizes do not.
#[test]
fn a_larger_problem() {
    let r = check(
        profile(),
        &[
            (Start("/bin/app"), &[]),
            (
                Map(100, private(1000, 256)),
                &[(1000, 128, 0), (1128, 128, 1)],
            ),
            (Map(100, private(2000, 128)), &[(2000, 128, 2)]),
            (Map(100, private(3000, 128)), &[(3000, 128, 3)]),
        ],
    );
    assert_eq!(found(&r, FIRST).iter().filter(|f| f.1).count(), 3);
}

/// What is the same has the better claim, even when it comes later.
#[test]
fn the_same_wins_over_the_nearest() {
    let r = check(
        profile(),
        &[
            (Start("/bin/app"), &[]),
            (Map(100, private(1000, 60)), &[(1000, 30, 0), (1030, 30, 1)]),
            (Map(100, private(2000, 64)), &[(2000, 32, 0), (2032, 32, 1)]),
        ],
    );
    let told = found(&r, FIRST);
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].1, told[0].2[0].0), (false, 2000));
}

#[test]
fn another_number_of_the_same_size() {
    let mut placed = TestPlacement::app();
    placed.region(mmap(0, 32, 3), &[(0, 32, 2)]);
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, private(1000, 32)), &[(1000, 32, 2)]),
        ],
    );
    let notes = r.notes();
    assert_eq!(notes, ["1 mapping was made in another order or by another thread than in the profile and placed as the nearest of that size."]);
}

#[test]
fn small_or_far_mappings_are_left_alone() {
    let mut placed = TestPlacement::app();
    placed.region(mmap(0, 15, 0), &[(0, 15, 1)]);
    placed.region(mmap(0, 100, 0), &[(0, 100, 2)]);
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, private(1000, 14)), &[]),
            (Map(100, private(2000, 3000)), &[]),
        ],
    );
    assert!(found(&r, FIRST).is_empty());
}

#[test]
fn somebody_elses_if_there_is_just_one() {
    let mut placed = TestPlacement::app();
    for _ in 0..3 {
        placed.thread(0, Some(0));
    }
    placed.region(mmap(1, 32, 0), &[(0, 32, 2)]);
    let start = [
        (Start("/bin/app"), &[][..]),
        (Thread(100, 101, 0), &[]),
        (Thread(100, 102, 0), &[]),
    ];
    let with = |last: (ProgramEvent, &'static [PageTriple])| [&start[..], &[last]].concat();
    check(
        placed.clone(),
        &with((Map(102, private(1000, 32)), &[(1000, 32, 2)])),
    );
    placed.region(mmap(0, 32, 5), &[(0, 32, 3)]);
    let r = check(placed, &with((Map(102, private(1000, 32)), &[])));
    let notes = r.notes();
    assert_eq!(
        notes[0],
        "1 mapping could be one of several in the profile; its pages were left to the system."
    );
}

#[test]
fn a_library_of_another_build() {
    let mut placed = TestPlacement::app();
    let lib = RegionIdentity {
        file: "/lib/libx.so.1".into(),
        ..region(RegionKind::Elf, None, 0, 10)
    };
    placed.region(lib, &[(0, 5, 0), (5, 5, 1)]);
    let variables = segment(310, 10, "/lib/libx.so.1", 10, PROT_READ | PROT_WRITE);
    check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (
                Map(100, segment(300, 20, "/lib/libx.so.1", 0, PROT_READ)),
                &[],
            ),
            (Map(100, variables), &[(310, 10, 1)]),
        ],
    );
}
