//! The page's data: all that the report shows, as JSON inside the HTML file.
//! `report-ui/src/model.ts` is its mirror; a test compares the two.
//!
//! Big tables are [`PackedGrid`]s, packed; everything else is plain JSON. Texts from the traced
//! program have been through [`super::build::safe_text::plain_text`].
pub use super::packed_grid::PackedGrid;
pub use super::page_structures::*;
use hither_model::metrics::communication::CommunicationMetrics;
use hither_model::metrics::exclusivity::ExclusivityMetrics;
use hither_model::metrics::placement_accuracy::PlacementAccuracy;
use hither_model::topology::OutlinePart;
use hither_profile::{
    BetterWhen, FigureUnit, Finding, FindingKind, ObjectKind, PlacementComparison, RunFigure,
};
use serde::Serialize;

/// Raised when an older page's data could be misread.
pub const PAGE_FORMAT: u32 = 1;

/// The whole page.
#[derive(Clone, Debug, Serialize)]
pub struct ReportPage {
    pub format: u32,
    /// Version of hither that made it.
    pub writer: String,
    /// What the page is about.
    pub subject: ReportSubject,
    /// What changed since another profile.
    pub comparison: Option<ProfileComparison>,
}

/// All about one profile.
#[derive(Clone, Debug, Serialize)]
pub struct ReportSubject {
    pub run: ReportRun,
    pub verdict: ReportVerdict,
    /// Worst first.
    pub findings: Vec<Finding>,
    pub machine: Option<MachinePanel>,
    /// Row number = thread.
    pub threads: Vec<ReportThread>,
    /// Executables, row number = process.
    pub processes: Vec<ReportProcess>,
    pub communication: CommunicationPanel,
    pub structures: StructuresPanel,
    /// `None` when no page use was recorded.
    pub pages: Option<PagesPanel>,
    /// What placements are predicted to do, by machine.
    pub predictions: Vec<PlacementComparison>,
    /// Source around the places that the page names, where the profile keeps it.
    pub quotes: Vec<SourceQuote>,
    /// What could not be seen.
    pub unseen: Vec<UnseenData>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ReportRun {
    pub command: String,
    pub directory: String,
    /// Seconds since 1970.
    pub started: u64,
    /// Wall time under the tracer.
    pub seconds: f64,
    pub host: String,
    pub cpu: String,
    pub kernel: String,
    /// Threads that accessed memory.
    pub active_threads: usize,
    pub instructions: u64,
    pub reads: u64,
    pub writes: u64,
    /// Lines brought into private caches; `None` where they were not counted.
    pub fetches: Option<u64>,
    /// Bytes of memory used.
    pub footprint: u64,
    /// Bytes of all caches; 0 when unknown.
    pub cache_bytes: u64,
    /// How it ended, for people.
    pub end: String,
    /// Relative standard error of totals when sampled, else 0.
    pub sampling_error: f64,
    /// Counts are page faults seen while it ran.
    pub online: bool,
    /// NUMA nodes that threads and pages are counted on, and where that number is from.
    pub nodes: usize,
    pub nodes_from: String,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ReportVerdict {
    pub sentence: String,
    pub threads: bool,
    /// The profile cannot tell whether placing threads is worth it.
    pub threads_undecided: bool,
    pub data: bool,
    /// The profile cannot tell whether placing pages is worth it.
    pub data_undecided: bool,
    /// Why, a sentence each.
    pub reasons: Vec<String>,
    /// What it goes by, as `hither stat` prints them.
    pub figures: Vec<RunFigure>,
    /// What can be gained at most and how sure that is, a sentence each.
    pub gain: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ReportThread {
    pub name: String,
    pub process: u32,
    pub instructions: u64,
    pub reads: u64,
    pub writes: u64,
    /// Node where E_app is highest.
    pub node: u32,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ReportProcess {
    /// Of its MPI job, if it is in one.
    pub rank: Option<u32>,
    pub executable: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct CommunicationPanel {
    pub figures: CommunicationFigures,
    /// Whole run: column i, row j > i.
    pub matrix: PackedGrid,
    /// Ways to arrange the threads, the first by number.
    pub orders: Vec<ThreadOrder>,
    pub timeline: CommunicationTimeline,
    pub phases: Vec<ReportPhase>,
    /// The run is too short to tell phases apart.
    pub too_short: bool,
}

/// See `docs/metrics.md`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CommunicationFigures {
    #[serde(flatten)]
    pub metrics: CommunicationMetrics,
    /// Imbalance of instructions, per cent.
    pub load_balance: f64,
    /// Thresholds of the verdict for C_H and C_A per second.
    pub least_heterogeneity: f64,
    pub least_amount_per_second: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadOrderKind {
    Thread,
    /// Threads of one process together; only where there are several.
    Process,
    Placement,
    Cluster,
}

#[derive(Clone, Debug, Serialize)]
pub struct ThreadOrder {
    pub by: ThreadOrderKind,
    /// Every thread once.
    pub threads: Vec<u32>,
}

/// The run in steps of one slice or several; all lists are of one length.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CommunicationTimeline {
    /// Slices in each step, at most.
    pub slices_per_step: usize,
    /// Seconds.
    pub start: Vec<f64>,
    /// First slice.
    pub slice: Vec<usize>,
    /// Mean C_A of the step's traced slices, and the largest.
    pub amount: Vec<f64>,
    pub amount_most: Vec<f64>,
    /// The same of C_H.
    pub heterogeneity: Vec<f64>,
    pub heterogeneity_most: Vec<f64>,
    pub threads: Vec<u32>,
    /// Communication: column = step, row = i * T + j with i < j.
    pub matrices: PackedGrid,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ReportPhase {
    /// Steps `first..end` of the timeline.
    pub first: usize,
    pub end: usize,
    pub start: f64,
    pub seconds: f64,
    pub figures: CommunicationFigures,
}

/// Lines of source around `line`, in order, without gaps.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SourceQuote {
    pub file: String,
    pub line: u32,
    pub lines: Vec<QuotedLine>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QuotedLine {
    pub line: u32,
    pub text: String,
}

/// Page usage.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PagesPanel {
    /// 4 KiB, 2 MiB, 64 MiB.
    pub sizes: Vec<PageSizeFigures>,
    pub timeline: PageTimeline,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct PageSizeFigures {
    /// Of a page.
    pub bytes: u64,
    pub pages: usize,
    pub best: ExclusivityMetrics,
    pub worst: ExclusivityMetrics,
    pub first_touch: Option<PlacementAccuracy>,
}

/// Lists of one length, a value per page slice (or several merged).
#[derive(Clone, Debug, Default, Serialize)]
pub struct PageTimeline {
    /// Seconds.
    pub start: Vec<f64>,
    pub exclusivity: Vec<f64>,
    pub migrations: Vec<u64>,
    pub total: u64,
    pub moved_once: u64,
    pub moved_more: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct MachinePanel {
    pub title: String,
    /// A sentence: where this description comes from.
    pub source: String,
    pub root: OutlinePart,
    /// The kernel's number of each unit, in the order of the drawing.
    pub units: Vec<u32>,
    /// The node of each unit.
    pub unit_nodes: Vec<u32>,
    pub placement: Option<PlacementPanel>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct PlacementPanel {
    pub file: String,
    pub policy: String,
    pub data: Option<String>,
    pub why: String,
    pub phases: Vec<PlacementPhase>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct PlacementPhase {
    /// Seconds.
    pub start: f64,
    /// Thread, position in [`MachinePanel::units`].
    pub threads: Vec<(u32, u32)>,
    /// Bytes placed on each node.
    pub node_bytes: Vec<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnseenData {
    pub what: String,
    /// What that means for the page, or empty.
    pub effect: String,
}

/// What changed between another profile, "before", and the page's subject, "after". Both are
/// counted on the same machine. Of the other profile only this is in the page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProfileComparison {
    /// The other profile's file.
    pub file: String,
    /// Of the other profile.
    pub run: ReportRun,
    pub verdict: ReportVerdict,
    /// All of it in one sentence.
    pub sentence: String,
    /// What to bear in mind when reading it, a sentence each.
    pub notes: Vec<String>,
    /// New and worse ones first.
    pub findings: Vec<FindingChange>,
    pub metrics: Vec<MetricChange>,
    /// Most accesses in either first; those below 0.01 % in both are left out.
    pub structures: Vec<StructureChange>,
    /// Structures left out.
    pub structures_left: usize,
}

/// How something compares, worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Only after.
    New,
    Worse,
    /// It differs, which is neither good nor bad.
    Changed,
    /// No more than runs of one program differ.
    #[default]
    Same,
    Better,
    /// Only before.
    Gone,
}

/// A finding of either profile, or the same of both.
#[derive(Clone, Debug, Serialize)]
pub struct FindingChange {
    pub change: ChangeKind,
    pub kind: FindingKind,
    /// As after; of one that is gone as before.
    pub title: String,
    /// The data structure concerned, or empty.
    pub structure: String,
    /// Severity, 0 to 1.
    pub before: Option<f64>,
    pub after: Option<f64>,
    /// Sentences of before; those of after are with the finding.
    pub evidence: Vec<String>,
    /// Its position in [`ReportSubject::findings`].
    pub finding: Option<usize>,
}

/// A figure of both profiles.
#[derive(Clone, Debug, Serialize)]
pub struct MetricChange {
    pub name: String,
    /// In a few words.
    pub meaning: String,
    pub unit: FigureUnit,
    pub better: BetterWhen,
    pub before: Option<f64>,
    pub after: Option<f64>,
    pub change: ChangeKind,
    /// The difference is no more than sampling accounts for (twice its standard error).
    pub within_error: bool,
}

/// A data structure of either profile, or the same of both.
#[derive(Clone, Debug, Serialize)]
pub struct StructureChange {
    pub change: ChangeKind,
    pub name: String,
    pub type_name: String,
    pub kind: ObjectKind,
    /// As after, where it is there.
    pub site: Option<DeclarationSite>,
    pub before: Option<StructureFigures>,
    pub after: Option<StructureFigures>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StructureFigures {
    /// Its number in its own profile.
    pub object: u32,
    pub size: u64,
    pub reads: u64,
    pub writes: u64,
    /// Of the accesses of its run.
    pub share: f64,
    /// E_app over its pages, and Acc_app of first touch.
    pub exclusivity: Option<f64>,
    pub accuracy: Option<f64>,
}
