//! Synthetic access streams: a kind of sharing each, made as they are asked for.
use hither_model::simulate::AccessSource;
use hither_profile::bursts::{BurstAccess, BurstPiece};
use hither_profile::ids::ThreadIx;

/// Accesses of a piece.
const PIECE: usize = 1024;
/// Where shared data begin, and where each thread's own do.
const SHARED: u64 = 0x7000_0000_0000;
const OWN: u64 = 0x1000_0000_0000;
/// Bytes of a thread's own area.
const AREA: u64 = 1 << 30;
/// Doubles in a row of the stencil, and its rows for each thread.
const COLUMNS: u64 = 1024;
const ROWS: u64 = 32;

pub struct SyntheticStream {
    pub name: &'static str,
    /// The n-th access of a thread of so many.
    access: fn(n: u64, thread: u64, threads: u64) -> (u64, bool),
}

pub const STREAMS: [SyntheticStream; 5] = [
    SyntheticStream {
        name: "resident",
        access: resident,
    },
    SyntheticStream {
        name: "stencil",
        access: stencil,
    },
    SyntheticStream {
        name: "stream",
        access: triad,
    },
    SyntheticStream {
        name: "shared",
        access: shared,
    },
    SyntheticStream {
        name: "random",
        access: random,
    },
];

/// 8 KiB of its own, over and over; every fourth access writes.
fn resident(n: u64, thread: u64, _: u64) -> (u64, bool) {
    (OWN + thread * AREA + n * 8 % 8192, n % 4 == 3)
}

/// Five reads of one grid and a write to another; threads have bands of rows, and read the rows
/// next to theirs.
fn stencil(n: u64, thread: u64, threads: u64) -> (u64, bool) {
    let (point, what) = (n / 6, n % 6);
    let row = (1 + thread * ROWS + point / (COLUMNS - 2) % ROWS).min(threads * ROWS);
    let column = 1 + point % (COLUMNS - 2);
    let (row, column) = match what {
        0 => (row - 1, column),
        1 => (row, column - 1),
        2 => (row, column),
        3 => (row, column + 1),
        4 => (row + 1, column),
        _ => (row + threads * ROWS + 2, column),
    };
    (SHARED + (row * COLUMNS + column) * 8, what == 5)
}

/// a[i] = b[i] + s c[i], each thread on arrays of 1 MiB of its own.
fn triad(n: u64, thread: u64, _: u64) -> (u64, bool) {
    let (i, array) = (n / 3, n % 3);
    let at = i * 8 % (1 << 20);
    // Arrays do not begin in the same set.
    (
        OWN + thread * AREA + array * ((1 << 20) + 4160) + at,
        array == 2,
    )
}

/// Any of the 4096 lines that all threads share; every fourth access writes.
fn shared(n: u64, thread: u64, _: u64) -> (u64, bool) {
    let any = splitmix64_hash(n << 16 | thread);
    (SHARED + any % 4096 * 64, any >> 32 & 3 == 0)
}

/// Any line of 64 MiB; every fourth access writes.
fn random(n: u64, thread: u64, _: u64) -> (u64, bool) {
    let any = splitmix64_hash(n << 16 | thread);
    (SHARED + any % (1 << 20) * 64, any >> 32 & 3 == 0)
}

/// A hash that is as good as chance here.
fn splitmix64_hash(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// A stream that some threads play, all the same number of accesses.
pub struct SyntheticSource<'a> {
    stream: &'a SyntheticStream,
    threads: Vec<u32>,
    done: Vec<u64>,
    each: u64,
}

impl<'a> SyntheticSource<'a> {
    pub fn new(stream: &'a SyntheticStream, threads: u32, accesses: u64) -> Self {
        SyntheticSource {
            stream,
            threads: (0..threads).collect(),
            done: vec![0; threads as usize],
            each: accesses / u64::from(threads),
        }
    }
}

impl AccessSource for SyntheticSource<'_> {
    fn threads(&self) -> &[u32] {
        &self.threads
    }

    fn next_piece(&mut self, thread: u32, into: &mut Vec<BurstAccess>) -> Option<BurstPiece> {
        into.clear();
        let done = &mut self.done[thread as usize];
        let length = (self.each - *done).min(PIECE as u64);
        if length == 0 {
            return None;
        }
        let threads = self.threads.len() as u64;
        into.extend((*done..*done + length).map(|n| {
            let (address, write) = (self.stream.access)(n, u64::from(thread), threads);
            BurstAccess {
                address,
                bytes: 8,
                write,
                after: 3,
                depends: 0,
            }
        }));
        *done += length;
        Some(BurstPiece {
            thread: ThreadIx(thread),
            start: *done,
            end: *done,
            accesses: length,
            instructions: length * 3,
            ..BurstPiece::default()
        })
    }
}
