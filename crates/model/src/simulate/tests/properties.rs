//! What holds for any accesses on any machine.
use super::{access, faults, level, machine, play, read, write, Script};
use crate::simulate::counts::SimulationCounts;
use crate::simulate::functional_warming::LineRun;
use crate::simulate::hierarchy::CacheHierarchy;
use crate::simulate::simulated_machine::{
    CoherenceProtocol, PrefetcherKind, ReplacementPolicy, SimulatedMachine,
};
use crate::simulate::{Simulation, WindowSetup};
use hither_profile::bursts::BurstAccess;
use proptest::prelude::*;

const CORES: usize = 8;

/// Machines of two packages of four cores: one, two or three levels, shared in several ways.
fn machines() -> impl Strategy<Value = SimulatedMachine> {
    let shape = prop_oneof![
        Just(vec![(8, 2, 1)]),
        Just(vec![(12, 3, 4)]),
        Just(vec![(4, 2, 1), (12, 3, 2)]),
        Just(vec![(4, 2, 1), (8, 4, 1)]),
        Just(vec![(4, 2, 1), (8, 2, 1), (24, 4, 4)]),
        Just(vec![(4, 2, 1), (8, 2, 2), (24, 4, 4)]),
        Just(vec![(2, 1, 1), (4, 1, 2), (8, 1, 4)]),
    ];
    (shape, any::<[bool; 5]>()).prop_map(|(shape, [moesi, tree, second, last, ahead])| {
        let inclusive = [false, second, last];
        let latency = [4, 12, 40];
        let levels: Vec<_> = shape
            .iter()
            .enumerate()
            .map(|(n, &(lines, ways, cores))| {
                let mut one = level(lines, ways, cores, latency[n], inclusive[n]);
                if tree {
                    one.0.replacement = ReplacementPolicy::PseudoLru;
                }
                if ahead {
                    one.0.prefetch = Some(PrefetcherKind::Stream {
                        streams: 2,
                        degree: 2,
                        distance: 4,
                    });
                }
                one
            })
            .collect();
        let protocol = if moesi {
            CoherenceProtocol::Moesi
        } else {
            CoherenceProtocol::Mesi
        };
        machine(&levels, 4, 2, protocol)
    })
}

/// Accesses by some core to some of 48 lines of three pages; some touch two lines.
fn accesses() -> impl Strategy<Value = Vec<(usize, BurstAccess)>> {
    let one = (0..CORES, 0..48u64, any::<bool>(), 0..20u64);
    let one = one.prop_map(|(core, line, writes, within)| {
        let address = 0x40000 + line / 16 * 4096 + line % 16 * 64 + within * 3;
        let access = if writes {
            write(address)
        } else {
            read(address)
        };
        (core, access)
    });
    prop::collection::vec(one, 1..300)
}

/// By thread.
fn script(accesses: &[(usize, BurstAccess)]) -> Script {
    let mut threads = vec![Vec::new(); CORES];
    for (core, access) in accesses {
        threads[*core].push(*access);
    }
    Script::of(threads)
}

fn misses(counts: &SimulationCounts, level: usize) -> u64 {
    counts.levels[level].misses.iter().sum()
}

const UNITS: [u32; CORES] = [0, 1, 2, 3, 4, 5, 6, 7];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// `faults` compares the directory with the caches: one owner, nothing beside a writable copy,
    /// inclusion, numbers of copies.
    #[test]
    fn one_owner_per_line((machine, accesses) in (machines(), accesses())) {
        let mut h = CacheHierarchy::new(&machine, false);
        for (core, one) in &accesses {
            let l1 = machine.units[*core].caches[0] as usize;
            access(&mut h, l1, one.address, one.write);
            prop_assert_eq!(faults(&h), Vec::<String>::new());
        }
    }

    /// The same where the last level alone gets what was used long ago.
    #[test]
    fn one_owner_per_line_of_warmed_caches((machine, accesses) in (machines(), accesses())) {
        let run = |(core, access): &(usize, BurstAccess)| LineRun {
            thread: *core as u32,
            address: access.address / 64 * 64,
            lines: 1,
            written: u32::from(access.write),
        };
        let runs: Vec<LineRun> = accesses.iter().map(run).collect();
        let setup = WindowSetup {
            units: &UNITS,
            home: &|_| None,
            next_touch: false,
            page_move: 0.0,
            group: None,
        };
        let mut simulation = Simulation::new(&machine, true).expect("a sound machine");
        for part in runs.chunks(100) {
            prop_assert!(simulation.warm_caches(part.iter(), &setup).is_ok());
            prop_assert_eq!(faults(&simulation.hierarchy), Vec::<String>::new());
        }
    }

    #[test]
    fn counts_add_up((machine, accesses, timed) in (machines(), accesses(), any::<bool>())) {
        let outcome = play(&machine, &script(&accesses), &UNITS, timed);
        let counts = &outcome.counts;
        prop_assert_eq!(counts.accesses, accesses.len() as u64);
        prop_assert_eq!(counts.levels[0].accesses, counts.accesses);
        for level in 1..counts.levels.len() {
            prop_assert_eq!(counts.levels[level].accesses, misses(counts, level - 1));
        }
        let sum = |f: fn(&crate::simulate::counts::ActivityCounts) -> u64| -> u64 {
            outcome.threads.iter().map(f).sum()
        };
        let last = counts.levels.len() - 1;
        prop_assert_eq!(sum(|t| t.first_misses), misses(counts, 0));
        prop_assert_eq!(sum(|t| t.last_misses), misses(counts, last));
        let transfers = counts.transfers_inside + counts.transfers_between;
        prop_assert_eq!(sum(|t| t.transfers), transfers);
        let nodes = counts.nodes.iter();
        let reads: u64 = nodes.map(|n| n.local_reads + n.remote_reads).sum();
        prop_assert_eq!(sum(|t| t.local_reads + t.remote_reads), reads);
        prop_assert!(counts.cycles > 0.0 || !timed);
    }

    #[test]
    fn same_input_same_output((machine, accesses) in (machines(), accesses())) {
        let script = script(&accesses);
        for timed in [false, true] {
            let first = play(&machine, &script, &UNITS, timed);
            prop_assert_eq!(first, play(&machine, &script, &UNITS, timed));
        }
    }

    /// LRU with the same sets: what a cache holds, one with more ways holds too.
    #[test]
    fn more_ways_never_miss_more(accesses in accesses()) {
        let alone: Vec<BurstAccess> = accesses.iter().map(|a| a.1).collect();
        let mut before = u64::MAX;
        for ways in 1..=8 {
            let machine = machine(&[level(4 * u64::from(ways), ways, 1, 4, false)], 1, 1, CoherenceProtocol::Mesi);
            let outcome = play(&machine, &Script::of(vec![alone.clone()]), &[0], false);
            let now = misses(&outcome.counts, 0);
            prop_assert!(now <= before, "{} misses with {} ways", now, ways);
            before = now;
        }
    }

    /// One cache that all cores share and that holds everything misses each line once. No
    /// placement on any machine without prefetchers misses less in its last level, or reads less
    /// from memory.
    #[test]
    fn no_placement_beats_one_cache((mut machine, accesses, shift) in (machines(), accesses(), 0..8u32)) {
        for level in &mut machine.levels {
            level.prefetch = None;
        }
        let mut accesses = accesses;
        accesses.iter_mut().for_each(|(_, a)| a.address &= !63);
        let one = super::machine(&[level(64, 64, 8, 4, false)], 8, 1, CoherenceProtocol::Mesi);
        let least = play(&one, &script(&accesses), &UNITS, false).counts;
        let units = UNITS.map(|u| (u + shift) % 8);
        let counts = play(&machine, &script(&accesses), &units, false).counts;
        let last = machine.levels.len() - 1;
        prop_assert!(misses(&counts, last) >= misses(&least, 0));
        let nodes = counts.nodes.iter();
        let reads: u64 = nodes.map(|n| n.local_reads + n.remote_reads).sum();
        prop_assert!(reads >= misses(&least, 0));
    }
}

/// More private hierarchies than a set of them has bits.
#[test]
fn many_cores_keep_one_owner() {
    for (cores, packages, last) in [(8, 8, 4), (40, 2, 40), (24, 3, 1)] {
        let levels = [level(4, 2, 1, 4, false), level(16, 4, last, 20, true)];
        let machine = machine(&levels, cores, packages, CoherenceProtocol::Moesi);
        let mut h = CacheHierarchy::new(&machine, false);
        let all = (cores * packages) as usize;
        let mut n = 12345u64;
        for step in 0..6000 {
            n = n
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let (core, line) = ((n >> 33) as usize % all, n >> 50 & 7);
            access(&mut h, core, 0x40000 + line * 64, n >> 20 & 7 == 0);
            if step % 50 == 0 {
                assert_eq!(faults(&h), [""; 0], "step {step}");
            }
        }
        assert!(h.counts.invalidations > 0);
    }
}
