//! What happened over time, by slices of 100 ms: page faults of threads on pages, sharing
//! events of pairs of threads. When there is too much, slices are merged pairwise.
use foldhash::HashMap;
use hither_profile::binned::{BinnedCounts, CountRow};
use hither_profile::comm::amount_and_heterogeneity;
use hither_profile::{Nanos, Slice, SliceIx, ThreadIx};

/// Of a slice (kMAF maps as often).
pub const SLICE_LENGTH: Nanos = 100_000_000;
/// Rows of pages and threads, and of pairs.
const MOST_ROWS: usize = 1 << 20;
/// Slices; after that they are merged: 109 minutes of 100 ms.
const MOST_SLICES: usize = 1 << 16;

/// A slice in which something was seen, while it lasts.
#[derive(Debug, Default)]
struct OpenSlice {
    number: u32,
    accesses: HashMap<u64, u64>,
    pairs: HashMap<u64, u64>,
    threads: u32,
}

#[derive(Debug)]
pub struct SliceRecorder {
    current: OpenSlice,
    /// By number of the page and thread; by pair of threads.
    pages: BinnedCounts<1>,
    comm: BinnedCounts<1>,
    rows: Vec<Slice>,
    /// Slices of 100 ms in each row.
    width: u32,
}

impl Default for SliceRecorder {
    fn default() -> SliceRecorder {
        SliceRecorder {
            current: OpenSlice::default(),
            pages: BinnedCounts::new(MOST_ROWS),
            comm: BinnedCounts::new(MOST_ROWS),
            rows: Vec::new(),
            width: 1,
        }
    }
}

/// What is left when the run is over.
pub struct RecordedSlices {
    pub slices: Vec<Slice>,
    /// Slices, as they are numbered here, of each row of pages and pairs.
    pub page_slices: u32,
    pub comm_slices: u32,
    /// (slice, number of the page, thread, faults)
    pub pages: Vec<(SliceIx, u32, ThreadIx, u64)>,
    /// (slice, i, j, events), i < j
    pub comm: Vec<(SliceIx, ThreadIx, ThreadIx, u64)>,
}

fn pack_pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn unpack_pair(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

fn sorted(counts: HashMap<u64, u64>) -> Vec<CountRow<1>> {
    let mut rows: Vec<CountRow<1>> = counts.into_iter().map(|(key, n)| (key, [n])).collect();
    rows.sort_unstable_by_key(|row| row.0);
    rows
}

impl SliceRecorder {
    /// The slice that holds a moment since the start. A record that comes late counts for
    /// the slice that is current.
    pub fn at(&mut self, since: Nanos, threads: u32) -> SliceIx {
        let number = u32::try_from(since / SLICE_LENGTH).unwrap_or(u32::MAX);
        if number > self.current.number {
            self.close(number);
        }
        self.current.threads = self.current.threads.max(threads);
        SliceIx(self.current.number)
    }

    pub fn access(&mut self, thread: ThreadIx, page: u32) {
        *self
            .current
            .accesses
            .entry(pack_pair(page, thread.0))
            .or_default() += 1;
    }

    pub fn shared(&mut self, a: ThreadIx, b: ThreadIx) {
        if a != b {
            let (i, j) = (a.min(b), a.max(b));
            *self.current.pairs.entry(pack_pair(i.0, j.0)).or_default() += 1;
        }
    }

    fn close(&mut self, next: u32) {
        let done = std::mem::take(&mut self.current);
        self.current.number = next;
        let pairs = sorted(done.pairs);
        let triples = pairs.iter().map(|&(key, [events])| {
            let (i, j) = unpack_pair(key);
            (i, j, events)
        });
        let (amount, heterogeneity) =
            amount_and_heterogeneity(done.threads, &triples.collect::<Vec<_>>());
        let row = Slice {
            accesses: done.accesses.values().sum(),
            amount,
            heterogeneity,
            threads: done.threads,
            ..Slice::default()
        };
        self.merge_into_slice(done.number, row);
        self.pages.add_rows(done.number, sorted(done.accesses));
        self.comm.add_rows(done.number, pairs);
    }

    fn merge_into_slice(&mut self, number: u32, row: Slice) {
        while number / self.width >= MOST_SLICES as u32 {
            self.width *= 2;
            let old = std::mem::take(&mut self.rows);
            self.rows = old
                .chunks(2)
                .map(|two| two.iter().fold(Slice::default(), merge_slices))
                .collect();
        }
        let at = (number / self.width) as usize;
        if at >= self.rows.len() {
            self.rows.resize(at + 1, Slice::default());
        }
        self.rows[at] = merge_slices(std::mem::take(&mut self.rows[at]), &row);
    }

    /// All that was kept, of a run of this length.
    pub fn finish(mut self, duration: Nanos) -> RecordedSlices {
        let last = u32::try_from(duration.saturating_sub(1) / SLICE_LENGTH).unwrap_or(u32::MAX);
        self.close(last.max(self.current.number));
        self.merge_into_slice(last, Slice::default());
        let width = self.width;
        for binned in [&mut self.pages, &mut self.comm] {
            while binned.factor() < width {
                binned.coarsen();
            }
        }
        let length = SLICE_LENGTH * Nanos::from(width);
        for (number, row) in (0..).zip(&mut self.rows) {
            row.start = number * length;
            row.length = length.min(duration.saturating_sub(row.start)).max(1);
            row.traced = true;
        }
        let (page_slices, comm_slices) = (self.pages.factor() / width, self.comm.factor() / width);
        let rows = |binned: BinnedCounts<1>| {
            binned.into_bins().flat_map(move |(slice, rows)| {
                rows.into_iter().map(move |(key, [n])| {
                    let (high, low) = unpack_pair(key);
                    (SliceIx(slice / width), high, low, n)
                })
            })
        };
        RecordedSlices {
            page_slices,
            comm_slices,
            pages: rows(self.pages)
                .map(|(s, page, t, n)| (s, page, ThreadIx(t), n))
                .collect(),
            comm: rows(self.comm)
                .map(|(s, i, j, n)| (s, ThreadIx(i), ThreadIx(j), n))
                .collect(),
            slices: self.rows,
        }
    }

    /// The number that a slice of 100 ms has among those that are left.
    pub fn width(&self) -> u32 {
        self.width
    }
}

/// Both together. The heterogeneity is the mean by amount, which that of the two together
/// only comes near to.
fn merge_slices(a: Slice, b: &Slice) -> Slice {
    let amount = a.amount + b.amount;
    let heterogeneity = match amount > 0.0 {
        true => (a.heterogeneity * a.amount + b.heterogeneity * b.amount) / amount,
        false => 0.0,
    };
    Slice {
        accesses: a.accesses + b.accesses,
        amount,
        heterogeneity,
        threads: a.threads.max(b.threads),
        ..Slice::default()
    }
}
