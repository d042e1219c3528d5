//! A profile made by hand: 8 threads of one process, each with a block of pages of its own that
//! thread 0 touched first; thread i and i + 4 write the same page in turn.
use hither_profile::bursts::{BurstAccess, BurstPiece, NamedPages};
use hither_profile::BurstWriter;
use hither_profile::*;
use std::path::Path;

pub const THREADS: u32 = 8;
/// Pages of a thread's own.
const BLOCK: u64 = 24;
/// Accesses of a thread that pass once over its block.
pub const PASS: u64 = BLOCK * PAGE_SIZE / 8;
const BASE: u64 = 0x7f00_0000_0000;
const MILLISECOND: u64 = 1_000_000;

fn region() -> Region {
    Region {
        kind: RegionKind::Mmap,
        thread: Some(ThreadIx(0)),
        size: pages() * PAGE_SIZE,
        address: BASE,
        ..Region::default()
    }
}

fn pages() -> u64 {
    u64::from(THREADS) * BLOCK + u64::from(THREADS / 2)
}

/// The page that a thread shares with its partner.
fn shared(thread: u32) -> u64 {
    u64::from(THREADS) * BLOCK + u64::from(thread % (THREADS / 2))
}

pub fn profile() -> Profile {
    let thread = |at: u32| Thread {
        tid: at as i32 + 1,
        name: format!("w{at}"),
        creator: (at > 0).then_some(ThreadIx(0)),
        end: 100 * MILLISECOND,
        instructions: 1_000_000,
        reads: 300_000,
        writes: 100_000,
        ..Thread::default()
    };
    let used = |page: u64, thread: u32| PageUse {
        page: PageNo(page as u32),
        thread: ThreadIx(thread),
        reads: 1000,
        writes: 300,
        ..PageUse::default()
    };
    let own = |thread: u32| {
        let block = u64::from(thread) * BLOCK;
        (block..block + BLOCK).map(move |page| used(page, thread))
    };
    let mut uses: Vec<PageUse> = (0..THREADS).flat_map(own).collect();
    uses.extend((0..THREADS).map(|thread| used(shared(thread), thread)));
    uses.sort_by_key(|u| (u.page, u.thread));
    let touch = |page: u64| PageFirstTouch {
        page: PageNo(page as u32),
        ..PageFirstTouch::default()
    };
    let pair = |i: u32| PairComm {
        i: ThreadIx(i),
        j: ThreadIx(i + THREADS / 2),
        events: 50_000,
        ..PairComm::default()
    };
    Profile {
        meta: ProfileMeta {
            format: 1,
            command: vec!["./app".to_owned(), "a b".to_owned()],
            duration: 100 * MILLISECOND,
            started_unix: 1_700_000_000,
            processes: vec![Process {
                pid: 1,
                executable: "./app".to_owned(),
                ..Process::default()
            }],
            end: RunEnd::Exited { status: 0 },
            ..ProfileMeta::default()
        },
        threads: (0..THREADS).map(thread).collect(),
        slices: vec![Slice {
            length: 100 * MILLISECOND,
            accesses: 3_200_000,
            traced: true,
            ..Slice::default()
        }],
        comm: (0..THREADS / 2).map(pair).collect(),
        pages: uses.into(),
        first_touch: (0..pages()).map(touch).collect(),
        regions: vec![region()],
        objects: vec![Object {
            name: "grid".to_owned(),
            kind: ObjectKind::Mmap,
            size: pages() * PAGE_SIZE,
            count: 1,
            reads: 2_400_000,
            writes: 800_000,
            ..Object::default()
        }],
        object_ranges: vec![ObjectRange {
            length: pages() * PAGE_SIZE,
            ..ObjectRange::default()
        }],
        ..Profile::default()
    }
}

/// What a thread does in a window: it goes through its block, and every eighth access is one to
/// the shared page.
fn stream(window: u64, thread: u32, shared: u64, count: u64) -> Vec<BurstAccess> {
    let access = |n: u64| {
        let is_shared = n % 8 == 7;
        let at = window * count + n;
        let offset = match is_shared {
            true => shared * PAGE_SIZE + at % 4 * 64,
            false => u64::from(thread) * BLOCK * PAGE_SIZE + at * 8 % (BLOCK * PAGE_SIZE),
        };
        BurstAccess {
            address: BASE + offset,
            bytes: 8,
            write: is_shared || n % 4 == 3,
            after: 3,
            depends: 0,
        }
    };
    (0..count).map(access).collect()
}

/// Writes the profile, with bursts of so many windows and accesses of each thread in one.
pub fn write(dir: &Path, windows: u64, accesses: u64) {
    let all = |window, thread| stream(window, thread, shared(thread), accesses);
    put(dir, profile(), windows, 10 * MILLISECOND, all);
}

/// Slices of 10 ms of the run that changes, as many of each phase.
const HALF: u32 = 60;

/// The same where in a second phase thread 0 shares its page with thread 1, 2 with 3 and so on;
/// a window every 200 ms.
pub fn write_changing(dir: &Path, accesses: u64) {
    let mut profile = profile();
    let length = 10 * MILLISECOND;
    let duration = u64::from(2 * HALF) * length;
    profile.meta.duration = duration;
    (profile.meta.comm_slices, profile.meta.page_slices) = (1, 2 * HALF);
    for thread in &mut profile.threads {
        thread.end = duration;
    }
    let slice = |at: u32| Slice {
        start: u64::from(at) * length,
        length,
        accesses: 25_000,
        heterogeneity: if at < HALF { 1875.0 } else { 900.0 },
        sync: [4, 0, 0, 0],
        threads: THREADS,
        traced: true,
        ..Slice::default()
    };
    profile.slices = (0..2 * HALF).map(slice).collect();
    let pair = |at: u32, n: u32| {
        let (i, j) = match at < HALF {
            true => (n, n + THREADS / 2),
            false => (2 * n, 2 * n + 1),
        };
        PairComm {
            slice: SliceIx(at),
            i: ThreadIx(i),
            j: ThreadIx(j),
            events: 5000,
            ..PairComm::default()
        }
    };
    let pairs = |at: u32| (0..THREADS / 2).map(move |n| pair(at, n));
    profile.comm = (0..2 * HALF).flat_map(pairs).collect();
    let all = |window, thread| {
        let page = match window < 3 {
            true => shared(thread),
            false => shared(thread / 2),
        };
        stream(window, thread, page, accesses)
    };
    put(dir, profile, 6, 200 * MILLISECOND, all);
}

/// A profile in which partners share, so that communication alone brings all threads together, with
/// bursts in which each sweeps over more memory than a cache's part of it, a line at a time.
pub fn write_sweeping(dir: &Path) {
    const OWN: u64 = 6 << 20;
    let all = |window: u64, thread: u32| {
        let access = |n: u64| BurstAccess {
            address: BASE + u64::from(thread) * OWN + (window * 50_000 + n) * 64 % OWN,
            bytes: 8,
            write: false,
            after: 3,
            depends: 0,
        };
        (0..150_000).map(access).collect()
    };
    let mut profile = profile();
    profile.regions[0].size = u64::from(THREADS) * OWN;
    put(dir, profile, 4, 10 * MILLISECOND, all);
}

/// A profile in which each thread swept many times over memory of its own, all of it together more than a cache of the
/// last level holds, and wrote in turn with its partner. Each of the bursts has only a part of a sweep. `fetches`:
/// of each page.
pub fn write_wide(dir: &Path, fetches: u64) {
    const OWN: u64 = 1000;
    let begin = |thread: u32| pages() + u64::from(thread) * OWN;
    let all = |window: u64, thread: u32| {
        let access = |n: u64| {
            let line = (window * 25_000 + n) % (OWN * PAGE_SIZE / 64);
            BurstAccess {
                address: BASE + begin(thread) * PAGE_SIZE + line * 64,
                bytes: 8,
                write: false,
                after: 3,
                depends: 0,
            }
        };
        let partly = stream(window, thread, shared(thread), PASS).into_iter();
        let both = (0..).zip(partly).map(|(n, with_partner)| match n % 8 {
            7 => with_partner,
            _ => access(n),
        });
        both.collect()
    };
    let mut profile = profile();
    profile.regions[0].size += u64::from(THREADS) * OWN * PAGE_SIZE;
    let mut uses: Vec<PageUse> = profile.pages.iter().collect();
    uses.extend((0..THREADS).flat_map(|thread| {
        (begin(thread)..begin(thread) + OWN).map(move |page| PageUse {
            page: PageNo(page as u32),
            thread: ThreadIx(thread),
            reads: 4000,
            fetches,
            ..PageUse::default()
        })
    }));
    profile.pages = uses.into();
    put(dir, profile, 6, 10 * MILLISECOND, all);
}

fn put(
    dir: &Path,
    mut profile: Profile,
    windows: u64,
    every: u64,
    all: impl Fn(u64, u32) -> Vec<BurstAccess>,
) {
    let mut writer = BurstWriter::create(dir).expect("a place for bursts");
    for window in 0..windows {
        let start = window * every;
        for thread in 0..THREADS {
            let head = BurstPiece {
                thread: ThreadIx(thread),
                start,
                end: start + MILLISECOND,
                ..BurstPiece::default()
            };
            writer.append_accesses(window as u32, &head, &all(window, thread));
        }
        writer.append_named_pages(
            window as u32,
            &[NamedPages {
                page: BASE / PAGE_SIZE,
                pages: profile.regions[0].size / PAGE_SIZE,
                ..NamedPages::default()
            }],
        );
    }
    let written = write_with_bursts(&mut profile, dir, writer).expect("a profile");
    assert_eq!(written.missing, Vec::<String>::new());
}
