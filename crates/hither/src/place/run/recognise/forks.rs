//! What a forked process has from its parent. The profile gives the copies that the child
//! was seen to use regions of their own, known by what their originals are.
use super::image::{Claim, Image};
use super::plan::{pages_of, Plan};
use super::space::Memory;
use crate::place::run::guide::Bind;
use hither_profile::{RegionIx, RegionKind};
use std::collections::HashSet;

/// Gives the copies in `child` their own regions. Returns what is to be bound.
pub fn enter(child: &mut Image, plan: &Plan) -> Vec<Bind> {
    child.taken.clear();
    let mut bound = Vec::new();
    let live: HashSet<usize> = child.space.iter().map(|i| i.thing).collect();
    let numbers: Vec<usize> = child.things.iter().map(|(at, _)| at).collect();
    for at in numbers {
        let thing = &mut child.things[at];
        if thing.kind == RegionKind::Shared {
            thing.guest = true;
            continue;
        }
        thing.copied = true;
        thing.mapper = None;
        let Some(original) = thing.claim.take().filter(|_| live.contains(&at)) else {
            continue;
        };
        let mut copies = copies(child, plan, original.region);
        match (copies.pop(), copies.is_empty()) {
            (Some(region), true) => {
                child.claim(at, Claim { region, ..original });
                bound.push(at);
            }
            (Some(_), false) => child.ambiguous += 1,
            (None, _) => {}
        }
    }
    let binds = child.space.iter().filter(|i| i.memory == Memory::Bindable);
    let binds = binds.filter(|i| bound.contains(&i.thing));
    let binds = binds.flat_map(|i| child.bind(plan, i, super::runs::Gaps::Fill));
    binds.collect()
}

/// The regions of the child's process that look like copies of a region.
fn copies(child: &Image, plan: &Plan, original: RegionIx) -> Vec<RegionIx> {
    let Some(process) = child.process else {
        return Vec::new();
    };
    let original = plan.region(original);
    let mapping = |kind| matches!(kind, RegionKind::Mmap | RegionKind::Stack);
    let own = plan.regions_of(process).filter(|at| {
        let region = plan.region(*at);
        let kind = region.kind == original.kind || mapping(region.kind) && mapping(original.kind);
        let sized = original.kind == RegionKind::Brk || pages_of(region) == pages_of(original);
        kind && sized
            && region.ordinal == original.ordinal
            && region.file == original.file
            && region.file_offset == original.file_offset
            && child.is_free(*at)
    });
    own.collect()
}
