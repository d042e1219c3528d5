//! From what the policies decided to the placement that is kept.
use super::{Args, Input, Target};
use crate::map::Problem;
use hither_profile::{
    Objective, PlacedPhase, Placement, PolicyChoice, ThreadPlace, PAGE_SIZE, PLACEMENT_FORMAT,
};

pub fn placement(
    args: &Args,
    input: &Input,
    target: &Target,
    problem: &Problem,
    units: &[u32],
) -> Placement {
    let objective = Objective {
        before: 0,
        after: saturate(problem.objective(units)),
    };
    Placement {
        format: PLACEMENT_FORMAT,
        writer: env!("CARGO_PKG_VERSION").to_owned(),
        source: input.source.clone(),
        machine: target.id.clone(),
        policy: policy(args, problem),
        objective,
        why: String::new(),
        processes: input.processes.clone(),
        threads: input.threads.clone(),
        page_bytes: PAGE_SIZE,
        regions: Vec::new(),
        phases: vec![PlacedPhase {
            objective,
            threads: places(input, target, units),
            ..PlacedPhase::default()
        }],
    }
}

fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn policy(args: &Args, problem: &Problem) -> PolicyChoice {
    PolicyChoice {
        threads: args.choice.policy.clone(),
        data: args.choice.data.clone(),
        cost: args.choice.cost.name().to_owned(),
        seed: problem.seed,
        capacity: problem.capacity,
        options: Default::default(),
    }
}

fn places(input: &Input, target: &Target, units: &[u32]) -> Vec<ThreadPlace> {
    let place = |(thread, unit): (_, &u32)| {
        let unit = target.tree.units[*unit as usize];
        ThreadPlace(thread, unit.pu, unit.os, unit.node)
    };
    input.placed.iter().copied().zip(units).map(place).collect()
}
