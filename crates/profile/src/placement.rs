//! The placement, `NAME.place.json`: which unit each thread is to run on and which node
//! each page is to lie on, phase by phase, and where that came from.
//!
//! Threads, regions and pages are named as in a profile, by what the next run can find
//! again: the n-th thread of its creator, the n-th mapping of its size, the n-th page of it.
use crate::ids::{NodeIx, ProcessIx, PuIx, RegionIx, ThreadIx};
use crate::tables::{Nanos, Region, RegionKind};
use crate::Profile;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

mod check;
mod file;
mod layout;

pub use file::{check_placement_destination, placement_text, read_placement, write_placement};

/// [`PolicyChoice::threads`] where nothing is bound.
pub const LEFT_TO_SYSTEM: &str = "os";

/// Raised when a reader of an older version could misread a placement.
pub const PLACEMENT_FORMAT: u32 = 1;

/// A placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// Version of the format.
    pub format: u32,
    /// Version of hither that made it.
    pub writer: String,
    /// What it was made from.
    pub source: PlacementSource,
    /// The machine.
    pub machine: MachineIdentity,
    /// How it was made.
    pub policy: PolicyChoice,
    /// Communication times distance, before and after.
    pub objective: MappingObjective,
    /// A sentence: what it brings, or why it brings nothing.
    pub why: String,
    /// Process images, as in the profile.
    pub processes: Vec<ProcessIdentity>,
    /// Every thread of the profile. Row number = [`ThreadIx`].
    pub threads: Vec<ThreadIdentity>,
    /// Bytes of the pages that the data policy counted with: 4 KiB or 2 MiB.
    pub page_bytes: u64,
    /// The regions whose pages are placed.
    pub regions: Vec<RegionIdentity>,
    /// In order of time; one where the placement holds for the whole run.
    pub phases: Vec<PlacedPhase>,
}

/// What it was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementSource {
    /// The profile or matrix, as it was named.
    pub file: String,
    /// What the profile is of; empty for a matrix.
    pub command: Vec<String>,
}

/// Tells machines apart: a placement fits those of the same fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineIdentity {
    /// As it was named (a file, a description), or this machine's host name.
    pub name: String,
    /// Of all units, caches, cores and nodes with their numbers, used or not.
    pub fingerprint: String,
    /// Processing units.
    pub units: u32,
    /// Cores.
    pub cores: u32,
    /// The kernel's number of each node, by logical index.
    pub nodes: Vec<u32>,
}

/// How it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyChoice {
    /// The thread policy.
    pub threads: String,
    /// `None` where no pages are placed.
    pub data: Option<String>,
    /// `hops`, `levels` or `latency`.
    pub cost: String,
    /// Seed of what is random.
    pub seed: u64,
    /// Most threads of a unit.
    pub capacity: u32,
    /// The other options given, as they were given.
    pub options: BTreeMap<String, String>,
}

/// Least times between moves while phases are followed (OPT 6.2.2 and 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseIntervals {
    /// Between moves of threads.
    pub threads: Nanos,
    /// Between moves of a page.
    pub pages: Nanos,
}

impl Default for PhaseIntervals {
    /// Those of the paper.
    fn default() -> Self {
        PhaseIntervals {
            threads: 1_000_000_000,
            pages: 10_000_000_000,
        }
    }
}

const THREAD_INTERVAL: &str = "thread-interval";
const PAGE_INTERVAL: &str = "page-interval";

impl PolicyChoice {
    /// The intervals that phases were chosen with; the default of each that is not given.
    ///
    /// # Errors
    /// A sentence if one is no time.
    pub fn phase_intervals(&self) -> Result<PhaseIntervals, String> {
        let default = PhaseIntervals::default();
        Ok(PhaseIntervals {
            threads: self.interval(THREAD_INTERVAL)?.unwrap_or(default.threads),
            pages: self.interval(PAGE_INTERVAL)?.unwrap_or(default.pages),
        })
    }

    /// Keeps intervals among the options.
    pub fn set_phase_intervals(&mut self, intervals: PhaseIntervals) {
        let all = [
            (THREAD_INTERVAL, intervals.threads),
            (PAGE_INTERVAL, intervals.pages),
        ];
        let text = all.map(|(name, time)| (name.to_owned(), format!("{time}ns")));
        self.options.extend(text);
    }

    fn interval(&self, name: &str) -> Result<Option<Nanos>, String> {
        let Some(text) = self.options.get(name) else {
            return Ok(None);
        };
        let number = text.strip_suffix("ns").and_then(|n| n.parse().ok());
        let wrong =
            || format!("policy.options.{name} is {text:?}, but a time is written as 1000ns");
        number.map(Some).ok_or_else(wrong)
    }
}

/// Sum over pairs of threads of their communication events times their distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingObjective {
    /// Of the placement it is compared with, named in [`Placement::why`].
    pub before: u64,
    /// With the placement.
    pub after: u64,
    /// Both count in units of 2^-`fraction_bits`: 0 but for a matrix whose weights are not whole numbers, or
    /// too large to be summed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fraction_bits: i32,
}

fn is_zero(bits: &i32) -> bool {
    *bits == 0
}

impl MappingObjective {
    /// What a count of its units is as a sum of weights times distances.
    #[must_use]
    pub fn value(self, units: u128) -> f64 {
        units as f64 * 2f64.powi(-self.fraction_bits)
    }
}

/// A process image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Path of the program.
    pub executable: String,
    /// The process that started it.
    pub parent: Option<ProcessIx>,
    /// Its MPI rank on the host, or what comes closest: its place among the processes of
    /// its program, by process id.
    pub rank: Option<u32>,
}

/// What a thread is known by in the next run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadIdentity {
    /// The process, a position in the placement's list.
    pub process: ProcessIx,
    /// Name of the thread, as the kernel has it.
    pub name: String,
    /// `None` for the first of a process.
    pub creator: Option<ThreadIx>,
    /// It is the n-th, from 0, that its creator made; of first threads, that of its process.
    pub order: u32,
    /// The first thread of its role, see [`Profile::by_roles`]; `None` where it is the first itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<ThreadIx>,
}

/// What a region is known by in the next run; see [`crate::Region`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RegionIdentity {
    /// What kind of region.
    pub kind: RegionKind,
    /// The process, a position in the placement's list.
    pub process: ProcessIx,
    /// Thread that mapped it, or whose stack it is.
    pub thread: Option<ThreadIx>,
    /// Which mapping of this size by this thread, from 0.
    pub ordinal: u32,
    /// Bytes.
    pub size: u64,
    /// Path of the file mapped, or an empty string.
    pub file: String,
    /// Offset in that file, bytes.
    pub file_offset: u64,
}

/// What holds from a moment of the run on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlacedPhase {
    /// When it began in the profiled run.
    pub start: Nanos,
    /// Synchronisation points passed before it in the profiled run, see
    /// [`crate::Slice::sync`]: unlike time, they count alike in a run without tracer.
    pub sync: [u64; 4],
    /// Communication times distance, before and after.
    pub objective: MappingObjective,
    /// By thread; threads that are not here are left to the system.
    pub threads: Vec<ThreadPlace>,
    /// Pages that get a node when the phase begins.
    pub pages: Vec<RegionPlacement>,
}

/// Where a thread runs: `[thread, PU, PU of the kernel, node]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadPlace(pub ThreadIx, pub PuIx, pub u32, pub NodeIx);

impl ThreadPlace {
    /// The thread.
    #[must_use]
    pub fn thread(self) -> ThreadIx {
        self.0
    }
    /// hwloc's logical index.
    #[must_use]
    pub fn pu(self) -> PuIx {
        self.1
    }
    /// The kernel's number of the PU.
    #[must_use]
    pub fn os_index(self) -> u32 {
        self.2
    }
    /// The node.
    #[must_use]
    pub fn node(self) -> NodeIx {
        self.3
    }
}

/// Where pages of a region lie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionPlacement {
    /// Position in [`Placement::regions`].
    pub region: u32,
    /// In order, apart from one another; pages between them are left to the system.
    pub runs: Vec<PageRun>,
}

/// Pages side by side on one node: `[first page, pages, node]`, pages of 4 KiB counted
/// from the start of the region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRun(pub u64, pub u64, pub NodeIx);

impl PageRun {
    /// First page of the run.
    #[must_use]
    pub fn first(self) -> u64 {
        self.0
    }
    /// Number of pages.
    #[must_use]
    pub fn pages(self) -> u64 {
        self.1
    }
    /// The node.
    #[must_use]
    pub fn node(self) -> NodeIx {
        self.2
    }
}

impl RegionPlacement {
    /// Appends pages behind those that are there, in one run with the last where they
    /// continue it.
    pub fn push(&mut self, first: u64, pages: u64, node: NodeIx) {
        match self.runs.last_mut() {
            Some(last) if last.0 + last.1 == first && last.2 == node => last.1 += pages,
            _ => self.runs.push(PageRun(first, pages, node)),
        }
    }
}

impl Placement {
    /// It leaves all threads and pages to the system.
    #[must_use]
    pub fn binds_nothing(&self) -> bool {
        let mut phases = self.phases.iter();
        phases.all(|phase| phase.threads.is_empty() && phase.pages.is_empty())
    }

    /// The same run with everything left to the system, because of `why`.
    #[must_use]
    pub fn without_bindings(mut self, why: String) -> Placement {
        self.phases.truncate(1);
        for phase in &mut self.phases {
            *phase = PlacedPhase::default();
        }
        self.regions.clear();
        self.objective = MappingObjective::default();
        self.policy.threads = LEFT_TO_SYSTEM.to_owned();
        self.policy.data = None;
        self.why = why;
        self
    }

    /// The same with threads left to the system, because of `why`.
    #[must_use]
    pub fn without_threads(mut self, why: String) -> Placement {
        for phase in &mut self.phases {
            phase.threads.clear();
            phase.objective = MappingObjective::default();
        }
        self.objective = MappingObjective::default();
        self.policy.threads = LEFT_TO_SYSTEM.to_owned();
        self.why = why;
        self
    }

    /// Pages of 4 KiB that the phase places.
    #[must_use]
    pub fn pages(phase: &PlacedPhase) -> u64 {
        let runs = phase.pages.iter().flat_map(|r| &r.runs);
        runs.fold(0, |sum, run| sum.saturating_add(run.pages()))
    }

    /// The placement with the rows that [`Profile::by_roles`] gave the threads: of those of a role the
    /// first counts. As it is where `roles` is empty.
    #[must_use]
    pub fn by_roles(mut self, roles: &[ThreadIx]) -> Placement {
        if roles.is_empty() {
            return self;
        }
        let role = |thread: ThreadIx| roles.get(thread.at()).copied();
        let mut rows: BTreeMap<ThreadIx, ThreadIdentity> = BTreeMap::new();
        for (thread, at) in self.threads.drain(..).zip((0..).map(ThreadIx)) {
            let Some(row) = role(at) else { break };
            let creator = thread.creator.and_then(role);
            rows.entry(row).or_insert(ThreadIdentity {
                creator,
                role: None,
                ..thread
            });
        }
        let count = roles.iter().max().map_or(0, |r| r.at() + 1);
        let numbers = (0..).map(ThreadIx).take(count);
        self.threads = numbers
            .map(|row| rows.remove(&row).unwrap_or_default())
            .collect();
        for region in &mut self.regions {
            region.thread = region.thread.and_then(role);
        }
        for phase in &mut self.phases {
            let places = phase.threads.drain(..).rev();
            let places = places.filter_map(|p| Some((role(p.thread())?, p)));
            let places: BTreeMap<ThreadIx, ThreadPlace> = places.collect();
            let places = places.into_iter();
            phase.threads = places.map(|(r, p)| ThreadPlace(r, p.1, p.2, p.3)).collect();
        }
        self
    }

    /// A profile's regions by position in [`Placement::regions`]; `None` for those that it does
    /// not have. Of several that are known as the same, the first is the first.
    #[must_use]
    pub fn regions_in(&self, profile: &Profile) -> Vec<Option<RegionIx>> {
        let mut same: HashMap<RegionIdentity, Vec<RegionIx>> = HashMap::new();
        for (ix, region) in profile.regions.iter().enumerate().rev() {
            let regions = same.entry(region.into()).or_default();
            regions.push(RegionIx(ix as u32));
        }
        let of = |id| same.get_mut(id).and_then(Vec::pop);
        self.regions.iter().map(of).collect()
    }
}

impl From<&Region> for RegionIdentity {
    fn from(region: &Region) -> RegionIdentity {
        RegionIdentity {
            kind: region.kind,
            process: region.process,
            thread: region.thread,
            ordinal: region.ordinal,
            size: region.size,
            file: region.file.clone(),
            file_offset: region.file_offset,
        }
    }
}
