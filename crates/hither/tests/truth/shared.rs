//! Sharing between processes counts like sharing between threads.
use hither_profile::{Object, ObjectKind, Profile};

use crate::kinds::coherence;
use crate::run::{built, run};
use crate::threads::{about, CREATION};
use crate::view::*;

const N: usize = 4;
const ROUNDS: u64 = 3000;
const WORDS: u64 = 512;

/// Some ten slices of the program's own time. Each change of slice loses accesses, for a process
/// comes to the new one at its next miss, see `in_common`: slices of wall time would be the more
/// the busier the machine is, and what they lose together no longer little.
const SLICES: &str = "--slice-clock instructions --slice 1ms";

fn check_shared_ring(how: &str) -> Profile {
    let line = format!("shm {how} {N} {ROUNDS} {WORDS}");
    let p = run(&line).with(SLICES).profile();
    assert!(p.slices.len() >= 4, "{how}: {} slices", p.slices.len());
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
    check_name(how, shared[0]);
    let all = ROUNDS * WORDS;
    let users = |page: u64| {
        vec![
            (page as usize, (0, all)),
            ((page as usize + 1) % N, (all, 0)),
        ]
    };
    check_pages(&p, name, users, N as u64);
    check_first_touch(&p, name, |page| page as usize, N as u64);
    // Threads come to a new slice together.
    let seen = match how {
        "threads" => vec![all; N],
        _ => in_common(&p, name),
    };
    check_matrix(&p.matrix(), |i, j| match j - i {
        1 => (about(&p, 2 * seen[i], 2 * 2 * WORDS).0, 2 * all + CREATION),
        3 => (about(&p, 2 * seen[j], 2 * 2 * WORDS).0, 2 * all + CREATION),
        _ => (0, CREATION),
    });
    p
}

/// Of each page, how often its writer and its reader accessed it in the same slices. A process that
/// does not miss stays in the old slice until hither, which may wait for a processor, makes it miss:
/// what the other one does meanwhile in the new slice nobody shares.
fn in_common(p: &Profile, name: &str) -> Vec<u64> {
    assert_eq!(p.meta.page_slices, 1);
    let mut common = vec![0; N];
    for ((_, page), users) in pages_by_slice(p, name) {
        let page = page as usize;
        let accesses = |thread| users.get(&thread).map_or(0, |(r, w)| r + w);
        common[page] += accesses(page).min(accesses((page + 1) % N));
    }
    common
}

/// What is shared is called after its file, else after the variable that receives it, and has the line that
/// maps it, also where forked processes have it from their parent.
fn check_name(how: &str, object: &Object) {
    let receives = match how {
        "sysv" => "segment = shmat(",
        "posix" | "memfd" => "segment = map_segment(object)",
        _ => "segment = map_segment(-1)",
    };
    let lines = lines_of("shm.c", receives);
    assert!(lines.contains(&object.line), "{how}: {object:?}");
    assert!(object.file.ends_with("shm.c"), "{how}: {object:?}");
    match how {
        "posix" => {
            let number = object.name.strip_prefix("/dev/shm/shm-workload-");
            let number = number.and_then(|n| n.parse::<u32>().ok());
            assert!(number.is_some(), "{}", object.name);
        }
        "memfd" => assert_eq!(object.name, "memfd:shm-workload"),
        _ => assert_eq!((&*object.name, &*object.type_name), ("segment", "cell")),
    }
}

#[test]
fn processes_communicate_like_threads() {
    let threads = check_shared_ring("threads").matrix();
    for how in ["fork", "posix", "memfd", "sysv"] {
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

/// The first thread of each rank.
fn ranks(p: &Profile) -> Vec<usize> {
    let processes = p.meta.processes.iter().enumerate();
    let ranks = processes.filter(|(_, process)| process.executable.ends_with("mpi_ring"));
    let first = |rank: usize| p.threads.iter().position(|t| t.process.at() == rank);
    ranks
        .map(|(rank, _)| first(rank).expect("a thread"))
        .collect()
}

/// Events that can find a line changed. A message of Open MPI's enters a queue in two steps, and a receiver that finds
/// the first done reads that one line in a loop until the second is. Where the sender was preempted in between that
/// takes as long as it waits for a processor: 1.7 million reads in one slice were seen, of 0.3 million in a whole run.
/// They are communication by its definition, but not what a ring shares: all but the last find the line as it was.
#[test]
fn ring_of_mpi_ranks() {
    if !built("mpi_ring") {
        return println!("no mpicc here, so workloads/Makefile left mpi_ring out");
    }
    let rounds = 2000;
    // Messages that the kernel copies leave no accesses.
    let mpirun = "mpirun --allow-run-as-root --oversubscribe --mca btl_vader_single_copy_mechanism none -np 4";
    let p = run(&format!("mpi_ring {rounds} 512"))
        .under(mpirun)
        .profile();
    let firsts = ranks(&p);
    assert_eq!(firsts.len(), 4, "{:?}", p.meta.processes);
    let (m, all) = (coherence(&p), p.matrix());
    // The processes' order is that of their start, not of their ranks: whatever it is,
    // each has two neighbours and one rank opposite.
    for &i in &firsts {
        let mut others = firsts.iter().filter(|j| **j != i);
        let mut cells: Vec<_> = others.clone().map(|j| m.get(i, *j)).collect();
        cells.sort_unstable();
        // The opposite rank uses lines of MPI's barriers and free lists too, and an access counts
        // with all users of a line: up to a third of a neighbour's.
        assert!(
            cells[1] > 2 * cells[0],
            "{cells:?} of thread {i}\n{}\nall events\n{}",
            show(&m),
            show(&all)
        );
        assert!(others.all(|j| m.get(i, *j) <= all.get(i, *j)));
        // 4096 bytes are written and read, some of it 32 bytes at a time.
        let messages = rounds * 2 * 4096 / 32;
        assert!(
            cells[1] > messages / 4,
            "{cells:?} of thread {i}, for {messages}"
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
