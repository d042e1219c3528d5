//! The machine model: NUMA nodes, processing units and caches, from this machine, a shipped
//! one, an hwloc XML file or an hwloc synthetic description. Input files are not trusted: their size is
//! limited before hwloc sees them.
mod cpu_kinds;
mod machine_fingerprint;
mod numa_nodes;
mod object_index;
mod outline;
mod pu_list;
mod selection;
mod shipped_machines;
mod topology_tree;
mod xml_check;

pub use cpu_kinds::CpuKindSelection;
pub use machine_fingerprint::fingerprint_of;
pub use outline::{OutlineItem, OutlinePart};
pub use pu_list::PuList;
pub use selection::{select_machine, MachineRestrictions, SelectedMachine};
pub use shipped_machines::{shipped_machines, ShippedMachine};
pub use topology_tree::{NumaNode, TopologyLevel, TopologyTree, UsablePu};

use hither_profile::NodeIx;
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::types::ObjectType;
use hwlocality::topology::export::xml::XMLExportFlags;
use std::path::{Path, PathBuf};

/// Largest topology file read. The biggest of hwloc's own test machines needs 3 MB.
const MAX_XML_BYTES: u64 = 32 << 20;
/// Most processing units of a topology.
const MAX_UNITS: u64 = 1 << 16;

/// Why a machine cannot be used. Every message is a sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The file cannot be read.
    #[error("cannot read topology {path}: {source}")]
    Read {
        /// The topology file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is larger than any machine needs.
    #[error("topology {path} is larger than {MAX_XML_BYTES} bytes, which no machine needs")]
    TooLong {
        /// The topology file.
        path: PathBuf,
    },
    /// The file is not hwloc XML.
    #[error("topology {path} is not hwloc XML (write one with `lstopo machine.xml`)")]
    NotXml {
        /// The topology file.
        path: PathBuf,
    },
    /// The file is of hwloc 1, whose trees are others.
    #[error(
        "topology {path} was written by hwloc 1 (convert it with `lstopo -i {path} machine.xml`)"
    )]
    OldXml {
        /// The topology file.
        path: PathBuf,
    },
    /// Neither a known name, nor a file, nor a synthetic description.
    #[error(
        "\"{0}\" is neither a machine of `hither topo --list`, nor a file, nor an hwloc synthetic topology such as \"node:4 core:8 pu:2\" (the last level is pu)"
    )]
    NotSynthetic(String),
    /// A synthetic description of too large a machine.
    #[error("\"{0}\" describes more than {MAX_UNITS} processing units")]
    TooManyUnits(String),
    /// hwloc fails on this machine.
    #[error("hwloc cannot read the topology of this machine")]
    ThisMachine,
    /// hwloc fails to write XML.
    #[error("hwloc cannot export the topology")]
    Export,
    /// No PU is left to this process.
    #[error("no processing unit of this machine may be used here: all are offline, outside the cgroup or outside the affinity mask; widen the mask with `taskset`")]
    NoUsableUnit,
    /// A PU that the machine does not have.
    #[error("the list of PUs names {pu}, which does not exist; this machine has {has}")]
    NoSuchUnit {
        /// OS index of the PU.
        pu: u32,
        /// The PUs of the machine, as a list.
        has: String,
    },
    /// A PU that this process may not use.
    #[error("the list of PUs names {pu}, which is offline or not allowed here (cgroup, affinity mask); {usable} may be used")]
    ForbiddenUnit {
        /// OS index of the PU.
        pu: u32,
        /// The PUs that may be used, as a list.
        usable: String,
    },
    /// A kind of core that the machine does not have.
    #[error(
        "there is no kind of core {rank}; this machine has {known}, numbered from 0, the slowest"
    )]
    NoSuchKind {
        /// The kind that was asked for.
        rank: u32,
        /// How many kinds there are.
        known: u32,
    },
    /// No PU of the kind of core is left.
    #[error("none of the processing units that may be used is of that kind of core; choose another with --cpu-kind, or more PUs")]
    NoUnitOfKind,
}

/// A machine.
#[derive(Debug)]
pub struct Topology {
    inner: hwlocality::Topology,
}

/// The machine this runs on.
///
/// # Errors
/// When hwloc cannot read it.
pub fn this_machine() -> Result<Topology, TopologyError> {
    let inner = hwlocality::Topology::new().map_err(|_| TopologyError::ThisMachine)?;
    Ok(Topology { inner })
}

/// The machine a user names: a shipped one (see [`shipped_machines`]), else an hwloc XML file if there
/// is a file of that name, else a synthetic description.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn load(name: &str) -> Result<Topology, TopologyError> {
    if let Some(topology) = shipped_machines::load_shipped(name) {
        return Ok(topology);
    }
    let path = Path::new(name);
    if path.exists() || name.ends_with(".xml") {
        from_xml_file(path)
    } else {
        from_synthetic(name)
    }
}

fn from_xml_file(path: &Path) -> Result<Topology, TopologyError> {
    let read = |source| TopologyError::Read {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    let file = hither_profile::open_regular_file(path).map_err(read)?;
    // One byte more than allowed tells a long file from one that just fits.
    let mut limited = std::io::Read::take(file, MAX_XML_BYTES + 1);
    match std::io::Read::read_to_string(&mut limited, &mut text) {
        Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
            return Err(TopologyError::NotXml {
                path: path.to_owned(),
            })
        }
        other => other.map_err(read)?,
    };
    if text.len() as u64 > MAX_XML_BYTES {
        return Err(TopologyError::TooLong {
            path: path.to_owned(),
        });
    }
    let path = path.to_owned();
    from_xml(&text).ok_or_else(|| match text.contains("<topology>") {
        true => TopologyError::OldXml { path },
        false => TopologyError::NotXml { path },
    })
}

/// A machine that a profile carries as hwloc XML; `None` when it is not that.
#[must_use]
pub fn from_xml(text: &str) -> Option<Topology> {
    // hwloc reports to stderr what is wrong with text that is not XML at all.
    if !text.contains("<topology") || !xml_check::is_sound(text) {
        return None;
    }
    let builder = hwlocality::Topology::builder().from_xml(text).ok()?;
    let inner = builder.build().ok()?;
    Some(Topology { inner })
}

fn from_synthetic(text: &str) -> Result<Topology, TopologyError> {
    let wrong = || TopologyError::NotSynthetic(text.to_owned());
    if !text.contains(':') {
        return Err(wrong());
    }
    if synthetic_units(text).ok_or_else(wrong)? > MAX_UNITS {
        return Err(TopologyError::TooManyUnits(text.to_owned()));
    }
    let builder = hwlocality::Topology::builder().from_synthetic(text);
    let inner = builder.map_err(|_| wrong())?.build().map_err(|_| wrong())?;
    Ok(Topology { inner })
}

/// Product of the counts of a synthetic description, attributes in brackets left out;
/// `None` when a count is not a plain number.
fn synthetic_units(text: &str) -> Option<u64> {
    let mut depth = 0;
    let mut levels = String::new();
    for c in text.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ if depth == 0 => levels.push(c),
            _ => {}
        }
    }
    levels.split_whitespace().try_fold(1u64, |product, level| {
        let count = level.rsplit(':').next()?.parse().ok()?;
        Some(product.saturating_mul(count))
    })
}

impl Topology {
    /// Number of NUMA nodes, those without processing units included.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.inner.objects_with_type(ObjectType::NUMANode).len()
    }

    /// Number of processing units.
    #[must_use]
    pub fn pu_count(&self) -> usize {
        self.inner.objects_with_type(ObjectType::PU).len()
    }

    /// Processing units this process may use, per node.
    #[must_use]
    pub fn allowed_pus_by_node(&self) -> Vec<(NodeIx, usize)> {
        let allowed = self.inner.allowed_cpuset();
        let nodes = self.inner.objects_with_type(ObjectType::NUMANode);
        nodes
            .map(|node| {
                let set = node.cpuset();
                let units = set.map_or(0, |set| {
                    set.iter_set().filter(|&pu| allowed.is_set(pu)).count()
                });
                (NodeIx(node.logical_index() as u32), units)
            })
            .collect()
    }

    /// Nodes with a processing unit that may be used: where threads can run.
    #[must_use]
    pub fn nodes_with_pus(&self) -> usize {
        self.allowed_pus_by_node()
            .iter()
            .filter(|n| n.1 > 0)
            .count()
    }

    /// Sum of all data and unified caches in bytes, each counted once (OPT eq. 7).
    #[must_use]
    pub fn cache_bytes(&self) -> u64 {
        let caches = self
            .inner
            .objects()
            .filter(|o| o.object_type().is_cpu_data_cache());
        caches
            .filter_map(|o| match o.attributes() {
                Some(ObjectAttributes::Cache(cache)) => cache.size(),
                _ => None,
            })
            .map(std::num::NonZeroU64::get)
            .sum()
    }

    /// The topology as hwloc XML.
    ///
    /// # Errors
    /// When hwloc cannot write it.
    pub fn export_xml(&self) -> Result<String, TopologyError> {
        let xml = self.inner.export_xml(XMLExportFlags::empty());
        Ok(xml.map_err(|_| TopologyError::Export)?.to_string())
    }
}

#[cfg(test)]
pub(crate) mod tests;
