//! What a forked process has from its parent. The profile gives the copies that the child
//! was seen to use regions of their own, known by what their originals are.
use super::interval_map::BindEffect;
use super::memory_areas::{MemoryArea, RegionMatch};
use super::page_runs::{GapRule, PAGE_BITS};
use super::placement_index::{pages_of, PlacementIndex};
use super::process_image::ProcessImage;
use crate::run::guide::PageBind;
use hither_profile::{RegionIdentity, RegionIx, RegionKind};
use std::collections::HashSet;

/// Gives the copies in `child` their own regions. Returns what is to be bound.
pub fn match_copies(child: &mut ProcessImage, plan: &PlacementIndex) -> Vec<PageBind> {
    child.taken.clear();
    let mut bound = Vec::new();
    let live: HashSet<usize> = child.space.iter().map(|i| i.area).collect();
    let numbers: Vec<usize> = child.areas.iter().map(|(at, _)| at).collect();
    for at in numbers {
        let area = &mut child.areas[at];
        if area.kind == RegionKind::Shared {
            area.guest = true;
            continue;
        }
        let original = area.clone();
        area.copied = true;
        area.mapper = None;
        area.claim = None;
        if !live.contains(&at) {
            continue;
        }
        let mut copies = copies(child, plan, &original);
        match (copies.pop(), copies.is_empty()) {
            (Some(region), true) => {
                let same = RegionMatch::same(region);
                let claim = original.claim.map_or(same, |c| RegionMatch { region, ..c });
                child.set_match(at, claim);
                bound.push(at);
            }
            (Some(_), false) => child.ambiguous += 1,
            (None, _) => {}
        }
    }
    let binds = child
        .space
        .iter()
        .filter(|i| i.memory == BindEffect::Bindable);
    let binds = binds.filter(|i| bound.contains(&i.area));
    let binds = binds.flat_map(|i| child.binds_for(plan, i, GapRule::Fill));
    binds.collect()
}

/// The regions of the child's process that look like copies of what the parent had.
fn copies(child: &ProcessImage, plan: &PlacementIndex, original: &MemoryArea) -> Vec<RegionIx> {
    let Some(process) = child.process else {
        return Vec::new();
    };
    // The parent's region says it best; without one there is what it would have been.
    let like = original.claim.map(|c| plan.region(c.region).clone());
    let like = like.unwrap_or_else(|| RegionIdentity {
        kind: original.kind,
        ordinal: original.ordinal,
        size: original.pages << PAGE_BITS,
        file: original.file.clone(),
        ..RegionIdentity::default()
    });
    let mapping = |kind| matches!(kind, RegionKind::Mmap | RegionKind::Stack);
    let own = plan.regions_of(process).filter(|at| {
        let region = plan.region(*at);
        let kind = region.kind == like.kind || mapping(region.kind) && mapping(like.kind);
        let sized = like.kind == RegionKind::Brk || pages_of(region) == pages_of(&like);
        // What the child mapped itself is a thread's of its own.
        let maker = region.thread.and_then(|t| plan.threads[t.at()].creator);
        let own = region.kind == RegionKind::Mmap && region.thread.is_some() || maker.is_some();
        kind && sized
            && !own
            && region.ordinal == like.ordinal
            && region.file == like.file
            && child.is_free(*at)
    });
    own.collect()
}
