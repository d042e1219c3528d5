//! A profile made by hand: 8 threads of one process, each with a block of pages of its own that
//! thread 0 touched first; thread i and i + 4 write the same page in turn.
use hither_profile::bursts::{Access, Piece, Place, Writer};
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
    let touch = |page: u64| FirstTouch {
        page: PageNo(page as u32),
        ..FirstTouch::default()
    };
    let pair = |i: u32| Comm {
        i: ThreadIx(i),
        j: ThreadIx(i + THREADS / 2),
        events: 50_000,
        ..Comm::default()
    };
    Profile {
        meta: Meta {
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
            ..Meta::default()
        },
        threads: (0..THREADS).map(thread).collect(),
        slices: vec![Slice {
            length: 100 * MILLISECOND,
            accesses: 3_200_000,
            traced: true,
            ..Slice::default()
        }],
        comm: (0..THREADS / 2).map(pair).collect(),
        pages: uses,
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
fn stream(window: u64, thread: u32, count: u64) -> Vec<Access> {
    let access = |n: u64| {
        let is_shared = n % 8 == 7;
        let at = window * count + n;
        let offset = match is_shared {
            true => shared(thread) * PAGE_SIZE + at % 4 * 64,
            false => u64::from(thread) * BLOCK * PAGE_SIZE + at * 8 % (BLOCK * PAGE_SIZE),
        };
        Access {
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
    let mut writer = Writer::begin(dir).expect("a place for bursts");
    for window in 0..windows {
        let start = window * 10 * MILLISECOND;
        for thread in 0..THREADS {
            let all = stream(window, thread, accesses);
            let head = Piece {
                thread: ThreadIx(thread),
                start,
                end: start + MILLISECOND,
                ..Piece::default()
            };
            writer.accesses(window as u32, &head, &all);
        }
        writer.places(
            window as u32,
            &[Place {
                page: BASE / PAGE_SIZE,
                pages: pages(),
                ..Place::default()
            }],
        );
    }
    let written = write_with(&mut profile(), dir, writer).expect("a profile");
    assert_eq!(written.missing, Vec::<String>::new());
}
