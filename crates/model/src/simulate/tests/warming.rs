//! Caches filled with last uses.
use super::{faults, level, machine, read, Script};
use crate::simulate::functional_warming::LineRun;
use crate::simulate::simulated_machine::{CoherenceProtocol, SimulatedMachine};
use crate::simulate::{Simulation, WindowSetup};

const SETUP: WindowSetup = WindowSetup {
    units: &[0, 1, 2, 3],
    home: &|_| None,
    next_touch: false,
    page_move: 0.0,
    group: None,
};

/// By level and cache the lines and flags, the latest used of each set first.
fn held(simulation: &Simulation) -> Vec<Vec<u32>> {
    let hierarchy = &simulation.hierarchy;
    assert_eq!(faults(hierarchy), [""; 0]);
    let caches = hierarchy.caches.iter();
    let held =
        caches.flat_map(|level| (0..level.number()).map(|cache| level.entries(cache).collect()));
    held.collect()
}

/// Runs of four threads, each on pages of its own, in an order in which each comes back to sets sooner or later.
fn runs() -> Vec<LineRun> {
    let run = |n: u64| LineRun {
        thread: (n % 4) as u32,
        address: (1 + n * 7 % 64) * 4096,
        lines: 1 + (n * 5 % 16) as u32,
        written: (n % 3) as u32,
    };
    (0..64).map(run).collect()
}

/// What all levels would have been left with by the same accesses, one after the other.
fn played_through(machine: &SimulatedMachine, runs: &[LineRun]) -> Vec<Vec<u32>> {
    let mut simulation = Simulation::new(machine, false).unwrap();
    for run in runs {
        for nth in 0..run.lines {
            let hierarchy = &mut simulation.hierarchy;
            let node = machine.units[run.thread as usize].node;
            let address = run.address + u64::from(nth) * 64;
            let line = hierarchy.pages.line_of_address(address, node, &|_| None);
            let write = nth < run.written;
            hierarchy.access(run.thread as usize, line.unwrap(), write, 0.0);
        }
    }
    held(&simulation)
}

#[test]
fn what_goes_into_the_last_level_alone_leaves_what_all_levels_would() {
    for inclusive in [false, true] {
        let levels = [
            level(4, 2, 1, 4, false),
            level(16, 4, 1, 12, false),
            level(256, 8, 2, 40, inclusive),
        ];
        let machine = machine(&levels, 2, 2, CoherenceProtocol::Mesi);
        let mut simulation = Simulation::new(&machine, true).unwrap();
        let runs = runs();
        simulation.warm_caches(runs.iter(), &SETUP).unwrap();
        assert_eq!(
            held(&simulation),
            played_through(&machine, &runs),
            "{inclusive}"
        );
        // Most of it did so: a thread has four times 16 lines of a second level, of about 136.
        let lines: u32 = runs.iter().map(|run| run.lines).sum();
        assert!(lines > 2 * 4 * 4 * 16, "{lines}");
    }
}

/// What a window before counted is its own.
#[test]
fn caches_are_warmed_between_windows() {
    let levels = [level(4, 2, 1, 4, false), level(64, 8, 2, 40, true)];
    let machine = machine(&levels, 2, 2, CoherenceProtocol::Mesi);
    let mut simulation = Simulation::new(&machine, true).unwrap();
    let window = || Script::of(vec![vec![read(0x10_0000), read(0x10_0040)]]);
    for _ in 0..2 {
        simulation.warm_caches(runs().iter(), &SETUP).unwrap();
        let played = simulation.play_window(&mut window(), &SETUP, true).unwrap();
        assert_eq!(played.counts.accesses, 2);
        let reads = played
            .counts
            .nodes
            .iter()
            .map(|n| n.local_reads + n.remote_reads);
        assert_eq!(reads.sum::<u64>(), 2);
    }
}

/// Where cores share no level, all are filled.
#[test]
fn private_levels_are_filled() {
    let machine = machine(
        &[level(4, 2, 1, 4, false), level(16, 4, 1, 12, true)],
        4,
        1,
        CoherenceProtocol::Moesi,
    );
    let mut simulation = Simulation::new(&machine, true).unwrap();
    simulation.warm_caches(runs().iter(), &SETUP).unwrap();
    assert_eq!(held(&simulation), played_through(&machine, &runs()));
}
