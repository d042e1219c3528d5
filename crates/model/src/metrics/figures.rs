//! The figures that sum up a run, as `hither stat`, the page and comparisons list them: what each means,
//! what the verdict asks of it, and how far it differs between runs of one program.
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
use super::thresholds::{h_min, ACC_RIGHT, A_MIN, E_HIGH, MIN_LOCAL_GAIN, TIME_MIN};
use crate::units::{bytes, count, percent, three_digits};
use hither_profile::FigureUnit::{Bytes, Count, Number, Percent, Seconds, Share};
use hither_profile::{RunFigure, TrafficUnit};

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
pub fn remote_figures(analysis: &ProfileAnalysis, residence: &NodeResidence) -> Vec<RunFigure> {
    let pages = match residence.from_placement {
        true => "threads and pages as placed",
        false => "pages by first touch",
    };
    let share = |name, what, table, spread| {
        let meaning = format!("{what} another node's memory, {pages}");
        let share = residence.remote_share(table);
        RunFigure::new(name, share, Share, meaning).lower_is_better(spread)
    };
    let counted = analysis.report.run.traffic == TrafficUnit::Fetches;
    let fetched = || {
        let all = residence.traffic(&analysis.traffic).total_accesses();
        let spread = SHARE_SPREAD + FETCHES_ERROR / (all.max(1) as f64).sqrt();
        let table = &analysis.traffic;
        share(REMOTE_FETCHES, "lines fetched from", table, spread)
    };
    let fetched = counted.then(fetched);
    let accessed = share(REMOTE, "accesses to", &analysis.table, SHARE_SPREAD);
    fetched.into_iter().chain([accessed]).collect()
}

/// The figures of a report that comparisons list.
#[must_use]
pub fn compared_figures(r: &MetricsReport) -> Vec<RunFigure> {
    let run = &r.run;
    let total = |name, n: u64, unit, meaning| {
        RunFigure::new(name, Some(n as f64), unit, meaning).varies(TOTAL_SPREAD)
    };
    let seconds = "under the tracer: not the program's own time";
    let mut all = vec![
        RunFigure::new("seconds traced", Some(run.seconds), Seconds, seconds).varies(TIME_SPREAD),
        total("threads", run.recorded_threads as u64, Count, "started"),
        total("instructions", run.instructions, Count, "of all threads"),
        total("reads", run.reads, Count, "of all threads"),
        total("writes", run.writes, Count, "of all threads"),
        total("footprint", run.footprint, Bytes, "memory used"),
    ];
    all.extend(communication_figures(r));
    let phases = Some(r.phases.len() as f64);
    all.push(RunFigure::new("phases", phases, Count, "of communication").varies(COUNT_SPREAD));
    all.extend(page_figures(r));
    all.retain(|figure| figure.spread > 0.0);
    all
}

/// The figures that `hither stat` prints, without a value where the profile does not say.
#[must_use]
pub fn stat_figures(r: &MetricsReport) -> Vec<RunFigure> {
    let pages = page_figures(r);
    communication_figures(r).into_iter().chain(pages).collect()
}

/// Those of them that the verdict goes by, threads first.
#[must_use]
pub fn verdict_figures(r: &MetricsReport) -> Vec<RunFigure> {
    let known = stat_figures(r).into_iter().filter(|f| f.value.is_some());
    known.filter(|f| f.required.is_some()).collect()
}

fn communication_figures(r: &MetricsReport) -> Vec<RunFigure> {
    let (c, online) = (&r.communication, r.run.online);
    let number = |name, value, meaning| RunFigure::new(name, Some(value), Number, meaning);
    // With two threads there is nothing to choose.
    let of_pairs = r.run.active_threads > 2;
    let differ =
        || of_pairs.then(|| format!("at least {}", three_digits(h_min(r.run.active_threads))));
    let rate = || (!online).then(|| format!("at least {A_MIN:.0}"));
    let per_second = match online {
        true => "events per cell and second of the run",
        false => "events per cell and second of the traced run",
    };
    let of_mean = |name, value, meaning| RunFigure::new(name, value, Percent, meaning);
    let ratio = (!online).then_some(c.ratio);
    let coherence = r.coherence.as_ref();
    // As many events a second as A_min, of those that there are.
    let enough = A_MIN / c.amount_per_second;
    let is_asked = of_pairs && !online && enough <= 1.0;
    let written = || is_asked.then(|| format!("at least {}", percent(enough.max(0.001))));
    let coherence_residual = coherence.map(|c| c.communication.heterogeneity_residual);
    vec![
        number(
            "C_H",
            c.heterogeneity,
            "heterogeneity of communication, 0 to 2500",
        )
        .varies(PATTERN_SPREAD)
        .requires(differ()),
        number(
            "C_H pairs",
            c.heterogeneity_pairs,
            "without the diagonal: 0 if all share alike",
        )
        .varies(PATTERN_SPREAD)
        .requires(differ()),
        number(
            "C_H residual",
            c.heterogeneity_residual,
            "beside how much each thread shares",
        )
        .requires(differ()),
        number(
            "C_A",
            c.amount,
            "communication events per cell of the matrix",
        )
        .lower_is_better(AMOUNT_SPREAD),
        number("C_A per second", c.amount_per_second, per_second)
            .varies(AMOUNT_SPREAD)
            .requires(rate()),
        of_mean(
            "B_comm",
            Some(c.balance),
            "busiest thread's communication above the mean",
        )
        .lower_is_better(BALANCE_SPREAD),
        // Of page faults, what is seen of sharing depends on how many were caused.
        RunFigure::new("R_comm", ratio, Number, "C_A per memory access")
            .lower_is_better(AMOUNT_SPREAD),
        RunFigure::new(
            "coherence",
            coherence.map(|c| c.share),
            Share,
            "events that may find a line changed",
        )
        .requires(written()),
        RunFigure::new(
            "C_H coherence",
            coherence_residual,
            Number,
            "C_H residual of those",
        )
        .requires(differ()),
        RunFigure::new(
            "coherence time",
            r.verdict.coherence_time,
            Share,
            "of the threads' time that those take at most",
        )
        .requires(of_pairs.then(|| format!("at least {}", percent(TIME_MIN)))),
        number(
            "H (kMAF)",
            c.heterogeneity_raw,
            "heterogeneity, not normalised",
        ),
        of_mean(
            "load balance",
            (r.run.instructions > 0).then_some(r.load_balance),
            "busiest thread's instructions above the mean",
        )
        .lower_is_better(LOAD_SPREAD),
    ]
}

fn page_figures(r: &MetricsReport) -> Vec<RunFigure> {
    let pages = r.pages.as_ref();
    let of = |f: fn(&PageReport) -> f64| pages.map(f);
    let first = pages.and_then(|p| p.first_touch);
    let share = |name, value, meaning: &str| RunFigure::new(name, value, Share, meaning);
    let lowest = 100.0 / r.setup.nodes as f64;
    let main_node = format!("accesses by each page's main node, {lowest:.0} to 100 %");
    let moves = pages.map(|p| &p.timeline).map_or_else(String::new, |t| {
        let (once, more) = (count(t.moved_once), count(t.moved_more));
        format!("page moves ({once} once, {more} more often)")
    });
    let fetches = r.run.traffic == TrafficUnit::Fetches;
    let mut all = vec![
        share(EXCLUSIVITY, of(|p| p.best.app), &main_node).higher_is_better(SHARE_SPREAD),
        share(
            "E_app worst",
            of(|p| p.worst.app),
            "the same with threads placed worst",
        )
        .higher_is_better(SHARE_SPREAD),
        share(
            "E_page",
            of(|p| p.best.page_mean),
            "mean over pages, threads placed best",
        ),
        share(
            "Acc_page",
            first.map(|f| f.page),
            "pages that first touch puts on the right node",
        )
        .higher_is_better(RIGHT_SPREAD),
        share(
            "Acc_app",
            first.map(|f| f.app),
            "the same, pages weighted with their accesses",
        )
        .higher_is_better(RIGHT_SPREAD),
        share(
            "local",
            first.map(|f| f.local),
            "accesses that first touch makes local",
        )
        .higher_is_better(SHARE_SPREAD),
        share(
            REMOTE,
            first.map(|f| f.remote),
            "accesses that it leaves to another node's memory",
        ),
    ];
    let first = pages
        .and_then(|p| p.traffic.first_touch)
        .filter(|_| fetches);
    let best = of(|p| p.traffic.best);
    all.extend([
        share(
            "E_app fetches",
            best.filter(|_| fetches),
            "E_app best of fetches, by which the verdict goes",
        ),
        share(
            "Acc_app fetches",
            first.map(|f| f.app),
            "fetches from pages that first touch puts right",
        ),
        share(
            "local fetches",
            first.map(|f| f.local),
            "fetches that first touch makes local",
        ),
        share(
            REMOTE_FETCHES,
            first.map(|f| f.remote),
            "fetches that it leaves to another node's memory",
        ),
        RunFigure::new(
            "migrations",
            of(|p| p.timeline.migrations as f64),
            Count,
            moves,
        )
        .lower_is_better(COUNT_SPREAD),
        footprint(r),
    ]);
    // With one node all is local.
    if let Some(best) = best.filter(|_| r.setup.nodes > 1) {
        let names = match fetches {
            true => [
                "E_app fetches",
                "Acc_app fetches",
                "local fetches",
                REMOTE_FETCHES,
            ],
            false => [EXCLUSIVITY, "Acc_app", "local", REMOTE],
        };
        let asked = [
            format!("at least {}", percent(E_HIGH)),
            format!("less than {}", percent(ACC_RIGHT)),
            format!("at most {}", percent((best - MIN_LOCAL_GAIN).max(0.0))),
            format!(
                "at least {}",
                percent((1.0 - best + MIN_LOCAL_GAIN).min(1.0))
            ),
        ];
        for (name, asked) in names.into_iter().zip(asked) {
            let figure = all.iter_mut().filter(|f| f.name == name);
            figure.for_each(|f| f.required = Some(asked.clone()));
        }
    }
    all
}

fn footprint(r: &MetricsReport) -> RunFigure {
    let used = r.pages.as_ref().map(|_| r.run.footprint as f64);
    let caches = Some(r.setup.cache_bytes)
        .filter(|size| *size > 0)
        .map(bytes);
    let meaning = caches.as_ref().map_or_else(
        || "caches unknown".to_owned(),
        |size| format!("all caches hold {size}"),
    );
    let larger = caches.filter(|_| r.setup.nodes > 1);
    RunFigure::new("footprint", used, Bytes, meaning)
        .requires(larger.map(|size| format!("more than {size}")))
}
