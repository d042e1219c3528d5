//! What a program really did, as `hither trace --bursts` recorded it.
use hither_model::simulate::Source;
use hither_profile::bursts::{Access, Bursts, Decoder, Piece};
use std::collections::HashMap;
use std::path::Path;

pub fn open(profile: &str) -> Bursts {
    let bursts = Bursts::open(Path::new(profile)).ok().flatten();
    bursts.unwrap_or_else(|| panic!("{profile} has no bursts"))
}

/// A window that the threads play which were in it. Reading the record is part of it.
pub struct Recorded<'a> {
    threads: Vec<u32>,
    /// By thread.
    decoders: Vec<Option<Decoder<'a>>>,
}

impl<'a> Recorded<'a> {
    pub fn new(bursts: &'a Bursts, window: usize) -> Self {
        let there = bursts.threads(window);
        let length = there.iter().map(|t| t.at() + 1).max().unwrap_or(0);
        let mut decoders: Vec<_> = (0..length).map(|_| None).collect();
        for &thread in &there {
            decoders[thread.at()] = Some(bursts.decoder(window, thread));
        }
        Recorded {
            threads: there.iter().map(|t| t.0).collect(),
            decoders,
        }
    }

    /// Threads up to the last one that is there.
    pub fn all(&self) -> std::ops::Range<u32> {
        0..self.decoders.len() as u32
    }
}

impl Source for Recorded<'_> {
    fn threads(&self) -> &[u32] {
        &self.threads
    }

    fn next(&mut self, thread: u32, into: &mut Vec<Access>) -> Option<Piece> {
        self.decoders[thread as usize].as_mut()?.next(into)
    }
}

/// Pages side by side, in the order in which they are first asked for.
#[derive(Default)]
pub struct Pages(HashMap<u64, u64>);

impl Pages {
    /// Where an address then is.
    pub fn near(&mut self, address: u64) -> u64 {
        let next = self.0.len() as u64;
        let page = *self.0.entry(address >> 12).or_insert(next);
        (page << 12) | (address & 0xfff)
    }
}
