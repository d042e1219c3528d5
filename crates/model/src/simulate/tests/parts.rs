//! The parts by themselves: replacement, pages, prefetchers, queues, memory, links, energy.
use super::{access, faults, level, machine, read, two_by_two, Script};
use crate::simulate::busy_intervals::BusyIntervals;
use crate::simulate::counts::{LevelCounts, NodeCounts, SimulationCounts};
use crate::simulate::dram::MemorySystem;
use crate::simulate::energy::{energy_breakdown, ComponentEnergy};
use crate::simulate::frame_table::FrameTable;
use crate::simulate::hierarchy::CacheHierarchy;
use crate::simulate::interconnect::Interconnect;
use crate::simulate::prefetcher::LevelPrefetchers;
use crate::simulate::simulated_machine::{
    CoherenceProtocol, DramParameters, PrefetcherKind, ReplacementPolicy, SimulatedMachine,
};
use crate::simulate::tag_array::{line_of, tag_entry, TagArray};
use crate::simulate::{Simulation, SimulationError, WindowSetup};

/// Uses lines of one set of four ways; the lines that were driven out.
fn victims(replacement: ReplacementPolicy, uses: &[u32]) -> Vec<u32> {
    let (mut level, _) = level(4, 4, 1, 4, false);
    (level.replacement, level.caches) = (replacement, 1);
    let mut caches = TagArray::new(&level, 64);
    let mut out = Vec::new();
    for &line in uses {
        let set = caches.set_of(0, line);
        if let Some(at) = caches.find_way(set, line) {
            caches.touch_way(set, at);
            continue;
        }
        match caches.insert(set, tag_entry(line, 0)) {
            0 => {}
            victim => out.push(line_of(victim)),
        }
    }
    out
}

#[test]
fn lru_drives_out_the_line_used_longest_ago() {
    assert_eq!(victims(ReplacementPolicy::Lru, &[1, 2, 3, 4, 5, 6]), [1, 2]);
    assert_eq!(
        victims(ReplacementPolicy::Lru, &[1, 2, 3, 4, 1, 5, 6]),
        [2, 3]
    );
}

#[test]
fn tree_pseudo_lru_follows_its_bits() {
    let tree = ReplacementPolicy::PseudoLru;
    // Ways 0 to 3 hold 1 to 4 and all bits point to way 0; after 5 the other half, way 2.
    assert_eq!(victims(tree, &[1, 2, 3, 4, 5, 6]), [1, 3]);
    // Using 1 again points to the other half, way 2, though 2 was used before 3.
    assert_eq!(victims(tree, &[1, 2, 3, 4, 1, 5]), [3]);
}

#[test]
fn the_latest_used_is_found_without_a_search_until_it_is_taken_out() {
    for replacement in [ReplacementPolicy::Lru, ReplacementPolicy::PseudoLru] {
        // Three sets of five ways: neither is a power of two.
        let (mut level, _) = level(15, 5, 1, 4, false);
        (level.replacement, level.caches) = (replacement, 2);
        let mut caches = TagArray::new(&level, 64);
        for cache in 0..2 {
            let set = caches.set_of(cache, 2);
            for line in [2, 5, 8, 11, 14] {
                assert!(!caches.is_plain_mru_hit(set, line, false));
                caches.insert(set, tag_entry(line, 0));
                assert!(caches.is_mru(set, line) && caches.is_plain_mru_hit(set, line, false));
            }
            let at = caches.find_way(set, 5).expect("it was inserted");
            let at = caches.touch_way(set, at);
            assert!(caches.is_mru(set, 5) && !caches.is_mru(set, 14));
            caches.remove(set, at);
            assert!(!caches.is_plain_mru_hit(set, 5, false), "{replacement:?}");
        }
    }
}

#[test]
fn what_was_taken_out_leaves_room() {
    let (mut level, _) = level(4, 4, 1, 4, false);
    (level.replacement, level.caches) = (ReplacementPolicy::PseudoLru, 1);
    let mut caches = TagArray::new(&level, 64);
    for line in 1..=5 {
        assert_eq!(caches.insert(0, tag_entry(line, 0)) != 0, line == 5);
    }
    for line in [3, 5] {
        let at = caches.find_way(0, line).expect("it was inserted");
        caches.remove(0, at);
    }
    let victims = [6, 7, 8].map(|line| caches.insert(0, tag_entry(line, 0)) != 0);
    assert_eq!(victims, [false, false, true]);
}

#[test]
fn any_number_of_sets() {
    for sets in [1u64, 2, 3, 5, 7, 12, 96, 1000, 12288] {
        let (mut level, _) = level(sets * 3, 3, 1, 4, false);
        level.caches = 2;
        let caches = TagArray::new(&level, 64);
        for line in (1..200).chain([12287, 12288, 12289, (1 << 29) - 1]) {
            let expected = sets + u64::from(line) % sets;
            assert_eq!(caches.set_of(1, line) as u64, expected, "{line} of {sets}");
        }
    }
}

#[test]
fn lines_fall_into_the_sets_of_their_addresses() {
    let levels = [
        level(64 * 8, 8, 1, 4, false),
        level(12288 * 2, 2, 1, 40, false),
    ];
    let mut pages = FrameTable::new(&machine(&levels, 1, 1, CoherenceProtocol::Mesi));
    for address in [
        0x7fff_1234_5678u64,
        0x1000,
        0x55d0_0000_1040,
        0x7fff_1234_6678,
    ] {
        let line = pages.line_of_address(address, 0, &|_| None).unwrap();
        assert!(line > 0);
        for sets in [64, 12288] {
            assert_eq!(u64::from(line) % sets, address / 64 % sets, "{address:x}");
        }
    }
}

#[test]
fn homes_are_asked_once_and_fall_to_the_toucher() {
    let machine = two_by_two(CoherenceProtocol::Mesi);
    let mut pages = FrameTable::new(&machine);
    let home = |address: u64| match address {
        0x1000 => Some(1),
        0x2000 => Some(9),
        _ => None,
    };
    // A node that there is not counts as none.
    for (address, toucher, node) in [
        (0x1008, 0, 1),
        (0x2040, 1, 1),
        (0x3000, 1, 1),
        (0x3fff, 0, 1),
    ] {
        let line = pages.line_of_address(address, toucher, &home).unwrap();
        assert_eq!(pages.home_of_line(line).0, node, "{address:x}");
    }
}

/// A page moves when the placement says so, and not because another thread goes on with it.
#[test]
fn pages_stay_where_they_are_unless_placed_elsewhere() {
    let machine = two_by_two(CoherenceProtocol::Mesi);
    let mut simulation = Simulation::new(&machine, false).unwrap();
    let reads_node_1 = |simulation: &mut Simulation, unit, home: Option<u32>, next_touch| {
        let setup = WindowSetup {
            units: &[unit],
            home: &|_| home,
            next_touch,
            page_move: 0.0,
            group: None,
        };
        // More lines than the caches hold.
        let reads = (0..8).map(|n| read(0x3000 + n * 64)).collect();
        let mut script = Script::of(vec![reads]);
        let outcome = simulation.play_window(&mut script, &setup, true).unwrap();
        let node = outcome.counts.nodes[1];
        node.local_reads + node.remote_reads > 0
    };
    for (unit, home, next_touch, expected) in [
        (2, None, false, true),
        (0, None, false, true),
        (0, Some(0), false, false),
        (2, None, false, false),
        (0, Some(1), false, true),
        // By next touch it goes where it is used.
        (0, None, true, false),
        (2, Some(0), true, true),
        (0, None, false, true),
    ] {
        let reads = reads_node_1(&mut simulation, unit, home, next_touch);
        assert_eq!(
            reads, expected,
            "unit {unit}, home {home:?}, by next touch: {next_touch}"
        );
    }
}

/// The thread that finds a page moved waits for as long as that takes, once.
#[test]
fn moving_pages_takes_time() {
    let machine = two_by_two(CoherenceProtocol::Mesi);
    // Two pages that unit 0 touched first, then by unit 2, which is on the other node.
    let pages = || Script::of(vec![(0..2).map(|n| read(0x3000 + n * 0x1000)).collect()]);
    let cycles = |home: Option<u32>, next_touch: bool, page_move: f64| {
        let mut simulation = Simulation::new(&machine, true).unwrap();
        let mut play = |unit: u32, next_touch, home: Option<u32>, page_move| {
            let setup = WindowSetup {
                units: &[unit],
                home: &|_| home,
                next_touch,
                page_move,
                group: None,
            };
            let outcome = simulation.play_window(&mut pages(), &setup, true);
            outcome.unwrap().counts.cycles
        };
        play(0, false, None, page_move);
        let moved = play(2, next_touch, home, page_move);
        (moved, play(2, next_touch, home, page_move))
    };
    for (home, next_touch) in [(Some(1), false), (None, true)] {
        let (free, again) = cycles(home, next_touch, 0.0);
        let (paid, paid_again) = cycles(home, next_touch, 10_000.0);
        assert!(
            (19_900.0..20_100.0).contains(&(paid - free)),
            "{paid} {free}"
        );
        assert!((paid_again - again).abs() < 1.0, "{paid_again} {again}");
    }
    // Where pages stay, nothing is paid.
    assert_eq!(cycles(None, false, 0.0), cycles(None, false, 10_000.0));
}

fn fetched(kind: PrefetcherKind, lines: &[u32]) -> Vec<Vec<u32>> {
    let mut prefetcher = LevelPrefetchers::new(&kind, 1, 64);
    let mut ahead = Vec::new();
    let see = |&line| {
        prefetcher.observe(0, line, &mut ahead);
        ahead.clone()
    };
    lines.iter().map(see).collect()
}

#[test]
fn a_stride_is_followed_once_seen_twice() {
    let stride = PrefetcherKind::Stride { degree: 2 };
    let none = Vec::<u32>::new();
    assert_eq!(
        fetched(stride, &[64, 67, 70, 73]),
        [none.clone(), none.clone(), vec![73, 76], vec![76, 79]]
    );
    // Downwards, and not beyond the page, which has lines 64 to 127.
    assert_eq!(
        fetched(stride, &[70, 68, 66]),
        [none.clone(), none.clone(), vec![64]]
    );
    // No steady distance, nothing ahead.
    assert_eq!(fetched(stride, &[64, 67, 69, 72]), vec![none; 4]);
}

#[test]
fn a_stream_runs_ahead_as_far_as_its_distance() {
    let stream = PrefetcherKind::Stream {
        streams: 2,
        degree: 2,
        distance: 3,
    };
    let none = Vec::<u32>::new();
    assert_eq!(
        fetched(stream, &[64, 65, 66, 67]),
        [none.clone(), vec![66, 67], vec![68, 69], vec![70]]
    );
    assert_eq!(
        fetched(stream, &[90, 89, 88]),
        [none.clone(), vec![88, 87], vec![86, 85]]
    );
    // Two streams at a time: a third page takes the place of the one used longest ago.
    assert_eq!(
        fetched(stream, &[64, 128, 192, 65, 66]),
        [none.clone(), none.clone(), none.clone(), none, vec![67, 68]]
    );
}

#[test]
fn a_prefetched_line_is_useful_once() {
    let mut levels = [level(64, 4, 1, 4, false), level(256, 8, 1, 20, false)];
    levels[1].0.prefetch = Some(PrefetcherKind::Stream {
        streams: 4,
        degree: 2,
        distance: 4,
    });
    let machine = machine(&levels, 1, 1, CoherenceProtocol::Mesi);
    let mut h = CacheHierarchy::new(&machine, false);
    for line in [0, 1, 2, 3, 2, 1] {
        access(&mut h, 0, 0x10000 + line * 64, false);
        assert_eq!(faults(&h), [""; 0]);
    }
    // At line 1: 2 and 3; at 2, which was there: 4 and 5; at 3: 6 and 7.
    let second = h.counts.levels[1];
    assert_eq!((second.prefetches, second.useful), (6, 2));
    assert_eq!(second.misses, [2, 0, 0, 0]);
    assert_eq!(h.counts.nodes[0].local_reads, 8);
}

/// A private hierarchy that evicted exclusive lines silently does not stop others from prefetching them.
#[test]
fn lines_that_their_owner_lost_are_fetched_ahead() {
    let mut levels = [level(16, 4, 1, 4, false), level(64, 8, 1, 20, false)];
    levels[1].0.prefetch = Some(PrefetcherKind::Stream {
        streams: 4,
        degree: 2,
        distance: 4,
    });
    let machine = machine(&levels, 2, 1, CoherenceProtocol::Mesi);
    for (others, expected) in [(0, 0), (256, 2)] {
        let mut h = CacheHierarchy::new(&machine, false);
        for line in [3, 2, 1, 0] {
            access(&mut h, 0, 0x10000 + line * 64, true);
        }
        for line in 0..others {
            access(&mut h, 0, 0x20000 + line * 192, false);
        }
        let before = h.counts.levels[1].prefetches;
        for line in [0, 1] {
            access(&mut h, 1, 0x10000 + line * 64, false);
        }
        let ahead = h.counts.levels[1].prefetches - before;
        assert_eq!(ahead, expected, "{others} lines after");
    }
}

#[test]
fn a_queue_serves_one_at_a_time_and_fills_gaps() {
    let mut queue = BusyIntervals::default();
    // Arrival, length, begin.
    for (at, length, begin) in [
        (100.0, 10.0, 100.0),
        (100.0, 10.0, 110.0),
        (105.0, 10.0, 120.0),
        (200.0, 10.0, 200.0),
        // Made later, but there before the last: it fits between.
        (140.0, 20.0, 140.0),
        // Does not fit before 200.
        (195.0, 10.0, 210.0),
        (50.0, 10.0, 50.0),
    ] {
        assert_eq!(queue.reserve(at, length), begin, "{at} {length}");
    }
}

#[test]
fn messages_wait_for_the_link_before_them() {
    let machine = two_by_two(CoherenceProtocol::Mesi);
    let mut links = Interconnect::new(&machine, true);
    let mut bytes = vec![0; 2];
    // 72 bytes at 8 a cycle take 9 cycles, and 50 to cross.
    let times = [(); 3].map(|()| links.send(0, 1, 72, 0.0, &mut bytes));
    assert_eq!(times, [59.0, 68.0, 77.0]);
    // The other direction is free; what stays on a node needs no link.
    assert_eq!(links.send(1, 0, 8, 0.0, &mut bytes), 51.0);
    assert_eq!(links.send(1, 1, 72, 5.0, &mut bytes), 5.0);
    assert_eq!(bytes, [216, 8]);
}

fn memory_of(dram: DramParameters) -> MemorySystem {
    let mut machine = two_by_two(CoherenceProtocol::Mesi);
    machine.nodes[0].dram = dram;
    MemorySystem::new(&machine, true)
}

#[test]
fn rows_open_hit_and_conflict() {
    // One channel of two banks, rows of 4 lines: lines 0-3 lie in bank 0, 4-7 in bank 1. Of the
    // next pair the bank is mixed with the row, so line 8 is in bank 1 and line 12 in bank 0.
    let mut memory = memory_of(DramParameters {
        channels: 1,
        banks: 2,
        row: 256,
        controller: 5.0,
        cas: 10.0,
        rcd: 20.0,
        rp: 40.0,
        burst: 4.0,
    });
    let mut counts = NodeCounts::default();
    for (line, at, done) in [
        // Nothing open: RCD + CL + burst + controller.
        (0, 0.0, 39.0),
        // Open: CL.
        (1, 100.0, 119.0),
        // Another row of the bank: RP + RCD + CL.
        (12, 200.0, 279.0),
        // The other bank, whose first row that is.
        (4, 300.0, 339.0),
        (5, 400.0, 419.0),
    ] {
        assert_eq!(
            memory.access_line(0, line, at, &mut counts),
            done,
            "line {line}"
        );
    }
    assert_eq!(counts.rows, 3);
}

#[test]
fn requests_wait_for_the_channel() {
    let mut memory = memory_of(DramParameters {
        channels: 2,
        banks: 4,
        row: 4096,
        controller: 0.0,
        cas: 10.0,
        rcd: 0.0,
        rp: 0.0,
        burst: 4.0,
    });
    let mut counts = NodeCounts::default();
    // Even lines share a channel and wait for its bursts; line 1 has the other.
    let times = [0, 2, 4, 1].map(|line| memory.access_line(0, line, 0.0, &mut counts));
    assert_eq!(times, [14.0, 18.0, 22.0, 14.0]);
}

#[test]
fn energy_is_power_times_time_and_events_times_their_cost() {
    let mut machine = two_by_two(CoherenceProtocol::Mesi);
    machine.core.frequency = 2.0;
    machine.energy.core_static = 3.0;
    machine.energy.instruction = 0.5;
    machine.energy.cache_static = vec![0.1, 0.2];
    machine.energy.cache_access = vec![0.25, 1.0];
    machine.energy.link_static = vec![1.0, 2.0];
    machine.energy.link_byte = vec![0.5, 0.25];
    machine.energy.controller_static = vec![4.0, 4.0];
    machine.energy.controller_request = vec![1.0, 2.0];
    machine.energy.dram_static = vec![1.0, 1.0];
    machine.energy.dram_line = vec![10.0, 20.0];
    machine.energy.dram_row = vec![5.0, 5.0];
    let level = |touches| LevelCounts {
        touches,
        ..LevelCounts::default()
    };
    let counts = SimulationCounts {
        instructions: 2_000_000_000,
        cycles: 4e9,
        levels: vec![level(4_000_000_000), level(1_000_000_000)],
        link_bytes: vec![2_000_000_000, 4_000_000_000],
        nodes: vec![
            NodeCounts {
                local_reads: 500_000_000,
                remote_writes: 500_000_000,
                rows: 200_000_000,
                ..NodeCounts::default()
            },
            NodeCounts::default(),
        ],
        ..SimulationCounts::default()
    };
    let split = energy_breakdown(&machine, &counts);
    let joules = |fixed, dynamic| ComponentEnergy { fixed, dynamic };
    let near = |got: ComponentEnergy, expected: ComponentEnergy| {
        let fixed = (got.fixed - expected.fixed).abs();
        assert!(
            fixed + (got.dynamic - expected.dynamic).abs() < 1e-9,
            "{got:?} {expected:?}"
        );
    };
    // Two seconds; four cores, four and two caches.
    near(split.cores, joules(24.0, 1.0));
    near(split.caches[0], joules(0.8, 1.0));
    near(split.caches[1], joules(0.8, 1.0));
    near(split.interconnect, joules(6.0, 2.0));
    near(split.controllers, joules(16.0, 1.0));
    near(split.dram, joules(4.0, 11.0));
    assert!((split.total() - 68.6).abs() < 1e-9);
}

#[test]
fn machines_that_cannot_be_are_refused() {
    let refused = |change: fn(&mut SimulatedMachine), why: &str| {
        let mut machine = two_by_two(CoherenceProtocol::Mesi);
        change(&mut machine);
        match Simulation::new(&machine, true) {
            Err(SimulationError::Machine(what)) => assert!(what.contains(why), "{what}"),
            Err(e) => panic!("{e}"),
            Ok(_) => panic!("{why}: not refused"),
        }
    };
    refused(|m| m.levels[1].ways = 0, "a cache must hold");
    refused(|m| m.levels[0].bytes = 64, "a cache must hold");
    refused(|m| m.levels.clear(), "0 levels");
    refused(|m| m.line = 48, "lines of 48 bytes");
    refused(|m| m.units[1].caches[1] = 7, "unit 1 needs a cache");
    refused(|m| m.units[1].caches[0] = 2, "below two caches");
    refused(|m| m.units[3].node = 2, "unit 3 is on a node");
    refused(|m| m.links.routes[1][0] = vec![9], "every endpoint");
    refused(|m| m.links.links[0].bandwidth = 0.0, "bandwidth");
    refused(|m| m.nodes[0].dram.row = 32, "memory needs");
    refused(|m| m.nodes[0].dram.banks = u32::MAX, "banks");
    refused(|m| m.core.misses = 0, "a core's width");
    refused(|m| m.core.width = f64::MIN_POSITIVE, "a core's width");
}
