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
mod threads;

use anyhow::{anyhow, Result};
use hither_model::map::explain::{
    explain_placement, PlacedRun as Arrangement, PlacementExplanation,
};
use hither_model::map::phase_plan::ThreadStage;
use hither_profile::{MappingObjective, Placement};

use input::MapInput;
use machine::MapTarget;
use options::MapOptions;
use pages::PagePlacement;
use threads::ThreadPlacer;

/// A solution: placement of threads and pages by phase, and what it gains.
pub struct MapSolution {
    stages: Vec<ThreadStage>,
    /// Of each stage, by what is communicated while it lasts.
    objectives: Vec<MappingObjective>,
    pub pages: Option<PagePlacement>,
    /// For the first stage, or the only one.
    pub explanation: PlacementExplanation,
    /// What `before` is.
    compared_with: String,
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

/// The placement alone. `seats`: a unit for every thread of the profile, where these are decided
/// already.
///
/// # Errors
/// When a policy has one, or the threads do not fit.
pub fn decide_placement(
    options: &MapOptions,
    input: &MapInput,
    target: &MapTarget,
    seats: Option<&[u32]>,
) -> Result<Placement> {
    let placer = ThreadPlacer::new(options, input, target)?;
    let solution = solve(options, input, target, &placer, seats, None)?;
    Ok(build_placement::build_placement(
        options, input, target, &placer, &solution,
    ))
}

/// A unit for every thread of the profile, as the policy for threads says.
///
/// # Errors
/// As [`decide`].
pub fn seats(options: &MapOptions, input: &MapInput, target: &MapTarget) -> Result<Vec<u32>> {
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
    seats: Option<&[u32]>,
    old: Option<&Placement>,
) -> Result<MapSolution> {
    let before = placer.previous_assignment(old)?;
    let stages = match seats {
        Some(seats) => vec![ThreadStage::whole_run(seats.to_vec())],
        None => placer.stages(old.map(|_| before.as_slice()))?,
    };
    let before = input.units_of_all(&before);
    let pages = pages::place_pages(options, input, target, &stages, &before)?;
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
        )
    };
    let all: Vec<PlacementExplanation> = (0..stages.len()).map(state).collect();
    let objectives = all.iter().map(objective).collect();
    let explanation = all.into_iter().next();
    Ok(MapSolution {
        explanation: explanation.ok_or_else(|| anyhow!("there is nothing to place"))?,
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

fn objective(explanation: &PlacementExplanation) -> MappingObjective {
    let saturated = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
    let before = explanation.before.as_ref();
    MappingObjective {
        before: before.map_or(0, |state| saturated(state.objective)),
        after: saturated(explanation.after.objective),
    }
}
