//! Machines small enough to work by hand, and what must hold of any.
mod parts;
mod properties;
mod states;
mod time;
mod warming;
mod window;

use super::hierarchy::CacheHierarchy;
use super::simulated_machine::{CoherenceProtocol, SimulatedMachine};
use super::tag_array::{line_of, DIRTY, PREFETCHED, WRITABLE};
use super::{AccessSource, Simulation, WindowOutcome, WindowSetup};
use crate::simulate::symmetric::{level, machine};
use hither_profile::bursts::{BurstAccess, BurstPiece};
use std::collections::BTreeMap;

/// Two packages of two cores, each core with a first level of two lines, each package with a
/// second of four that includes them. All lines fall into one set.
pub fn two_by_two(protocol: CoherenceProtocol) -> SimulatedMachine {
    let levels = [level(2, 2, 1, 4, false), level(4, 4, 2, 20, true)];
    machine(&levels, 2, 2, protocol)
}

/// A read or write by a private hierarchy in the untimed hierarchy; all homes are node 0.
pub fn access(hierarchy: &mut CacheHierarchy, l1: usize, address: u64, write: bool) {
    let line = hierarchy.pages.line_of_address(address, 0, &|_| None);
    hierarchy.access(l1, line.expect("few pages"), write, 0.0);
}

/// What is wrong with a hierarchy: copies that may not be, and numbers of the directory that are
/// not those of the caches.
pub fn faults(h: &CacheHierarchy) -> Vec<String> {
    let mut lines: BTreeMap<u32, Vec<(usize, usize, u32)>> = BTreeMap::new();
    for (level, caches) in h.caches.iter().enumerate() {
        let used = (0..h.tree.l1s).map(|b| h.tree.cache(b, level));
        let used: std::collections::BTreeSet<usize> = used.collect();
        for cache in used {
            for e in caches.entries(cache) {
                let copies = lines.entry(line_of(e)).or_default();
                copies.push((level, cache, e & (WRITABLE | DIRTY | PREFETCHED)));
            }
        }
    }
    let mut faults = Vec::new();
    for (&line, copies) in &lines {
        line_faults(h, line, copies, &mut faults);
    }
    faults
}

fn line_faults(
    h: &CacheHierarchy,
    line: u32,
    copies: &[(usize, usize, u32)],
    out: &mut Vec<String>,
) {
    let mut wrong = |what: &str| out.push(format!("line {line}: {what}: {copies:?}"));
    let path = |b: usize, level: usize, cache: usize| h.tree.cache(b, level) == cache;
    let has = |level, cache| copies.iter().any(|c| (c.0, c.1) == (level, cache));
    for (level, caches) in h.caches.iter().enumerate() {
        for cache in 0..caches.number() {
            let copy = copies.iter().find(|c| (c.0, c.1) == (level, cache));
            let shared = copy.is_some_and(|c| c.2 & WRITABLE == 0);
            if shared != h.lines.is_sharer(line, level, cache) {
                wrong(&format!("cache {cache} of level {level} is not as known"));
            }
        }
    }
    let owner = h.lines.owner(line);
    for &(level, cache, flags) in copies {
        let below: Vec<usize> = (0..h.tree.l1s).filter(|&b| path(b, level, cache)).collect();
        if !h.lines.was_held(&h.tree, line, level, cache) {
            wrong("a copy that the directory does not know");
        }
        if flags & (WRITABLE | DIRTY) != 0 && !owner.is_some_and(|o| below.contains(&o)) {
            wrong(&format!("{owner:?} owns it"));
        }
        if flags & WRITABLE != 0 {
            let foreign = copies.iter().any(|&(l, c, _)| {
                let one = (0..h.tree.l1s).find(|&b| path(b, l, c));
                one.is_some_and(|b| h.tree.cache(b, level) != cache && l <= level)
                    || l > level && !below.iter().any(|&b| path(b, l, c))
            });
            if foreign {
                wrong("a copy beside a writable one");
            }
        }
        for l in level + 1..h.tree.depth {
            if h.inclusive[l] && !has(l, h.tree.cache(below[0], l)) {
                wrong("not included");
            }
        }
    }
}

/// Threads with pieces, written down.
#[derive(Clone, Default)]
pub struct Script {
    threads: Vec<u32>,
    pieces: Vec<Vec<(BurstPiece, Vec<BurstAccess>)>>,
    next: Vec<usize>,
}

impl Script {
    pub fn new(pieces: Vec<Vec<(BurstPiece, Vec<BurstAccess>)>>) -> Self {
        Script {
            threads: (0..pieces.len() as u32).collect(),
            next: vec![0; pieces.len()],
            pieces,
        }
    }

    /// Of threads that never wait.
    pub fn of(accesses: Vec<Vec<BurstAccess>>) -> Self {
        let piece = |a: Vec<BurstAccess>| vec![(BurstPiece::default(), a)];
        Script::new(accesses.into_iter().map(piece).collect())
    }
}

impl AccessSource for Script {
    fn threads(&self) -> &[u32] {
        &self.threads
    }

    fn next_piece(&mut self, thread: u32, into: &mut Vec<BurstAccess>) -> Option<BurstPiece> {
        into.clear();
        let t = thread as usize;
        let (piece, accesses) = self.pieces[t].get(self.next[t])?;
        self.next[t] += 1;
        into.extend(accesses);
        Some(*piece)
    }
}

pub fn read(address: u64) -> BurstAccess {
    BurstAccess {
        address,
        bytes: 8,
        write: false,
        after: 1,
        depends: 0,
    }
}

pub fn write(address: u64) -> BurstAccess {
    BurstAccess {
        write: true,
        ..read(address)
    }
}

/// Plays a script in one window, thread n on `units[n]`; homes by first touch.
pub fn play(
    machine: &SimulatedMachine,
    script: &Script,
    units: &[u32],
    timed: bool,
) -> WindowOutcome {
    let setup = WindowSetup {
        units,
        home: &|_| None,
        next_touch: false,
        page_move: 0.0,
        group: None,
    };
    let mut simulation = Simulation::new(machine, timed).expect("a sound machine");
    let outcome = simulation.play_window(&mut script.clone(), &setup, true);
    let left = faults(&simulation.hierarchy);
    assert!(left.is_empty(), "{left:?}");
    outcome.expect("a sound script")
}
