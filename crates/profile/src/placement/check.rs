//! A placement may come from anybody: every number that others index with is checked here.
use super::{PlacedPhase, Placement, RegionPlacement};
use crate::tables::PAGE_SIZE;

/// More of anything than there are in any machine or run.
const MOST_UNITS: u32 = 1 << 20;
const MOST_NODES: usize = 1 << 12;
const MOST_THREADS: usize = 1 << 20;
const MOST_PROCESSES: usize = 1 << 20;
/// A region of 2^52 bytes does not fit into an address space.
const MOST_BYTES: u64 = 1 << 52;

/// A sentence about the first thing that is wrong.
pub(super) fn check_placement(placement: &Placement) -> Result<(), String> {
    let machine = &placement.machine;
    check_at_most("machine.units", machine.units as usize, MOST_UNITS as usize)?;
    check_at_most("machine.nodes", machine.nodes.len(), MOST_NODES)?;
    check_at_most("processes", placement.processes.len(), MOST_PROCESSES)?;
    check_at_most("threads", placement.threads.len(), MOST_THREADS)?;
    if !matches!(placement.page_bytes, 4096 | 0x20_0000) {
        return Err(format!(
            "page_bytes is {}, but pages have 4096 or 2097152",
            placement.page_bytes
        ));
    }
    placement.policy.phase_intervals()?;
    if placement.phases.is_empty() {
        return Err("it has no phase".to_owned());
    }
    check_names(placement)?;
    check_regions(placement)?;
    for (at, phase) in placement.phases.iter().enumerate() {
        check_threads(placement, phase).map_err(|e| format!("phases[{at}].{e}"))?;
        check_pages(placement, phase).map_err(|e| format!("phases[{at}].{e}"))?;
    }
    let starts = placement.phases.iter().map(|p| p.start);
    if !starts.is_sorted() {
        return Err("phases are not in order of start".to_owned());
    }
    Ok(())
}

fn check_at_most(what: &str, count: usize, most: usize) -> Result<(), String> {
    if count > most {
        return Err(format!("{what}: {count} are more than {most}"));
    }
    Ok(())
}

fn check_index(what: &str, index: usize, of: &str, count: usize) -> Result<(), String> {
    if index >= count {
        return Err(format!("{what} is {index}, but there are {count} {of}"));
    }
    Ok(())
}

fn check_names(placement: &Placement) -> Result<(), String> {
    let (processes, threads) = (placement.processes.len(), placement.threads.len());
    for (at, process) in placement.processes.iter().enumerate() {
        if let Some(parent) = process.parent {
            check_index(
                &format!("processes[{at}].parent"),
                parent.at(),
                "processes",
                processes,
            )?;
        }
    }
    for (at, thread) in placement.threads.iter().enumerate() {
        let field = |name: &str| format!("threads[{at}].{name}");
        check_index(
            &field("process"),
            thread.process.at(),
            "processes",
            processes,
        )?;
        if let Some(creator) = thread.creator {
            check_index(&field("creator"), creator.at(), "threads", threads)?;
        }
        if let Some(role) = thread.role {
            check_index(&field("role"), role.at(), "threads", threads)?;
        }
    }
    Ok(())
}

fn check_regions(placement: &Placement) -> Result<(), String> {
    let (processes, threads) = (placement.processes.len(), placement.threads.len());
    for (at, region) in placement.regions.iter().enumerate() {
        let field = |name: &str| format!("regions[{at}].{name}");
        check_index(
            &field("process"),
            region.process.at(),
            "processes",
            processes,
        )?;
        if let Some(thread) = region.thread {
            check_index(&field("thread"), thread.at(), "threads", threads)?;
        }
        if region.size > MOST_BYTES {
            return Err(format!(
                "{} is {} bytes, more than an address space has",
                field("size"),
                region.size
            ));
        }
    }
    Ok(())
}

fn check_threads(placement: &Placement, phase: &PlacedPhase) -> Result<(), String> {
    let machine = &placement.machine;
    for (at, place) in phase.threads.iter().enumerate() {
        let field = |n: usize| format!("threads[{at}][{n}]");
        let threads = placement.threads.len();
        check_index(&field(0), place.thread().at(), "threads", threads)?;
        check_index(&field(1), place.pu().at(), "units", machine.units as usize)?;
        check_index(
            &field(2),
            place.os_index() as usize,
            "possible units",
            MOST_UNITS as usize,
        )?;
        check_index(&field(3), place.node().at(), "nodes", machine.nodes.len())?;
    }
    let in_order = |w: &[super::ThreadPlace]| w[0].thread() < w[1].thread();
    if !phase.threads.windows(2).all(in_order) {
        return Err("threads are not in order, or one is there twice".to_owned());
    }
    Ok(())
}

fn check_pages(placement: &Placement, phase: &PlacedPhase) -> Result<(), String> {
    for (at, places) in phase.pages.iter().enumerate() {
        let field = format!("pages[{at}]");
        let Some(region) = placement.regions.get(places.region as usize) else {
            return Err(format!(
                "{field}.region is {}, but there are {} regions",
                places.region,
                placement.regions.len()
            ));
        };
        let pages = region.size.div_ceil(PAGE_SIZE);
        check_runs(places, pages, placement.machine.nodes.len())
            .map_err(|e| format!("{field}.{e}"))?;
    }
    let in_order = |w: &[RegionPlacement]| w[0].region < w[1].region;
    if !phase.pages.windows(2).all(in_order) {
        return Err("pages are not in order of regions, or one is there twice".to_owned());
    }
    Ok(())
}

fn check_runs(places: &RegionPlacement, pages: u64, nodes: usize) -> Result<(), String> {
    let mut behind = 0;
    for (at, run) in places.runs.iter().enumerate() {
        let end = run.first().checked_add(run.pages());
        let Some(end) = end.filter(|&end| run.pages() > 0 && end <= pages) else {
            return Err(format!(
                "runs[{at}] is {} pages from {} on, in a region of {pages}",
                run.pages(),
                run.first()
            ));
        };
        if run.first() < behind {
            return Err(format!("runs[{at}] overlaps the one before"));
        }
        behind = end;
        check_index(&format!("runs[{at}][2]"), run.node().at(), "nodes", nodes)?;
    }
    Ok(())
}
