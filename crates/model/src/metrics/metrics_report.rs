//! Every metric of one profile, put together. Serialised as it stands by `stat --json`:
//! the names of its fields are the documented names.
use super::allocation_paths::{allocation_paths, AllocationPathMetrics};
use super::belonging::{work_of_nodes, PageBelonging};
use super::communication::{percent_imbalance, CommunicationMetrics, UpperTriangle};
use super::evidence::threads_take_turns;
use super::exclusivity::{exclusivity, ExclusivityMetrics};
use super::lasting_use::lasting_use;
use super::memory_balance::MemoryImbalance;
use super::memory_traffic::{
    all_fetches, traffic_table, traffic_unit, PageTraffic, TrafficAccuracy,
};
use super::node_assignment::best_and_worst_assignment;
use super::node_traffic::NodeTraffic;
use super::page_access::{first_toucher_of_pages, PageAccessTable};
use super::page_id::{PageId, PageSize};
use super::page_map::PageMap;
use super::phase_detection::{partner_window, traced_slices};
use super::placement_accuracy::{
    accuracy_of, page_migrations, PageMigrationTimeline, PlacementAccuracy,
};
use super::sharing::{CoherenceMetrics, CommunicationPhase, Sharing};
use super::structures::{
    hot_lines, pages_of_objects, structure_metrics, HotLine, PageContext, StructureMetrics,
};
use super::verdict::{mapping_verdict, FetchCounts, MappingVerdict, VerdictInput};
use crate::units::nanos_to_seconds;
use hither_profile::{NodeIx, Profile, RunEnd, ThreadIx, TrafficUnit};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// The machine and page size that the metrics are computed for.
#[derive(Clone, Debug, Serialize)]
pub struct MetricsSetup {
    /// NUMA nodes N.
    pub nodes: usize,
    /// Where N comes from, as printed.
    pub nodes_from: String,
    /// Sum of all caches; 0 when unknown.
    pub cache_bytes: u64,
    /// Size of the pages that are counted.
    pub page_size: PageSize,
}

/// The run and its totals.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// Command line.
    pub command: Vec<String>,
    /// Duration under the tracer, s.
    pub seconds: f64,
    /// Rows of threads: those that ran, or their roles where [`Profile::by_roles`] has merged them.
    pub threads: usize,
    /// Threads that ran.
    pub recorded_threads: usize,
    /// Threads that work, by [`Profile::working_threads`]: the T of all metrics. None where no
    /// access was counted.
    pub active_threads: usize,
    /// Processes that ran.
    pub processes: usize,
    /// Instructions executed.
    pub instructions: u64,
    /// Reads of memory.
    pub reads: u64,
    /// Writes to memory.
    pub writes: u64,
    /// Lines brought into private caches, an estimate; `None` where they were not counted.
    pub fetches: Option<u64>,
    /// What shares of memory traffic are shares of.
    pub traffic: TrafficUnit,
    /// Pages used times their size, bytes.
    pub footprint: u64,
    /// How the program ended.
    pub end: RunEnd,
    /// Relative standard error of totals when sampled, else 0.
    pub sampling_error: f64,
    /// Page faults were counted, without the tracer.
    pub online: bool,
}

impl RunSummary {
    /// Reads and writes.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }
}

/// One thread.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadMetrics {
    /// Its name, as the kernel has it.
    pub name: String,
    /// Its process, a row of the profile.
    pub process: u32,
    /// Its rank on the host where it is one of an MPI job.
    pub rank: Option<u32>,
    /// Instructions executed.
    pub instructions: u64,
    /// Reads of memory.
    pub reads: u64,
    /// Writes to memory.
    pub writes: u64,
    /// Whether it takes part in the work; if not, it is left out of T.
    pub works: bool,
    /// Node of the thread where E_app is highest.
    pub node: NodeIx,
}

/// Page usage at the page size chosen.
#[derive(Clone, Debug, Serialize)]
pub struct PageReport {
    /// Pages used.
    pub pages: usize,
    /// With the threads where E_app is highest.
    pub best: ExclusivityMetrics,
    /// With the threads where E_app is lowest.
    pub worst: ExclusivityMetrics,
    /// Accuracy of first touch, with threads where E_app is highest.
    pub first_touch: Option<PlacementAccuracy>,
    /// The same of the memory traffic, with the same threads.
    pub traffic: PageTraffic,
    /// E_app and moves of pages over time.
    pub timeline: PageMigrationTimeline,
}

/// One slice of the run.
#[derive(Clone, Debug, Serialize)]
pub struct SliceMetrics {
    /// Its number, from 0.
    pub slice: usize,
    /// Start, s since the start of the run.
    pub start_seconds: f64,
    /// Whether accesses were counted in it: with `--sample`, not in every one.
    pub traced: bool,
    /// Threads that ran in it.
    pub threads: u32,
    /// Reads and writes in it.
    pub accesses: u64,
    /// C_A of the slice: communication events per cell of the matrix.
    pub amount: f64,
    /// C_H of the slice.
    pub heterogeneity: f64,
    /// Set on the first slice of each page slice.
    pub exclusivity: Option<f64>,
    /// Pages that move to another best node; set with the exclusivity.
    pub migrations: Option<u64>,
    /// pthread barriers, OpenMP barriers, OpenMP parallel regions, MPI barriers.
    pub sync: [u64; 4],
}

/// All metrics of a profile, as `hither stat` prints them.
#[derive(Clone, Debug, Serialize)]
pub struct MetricsReport {
    /// What ran.
    pub run: RunSummary,
    /// Machine and page size.
    pub setup: MetricsSetup,
    /// Whether placing threads or pages would help.
    pub verdict: MappingVerdict,
    /// H, C_H and A of the whole run (OPT eqs. 1 and 2).
    pub communication: CommunicationMetrics,
    /// The coherence events among those; `None` where they were not told apart.
    pub coherence: Option<CoherenceMetrics>,
    /// Imbalance of instructions per thread in per cent.
    pub load_balance: f64,
    /// `None` when no page use was recorded.
    pub pages: Option<PageReport>,
    /// Communication of the whole run.
    pub matrix: UpperTriangle,
    /// Stable phases of communication, with what lies between them.
    pub phases: Vec<CommunicationPhase>,
    /// Fewer slices were traced than it takes to tell phases apart.
    pub too_short_for_phases: bool,
    /// How many that takes: two windows.
    pub slices_for_phases: usize,
    /// The run slice by slice.
    pub slices: Vec<SliceMetrics>,
    /// All threads, in order of creation.
    pub threads: Vec<ThreadMetrics>,
    /// Data structures with accesses, most first.
    pub structures: Vec<StructureMetrics>,
    /// Source lines with accesses, most first.
    pub lines: Vec<HotLine>,
    /// Call paths that allocate, most accesses to their blocks first.
    pub allocation_paths: Vec<AllocationPathMetrics>,
    /// What could not be observed, one sentence each.
    pub limits: Vec<String>,
}

/// A report and the tables that it was computed from.
pub struct ProfileAnalysis {
    /// What `hither stat` prints.
    pub report: MetricsReport,
    /// Pages of the size that the setup names.
    pub table: Arc<PageAccessTable>,
    /// Their memory traffic, in the same positions; the same table where fetches were not counted.
    pub traffic: Arc<PageAccessTable>,
    /// What lasts of the use of each by the node that uses it most; empty where that is not known.
    pub lasting: Vec<f32>,
    /// The first toucher of each of them.
    pub first_touchers: PageMap<ThreadIx>,
    /// Positions in the table of each object's pages, each once; by row of the object.
    pub pages_of_object: HashMap<usize, Vec<usize>>,
}

impl MetricsReport {
    /// Computes every metric.
    #[must_use]
    pub fn from_profile(profile: &Profile, setup: MetricsSetup) -> Self {
        ProfileAnalysis::from_profile(profile, setup).report
    }
}

impl ProfileAnalysis {
    /// Computes every metric.
    #[must_use]
    pub fn from_profile(profile: &Profile, setup: MetricsSetup) -> Self {
        let table = PageAccessTable::from_rows(&profile.pages, &profile.regions, setup.page_size);
        ProfileAnalysis::with_page_table(profile, setup, Arc::new(table))
    }

    /// The same where the table of the setup's pages is there already.
    #[must_use]
    pub fn with_page_table(
        profile: &Profile,
        setup: MetricsSetup,
        table: Arc<PageAccessTable>,
    ) -> Self {
        let first_touchers =
            first_toucher_of_pages(&profile.first_touch, &profile.regions, setup.page_size);
        let run = run_summary(profile, table.len() as u64 * setup.page_size.bytes());
        let sharing = Sharing::of_run(profile, run.accesses());
        let (best, worst) = best_and_worst_assignment(&table, &sharing.working, setup.nodes);
        let traffic = traffic_table(profile, &table, setup.page_size);
        let tables = (&*table, &*traffic);
        let lasting = lasting_use(profile, (&table, setup.page_size), setup.nodes, &best);
        let pages = page_report(
            profile,
            &setup,
            (tables, &lasting),
            &first_touchers,
            (&best, &worst),
        );
        let served = NodeTraffic::counted(&traffic, (setup.nodes, &best), |id| {
            first_touchers.get(id).map(|t: &ThreadIx| best[t.at()])
        });
        let imbalance = MemoryImbalance::of(&served);
        let [all, coherence] = sharing.evidence();
        let mut verdict = mapping_verdict(&VerdictInput {
            threads: run.active_threads,
            sharing: all.unwrap_or_default(),
            coherence,
            of_busy_threads: sharing.of_busy_threads(),
            footprint: run.footprint,
            pages: table.len(),
            nodes: setup.nodes,
            cache_bytes: setup.cache_bytes,
            instructions: run.instructions,
            take_turns: threads_take_turns(profile),
            fetches: fetch_counts(&run, &traffic),
            page_traffic: pages.as_ref().map(|p| p.traffic),
            imbalance: imbalance.as_ref(),
            traffic: run.traffic,
            sampling_error: run.sampling_error,
            online: run.online,
            accesses_again: accesses_again(&table),
        });
        verdict.reasons.extend(profile.roles_sentence());
        let view = PageContext {
            size: setup.page_size,
            table: &table,
            first_touchers: &first_touchers,
            nodes: setup.nodes,
            node_of: &best,
        };
        let pages_of_object = pages_of_objects(profile, &view);
        let slices_for_phases = 2 * partner_window(profile);
        let report = MetricsReport {
            verdict,
            communication: sharing.communication,
            coherence: sharing.coherence,
            load_balance: percent_imbalance(working_instructions(profile, &sharing.working)),
            matrix: UpperTriangle::from_matrix(&sharing.matrix),
            too_short_for_phases: traced_slices(profile) < slices_for_phases,
            slices_for_phases,
            slices: slice_rows(profile, pages.as_ref()),
            threads: thread_rows(profile, &sharing.working, &best),
            phases: sharing.phases,
            structures: structure_metrics(profile, &view, &pages_of_object),
            lines: hot_lines(profile),
            allocation_paths: allocation_paths(profile),
            limits: profile.meta.limits.clone(),
            pages,
            run,
            setup,
        };
        ProfileAnalysis {
            report,
            table,
            traffic,
            lasting,
            first_touchers,
            pages_of_object,
        }
    }
}

/// Accesses beyond the first to each page.
fn accesses_again(table: &PageAccessTable) -> u64 {
    let uses = (0..table.len()).flat_map(|page| table.uses(page));
    let all = uses.map(|u| u.accesses()).fold(0, u64::saturating_add);
    all.saturating_sub(table.len() as u64)
}

/// `None` where they are too few to go by.
fn fetch_counts(run: &RunSummary, traffic: &PageAccessTable) -> Option<FetchCounts> {
    let all = run
        .fetches
        .filter(|_| run.traffic == TrafficUnit::Fetches)?;
    let pages = (0..traffic.len()).map(|page| traffic.uses(page));
    let shared = pages
        .filter(|uses| uses.len() > 1)
        .flatten()
        .map(|u| u.accesses());
    let shared = shared.fold(0, u64::saturating_add);
    Some(FetchCounts { all, shared })
}

fn run_summary(profile: &Profile, footprint: u64) -> RunSummary {
    let threads = &profile.threads;
    RunSummary {
        command: profile.meta.command.clone(),
        seconds: nanos_to_seconds(profile.meta.duration),
        threads: threads.len(),
        recorded_threads: profile.roles.len().max(threads.len()),
        active_threads: match threads.iter().map(|t| t.accesses()).max() {
            None | Some(0) => 0,
            Some(_) => profile.working_threads().iter().filter(|w| **w).count(),
        },
        processes: profile.meta.processes.len(),
        instructions: threads.iter().map(|t| t.instructions).sum(),
        reads: threads.iter().map(|t| t.reads).sum(),
        writes: threads.iter().map(|t| t.writes).sum(),
        fetches: all_fetches(profile),
        traffic: traffic_unit(profile),
        footprint: footprint.max(profile.meta.online.as_ref().map_or(0, |o| o.memory)),
        end: profile.meta.end.clone(),
        sampling_error: profile.meta.sampling_error,
        online: profile.meta.is_online(),
    }
}

fn page_report(
    profile: &Profile,
    setup: &MetricsSetup,
    ((table, traffic), lasting): ((&PageAccessTable, &PageAccessTable), &[f32]),
    first_touchers: &PageMap<ThreadIx>,
    (best, worst): (&[NodeIx], &[NodeIx]),
) -> Option<PageReport> {
    let place = |id| first_touchers.get(id).map(|t: &ThreadIx| best[t.at()]);
    Some(PageReport {
        pages: table.len(),
        best: exclusivity(table, setup.nodes, best)?,
        worst: exclusivity(table, setup.nodes, worst)?,
        first_touch: accuracy_of(table, 0..table.len(), setup.nodes, best, place),
        traffic: page_traffic((traffic, lasting), setup.nodes, (best, worst), place)?,
        timeline: page_migrations(
            profile,
            (table, setup.page_size),
            setup.nodes,
            best,
            first_touchers,
        ),
    })
}

fn page_traffic(
    (table, lasting): (&PageAccessTable, &[f32]),
    nodes: usize,
    (best, worst): (&[NodeIx], &[NodeIx]),
    place: impl Fn(PageId) -> Option<NodeIx>,
) -> Option<PageTraffic> {
    let first_touch = accuracy_of(table, 0..table.len(), nodes, best, place);
    let work = work_of_nodes(table, nodes, best);
    let belonging = PageBelonging::of_pages(table, 0..table.len(), best, &work, lasting)?;
    Some(PageTraffic {
        best: belonging.app,
        by_work: belonging.by_work,
        lasting: belonging.lasting,
        worst: exclusivity(table, nodes, worst)?.app,
        first_touch: first_touch.map(|a| TrafficAccuracy {
            app: a.app,
            local: a.local,
            remote: a.remote,
        }),
    })
}

fn working_instructions<'a>(
    profile: &'a Profile,
    working: &'a [bool],
) -> impl Iterator<Item = u64> + 'a {
    let threads = profile.threads.iter().zip(working);
    threads
        .filter(|(_, works)| **works)
        .map(|(t, _)| t.instructions)
}

fn slice_rows(profile: &Profile, pages: Option<&PageReport>) -> Vec<SliceMetrics> {
    let timed = profile.meta.page_slices > 0;
    let page_slices: HashMap<usize, _> = pages
        .filter(|_| timed)
        .into_iter()
        .flat_map(|p| p.timeline.slices.iter().map(|s| (s.first.at(), s)))
        .collect();
    let rows = profile.slices.iter().enumerate();
    rows.map(|(slice, s)| SliceMetrics {
        slice,
        start_seconds: nanos_to_seconds(s.start),
        traced: s.traced,
        threads: s.threads,
        accesses: s.accesses,
        amount: s.amount,
        heterogeneity: s.heterogeneity,
        exclusivity: page_slices.get(&slice).map(|p| p.exclusivity),
        migrations: page_slices.get(&slice).map(|p| p.migrations),
        sync: s.sync,
    })
    .collect()
}

fn thread_rows(profile: &Profile, working: &[bool], best: &[NodeIx]) -> Vec<ThreadMetrics> {
    let rows = profile.threads.iter().zip(working).zip(best);
    rows.map(|((t, &works), &node)| ThreadMetrics {
        name: t.name.clone(),
        process: t.process.0,
        rank: profile
            .meta
            .processes
            .get(t.process.at())
            .and_then(|p| p.rank),
        instructions: t.instructions,
        reads: t.reads,
        writes: t.writes,
        works,
        node,
    })
    .collect()
}
