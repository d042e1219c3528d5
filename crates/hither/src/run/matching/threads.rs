//! Which thread of the profile a thread of this run is, and what it maps.
use super::memory_areas::{MemoryArea, RegionMatch};
use super::page_runs::{RegionFit, PAGE_BITS};
use super::placement_index::{pages_of, PlacementIndex};
use super::process_image::ProcessImage;
use crate::run::guide::PageBind;
use hither_profile::{RegionIx, RegionKind, ThreadIx};
use hither_sys::Pid;
use std::collections::{HashMap, HashSet};

/// A thread of this run.
pub struct MatchedThread {
    pub pid: Pid,
    pub image: usize,
    pub thread: Option<ThreadIx>,
    /// It runs in the memory of the process that made it, until it calls exec.
    pub is_guest: bool,
    /// Threads it made so far.
    made: u32,
    /// Mappings it made so far, by pages.
    ordinals: HashMap<u64, u32>,
    pub fresh: Option<LastMapping>,
}

impl MatchedThread {
    pub fn new(pid: Pid, image: usize, thread: Option<ThreadIx>) -> MatchedThread {
        MatchedThread {
            pid,
            image,
            thread,
            is_guest: false,
            made: 0,
            ordinals: HashMap::new(),
            fresh: None,
        }
    }

    /// The number of its next mapping of this many pages.
    pub fn next_ordinal(&mut self, pages: u64) -> u32 {
        let next = self.ordinals.entry(pages).or_insert(0);
        let ordinal = *next;
        *next = next.saturating_add(1);
        ordinal
    }

    /// Whether the next one that it makes has its place by the order in which it makes them: then it need
    /// not be known who lives.
    pub fn is_next_in_order(&self, plan: &PlacementIndex) -> bool {
        let nth = |creator, order| plan.nth_created_thread(creator, order).is_some();
        let creator = self.thread.filter(|creator| nth(*creator, 0));
        creator.is_none_or(|creator| nth(creator, self.made))
    }

    /// The thread of the profile that the next one it makes is: the n-th that it made
    /// there or, where it made none, the n-th of the process. Where it makes more than there, one takes
    /// the first role of those that followed one another there that no thread of `alive` has.
    pub fn next_created_thread(
        &mut self,
        image: &mut ProcessImage,
        plan: &PlacementIndex,
        alive: &HashSet<ThreadIx>,
    ) -> Option<ThreadIx> {
        let (order, nth) = (self.made, image.made);
        self.made += 1;
        image.made += 1;
        let creates = |creator: &ThreadIx| plan.nth_created_thread(*creator, 0).is_some();
        match self.thread.filter(creates) {
            Some(creator) => plan
                .nth_created_thread(creator, order)
                .or_else(|| plan.free_role(creator, alive)),
            None => plan.nth_thread(image.process?, nth),
        }
    }
}

/// A thread starts with its stack pointer here: what it points into is its stack, if that
/// is not known to be something else.
pub fn stack(
    image: &mut ProcessImage,
    plan: &PlacementIndex,
    thread: Option<ThreadIx>,
    stack_pointer: u64,
) -> Vec<PageBind> {
    let region = thread.and_then(|t| plan.stack(t));
    let below = stack_pointer.checked_sub(1);
    let here = below.and_then(|at| image.space.at(at >> PAGE_BITS));
    let Some((region, here)) = region.zip(here) else {
        return Vec::new();
    };
    let MemoryArea {
        kind, claim, pages, ..
    } = image.areas[here.area];
    let known = claim.is_some_and(|c| !c.nearest);
    if kind != RegionKind::Mmap || known || !image.is_free(region) {
        return Vec::new();
    }
    // Stacks of different lengths are alike from their tops on.
    let then = pages_of(plan.region(region));
    let claim = RegionMatch {
        region,
        fit: RegionFit::Shift(pages.cast_signed() - then.cast_signed()),
        nearest: pages != then,
    };
    image.set_match(here.area, claim);
    image.bind_thing(plan, here.area)
}

/// The last mapping of a thread, while it has done nothing else to its memory. Where the
/// next thing it does is to give a part back, it wanted an address with many zeros.
pub struct LastMapping {
    area: usize,
    start: u64,
    end: u64,
    region: RegionIx,
}

impl LastMapping {
    /// Pages [start, end), just mapped.
    pub fn of(image: &ProcessImage, start: u64, end: u64) -> Option<LastMapping> {
        let here = image.space.at(start)?;
        let area = &image.areas[here.area];
        let region = area.claim?.region;
        let anonymous = area.kind == RegionKind::Mmap && area.file.is_empty();
        anonymous.then_some(LastMapping {
            area: here.area,
            start,
            end,
            region,
        })
    }

    /// Pages [start, end) were given back: what is left starts with the first page that
    /// the profile places. Returns what has to be bound again.
    pub fn trimmed(
        &self,
        image: &mut ProcessImage,
        plan: &PlacementIndex,
        start: u64,
        end: u64,
    ) -> Option<usize> {
        let mut claim = image.areas.get_mut(self.area)?.claim?;
        let first = plan.first_page(self.region)?;
        let head = match (start <= self.start, end >= self.end) {
            (true, false) if end > self.start => end - self.start,
            // No head: then it was given back in the profile as part of what is cut off.
            (false, true) if start < self.end && first <= self.end - start => 0,
            _ => return None,
        };
        let fit = RegionFit::Shift(head.cast_signed() - first.cast_signed());
        if claim.region != self.region || claim.fit == fit {
            return None;
        }
        claim.fit = fit;
        image.areas[self.area].claim = Some(claim);
        Some(self.area)
    }
}
