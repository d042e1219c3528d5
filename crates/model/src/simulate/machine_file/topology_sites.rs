//! The core, package, node and caches of each unit of a topology, and the package of each node. All
//! from the outline, which keeps the levels that a tree collapses.
use crate::topology::{OutlinePart, SelectedMachine};
use std::collections::BTreeMap;

/// Levels of cache a topology can have.
pub const MAX_CACHE_LEVELS: usize = 5;
/// Most endpoints of an interconnect, and so most nodes, and most packages.
const MOST_PLACES: usize = 256;

/// A cache of the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheSite {
    /// hwloc's number among those of its level.
    pub logical: u32,
    /// 0 where the topology does not say it.
    pub bytes: u64,
}

/// A unit, by its position in the tree.
#[derive(Clone, Debug, Default)]
pub struct PuSite {
    pub core: u32,
    pub package: u32,
    pub node: u32,
    /// The rank of its kind of core.
    pub kind: u32,
    /// By level, L1 first.
    pub caches: [Option<CacheSite>; MAX_CACHE_LEVELS],
}

/// A node, by its logical index.
#[derive(Clone, Debug, Default)]
pub struct NodeSite {
    /// `None`: it belongs to no package.
    pub package: Option<u32>,
    /// Units whose nearest memory it is.
    pub units: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
pub struct TopologySites {
    pub units: Vec<PuSite>,
    pub nodes: Vec<NodeSite>,
    pub packages: u32,
}

/// What lies around a part.
#[derive(Clone, Copy, Default)]
struct EnclosingParts {
    package: Option<u32>,
    caches: [Option<CacheSite>; MAX_CACHE_LEVELS],
}

impl TopologySites {
    pub fn from_selected(selected: &SelectedMachine) -> TopologySites {
        let tree = &selected.tree;
        let units = tree.units.iter().map(|u| PuSite {
            core: u.core,
            node: u.node.0,
            kind: u.kind,
            ..PuSite::default()
        });
        let nodes = tree.nodes.iter().map(|n| NodeSite {
            package: None,
            units: n.units.clone(),
        });
        let mut sites = TopologySites {
            units: units.collect(),
            nodes: nodes.collect(),
            packages: 0,
        };
        let mut package = vec![None; sites.units.len()];
        sites.visit_part(&selected.outline(), EnclosingParts::default(), &mut package);
        if package.iter().all(Option::is_none) {
            // A topology with nodes but without packages: each node is taken for a package.
            let units = sites.units.iter();
            package = units.map(|u| Some(u.node)).collect();
            for (at, node) in (0..).zip(&mut sites.nodes) {
                node.package = (!node.units.is_empty()).then_some(at);
            }
        }
        // Units outside of any package are one by themselves.
        sites.number_packages(&package);
        sites
    }

    fn visit_part(
        &mut self,
        part: &OutlinePart,
        mut around: EnclosingParts,
        package: &mut [Option<u32>],
    ) {
        for item in &part.items {
            match item.what {
                "Package" => around.package = Some(item.logical),
                "Node" => {
                    if let Some(node) = self.nodes.get_mut(item.logical as usize) {
                        node.package = around.package;
                    }
                }
                other => {
                    if let Some(level) = cache_level(other) {
                        around.caches[level] = Some(CacheSite {
                            logical: item.logical,
                            bytes: item.bytes,
                        });
                    }
                }
            }
        }
        for below in &part.parts {
            self.visit_part(below, around, package);
        }
        if part.parts.iter().all(|p| p.units.is_empty()) {
            for unit in part.units.clone() {
                self.units[unit as usize].caches = around.caches;
                package[unit as usize] = around.package;
            }
        }
    }

    /// Numbers packages from 0 in the order of units, and gives nodes theirs.
    fn number_packages(&mut self, package: &[Option<u32>]) {
        let mut known: BTreeMap<Option<u32>, u32> = BTreeMap::new();
        for (unit, package) in self.units.iter_mut().zip(package) {
            let next = known.len() as u32;
            unit.package = *known.entry(*package).or_insert(next);
        }
        self.packages = known.len() as u32;
        for node in &mut self.nodes {
            let said = node.package.and_then(|p| known.get(&Some(p)).copied());
            let mut of_units: Vec<u32> = node
                .units
                .iter()
                .map(|u| self.units[*u as usize].package)
                .collect();
            of_units.sort_unstable();
            of_units.dedup();
            node.package = match of_units[..] {
                _ if self.packages == 1 => Some(0),
                _ if said.is_some() => said,
                [only] => Some(only),
                _ => None,
            };
        }
    }

    /// What is wrong where there is more than can be simulated.
    pub fn limit_error(&self) -> Option<String> {
        let most = self.nodes.len().max(self.packages as usize);
        (most > MOST_PLACES).then(|| {
            format!("the topology has {most} nodes or packages, of which {MOST_PLACES} can be simulated; simulate a part with --pus")
        })
    }

    /// Channels of a node, where a package has `of_package`.
    pub fn channels(&self, node: usize, of_package: u64) -> u32 {
        let site = &self.nodes[node];
        let sharing = self.nodes.iter();
        // Memory without units of its own has its own channels.
        let sharing = sharing.filter(|n| n.package == site.package && !n.units.is_empty());
        let sharing = match site.package {
            Some(_) if !site.units.is_empty() => sharing.count() as u64,
            _ => 1,
        };
        u32::try_from(of_package / sharing.max(1))
            .unwrap_or(u32::MAX)
            .max(1)
    }
}

/// Of a cache as the outline calls it, from 0.
fn cache_level(what: &str) -> Option<usize> {
    ["L1", "L2", "L3", "L4", "L5"]
        .iter()
        .position(|l| *l == what)
}
