//! Thread-local variables: the copies of all threads are one structure, and nothing of them is a stack's.
use hither_profile::{Object, ObjectKind, Profile};

use crate::run::run;
use crate::view::*;

const THREADS: u64 = 4;
const TURNS: u64 = 3;
const ROUNDS: u64 = 10;
const COPIES: u64 = 1 + THREADS * TURNS;
const GRID: u64 = 8192;
const SMALL: u64 = 100;

fn profile_of(program: &str) -> Profile {
    run(&format!("{program} {THREADS} {TURNS} {ROUNDS}")).profile()
}

fn only<'p>(p: &'p Profile, name: &str) -> &'p Object {
    let found = named(p, name);
    assert_eq!(found.len(), 1, "{name}");
    found[0].1
}

/// Of the program and of a library, which may be one file.
#[test]
fn copies_are_one_structure() {
    for program in ["locals", "locals-static"] {
        let p = profile_of(program);
        let grid = only(&p, "grid");
        assert_eq!(grid.kind, ObjectKind::ThreadLocal);
        // And one by main at its end.
        assert_eq!(grid.reads, COPIES * ROUNDS * GRID + 1, "{program}");
        // The dynamic linker fills that of main.
        assert_within(grid.writes, COPIES * ROUNDS * GRID, 0.005, program);
        assert_eq!(grid.count, COPIES, "{program}");
        let copies = grid.size / (GRID * 8);
        assert!((2..=1 + THREADS).contains(&copies), "{program}: {copies}");
        assert!(grid.file.ends_with("locals.c") && grid.line > 0);
        let of_library = only(&p, "of_library");
        // The last of them may lie in the same 16 bytes as the first variable of the program.
        let expected = COPIES * ROUNDS * SMALL;
        assert_within(of_library.reads, expected, 0.015, program);
        assert_within(of_library.writes, expected, 0.015, program);
        let near = p.objects.iter().filter(|o| o.name.contains("near_"));
        let written: u64 = near.map(|o| o.writes).sum();
        assert_within(written, COPIES * ROUNDS * 2, 0.01, program);
    }
}

/// Copies at the same address, of threads that follow one another, have the same pages.
#[test]
fn large_copies_have_pages() {
    let p = profile_of("locals");
    let pages = pages(&p, "grid");
    let copies = pages.len() as u64 * 4096 / (GRID * 8);
    assert!((2..=1 + THREADS).contains(&copies), "{copies}");
    let users = pages.values().flat_map(|users| users.values());
    let all: u64 = users.map(|(reads, writes)| reads + writes).sum();
    // The C library writes each copy once.
    let expected = COPIES * ROUNDS * GRID * 2;
    assert_within(all, expected, 0.1, "accesses");
}

#[test]
fn stacks_have_what_is_left() {
    for program in ["locals", "locals-static"] {
        let p = profile_of(program);
        let stacks = p.objects.iter().filter(|o| o.kind == ObjectKind::Stack);
        let reads: u64 = stacks.map(|o| o.reads).sum();
        // 2.1 million accesses of thread-local variables, and what it takes to start twelve threads.
        assert!(reads < 100_000, "{program}: {reads}");
    }
}
