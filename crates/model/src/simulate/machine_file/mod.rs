//! Machine files: what the simulator needs to know of a machine beyond its topology, as TOML.
//! `toml_tables` is a file as written, `file_check` rejects impossible values, and the rest makes a
//! [`SimulatedMachine`] of it and a topology: `topology_sites` says where units, caches and nodes
//! are, `cache_levels` and `interconnect` make the two halves.
mod cache_levels;
mod file_check;
mod interconnect;
mod toml_tables;
mod topology_sites;

use super::simulated_machine::{
    CoreParameters, DramParameters, EnergyCoefficients, NodeParameters, PuParameters,
    SimulatedMachine,
};
use crate::topology::SelectedMachine;
use file_check::CheckedMachineFile;
use std::ops::Range;
use topology_sites::TopologySites;

/// Largest machine file read, bytes; the shipped ones have a twentieth of it.
pub const MAX_BYTES: usize = 256 << 10;
/// The machine file for any topology without one of its own.
const GENERIC: &str = "generic.toml";

macro_rules! shipped {
    ($($name:literal),*) => {
        /// The shipped files: name and text.
        const FILES: &[(&str, &str)] = &[$((
            concat!($name, ".toml"),
            include_str!(concat!("../../../../../testdata/machines/", $name, ".toml")),
        )),*];
    };
}
shipped!(
    "core-i9-13900k",
    "epyc-9654x2",
    "generic",
    "grace",
    "locality-balance-table1",
    "xeon-6972p-snc3x2",
    "xeon-e5-2650x2",
    "xeon-x7550x4",
    "zen5-cxl"
);

/// What is wrong with a machine file, or with its use for a topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("machine file {file}, line {line}: {what}")]
pub struct MachineFileError {
    /// Path of the machine file, for messages.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// What is wrong and the fix.
    pub what: String,
}

/// A machine file's name and text.
#[derive(Clone, Copy, Debug)]
pub struct MachineFileText<'a> {
    /// Name of the file, for messages.
    pub name: &'a str,
    /// Its content, TOML.
    pub text: &'a str,
}

impl MachineFileText<'_> {
    /// An error at a place in the text.
    fn error(&self, at: Range<usize>, what: impl Into<String>) -> MachineFileError {
        let before = self.text.get(..at.start).unwrap_or_default();
        MachineFileError {
            file: self.name.to_owned(),
            line: before.matches('\n').count() + 1,
            what: what.into(),
        }
    }
}

/// A machine that can be simulated.
#[derive(Clone, Debug)]
pub struct BuiltMachine {
    /// The machine to simulate.
    pub machine: SimulatedMachine,
    /// Name of the machine file.
    pub file: String,
    /// One line that says which machine it is.
    pub title: String,
    /// What the reader of a result must know of the model.
    pub notes: Vec<String>,
}

/// The shipped file for a named topology; the generic one where there is none.
#[must_use]
pub fn shipped_machine_file(topology: Option<&str>) -> MachineFileText<'static> {
    let own = match topology {
        Some("epyc-9654x2-nps1" | "epyc-9654x2-nps4") => "epyc-9654x2.toml".to_owned(),
        Some("grace-superchip") => "grace.toml".to_owned(),
        Some(name) => format!("{name}.toml"),
        None => GENERIC.to_owned(),
    };
    let find = |wanted: &str| FILES.iter().find(|f| f.0 == wanted);
    let (name, text) = find(&own).or_else(|| find(GENERIC)).unwrap_or(&FILES[0]);
    MachineFileText { name, text }
}

/// The machine of a topology and a machine file: the user's, else the one shipped for the
/// topology's name.
///
/// # Errors
/// When the file is none, describes something impossible, or does not fit the topology.
pub fn build_machine(
    selected: &SelectedMachine,
    topology: Option<&str>,
    user: Option<MachineFileText>,
) -> Result<BuiltMachine, MachineFileError> {
    let source = user.unwrap_or_else(|| shipped_machine_file(topology));
    let file = file_check::parse(source)?;
    let sites = TopologySites::from_selected(selected);
    if let Some(trouble) = sites.limit_error() {
        return Err(source.error(0..0, trouble));
    }
    let mut notes: Vec<String> = file.note.iter().cloned().collect();
    let file = CheckedMachineFile::new(source, file)?;
    let caches = cache_levels::build_caches(&file, &sites, &mut notes)?;
    let links = interconnect::build_interconnect(&file, &sites, &caches)?;
    let machine = assemble_machine(&file, &sites, caches, links)?;
    if source.name == GENERIC {
        notes.push(
            "There is no machine file for this topology: latencies, bandwidths and energies are typical ones (generic.toml); give your own with --machine.".to_owned(),
        );
    }
    Ok(BuiltMachine {
        machine,
        file: source.name.to_owned(),
        title: file.file.title.clone(),
        notes,
    })
}

fn assemble_machine(
    file: &CheckedMachineFile,
    sites: &TopologySites,
    caches: cache_levels::BuiltCaches,
    built: interconnect::BuiltInterconnect,
) -> Result<SimulatedMachine, MachineFileError> {
    let core = &file.file.core;
    let mut energy = EnergyCoefficients {
        core_static: *core.static_w.get_ref(),
        instruction: *core.instruction_nj.get_ref(),
        cache_static: caches.static_w,
        cache_access: caches.access_nj,
        ..EnergyCoefficients::default()
    };
    let last = caches.levels.last().map_or(0, |l| l.latency);
    let nodes = node_memories(file, sites, &built, last, &mut energy)?;
    energy.link_static = built.static_w;
    energy.link_byte = built.byte_nj;
    let units = sites.units.iter().zip(caches.of_unit).zip(&built.at);
    let units = units.map(|((unit, caches), at)| PuParameters {
        core: unit.core,
        package: unit.package,
        node: unit.node,
        at: *at,
        caches,
    });
    Ok(SimulatedMachine {
        core: CoreParameters {
            frequency: file.frequency(),
            width: *core.width.get_ref(),
            window: file_check::checked_u32(&core.window),
            misses: file_check::checked_u32(&core.misses),
        },
        levels: caches.levels,
        line: file.line(),
        protocol: file.file.coherence.protocol,
        units: units.collect(),
        packages: sites.packages,
        nodes,
        links: built.links,
        energy,
    })
}

/// The memory of all nodes and its energy; `last` is the latency of the last cache.
fn node_memories(
    file: &CheckedMachineFile,
    sites: &TopologySites,
    built: &interconnect::BuiltInterconnect,
    last: u32,
    energy: &mut EnergyCoefficients,
) -> Result<Vec<NodeParameters>, MachineFileError> {
    let mut nodes = Vec::new();
    for (at, site) in sites.nodes.iter().enumerate() {
        let memory = file.memory(site.units.is_empty());
        let channels = sites.channels(at, *memory.channels.get_ref());
        nodes.push(NodeParameters {
            package: built.package_of_node[at],
            dram: dram_parameters(file, memory, channels, last, built.round_trip_to(at, site))?,
        });
        let each = f64::from(channels);
        let (controller, dram) = (&memory.controller_static_w, &memory.dram_static_w);
        energy.controller_static.push(controller.get_ref() * each);
        energy.controller_request.push(*memory.request_nj.get_ref());
        energy.dram_static.push(dram.get_ref() * each);
        energy.dram_line.push(*memory.line_nj.get_ref());
        energy.dram_row.push(*memory.row_nj.get_ref());
    }
    Ok(nodes)
}

/// A node's memory. What remains of the published latency after the last cache, the route (`way`,
/// cycles there and back) and the array is the controller's.
fn dram_parameters(
    file: &CheckedMachineFile,
    memory: &toml_tables::MemoryTable,
    channels: u32,
    last: u32,
    way: f64,
) -> Result<DramParameters, MachineFileError> {
    let cycle = file.frequency();
    // Two transfers a clock: a clock of a DDR-2000 takes 1 ns.
    let clock = 2000.0 / memory.megatransfers.get_ref() * cycle;
    let transfers = f64::from(file.line()) / *memory.bus_bytes.get_ref() as f64;
    let (cas, rcd, rp) = (
        memory.cl.get_ref(),
        memory.rcd.get_ref(),
        memory.rp.get_ref(),
    );
    let (cas, rcd, rp) = (cas * clock, rcd * clock, rp * clock);
    let burst = transfers.ceil() / 2.0 * clock;
    let latency = (&memory.latency_ns, &memory.latency_cycles);
    let (latency, place) = file.time_in_cycles(latency, "latency")?;
    let array = rcd + cas + burst;
    if latency < f64::from(last) + array {
        return Err(file.source.error(
            place,
            format!(
                "memory that answers after {latency:.0} cycles is impossible: the last cache takes {last} and the array {array:.0}; correct the latency or the timing"
            ),
        ));
    }
    Ok(DramParameters {
        channels,
        banks: file_check::checked_u32(&memory.banks),
        row: file_check::checked_u32(&memory.row_bytes),
        controller: (latency - f64::from(last) - array - way).max(0.0),
        cas,
        rcd,
        rp,
        burst,
    })
}

#[cfg(test)]
mod tests;
