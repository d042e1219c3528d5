//! MESI and MOESI, transition by transition, worked by hand; and ping-pong pairs.
use super::{access, faults, level, machine, two_by_two};
use crate::simulate::hierarchy::CacheHierarchy;
use crate::simulate::simulated_machine::{CoherenceProtocol, PrefetcherKind, SimulatedMachine};
use crate::simulate::tag_array::{DIRTY, WRITABLE};

/// Plays steps such as "0rA" (core 0 reads line A) and gives what became of line A: its state in
/// the first level of each core and in the second of each package, copies invalidated, transfers
/// inside and between packages, lines read from and written to memory.
fn outcome(machine: &SimulatedMachine, steps: &str) -> String {
    let mut h = CacheHierarchy::new(machine, false);
    play_steps(&mut h, steps);
    let line = h.pages.line_of_address(0x10000, 0, &|_| None).unwrap();
    let state = |level: usize, cache: usize| {
        let caches = &h.caches[level];
        let found = caches.find_way(caches.set_of(cache, line), line);
        match found.map(|at| caches.flags(at) & (WRITABLE | DIRTY)) {
            None => 'I',
            Some(0) => 'S',
            Some(WRITABLE) => 'E',
            Some(DIRTY) => 'O',
            Some(_) => 'M',
        }
    };
    let cores: String = (0..4).map(|c| state(0, c)).collect();
    let packages: String = (0..2).map(|c| state(1, c)).collect();
    let t = &h.counts;
    let reads: u64 = t.nodes.iter().map(|n| n.local_reads + n.remote_reads).sum();
    let writes: u64 = t
        .nodes
        .iter()
        .map(|n| n.local_writes + n.remote_writes)
        .sum();
    format!(
        "{cores} {packages} {} {} {} {reads} {writes}",
        t.invalidations, t.transfers_inside, t.transfers_between
    )
}

fn play_steps(h: &mut CacheHierarchy, steps: &str) {
    for step in steps.split_whitespace() {
        let [core, what, line] = step.as_bytes() else {
            panic!("{step} is no step");
        };
        let address = 0x10000 + u64::from(line - b'A') * 64;
        access(h, usize::from(core - b'0'), address, *what == b'w');
        assert_eq!(faults(h), [""; 0], "{steps}, after {step}");
    }
}

fn check(protocol: CoherenceProtocol, cases: &[(&str, &str)]) {
    for (steps, expected) in cases {
        assert_eq!(
            &outcome(&two_by_two(protocol), steps),
            expected,
            "{protocol:?}: {steps}"
        );
    }
}

/// What MESI and MOESI have in common.
const COMMON: [(&str, &str); 14] = [
    ("0rA", "EIII EI 0 0 0 1 0"),
    ("0wA", "MIII EI 0 0 0 1 0"),
    // E becomes M without a word.
    ("0rA 0wA", "MIII EI 0 0 0 1 0"),
    ("0rA 1rA", "SSII EI 0 0 0 1 0"),
    ("0rA 1wA", "IMII EI 1 0 0 1 0"),
    ("0wA 1wA", "IMII EI 1 1 0 1 0"),
    ("0rA 1rA 0wA", "MIII EI 1 0 0 1 0"),
    // The owner supplies a line that it may have written.
    ("0rA 2rA", "SISI SS 0 0 1 1 0"),
    // The other package's second level loses it too.
    ("0rA 2wA", "IIMI IE 2 0 1 1 0"),
    ("0wA 2wA", "IIMI IE 2 0 1 1 0"),
    ("0rA 2rA 0wA", "MIII EI 2 0 1 1 0"),
    ("0rA 1rA 2rA 3rA 3wA", "IIIM IE 4 0 1 1 0"),
    // Driven out of the first level, and of the second with what lies below it.
    ("0wA 0rB 0rC", "IIII MI 0 0 0 3 0"),
    ("0rA 1rB 1rC 1rD 1rE", "IIII II 0 0 0 5 0"),
];

#[test]
fn transitions_that_mesi_and_moesi_share() {
    check(CoherenceProtocol::Mesi, &COMMON);
    check(CoherenceProtocol::Moesi, &COMMON);
}

#[test]
fn mesi_writes_back_what_another_reads() {
    check(
        CoherenceProtocol::Mesi,
        &[
            ("0wA 1rA", "SSII MI 0 1 0 1 0"),
            ("0wA 2rA", "SISI SS 0 0 1 1 1"),
            ("0wA 1rA 2rA", "SSSI SS 0 1 1 1 1"),
            ("0wA 2rA 0wA", "MIII EI 2 0 1 1 1"),
            ("0wA 1rA 0wA", "MIII MI 1 1 0 1 0"),
        ],
    );
}

#[test]
fn moesi_leaves_it_with_its_owner() {
    check(
        CoherenceProtocol::Moesi,
        &[
            ("0wA 1rA", "OSII EI 0 1 0 1 0"),
            ("0wA 2rA", "OISI SS 0 0 1 1 0"),
            ("0wA 2rA 3rA", "OISS SS 0 0 1 1 0"),
            // The owner supplies every reader below its second level.
            ("0wA 2rA 1rA", "OSSI SS 0 1 1 1 0"),
            ("0wA 2rA 0rA", "OISI SS 0 0 1 1 0"),
            ("0wA 2rA 0wA", "MIII EI 2 0 1 1 0"),
            ("0wA 2rA 2wA", "IIMI IE 2 0 1 1 0"),
            ("0wA 2rA 1wA", "IMII EI 3 1 1 1 0"),
            ("0wA 1rA 0wA", "MIII EI 1 1 0 1 0"),
            // An owner that is driven out leaves the second level dirty.
            ("0wA 1rA 0rB 0rC", "ISII MI 0 1 0 3 0"),
        ],
    );
}

#[test]
fn dirty_lines_that_are_driven_out_reach_memory() {
    let cases = [
        ("0wA 0rB 0rC 0rD 0rE", "IIII II 0 0 0 5 1"),
        // From below the second level.
        ("0wA 1rB 1rC 1rD 1rE", "IIII II 0 0 0 5 1"),
        // A line that came back from the second level is exclusive again.
        ("0wA 0rB 0rC 1rA", "IEII MI 0 0 0 3 0"),
        ("0wA 0rB 0rC 2rA", "IISI SS 0 0 1 3 1"),
    ];
    check(CoherenceProtocol::Mesi, &cases);
    let (steps, _) = cases[3];
    check(CoherenceProtocol::Moesi, &[(steps, "IISI OS 0 0 1 3 0")]);
}

/// Cores on one package of one machine share a second level by two and nothing else; the other
/// package is as far as it gets.
#[test]
fn ping_pong_pairs_transfer_as_arithmetic_says() {
    let levels = [level(64, 4, 1, 4, false), level(256, 8, 2, 20, true)];
    let machine = machine(&levels, 4, 2, CoherenceProtocol::Mesi);
    let rounds = 100;
    // Cores of the pair; transfers inside and between packages. Each write but the first takes
    // the line from the other.
    let cases = [
        ((0, 0), (0, 0)),
        ((0, 1), (2 * rounds - 1, 0)),
        ((0, 2), (2 * rounds - 1, 0)),
        ((0, 4), (0, 2 * rounds - 1)),
    ];
    for ((a, b), expected) in cases {
        let mut h = CacheHierarchy::new(&machine, false);
        for _ in 0..rounds {
            access(&mut h, a, 0x5000, true);
            access(&mut h, b, 0x5000, true);
        }
        let t = &h.counts;
        assert_eq!(
            (t.transfers_inside, t.transfers_between),
            expected,
            "{a} {b}"
        );
        // Data over the link each time, from the other package to this one or back.
        let data: u64 = t.link_bytes.iter().sum();
        assert_eq!(data > 2 * rounds * 64, expected.1 > 0, "{data} bytes");
    }
}

/// Cold, capacity, invalidation and replication misses of a level.
fn kinds(steps: &str) -> [[u64; 4]; 2] {
    let mut h = CacheHierarchy::new(&two_by_two(CoherenceProtocol::Mesi), false);
    play_steps(&mut h, steps);
    [h.counts.levels[0].misses, h.counts.levels[1].misses]
}

#[test]
fn misses_are_told_apart() {
    for (steps, expected) in [
        // Two caches, each for the first time; the second level had it for the second core.
        ("0rA 1rA", [[2, 0, 0, 0], [1, 0, 0, 0]]),
        // Driven out by B and C, and back from the second level.
        ("0rA 0rB 0rC 0rA", [[3, 1, 0, 0], [3, 0, 0, 0]]),
        // The same while core 1 has a copy.
        ("0rA 1rA 0rB 0rC 0rA", [[4, 0, 0, 1], [3, 0, 0, 0]]),
        // The other's write took it from both levels.
        ("0rA 2wA 0rA", [[2, 0, 1, 0], [2, 0, 1, 0]]),
        // Only from the first.
        ("0rA 1wA 0rA", [[2, 0, 1, 0], [1, 0, 0, 0]]),
        // Driven out of the second level while the other package has a copy, and without.
        ("0rA 2rA 0rB 1rC 1rD 1rE 0rA", [[6, 0, 0, 1], [6, 0, 0, 1]]),
        ("0rA 0rB 1rC 1rD 1rE 0rA", [[5, 1, 0, 0], [5, 1, 0, 0]]),
    ] {
        assert_eq!(kinds(steps), expected, "{steps}");
    }
}

/// With a prefetcher at the second level: misses of lines that it had ready are classified as without it.
#[test]
fn misses_of_lines_fetched_ahead_are_told_apart() {
    let mut levels = [level(4, 4, 1, 4, false), level(16, 16, 1, 20, false)];
    levels[1].0.prefetch = Some(PrefetcherKind::Stream {
        streams: 4,
        degree: 2,
        distance: 4,
    });
    let machine = machine(&levels, 2, 1, CoherenceProtocol::Mesi);
    let mut h = CacheHierarchy::new(&machine, false);
    let go = |h: &mut CacheHierarchy, core, page: u64, lines: u64, write| {
        let before = h.counts.levels[0].misses;
        for line in 0..lines {
            access(h, core, page * 4096 + line * 64, write);
        }
        let now = h.counts.levels[0].misses;
        [0, 1, 2, 3].map(|kind| now[kind] - before[kind])
    };
    assert_eq!(go(&mut h, 0, 16, 8, false), [8, 0, 0, 0]);
    assert!(h.counts.levels[1].useful > 0);
    assert_eq!(go(&mut h, 0, 17, 32, false), [32, 0, 0, 0]);
    assert_eq!(go(&mut h, 0, 16, 8, false), [0, 8, 0, 0]);
    assert_eq!(go(&mut h, 1, 16, 8, true), [8, 0, 0, 0]);
    assert_eq!(go(&mut h, 1, 17, 32, false)[1..], [0, 0, 0]);
    assert_eq!(go(&mut h, 0, 16, 8, false), [0, 0, 8, 0]);
}

/// However many cores read a line, each has its first time.
#[test]
fn many_cores_miss_cold_once_each() {
    let levels = [level(64, 4, 1, 4, false), level(256, 8, 8, 20, true)];
    let machine = machine(&levels, 40, 2, CoherenceProtocol::Mesi);
    let mut h = CacheHierarchy::new(&machine, false);
    for core in (0..80).map(|n| n * 27 % 80) {
        access(&mut h, core, 0x5000, false);
    }
    assert_eq!(h.counts.levels[0].misses, [80, 0, 0, 0]);
    assert_eq!(h.counts.levels[1].misses, [10, 0, 0, 0]);
    // A write takes all but its own, and each misses that once.
    access(&mut h, 3, 0x5000, true);
    for core in 0..80 {
        access(&mut h, core, 0x5000, false);
    }
    assert_eq!(h.counts.levels[0].misses, [80, 0, 79, 0]);
    assert_eq!(h.counts.levels[1].misses, [10, 0, 9, 0]);
}
