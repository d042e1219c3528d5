//! A window in parts: the first, a share of every thread's accesses, warms the caches; what follows
//! counts, cut again at the times at which threads or pages move.
use crate::simulate::AccessSource;
use hither_profile::bursts::{BurstAccess, BurstPiece};
use hither_profile::{Nanos, ThreadIx};

/// A source that ends at the end of a part, and continues with the next one.
pub struct PartitionedSource<S> {
    inner: S,
    /// Accesses of each thread in the whole window, and those that may still be handed out.
    totals: Vec<u64>,
    left: Vec<u64>,
    given: Vec<u64>,
    /// What is left of a piece that was cut, by thread.
    rest: Vec<Option<(BurstPiece, Vec<BurstAccess>)>>,
    /// When a thread last continued after a wait, and whether a part has begun for it.
    went_on: Vec<Option<Nanos>>,
    begun: Vec<bool>,
}

impl<S: AccessSource> PartitionedSource<S> {
    /// `totals`: by thread of the profile.
    #[must_use]
    pub fn new(inner: S, totals: Vec<u64>) -> Self {
        let threads = totals.len();
        PartitionedSource {
            inner,
            left: vec![0; threads],
            given: vec![0; threads],
            rest: vec![None; threads],
            went_on: vec![None; threads],
            begun: vec![true; threads],
            totals,
        }
    }

    /// Accesses of each thread up to this share of the window.
    #[must_use]
    pub fn accesses_up_to(&self, share: f64) -> Vec<u64> {
        accesses_up_to(&self.totals, share)
    }

    /// So many accesses of a thread were read before, and after a wait the last of its pieces that had waited.
    pub fn begin_behind(&mut self, thread: ThreadIx, accesses: u64, waited: Option<Nanos>) {
        let thread = thread.at();
        if let (Some(given), Some(went_on)) =
            (self.given.get_mut(thread), self.went_on.get_mut(thread))
        {
            (*given, *went_on) = (accesses, waited);
        }
    }

    /// Leaves out what comes before this many accesses of each thread.
    pub fn skip_to(&mut self, ends: &[u64]) {
        self.extend_to(ends);
        let mut into = Vec::new();
        for thread in self.inner.threads().to_vec() {
            while self.next_piece(thread, &mut into).is_some() {}
        }
    }

    /// The next part: up to this many accesses of each thread. Returns whether there are any.
    pub fn extend_to(&mut self, ends: &[u64]) -> bool {
        for ((left, given), end) in self.left.iter_mut().zip(&self.given).zip(ends) {
            *left = end.saturating_sub(*given);
        }
        self.begun.fill(false);
        self.left.iter().any(|left| *left > 0)
    }

    /// What it cuts.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn next_within_part(
        &mut self,
        thread: usize,
        into: &mut Vec<BurstAccess>,
    ) -> Option<BurstPiece> {
        match self.rest[thread].take() {
            Some((piece, accesses)) => {
                *into = accesses;
                Some(piece)
            }
            None => self.inner.next_piece(thread as u32, into),
        }
    }
}

impl<S: AccessSource> AccessSource for PartitionedSource<S> {
    fn threads(&self) -> &[u32] {
        self.inner.threads()
    }

    fn next_piece(&mut self, thread: u32, into: &mut Vec<BurstAccess>) -> Option<BurstPiece> {
        let at = thread as usize;
        let left = *self.left.get(at)?;
        into.clear();
        if left == 0 {
            return None;
        }
        let mut piece = self.next_within_part(at, into)?;
        if into.len() as u64 > left {
            let behind = into.split_off(left as usize);
            let (now, later) = split_piece(piece, into);
            piece = now;
            self.rest[at] = Some((later, behind));
        }
        let handed = into.len() as u64;
        self.left[at] -= handed;
        self.given[at] += handed;
        // Threads continue with a part when they have finished the last one; but accesses after a
        // wait still come after all that others did before it.
        if piece.waited {
            self.went_on[at] = Some(piece.start);
        } else if let Some(start) = self.went_on[at].filter(|_| !self.begun[at]) {
            (piece.waited, piece.start) = (true, start);
        }
        self.begun[at] = true;
        Some(piece)
    }
}

/// Accesses of each thread up to this share of a window with so many of each.
#[must_use]
pub fn accesses_up_to(totals: &[u64], share: f64) -> Vec<u64> {
    let share = share.clamp(0.0, 1.0);
    let end = |total: &u64| (*total as f64 * share).round() as u64;
    totals.iter().map(end).collect()
}

/// How many accesses each thread had made by a time; within a piece they are made evenly.
#[must_use]
pub fn accesses_by_time(time: Nanos, pieces: &[BurstPiece], threads: usize) -> Vec<u64> {
    let mut made = vec![0u64; threads];
    for piece in pieces.iter().filter(|piece| piece.start < time) {
        let span = piece.end.saturating_sub(piece.start);
        let past = u128::from(span.min(time - piece.start));
        let part = match span {
            0 => piece.accesses,
            span => (u128::from(piece.accesses) * past / u128::from(span)) as u64,
        };
        if let Some(sum) = made.get_mut(piece.thread.at()) {
            *sum = sum.saturating_add(part);
        }
    }
    made
}

/// The piece of these first accesses, and that of those behind them. Time passes evenly.
fn split_piece(piece: BurstPiece, first: &[BurstAccess]) -> (BurstPiece, BurstPiece) {
    let accesses = first.len() as u64;
    let instructions: u64 = first.iter().map(|a| u64::from(a.after)).sum();
    let span = piece.end.saturating_sub(piece.start);
    let share = u128::from(span) * u128::from(accesses) / u128::from(piece.accesses.max(1));
    let middle = piece
        .start
        .saturating_add(u64::try_from(share).unwrap_or(span));
    let now = BurstPiece {
        end: middle,
        accesses,
        instructions,
        ..piece
    };
    let later = BurstPiece {
        start: middle,
        waited: false,
        accesses: piece.accesses.saturating_sub(accesses),
        instructions: piece.instructions.saturating_sub(instructions),
        ..piece
    };
    (now, later)
}
