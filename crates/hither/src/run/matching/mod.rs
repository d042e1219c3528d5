//! Recognises in a running program what a placement names: its processes, threads and
//! regions, by the rules by which the tracer named them.
//!
//! ```text
//!  what the program does -> processes.rs   which process of the profile
//!                           threads        the n-th that its creator made
//!                           start.rs       segments and stack of a program that starts
//!                           mappings.rs    mmap, brk and their kin -> things in an image
//!                           nearest.rs     thing -> region, the same or the nearest
//!                           shared.rs, forks.rs
//!                           plan.rs        region -> runs of pages of this phase
//!                           runs.rs        -> what is to be bound
//! ```
mod forks;
mod image;
mod mappings;
mod names;
mod nearest;
mod notes;
mod plan;
mod processes;
mod runs;
mod shared;
mod space;
mod start;
#[cfg(test)]
mod tests;
mod things;
mod threads;

use super::guide::{self, Bind, Change, Found, Guide, Holding, Seat};
use crate::follow::proc_maps::Mapping;
use hither_profile::{Placement, RegionIx};
use hither_sys::{Pid, Tid};
use image::Image;
use plan::Plan;
use processes::{ImageNo, Newcomer, Roster};
use runs::{changes, Run};
use shared::Shared;
use std::collections::{HashMap, HashSet};
use threads::{Fresh, Task};

/// Images that have ended and are still told of.
const ENDED_KEPT: usize = 64;

/// A placement, and what of it has been recognised so far.
pub struct Recogniser {
    plan: Plan,
    holding: Holding,
    roster: Roster,
    images: HashMap<ImageNo, Image>,
    next_image: ImageNo,
    /// The image that a process runs.
    of_pid: HashMap<Pid, ImageNo>,
    tasks: HashMap<Tid, Task>,
    shared: Shared,
    ended: Vec<ImageNo>,
    tally: notes::Tally,
}

impl Recogniser {
    #[must_use]
    pub fn new(placement: Placement) -> Recogniser {
        Recogniser {
            plan: Plan::new(placement),
            holding: Holding::default(),
            roster: Roster::default(),
            images: HashMap::new(),
            next_image: 0,
            of_pid: HashMap::new(),
            tasks: HashMap::new(),
            shared: Shared::default(),
            ended: Vec::new(),
            tally: notes::Tally::default(),
        }
    }

    /// A program starts in process `pid`.
    fn enter_program(&mut self, pid: Pid, start: &guide::Image, root: bool) -> Seat {
        let no = self.next_image;
        self.next_image += 1;
        let parent = self.leave_program(pid, &start.executable);
        let newcomer = Newcomer {
            image: no,
            parent,
            executable: &start.executable,
            rank: start.rank,
            root,
        };
        let recognised = self.roster.exec(&self.plan, &newcomer);
        if let Some(evicted) = recognised.and_then(|r| r.evicted) {
            if let Some(image) = self.images.get_mut(&evicted) {
                image.forget();
            }
        }
        let mut image = Image {
            process: recognised.map(|r| r.process),
            soft: recognised.is_some_and(|r| r.soft),
            executable: start.executable.clone(),
            ..Image::default()
        };
        if root {
            self.tally.root(&start.executable, start.rank);
        }
        let binds = start::enter(&mut image, &self.plan, start);
        let thread = image.process.and_then(|p| self.plan.first_thread(p));
        self.images.insert(no, image);
        self.of_pid.insert(pid, no);
        self.tasks.insert(pid, Task::new(pid, no, thread));
        Seat {
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
        self.tally.retire(&image, &self.plan);
        let process = image.process?;
        self.roster.end(process, no);
        if image.forked {
            self.roster.forked_calls_exec(&self.plan, process, next);
        }
        Some(process)
    }

    fn image_of(&mut self, tid: Tid) -> Option<(&mut Image, &Plan, &mut Task, &mut Shared)> {
        let task = self.tasks.get_mut(&tid)?;
        let image = self.images.get_mut(&task.image)?;
        Some((image, &self.plan, task, &mut self.shared))
    }

    fn forget_oldest(&mut self) {
        while self.ended.len() > ENDED_KEPT {
            let no = self.ended.remove(0);
            if let Some(image) = self.images.remove(&no) {
                self.tally.retire(&image, &self.plan);
            }
            self.of_pid.retain(|_, other| *other != no);
        }
    }
}

impl Guide for Recogniser {
    fn started(&mut self, pid: Pid, image: &guide::Image) -> Seat {
        self.enter_program(pid, image, true)
    }

    fn thread(&mut self, creator: Tid, tid: Tid, stack_pointer: u64) -> Seat {
        let Some(task) = self.tasks.get_mut(&creator) else {
            return Seat::default();
        };
        let (no, pid) = (task.image, task.pid);
        let Some(image) = self.images.get_mut(&no) else {
            return Seat::default();
        };
        let thread = task.makes(image, &self.plan);
        self.tally.thread(image, thread);
        self.tasks.insert(tid, Task::new(pid, no, thread));
        let binds = threads::stack(image, &self.plan, thread, stack_pointer);
        Seat {
            thread,
            cpu: thread.and_then(|t| self.plan.cpu(t, self.holding.threads)),
            binds,
        }
    }

    fn forked(&mut self, creator: Tid, pid: Pid, shares: bool) -> Seat {
        let Some(no) = self.tasks.get(&creator).map(|t| t.image) else {
            return Seat::default();
        };
        if let Some(old) = self.of_pid.remove(&pid) {
            self.ended.retain(|ended| *ended != old);
            if let Some(image) = self.images.remove(&old) {
                self.tally.retire(&image, &self.plan);
            }
        }
        if shares {
            self.of_pid.insert(pid, no);
            let mut task = Task::new(pid, no, None);
            task.is_guest = true;
            self.tasks.insert(pid, task);
            return Seat::default();
        }
        let Some(parent) = self.images.get(&no) else {
            return Seat::default();
        };
        let own = self.next_image;
        self.next_image += 1;
        let process = parent.process;
        let process = process.and_then(|p| self.roster.fork(&self.plan, p, own));
        let mut image = Image {
            process,
            forked: true,
            ambiguous: 0,
            made: 0,
            ..parent.clone()
        };
        let binds = forks::enter(&mut image, &self.plan);
        self.shared.forked(no, own);
        let thread = process.and_then(|p| self.plan.first_thread(p));
        self.images.insert(own, image);
        self.of_pid.insert(pid, own);
        self.tasks.insert(pid, Task::new(pid, own, thread));
        Seat {
            thread,
            cpu: thread.and_then(|t| self.plan.cpu(t, self.holding.threads)),
            binds,
        }
    }

    fn execed(&mut self, pid: Pid, _tid: Tid, image: &guide::Image) -> Seat {
        self.enter_program(pid, image, false)
    }

    fn ended(&mut self, tid: Tid) {
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
            self.roster.end(process, task.image);
        }
        self.shared.ended(task.image);
        self.ended.push(task.image);
        self.forget_oldest();
    }

    fn mapped(&mut self, tid: Tid, mapping: &Mapping) -> Vec<Bind> {
        let Some((image, plan, task, shared)) = self.image_of(tid) else {
            return Vec::new();
        };
        task.fresh = None;
        let (start, end) = mappings::pages(mapping.address, mapping.length);
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
        let ordinal = task.count(end - start);
        let binds = mappings::private(image, plan, task.thread, ordinal, mapping);
        task.fresh = Fresh::of(image, start, end);
        binds
    }

    fn unmapped(&mut self, tid: Tid, address: u64, length: u64) -> Vec<Bind> {
        let Some((image, plan, task, _)) = self.image_of(tid) else {
            return Vec::new();
        };
        let fresh = task.fresh.take();
        mappings::unmap(image, address, length);
        let (start, end) = mappings::pages(address, length);
        match fresh.and_then(|f| f.trimmed(image, plan, start, end)) {
            Some(thing) => image.bind_thing(plan, thing),
            None => Vec::new(),
        }
    }

    fn remapped(&mut self, tid: Tid, old: (u64, u64), new: (u64, u64)) -> Vec<Bind> {
        let Some((image, plan, task, _)) = self.image_of(tid) else {
            return Vec::new();
        };
        task.fresh = None;
        mappings::remap(image, plan, old, new)
    }

    fn brk(&mut self, tid: Tid, end: u64) -> Vec<Bind> {
        let Some((image, plan, ..)) = self.image_of(tid) else {
            return Vec::new();
        };
        mappings::brk(image, plan, end)
    }

    fn phases(&self) -> usize {
        self.plan.phases()
    }

    fn enter(&mut self, holding: Holding) -> Change {
        let last = self.plan.phases().saturating_sub(1);
        let phase = holding.threads.min(last);
        let before = std::mem::replace(&mut self.holding, holding)
            .threads
            .min(last);
        let old = self.plan.enter(holding.pages);
        let changed = |(region, old): (RegionIx, Vec<Run>)| {
            let new = changes(&old, self.plan.runs(region));
            (region, new)
        };
        let changed: Vec<_> = old.into_iter().map(changed).collect();
        let mut pages = Vec::new();
        let mut pids: Vec<(&Pid, &ImageNo)> = self.of_pid.iter().collect();
        pids.sort_unstable();
        let mut told: HashSet<ImageNo> = self.ended.iter().copied().collect();
        for (pid, no) in pids {
            // A vforked process has the image of its parent.
            if !told.insert(*no) {
                continue;
            }
            let binds = self.images.get(no).map(|i| i.rebind(&changed));
            let binds = binds.filter(|b| !b.is_empty());
            pages.extend(binds.map(|binds| (*pid, binds)));
        }
        let moves = |(tid, task): (&Tid, &Task)| {
            let thread = task.thread?;
            let cpu = self.plan.cpu(thread, phase)?;
            (self.plan.cpu(thread, before) != Some(cpu)).then_some((*tid, cpu))
        };
        let mut threads: Vec<_> = self.tasks.iter().filter_map(moves).collect();
        threads.sort_unstable();
        Change { threads, pages }
    }

    fn found(&self, pid: Pid) -> Vec<Found> {
        let image = self.of_pid.get(&pid).and_then(|no| self.images.get(no));
        image.map_or_else(Vec::new, |image| image.found(&self.plan, pid))
    }

    fn smallest_mapping(&self) -> Option<u64> {
        self.plan.smallest_mapping()
    }

    fn notes(&self) -> Vec<String> {
        self.tally
            .notes(&self.plan, &self.roster, self.images.values())
    }
}
