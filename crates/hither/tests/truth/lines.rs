//! Which bytes of shared lines each thread touches.
use crate::run::run;
use crate::view::{named, total};
use hither_profile::{LineUse, Profile};

/// The rows of the lines of an object, with the line's offset in it.
fn lines<'p>(profile: &'p Profile, name: &str) -> Vec<(u64, &'p LineUse)> {
    let of = named(profile, name)[0].0;
    let mut ranges = profile.object_ranges.iter();
    let range = ranges.find(|r| r.object.at() == of).expect("a range");
    let inside = |l: &&LineUse| {
        l.region == range.region
            && l.offset >= range.offset
            && l.offset < range.offset + range.length
    };
    let rows = profile.lines.iter().filter(inside);
    rows.map(|l| (l.offset - range.offset, l)).collect()
}

/// (line, thread, reads, writes)
type Row = (u64, u32, u64, u64);

fn masks(profile: &Profile, name: &str) -> Vec<Row> {
    let row = |(at, l): (u64, &LineUse)| (at, l.thread.0, l.read_mask, l.write_mask);
    lines(profile, name).into_iter().map(row).collect()
}

/// One in so many accesses to shared lines is kept.
const PERIOD: u64 = 1024;
const ROUNDS: u64 = 4_000_000;
const MIXED: [Row; 4] = [
    (0, 0, 0xf0, 0xfd),
    (0, 1, 0xff << 56 | 0xff << 8, 0x3ff << 40 | 0xffff << 16),
    (64, 0, 3 << 62, 0xf << 32),
    (64, 1, 0xff, 0),
];

#[test]
fn bytes_of_a_steady_program() {
    let profile = run(&format!("bytes masks {ROUNDS}")).profile();
    assert_eq!(masks(&profile, "mixed"), MIXED);
    // That some accesses were looked at changes no count. The last read is the program's check.
    assert_eq!(total(&profile, "mixed"), (5 * ROUNDS + 1, 6 * ROUNDS));
    for (at, l) in lines(&profile, "mixed") {
        let of_round = [[4, 4], [2, 1]][usize::from(at > 0)][l.thread.at()];
        // Only those count that fall into slices in which the other was there too: on a busy
        // machine a tenth of them. They are known by one in PERIOD.
        let most = of_round * ROUNDS * 26 / 25 + PERIOD;
        assert!((1..=most).contains(&l.accesses), "{at}: {l:?}");
    }
}

#[test]
fn bytes_by_the_definition() {
    let profile = run("bytes masks 20000").with("--oracle").profile();
    for row in masks(&profile, "mixed") {
        let truth = MIXED.iter().find(|m| (m.0, m.1) == (row.0, row.1));
        let truth = truth.unwrap_or_else(|| panic!("{row:x?}"));
        assert_eq!((row.2 & !truth.2, row.3 & !truth.3), (0, 0), "{row:x?}");
    }
    assert_eq!(total(&profile, "mixed"), (100_001, 120_000));
}

#[test]
fn counters_of_several_threads() {
    let profile = run("false_sharing 8 200000 packed").profile();
    let found = masks(&profile, "packed");
    for row in &found {
        let own = 0xff << (8 * row.1);
        assert_eq!((row.0, row.2 & !own, row.3 & !own), (0, 0, 0), "{row:x?}");
    }
    assert!(found.len() >= 4, "{found:x?}");
}

#[test]
fn nothing_is_seen_where_nothing_is_shared() {
    let profile = run("false_sharing 4 50000 padded").profile();
    assert_eq!(masks(&profile, "padded"), []);
}

#[test]
fn lines_of_processes_that_share_memory() {
    let profile = run("shm fork 4 4000").profile();
    let found = profile.lines.iter().filter(|l| {
        let region = &profile.regions[l.region.at()];
        region.kind == hither_profile::RegionKind::Shared && l.accesses > 100
    });
    let mut threads: Vec<u32> = found.map(|l| l.thread.0).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads, [0, 1, 2, 3]);
}

#[test]
fn long_lines() {
    let profile = run(&format!("bytes masks {ROUNDS}"))
        .with("--line 128")
        .profile();
    // A bit is two bytes, and both lines are one.
    let expected = [
        (0, 0, 1 << 63 | 0b1100, 0b11 << 48 | 0b1111),
        (
            0,
            1,
            0xf << 32 | 0xf << 28 | 0xf << 4,
            0x1f << 20 | 0xff << 8,
        ),
    ];
    assert_eq!(masks(&profile, "mixed"), expected);
}
