//! Recognises in a running program what a placement names: its processes, threads and
//! regions, by the rules by which the tracer named them.
//!
//! ```text
//!  what the program does -> processes.rs   which process of the profile
//!                           threads.rs     the n-th that its creator made
//!                           exec_segments.rs  segments and stack of a program that starts
//!                           mappings.rs    mmap, brk and their like -> areas of an image
//!                           nearest.rs     area -> region, the same or the nearest
//!                           shared.rs, forks.rs
//!                           placement_index.rs  region -> runs of pages of this phase
//!                           page_runs.rs   -> the runs to be bound
//! ```
mod differences;
mod exec_segments;
mod file_names;
mod forks;
mod interval_map;
mod mappings;
mod memory_areas;
mod nearest;
mod page_runs;
mod placement_index;
mod process_image;
mod processes;
mod shared;
#[cfg(test)]
mod tests;
mod threads;

use super::guide::{
    self, ActivePhases, InitialPlacement, PageBind, PhaseChange, PlacementGuide, RecognisedRegion,
};
use crate::follow::proc_maps::MemoryMapping;
use hither_profile::{pages_around, Placement, RegionIx, ThreadIx};
use hither_sys::{Pid, Tid};
use page_runs::{changed_runs, NodeRun};
use placement_index::PlacementIndex;
use process_image::ProcessImage;
use processes::{ImageNumber, NewImage, ProcessMatches};
use shared::SharedObjects;
use std::collections::{HashMap, HashSet};
use threads::{LastMapping, MatchedThread};

/// Images that have ended and are still told of.
const ENDED_KEPT: usize = 64;

/// A placement, and what of it has been recognised so far.
pub struct ProfileGuide {
    plan: PlacementIndex,
    holding: ActivePhases,
    process_matches: ProcessMatches,
    images: HashMap<ImageNumber, ProcessImage>,
    next_image: ImageNumber,
    /// The image that a process runs.
    of_pid: HashMap<Pid, ImageNumber>,
    tasks: HashMap<Tid, MatchedThread>,
    shared: SharedObjects,
    ended: Vec<ImageNumber>,
    statistics: differences::MatchStatistics,
}

impl ProfileGuide {
    #[must_use]
    pub fn new(placement: Placement) -> ProfileGuide {
        ProfileGuide {
            plan: PlacementIndex::new(placement),
            holding: ActivePhases::default(),
            process_matches: ProcessMatches::default(),
            images: HashMap::new(),
            next_image: 0,
            of_pid: HashMap::new(),
            tasks: HashMap::new(),
            shared: SharedObjects::default(),
            ended: Vec::new(),
            statistics: differences::MatchStatistics::default(),
        }
    }

    /// A program starts in process `pid`.
    fn enter_program(
        &mut self,
        pid: Pid,
        start: &guide::ExecImage,
        root: bool,
    ) -> InitialPlacement {
        let no = self.next_image;
        self.next_image += 1;
        let parent = self.leave_program(pid, &start.executable);
        let newcomer = NewImage {
            image: no,
            parent,
            executable: &start.executable,
            rank: start.rank,
            root,
        };
        let recognised = self.process_matches.exec(&self.plan, &newcomer);
        if let Some(evicted) = recognised.and_then(|r| r.evicted) {
            if let Some(image) = self.images.get_mut(&evicted) {
                image.drop_process_match();
            }
        }
        let mut image = ProcessImage {
            process: recognised.map(|r| r.process),
            soft: recognised.is_some_and(|r| r.soft),
            executable: start.executable.clone(),
            ..ProcessImage::default()
        };
        if root {
            self.statistics.root(&start.executable, start.rank);
        }
        let binds = exec_segments::match_exec_image(&mut image, &self.plan, start);
        let thread = image.process.and_then(|p| self.plan.first_thread(p));
        self.images.insert(no, image);
        self.of_pid.insert(pid, no);
        self.tasks.insert(pid, MatchedThread::new(pid, no, thread));
        InitialPlacement {
            thread,
            cpu: thread.and_then(|t| self.plan.cpu(t, self.holding.threads)),
            binds,
        }
    }

    /// What process `pid` ran before is over. Returns which process of the profile that was.
    fn leave_program(&mut self, pid: Pid, next: &str) -> Option<hither_profile::ProcessIx> {
        self.tasks.retain(|_, task| task.pid != pid);
        let no = self.of_pid.remove(&pid)?;
        // A vforked process runs in its parent's image, which goes on.
        if self.of_pid.values().any(|other| *other == no) {
            return None;
        }
        let image = self.images.remove(&no)?;
        self.shared.ended(no);
        self.statistics.retire(&image, &self.plan);
        let process = image.process?;
        self.process_matches.end(process, no);
        if image.forked {
            self.process_matches
                .forked_calls_exec(&self.plan, process, next);
        }
        Some(process)
    }

    fn image_of(
        &mut self,
        tid: Tid,
    ) -> Option<(
        &mut ProcessImage,
        &PlacementIndex,
        &mut MatchedThread,
        &mut SharedObjects,
    )> {
        let task = self.tasks.get_mut(&tid)?;
        let image = self.images.get_mut(&task.image)?;
        Some((image, &self.plan, task, &mut self.shared))
    }

    /// The roles of the threads of an image; none where the placement has no roles.
    fn roles_alive(&self, image: ImageNumber) -> HashSet<ThreadIx> {
        if !self.plan.has_roles() {
            return HashSet::new();
        }
        let tasks = self.tasks.values().filter(|task| task.image == image);
        let threads = tasks.filter_map(|task| task.thread);
        threads.map(|thread| self.plan.role(thread)).collect()
    }

    fn forget_oldest(&mut self) {
        while self.ended.len() > ENDED_KEPT {
            let no = self.ended.remove(0);
            if let Some(image) = self.images.remove(&no) {
                self.statistics.retire(&image, &self.plan);
            }
            self.of_pid.retain(|_, other| *other != no);
        }
    }
}

impl PlacementGuide for ProfileGuide {
    fn program_started(&mut self, pid: Pid, image: &guide::ExecImage) -> InitialPlacement {
        self.enter_program(pid, image, true)
    }

    fn thread_created(&mut self, creator: Tid, tid: Tid, stack_pointer: u64) -> InitialPlacement {
        let Some(no) = self.tasks.get(&creator).map(|task| task.image) else {
            return InitialPlacement::default();
        };
        let alive = match self.tasks.get(&creator) {
            Some(task) if !task.is_next_in_order(&self.plan) => self.roles_alive(no),
            _ => HashSet::new(),
        };
        let Some(task) = self.tasks.get_mut(&creator) else {
            return InitialPlacement::default();
        };
        let pid = task.pid;
        let Some(image) = self.images.get_mut(&no) else {
            return InitialPlacement::default();
        };
        let thread = task.next_created_thread(image, &self.plan, &alive);
        self.statistics.thread(image, thread);
        self.tasks.insert(tid, MatchedThread::new(pid, no, thread));
        let binds = threads::stack(image, &self.plan, thread, stack_pointer);
        InitialPlacement {
            thread,
            cpu: thread.and_then(|t| self.plan.cpu(t, self.holding.threads)),
            binds,
        }
    }

    fn process_forked(&mut self, creator: Tid, pid: Pid, shares: bool) -> InitialPlacement {
        let Some(no) = self.tasks.get(&creator).map(|t| t.image) else {
            return InitialPlacement::default();
        };
        if let Some(old) = self.of_pid.remove(&pid) {
            self.ended.retain(|ended| *ended != old);
            if let Some(image) = self.images.remove(&old) {
                self.statistics.retire(&image, &self.plan);
            }
        }
        if shares {
            self.of_pid.insert(pid, no);
            let mut task = MatchedThread::new(pid, no, None);
            task.is_guest = true;
            self.tasks.insert(pid, task);
            return InitialPlacement::default();
        }
        let Some(parent) = self.images.get(&no) else {
            return InitialPlacement::default();
        };
        let own = self.next_image;
        self.next_image += 1;
        let process = parent.process;
        let process = process.and_then(|p| self.process_matches.fork(&self.plan, p, own));
        let mut image = ProcessImage {
            process,
            forked: true,
            ambiguous: 0,
            made: 0,
            ..parent.clone()
        };
        let binds = forks::match_copies(&mut image, &self.plan);
        self.shared.forked(no, own);
        let thread = process.and_then(|p| self.plan.first_thread(p));
        self.images.insert(own, image);
        self.of_pid.insert(pid, own);
        self.tasks.insert(pid, MatchedThread::new(pid, own, thread));
        InitialPlacement {
            thread,
            cpu: thread.and_then(|t| self.plan.cpu(t, self.holding.threads)),
            binds,
        }
    }

    fn process_execed(
        &mut self,
        pid: Pid,
        _tid: Tid,
        image: &guide::ExecImage,
    ) -> InitialPlacement {
        self.enter_program(pid, image, false)
    }

    fn thread_ended(&mut self, tid: Tid) {
        let Some(task) = self.tasks.remove(&tid) else {
            return;
        };
        let mut left = self
            .tasks
            .values()
            .filter(|other| other.image == task.image);
        if let Some(other) = left.next() {
            let own = other.pid == task.pid || left.any(|other| other.pid == task.pid);
            if !own {
                // A vforked process that never called exec.
                self.of_pid.remove(&task.pid);
            }
            return;
        }
        let image = self.images.get(&task.image);
        if let Some(process) = image.and_then(|i| i.process) {
            self.process_matches.end(process, task.image);
        }
        self.shared.ended(task.image);
        self.ended.push(task.image);
        self.forget_oldest();
    }

    fn mapped(&mut self, tid: Tid, mapping: &MemoryMapping) -> Vec<PageBind> {
        let Some((image, plan, task, shared)) = self.image_of(tid) else {
            return Vec::new();
        };
        task.fresh = None;
        let (start, end) = pages_around(mapping.address, mapping.length);
        if start >= end {
            return Vec::new();
        }
        mappings::unmap_under(image, start, end);
        if task.is_guest {
            return Vec::new();
        }
        if mappings::is_shared(mapping) {
            return shared.map(image, task.image, plan, mapping);
        }
        let ordinal = task.next_ordinal(end - start);
        let binds = mappings::map_private(image, plan, task.thread, ordinal, mapping);
        task.fresh = LastMapping::of(image, start, end);
        binds
    }

    fn unmapped(&mut self, tid: Tid, address: u64, length: u64) -> Vec<PageBind> {
        let Some((image, plan, task, _)) = self.image_of(tid) else {
            return Vec::new();
        };
        let fresh = task.fresh.take();
        mappings::unmap(image, address, length);
        let (start, end) = pages_around(address, length);
        match fresh.and_then(|f| f.trimmed(image, plan, start, end)) {
            Some(area) => image.bind_thing(plan, area),
            None => Vec::new(),
        }
    }

    fn remapped(&mut self, tid: Tid, old: (u64, u64), new: (u64, u64)) -> Vec<PageBind> {
        let Some((image, plan, task, _)) = self.image_of(tid) else {
            return Vec::new();
        };
        task.fresh = None;
        mappings::remap(image, plan, old, new)
    }

    fn heap_moved(&mut self, tid: Tid, end: u64) -> Vec<PageBind> {
        let Some((image, plan, ..)) = self.image_of(tid) else {
            return Vec::new();
        };
        mappings::brk(image, plan, end)
    }

    fn phase_count(&self) -> usize {
        self.plan.phases()
    }

    fn enter_phases(&mut self, holding: ActivePhases) -> PhaseChange {
        let last = self.plan.phases().saturating_sub(1);
        let phase = holding.threads.min(last);
        let before = std::mem::replace(&mut self.holding, holding)
            .threads
            .min(last);
        let old = self.plan.enter_phase(holding.pages);
        let changed = |(region, old): (RegionIx, Vec<NodeRun>)| {
            let new = changed_runs(&old, self.plan.runs(region));
            (region, new)
        };
        let changed: Vec<_> = old.into_iter().map(changed).collect();
        let mut pages = Vec::new();
        let mut pids: Vec<(&Pid, &ImageNumber)> = self.of_pid.iter().collect();
        pids.sort_unstable();
        let mut told: HashSet<ImageNumber> = self.ended.iter().copied().collect();
        for (pid, no) in pids {
            // A vforked process has the image of its parent.
            if !told.insert(*no) {
                continue;
            }
            let binds = self.images.get(no).map(|i| i.changed_binds(&changed));
            let binds = binds.filter(|b| !b.is_empty());
            pages.extend(binds.map(|binds| (*pid, binds)));
        }
        let moves = |(tid, task): (&Tid, &MatchedThread)| {
            let thread = task.thread?;
            let cpu = self.plan.cpu(thread, phase)?;
            (self.plan.cpu(thread, before) != Some(cpu)).then_some((*tid, cpu))
        };
        let mut threads: Vec<_> = self.tasks.iter().filter_map(moves).collect();
        threads.sort_unstable();
        PhaseChange { threads, pages }
    }

    fn recognised_regions(&self, pid: Pid) -> Vec<RecognisedRegion> {
        let image = self.of_pid.get(&pid).and_then(|no| self.images.get(no));
        image.map_or_else(Vec::new, |image| image.recognised_regions(&self.plan, pid))
    }

    fn smallest_mapping(&self) -> Option<u64> {
        self.plan.smallest_mapping()
    }

    fn notes(&self) -> Vec<String> {
        self.statistics
            .notes(&self.plan, &self.process_matches, self.images.values())
    }
}
