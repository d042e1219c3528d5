//! EagerMap (Cruz, Diener, Pilla, Navaux: An Efficient Algorithm for Communication-Based
//! Task Mapping, PDP 2015; ACM TOPC 5(4), 2019): from the leaves of the machine to its root,
//! the groups of a level are made one after the other, each by adding whatever communicates
//! most with what the group already has. Then groups are the elements of the next level.
//!
//! Their machines are symmetric. On others a group only takes what fits into the part of the
//! machine it is for.
use super::grouping_shape::{ElementGroups, GroupArity, GroupingShape, GroupingStage};
use super::slots::{slots, SlotDistribution};
use super::ThreadPolicy;
use crate::map::{PuAssignment, ThreadProblem};

pub struct EagerMapPolicy;

impl ThreadPolicy for EagerMapPolicy {
    fn name(&self) -> &'static str {
        "eagermap"
    }

    fn about(&self) -> &'static str {
        "adds to each group the thread that communicates most with it, level by level (EagerMap)"
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        let slots = slots(problem, SlotDistribution::Even)?;
        let shape = GroupingShape::new(problem.tree, &slots, GroupArity::OfMachine);
        let score = |_: &GroupingStage, events: u128, _: usize, _: usize| events;
        Ok(shape.assign_units(problem.comm, |stage| eager_groups(stage, score)))
    }
}

/// Makes the groups of a stage greedily: a group starts with the first element that is left
/// and takes the one of highest score until it is complete, the first of equals.
///
/// `score`: of an element, from the stage, its events with the group, the threads in the
/// group, and the element.
pub fn eager_groups(
    stage: &GroupingStage,
    score: impl Fn(&GroupingStage, u128, usize, usize) -> u128,
) -> ElementGroups {
    let mut free: Vec<usize> = (0..stage.class.len()).collect();
    let mut events = vec![0u128; stage.class.len()];
    let mut groups = ElementGroups::new();
    for _ in 0..stage.groups {
        let (mut wanted, mut group, mut threads) = (stage.parts.to_vec(), Vec::new(), 0);
        while !wanted.is_empty() {
            let fits = |at: &usize| wanted.contains(&stage.class[free[*at]]);
            let best = (0..free.len()).filter(fits).min_by_key(|&at| {
                let element = free[at];
                std::cmp::Reverse(score(stage, events[element], threads, element))
            });
            let Some(best) = best else { break };
            let element = free.remove(best);
            if let Some(at) = wanted.iter().position(|&c| c == stage.class[element]) {
                wanted.remove(at);
            }
            threads += stage.members[element].len();
            for (partner, with) in stage.comm.neighbours(element) {
                events[partner] += u128::from(with);
            }
            group.push(element);
        }
        for &element in &group {
            for (partner, _) in stage.comm.neighbours(element) {
                events[partner] = 0;
            }
        }
        groups.push(group);
    }
    groups
}
