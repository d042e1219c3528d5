//! A machine to simulate, and the same machine as policies see it.
use std::io::Read;
use std::path::Path;

use anyhow::{bail, Context, Result};

use crate::app::map::machine::{self, MapTarget};
use crate::app::map::options::{CostKind, MapOptions};
use hither_model::simulate::machine_file;
use hither_model::simulate::simulated_machine::SimulatedMachine;
use hither_model::topology::{self, MachineRestrictions, SelectedMachine};

/// A machine.
pub struct SimMachine {
    /// As it is named on the command line.
    pub name: Option<String>,
    pub target: MapTarget,
    pub machine: SimulatedMachine,
    pub title: String,
    /// The machine file, as it is called.
    pub file: String,
    pub notes: Vec<String>,
    /// The home node of each unit.
    pub unit_nodes: Vec<u32>,
    /// Nodes that take pages in turn: those with units, else all.
    pub nodes: Vec<u32>,
}

/// Of machines by name, `None` being this one; `file` describes the only one.
///
/// # Errors
/// One sentence when there is no such machine, or its file has a mistake.
pub fn models(names: Vec<Option<String>>, file: Option<&Path>) -> Result<Vec<SimMachine>> {
    if file.is_some() && names.len() > 1 {
        bail!(
            "--machine describes one machine, but --topology names {}; give them one at a time",
            names.len()
        );
    }
    let user = file.map(read).transpose()?;
    let model = |name: Option<String>| model(name, user.as_ref());
    names.into_iter().map(model).collect()
}

fn model(name: Option<String>, user: Option<&(String, String)>) -> Result<SimMachine> {
    let selected = topology::select_machine(name.as_deref(), &MachineRestrictions::default())?;
    SimMachine::of_selected(name, selected, CostKind::Hops, user)
}

impl SimMachine {
    /// The machine that `hither map` is to place this many threads on.
    ///
    /// # Errors
    /// As [`models`].
    pub fn of_map(options: &MapOptions, threads: usize) -> Result<SimMachine> {
        let name = options.topology.clone();
        let selected = topology::select_machine(name.as_deref(), &options.restrictions(threads))?;
        SimMachine::of_selected(name, selected, options.cost, None)
    }

    fn of_selected(
        name: Option<String>,
        selected: SelectedMachine,
        cost: CostKind,
        user: Option<&(String, String)>,
    ) -> Result<SimMachine> {
        let user = user.map(|(name, text)| machine_file::MachineFileText { name, text });
        let made = machine_file::build_machine(&selected, name.as_deref(), user)?;
        let target = machine::of_selected(selected, name.as_deref(), cost)?;
        let units = &target.tree.units;
        let nodes = (0u32..).zip(&target.tree.nodes);
        let all: Vec<u32> = nodes.clone().map(|(at, _)| at).collect();
        let serving: Vec<u32> = nodes
            .filter(|(_, n)| !n.units.is_empty())
            .map(|(at, _)| at)
            .collect();
        Ok(SimMachine {
            unit_nodes: units.iter().map(|unit| unit.node.0).collect(),
            nodes: if serving.is_empty() { all } else { serving },
            name,
            target,
            machine: made.machine,
            title: made.title,
            file: made.file,
            notes: made.notes,
        })
    }
}

/// The name and the text of a machine file.
fn read(path: &Path) -> Result<(String, String)> {
    let shown = path.display().to_string();
    let failed = || format!("cannot read the machine file {shown}");
    // A pipe would make us wait for ever.
    if !path.metadata().with_context(failed)?.is_file() {
        bail!("the machine file {shown} is not a file");
    }
    let mut text = String::new();
    let opened = std::fs::File::open(path).with_context(failed)?;
    let read = opened
        .take(machine_file::MAX_BYTES as u64 + 1)
        .read_to_string(&mut text);
    read.with_context(failed)?;
    if text.len() > machine_file::MAX_BYTES {
        bail!(
            "the machine file {shown} is larger than {} bytes",
            machine_file::MAX_BYTES
        );
    }
    Ok((shown, text))
}
