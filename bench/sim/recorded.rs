//! What a program really did, as `hither trace --bursts` recorded it.
use hither_model::simulate::AccessSource;
use hither_profile::bursts::{BurstAccess, BurstPiece, BurstTrace, PieceDecoder};
use std::collections::HashMap;
use std::path::Path;

pub fn open_bursts(profile: &str) -> BurstTrace {
    let bursts = BurstTrace::open(Path::new(profile)).ok().flatten();
    bursts.unwrap_or_else(|| panic!("{profile} has no bursts"))
}

/// A window that the threads play which were in it. Reading the record is part of it.
pub struct RecordedSource<'a> {
    threads: Vec<u32>,
    /// By thread.
    decoders: Vec<Option<PieceDecoder<'a>>>,
}

impl<'a> RecordedSource<'a> {
    pub fn new(bursts: &'a BurstTrace, window: usize) -> Self {
        let there = bursts.threads(window);
        let length = there.iter().map(|t| t.at() + 1).max().unwrap_or(0);
        let mut decoders: Vec<_> = (0..length).map(|_| None).collect();
        for &thread in &there {
            decoders[thread.at()] = Some(bursts.decoder(window, thread));
        }
        RecordedSource {
            threads: there.iter().map(|t| t.0).collect(),
            decoders,
        }
    }

    /// Threads up to the last one that is there.
    pub fn thread_range(&self) -> std::ops::Range<u32> {
        0..self.decoders.len() as u32
    }
}

impl AccessSource for RecordedSource<'_> {
    fn threads(&self) -> &[u32] {
        &self.threads
    }

    fn next_piece(&mut self, thread: u32, into: &mut Vec<BurstAccess>) -> Option<BurstPiece> {
        self.decoders[thread as usize].as_mut()?.next(into)
    }
}

/// Pages side by side, in the order in which they are first asked for.
#[derive(Default)]
pub struct DensePages(HashMap<u64, u64>);

impl DensePages {
    /// Where an address then is.
    pub fn dense_address(&mut self, address: u64) -> u64 {
        let next = self.0.len() as u64;
        let page = *self.0.entry(address >> 12).or_insert(next);
        (page << 12) | (address & 0xfff)
    }
}
