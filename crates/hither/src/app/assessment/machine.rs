//! Which machine the page draws, and the placement on it.
use crate::report::build::safe_text::plain_text;
use crate::report::page;
use anyhow::{bail, Result};
use hither_model::topology::fingerprint_of;
use hither_model::topology::{self, SelectedMachine, Topology, TopologyTree};
use hither_profile::{PlacedPhase, Placement, Profile, ThreadIx, PAGE_SIZE};
use std::path::Path;

/// What was found out.
pub struct ReportMachine {
    /// The machine to count nodes of, if it is not the traced one.
    pub counted_on: Option<String>,
    pub drawn: Option<page::MachinePanel>,
    /// All threads in the order of the units they are placed on.
    pub order: Option<Vec<u32>>,
}

/// The machine that the user names, else the one that the placement is for, else the one
/// that was traced.
///
/// # Errors
/// When the placement is for another program or another machine.
pub fn machine(
    profile: &Profile,
    placement: Option<(&Path, &Placement)>,
    topology: Option<&str>,
) -> Result<ReportMachine> {
    let traced = || topology::from_xml(&profile.meta.machine.topology_xml);
    let Some((file, placement)) = placement else {
        let machine =
            topology.map_or_else(|| Ok(traced()), |name| topology::load(name).map(Some))?;
        let title = title(profile, topology);
        return Ok(ReportMachine {
            counted_on: topology.map(str::to_owned),
            drawn: machine
                .and_then(whole_machine)
                .map(|m| page_machine(&m, title, source(topology))),
            order: None,
        });
    };
    let shown = file.display();
    if placement.threads.len() != profile.threads.len() {
        bail!(
            "{shown} places {} threads and the profile has {}; give the placement that `hither map` made of this profile",
            placement.threads.len(),
            profile.threads.len()
        );
    }
    let fits = |m: &SelectedMachine| {
        fingerprint_of(&m.tree, "").fingerprint == placement.machine.fingerprint
    };
    let here = topology
        .is_none()
        .then(traced)
        .flatten()
        .and_then(whole_machine)
        .filter(fits);
    let (name, machine) = match here {
        Some(machine) => (None, machine),
        None => {
            let name = topology.unwrap_or(&placement.machine.name);
            let machine = topology::load(name)
                .ok()
                .and_then(whole_machine)
                .filter(fits);
            let Some(machine) = machine else {
                bail!(
                    "{shown} is for the machine \"{}\", which is neither the traced one nor that of --topology; give it with --topology",
                    placement.machine.name
                );
            };
            (Some(name), machine)
        }
    };
    let mut page = page_machine(&machine, title(profile, name), source(name));
    page.placement = Some(page_placement(file, placement, &machine.tree));
    Ok(ReportMachine {
        counted_on: name.map(str::to_owned),
        drawn: Some(page),
        order: order(placement),
    })
}

fn title(profile: &Profile, name: Option<&str>) -> String {
    let known = name.and_then(|n| {
        topology::shipped_machines()
            .into_iter()
            .find(|m| m.name == n)
    });
    match (known, name) {
        (Some(machine), _) => machine.title,
        (None, Some(name)) => {
            // Of a file, what it is called: where it lies says nothing of the machine.
            let file = Path::new(name).file_name().filter(|_| name.contains('/'));
            plain_text(&file.map_or(name.into(), |file| file.to_string_lossy()))
        }
        (None, None) => plain_text(&profile.meta.machine.cpu),
    }
}

fn source(name: Option<&str>) -> String {
    match name {
        Some(_) => "Not the machine that was traced: threads and pages are counted as they would lie on this one.".to_owned(),
        None => "The machine that was traced.".to_owned(),
    }
}

pub fn whole_machine(topology: Topology) -> Option<SelectedMachine> {
    let tree = TopologyTree::new(&topology, |_| true)?;
    Some(SelectedMachine {
        latencies: topology.node_latencies(),
        topology,
        tree,
    })
}

fn page_machine(machine: &SelectedMachine, title: String, source: String) -> page::MachinePanel {
    let units = &machine.tree.units;
    page::MachinePanel {
        title,
        source,
        root: machine.outline(),
        units: units.iter().map(|u| u.os).collect(),
        unit_nodes: units.iter().map(|u| u.node.0).collect(),
        placement: None,
    }
}

fn page_placement(file: &Path, placement: &Placement, tree: &TopologyTree) -> page::PlacementPanel {
    let phases = placement.phases.iter().map(|phase| page::PlacementPhase {
        start: phase.start as f64 / 1e9,
        threads: thread_positions(phase, tree),
        node_bytes: node_bytes(phase, tree.nodes.len()),
    });
    page::PlacementPanel {
        file: plain_text(&file.display().to_string()),
        policy: plain_text(&placement.policy.threads),
        data: placement.policy.data.as_deref().map(plain_text),
        why: plain_text(&placement.why),
        phases: phases.collect(),
    }
}

/// Threads and the positions of their units.
fn thread_positions(phase: &PlacedPhase, tree: &TopologyTree) -> Vec<(u32, u32)> {
    let position = |os: u32| tree.units.iter().position(|u| u.os == os);
    let assigned = phase.threads.iter();
    let assigned = assigned.filter_map(|t| Some((t.thread().0, position(t.os_index())? as u32)));
    assigned.collect()
}

fn node_bytes(phase: &PlacedPhase, nodes: usize) -> Vec<u64> {
    let mut bytes = vec![0u64; nodes];
    for run in phase.pages.iter().flat_map(|region| &region.runs) {
        if let Some(sum) = bytes.get_mut(run.node().at()) {
            *sum = sum.saturating_add(run.pages().saturating_mul(PAGE_SIZE));
        }
    }
    bytes
}

/// By unit in the first phase; threads left to the system behind.
fn order(placement: &Placement) -> Option<Vec<u32>> {
    let phase = placement.phases.first()?;
    let mut unit = vec![u32::MAX; placement.threads.len()];
    for place in &phase.threads {
        unit[place.thread().at()] = place.pu().0;
    }
    let mut order: Vec<u32> = (0..placement.threads.len() as u32).collect();
    order.sort_by_key(|&t| (unit[ThreadIx(t).at()], t));
    Some(order)
}
