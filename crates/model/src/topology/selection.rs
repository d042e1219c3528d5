//! A machine and the part of it that may be used: what mapping starts from.
use super::cpu_kinds::{self, set_contains};
use super::{load, this_machine, CpuKindSelection, PuList, Topology, TopologyError, TopologyTree};
use hwlocality::bitmap::BitmapIndex;
use hwlocality::cpu::binding::CpuBindingFlags;
use hwlocality::cpu::cpuset::CpuSet;
use hwlocality::topology::editor::RestrictFlags;
use std::collections::BTreeSet;

/// What a user leaves of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineRestrictions {
    /// Only these PUs.
    pub pus: Option<PuList>,
    /// Only units of these kinds of core.
    pub kinds: CpuKindSelection,
    /// Threads to place, for [`CpuKindSelection::PreferFast`].
    pub threads: Option<usize>,
}

/// A machine, restricted.
#[derive(Debug)]
pub struct SelectedMachine {
    /// All of it.
    pub topology: Topology,
    /// The units that may be used.
    pub tree: TopologyTree,
    /// Latencies between its nodes, row by row in the order of [`TopologyTree::nodes`], in the
    /// machine's own unit (firmware says 10 for local memory); where they are known. Need not
    /// be symmetric: the way back may be longer (Granite Rapids).
    pub latencies: Option<Vec<u32>>,
}

/// The machine called `name` (see [`load`]; `None` is this machine) with those of its units
/// that are online, allowed, in this process's affinity mask (this machine only) and left
/// by the restrictions.
///
/// # Errors
/// When there is no such machine, no unit is left, or the list of PUs names one that does
/// not exist or may not be used.
pub fn select_machine(
    name: Option<&str>,
    restrictions: &MachineRestrictions,
) -> Result<SelectedMachine, TopologyError> {
    let topology = name.map_or_else(this_machine, load)?;
    let usable = usable_pus(&topology);
    if let Some(list) = &restrictions.pus {
        check_pu_list(list, &topology, &usable)?;
    }
    let listed = |os: u32| restrictions.pus.as_ref().is_none_or(|l| l.contains(os));
    let whole = TopologyTree::new(&topology, |os| set_contains(&usable, os) && listed(os));
    let whole = whole.ok_or(TopologyError::NoUsableUnit)?;
    let tree = restrict_kinds(&topology, whole, restrictions)?;
    Ok(SelectedMachine {
        latencies: topology.node_latencies(),
        topology,
        tree,
    })
}

impl SelectedMachine {
    /// The machine as hwloc XML, without the units that may not be used.
    ///
    /// # Errors
    /// When hwloc cannot write it.
    pub fn export_xml(&self) -> Result<String, TopologyError> {
        if self.tree.units.len() == self.topology.pu_count() {
            return self.topology.export_xml();
        }
        let units = self.tree.units.iter();
        let units = units.filter_map(|u| BitmapIndex::try_from(u.os as usize).ok());
        let kept: CpuSet = units.collect();
        let mut inner = self.topology.inner.clone();
        let restricted = inner.edit(|editor| editor.restrict(&kept, RestrictFlags::empty()));
        restricted.map_err(|_| TopologyError::Export)?;
        Topology { inner }.export_xml()
    }
}

/// PUs that a program started from here may use.
fn usable_pus(topology: &Topology) -> CpuSet {
    let mut set = topology.inner.allowed_cpuset().clone_target();
    if topology.inner.is_this_system() {
        // A process that may not ask for its mask is not bound by one.
        if let Ok(mask) = topology.inner.cpu_binding(CpuBindingFlags::THREAD) {
            set &= mask;
        }
    }
    set
}

fn check_pu_list(list: &PuList, topology: &Topology, usable: &CpuSet) -> Result<(), TopologyError> {
    let all = topology.inner.complete_cpuset();
    for pu in list.iter() {
        if !set_contains(&all, pu) {
            let has = format_pus(&all);
            return Err(TopologyError::NoSuchUnit { pu, has });
        }
        if !set_contains(usable, pu) {
            let usable = format_pus(usable);
            return Err(TopologyError::ForbiddenUnit { pu, usable });
        }
    }
    Ok(())
}

fn format_pus(set: &CpuSet) -> String {
    PuList::from_numbers(set.iter_set().map(|pu| usize::from(pu) as u32)).to_string()
}

fn restrict_kinds(
    topology: &Topology,
    whole: TopologyTree,
    wanted: &MachineRestrictions,
) -> Result<TopologyTree, TopologyError> {
    let known = topology.cpu_kinds().len().max(1) as u32;
    if let CpuKindSelection::Only(ranks) = &wanted.kinds {
        if let Some(&rank) = ranks.iter().find(|rank| **rank >= known) {
            return Err(TopologyError::NoSuchKind { rank, known });
        }
    }
    if known == 1 {
        return Ok(whole);
    }
    let kept: Vec<u32> = if wanted.kinds == CpuKindSelection::PreferFast {
        cpu_kinds::prefer_fast_pus(&whole, wanted.threads)
    } else {
        let units = whole.units.iter();
        let units = units.filter(|u| wanted.kinds.allows(u.kind, known - 1));
        units.map(|u| u.os).collect()
    };
    let kept: BTreeSet<u32> = kept.into_iter().collect();
    TopologyTree::new(topology, |os| kept.contains(&os)).ok_or(TopologyError::NoUnitOfKind)
}
