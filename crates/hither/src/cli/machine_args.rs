//! The options that name a machine and what of it to use.
use hither_model::topology::{CpuKindSelection, MachineRestrictions, PuList};

/// A machine and the part of it to use; shared by the verbs that place.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct MachineArgs {
    /// Machine: a name of `hither topo --list`, an hwloc XML file, or hwloc's short notation
    /// as "node:4 core:8 pu:2" [default: this machine]
    #[arg(long, value_name = "NAME|FILE|STRING")]
    pub topology: Option<String>,

    /// Use only these PUs: the kernel's (physical) numbers as for taskset, 0-3,8,10-14:2
    #[arg(long, value_name = "LIST")]
    pub pus: Option<PuList>,

    /// Cores of hybrid machines: prefer-fast, fast, efficient, all, or numbers of kinds,
    /// 0 the slowest
    #[arg(long, value_name = "KIND")]
    pub cpu_kind: Option<CpuKindSelection>,
}

impl MachineArgs {
    /// What they leave of the machine for this many threads.
    pub fn restrictions(&self, threads: Option<usize>) -> MachineRestrictions {
        MachineRestrictions {
            pus: self.pus.clone(),
            kinds: self.cpu_kind.clone().unwrap_or_default(),
            threads,
        }
    }
}
