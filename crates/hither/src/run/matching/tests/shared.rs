use super::ProgramEvent::*;
use super::*;

fn memory(path: &str, pages: u64) -> RegionIdentity {
    RegionIdentity {
        file: path.into(),
        ..region(RegionKind::Shared, None, 0, pages)
    }
}

#[test]
fn files_by_path_and_offset() {
    let mut placed = TestPlacement::app();
    placed.region(memory("/dev/shm/data", 10), &[(0, 4, 1), (4, 6, 2)]);
    let part = MemoryMapping {
        file: file("/dev/shm/data", 3),
        ..shared(500, 4, "/dev/shm/data")
    };
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, part), &[(500, 1, 1), (501, 3, 2)]),
            // Known already at its first address.
            (
                Map(
                    100,
                    MemoryMapping {
                        file: file("/dev/shm/data", 4),
                        ..shared(600, 2, "/dev/shm/data")
                    },
                ),
                &[],
            ),
            (
                Map(100, shared(700, 10, "/dev/shm/data")),
                &[(700, 4, 1), (704, 6, 2)],
            ),
        ],
    );
    assert_eq!(
        found(&r, FIRST),
        [("data".into(), false, vec![(500, 1, 1), (501, 3, 2)])]
    );
}

/// Open MPI: a job number, and the rank at the end.
#[test]
fn files_whose_names_have_numbers() {
    let mut placed = TestPlacement::app();
    for rank in 0..3 {
        let path = format!("/dev/shm/vader_segment.vm.0.57ac0001.{rank}");
        placed.region(memory(&path, 10), &[(0, 10, rank)]);
    }
    check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (
                Map(
                    100,
                    shared(500, 10, "/dev/shm/vader_segment.vm.0.abc10001.2"),
                ),
                &[(500, 10, 2)],
            ),
            (
                Map(
                    100,
                    shared(600, 10, "/dev/shm/vader_segment.vm.0.abc10001.0"),
                ),
                &[(600, 10, 0)],
            ),
            (Map(100, shared(700, 10, "/dev/shm/other.abc10001.1")), &[]),
            (
                Map(
                    100,
                    shared(800, 10, "/dev/shm/vader_segment.vm.0.abc10001.1"),
                ),
                &[(800, 10, 1)],
            ),
        ],
    );
}

#[test]
fn files_with_random_names() {
    let mut placed = TestPlacement::app();
    placed.region(memory("/dev/shm/segaXbYcZ", 10), &[(0, 10, 1)]);
    placed.region(memory("/dev/shm/segQwErTy", 20), &[(0, 20, 2)]);
    check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (
                Map(100, shared(500, 20, "/dev/shm/segMnBvCx")),
                &[(500, 20, 2)],
            ),
            (Map(100, shared(600, 10, "/tmp/segLkJhGf")), &[]),
        ],
    );
}

#[test]
fn nameless_memory_in_order() {
    let mut placed = TestPlacement::app();
    placed.region(memory("", 10), &[(0, 10, 1)]);
    placed.region(memory("", 10), &[(0, 10, 2)]);
    placed.region(memory("", 4), &[(0, 4, 3)]);
    check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, shared(500, 4, "")), &[(500, 4, 3)]),
            (Map(100, shared(600, 10, "")), &[(600, 10, 1)]),
            (
                Map(100, shared(700, 10, "/SYSV00000000 (deleted)")),
                &[(700, 10, 2)],
            ),
            (Map(100, shared(800, 10, "")), &[]),
        ],
    );
}

#[test]
fn readers_do_not_bind() {
    let mut placed = TestPlacement::app();
    placed.region(memory("/dev/shm/data", 4), &[(0, 4, 1)]);
    let reader = MemoryMapping {
        prot: PROT_READ,
        ..shared(500, 4, "/dev/shm/data")
    };
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, reader), &[]),
            (Map(100, shared(600, 4, "/dev/shm/data")), &[(600, 4, 1)]),
        ],
    );
    assert_eq!(found(&r, FIRST)[0].2, [(600, 4, 1)]);
}

#[test]
fn two_processes_and_one_memory() {
    let mut placed = TestPlacement::app();
    placed.process("/bin/app", Some(0), None);
    placed.region(memory("/dev/shm/data", 4), &[(0, 4, 1)]);
    placed.region(memory("", 4), &[(0, 4, 2)]);
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, shared(500, 4, "")), &[(500, 4, 2)]),
            (Fork(100, 200), &[]),
            (Map(200, shared(600, 4, "/dev/shm/data")), &[(600, 4, 1)]),
            (Map(100, shared(600, 4, "/dev/shm/data")), &[]),
        ],
    );
    let told = |pid| found(&r, pid).into_iter().map(|f| f.0).collect::<Vec<_>>();
    assert_eq!(told(FIRST), ["shared memory of 16 KiB"]);
    assert_eq!(told(200), ["data"]);
}

/// The page cache of a disk has no policy of a mapping; a tmpfs has.
#[test]
fn files_on_disks_are_left_to_the_page_cache() {
    let mut placed = TestPlacement::app();
    placed.region(memory("/data/table", 10), &[(0, 10, 1)]);
    placed.region(memory("/scratch/table", 10), &[(0, 10, 2)]);
    let mut on_tmpfs = shared(700, 10, "/scratch/table");
    if let Some(file) = on_tmpfs.file.as_mut() {
        file.in_memory = true;
    }
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, shared(500, 10, "/data/table")), &[]),
            (Map(100, on_tmpfs), &[(700, 10, 2)]),
        ],
    );
    assert_eq!(
        found(&r, FIRST),
        [("table".into(), false, vec![(700, 10, 2)])]
    );
}
