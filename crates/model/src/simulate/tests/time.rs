//! Time: what a core overlaps, what it waits for, and how threads take turns.
use super::{level, machine, play, read, write, Script};
use crate::simulate::counts::SimulationCounts;
use crate::simulate::functional_warming::LineRun;
use crate::simulate::simulated_machine::{CoherenceProtocol, PrefetcherKind, SimulatedMachine};
use crate::simulate::{Simulation, WindowSetup};
use hither_profile::bursts::{BurstAccess, BurstPiece};

/// One core, or some, with a first level only: a miss takes 4 + 80 + 1 cycles, a hit 4.
fn plain(cores: u32) -> SimulatedMachine {
    machine(
        &[level(64, 64, 1, 4, false)],
        cores,
        1,
        CoherenceProtocol::Mesi,
    )
}

fn run(
    machine: &SimulatedMachine,
    threads: Vec<Vec<BurstAccess>>,
    units: &[u32],
) -> SimulationCounts {
    play(machine, &Script::of(threads), units, true).counts
}

fn near(got: f64, expected: f64, slack: f64) {
    assert!(
        (got - expected).abs() <= slack,
        "{got}, expected {expected}"
    );
}

/// A miss each; pages apart lie in different banks and channels.
fn misses(n: u64, depends: u32) -> Vec<BurstAccess> {
    let miss = |k: u64| BurstAccess {
        depends,
        ..read(0x100000 + k * 64)
    };
    (0..n).map(miss).collect()
}

#[test]
fn a_list_walk_waits_for_each_miss() {
    near(
        run(&plain(1), vec![misses(100, 1)], &[0]).cycles,
        8500.0,
        10.0,
    );
}

#[test]
fn independent_misses_overlap_as_far_as_the_core_has_room() {
    // Ten under way at a time.
    near(
        run(&plain(1), vec![misses(100, 0)], &[0]).cycles,
        850.0,
        20.0,
    );
    // Five: twice as long.
    let mut few = plain(1);
    few.core.misses = 5;
    near(run(&few, vec![misses(100, 0)], &[0]).cycles, 1700.0, 20.0);
    // A window of four instructions, each a miss.
    let mut narrow = plain(1);
    narrow.core.window = 4;
    near(
        run(&narrow, vec![misses(100, 0)], &[0]).cycles,
        2125.0,
        30.0,
    );
}

#[test]
fn instructions_between_accesses_fill_the_window() {
    // 32 instructions to a miss: four of them in a window of 128.
    let mut accesses = misses(100, 0);
    accesses.iter_mut().for_each(|a| a.after = 32);
    near(run(&plain(1), vec![accesses], &[0]).cycles, 2125.0, 60.0);
}

#[test]
fn hits_cost_no_more_than_their_instructions() {
    let hits = vec![read(0x1000); 4001];
    // Four to a cycle, once the first miss is there.
    near(run(&plain(1), vec![hits], &[0]).cycles, 1000.0 + 85.0, 35.0);
}

#[test]
fn writes_leave_without_waiting() {
    let mut machine = plain(1);
    machine.core.misses = 1000;
    let writes = (0..400).map(|k| write(0x100000 + k * 64)).collect();
    near(run(&machine, vec![writes], &[0]).cycles, 100.0, 5.0);
}

#[test]
fn an_access_to_a_line_under_way_waits_for_it() {
    // The second read's line is that of the first, and the third depends on it.
    let mut accesses = vec![read(0x1000), read(0x1008), read(0x2000)];
    accesses[2].depends = 1;
    near(run(&plain(1), vec![accesses], &[0]).cycles, 170.0, 2.0);
}

/// A thread that finds it in a shared cache, or in that of its owner, waits no less.
#[test]
fn a_line_under_way_to_another_is_waited_for() {
    let shared = [level(64, 64, 1, 4, false), level(64, 64, 2, 20, true)];
    let apart = [level(64, 64, 1, 4, false)];
    for levels in [&shared[..], &apart] {
        let machine = machine(levels, 2, 1, CoherenceProtocol::Mesi);
        let script = Script::of(vec![vec![read(0x1000)], vec![read(0x1000)]]);
        let outcome = play(&machine, &script, &[0, 1], true);
        let memory = outcome.threads[0].read_time;
        assert!(memory >= 85.0, "{memory}");
        let waited = outcome.threads[1].read_time;
        assert!((memory..memory + 40.0).contains(&waited), "{waited}");
    }
}

#[test]
fn lines_of_a_long_access_are_misses_of_their_own() {
    let mut long = read(0x100000);
    long.bytes = 6400;
    near(run(&plain(1), vec![vec![long]], &[0]).cycles, 850.0, 20.0);
    // What follows finds none free.
    let then = vec![long, read(0x200000)];
    near(run(&plain(1), vec![then], &[0]).cycles, 935.0, 20.0);
}

#[test]
fn smt_siblings_share_a_core() {
    let hits = |at: u64| vec![read(at); 4001];
    let mut smt = plain(2);
    smt.units[1].core = 0;
    smt.units[1].caches[0] = 0;
    smt.levels[0].caches = 1;
    let apart = run(&plain(2), vec![hits(0x1000), hits(0x2000)], &[0, 1]);
    let together = run(&smt, vec![hits(0x1000), hits(0x2000)], &[0, 1]);
    near(apart.cycles, 1085.0, 35.0);
    near(together.cycles, 2085.0, 70.0);
    // A sibling that ends leaves all to the other.
    let short = vec![read(0x2000); 2001];
    let uneven = run(&smt, vec![hits(0x1000), short], &[0, 1]);
    near(uneven.cycles, 1585.0, 70.0);
    near(apart.busy, 2.0 * apart.cycles, 1.0);
    near(together.busy, together.cycles, 1.0);
}

#[test]
fn threads_of_one_unit_take_turns() {
    let hits = |at: u64| vec![read(at); 500_000];
    let both = play(
        &plain(1),
        &Script::of(vec![hits(0x1000), hits(0x2000)]),
        &[0, 0],
        true,
    );
    near(both.counts.cycles, 250_000.0, 400.0);
    assert_eq!(both.threads[0].accesses, 500_000);
    assert_eq!(both.threads[1].accesses, 500_000);
}

#[test]
fn a_thread_that_waited_comes_after_what_it_waited_for() {
    let piece = |start, end, waited| BurstPiece {
        start,
        end,
        waited,
        ..BurstPiece::default()
    };
    let hits = |at: u64| vec![read(at); 4001];
    // Thread 1 waited until 100, when thread 0's first piece was complete and its second not.
    let script = |waited| {
        Script::new(vec![
            vec![
                (piece(0, 100, false), hits(0x1000)),
                (piece(100, 200, false), hits(0x1000)),
            ],
            vec![(piece(100, 200, waited), hits(0x2000))],
        ])
    };
    let cycles = |waited| play(&plain(2), &script(waited), &[0, 1], true).counts;
    near(cycles(false).cycles, 2085.0, 40.0);
    near(cycles(true).cycles, 2085.0 + 85.0, 70.0);
    near(cycles(false).busy, 3170.0, 80.0);
    // Without timing the order is the same: thread 1's write finds thread 0's line in its cache.
    let mut ordered = script(true);
    ordered.pieces[0][0].1 = vec![write(0x3000); 50];
    ordered.pieces[1][0].1 = vec![write(0x3000)];
    let counts = play(&plain(2), &ordered, &[0, 1], false).counts;
    assert_eq!(counts.invalidations, 1);
    assert_eq!(counts.levels[0].misses, [3, 0, 0, 0]);
}

#[test]
fn threads_that_wait_for_each_other_still_end() {
    let piece = BurstPiece {
        start: 100,
        end: 50,
        waited: true,
        ..BurstPiece::default()
    };
    let one = vec![(piece, vec![read(0x1000)])];
    let script = Script::new(vec![one.clone(), one]);
    assert_eq!(play(&plain(2), &script, &[0, 1], true).counts.accesses, 2);
}

#[test]
fn remote_memory_takes_longer() {
    let machine = machine(&[level(64, 64, 1, 4, false)], 1, 2, CoherenceProtocol::Mesi);
    // Thread 0 touches all pages first, so they are on node 0; thread 1 waits for that.
    let piece = |start, end, waited| BurstPiece {
        start,
        end,
        waited,
        ..BurstPiece::default()
    };
    let pages = |n: u64| -> Vec<BurstAccess> {
        let access = |k: u64| BurstAccess {
            depends: 1,
            ..read(0x100000 + k * 64)
        };
        (0..n).map(access).collect()
    };
    let one = |unit| {
        let touch = (0..128).map(|k| read(0x200000 + k * 64)).collect();
        let script = Script::new(vec![
            vec![
                (piece(0, 10, false), pages(10)),
                // Drives them out of the cache.
                (piece(10, 20, false), touch),
            ],
            vec![(piece(20, 30, true), pages(10))],
        ]);
        play(&machine, &script, &[0, unit], true)
    };
    let (near_by, far) = (one(0), one(1));
    assert_eq!(near_by.threads[1].local_reads, 10);
    assert_eq!(far.threads[1].remote_reads, 10);
    // 8 bytes there, 72 back: 1 + 50 + 9 + 50 cycles more for each.
    let more = far.threads[1].read_time - near_by.threads[1].read_time;
    near(more, 1100.0, 1.0);
    assert_eq!(far.counts.link_bytes, [720, 80]);
}

#[test]
fn an_access_over_two_lines_is_one_access_and_at_most_one_miss() {
    let bytes = |address, bytes| BurstAccess {
        bytes,
        ..read(address)
    };
    // Both lines missed; then both there; then one of them missed; then four lines of one access,
    // two of them there.
    let accesses = vec![
        bytes(0x1030, 32),
        bytes(0x1030, 32),
        bytes(0x1070, 32),
        bytes(0x1040, 256),
    ];
    let counts = run(&plain(1), vec![accesses], &[0]);
    assert_eq!(counts.accesses, 4);
    assert_eq!(counts.levels[0].accesses, 3 + 4);
    assert_eq!(counts.levels[0].misses, [1 + 1 + 2, 0, 0, 0]);
    assert_eq!(counts.nodes[0].local_reads, 5);
}

#[test]
fn groups_have_their_misses() {
    let machine = plain(2);
    let mut simulation = crate::simulate::Simulation::new(&machine, true).unwrap();
    let setup = crate::simulate::WindowSetup {
        units: &[0, 1],
        home: &|_| None,
        next_touch: false,
        page_move: 0.0,
        group: Some(&|address| u32::from(address >= 0x9000)),
    };
    let play = |lines: std::ops::Range<u64>| lines.map(|k| read(0x8000 + k * 64)).collect();
    // 64 lines below 0x9000 and 16 above; core 1 reads 8 of those that core 0 has for itself.
    let mut script = Script::of(vec![play(0..80), Vec::new()]);
    let first = simulation.play_window(&mut script, &setup, true).unwrap();
    let mut script = Script::of(vec![Vec::new(), play(70..78)]);
    let second = simulation.play_window(&mut script, &setup, true).unwrap();
    let misses: Vec<u64> = first.groups.iter().map(|g| g.first_misses).collect();
    assert_eq!(misses, [64, 16]);
    assert_eq!(first.groups[0].local_reads, 64);
    assert_eq!(second.groups[1].transfers, 8);
    assert!(second.groups[1].read_time >= 8.0 * 4.0);
    // A part that only warms up counts nothing.
    let mut script = Script::of(vec![play(0..80), Vec::new()]);
    let none = simulation.play_window(&mut script, &setup, false).unwrap();
    assert_eq!(
        none.counts,
        crate::simulate::counts::SimulationCounts::default()
    );
    assert!(none.groups.is_empty() && none.threads.iter().all(|t| t.accesses == 0));
}

#[test]
fn a_cut_makes_nobody_wait() {
    let machine = plain(2);
    let setup = crate::simulate::WindowSetup {
        units: &[0, 1],
        home: &|_| None,
        next_touch: false,
        page_move: 0.0,
        group: None,
    };
    let cold = |thread: u64, n: u64| -> Vec<_> {
        let line = |k| BurstAccess {
            depends: 1,
            ..read((thread << 20) + k * 64)
        };
        (0..n).map(line).collect()
    };
    // Each has the slow part when the other has the quick one.
    let (slow, quick) = (cold(1, 64), cold(2, 8));
    let (quick_later, slow_later) = (cold(3, 8), cold(4, 64));
    let whole = vec![
        [slow.clone(), quick_later.clone()].concat(),
        [quick.clone(), slow_later.clone()].concat(),
    ];
    let whole = run(&machine, whole, &[0, 1]).cycles;
    let mut simulation = crate::simulate::Simulation::new(&machine, true).unwrap();
    let mut first = Script::of(vec![slow, quick]);
    let mut then = Script::of(vec![quick_later, slow_later]);
    let first = simulation.play_window(&mut first, &setup, true).unwrap();
    let then = simulation.play_part(&mut then, &setup, true).unwrap();
    let cut = first.counts.cycles + then.counts.cycles;
    assert!((cut / whole - 1.0).abs() < 0.05, "{cut} {whole}");
    // The next window is another time.
    let mut again = Script::of(vec![cold(5, 8), cold(6, 64)]);
    let again = simulation.play_window(&mut again, &setup, true).unwrap();
    assert!(again.counts.cycles > 0.8 * first.counts.cycles);
}

#[test]
fn a_thread_without_a_unit_is_named() {
    let script = Script::of(vec![vec![read(0)], vec![read(0)]]);
    let machine = plain(2);
    for units in [&[0][..], &[0, 2]] {
        let setup = crate::simulate::WindowSetup {
            units,
            home: &|_| None,
            next_touch: false,
            page_move: 0.0,
            group: None,
        };
        let mut simulation = crate::simulate::Simulation::new(&machine, true).unwrap();
        let outcome = simulation.play_window(&mut script.clone(), &setup, true);
        assert_eq!(
            outcome.unwrap_err(),
            crate::simulate::SimulationError::Unit(1)
        );
    }
}

/// What was used before is there, without its next lines being prefetched, and nothing is left for the window to wait
/// for.
#[test]
fn caches_are_warmed_without_time_or_prefetches() {
    let mut machine = plain(1);
    machine.levels[0].prefetch = Some(PrefetcherKind::Stream {
        streams: 4,
        degree: 1,
        distance: 4,
    });
    let setup = WindowSetup {
        units: &[0],
        home: &|_| None,
        next_touch: false,
        page_move: 0.0,
        group: None,
    };
    let mut simulation = Simulation::new(&machine, true).unwrap();
    let used = || Script::of(vec![misses(32, 1)]);
    let of = |access: &BurstAccess| LineRun {
        address: access.address,
        lines: 1,
        ..LineRun::default()
    };
    let runs: Vec<LineRun> = misses(32, 1).iter().map(of).collect();
    simulation.warm_caches(runs.iter(), &setup).unwrap();
    let again = simulation.play_window(&mut used(), &setup, true).unwrap();
    assert_eq!(again.counts.levels[0].misses, [0; 4]);
    // The latency of the first level for each, one after the other.
    near(again.counts.cycles, 128.0, 10.0);
    // No line behind the last one was brought in; time and prefetchers go on as on a new machine.
    let next = || Script::of(vec![misses(48, 1).split_off(32)]);
    let warm = simulation.play_window(&mut next(), &setup, true).unwrap();
    let new = play(&machine, &next(), &[0], true).counts;
    let figures = |counts: &SimulationCounts| {
        let level = &counts.levels[0];
        (level.misses, level.prefetches, level.useful)
    };
    assert_eq!(figures(&warm.counts), figures(&new));
    assert!(new.levels[0].useful > 0);
    near(warm.counts.cycles, new.cycles, 100.0);
}
