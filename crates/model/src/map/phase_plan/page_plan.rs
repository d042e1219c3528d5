//! Which pages move when (OPT 6.3): each by the accesses of the time until pages may move
//! again, threads being where the thread plan has them in each slice.
//!
//! The run is cut into windows of at least t_min, which begin with a thread migration where
//! one is near. In each window the data policy places the pages used in it; the others
//! stay. A page is first placed in the window of its first use, which is no move: until then
//! it has no memory. A policy that follows time, as `kmaf` does, sees one window at a time.
use super::{MigrationLimits, ThreadStage};
use crate::map::data::{
    DataPolicy, DataProblem, FirstAccess, PageSliceUse, PlaceablePage, PlaceablePages,
};
use hither_profile::{Nanos, NodeIx, Slice, SliceIx, ThreadIx};
use std::collections::BTreeSet;
use std::ops::Range;

/// What happens to pages at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageStep {
    /// The slice in which the step is decided.
    pub slice: SliceIx,
    /// Its start, ns since the start of the run.
    pub start: Nanos,
    /// Pages used from here on for the first time, and where they belong.
    pub placed: Vec<(usize, NodeIx)>,
    /// Pages that move, and where to.
    pub moved: Vec<(usize, NodeIx)>,
}

/// Pages over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PagePlan {
    /// In order of time.
    pub steps: Vec<PageStep>,
}

impl PagePlan {
    /// The first node of each of this many pages.
    #[must_use]
    pub fn initial_nodes(&self, pages: usize) -> Vec<Option<NodeIx>> {
        let mut place = vec![None; pages];
        for (page, node) in self.steps.iter().flat_map(|s| &s.placed) {
            place[*page] = Some(*node);
        }
        place
    }

    /// Moves of all pages together.
    #[must_use]
    pub fn total_moves(&self) -> usize {
        self.steps.iter().map(|s| s.moved.len()).sum()
    }
}

/// Places the pages of `problem` over time, with the threads as in `stages` (its own
/// threads do not count). `slices` are those of the profile; a profile that kept pages for
/// the whole run only (`whole_run`) gets one placement, for the stage that lasts longest.
///
/// # Errors
/// As for [`DataPolicy::place`].
pub fn plan_pages(
    problem: &DataProblem,
    policy: &dyn DataPolicy,
    stages: &[ThreadStage],
    slices: &[Slice],
    whole_run: bool,
    limits: &MigrationLimits,
) -> Result<PagePlan, String> {
    let time = StageTimeline::new(stages, slices, whole_run);
    let threads: Vec<u32> = stages.iter().flat_map(|s| s.threads.clone()).collect();
    let mut place: Vec<Option<NodeIx>> = vec![None; problem.pages.len()];
    let mut plan = PagePlan::default();
    for window in time.windows(problem.pages, limits.page_interval) {
        let present: Vec<usize> = (0..place.len())
            .filter(|&p| place[p].is_some() || is_used(problem.pages, p, &window))
            .collect();
        let part = time.pages_in_window(problem.pages, &present, &window);
        let current: Vec<Option<NodeIx>> = present.iter().map(|&p| place[p]).collect();
        let fixed: Vec<Option<NodeIx>> = present
            .iter()
            .zip(0..)
            .map(|(&p, at)| {
                let stays = place[p].filter(|_| part.uses(at).is_empty());
                problem.fixed.get(p).copied().flatten().or(stays)
            })
            .collect();
        let nodes = policy.place(&DataProblem {
            threads: &threads,
            pages: &part,
            current: &current,
            fixed: &fixed,
            ..*problem
        })?;
        let mut step = PageStep {
            slice: window.start,
            start: time.start_of(window.start),
            ..PageStep::default()
        };
        for (&page, node) in present.iter().zip(nodes) {
            match place[page].replace(node) {
                None => step.placed.push((page, node)),
                Some(old) if old != node => step.moved.push((page, node)),
                Some(_) => {}
            }
        }
        plan.steps.push(step);
    }
    Ok(plan)
}

/// Whether a page is used or first touched in a window. A page without any record belongs to the
/// first window.
fn is_used(pages: &PlaceablePages, page: usize, window: &Range<SliceIx>) -> bool {
    let touch = pages.page(page).touch.map(|t| t.slice);
    let uses = pages.uses(page);
    let mut known = uses.iter().map(|u| u.slice).chain(touch).peekable();
    if known.peek().is_none() {
        return window.start == SliceIx(0);
    }
    known.any(|s| window.contains(&s))
}

/// When slices are and which stage they belong to.
struct StageTimeline<'a> {
    stages: &'a [ThreadStage],
    slices: &'a [Slice],
    /// The stage that all uses belong to, when slices are not known.
    only: Option<usize>,
    threads: usize,
}

impl StageTimeline<'_> {
    fn new<'a>(
        stages: &'a [ThreadStage],
        slices: &'a [Slice],
        whole_run: bool,
    ) -> StageTimeline<'a> {
        let end = slices
            .last()
            .map_or(0, |s| s.start.saturating_add(s.length));
        let length = |at: usize| {
            let next = stages.get(at + 1).map_or(end, |s| s.start);
            next.saturating_sub(stages[at].start)
        };
        // The first of several that last as long.
        let longest = (0..stages.len()).rev().max_by_key(|&at| length(at));
        StageTimeline {
            stages,
            slices,
            only: longest.filter(|_| whole_run),
            threads: stages.first().map_or(0, |s| s.threads.len()),
        }
    }

    fn start_of(&self, slice: SliceIx) -> Nanos {
        self.slices.get(slice.at()).map_or(0, |s| s.start)
    }

    /// The windows, in order; together they are the whole run.
    fn windows(&self, pages: &PlaceablePages, interval: Nanos) -> Vec<Range<SliceIx>> {
        let uses = (0..pages.len())
            .flat_map(|p| pages.uses(p))
            .map(|u| u.slice);
        let steps: BTreeSet<SliceIx> = uses.collect();
        let mut out = Vec::new();
        let mut from = SliceIx(0);
        loop {
            let earliest = self.start_of(from).saturating_add(interval);
            let latest = earliest.saturating_add(interval);
            let migrations = self.stages.iter().map(|s| s.start);
            let cut = migrations
                .filter(|at| (earliest..latest).contains(at))
                .min()
                .unwrap_or(earliest);
            let later = steps.range(SliceIx(from.0.saturating_add(1))..);
            let Some(next) = later.copied().find(|s| self.start_of(*s) >= cut) else {
                out.push(from..SliceIx(u32::MAX));
                return out;
            };
            out.push(from..next);
            from = next;
        }
    }

    /// Some pages with their uses in a window. Thread t in stage k is given the number
    /// k T + t, so that accesses come from where the thread is at that time.
    fn pages_in_window(
        &self,
        pages: &PlaceablePages,
        which: &[usize],
        window: &Range<SliceIx>,
    ) -> PlaceablePages {
        PlaceablePages::new(which.iter().map(|&p| {
            let touch = pages.page(p).touch.and_then(|t| {
                let thread = self.staged_thread(t.slice, t.thread)?;
                Some(FirstAccess { thread, ..t })
            });
            let uses = pages.uses(p).iter().filter(|u| window.contains(&u.slice));
            let uses = uses.filter_map(|u| {
                let thread = self.staged_thread(u.slice, u.thread)?;
                Some(PageSliceUse { thread, ..*u })
            });
            (
                PlaceablePage {
                    touch,
                    ..*pages.page(p)
                },
                uses.collect(),
            )
        }))
    }

    /// `None` for a thread that does not exist.
    fn staged_thread(&self, slice: SliceIx, thread: ThreadIx) -> Option<ThreadIx> {
        let begun = self.stages.partition_point(|s| s.slice <= slice);
        let stage = self.only.unwrap_or(begun.saturating_sub(1));
        let number = stage * self.threads + thread.at();
        let exists = thread.at() < self.threads;
        exists
            .then(|| u32::try_from(number).ok().map(ThreadIx))
            .flatten()
    }
}
