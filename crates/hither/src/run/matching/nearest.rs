//! Which mapping of the profile a mapping of this run is: the same by thread, size and
//! number, else the nearest that is left.
use super::file_names::file_name;
use super::memory_areas::RegionMatch;
use super::page_runs::{RegionFit, PAGE_BITS};
use super::placement_index::{pages_of, PlacementIndex, SMALLEST_NEAREST};
use super::process_image::ProcessImage;
use crate::follow::proc_maps::MemoryMapping;
use hither_profile::{RegionIx, RegionKind, ThreadIx};
use nix::libc;

/// Same number, other size: largest ratio of sizes, for a problem of another size.
const FARTHEST: f64 = 16.0;
/// Another number: about the same size.
const NEAR: f64 = 2.0;
/// Sizes within this factor of the nearest are told apart by their order only.
const AS_NEAR: f64 = 1.5;
/// Memory that glibc reserves for the arena of a thread, and twice that, to be aligned.
const ARENA_PAGES: u64 = (64 << 20) >> PAGE_BITS;

/// Finds the region of the placement that a new mapping is.
pub fn match_mapping(
    image: &mut ProcessImage,
    plan: &PlacementIndex,
    area: usize,
    mapping: &MemoryMapping,
) {
    let reserved = libc::PROT_NONE == mapping.prot && mapping.flags & libc::MAP_NORESERVE != 0;
    let anonymous = mapping.file.is_none();
    let arena = (reserved && anonymous).then_some(mapping.address >> PAGE_BITS);
    let exact = exact_match(image, plan, area);
    let found = exact.or_else(|| {
        // What replaces a part of something is a piece of a puzzle that we do not see whole.
        let fixed = mapping.flags & libc::MAP_FIXED != 0;
        nearest_match(image, plan, area).filter(|_| !fixed)
    });
    if let Some(region) = found {
        let fit = region_fit(plan, region, image.areas[area].pages, arena);
        let nearest = exact.is_none();
        let claim = RegionMatch {
            region,
            fit,
            nearest,
        };
        image.set_match(area, claim);
    }
}

/// A mapping has grown by mremap: the profile knows it by the size it had in the end.
pub fn mapping_grown(image: &mut ProcessImage, plan: &PlacementIndex, area: usize) {
    let here = &image.areas[area];
    let open = here.claim.is_none_or(|c| c.nearest) && here.kind == RegionKind::Mmap;
    if !open || here.copied {
        return;
    }
    if let Some(region) = exact_match(image, plan, area) {
        image.set_match(area, RegionMatch::same(region));
    } else if let Some(claim) = here.claim {
        if let RegionFit::Scale { from, .. } = claim.fit {
            // It does not stretch what it holds already.
            let fit = RegionFit::Scale { from, to: from };
            image.set_match(area, RegionMatch { fit, ..claim });
        }
    }
}

fn exact_match(image: &ProcessImage, plan: &PlacementIndex, area: usize) -> Option<RegionIx> {
    let here = &image.areas[area];
    let key = (image.process?, here.mapper?, here.pages, here.ordinal);
    let region = plan.mapping(&key)?;
    same_file(plan, region, &here.file).then_some(region)
}

fn same_file(plan: &PlacementIndex, region: RegionIx, file: &str) -> bool {
    file_name(&plan.region(region).file) == file_name(file)
}

fn nearest_match(image: &mut ProcessImage, plan: &PlacementIndex, area: usize) -> Option<RegionIx> {
    let here = &image.areas[area];
    if here.pages << PAGE_BITS < SMALLEST_NEAREST {
        return None;
    }
    let (ordinal, pages) = (here.ordinal, here.pages);
    let free = |at: &RegionIx| {
        let region = plan.region(*at);
        region.kind == RegionKind::Mmap
            && region.size >= SMALLEST_NEAREST
            && same_file(plan, *at, &here.file)
            && image.is_free(*at)
    };
    let all: Vec<RegionIx> = plan.regions_of(image.process?).filter(free).collect();
    let by = |thread: Option<ThreadIx>| {
        let of_thread = all.iter().copied();
        of_thread.filter(move |at| plan.region(*at).thread == thread)
    };
    if here.mapper.is_some() {
        let numbered = by(here.mapper).filter(|at| plan.region(*at).ordinal == ordinal);
        let numbered = first_of_nearest(plan, numbered, pages, FARTHEST);
        let found = numbered.or_else(|| first_of_nearest(plan, by(here.mapper), pages, NEAR));
        if found.is_some() || by(here.mapper).next().is_some() {
            return found;
        }
    }
    // One of another thread, if there is just one.
    let mut others = { all }.into_iter();
    let mut others = others
        .by_ref()
        .filter(|at| size_ratio(plan, *at, pages) <= NEAR);
    let other = others.next()?;
    if others.next().is_some() {
        image.ambiguous += 1;
        return None;
    }
    Some(other)
}

/// Of those about as near as the nearest the first in order of appearance.
fn first_of_nearest(
    plan: &PlacementIndex,
    all: impl Iterator<Item = RegionIx> + Clone,
    pages: u64,
    farthest: f64,
) -> Option<RegionIx> {
    let ratios = all.clone().map(|at| size_ratio(plan, at, pages));
    let best = ratios.filter(|r| *r <= farthest).min_by(f64::total_cmp)?;
    let limit = (best * AS_NEAR).min(farthest);
    { all }.find(|at| size_ratio(plan, *at, pages) <= limit)
}

fn size_ratio(plan: &PlacementIndex, region: RegionIx, pages: u64) -> f64 {
    let (a, b) = (
        pages_of(plan.region(region)).max(1) as f64,
        pages.max(1) as f64,
    );
    (a / b).max(b / a)
}

/// How a region of the profile lies in a mapping of `pages` pages. `arena` is the first page
/// of memory that was only reserved.
fn region_fit(
    plan: &PlacementIndex,
    region: RegionIx,
    pages: u64,
    arena: Option<u64>,
) -> RegionFit {
    let from = pages_of(plan.region(region));
    let is_arena = |pages: u64| pages == ARENA_PAGES || pages == 2 * ARENA_PAGES;
    match (arena, plan.first_page(region)) {
        // The heap starts with its header at the first aligned address, here and there.
        (Some(start), Some(first)) if is_arena(pages) && is_arena(from) => {
            let head = start.next_multiple_of(ARENA_PAGES) - start;
            let fits = if head < pages { head } else { 0 };
            RegionFit::Shift(fits.cast_signed() - first.cast_signed())
        }
        _ if from == pages => RegionFit::SAME,
        _ => RegionFit::Scale { from, to: pages },
    }
}
