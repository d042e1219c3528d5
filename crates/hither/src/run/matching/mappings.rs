//! What a process does to its memory while it runs, followed as the tracer's collector
//! follows it, so that areas get the numbers they have in the profile.
use super::file_names::without_deleted;
use super::interval_map::{BindEffect, SpaceInterval};
use super::memory_areas::{BrkHeap, LoadedModule, MemoryArea, RegionMatch};
use super::nearest;
use super::page_runs::{GapRule, RegionFit, PAGE_BITS};
use super::placement_index::{pages_of, PlacementIndex};
use super::process_image::is_file_of;
use super::process_image::ProcessImage;
use crate::follow::proc_maps::MemoryMapping;
use crate::run::guide::PageBind;
use hither_profile::{pages_around, RegionIx, RegionKind, ThreadIx};
use nix::libc;

pub fn is_shared(mapping: &MemoryMapping) -> bool {
    matches!(
        mapping.flags & libc::MAP_TYPE,
        libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE
    )
}

/// A file's pages lie in the page cache until this process writes its own.
pub fn is_bindable(mapping: &MemoryMapping) -> BindEffect {
    match mapping.file.is_some() && mapping.prot & libc::PROT_WRITE == 0 {
        true => BindEffect::Cached,
        false => BindEffect::Bindable,
    }
}

/// Pages of a huge page, log2.
fn huge_page_order(mapping: &MemoryMapping) -> u32 {
    if mapping.flags & libc::MAP_HUGETLB == 0 {
        return 0;
    }
    match (mapping.flags >> libc::MAP_HUGE_SHIFT) & 0x3f {
        0 => 21 - PAGE_BITS,
        log2 => log2.cast_unsigned().saturating_sub(PAGE_BITS),
    }
}

/// A private mapping that thread `mapper` made, the `ordinal`-th of its size.
pub fn map_private(
    image: &mut ProcessImage,
    plan: &PlacementIndex,
    mapper: Option<ThreadIx>,
    ordinal: u32,
    mapping: &MemoryMapping,
) -> Vec<PageBind> {
    let (start, end) = pages_around(mapping.address, mapping.length);
    let module = of_module(image, plan, mapping, (start, end));
    let (area, offset) = module.unwrap_or_else(|| {
        let file = mapping
            .file
            .as_ref()
            .map_or("", |f| without_deleted(&f.path));
        let area = image.add(MemoryArea {
            kind: RegionKind::Mmap,
            mapper,
            ordinal,
            pages: end - start,
            file: file.to_owned(),
            huge: huge_page_order(mapping),
            ..MemoryArea::default()
        });
        nearest::match_mapping(image, plan, area, mapping);
        (area, 0)
    });
    let interval = SpaceInterval {
        start,
        end,
        area,
        offset,
        memory: is_bindable(mapping),
    };
    image.space.put(interval);
    match interval.memory {
        BindEffect::Bindable => image.binds_for(plan, &interval, GapRule::Fill),
        _ => Vec::new(),
    }
}

/// The module whose segment is mapped, and which page of it this is. The loader maps a
/// file whole and then its segments over that.
fn of_module(
    image: &mut ProcessImage,
    plan: &PlacementIndex,
    mapping: &MemoryMapping,
    (start, end): (u64, u64),
) -> Option<(usize, u64)> {
    let path = mapping
        .file
        .as_ref()
        .map_or("", |f| without_deleted(&f.path));
    let around = image.modules.iter().find(|m| {
        let inside = m.start <= start && end <= m.end;
        inside && (path.is_empty() || m.path == path)
    });
    if let Some(module) = around {
        return Some((module.area, start - module.start));
    }
    let file = mapping.file.as_ref().filter(|f| f.offset == 0)?;
    let area = image.add(MemoryArea {
        kind: RegionKind::Elf,
        pages: end - start,
        file: without_deleted(&file.path).to_owned(),
        ..MemoryArea::default()
    });
    claim_module(image, plan, area);
    if image.areas[area].claim.is_none() {
        image.areas.remove(area);
        return None;
    }
    image.modules.push(LoadedModule {
        start,
        end,
        path: without_deleted(&file.path).to_owned(),
        area,
    });
    Some((area, 0))
}

/// Finds the module of the profile that a module is: of that path, else of that name; of
/// that size, else of about that size.
pub fn claim_module(image: &mut ProcessImage, plan: &PlacementIndex, area: usize) {
    let Some(process) = image.process else { return };
    let (path, now) = (image.areas[area].file.clone(), image.areas[area].pages);
    let key = |at: RegionIx| {
        let region = plan.region(at);
        let then = pages_of(region).max(1);
        let near = then <= now.saturating_mul(2) && now <= then.saturating_mul(2);
        let named = is_file_of(image, plan, &path, &region.file);
        let fits = region.kind == RegionKind::Elf && named && near && image.is_free(at);
        fits.then_some((region.file != path, now.abs_diff(then), at))
    };
    let Some((_, differs, region)) = plan.regions_of(process).filter_map(key).min() else {
        return;
    };
    let from = pages_of(plan.region(region));
    let claim = match differs {
        0 => RegionMatch::same(region),
        _ => RegionMatch {
            region,
            fit: RegionFit::Scale { from, to: now },
            nearest: true,
        },
    };
    image.set_match(area, claim);
}

/// munmap.
pub fn unmap(image: &mut ProcessImage, address: u64, length: u64) {
    let (start, end) = pages_around(address, length);
    image.space.take(start, end);
    image.modules.retain(|m| m.start < start || end <= m.start);
}

/// mremap: pages keep their place in what they belong to; the last piece grows or shrinks.
pub fn remap(
    image: &mut ProcessImage,
    plan: &PlacementIndex,
    old: (u64, u64),
    new: (u64, u64),
) -> Vec<PageBind> {
    let (old, new) = (pages_around(old.0, old.1), pages_around(new.0, new.1));
    let pieces = image.space.take(old.0, old.1);
    image.space.take(new.0, new.1);
    let count = pieces.len();
    let mut moved = Vec::new();
    for (at, piece) in pieces.into_iter().enumerate() {
        let start = new.0 + (piece.start - old.0);
        let grows = at + 1 == count && piece.end == old.1;
        let end = match grows {
            true => new.1,
            false => (start + (piece.end - piece.start)).min(new.1),
        };
        if start >= end {
            continue;
        }
        let interval = SpaceInterval {
            start,
            end,
            ..piece
        };
        let area = &mut image.areas[piece.area];
        area.pages = area.pages.max(piece.offset + (end - start));
        nearest::mapping_grown(image, plan, piece.area);
        image.space.put(interval);
        moved.push(interval);
    }
    let bindable = moved.iter().filter(|i| i.memory == BindEffect::Bindable);
    let binds = bindable.flat_map(|i| image.binds_for(plan, i, GapRule::Fill));
    binds.collect()
}

/// brk: the heap ends at `end` now.
pub fn brk(image: &mut ProcessImage, plan: &PlacementIndex, end: u64) -> Vec<PageBind> {
    // The page that the heap may share with the program's last variables is theirs.
    let end = end.div_ceil(1 << PAGE_BITS);
    let Some(heap) = image.heap else {
        let area = image.add(MemoryArea {
            kind: RegionKind::Brk,
            ..MemoryArea::default()
        });
        let of_process = image.process.into_iter().flat_map(|p| plan.regions_of(p));
        let region = { of_process }.find(|at| plan.region(*at).kind == RegionKind::Brk);
        if let Some(region) = region {
            image.set_match(area, RegionMatch::same(region));
        }
        image.heap = Some(BrkHeap {
            first: end,
            end,
            area,
        });
        return Vec::new();
    };
    if end <= heap.end {
        image.space.take(end.max(heap.first), heap.end);
    }
    let grown = SpaceInterval {
        start: heap.end,
        end,
        area: heap.area,
        offset: heap.end - heap.first,
        memory: BindEffect::Bindable,
    };
    image.heap = Some(BrkHeap {
        end: end.max(heap.first),
        ..heap
    });
    if end <= heap.end {
        return Vec::new();
    }
    let area = &mut image.areas[heap.area];
    area.pages = area.pages.max(end - heap.first);
    image.space.put(grown);
    image.binds_for(plan, &grown, GapRule::Fill)
}

/// Something else is mapped over pages [start, end). A module that only has its segments
/// put in place stays one.
pub fn unmap_under(image: &mut ProcessImage, start: u64, end: u64) {
    image.space.take(start, end);
    image.modules.retain(|m| {
        let within = m.start <= start && end <= m.end;
        within || m.end <= start || end <= m.start
    });
}
