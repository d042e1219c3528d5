//! Sharing between processes counts like sharing between threads.
use hither_profile::{ObjectKind, Profile};

use crate::run::{built, run};
use crate::threads::{about, CREATION};
use crate::view::*;

const N: usize = 4;
const ROUNDS: u64 = 3000;
const WORDS: u64 = 512;

fn check_shared_ring(how: &str) -> Profile {
    let p = run(&format!("shm {how} {N} {ROUNDS} {WORDS}")).profile();
    let processes = if how == "threads" { 1 } else { N };
    assert_eq!(p.meta.processes.len(), processes, "{how}");
    assert_eq!(p.threads.len(), N);
    let shared: Vec<_> = p
        .objects
        .iter()
        .filter(|o| o.kind == ObjectKind::Shared && o.reads > 0)
        .collect();
    assert_eq!(shared.len(), 1, "{how}: {shared:?}");
    let name = &shared[0].name;
    let all = ROUNDS * WORDS;
    let users = |page: u64| {
        vec![
            (page as usize, (0, all)),
            ((page as usize + 1) % N, (all, 0)),
        ]
    };
    check_pages(&p, name, users, N as u64);
    check_first_touch(&p, name, |page| page as usize, N as u64);
    check_matrix(&p.matrix(), |i, j| match j - i {
        1 | 3 => about(&p, 2 * all, 2 * WORDS),
        _ => (0, CREATION),
    });
    p
}

#[test]
fn processes_communicate_like_threads() {
    let threads = check_shared_ring("threads").matrix();
    for how in ["fork", "posix"] {
        let other = check_shared_ring(how).matrix();
        check_matrix(&other, |i, j| {
            let cell = threads.get(i, j);
            (
                (cell * 95 / 100).saturating_sub(CREATION),
                cell * 105 / 100 + CREATION,
            )
        });
    }
}

#[test]
fn ring_of_mpi_ranks() {
    if !built("mpi_ring") {
        return println!("no mpicc here, so workloads/Makefile left mpi_ring out");
    }
    let rounds = 1000;
    // Messages that the kernel copies leave no accesses.
    let mpirun = "mpirun --allow-run-as-root --oversubscribe --mca btl_vader_single_copy_mechanism none -np 4";
    let p = run(&format!("mpi_ring {rounds} 512"))
        .under(mpirun)
        .profile();
    let of_rank = |p: &Profile| -> Vec<usize> {
        let ranks = (0..p.meta.processes.len())
            .filter(|i| p.meta.processes[*i].executable.ends_with("mpi_ring"));
        ranks
            .map(|process| {
                p.threads
                    .iter()
                    .position(|t| t.process.at() == process)
                    .expect("a thread")
            })
            .collect()
    };
    let firsts = of_rank(&p);
    assert_eq!(firsts.len(), 4, "{:?}", p.meta.processes);
    let m = p.matrix();
    // The processes' order is that of their start, not of their ranks: whatever it is,
    // each has two neighbours and one rank opposite.
    for &i in &firsts {
        let mut cells: Vec<_> = firsts
            .iter()
            .filter(|j| **j != i)
            .map(|j| m.get(i, *j))
            .collect();
        cells.sort_unstable();
        // MPI_Barrier talks to the opposite rank too, and polling adds what time it takes.
        assert!(
            cells[1] > cells[0] && cells[1] + cells[2] > 4 * cells[0],
            "{cells:?} of thread {i}\n{}",
            show(&m)
        );
    }
    let barriers: u64 = p.slices.iter().map(|s| s.sync[3]).sum();
    assert_eq!(barriers, 4 * rounds / 100);
    for name in ["in", "out"] {
        for (page, users) in pages(&p, name) {
            assert_eq!(users.len(), 1, "{name}, page {page}: {users:?}");
        }
    }
}
