//! OpenMP programs. libgomp's own barriers and teams add a little to every cell, most
//! between thread 0 and the others.
use hither_profile::{CommMatrix, ObjectKind, Profile};

use crate::run::{run, OPENMP_THREADS};
use crate::threads::CREATION;
use crate::view::*;

const N: usize = OPENMP_THREADS;

/// Events per pair of threads and barrier or parallel region that libgomp may cause: a few
/// accesses each to a few lines of its team, by each of the two.
const BARRIER: u64 = 100;

fn owner(item: u64, items: u64) -> usize {
    // The i-th thread starts at i * items / N.
    (0..N)
        .rev()
        .find(|i| *i as u64 * items / N as u64 <= item)
        .expect("thread 0 starts at 0")
}

/// Neighbours within `low` and `high`; the others at most what libgomp causes.
fn check_chain(m: &CommMatrix, low: u64, high: u64, barriers: u64) {
    let runtime = BARRIER * barriers + CREATION;
    check_matrix(m, |i, j| {
        if j == i + 1 {
            (low, high + runtime)
        } else {
            (0, runtime)
        }
    });
}

fn check_heap(profile: &Profile, name: &str, type_name: &str, size: u64, at: (&str, &str)) {
    let found = named(profile, name);
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    let (_, object) = found[0];
    assert_eq!(object.type_name, type_name, "{name}");
    assert_eq!(
        (object.kind, object.size),
        (ObjectKind::Heap, size),
        "{name}"
    );
    assert!(object.file.ends_with(at.0), "{name} is in {}", object.file);
    assert_eq!(object.line, line_of(at.0, at.1), "{name}");
}

#[test]
fn stencil2d() {
    let (size, steps) = (128, 200);
    let p = run(&format!("stencil2d {size} {steps}")).profile();
    let inner = (size - 2) * (size - 2);
    let mut sum = (0, 0);
    for name in ["now", "then"] {
        check_heap(
            &p,
            name,
            "double",
            size * size * 8,
            ("stencil2d.c", "double *now = grid"),
        );
        let grid = total(&p, name);
        sum = (sum.0 + grid.0, sum.1 + grid.1);
        // 4 KiB hold 4 rows of 128; each thread's 32 rows fill whole pages.
        check_first_touch(&p, name, |page| owner(page * 4, size), size / 4);
        for (page, users) in pages(&p, name) {
            let block = page % 8;
            let mut expected = vec![owner(page * 4, size)];
            match block {
                0 if page > 0 => expected.push(expected[0] - 1),
                7 if page < 31 => expected.push(expected[0] + 1),
                _ => (),
            }
            // Thread 0 adds everything up in the end.
            expected.push(0);
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(
                users.keys().copied().collect::<Vec<_>>(),
                expected,
                "{name}, page {page}"
            );
        }
    }
    // Everything is written at the start and read at the end.
    assert_eq!(
        sum,
        (
            4 * steps * inner + 2 * size * size,
            steps * inner + 2 * size * size
        )
    );
    // A row has 16 lines of 8 cells. Each step the neighbour reads every inner cell of the
    // row once; the slices cost a step each.
    let steps_seen = steps.saturating_sub(p.slices.len() as u64);
    check_chain(
        &p.matrix(),
        2 * steps_seen * (size - 2),
        5 * steps * 2 * (size - 2),
        steps,
    );
    let parallel: u64 = p.slices.iter().map(|s| s.sync[2]).sum();
    let barriers: u64 = p.slices.iter().map(|s| s.sync[1]).sum();
    assert_eq!(parallel, 1, "parallel regions");
    assert_eq!(barriers, N as u64 * (steps + 1), "barriers");
}

#[test]
fn ondes_by_the_master_and_by_owners() {
    let (size, steps) = (32, 20);
    for (option, by_owner) in [("", false), ("-p ", true)] {
        let p = run(&format!("ondes {option}{size} {steps}")).profile();
        let inner = (size - 2) * (size - 2) * (size - 2);
        let cube = size * size * size;
        let mut sum = (0, 0);
        for name in ["past", "present", "future", "speed"] {
            check_heap(
                &p,
                name,
                "double",
                cube * 8,
                ("ondes.c", "past = cube(n), present"),
            );
            let of = total(&p, name);
            sum = (sum.0 + of.0, sum.1 + of.1);
            // A plane of 32 x 32 has two pages.
            let first = |page: u64| if by_owner { owner(page / 2, size) } else { 0 };
            check_first_touch(&p, name, first, cube / 512);
        }
        // The sum reads `present` once; one cell is set twice.
        assert_eq!(
            sum,
            (9 * steps * inner + cube, steps * inner + 4 * cube + 1)
        );
        let regions: u64 = p.slices.iter().map(|s| s.sync[2]).sum();
        // libgomp is also called for the region that one thread runs alone.
        assert_eq!(regions, steps + 1);
        // Each step a thread reads each inner cell of the neighbour's border plane once.
        let plane = (size - 2) * (size - 2);
        let steps_seen = steps.saturating_sub(p.slices.len() as u64);
        check_chain(
            &p.matrix(),
            steps_seen * 2 * plane,
            steps * 2 * 10 * plane,
            20 * steps,
        );
        let m = p.matrix();
        assert!(
            m.get(0, 1) > 5 * m.get(0, 2) && m.get(1, 2) > 5 * m.get(1, 3),
            "{}",
            show(&m)
        );
    }
}

#[test]
fn bucket_sort_and_its_schedules() {
    let (log2, rounds) = (16, 5);
    let keys = 1u64 << log2;
    for how in ["static", "cyclic", "dynamic"] {
        let p = run(&format!("is {how} {log2} {rounds}")).profile();
        check_heap(
            &p,
            "key_buff1",
            "int",
            512 * 4096,
            ("is.c", "key_buff1 = aligned_alloc"),
        );
        check_heap(
            &p,
            "key_array",
            "int",
            keys * 4,
            ("is.c", "key_array = malloc"),
        );
        check_heap(
            &p,
            "key_buff2",
            "int",
            keys * 4,
            ("is.c", "key_buff2 = malloc"),
        );
        let (mut counted, mut several) = (0, 0);
        for (page, mut users) in pages(&p, "key_buff1") {
            // Thread 0 verifies with one read.
            let zero = users.get_mut(&0).expect("thread 0 reads every page");
            zero.0 -= 1;
            users.retain(|_, counts| *counts != (0, 0));
            let sum = users.values().fold((0, 0), |s, c| (s.0 + c.0, s.1 + c.1));
            let (adds_by_read, adds_by_write) = (sum.0 - 1024 * rounds, sum.1 - 2048 * rounds);
            assert_eq!(adds_by_read, adds_by_write, "{how}, page {page}: {users:?}");
            counted += adds_by_read;
            several += u64::from(users.len() > 1);
            let who: Vec<_> = users.keys().copied().collect();
            match how {
                "static" => assert_eq!(who, [owner(page, 512)], "page {page}"),
                "cyclic" => assert_eq!(who, [page as usize % N], "page {page}"),
                _ => (),
            }
        }
        assert_eq!(counted, rounds * keys, "{how}");
        assert!(
            how != "dynamic" || several > 256,
            "only {several} pages changed their thread"
        );
        let m = p.matrix();
        // All to all; how much each pair shares depends on which threads ran at once.
        check_matrix(&m, |_, _| (m.total() / 200, m.total()));
        check_key_array(&p, keys, rounds);
    }
}

/// Read twice a round, and first touched, by the owner of its part.
fn check_key_array(p: &Profile, keys: u64, rounds: u64) {
    let all = total(p, "key_array");
    // malloc's own few accesses to the size in front of the block, and its neighbours.
    assert!(
        all.0 - 2 * rounds * keys < 100 && all.1 - keys < 100,
        "{all:?}"
    );
    for (page, thread) in first_touch(p, "key_array") {
        // The block starts behind malloc's 16 bytes, so a page may begin with another's end.
        let part = owner(page * 1024, keys);
        let before = owner((page * 1024).saturating_sub(4), keys);
        assert!(
            thread == part || thread == before,
            "page {page} by {thread}, not {part}"
        );
    }
}

#[test]
fn fortran_names_and_owners() {
    let steps = 100;
    let p = run(&format!("common {steps}")).profile();
    let array = "real(8) (256,256)";
    for (name, type_name, at) in [
        (
            "fields::density",
            array,
            "double precision :: density(n, n)",
        ),
        ("state::pressure", array, "common /state/"),
        ("state::velocity", array, "common /state/"),
        (
            "energy",
            "real(8), allocatable (:,:)",
            "allocate (energy(n, n))",
        ),
    ] {
        let (_, object) = named(&p, name)[0];
        assert_eq!(
            (object.type_name.as_str(), object.size),
            (type_name, 256 * 256 * 8),
            "{name}"
        );
        assert!(
            object.file.ends_with("common.f90"),
            "{name}: {}",
            object.file
        );
        let near = i64::from(object.line) - i64::from(line_of("common.f90", at));
        assert!(
            (-1..=1).contains(&near),
            "{name} is at line {}",
            object.line
        );
    }
    // Column c, of half a page, belongs to one thread; the arrays start within a page.
    let border = |page: u64| matches!(page % 32, 0 | 31);
    for (name, by_owner) in [
        ("fields::density", false),
        ("state::pressure", false),
        ("state::velocity", true),
        ("energy", true),
    ] {
        for (page, thread) in first_touch(&p, name)
            .into_iter()
            .filter(|(page, _)| !border(*page))
        {
            let expected = if by_owner { owner(page, 128) } else { 0 };
            assert_eq!(thread, expected, "{name}: first touch of page {page}");
        }
    }
    // Within a thread's columns, 512 elements to a page; thread 0 checks them in the end.
    for (page, users) in pages(&p, "energy")
        .into_iter()
        .filter(|(page, _)| !border(*page))
    {
        let mut expected = Users::from([(owner(page, 128), (512 * steps, 512 * (steps + 1)))]);
        expected.entry(0).or_default().0 += 512;
        assert_eq!(users, expected, "energy, page {page}");
    }
    // Only libgomp and, of pressure, density and velocity, the 8 elements of a border's line.
    let most = steps * (BARRIER + 3 * 2 * 8) + CREATION;
    // In the end thread 0 reads what the others wrote of `energy` and `velocity`.
    let checked = 2 * 256 * 256 / N as u64;
    check_matrix(&p.matrix(), |i, _| {
        (0, if i == 0 { most + checked } else { most })
    });
}

#[test]
fn cpp_structures() {
    // Long enough for samples of `mesh`, which shares its page with others.
    let (items, steps) = (8192, 400);
    let p = run(&format!("cpp_structs {items} {steps}")).profile();
    check_heap(
        &p,
        "particles",
        "vector<Particle>",
        items * 64,
        ("cpp_structs.cpp", "particles(static_cast"),
    );
    check_heap(
        &p,
        "cells",
        "double",
        items * 8,
        ("cpp_structs.cpp", "cells(new double"),
    );
    named(&p, "histogram[me]");
    named(&p, "main::mesh");
    for (page, thread) in first_touch(&p, "particles") {
        assert_eq!(thread, 0, "page {page}");
    }
    let all = total(&p, "particles");
    // Per step 6 reads and 3 writes of each, and what the constructor writes: 8 each.
    assert_within(all.0, 6 * items * steps, 0.001, "reads of particles");
    assert_within(
        all.1,
        3 * items * steps + 8 * items,
        0.001,
        "writes of particles",
    );
    for (page, thread) in first_touch(&p, "cells")
        .into_iter()
        .filter(|(page, _)| page % 4 != 0)
    {
        assert_eq!(thread, owner(page, 16), "cells, page {page}");
    }
    // One line of cells per border and step, read by the neighbour and used by its owner.
    let most = steps * (BARRIER + 8 * 4 * 2) + CREATION;
    check_matrix(&p.matrix(), |_, _| (0, most));
}
