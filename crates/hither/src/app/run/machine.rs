//! Does what is asked for exist on this machine, and may it be used here?
use anyhow::{bail, Result};
use hither_profile::{strip_control_characters, Placement};

use crate::program::mpi::MpiJob;
use hither_model::topology::fingerprint_of;
use hither_model::topology::{
    self, select_machine, CpuKindSelection, MachineRestrictions, PuList, SelectedMachine,
    TopologyTree,
};

/// This machine.
pub struct LocalMachine {
    pub selected: SelectedMachine,
    /// Kernel's numbers of the nodes with memory that may be used.
    pub nodes: Vec<u32>,
}

impl LocalMachine {
    /// # Errors
    /// When the machine cannot be read, or a PU of the list may not be used.
    pub fn new(cpus: Option<&PuList>) -> Result<LocalMachine> {
        let restrictions = MachineRestrictions {
            pus: cpus.cloned(),
            kinds: CpuKindSelection::All,
            threads: None,
        };
        let selected = select_machine(None, &restrictions)?;
        let nodes = selected.tree.nodes.iter().filter(|n| n.bytes > 0);
        let nodes = nodes.map(|n| n.os).collect();
        Ok(LocalMachine { selected, nodes })
    }

    /// The share of an order that belongs to a rank which has a hither of its own: the
    /// order is cut in as many parts as there are ranks here. A launcher that has pinned
    /// its ranks has cut it already.
    pub fn share_of_rank<'a, T>(
        &self,
        order: &'a [T],
        job: Option<&MpiJob>,
        rank: Option<usize>,
    ) -> &'a [T] {
        let pinned = self.selected.tree.units.len() < self.selected.topology.pu_count();
        let (Some(job), Some(rank), false) = (job, rank, pinned) else {
            return order;
        };
        nth_part(order, job.local.max(1), rank)
    }
}

/// Part `at` of `parts` of equal length, or one of equal ones where there are too few.
fn nth_part<T>(order: &[T], parts: usize, at: usize) -> &[T] {
    if order.len() < parts {
        let at = at % order.len().max(1);
        return order.get(at..=at).unwrap_or(order);
    }
    let at = at % parts;
    &order[at * order.len() / parts..(at + 1) * order.len() / parts]
}

/// Checks a placement against this machine. The result is a warning, if there is reason
/// for one.
///
/// # Errors
/// A sentence about the first PU or node that cannot be used, with the fix.
pub fn check(placement: &Placement, here: &LocalMachine) -> Result<Option<String>> {
    if placement.binds_nothing() {
        return Ok(None);
    }
    let phases = || placement.phases.iter();
    let mut pus: Vec<u32> = phases()
        .flat_map(|p| &p.threads)
        .map(|t| t.os_index())
        .collect();
    pus.sort_unstable();
    let runs = phases().flat_map(|p| &p.pages).flat_map(|r| &r.runs);
    let node = |at: usize| placement.machine.nodes.get(at).copied();
    let mut nodes: Vec<u32> = runs.filter_map(|run| node(run.node().at())).collect();
    nodes.sort_unstable();
    let fix = fix_command(placement);
    if !pus.is_empty() {
        check_pus(PuList::from_numbers(pus), &fix)?;
    }
    if let Some(node) = nodes.iter().find(|node| !here.nodes.contains(node)) {
        let nodes = PuList::from_numbers(here.nodes.iter().copied());
        bail!("the placement uses node {node}, which does not exist or has no memory that may be used here (nodes {nodes} have); {fix}, or leave the pages out with --threads-only");
    }
    let whole = TopologyTree::new(&here.selected.topology, |_| true);
    let same = whole
        .is_some_and(|tree| fingerprint_of(&tree, "").fingerprint == placement.machine.fingerprint);
    let name = strip_control_characters(&placement.machine.name);
    Ok((!same).then(|| {
        format!("the placement is for another machine ({name}), whose PUs and nodes have other neighbours than those of the same numbers here; {fix}")
    }))
}

fn check_pus(list: PuList, fix: &str) -> Result<()> {
    let restrictions = MachineRestrictions {
        pus: Some(list),
        kinds: CpuKindSelection::All,
        threads: None,
    };
    match select_machine(None, &restrictions) {
        Ok(_) => Ok(()),
        Err(topology::TopologyError::NoSuchUnit { pu, has }) => {
            bail!("the placement uses PU {pu}, but this machine has {has}; {fix}")
        }
        Err(topology::TopologyError::ForbiddenUnit { pu, usable }) => {
            bail!("the placement uses PU {pu}, which is offline or not allowed here (only {usable} are: cgroup, taskset, numactl, mpirun without --bind-to none); allow it, or {fix}")
        }
        Err(other) => Err(other.into()),
    }
}

/// What makes a placement that fits here.
fn fix_command(placement: &Placement) -> String {
    let file = strip_control_characters(&placement.source.file);
    let matrix = placement.source.command.is_empty();
    let option = if matrix { "--matrix " } else { "" };
    format!("place anew for this machine: hither map {option}{file}")
}

#[cfg(test)]
mod tests {
    use super::nth_part;

    #[test]
    fn orders_are_cut_in_equal_parts() {
        let check = |length: usize, parts, at, expected: &[usize]| {
            let order: Vec<usize> = (0..length).collect();
            assert_eq!(nth_part(&order, parts, at), expected);
        };
        check(8, 2, 0, &[0, 1, 2, 3]);
        check(8, 2, 1, &[4, 5, 6, 7]);
        check(8, 3, 1, &[2, 3, 4]);
        check(8, 3, 2, &[5, 6, 7]);
        check(2, 4, 3, &[1]);
        check(2, 4, 2, &[0]);
        check(0, 4, 1, &[]);
        // A rank beyond the count is a launcher's mistake, not a reason to panic.
        check(4, 2, 5, &[2, 3]);
    }
}
