//! A placement made ready for look-ups: what a region, a thread or a process
//! is known by -> its number in the placement, and where it belongs in a phase.
use super::file_names::{file_name, skeleton};
use super::page_runs::{coarsen, count_stretches, overlay, NodeRun};
use hither_profile::{
    Placement, ProcessIdentity, ProcessIx, RegionIdentity, RegionIx, RegionKind, RegionPlacement,
    ThreadIdentity, ThreadIx, PAGE_SIZE,
};
use hither_sys::{Cpu, Node};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Below this many bytes a mapping is taken for another one only when it is the same.
pub const SMALLEST_NEAREST: u64 = 64 << 10;
/// Areas that one region and one process may be split into: the kernel allows a process
/// 65530 (vm.max_map_count), and each costs a system call.
const MOST_OF_REGION: usize = 4096;
const MOST_OF_PROCESS: usize = 32_768;

/// Pages in a region of the placement.
pub fn pages_of(region: &RegionIdentity) -> u64 {
    region.size.div_ceil(PAGE_SIZE)
}

/// A mapping as the tracer numbers it: process and thread that made it, pages, and its number
/// among those that this thread made with as many pages.
pub type MappingKey = (ProcessIx, ThreadIx, u64, u32);

#[derive(Default)]
struct PhaseStep {
    threads: HashMap<ThreadIx, Cpu>,
    /// By region, in order.
    pages: Vec<(RegionIx, Vec<NodeRun>)>,
}

#[derive(Default)]
pub struct PlacementIndex {
    pub processes: Vec<ProcessIdentity>,
    pub threads: Vec<ThreadIdentity>,
    pub regions: Vec<RegionIdentity>,
    steps: Vec<PhaseStep>,
    /// By region, in the phase that holds.
    now: Vec<Vec<NodeRun>>,
    /// First page that any phase places, by region.
    first: Vec<u64>,
    mappings: HashMap<MappingKey, RegionIx>,
    /// By process, in order of appearance.
    of_process: HashMap<ProcessIx, Vec<RegionIx>>,
    stacks: HashMap<ThreadIx, RegionIx>,
    shared: HashMap<String, Vec<RegionIx>>,
    made: HashMap<(ThreadIx, u32), ThreadIx>,
    /// Roles that several threads had, as their first threads, by the role of the creator.
    roles: HashMap<ThreadIx, BTreeSet<ThreadIx>>,
    of_its_process: HashMap<ProcessIx, Vec<ThreadIx>>,
    most_of_region: Vec<usize>,
    /// Regions that were placed in blocks: runs asked for, pages of a block.
    pub coarse: HashMap<RegionIx, (usize, u64)>,
}

impl PlacementIndex {
    pub fn new(placement: Placement) -> PlacementIndex {
        let nodes = placement.machine.nodes;
        let mut plan = PlacementIndex {
            now: vec![Vec::new(); placement.regions.len()],
            first: vec![u64::MAX; placement.regions.len()],
            processes: placement.processes,
            threads: placement.threads,
            regions: placement.regions,
            ..PlacementIndex::default()
        };
        for phase in placement.phases {
            let threads = phase
                .threads
                .iter()
                .map(|t| (t.thread(), Cpu(t.os_index())));
            let pages = phase
                .pages
                .iter()
                .map(|p| (RegionIx(p.region), runs(p, &nodes)));
            plan.steps.push(PhaseStep {
                threads: threads.collect(),
                pages: pages.collect(),
            });
        }
        for (region, runs) in plan.steps.iter().flat_map(|s| &s.pages) {
            let first = runs.first().map_or(u64::MAX, |r| r.first);
            plan.first[region.at()] = plan.first[region.at()].min(first);
        }
        plan.name_threads();
        plan.name_regions();
        plan.limit_areas();
        plan.enter_phase(0);
        plan
    }

    fn name_threads(&mut self) {
        for (at, thread) in (0..).map(ThreadIx).zip(&self.threads) {
            if let Some(creator) = thread.creator {
                self.made.entry((creator, thread.order)).or_insert(at);
                if let Some(role) = thread.role {
                    let parent = self.threads[creator.at()].role.unwrap_or(creator);
                    self.roles.entry(parent).or_default().insert(role);
                }
            }
            self.of_its_process
                .entry(thread.process)
                .or_default()
                .push(at);
        }
    }

    fn name_regions(&mut self) {
        for (at, region) in (0..).map(RegionIx).zip(&self.regions) {
            self.of_process.entry(region.process).or_default().push(at);
            if region.kind == RegionKind::Shared {
                let name = skeleton(&region.file);
                self.shared.entry(name).or_default().push(at);
            }
            let Some(thread) = region.thread else {
                continue;
            };
            let mapper = match region.kind {
                RegionKind::Mmap => Some(thread),
                // Its creator maps a thread's stack.
                RegionKind::Stack => {
                    self.stacks.entry(thread).or_insert(at);
                    self.threads[thread.at()].creator
                }
                _ => None,
            };
            if let Some(mapper) = mapper {
                let key = (region.process, mapper, pages_of(region), region.ordinal);
                self.mappings.entry(key).or_insert(at);
            }
        }
    }

    /// Shares out the areas that a process may be split into.
    fn limit_areas(&mut self) {
        let mut asked = vec![0; self.regions.len()];
        for (region, runs) in self.steps.iter().flat_map(|s| &s.pages) {
            let asked: &mut usize = &mut asked[region.at()];
            *asked = (*asked).max(count_stretches(runs)).min(MOST_OF_REGION);
        }
        let mut of_process: HashMap<ProcessIx, usize> = HashMap::new();
        for (region, asked) in self.regions.iter().zip(&asked) {
            *of_process.entry(region.process).or_default() += asked;
        }
        let share = |(region, asked): (&RegionIdentity, usize)| {
            let all = of_process[&region.process];
            match all > MOST_OF_PROCESS {
                true => (asked * MOST_OF_PROCESS / all).max(1),
                false => MOST_OF_REGION,
            }
        };
        self.most_of_region = self.regions.iter().zip(asked).map(share).collect();
    }

    pub fn phases(&self) -> usize {
        self.steps.len()
    }

    /// Where a thread runs in a phase.
    pub fn cpu(&self, thread: ThreadIx, phase: usize) -> Option<Cpu> {
        let last = self.steps.len().checked_sub(1)?;
        self.steps
            .get(phase.min(last))?
            .threads
            .get(&thread)
            .copied()
    }

    pub fn places_threads(&self) -> bool {
        self.steps.iter().any(|s| !s.threads.is_empty())
    }

    /// Where the pages of a region belong in the phase that holds.
    pub fn runs(&self, region: RegionIx) -> &[NodeRun] {
        self.now.get(region.at()).map_or(&[], Vec::as_slice)
    }

    /// First page that any phase places; `None` where there is none.
    pub fn first_page(&self, region: RegionIx) -> Option<u64> {
        let first = self.first.get(region.at()).copied();
        first.filter(|first| *first != u64::MAX)
    }

    /// From here on pages lie as the moves of all phases up to `phase` leave them. Returns the
    /// regions for which that is a change, each with what held before.
    pub fn enter_phase(&mut self, phase: usize) -> Vec<(RegionIx, Vec<NodeRun>)> {
        let last = phase.min(self.steps.len().saturating_sub(1));
        let mut then: HashMap<RegionIx, Vec<NodeRun>> = HashMap::new();
        for (region, runs) in self.steps.iter().take(last + 1).flat_map(|s| &s.pages) {
            let under = then.entry(*region).or_default();
            *under = overlay(under, runs);
        }
        let mut before = Vec::new();
        for (region, runs) in then {
            let runs = self.bounded(region, runs);
            if self.now[region.at()] != runs {
                let old = std::mem::replace(&mut self.now[region.at()], runs);
                before.push((region, old));
            }
        }
        before.sort_unstable_by_key(|(region, _)| *region);
        before
    }

    fn bounded(&mut self, region: RegionIx, runs: Vec<NodeRun>) -> Vec<NodeRun> {
        let most = self.most_of_region.get(region.at()).copied();
        if count_stretches(&runs) <= most.unwrap_or(MOST_OF_REGION) {
            return runs;
        }
        let (blocks, pages) = coarsen(&runs, most.unwrap_or(MOST_OF_REGION));
        let seen = self.coarse.entry(region).or_default();
        *seen = (*seen).max((count_stretches(&runs), pages));
        blocks
    }

    pub fn region(&self, region: RegionIx) -> &RegionIdentity {
        &self.regions[region.at()]
    }

    pub fn mapping(&self, key: &MappingKey) -> Option<RegionIx> {
        self.mappings.get(key).copied()
    }

    /// The regions of a process, in order of appearance.
    pub fn regions_of(&self, process: ProcessIx) -> impl Iterator<Item = RegionIx> + '_ {
        self.of_process.get(&process).into_iter().flatten().copied()
    }

    /// The stack of the first thread of a program.
    pub fn main_stack(&self, process: ProcessIx) -> Option<RegionIx> {
        self.regions_of(process).find(|at| {
            let region = self.region(*at);
            let made = region.thread.and_then(|t| self.threads[t.at()].creator);
            region.kind == RegionKind::Stack && region.ordinal == 0 && made.is_none()
        })
    }

    pub fn stack(&self, thread: ThreadIx) -> Option<RegionIx> {
        self.stacks.get(&thread).copied()
    }

    /// Shared regions whose names differ from this one in numbers at most.
    pub fn similar_shared_regions(&self, path: &str) -> &[RegionIx] {
        self.shared.get(&skeleton(path)).map_or(&[], Vec::as_slice)
    }

    /// The first thread of a process.
    pub fn first_thread(&self, process: ProcessIx) -> Option<ThreadIx> {
        let mut threads = self.of_its_process.get(&process)?.iter().copied();
        threads.find(|t| self.threads[t.at()].creator.is_none())
    }

    /// The n-th thread, from 0, that `creator` made.
    pub fn nth_created_thread(&self, creator: ThreadIx, order: u32) -> Option<ThreadIx> {
        self.made.get(&(creator, order)).copied()
    }

    /// Whether threads have followed one another in any role.
    pub fn has_roles(&self) -> bool {
        !self.roles.is_empty()
    }

    /// The first thread of the role that a thread has in the placement.
    pub fn role(&self, thread: ThreadIx) -> ThreadIx {
        self.threads[thread.at()].role.unwrap_or(thread)
    }

    /// Of the roles that threads had one after the other whom `creator` made, the first that is not
    /// among those `alive`.
    pub fn free_role(&self, creator: ThreadIx, alive: &HashSet<ThreadIx>) -> Option<ThreadIx> {
        let roles = self.roles.get(&self.role(creator))?;
        roles.iter().copied().find(|role| !alive.contains(role))
    }

    /// The n-th thread, from 0, that was made in a process at all.
    pub fn nth_thread(&self, process: ProcessIx, n: usize) -> Option<ThreadIx> {
        let threads = self.of_its_process.get(&process)?.iter().copied();
        let mut made = threads.filter(|t| self.threads[t.at()].creator.is_some());
        made.nth(n)
    }

    /// The shortest mapping in bytes that is worth looking at.
    pub fn smallest_mapping(&self) -> Option<u64> {
        let placed = (0..).map(RegionIx).zip(&self.regions);
        let placed = placed.filter(|(at, _)| self.first_page(*at).is_some());
        let worth = |region: &RegionIdentity| match region.kind {
            RegionKind::Mmap | RegionKind::Stack | RegionKind::Shared => {
                let length = pages_of(region) * PAGE_SIZE;
                length.min((length / 16).max(SMALLEST_NEAREST))
            }
            // Files and the end of the heap are looked at always.
            RegionKind::Elf | RegionKind::Brk => 1 << 47,
            RegionKind::Other => u64::MAX,
        };
        let shortest = placed.map(|(_, region)| worth(region)).min();
        shortest.filter(|length| *length != u64::MAX)
    }

    /// Programs of the processes that something is placed for, by base name.
    pub fn placed_programs(&self) -> BTreeSet<&str> {
        let threads = self.steps.iter().flat_map(|s| s.threads.keys());
        let of_threads = threads.map(|t| self.threads[t.at()].process);
        let placed = (0..).map(RegionIx).zip(&self.regions);
        let placed = placed.filter(|(at, _)| self.first_page(*at).is_some());
        let processes = of_threads.chain(placed.map(|(_, r)| r.process));
        processes
            .map(|p| file_name(&self.processes[p.at()].executable))
            .collect()
    }
}

fn runs(places: &RegionPlacement, nodes: &[u32]) -> Vec<NodeRun> {
    let run = |run: &hither_profile::PageRun| {
        let node = *nodes.get(run.node().at())?;
        Some(NodeRun {
            first: run.first(),
            end: run.first().saturating_add(run.pages()),
            node: Node(node),
        })
    };
    places.runs.iter().filter_map(run).collect()
}
