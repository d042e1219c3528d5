//! Kinds of cores of hybrid machines, and which of them to use.
use super::{Topology, TopologyTree};
use hwlocality::bitmap::BitmapIndex;
use hwlocality::cpu::cpuset::CpuSet;
use std::fmt;
use std::str::FromStr;

/// Which kinds of cores to use, as `--cpu-kind` says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CpuKindSelection {
    /// The fastest kind, and of the next ones as many cores as there are threads left.
    #[default]
    PreferFast,
    /// The fastest kind only.
    Fast,
    /// All but the fastest kind; on a machine of one kind, all.
    Efficient,
    /// Every kind of core.
    All,
    /// By rank: 0 is the slowest.
    Only(Vec<u32>),
}

impl FromStr for CpuKindSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<CpuKindSelection, String> {
        Ok(match text {
            "prefer-fast" => CpuKindSelection::PreferFast,
            "fast" => CpuKindSelection::Fast,
            "efficient" => CpuKindSelection::Efficient,
            "all" => CpuKindSelection::All,
            list => {
                let ranks = list.split(',').map(|rank| rank.trim().parse());
                let ranks: Result<Vec<u32>, _> = ranks.collect();
                CpuKindSelection::Only(ranks.map_err(|_| {
                    "write prefer-fast, fast, efficient, all, or numbers of kinds as 0,1".to_owned()
                })?)
            }
        })
    }
}

impl fmt::Display for CpuKindSelection {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CpuKindSelection::PreferFast => write!(f, "prefer-fast"),
            CpuKindSelection::Fast => write!(f, "fast"),
            CpuKindSelection::Efficient => write!(f, "efficient"),
            CpuKindSelection::All => write!(f, "all"),
            CpuKindSelection::Only(ranks) => {
                let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
                write!(f, "{}", ranks.join(","))
            }
        }
    }
}

/// A kind of core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuKind {
    /// As the machine calls it (`IntelAtom`); empty where it does not.
    pub name: String,
    /// Its PUs by the kernel's number.
    pub(super) set: CpuSet,
}

impl CpuKind {
    /// Whether the PU of this kernel's number is of this kind.
    #[must_use]
    pub fn contains_pu(&self, os: u32) -> bool {
        set_contains(&self.set, os)
    }
}

/// Whether the set has this number, which may be beyond what hwloc takes.
pub(super) fn set_contains(set: &CpuSet, os: u32) -> bool {
    BitmapIndex::try_from(os as usize).is_ok_and(|at| set.is_set(at))
}

impl Topology {
    /// Kinds of cores from the slowest to the fastest; empty where there is only one, or
    /// where hwloc cannot tell which is faster.
    #[must_use]
    pub fn cpu_kinds(&self) -> Vec<CpuKind> {
        let Ok(found) = self.inner.cpu_kinds() else {
            return Vec::new();
        };
        let ranked = found.clone().all(|kind| kind.efficiency.is_some());
        if !ranked || found.len() < 2 {
            return Vec::new();
        }
        let kind = |kind: hwlocality::cpu::kind::CpuKind| {
            let named = kind.infos.iter().find(|i| i.name() == c"CoreType");
            CpuKind {
                name: named.map_or_else(String::new, |i| i.value().to_string_lossy().into_owned()),
                set: kind.cpuset,
            }
        };
        found.map(kind).collect()
    }
}

impl CpuKindSelection {
    /// Whether units of a kind may be used at all, where the fastest has rank `fastest`.
    pub(super) fn allows(&self, kind: u32, fastest: u32) -> bool {
        match self {
            CpuKindSelection::PreferFast | CpuKindSelection::All => true,
            CpuKindSelection::Fast => kind == fastest,
            CpuKindSelection::Efficient => kind < fastest || fastest == 0,
            CpuKindSelection::Only(ranks) => ranks.contains(&kind),
        }
    }
}

/// The kernel's numbers of the units that `threads` threads should have where fast cores are
/// preferred: all of the fastest kind there is, then whole cores of the slower ones, until
/// every thread has a core. Without a number of threads: the fastest kind.
pub(super) fn prefer_fast_pus(tree: &TopologyTree, threads: Option<usize>) -> Vec<u32> {
    let mut cores: Vec<(u32, u32)> = tree.units.iter().map(|u| (u.kind, u.core)).collect();
    cores.dedup();
    // Stable: cores of a kind stay in the order of the tree.
    cores.sort_by_key(|&(kind, _)| std::cmp::Reverse(kind));
    let fastest = cores.first().map_or(0, |c| c.0);
    let of_fastest = cores.iter().filter(|c| c.0 == fastest).count();
    cores.truncate(threads.unwrap_or(0).max(of_fastest));
    let mut kept = vec![false; tree.core_count()];
    for (_, core) in cores {
        kept[core as usize] = true;
    }
    let units = tree.units.iter().filter(|u| kept[u.core as usize]);
    units.map(|u| u.os).collect()
}
