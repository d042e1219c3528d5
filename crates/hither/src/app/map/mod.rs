//! A unit for each thread and a node for each page.
//!
//! ```text
//! Source --read--> Input ---\
//!                            +--> Placer --stages--> pages --> Solution --> Placement
//! MapOptions --target--> Target --/
//! ```
mod build_placement;
mod explain;
pub mod input;
pub mod machine;
mod matrix_file;
pub mod options;
pub mod pages;
mod stages;
mod threads;

use anyhow::{anyhow, Result};
use hither_model::map::explain::{
    explain_placement, placement_quality, PlacedRun as Arrangement, PlacementExplanation,
    PlacementQuality,
};
use hither_model::map::phase_plan::{StagedPages, ThreadStage};
use hither_profile::{MappingObjective, Placement};

pub use explain::phase_note;
use input::MapInput;
use machine::MapTarget;
use options::MapOptions;
use pages::{page_timing, PagePlacement};
use stages::StagedRun;
use threads::ThreadPlacer;

/// A solution: placement of threads and pages by phase, and what it gains.
pub struct MapSolution {
    stages: Vec<ThreadStage>,
    /// Of each stage, by what is communicated while it lasts.
    objectives: Vec<MappingObjective>,
    pub pages: Option<PagePlacement>,
    /// Of all stages together.
    pub explanation: PlacementExplanation,
    /// With phases, what one placement for the whole run would achieve.
    pub one_placement: Option<PlacementQuality>,
    /// What `before` is.
    compared_with: String,
}

impl MapSolution {
    /// Whether a thread or a page is elsewhere later than at first.
    pub fn changes_in_time(&self) -> bool {
        let moved = self
            .pages
            .as_ref()
            .is_some_and(|p| p.plan.total_moves() > 0);
        self.stages.len() > 1 || moved
    }
}

/// Places threads and pages. `old`: the placement to start from.
///
/// # Errors
/// When a policy has one, or the threads do not fit.
pub fn place(
    options: &MapOptions,
    input: &MapInput,
    target: &MapTarget,
    old: Option<&Placement>,
) -> Result<(Placement, MapSolution)> {
    let placer = ThreadPlacer::new(options, input, target)?;
    let solution = solve(options, input, target, &placer, None, old)?;
    let placement = build_placement::build_placement(options, input, target, &placer, &solution);
    Ok((placement, solution))
}

/// The placement alone. `assigned`: a unit for every thread of the profile, where these are decided
/// already.
///
/// # Errors
/// When a policy has one, or the threads do not fit.
pub fn decide_placement(
    options: &MapOptions,
    input: &MapInput,
    target: &MapTarget,
    assigned: Option<&[u32]>,
) -> Result<Placement> {
    let placer = ThreadPlacer::new(options, input, target)?;
    let solution = solve(options, input, target, &placer, assigned, None)?;
    Ok(build_placement::build_placement(
        options, input, target, &placer, &solution,
    ))
}

/// A unit for every thread of the profile, as the policy for threads says.
///
/// # Errors
/// As [`decide_placement`].
pub fn assigned_units(
    options: &MapOptions,
    input: &MapInput,
    target: &MapTarget,
) -> Result<Vec<u32>> {
    let placer = ThreadPlacer::new(options, input, target)?;
    let first = placer.stages(None)?.into_iter().next();
    let first = first.ok_or_else(|| anyhow!("there is nothing to place"))?;
    Ok(first.threads)
}

fn solve(
    options: &MapOptions,
    input: &MapInput,
    target: &MapTarget,
    placer: &ThreadPlacer,
    assigned: Option<&[u32]>,
    old: Option<&Placement>,
) -> Result<MapSolution> {
    let before = placer.previous_assignment(old)?;
    let mut stages = match assigned {
        Some(assigned) => vec![ThreadStage::whole_run(assigned.to_vec())],
        None => placer.stages(old.map(|_| before.as_slice()))?,
    };
    let current = old.map(|_| before.clone());
    let before = input.units_of_all(&before);
    let mut pages = pages::place_pages(options, input, target, &stages, &before)?;
    let one_stage = match (&options.phases, assigned) {
        (Some(_), None) => Some(ThreadStage::whole_run(
            placer.whole_run(current.as_deref())?,
        )),
        _ => None,
    };
    let remote = |stages: &[ThreadStage], pages: &Option<PagePlacement>| {
        let pages = pages.as_ref().zip(input.profile.as_ref());
        pages.map_or(0.0, |(placed, profile)| {
            let timing = page_timing(options, profile, stages);
            StagedPages::new(&placed.pages, &timing).remote_share(&target.tree, &placed.plan)
        })
    };
    if let Some(one) = one_stage.as_ref().filter(|_| stages.len() > 1) {
        let one = vec![one.clone()];
        let kept = pages::place_pages(options, input, target, &one, &before)?;
        if options.is_decided_together()
            && remote(&one, &kept) + NOTICEABLE < remote(&stages, &pages)
        {
            (stages, pages) = (one, kept);
        }
    }
    if options.is_decided_together() && stages.len() == 1 {
        let fixed = pages::place_pages(&without_phases(options), input, target, &stages, &before)?;
        if remote(&stages, &fixed) < remote(&stages, &pages) + WORTH_MOVING_PAGES {
            pages = fixed;
        }
    }
    let comm = placer.communication(&stages);
    let state = |at: usize| {
        let arrangement = |threads, nodes: fn(&PagePlacement) -> &[_]| Arrangement {
            tree: &target.tree,
            cost: &target.cost,
            comm: &comm[at],
            threads,
            pages: pages.as_ref().map(|p| (&p.pages, nodes(p))),
        };
        let before = arrangement(&before, |p| &p.before);
        explain_placement(
            Some(&before),
            &arrangement(&stages[at].threads, |p| &p.after),
            &input.placed,
        )
    };
    let all: Vec<PlacementExplanation> = (0..stages.len()).map(state).collect();
    let objectives = all
        .iter()
        .map(|e| objective(e, input.fraction_bits))
        .collect();
    let first = all.into_iter().next();
    let mut explanation = first.ok_or_else(|| anyhow!("there is nothing to place"))?;
    let mut one_placement = None;
    if let Some(one_stage) = one_stage {
        let staged = StagedRun {
            options,
            input,
            target,
            stages: &stages,
            comm: &comm,
            pages: pages.as_ref(),
        };
        explanation = staged.explain(&before, &explanation);
        one_placement = Some(one(options, input, target, &one_stage.threads, &before)?);
    }
    Ok(MapSolution {
        explanation,
        one_placement,
        objectives,
        stages,
        pages,
        compared_with: match old {
            Some(_) => "the placement given".to_owned(),
            None => "threads spread in order of creation and pages where they are first touched"
                .to_owned(),
        },
    })
}

/// Pages stay where no more than this share of accesses would become local: which few pages that are is
/// not the same in the next run.
const WORTH_MOVING_PAGES: f64 = 0.01;

/// Less than this share of accesses is no difference.
const NOTICEABLE: f64 = 0.005;

fn without_phases(options: &MapOptions) -> MapOptions {
    MapOptions {
        phases: None,
        ..options.clone()
    }
}

/// What one placement for the whole run achieves.
fn one(
    options: &MapOptions,
    input: &MapInput,
    target: &MapTarget,
    threads: &[u32],
    before: &[u32],
) -> Result<PlacementQuality> {
    let options = without_phases(options);
    let stages = [ThreadStage::whole_run(threads.to_vec())];
    let pages = pages::place_pages(&options, input, target, &stages, before)?;
    Ok(placement_quality(&Arrangement {
        tree: &target.tree,
        cost: &target.cost,
        comm: &input.to_all_threads(&input.comm),
        threads,
        pages: pages.as_ref().map(|p| (&p.pages, p.after.as_slice())),
    }))
}

fn objective(explanation: &PlacementExplanation, fraction_bits: i32) -> MappingObjective {
    let saturated = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
    let before = explanation.before.as_ref();
    MappingObjective {
        before: before.map_or(0, |state| saturated(state.objective)),
        after: saturated(explanation.after.objective),
        fraction_bits,
    }
}
