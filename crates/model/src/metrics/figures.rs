//! The figures that sum up a run, as comparisons list them, and how far each differs
//! between runs of one program.
//!
//! The spreads are measured, not derived: ten traces each of `ondes`, `stencil2d`, `is
//! cyclic` and `is dynamic`, four threads on two cores that others used too. Shares of
//! accesses differed by at most 4.9 points where threads take work as they come (`is
//! dynamic`), by 0.8 points else; there the shares of what is on the right node by 12.5 points,
//! since whole pages change sides; totals by 0.1 %. What is shared within a slice depends on which
//! threads run at the same time: with more threads than cores C_A differed by a factor of seven. A
//! spread is the largest seen, rounded up.
use super::metrics_report::{MetricsReport, PageReport, ProfileAnalysis};
use super::residence::NodeResidence;
use hither_profile::{BetterWhen, FigureUnit, RunFigure, TrafficUnit};

/// Names of the figures that gates ask for: of the first two the first that there is, since what is
/// in a core's own cache leaves no node.
pub const REMOTE_FETCHES: &str = "remote fetches";
/// Share of accesses.
pub const REMOTE: &str = "remote accesses";
/// Name of the figure E_app (OPT eq. 6) with threads where it is highest.
pub const EXCLUSIVITY: &str = "E_app best";

/// Of shares of accesses.
pub const SHARE_SPREAD: f64 = 0.05;
/// Twice the standard error of the difference of two shares of N fetches, times the root of N: one line in
/// 64 is followed, and a share of n has a variance of at most 1 / 4n.
const FETCHES_ERROR: f64 = 2.0 * std::f64::consts::SQRT_2 * 0.5 * 8.0;
/// Of the shares that count a page as right or wrong as a whole.
const RIGHT_SPREAD: f64 = 0.13;
/// Of totals: instructions, accesses, bytes.
const TOTAL_SPREAD: f64 = 0.02;
/// Of the time under the tracer.
const TIME_SPREAD: f64 = 0.5;
/// Of C_H.
const PATTERN_SPREAD: f64 = 0.8;
/// Of C_A and R_comm.
const AMOUNT_SPREAD: f64 = 0.9;
/// Of B_comm, in points.
const BALANCE_SPREAD: f64 = 55.0;
/// Of the imbalance of instructions, in points.
const LOAD_SPREAD: f64 = 20.0;
/// Of phases and migrations.
const COUNT_SPREAD: f64 = 0.5;

/// Where threads run and pages lie: the shares of fetches, where they were counted, and of accesses
/// that leave their node.
#[must_use]
pub fn remote_figures(analysis: &ProfileAnalysis, ground: &NodeResidence) -> Vec<RunFigure> {
    let placed = ground.from_placement;
    let share = |name, meaning, table, spread| {
        let share = ground.remote_share(table);
        lower_is_better(name, meaning, FigureUnit::Share, spread, share)
    };
    let fetches = match placed {
        true => "lines fetched from another node's memory, threads and pages as placed",
        false => "lines fetched from another node's memory, pages by first touch",
    };
    let accesses = match placed {
        true => "accesses to another node's memory, threads and pages as placed",
        false => "accesses to another node's memory, pages by first touch",
    };
    let counted = analysis.report.run.traffic == TrafficUnit::Fetches;
    let fetched = || {
        let all = ground.traffic(&analysis.traffic).total_accesses();
        let spread = SHARE_SPREAD + FETCHES_ERROR / (all.max(1) as f64).sqrt();
        share(REMOTE_FETCHES, fetches, &analysis.traffic, spread)
    };
    let fetched = counted.then(fetched);
    let accessed = share(REMOTE, accesses, &analysis.table, SHARE_SPREAD);
    fetched.into_iter().chain([accessed]).collect()
}

/// All figures of a report, in the order of `hither stat`.
#[must_use]
pub fn all_figures(r: &MetricsReport) -> Vec<RunFigure> {
    let mut all = run_figures(r);
    all.extend(communication_figures(r));
    all.extend(page_figures(r.pages.as_ref()));
    all
}

fn run_figures(r: &MetricsReport) -> Vec<RunFigure> {
    let total = |name, meaning, unit, value: u64| {
        plain(name, meaning, unit, TOTAL_SPREAD, Some(value as f64))
    };
    let run = &r.run;
    let seconds = "under the tracer: not the program's own time";
    vec![
        plain(
            "seconds traced",
            seconds,
            FigureUnit::Seconds,
            TIME_SPREAD,
            Some(run.seconds),
        ),
        total(
            "threads",
            "started",
            FigureUnit::Count,
            run.recorded_threads as u64,
        ),
        total(
            "instructions",
            "of all threads",
            FigureUnit::Count,
            run.instructions,
        ),
        total("reads", "of all threads", FigureUnit::Count, run.reads),
        total("writes", "of all threads", FigureUnit::Count, run.writes),
        total("footprint", "memory used", FigureUnit::Bytes, run.footprint),
    ]
}

fn communication_figures(r: &MetricsReport) -> Vec<RunFigure> {
    let c = &r.communication;
    vec![
        plain(
            "C_H",
            "heterogeneity of communication",
            FigureUnit::Number,
            PATTERN_SPREAD,
            Some(c.heterogeneity),
        ),
        plain(
            "C_H pairs",
            "the same without the diagonal",
            FigureUnit::Number,
            PATTERN_SPREAD,
            Some(c.heterogeneity_pairs),
        ),
        lower_is_better(
            "C_A",
            "communication events per cell of the matrix",
            FigureUnit::Number,
            AMOUNT_SPREAD,
            Some(c.amount),
        ),
        plain(
            "C_A per second",
            "the same per second under the tracer",
            FigureUnit::Number,
            AMOUNT_SPREAD,
            Some(c.amount_per_second),
        ),
        lower_is_better(
            "B_comm",
            "busiest thread's communication above the mean",
            FigureUnit::Percent,
            BALANCE_SPREAD,
            Some(c.balance),
        ),
        lower_is_better(
            "R_comm",
            "C_A per memory access",
            FigureUnit::Number,
            AMOUNT_SPREAD,
            Some(c.ratio),
        ),
        lower_is_better(
            "load balance",
            "busiest thread's instructions above the mean",
            FigureUnit::Percent,
            LOAD_SPREAD,
            Some(r.load_balance),
        ),
        plain(
            "phases",
            "of communication",
            FigureUnit::Count,
            COUNT_SPREAD,
            Some(r.phases.len() as f64),
        ),
    ]
}

fn page_figures(pages: Option<&PageReport>) -> Vec<RunFigure> {
    let of = |f: fn(&PageReport) -> f64| pages.map(f);
    let first = pages.and_then(|p| p.first_touch);
    let share = |name, meaning, value| {
        higher_is_better(name, meaning, FigureUnit::Share, SHARE_SPREAD, value)
    };
    let right = |name, meaning, value| {
        higher_is_better(name, meaning, FigureUnit::Share, RIGHT_SPREAD, value)
    };
    vec![
        share(
            EXCLUSIVITY,
            "accesses by each page's main node, threads placed best",
            of(|p| p.best.app),
        ),
        share(
            "E_app worst",
            "the same, threads placed worst",
            of(|p| p.worst.app),
        ),
        right(
            "Acc_page",
            "pages that first touch puts on the right node",
            first.map(|f| f.page),
        ),
        right(
            "Acc_app",
            "the same, pages weighted with their accesses",
            first.map(|f| f.app),
        ),
        share(
            "local",
            "accesses that first touch makes local",
            first.map(|f| f.local),
        ),
        lower_is_better(
            "migrations",
            "moves of pages to follow their use",
            FigureUnit::Count,
            COUNT_SPREAD,
            of(|p| p.timeline.migrations as f64),
        ),
    ]
}

fn neutral_figure(
    name: &str,
    meaning: &str,
    unit: FigureUnit,
    spread: f64,
    value: Option<f64>,
) -> RunFigure {
    RunFigure {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        unit,
        better: BetterWhen::Neither,
        spread,
        value,
    }
}

use neutral_figure as plain;

fn lower_is_better(
    name: &str,
    meaning: &str,
    unit: FigureUnit,
    spread: f64,
    value: Option<f64>,
) -> RunFigure {
    let figure = neutral_figure(name, meaning, unit, spread, value);
    RunFigure {
        better: BetterWhen::Lower,
        ..figure
    }
}

fn higher_is_better(
    name: &str,
    meaning: &str,
    unit: FigureUnit,
    spread: f64,
    value: Option<f64>,
) -> RunFigure {
    let figure = neutral_figure(name, meaning, unit, spread, value);
    RunFigure {
        better: BetterWhen::Higher,
        ..figure
    }
}
