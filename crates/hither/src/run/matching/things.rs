//! Mappings, modules, heaps and stacks by number, those kept that somebody may ask for.
use super::image::Thing;
use hither_profile::RegionKind;
use std::collections::{BTreeMap, HashSet};
use std::ops::{Index, IndexMut};

/// So many things are looked through before any is dropped.
const CROWD: usize = 1024;

#[derive(Clone, Debug, Default)]
pub struct Things {
    all: BTreeMap<usize, Thing>,
    next: usize,
    kept: usize,
}

impl Things {
    pub fn add(&mut self, thing: Thing) -> usize {
        let number = self.next;
        self.next += 1;
        self.all.insert(number, thing);
        number
    }

    pub fn remove(&mut self, number: usize) {
        self.all.remove(&number);
    }

    /// Twice as many as after the last sweep.
    pub fn is_crowded(&self) -> bool {
        self.all.len() > CROWD.max(2 * self.kept)
    }

    /// Drops what is neither live nor of the placement. Shared memory may come back.
    pub fn sweep(&mut self, live: &HashSet<usize>) {
        self.all.retain(|number, thing| {
            let lasting = matches!(thing.kind, RegionKind::Shared | RegionKind::Brk);
            lasting || thing.claim.is_some() || live.contains(number)
        });
        self.kept = self.all.len();
    }

    pub fn get_mut(&mut self, number: usize) -> Option<&mut Thing> {
        self.all.get_mut(&number)
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Thing)> {
        self.all.iter().map(|(number, thing)| (*number, thing))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Thing)> {
        self.all.iter_mut().map(|(number, thing)| (*number, thing))
    }
}

impl Index<usize> for Things {
    type Output = Thing;
    fn index(&self, number: usize) -> &Thing {
        &self.all[&number]
    }
}

impl IndexMut<usize> for Things {
    #[expect(clippy::expect_used, reason = "numbers come from `add`")]
    fn index_mut(&mut self, number: usize) -> &mut Thing {
        self.all.get_mut(&number).expect("a thing's number")
    }
}
