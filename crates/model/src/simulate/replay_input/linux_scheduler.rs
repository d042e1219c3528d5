//! Linux's scheduling of threads that are not placed: a new one goes to the idlest package, in it
//! to the idlest cache, core and sibling (`find_idlest_group`, `find_idlest_cpu`); later it may
//! migrate, to an idle core if there is one.
//!
//! Which of several equally idle parts is chosen depends on everything else that runs, so it is
//! random here.
use crate::rng::Rng;
use crate::topology::TopologyTree;

/// Threads on units, and the random generator.
#[derive(Clone, Debug)]
pub struct LinuxScheduler<'a> {
    tree: &'a TopologyTree,
    /// Threads on each unit.
    on: Vec<u32>,
    chance: Rng,
}

impl<'a> LinuxScheduler<'a> {
    /// A scheduler with all units of the machine idle.
    #[must_use]
    pub fn new(tree: &'a TopologyTree, seed: u64) -> Self {
        LinuxScheduler {
            tree,
            on: vec![0; tree.units.len()],
            chance: Rng::new(seed),
        }
    }

    /// A thread that is on a unit already.
    pub fn add_running(&mut self, unit: u32) {
        if let Some(threads) = self.on.get_mut(unit as usize) {
            *threads += 1;
        }
    }

    /// Places a new thread where the load is lowest.
    pub fn place_thread(&mut self) -> u32 {
        let mut at = 0u32;
        loop {
            let vertex = &self.tree.vertices[at as usize];
            if vertex.children.is_empty() {
                let unit = vertex.units.start;
                self.add_running(unit);
                return unit;
            }
            let idlest = self.idlest_groups(&vertex.children);
            at = idlest[self.chance.below(idlest.len())];
        }
    }

    /// Those with the fewest threads for their units.
    fn idlest_groups(&self, children: &[u32]) -> Vec<u32> {
        // Loads are fractions: threads of one times units of the other are compared.
        let load = |child: u32| {
            let units = self.tree.vertices[child as usize].units.clone();
            let threads = units
                .clone()
                .map(|u| u64::from(self.on[u as usize]))
                .sum::<u64>();
            (threads, units.len() as u64)
        };
        let mut least: Vec<u32> = Vec::new();
        let mut lowest = (u64::MAX, 1);
        for &child in children {
            let (threads, units) = load(child);
            let (a, b) = (
                u128::from(threads) * u128::from(lowest.1),
                u128::from(lowest.0) * u128::from(units),
            );
            if a < b {
                least.clear();
                lowest = (threads, units);
            }
            if a <= b {
                least.push(child);
            }
        }
        least
    }

    /// Moves each of these threads with a probability: to an idle core, else to a unit that has
    /// no more threads than its own; where there is none it changes places with another.
    pub fn migrate(&mut self, units: &mut [u32], threads: &[usize], probability: f64) {
        for &thread in threads {
            if !self.chance.happens(probability) {
                continue;
            }
            let from = units[thread];
            self.on[from as usize] -= 1;
            let idle = self.migration_targets(from);
            if idle.is_empty() {
                self.on[from as usize] += 1;
                let other = threads[self.chance.below(threads.len())];
                units.swap(thread, other);
            } else {
                let to = idle[self.chance.below(idle.len())];
                self.add_running(to);
                units[thread] = to;
            }
        }
    }

    /// Units to go to from one that has just been left, the idlest by core.
    fn migration_targets(&self, from: u32) -> Vec<u32> {
        let units = &self.tree.units;
        let mut on_core = vec![0u32; self.tree.core_count()];
        for (unit, threads) in units.iter().zip(&self.on) {
            on_core[unit.core as usize] += threads;
        }
        let load = |at: u32| {
            (
                on_core[units[at as usize].core as usize],
                self.on[at as usize],
            )
        };
        let all = (0..units.len() as u32).filter(|at| *at != from);
        let least = all.clone().map(load).min();
        let least = least.filter(|least| *least <= load(from));
        all.filter(|at| Some(load(*at)) == least).collect()
    }
}
