//! Whether a machine can be simulated.
use super::cache_tree::DEPTH;
use super::frame_table::PAGE;
use super::simulated_machine::{CacheLevelParameters, ReplacementPolicy, SimulatedMachine};
use super::SimulationError;

/// Entries of a level's caches, all together.
const MAX_ENTRIES: u64 = 1 << 31;
/// Banks of all memory together.
const MAX_BANKS: u64 = 1 << 20;
/// Cycles of a latency, of an instruction, or of a line's transfer: with more, adding a cycle to a
/// clock in 64-bit floating point would have no effect.
const MAX_CYCLES: f64 = 1e9;

/// Checks all that the engine relies on.
pub fn check_machine(machine: &SimulatedMachine) -> Result<(), SimulationError> {
    let wrong = |what: String| Err(SimulationError::Machine(what));
    let line = machine.line;
    if !line.is_power_of_two() || !(8..=PAGE).contains(&line) {
        return wrong(format!(
            "lines of {line} bytes: a power of two from 8 to {PAGE} is needed"
        ));
    }
    let depth = machine.levels.len();
    if depth == 0 || depth > DEPTH {
        return wrong(format!(
            "{depth} levels of cache: 1 to {DEPTH} can be simulated"
        ));
    }
    for level in &machine.levels {
        check_level(level, line)?;
    }
    let core = &machine.core;
    if core.width < 1.0 / MAX_CYCLES
        || core.frequency <= 0.0
        || core.window == 0
        || core.misses == 0
    {
        return wrong("a core's width, window, misses and frequency must be above 0".into());
    }
    check_memory(machine)?;
    check_links(machine)?;
    check_units(machine)
}

fn check_memory(machine: &SimulatedMachine) -> Result<(), SimulationError> {
    let wrong = |what: String| Err(SimulationError::Machine(what));
    let mut banks = 0u64;
    for node in &machine.nodes {
        let dram = &node.dram;
        if dram.channels == 0 || dram.banks == 0 || dram.row < machine.line {
            return wrong("memory needs a channel, a bank and rows of at least a line".into());
        }
        let times = [dram.controller, dram.cas, dram.rcd, dram.rp, dram.burst];
        if !times.iter().all(|t| (0.0..=MAX_CYCLES).contains(t)) {
            return wrong(format!(
                "memory's times must be from 0 to {MAX_CYCLES} cycles"
            ));
        }
        banks = banks.saturating_add(u64::from(dram.channels) * u64::from(dram.banks));
    }
    if banks > MAX_BANKS {
        return wrong(format!(
            "{banks} banks of memory: at most {MAX_BANKS} can be simulated"
        ));
    }
    Ok(())
}

fn check_level(level: &CacheLevelParameters, line: u32) -> Result<(), SimulationError> {
    let name = &level.name;
    let wrong = |what: &str| Err(SimulationError::Machine(format!("{name}: {what}")));
    if level.ways == 0 || level.caches == 0 || level.sets(line) == 0 {
        return wrong("a cache must hold at least one line in each of its ways");
    }
    if level.replacement == ReplacementPolicy::PseudoLru && level.ways > 32 {
        return wrong("pseudo-LRU is for at most 32 ways");
    }
    let entries = u64::from(level.sets(line)) * u64::from(level.ways);
    if entries.saturating_mul(u64::from(level.caches)) > MAX_ENTRIES {
        return wrong("caches this large cannot be simulated");
    }
    Ok(())
}

fn check_links(machine: &SimulatedMachine) -> Result<(), SimulationError> {
    let links = &machine.links;
    let ends = links.routes.len();
    let square = links.routes.iter().all(|r| r.len() == ends);
    let known = links
        .routes
        .iter()
        .flatten()
        .flatten()
        .all(|&l| (l as usize) < links.links.len());
    if machine.nodes.is_empty() || ends < machine.nodes.len() || !square || !known {
        return Err(SimulationError::Machine(
            "every endpoint needs a route to every node, over links that exist".into(),
        ));
    }
    let line = f64::from(links.data_bytes.max(links.control_bytes));
    for link in &links.links {
        if link.bandwidth <= 0.0 || line > link.bandwidth * MAX_CYCLES {
            let what = format!(
                "a link's bandwidth must be above 0, and let a line pass within {MAX_CYCLES} cycles"
            );
            return Err(SimulationError::Machine(what));
        }
        if !(0.0..=MAX_CYCLES).contains(&link.latency) {
            let what = format!("a link's latency must be from 0 to {MAX_CYCLES} cycles");
            return Err(SimulationError::Machine(what));
        }
    }
    Ok(())
}

/// Each unit has a cache at each level, and caches form a tree.
fn check_units(machine: &SimulatedMachine) -> Result<(), SimulationError> {
    let wrong = |what: String| Err(SimulationError::Machine(what));
    let depth = machine.levels.len();
    if machine.levels[0].caches > 1 << 14 {
        return wrong("more than 16384 cores cannot be simulated".into());
    }
    let mut parents: Vec<Vec<Option<u32>>> = machine
        .levels
        .iter()
        .map(|l| vec![None; l.caches as usize])
        .collect();
    for (n, unit) in machine.units.iter().enumerate() {
        let levels = machine.levels.iter();
        let exist = levels.zip(&unit.caches).all(|(l, &c)| c < l.caches);
        if unit.caches.len() != depth || !exist {
            return wrong(format!("unit {n} needs a cache at each level"));
        }
        let ends = machine.links.routes.len();
        if unit.node as usize >= machine.nodes.len() || unit.at as usize >= ends {
            return wrong(format!("unit {n} is on a node that does not exist"));
        }
        if unit.core as usize >= machine.units.len() {
            return wrong(format!("unit {n}: cores are numbered from 0 on"));
        }
        for level in 0..depth - 1 {
            let parent = &mut parents[level][unit.caches[level] as usize];
            let above = unit.caches[level + 1];
            if *parent.get_or_insert(above) != above {
                let name = &machine.levels[level].name;
                return wrong(format!(
                    "a {name} cache lies below two caches of the next level"
                ));
            }
        }
    }
    Ok(())
}
