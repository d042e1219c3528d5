//! Which process of the profile a process of this run is.
use super::file_names::file_name;
use super::placement_index::PlacementIndex;
use hither_profile::ProcessIx;
use std::collections::HashMap;

/// Number of an image of this run.
pub type ImageNumber = usize;

/// An image that starts.
#[derive(Clone, Copy, Debug)]
pub struct NewImage<'a> {
    pub image: ImageNumber,
    /// What the image it was forked or exec'ed from is.
    pub parent: Option<ProcessIx>,
    pub executable: &'a str,
    pub rank: Option<u32>,
    /// The program that was asked for, not one that it starts.
    pub root: bool,
}

struct MatchedImage {
    image: ImageNumber,
    /// Matched by its place in the process tree only: an image of the right program takes over.
    soft: bool,
    ended: bool,
}

/// What [`ProcessMatches::exec`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMatch {
    pub process: ProcessIx,
    /// By its place only; the program is another.
    pub soft: bool,
    /// An image that had been taken for this process and is not.
    pub evicted: Option<ImageNumber>,
}

/// Which running process is which process of the profile.
#[derive(Default)]
pub struct ProcessMatches {
    holders: HashMap<ProcessIx, MatchedImage>,
}

/// Lower is nearer: rank, availability, parent and path, order of appearance.
type MatchDistance = (u8, u8, u8, ProcessIx);

impl ProcessMatches {
    /// A program was started by exec.
    pub fn exec(&mut self, plan: &PlacementIndex, new: &NewImage) -> Option<ProcessMatch> {
        let all = (0..).map(ProcessIx).take(plan.processes.len());
        let nearest = all.filter_map(|p| self.distance(plan, p, new)).min();
        let found = nearest.map(|(.., process)| (process, false));
        let (process, soft) = found.or_else(|| Some((self.by_place(plan, new)?, true)))?;
        let evicted = self.assign(process, new.image, soft);
        Some(ProcessMatch {
            process,
            soft,
            evicted,
        })
    }

    fn distance(
        &self,
        plan: &PlacementIndex,
        process: ProcessIx,
        new: &NewImage,
    ) -> Option<MatchDistance> {
        let known = &plan.processes[process.at()];
        if file_name(&known.executable) != file_name(new.executable) {
            return None;
        }
        let child = known.parent.is_some() && known.parent == new.parent;
        let parent = known.parent.map(|p| &plan.processes[p.at()].executable);
        // A forked copy of its parent is no program that anybody starts.
        if parent == Some(&known.executable) && !child {
            return None;
        }
        let rank = match (known.rank, new.rank) {
            (Some(a), Some(b)) if a == b => 0,
            (Some(_), Some(_)) => return None,
            _ => 1,
        };
        let path = known.executable == new.executable;
        let relation = match (child, path) {
            (true, true) => 0,
            (false, true) => 1,
            (true, false) => 2,
            (false, false) => 3,
        };
        Some((rank, self.availability(process)?, relation, process))
    }

    /// 0: matched to no process; 1: to one that has exited, as when a program is run again.
    fn availability(&self, process: ProcessIx) -> Option<u8> {
        match self.holders.get(&process) {
            None => Some(0),
            Some(holder) if holder.soft => Some(0),
            Some(holder) if holder.ended => Some(1),
            Some(_) => None,
        }
    }

    /// The process that stands where this one does: the first, or that of its rank.
    fn by_place(&self, plan: &PlacementIndex, new: &NewImage) -> Option<ProcessIx> {
        let all = (0..).map(ProcessIx).zip(&plan.processes);
        let mut free = all.filter(|(p, _)| self.availability(*p).is_some());
        let found = match new.rank {
            Some(rank) => free.find(|(_, known)| known.rank == Some(rank)),
            None => free.find(|(p, _)| new.root && p.0 == 0),
        };
        found.map(|(p, _)| p)
    }

    /// A copy of `parent`'s image was made by fork.
    pub fn fork(
        &mut self,
        plan: &PlacementIndex,
        parent: ProcessIx,
        image: ImageNumber,
    ) -> Option<ProcessIx> {
        let executable = &plan.processes[parent.at()].executable;
        let all = (0..).map(ProcessIx).zip(&plan.processes);
        let copies = all.filter(|(_, p)| p.parent == Some(parent) && p.executable == *executable);
        let free = copies.filter_map(|(p, _)| Some((self.availability(p)?, p)));
        let (_, process) = free.min()?;
        self.assign(process, image, false);
        Some(process)
    }

    fn assign(
        &mut self,
        process: ProcessIx,
        image: ImageNumber,
        soft: bool,
    ) -> Option<ImageNumber> {
        let ended = false;
        let holder = MatchedImage { image, soft, ended };
        let before = self.holders.insert(process, holder);
        before.filter(|b| !b.ended).map(|b| b.image)
    }

    /// The forked process `process` calls exec. Where it never did in the profile, or for
    /// another program, it was another process that was forked there.
    pub fn forked_calls_exec(
        &mut self,
        plan: &PlacementIndex,
        process: ProcessIx,
        executable: &str,
    ) {
        let mut children = plan.processes.iter().filter(|p| p.parent == Some(process));
        if !children.any(|child| file_name(&child.executable) == file_name(executable)) {
            self.holders.remove(&process);
        }
    }

    /// An image has ended.
    pub fn end(&mut self, process: ProcessIx, image: ImageNumber) {
        if let Some(holder) = self.holders.get_mut(&process) {
            holder.ended |= holder.image == image;
        }
    }

    /// Whether the image that was this process last was it by its place only.
    pub fn is_soft(&self, process: ProcessIx) -> bool {
        self.holders.get(&process).is_some_and(|holder| holder.soft)
    }

    /// Whether some image is or was this process.
    pub fn has_come(&self, process: ProcessIx) -> bool {
        self.holders.contains_key(&process)
    }
}
