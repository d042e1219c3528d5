//! Which pages move when, threads being where the thread plan has them in each slice. Every page is
//! decided on its own, with a timer of its own. A policy that does not follow time places pages once,
//! for all that is accessed from where the threads are then.
use super::{MigrationLimits, PhaseRule, ThreadStage};
use crate::map::data::{
    DataPolicy, DataProblem, FirstAccess, PageHistory, PageSliceUse, PageUseStep, PlaceablePage,
    PlaceablePages,
};
use crate::topology::TopologyTree;
use hither_profile::{Nanos, NodeIx, Slice, SliceIx, ThreadIx};
use std::collections::BTreeMap;

/// What happens to pages at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageStep {
    /// The slice in which the step is decided.
    pub slice: SliceIx,
    /// Its start, ns since the start of the run.
    pub start: Nanos,
    /// First places of pages, which are no moves: all are in the first step, since a page that has
    /// no memory yet can be bound, and is right at once.
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
    /// Pages that stay.
    #[must_use]
    pub fn once(nodes: &[NodeIx]) -> PagePlan {
        let step = PageStep {
            placed: nodes.iter().copied().enumerate().collect(),
            ..PageStep::default()
        };
        PagePlan { steps: vec![step] }
    }

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

/// When things happen, and how they are decided.
pub struct PageTiming<'a> {
    /// Where the threads are when.
    pub stages: &'a [ThreadStage],
    /// Of the profile.
    pub slices: &'a [Slice],
    /// The profile kept pages for the whole run only: all is as in the stage that lasts longest.
    pub whole_run: bool,
    /// How moves are decided.
    pub rule: PhaseRule,
    /// What moves cost and how far apart they are.
    pub limits: MigrationLimits,
}

/// Places the pages of `problem` over time; its own threads do not count.
///
/// # Errors
/// As for [`DataPolicy::place`].
pub fn plan_pages(
    problem: &DataProblem,
    policy: &dyn DataPolicy,
    timing: &PageTiming,
) -> Result<PagePlan, String> {
    let staged = StagedPages::new(problem.pages, timing);
    let problem = DataProblem {
        threads: &staged.threads,
        pages: &staged.pages,
        ..*problem
    };
    let once = policy.place(&problem)?;
    let mut steps: BTreeMap<SliceIx, PageStep> = BTreeMap::new();
    steps.insert(SliceIx(0), PageStep::default());
    // Where a node may be full, pages cannot be decided one by one.
    let bytes: u64 = (0..once.len()).map(|p| staged.pages.page(p).bytes()).sum();
    let tight = problem
        .capacity
        .iter()
        .any(|capacity| *capacity > 0 && *capacity < bytes);
    let (rule, limits) = (timing.rule, &timing.limits);
    for (page, node) in once.into_iter().enumerate() {
        let is_fixed = problem.fixed.get(page).copied().flatten().is_some();
        let follows = !(timing.whole_run || tight || is_fixed);
        let history = follows.then(|| staged.history(&problem, timing.slices, page));
        let moves = history
            .as_ref()
            .and_then(|h| policy.follow(h, rule, limits));
        let moves = moves.unwrap_or_default();
        let first = moves.first().map_or(node, |(_, node)| *node);
        steps
            .entry(SliceIx(0))
            .or_default()
            .placed
            .push((page, first));
        for (at, node) in moves.into_iter().skip(1) {
            let slice = history.as_ref().map_or(SliceIx(0), |h| h.steps[at].slice);
            steps.entry(slice).or_default().moved.push((page, node));
        }
    }
    let begun = |(slice, step): (SliceIx, PageStep)| PageStep {
        slice,
        start: start_of(timing.slices, slice),
        ..step
    };
    Ok(PagePlan {
        steps: steps.into_iter().map(begun).collect(),
    })
}

fn start_of(slices: &[Slice], slice: SliceIx) -> Nanos {
    match slice.0 {
        0 => 0,
        _ => slices.get(slice.at()).map_or(0, |s| s.start),
    }
}

/// Pages whose accesses come from threads of a stage: thread t in stage k has the number k T + t.
pub struct StagedPages {
    /// The unit of each thread of each stage.
    pub threads: Vec<u32>,
    /// The same pages, used by these.
    pub pages: PlaceablePages,
}

impl StagedPages {
    /// All pages, with the stages of a timing.
    #[must_use]
    pub fn new(pages: &PlaceablePages, timing: &PageTiming) -> StagedPages {
        let time = StageTimeline::new(timing);
        let staged = |p: usize| {
            let touch = pages.page(p).touch.and_then(|t| {
                let thread = time.staged_thread(t.slice, t.thread)?;
                Some(FirstAccess { thread, ..t })
            });
            let uses = pages.uses(p).filter_map(|u| {
                let thread = time.staged_thread(u.slice, u.thread)?;
                Some(PageSliceUse { thread, ..u })
            });
            let page = PlaceablePage {
                touch,
                ..*pages.page(p)
            };
            (page, uses.collect())
        };
        StagedPages {
            threads: timing
                .stages
                .iter()
                .flat_map(|s| s.threads.clone())
                .collect(),
            pages: PlaceablePages::new((0..pages.len()).map(staged)),
        }
    }

    fn history(&self, problem: &DataProblem, slices: &[Slice], page: usize) -> PageHistory {
        let node = |thread: ThreadIx| {
            let unit = self.threads.get(thread.at())?;
            Some(problem.tree.units[*unit as usize].node.at())
        };
        let uses: Vec<PageSliceUse> = self.pages.uses(page).collect();
        let first = uses.first().map(|u| u.thread);
        let toucher = self.pages.page(page).touch.map(|t| t.thread).or(first);
        let steps = uses.chunk_by(|a, b| a.slice == b.slice).map(|uses| {
            let mut by_node = vec![0u64; problem.tree.nodes.len()];
            for u in uses {
                if let Some(n) = node(u.thread) {
                    by_node[n] = by_node[n].saturating_add(u.accesses);
                }
            }
            PageUseStep {
                slice: uses[0].slice,
                start: start_of(slices, uses[0].slice),
                by_node,
            }
        });
        PageHistory {
            home: toucher.and_then(node).unwrap_or(0),
            steps: steps.collect(),
        }
    }

    /// The same pages, each as many times as it has places: the uses of one are those while it lies
    /// there. With the page and the node of each.
    #[must_use]
    pub fn by_place(&self, plan: &PagePlan) -> (PlaceablePages, Vec<(usize, NodeIx)>) {
        let mut places: Vec<Vec<(SliceIx, NodeIx)>> = vec![Vec::new(); self.pages.len()];
        for step in &plan.steps {
            for (page, node) in step.placed.iter().chain(&step.moved) {
                places[*page].push((step.slice, *node));
            }
        }
        let mut which = Vec::new();
        let mut split = Vec::new();
        for (page, places) in places.iter().enumerate() {
            for (at, (from, node)) in places.iter().enumerate() {
                let to = places.get(at + 1).map_or(SliceIx(u32::MAX), |p| p.0);
                let uses = self.pages.uses(page);
                let uses = uses.filter(|u| u.slice < to && (at == 0 || u.slice >= *from));
                split.push((*self.pages.page(page), uses.collect()));
                which.push((page, *node));
            }
        }
        (PlaceablePages::new(split), which)
    }
}

impl StagedPages {
    /// Share of accesses that come from another node than the page's, over all of a plan.
    #[must_use]
    pub fn remote_share(&self, tree: &TopologyTree, plan: &PagePlan) -> f64 {
        let (pages, places) = self.by_place(plan);
        let nodes = places.into_iter().map(|(_, node)| node);
        let locality = pages.locality(nodes, &self.threads, tree);
        locality.remote_share().unwrap_or(0.0)
    }
}

/// Which stage slices belong to.
struct StageTimeline<'a> {
    stages: &'a [ThreadStage],
    /// The stage that all uses belong to, when slices are not known.
    only: Option<usize>,
    threads: usize,
}

impl StageTimeline<'_> {
    fn new<'a>(timing: &PageTiming<'a>) -> StageTimeline<'a> {
        let (stages, slices) = (timing.stages, timing.slices);
        let end = slices.last();
        let end = end.map_or(0, |s| s.start.saturating_add(s.length));
        let length = |at: usize| {
            let next = stages.get(at + 1).map_or(end, |s| s.start);
            next.saturating_sub(stages[at].start)
        };
        // The first of several that last as long.
        let longest = (0..stages.len()).rev().max_by_key(|&at| length(at));
        StageTimeline {
            stages,
            only: longest.filter(|_| timing.whole_run),
            threads: stages.first().map_or(0, |s| s.threads.len()),
        }
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
