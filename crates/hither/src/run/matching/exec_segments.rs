//! What is in memory when a program starts: its own segments and those of its loader, and
//! the stack.
use super::file_names::without_deleted;
use super::interval_map::{BindEffect, SpaceInterval};
use super::mappings::is_bindable;
use super::memory_areas::{LoadedModule, MemoryArea, RegionMatch};
use super::page_runs::{append_binds, majority_runs, AreaPiece, GapRule, NodeRun, PAGE_BITS};
use super::placement_index::{pages_of, PlacementIndex};
use super::process_image::{merge_adjacent, ProcessImage};
use crate::follow::proc_maps::MemoryMapping;
use crate::run::guide::{self, PageBind};
use hither_profile::{pages_around, RegionKind};

/// Recognises what an image starts with. Returns what is to be bound.
pub fn match_exec_image(
    image: &mut ProcessImage,
    plan: &PlacementIndex,
    start: &guide::ExecImage,
) -> Vec<PageBind> {
    let mut mappings: Vec<&MemoryMapping> =
        start.mappings.iter().filter(|m| m.length > 0).collect();
    mappings.sort_by_key(|m| m.address);
    let mut last: Option<usize> = None;
    let mut end = 0;
    for mapping in mappings {
        let name = mapping
            .file
            .as_ref()
            .map_or("", |f| without_deleted(&f.path));
        let (first, next) = pages_around(mapping.address, mapping.length);
        // Variables without initial values lie behind the file's segments. Where the heap
        // follows at once the kernel calls them so.
        let bss = first == end && matches!(name, "" | "[heap]");
        let module = if name.starts_with('/') {
            Some(of_file(image, name, first))
        } else {
            last.filter(|_| bss)
        };
        match module {
            Some(module) => segment(image, module, mapping),
            None if name == "[stack]" => stack(image, plan, mapping),
            None => {}
        }
        (last, end) = (module, next);
    }
    for at in 0..image.modules.len() {
        let module = image.modules[at].clone();
        let area = &mut image.areas[module.area];
        area.pages = module.end - module.start;
        super::mappings::claim_module(image, plan, module.area);
    }
    let bindable: Vec<SpaceInterval> = image.space.iter().copied().collect();
    let binds = bindable
        .iter()
        .flat_map(|i| match image.areas[i.area].kind {
            RegionKind::Stack => stack_binds(image, plan, i),
            _ if i.memory == BindEffect::Bindable => image.binds_for(plan, i, GapRule::Fill),
            _ => Vec::new(),
        });
    let mut binds: Vec<PageBind> = binds.collect();
    merge_adjacent(&mut binds);
    binds
}

/// The module that a file's segment belongs to; the file is mapped once.
fn of_file(image: &mut ProcessImage, path: &str, first: u64) -> usize {
    if let Some(known) = image.modules.iter().position(|m| m.path == path) {
        return known;
    }
    let area = image.add(MemoryArea {
        kind: RegionKind::Elf,
        file: path.to_owned(),
        ..MemoryArea::default()
    });
    image.modules.push(LoadedModule {
        start: first,
        end: first,
        path: path.to_owned(),
        area,
    });
    image.modules.len() - 1
}

fn segment(image: &mut ProcessImage, module: usize, mapping: &MemoryMapping) {
    let (start, end) = pages_around(mapping.address, mapping.length);
    let module = &mut image.modules[module];
    module.end = module.end.max(end);
    let interval = SpaceInterval {
        start,
        end,
        area: module.area,
        offset: start - module.start,
        memory: is_bindable(mapping),
    };
    image.space.put(interval);
}

/// The stack is as long as in the profile and ends where this one does.
fn stack(image: &mut ProcessImage, plan: &PlacementIndex, mapping: &MemoryMapping) {
    let (start, top) = pages_around(mapping.address, mapping.length);
    let region = image.process.and_then(|p| plan.main_stack(p));
    let pages = region.map_or(top - start, |r| pages_of(plan.region(r)));
    let pages = pages.min(top);
    let area = image.add(MemoryArea {
        kind: RegionKind::Stack,
        pages,
        ..MemoryArea::default()
    });
    let bottom = top - pages;
    let mut part = |start: u64, end: u64, memory| {
        if start < end {
            image.space.put(SpaceInterval {
                start,
                end,
                area,
                offset: start - bottom,
                memory,
            });
        }
    };
    part(bottom, start, BindEffect::Later);
    part(start.max(bottom), top, BindEffect::Bindable);
    if let Some(region) = region {
        image.set_match(area, RegionMatch::same(region));
    }
}

/// What the stack grows by gets the policy of its lowest page, so that one goes where most
/// of what is still to come belongs.
fn stack_binds(image: &ProcessImage, plan: &PlacementIndex, here: &SpaceInterval) -> Vec<PageBind> {
    let claim = image.areas[here.area].claim;
    let Some(claim) = claim.filter(|_| here.memory == BindEffect::Bindable) else {
        return Vec::new();
    };
    let runs = plan.runs(claim.region);
    let mut binds = image.binds_for(plan, here, GapRule::Fill);
    let below = AreaPiece {
        offset: 0,
        pages: here.offset,
        at: 0,
    };
    let mut later = Vec::new();
    append_binds(runs, claim.fit, below, GapRule::Skip, &mut later);
    let later: Vec<NodeRun> = later.iter().map(NodeRun::from).collect();
    let node = majority_runs(&later, here.offset.max(1))
        .first()
        .map(|r| r.node);
    let start = here.start << PAGE_BITS;
    let page = 1 << PAGE_BITS;
    match (binds.first_mut(), node) {
        (Some(first), node) if node.is_none_or(|node| node == first.node) => {
            first.length += first.start - start;
            first.start = start;
        }
        (first, Some(node)) => {
            let taken = first.filter(|first| first.start == start);
            if let Some(first) = taken {
                first.start += page;
                first.length -= page;
            }
            binds.retain(|bind| bind.length > 0);
            let length = page;
            binds.insert(
                0,
                PageBind {
                    start,
                    length,
                    node,
                },
            );
        }
        (_, None) => {}
    }
    binds
}
