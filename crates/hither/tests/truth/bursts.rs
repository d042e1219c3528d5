//! `--bursts` and `--full`: what is recorded against what is counted, and against the source.
use std::collections::{BTreeMap, BTreeSet};

use hither_profile::bursts::{BurstAccess, BurstPiece, BurstTrace};
use hither_profile::{ProcessIx, Profile, RunEnd, ThreadIx, PAGE_SIZE};

use crate::run::{built, run};
use crate::view::named;

/// All that a thread did in a window.
fn stream(bursts: &BurstTrace, window: usize, thread: u32) -> (Vec<BurstPiece>, Vec<BurstAccess>) {
    let mut decoder = bursts.decoder(window, ThreadIx(thread));
    let (mut pieces, mut all, mut some) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(piece) = decoder.next(&mut some) {
        assert_eq!(piece.accesses, some.len() as u64);
        pieces.push(piece);
        all.append(&mut some);
    }
    assert!(!decoder.damaged(), "thread {thread} of window {window}");
    (pieces, all)
}

/// Lines that an access touches: what a string instruction counts as.
fn lines(access: &BurstAccess) -> u64 {
    let last = access.address + u64::from(access.bytes) - 1;
    last / 64 - access.address / 64 + 1
}

/// Reads and writes as they are counted: between every access once, and those of ranges
/// once for each line of them.
fn counts(accesses: &[BurstAccess]) -> [(u64, u64); 2] {
    let count = |write: bool| {
        let mine = accesses.iter().filter(|a| a.write == write);
        let least = mine
            .clone()
            .map(|a| if a.bytes > 64 { lines(a) } else { 1 });
        (least.sum(), mine.map(lines).sum())
    };
    [count(false), count(true)]
}

/// Every thread's whole life is recorded: its instructions to the last one, its accesses,
/// and all of them on pages that have a name.
fn check_whole(line: &str, profile: &Profile, bursts: &BurstTrace) {
    assert_eq!(bursts.broken(), None);
    assert_eq!(bursts.windows().len(), 1, "{line}");
    for (thread, counted) in (0u32..).zip(&profile.threads) {
        let (pieces, accesses) = stream(bursts, 0, thread);
        let instructions: u64 = pieces.iter().map(|p| p.instructions).sum();
        assert_eq!(
            instructions, counted.instructions,
            "{line}, thread {thread}"
        );
        let apart: u64 = accesses.iter().map(|a| u64::from(a.after)).sum();
        assert!(apart <= instructions, "{line}, thread {thread}");
        let found = counts(&accesses);
        for ((least, most), counted) in found.into_iter().zip([counted.reads, counted.writes]) {
            assert!(
                (least..=most).contains(&counted),
                "{line}, thread {thread}: {least} to {most} recorded, {counted} counted"
            );
        }
        for a in &accesses {
            let place = bursts.page_name(0, counted.process, a.address / PAGE_SIZE);
            assert!(
                place.is_some(),
                "{line}, thread {thread}: {a:x?} has no name"
            );
        }
    }
    let bytes = profile.meta.bursts.as_ref().expect("bursts").bytes;
    // Code that runs once, as that of the loader, costs 150 KiB whatever follows.
    let free = 150 << 10;
    assert!(
        bytes.saturating_sub(free) <= 3 * bursts.accesses(),
        "{line}: {bytes} bytes for {} accesses",
        bursts.accesses()
    );
}

#[test]
fn a_whole_run_is_what_was_counted() {
    for line in [
        "ring 4 50 64",
        "stencil2d 32 10",
        "fork_at_work 2 1 1",
        "cpp_structs 128 3",
        "commands 2 512 50",
        "registers 100",
    ] {
        let (profile, bursts) = run(line).with("--full").recorded();
        check_whole(line, &profile, &bursts);
    }
}

/// The accesses of a thread to an object, with their bytes from its start.
fn to_object(
    profile: &Profile,
    bursts: &BurstTrace,
    name: &str,
    thread: u32,
) -> Vec<(u64, BurstAccess)> {
    let objects: Vec<_> = named(profile, name).iter().map(|(at, _)| *at).collect();
    let range = profile
        .object_ranges
        .iter()
        .find(|r| objects.contains(&r.object.at()));
    let range = range.expect("the object's range");
    let process = profile.threads[thread as usize].process;
    let (_, accesses) = stream(bursts, 0, thread);
    let offset = |a: &BurstAccess| {
        let (region, page) = bursts.page_name(0, process, a.address / PAGE_SIZE)?;
        let at = u64::from(page.0) * PAGE_SIZE + a.address % PAGE_SIZE;
        let inside = region == range.region && at.wrapping_sub(range.offset) < range.length;
        inside.then(|| at - range.offset)
    };
    accesses
        .iter()
        .filter_map(|a| Some((offset(a)?, *a)))
        .collect()
}

#[test]
fn a_list_is_a_chain_and_a_sweep_is_not() {
    let (nodes, rounds) = (512u64, 10);
    let (profile, bursts) = run(&format!("list {nodes} {rounds}"))
        .with("--full")
        .recorded();
    let node = to_object(&profile, &bursts, "node", 0);
    let reads: Vec<_> = node.iter().filter(|(_, a)| !a.write).collect();
    assert_eq!(reads.len() as u64, nodes * rounds);
    for (step, (at, access)) in (0u64..).zip(&reads) {
        assert_eq!(*at, step * 5 % nodes * 64, "step {step}");
        assert_eq!(access.bytes, 8);
        assert_eq!(access.depends, u32::from(step > 0), "step {step}");
    }
    let writes = node.len() - reads.len();
    assert_eq!(writes as u64, nodes);
    let sweep = to_object(&profile, &bursts, "sweep", 0);
    for (n, (at, access)) in (0u64..).zip(&sweep) {
        assert_eq!(
            (*at, access.write),
            (n % nodes * 8, n < nodes),
            "access {n}"
        );
        assert_eq!(access.depends, 0, "access {n}");
    }
    assert_eq!(sweep.len() as u64, nodes * (1 + rounds));
}

/// In each window every thread had about as much processor time, though there are more
/// threads than processors.
#[test]
fn windows_give_each_thread_its_share() {
    let line = run("ring 8 4000 512").with("--bursts 2ms/40ms");
    let (profile, bursts) = line.recorded();
    assert_eq!(bursts.broken(), None);
    assert!(bursts.windows().len() >= 3, "{}", bursts.windows().len());
    let mut whole = 0;
    for window in 1..bursts.windows().len() - 1 {
        let threads = bursts.threads(window);
        let made = |thread: &ThreadIx| stream(&bursts, window, thread.0).1.len();
        let least = threads.iter().map(made).min().unwrap_or(0);
        // What 2 ms of a processor are, as slow as it may be under load.
        whole += usize::from(threads.len() == 8 && least > 2000);
    }
    assert!(whole > 0, "no window holds all threads");
    // The first are open while the loader maps libraries.
    for window in 0..2 {
        for thread in bursts.threads(window) {
            let process = profile.threads[thread.at()].process;
            for a in stream(&bursts, window, thread.0).1 {
                let place = bursts.page_name(window, process, a.address / PAGE_SIZE);
                assert!(place.is_some(), "window {window}: {a:x?} has no name");
            }
        }
    }
    let recorded = profile.meta.bursts.as_ref().expect("bursts").accesses;
    let counted: u64 = profile.threads.iter().map(|t| t.reads + t.writes).sum();
    assert!(recorded < counted, "{recorded} of {counted}");
    assert_eq!(recorded, bursts.accesses());
}

/// A thread that waits goes on in a new piece, which says so.
#[test]
fn waits_end_pieces() {
    let (_, bursts) = run("pairs 2 1 40 512").with("--full").recorded();
    for thread in [0, 1] {
        let (pieces, _) = stream(&bursts, 0, thread);
        let waits = pieces.iter().filter(|p| p.waited).count();
        // A round is over as soon as it began unless a processor is free: not all wait.
        assert!(waits > 0, "thread {thread} of {} pieces", pieces.len());
        assert!(pieces.windows(2).all(|p| p[0].start <= p[1].start));
        assert!(pieces.iter().all(|p| p.start <= p.end));
    }
}

#[test]
fn memory_that_processes_share_has_one_name() {
    let (profile, bursts) = run("shm fork 4 50").with("--full").recorded();
    let firsts: Vec<_> = (0u32..)
        .zip(&profile.threads)
        .filter(|(_, t)| t.creator.is_none())
        .map(|(n, t)| (n, t.process))
        .collect();
    assert_eq!(firsts.len(), 4);
    // Who used which page of which region: the segment's pages are used by two each, 50 rounds
    // of 512 words. What lay at its addresses before, in the loader's time, bears its name too.
    let mut users: BTreeMap<_, BTreeMap<ProcessIx, u64>> = BTreeMap::new();
    for (thread, process) in firsts {
        for a in stream(&bursts, 0, thread).1 {
            let place = bursts
                .page_name(0, process, a.address / PAGE_SIZE)
                .expect("a name");
            *users.entry(place).or_default().entry(process).or_default() += 1;
        }
    }
    let shared = users
        .values()
        .filter(|u| u.values().filter(|n| **n >= 50 * 512).count() == 2);
    assert_eq!(shared.count(), 4, "{users:?}");
}

/// A child that shares the memory of its parent until it executes another program.
#[test]
fn commands_do_not_end_windows() {
    let line = run("commands 2 512 100000").with("--bursts 1ms/10ms");
    let (profile, bursts) = line.recorded();
    assert_eq!(bursts.broken(), None);
    let commands = profile.meta.processes.iter().skip(1);
    let over = commands.map(|p| p.end).max().expect("a command");
    let pieces = bursts.windows().iter().flat_map(|w| &w.pieces);
    let late: BTreeSet<_> = pieces
        .filter(|p| p.start > over && p.process == ProcessIx(0))
        .map(|p| p.thread.0)
        .collect();
    assert!(late.is_superset(&[0, 1].into()), "{late:?}");
}

/// Reads and writes of an object that were recorded of all threads.
fn of_object(line: &str, options: &str, name: &str) -> (u64, u64) {
    let (profile, bursts) = run(line).with("--full").with(options).recorded();
    let mut found = (0, 0);
    for thread in bursts.threads(0) {
        for (_, a) in to_object(&profile, &bursts, name, thread.0) {
            *(if a.write { &mut found.1 } else { &mut found.0 }) += 1;
        }
    }
    found
}

/// What `--until` leaves out is not recorded, and after it a thread goes on where it counts.
#[test]
fn parts_of_a_run_are_recorded() {
    let (size, steps) = (48u64, 20);
    let (written, read) = (size.pow(3), steps * (size - 2).pow(3));
    let line = format!("ondes -p {size} {steps}");
    let to = of_object(&line, "--until main._omp_fn.1", "speed");
    assert_eq!(to, (0, written));
    let from = of_object(&line, "--from main._omp_fn.1", "speed");
    assert_eq!(from, (read, 0));
    let parts = of_object("commands 1 512 50", "--from work --until command", "words");
    assert_eq!(parts, (3 * 50 * 512, 3 * 512));
}

/// Pieces are fetched while a slice lasts.
#[test]
fn long_slices_lose_nothing() {
    let line = run("commands 1 512 24000").with("--full --slice 60s");
    let (profile, bursts) = line.recorded();
    assert!(bursts.accesses() > 30_000_000, "{}", bursts.accesses());
    assert!(!bursts.windows()[0].cut, "{:?}", profile.meta.limits);
}

#[test]
fn ranks_are_recorded() {
    if !built("mpi_ring") {
        return println!("no mpicc here, so workloads/Makefile left mpi_ring out");
    }
    let mpirun = "mpirun --allow-run-as-root --oversubscribe -np 2";
    let (profile, bursts) = run("mpi_ring 100 64")
        .with("--bursts 5ms/50ms")
        .under(mpirun)
        .recorded();
    assert_eq!(bursts.broken(), None);
    let ranks = profile
        .meta
        .processes
        .iter()
        .filter(|p| p.executable.contains("mpi_ring"));
    assert_eq!(ranks.count(), 2, "{:?}", profile.meta.processes);
    let mut recorded: Vec<_> = (0..bursts.windows().len())
        .flat_map(|w| bursts.windows()[w].pieces.iter().map(|p| p.process))
        .filter(|p| {
            profile.meta.processes[p.at()]
                .executable
                .contains("mpi_ring")
        })
        .collect();
    recorded.sort_unstable();
    recorded.dedup();
    assert_eq!(recorded.len(), 2, "of both ranks");
}

#[test]
fn the_budget_is_kept() {
    let run = run("is split 14 8").with("--full --max-size 1M");
    let (profile, _, bytes) = run.measured();
    assert!(bytes <= 1 << 20, "{bytes} bytes");
    let said = profile.meta.limits.iter().any(|l| l.contains("--max-size"));
    let whole: u64 = profile.threads.iter().map(|t| t.reads + t.writes).sum();
    let recorded = profile.meta.bursts.as_ref().expect("bursts").accesses;
    assert_eq!(said, recorded < whole / 2, "{:?}", profile.meta.limits);
}

/// What was whole when the program was killed is kept.
#[test]
fn a_killed_program_leaves_its_bursts() {
    let line = run("crash kill 2 1").with("--full");
    let (profile, bursts) = line.recorded();
    assert_eq!(profile.meta.end, RunEnd::Signaled { signal: 9 });
    assert_eq!(bursts.broken(), None);
    assert!(bursts.accesses() > 10_000, "{}", bursts.accesses());
    for thread in bursts.threads(0) {
        let (pieces, _) = stream(&bursts, 0, thread.0);
        assert!(pieces.iter().all(|p| p.instructions > 0), "thread {thread}");
    }
}

#[test]
fn without_the_option_nothing_is_recorded() {
    let profile = run("pairs 2 1 5 8").profile();
    assert_eq!(profile.meta.bursts, None);
    assert_eq!(profile.meta.options.bursts, None);
}
