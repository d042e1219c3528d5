//! The communication panel: the matrix of the run and of each step of it, over time.
use super::cluster_order::cluster_threads;
use super::round_to_digits;
use crate::report::page::{
    CommunicationFigures, CommunicationPanel, CommunicationTimeline, PackedGrid, ReportPhase,
    ThreadOrder, ThreadOrderKind,
};
use crate::report::sparse_table::SparseTable;
use hither_model::units::nanos_to_seconds;
use hither_profile::{Profile, Slice, Thread};
use std::ops::Range;

/// Most steps of the timeline: more than a wide screen has points.
const MOST_STEPS: usize = 2048;
/// Most cells of all steps' matrices together.
const MOST_CELLS: usize = 1_500_000;
/// Up to here the steps' matrices keep every count to the last digit.
const EXACT_CELLS: usize = 400_000;

/// What the metrics say.
pub struct CommunicationInput {
    pub figures: CommunicationFigures,
    /// Slices and figures of each phase.
    pub phases: Vec<(Range<usize>, CommunicationFigures)>,
    pub too_short: bool,
    /// All threads in the order of the units they are placed on.
    pub placed: Option<Vec<u32>>,
}

#[must_use]
pub fn communication_panel(profile: &Profile, given: CommunicationInput) -> CommunicationPanel {
    let pairs = pair_events(profile);
    let cuts: Vec<usize> = given.phases.iter().map(|p| p.0.start).collect();
    let (steps, matrices) = timeline_steps(profile, &cuts);
    let phases = given.phases.iter().map(|(slices, figures)| {
        let step = |slice: usize| steps.partition_point(|s| s.start < slice);
        let covered = profile.slices.get(slices.clone()).unwrap_or(&[]);
        ReportPhase {
            first: step(slices.start),
            end: step(slices.end),
            start: nanos_to_seconds(covered.first().map_or(0, |s| s.start)),
            seconds: nanos_to_seconds(covered.iter().map(|s| s.length).sum()),
            figures: *figures,
        }
    });
    CommunicationPanel {
        figures: given.figures,
        matrix: packed_matrix(profile.threads.len(), &pairs),
        phases: phases.collect(),
        timeline: communication_timeline(&profile.slices, &steps, matrices),
        orders: thread_orders(&profile.threads, pairs, given.placed),
        too_short: given.too_short,
    }
}

/// Communication of the whole run, i < j, in order.
fn pair_events(profile: &Profile) -> Vec<(u32, u32, u64)> {
    let rows = profile.comm.iter().filter(|c| c.events > 0);
    let mut pairs: Vec<_> = rows.map(|c| (c.i.0, c.j.0, c.events)).collect();
    pairs.sort_unstable();
    pairs.dedup_by(|next, sum| {
        let same = (next.0, next.1) == (sum.0, sum.1);
        if same {
            sum.2 = sum.2.saturating_add(next.2);
        }
        same
    });
    pairs
}

fn packed_matrix(threads: usize, pairs: &[(u32, u32, u64)]) -> PackedGrid {
    let mut table = SparseTable::new(threads as u32);
    let mut rest = pairs;
    for i in 0..threads as u32 {
        let (mine, others) = rest.split_at(rest.partition_point(|p| p.0 <= i));
        table.push(mine.iter().map(|p| (p.1, p.2)));
        rest = others;
    }
    table.pack(true)
}

fn thread_orders(
    threads: &[Thread],
    pairs: Vec<(u32, u32, u64)>,
    placed: Option<Vec<u32>>,
) -> Vec<ThreadOrder> {
    let order = |by, threads| ThreadOrder { by, threads };
    let numbers: Vec<u32> = (0..threads.len() as u32).collect();
    let mut orders = vec![order(ThreadOrderKind::Thread, numbers.clone())];
    let process = |thread: &u32| threads[*thread as usize].process;
    if numbers.windows(2).any(|w| process(&w[0]) != process(&w[1])) {
        let mut grouped = numbers;
        grouped.sort_by_key(process);
        orders.push(order(ThreadOrderKind::Process, grouped));
    }
    orders.extend(placed.map(|threads| order(ThreadOrderKind::Placement, threads)));
    orders.push(order(
        ThreadOrderKind::Cluster,
        cluster_threads(threads.len(), pairs),
    ));
    orders
}

/// Steps as ranges of slices that respect the cuts, as fine as the page can carry.
fn timeline_steps(profile: &Profile, cuts: &[usize]) -> (Vec<Range<usize>>, PackedGrid) {
    let slices = profile.slices.len();
    let mut width = slices.div_ceil(MOST_STEPS).max(1);
    loop {
        let steps = cut_steps(slices, width, cuts);
        let table = step_matrices(profile, &steps);
        if table.cells() <= MOST_CELLS || width >= slices {
            return (steps, table.pack(table.cells() <= EXACT_CELLS));
        }
        width *= 2;
    }
}

fn cut_steps(slices: usize, width: usize, cuts: &[usize]) -> Vec<Range<usize>> {
    let mut bounds: Vec<usize> = (0..slices).step_by(width).collect();
    bounds.extend(cuts.iter().copied().filter(|&c| c < slices));
    bounds.push(slices);
    bounds.sort_unstable();
    bounds.dedup();
    bounds.windows(2).map(|w| w[0]..w[1]).collect()
}

fn step_matrices(profile: &Profile, steps: &[Range<usize>]) -> SparseTable {
    let threads = profile.threads.len() as u64;
    let key = |i: u32, j: u32| (u64::from(i) * threads + u64::from(j)) as u32;
    let mut table = SparseTable::new((threads * threads) as u32);
    let mut rest = profile.comm.as_slice();
    for step in steps {
        let (mine, later) = rest.split_at(rest.partition_point(|c| c.slice.at() < step.end));
        rest = later;
        let mut cells: Vec<(u32, u64)> =
            mine.iter().map(|c| (key(c.i.0, c.j.0), c.events)).collect();
        cells.sort_unstable();
        cells.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            if same {
                sum.1 = sum.1.saturating_add(next.1);
            }
            same
        });
        table.push(cells);
    }
    table
}

fn communication_timeline(
    slices: &[Slice],
    steps: &[Range<usize>],
    matrices: PackedGrid,
) -> CommunicationTimeline {
    let mut out = CommunicationTimeline {
        slices_per_step: steps.iter().map(Range::len).max().unwrap_or(1),
        matrices,
        ..CommunicationTimeline::default()
    };
    for step in steps {
        let all = &slices[step.clone()];
        let traced = || all.iter().filter(|s| s.traced);
        let count = traced().count().max(1) as f64;
        let mean = |of: fn(&Slice) -> f64| round_to_digits(traced().map(of).sum::<f64>() / count);
        let most = |of: fn(&Slice) -> f64| round_to_digits(traced().map(of).fold(0.0, f64::max));
        out.start
            .push(nanos_to_seconds(all.first().map_or(0, |s| s.start)));
        out.slice.push(step.start);
        out.amount.push(mean(|s| s.amount));
        out.amount_most.push(most(|s| s.amount));
        out.heterogeneity.push(mean(|s| s.heterogeneity));
        out.heterogeneity_most.push(most(|s| s.heterogeneity));
        let threads = all.iter().map(|s| s.threads).max();
        out.threads.push(threads.unwrap_or(0));
    }
    out
}
