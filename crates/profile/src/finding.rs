//! A finding: something a profile shows to be wrong (or settled), with its evidence and what
//! to do about it. Made by the finders, shown by the report and by gates.
use crate::ids::ObjectIx;
use serde::{Deserialize, Serialize};

/// What kind of thing was found. One finder makes one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// One thread touches first what all use.
    FirstTouch,
    /// All threads use the same pages of a structure.
    SharedByAll,
    /// Most accesses to a structure go to few of its pages.
    Concentrated,
    /// Lines in which several threads touch different bytes.
    FalseSharing,
    /// Read by many, written by few or none: worth a copy per node.
    ReadMostly,
    /// Some nodes serve many more accesses than others.
    NodeImbalance,
    /// Many accesses go to another node's memory.
    RemoteAccesses,
    /// Some threads communicate much more than others.
    CommunicationImbalance,
    /// Communication changes too often for one placement.
    UnstablePhases,
    /// All data fits in the caches: nothing to gain.
    FitsInCaches,
    /// Large pages would mix what threads use apart.
    LargePages,
}

impl FindingKind {
    /// Every kind, in the order of this enum.
    pub const ALL: [FindingKind; 11] = [
        FindingKind::FirstTouch,
        FindingKind::SharedByAll,
        FindingKind::Concentrated,
        FindingKind::FalseSharing,
        FindingKind::ReadMostly,
        FindingKind::NodeImbalance,
        FindingKind::RemoteAccesses,
        FindingKind::CommunicationImbalance,
        FindingKind::UnstablePhases,
        FindingKind::FitsInCaches,
        FindingKind::LargePages,
    ];

    /// As JSON and the command line have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::FirstTouch => "first-touch",
            FindingKind::SharedByAll => "shared-by-all",
            FindingKind::Concentrated => "concentrated",
            FindingKind::FalseSharing => "false-sharing",
            FindingKind::ReadMostly => "read-mostly",
            FindingKind::NodeImbalance => "node-imbalance",
            FindingKind::RemoteAccesses => "remote-accesses",
            FindingKind::CommunicationImbalance => "communication-imbalance",
            FindingKind::UnstablePhases => "unstable-phases",
            FindingKind::FitsInCaches => "fits-in-caches",
            FindingKind::LargePages => "large-pages",
        }
    }
}

/// What memory traffic is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrafficUnit {
    /// Reads and writes: fetches were not counted, or are too few.
    #[default]
    Accesses,
    /// Lines brought into a private cache.
    Fetches,
}

impl std::fmt::Display for TrafficUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            TrafficUnit::Accesses => "accesses",
            TrafficUnit::Fetches => "fetches",
        })
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// 0 to 1: the share of the run's memory traffic, or accesses, that is concerned. Findings are
    /// shown largest first; 0 where nothing is wrong.
    pub severity: f64,
    /// What it is a share of.
    #[serde(default)]
    pub severity_of: TrafficUnit,
    /// One line.
    pub title: String,
    /// Sentences with figures. Never empty.
    pub evidence: Vec<String>,
    /// The data structure concerned.
    pub object: Option<ObjectIx>,
    /// The source lines that touch it most.
    pub lines: Vec<FindingLine>,
    /// What to do about it, best first.
    pub fixes: Vec<SuggestedFix>,
    /// What shows it.
    pub picture: FindingPicture,
}

/// A source line of a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FindingLine {
    /// Source file.
    pub file: String,
    /// Line in the file; 0 where unknown.
    pub line: u32,
    /// Function; empty where unknown.
    pub function: String,
    /// Of the accesses to the structure, 0 to 1.
    pub share: f64,
}

/// Something to do about a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuggestedFix {
    /// A sentence: what to do, and what it brings.
    pub what: String,
    /// Code or a command line to copy, or empty.
    pub copy: String,
}

/// Which picture of the report shows a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "panel")]
pub enum FindingPicture {
    /// The machine with its nodes.
    Machine,
    /// The communication matrix.
    Communication,
    /// The run over time.
    Timeline,
    /// The page map of one data structure.
    Structure {
        /// Which structure.
        object: ObjectIx,
    },
    /// All pages.
    Pages,
}
