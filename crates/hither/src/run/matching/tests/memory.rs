use super::ProgramEvent::*;
use super::*;
use nix::libc::{MAP_FIXED, MAP_HUGETLB, MAP_NORESERVE, PROT_EXEC, PROT_NONE};

#[test]
fn mappings_are_counted_by_thread_and_size() {
    let mut placed = TestPlacement::app();
    placed.thread(0, Some(0));
    placed.region(mmap(0, 4, 1), &[(0, 1, 0), (1, 3, 1)]);
    placed.region(mmap(1, 4, 0), &[(0, 4, 2)]);
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, private(50, 4)), &[]),
            (Map(100, private(60, 5)), &[]),
            (Thread(100, 101, 0), &[]),
            (Map(101, private(70, 4)), &[(70, 4, 2)]),
            (Map(100, private(80, 4)), &[(80, 1, 0), (81, 3, 1)]),
            (Map(100, private(90, 4)), &[]),
        ],
    );
    assert_eq!(
        found(&r, FIRST),
        [
            (
                "mapping 1 of 16 KiB by thread 0".into(),
                false,
                vec![(80, 1, 0), (81, 3, 1)]
            ),
            (
                "mapping 0 of 16 KiB by thread 1".into(),
                false,
                vec![(70, 4, 2)]
            ),
        ]
    );
    assert!(r.notes().is_empty(), "{:?}", r.notes());
    assert_eq!(r.smallest_mapping(), Some(4 * PAGE));
}

#[test]
fn what_is_unmapped_is_no_longer_told_of() {
    let mut placed = TestPlacement::app();
    placed.region(mmap(0, 8, 0), &[(0, 8, 1)]);
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, private(50, 8)), &[(50, 8, 1)]),
            (Brk(100, 10), &[]),
            (Unmap(100, 52, 2), &[]),
            (Map(100, private(56, 4)), &[]),
        ],
    );
    assert_eq!(found(&r, FIRST)[0].2, [(50, 2, 1), (54, 2, 1)]);
}

#[test]
fn the_heap_grows_and_shrinks() {
    let mut placed = TestPlacement::app();
    placed.region(
        region(RegionKind::Brk, None, 0, 10),
        &[(0, 4, 1), (6, 4, 2)],
    );
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Brk(100, 200), &[]),
            (Brk(100, 202), &[(200, 2, 1)]),
            (Brk(100, 208), &[(202, 2, 1), (206, 2, 2)]),
            (Brk(100, 203), &[]),
            (Brk(100, 220), &[(203, 1, 1), (206, 4, 2)]),
        ],
    );
    let told = ("heap".to_owned(), false, vec![(200, 4, 1), (206, 4, 2)]);
    assert_eq!(found(&r, FIRST), [told]);
}

/// The loader maps a library whole, then its segments over that, then its variables.
#[test]
fn segments_of_a_library() {
    let mut placed = TestPlacement::app();
    let lib = RegionIdentity {
        file: "/lib/libx.so".into(),
        ..region(RegionKind::Elf, None, 0, 10)
    };
    placed.region(lib, &[(0, 3, 0), (6, 2, 1), (8, 2, 2)]);
    let at = |page, pages, offset, prot| {
        let mapping = segment(page, pages, "/opt/lib/libx.so", offset, prot);
        Map(
            100,
            MemoryMapping {
                flags: mapping.flags | MAP_FIXED,
                ..mapping
            },
        )
    };
    let bss = MemoryMapping {
        flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
        ..private(308, 2)
    };
    check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (
                Map(100, segment(300, 10, "/opt/lib/libx.so", 0, PROT_READ)),
                &[],
            ),
            (at(302, 2, 2, PROT_READ | PROT_EXEC), &[]),
            (at(306, 2, 5, PROT_READ | PROT_WRITE), &[(306, 2, 1)]),
            (Map(100, bss), &[(308, 2, 2)]),
        ],
    );
}

/// A program: its text, its variables with and without values; the loader; the stack.
fn start() -> ExecImage {
    let stack = MemoryMapping {
        file: file("[stack]", 0),
        ..private(990, 10)
    };
    let vdso = segment(2000, 2, "[vdso]", 0, PROT_READ | PROT_EXEC);
    ExecImage {
        mappings: vec![
            segment(400, 2, "/bin/app", 0, PROT_READ | PROT_EXEC),
            segment(402, 1, "/bin/app", 2, PROT_READ | PROT_WRITE),
            private(403, 5),
            segment(700, 2, "/lib/ld.so", 0, PROT_READ | PROT_EXEC),
            stack,
            vdso,
        ],
        ..image("/bin/app")
    }
}

#[test]
fn what_a_program_starts_with() {
    let mut placed = TestPlacement::app();
    // Pages 40..50 of 50 are the ten that there are: 990..1000.
    placed.region(
        region(RegionKind::Stack, None, 0, 50),
        &[(30, 2, 2), (45, 5, 1)],
    );
    let app = RegionIdentity {
        file: "/bin/app".into(),
        ..region(RegionKind::Elf, None, 0, 8)
    };
    placed.region(app, &[(0, 2, 0), (2, 2, 1), (5, 2, 2)]);
    let mut r = placed.recogniser();
    let initial = r.program_started(FIRST, &start());
    // What the stack grows by comes to lie as its lowest page does.
    assert_eq!(
        pages(&initial.binds),
        [(402, 2, 1), (405, 2, 2), (990, 1, 2), (995, 5, 1)]
    );
    assert_eq!(
        found(&r, FIRST),
        [
            ("main stack".into(), false, vec![(980, 2, 2), (995, 5, 1)]),
            ("app data".into(), false, vec![(402, 2, 1), (405, 2, 2)]),
        ]
    );
}

#[test]
fn a_stack_on_one_node_grows_on_that_node() {
    let mut placed = TestPlacement::app();
    placed.region(region(RegionKind::Stack, None, 0, 50), &[(46, 4, 3)]);
    let binds = placed.recogniser().program_started(FIRST, &start()).binds;
    assert_eq!(pages(&binds), [(990, 10, 3)]);
}

#[test]
fn stacks_of_threads() {
    let mut placed = TestPlacement::app();
    let thread = placed.thread(0, Some(0));
    let other = placed.thread(0, Some(0));
    placed.region(
        region(RegionKind::Stack, Some(thread), 0, 20),
        &[(18, 2, 1)],
    );
    placed.region(region(RegionKind::Stack, Some(other), 1, 20), &[(17, 3, 2)]);
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            // Known when it is mapped.
            (Map(100, private(500, 20)), &[(518, 2, 1)]),
            (Thread(100, 101, 520), &[]),
            // Longer than in the profile: known when the thread starts.
            (Map(100, private(600, 30)), &[]),
            (Thread(100, 102, 630), &[(627, 3, 2)]),
        ],
    );
    let names: Vec<_> = found(&r, FIRST).into_iter().map(|f| (f.0, f.1)).collect();
    assert_eq!(
        names,
        [
            ("stack of thread 1".into(), false),
            ("stack of thread 2".into(), true)
        ]
    );
}

/// glibc reserves 128 MiB, gives back what lies below and above 64 MiB at a multiple of
/// 64 MiB, and starts the heap there.
#[test]
fn arenas_start_at_multiples_of_their_size() {
    const ARENA: u64 = 16384;
    let mut placed = TestPlacement::app();
    placed.region(mmap(0, 2 * ARENA, 0), &[(5000, 4, 1), (5010, 2, 2)]);
    let reserve = |page, pages| MemoryMapping {
        prot: PROT_NONE,
        flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        ..private(page, pages)
    };
    let page = 3 * ARENA + 777;
    check(
        placed.clone(),
        &[
            (Start("/bin/app"), &[]),
            (
                Map(100, reserve(page, 2 * ARENA)),
                &[(4 * ARENA, 4, 1), (4 * ARENA + 10, 2, 2)],
            ),
            (Unmap(100, page, ARENA - 777), &[]),
            (Unmap(100, 5 * ARENA, 777), &[]),
        ],
    );
    check(
        placed.clone(),
        &[
            (Start("/bin/app"), &[]),
            (
                Map(100, reserve(4 * ARENA, 2 * ARENA)),
                &[(4 * ARENA, 4, 1), (4 * ARENA + 10, 2, 2)],
            ),
            (Unmap(100, 5 * ARENA, ARENA), &[]),
        ],
    );
    // The place after the last arena is tried first, and is half as much.
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (
                Map(100, reserve(4 * ARENA, ARENA)),
                &[(4 * ARENA, 4, 1), (4 * ARENA + 10, 2, 2)],
            ),
        ],
    );
    assert!(found(&r, FIRST)[0].1);
}

/// Other allocators map more than they need to align it.
#[test]
fn aligned_allocations() {
    let mut placed = TestPlacement::app();
    placed.region(mmap(0, 48, 0), &[(10, 16, 1), (26, 16, 2)]);
    check(
        placed.clone(),
        &[
            (Start("/bin/app"), &[]),
            (Map(100, private(1004, 48)), &[(1014, 16, 1), (1030, 16, 2)]),
            (Unmap(100, 1004, 4), &[(1008, 16, 1), (1024, 16, 2)]),
            (Unmap(100, 1040, 12), &[]),
        ],
    );
    check(
        placed.clone(),
        &[
            (Start("/bin/app"), &[]),
            (Map(100, private(1008, 48)), &[(1018, 16, 1), (1034, 16, 2)]),
            (Unmap(100, 1040, 16), &[(1008, 16, 1), (1024, 16, 2)]),
        ],
    );
    // Given back later, it is no such area.
    check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, private(1004, 48)), &[(1014, 16, 1), (1030, 16, 2)]),
            (Map(100, private(4000, 1)), &[]),
            (Unmap(100, 1004, 4), &[]),
        ],
    );
}

#[test]
fn moved_memory_keeps_its_names() {
    let mut placed = TestPlacement::app();
    placed.region(mmap(0, 4, 0), &[(0, 2, 1), (2, 2, 2)]);
    // Known by the size it had in the end.
    placed.region(mmap(0, 40, 0), &[(0, 20, 1), (20, 20, 2)]);
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, private(50, 4)), &[(50, 2, 1), (52, 2, 2)]),
            (Remap(100, (50, 4), (90, 3)), &[(90, 2, 1), (92, 1, 2)]),
            (Map(100, private(200, 5)), &[]),
            (Remap(100, (200, 5), (300, 12)), &[]),
            (
                Remap(100, (300, 12), (300, 40)),
                &[(300, 20, 1), (320, 20, 2)],
            ),
            (Unmap(100, 300, 10), &[]),
            (
                Remap(100, (310, 30), (510, 30)),
                &[(510, 10, 1), (520, 20, 2)],
            ),
        ],
    );
    assert_eq!(found(&r, FIRST).len(), 2);
    assert!(r.notes().is_empty());
}

#[test]
fn files_read_only_and_special_memory_are_left_alone() {
    let mut placed = TestPlacement::app();
    let cache = RegionIdentity {
        file: "/etc/cache".into(),
        ..mmap(0, 3, 0)
    };
    placed.region(cache, &[(0, 3, 1)]);
    let r = check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (Map(100, segment(50, 3, "/etc/cache", 0, PROT_READ)), &[]),
        ],
    );
    assert!(found(&r, FIRST).is_empty());
}

#[test]
fn huge_pages_are_bound_whole() {
    let mut placed = TestPlacement::app();
    placed.region(
        mmap(0, 1024, 0),
        &[(0, 100, 1), (100, 300, 2), (600, 10, 3)],
    );
    let huge = |m: MemoryMapping| MemoryMapping {
        flags: m.flags | MAP_HUGETLB,
        ..m
    };
    check(
        placed,
        &[
            (Start("/bin/app"), &[]),
            (
                Map(100, huge(private(512 * 5, 1024))),
                &[(512 * 5, 512, 2), (512 * 6, 512, 3)],
            ),
        ],
    );
}

#[test]
fn hundreds_of_thousands_of_pieces_are_made_fewer() {
    let mut placed = TestPlacement::app();
    let turns: Vec<PageTriple> = (0..100_000).map(|p| (p, 1, (p % 4) as u32)).collect();
    placed.region(mmap(0, 100_000, 0), &turns);
    let mut r = placed.recogniser();
    r.program_started(FIRST, &image("/bin/app"));
    let binds = r.mapped(100, &private(500, 100_000));
    assert!((2000..=4096).contains(&binds.len()), "{}", binds.len());
    let asked: u64 = binds.iter().map(|b| b.length / PAGE).sum();
    assert_eq!(asked, 100_000);
    let notes = r.notes();
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].contains("100000") && notes[0].contains("128 KiB"),
        "{}",
        notes[0]
    );
}
