//! The verdict: whether placing threads, pages, both or neither would help this program, and why.
//! The thresholds are the papers'; where they needed completing, the comment says how.
use super::communication::CommunicationMetrics;
use super::exclusivity::ExclusivityMetrics;
use super::placement_accuracy::PlacementAccuracy;
use crate::units;
use serde::Serialize;

/// Least C_H worth a thread mapping (OPT 6.2.2), with up to [`H_MIN_THREADS`] threads.
pub const H_MIN: f64 = 100.0;
/// The papers chose H_min on runs of 64 threads. C_H of a fixed pattern falls as 1/T (pairs
/// give 10^4 (T-1)/T^2), so above 64 threads the threshold falls with it.
pub const H_MIN_THREADS: usize = 64;
/// Least C_A per second worth a thread mapping (OPT 6.2.2).
pub const A_MIN: f64 = 150.0;
/// E_app from which pages have a node they belong to. kMAF eq. 6 moves a page whose first
/// node has twice the accesses of the second: with two nodes sharing it, E_page = 2/3.
pub const E_HIGH: f64 = 2.0 / 3.0;
/// Acc_app from which first touch is right. Ours: the papers report the gap (OPT figure 8)
/// but name no threshold.
pub const ACC_RIGHT: f64 = 0.9;
/// Least share of accesses that placing pages must make local. Ours: half of what
/// [`ACC_RIGHT`] lets pass, since a page on a wrong node still has accesses from there.
pub const MIN_LOCAL_GAIN: f64 = 0.05;
/// E_app(best) - E_app(worst) from which the assignment of threads decides where pages are
/// local. Ours: the papers' mean difference is 6 points (OPT figure 7), this is above it.
pub const E_SPREAD: f64 = 0.1;

/// Sharing events per thread from which a sample of them shows which threads share: the noise of a
/// pattern of pairs is below a third then. Ours.
pub const EVENTS_MIN: u64 = 10;

/// The figures that the verdict is based on.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerdictInput<'a> {
    /// Threads that accessed memory.
    pub threads: usize,
    /// H, C_H and A of the run.
    pub communication: CommunicationMetrics,
    /// Pages used times their size, bytes.
    pub footprint: u64,
    /// Pages used.
    pub pages: usize,
    /// NUMA nodes of the machine, N.
    pub nodes: usize,
    /// 0 when unknown.
    pub cache_bytes: u64,
    /// E_app with threads where it is highest; `None` when no page use was recorded.
    pub best: Option<&'a ExclusivityMetrics>,
    /// E_app with threads where it is lowest.
    pub worst: Option<&'a ExclusivityMetrics>,
    /// Acc_app of first touch.
    pub first_touch: Option<&'a PlacementAccuracy>,
    /// Relative standard error of totals when sampled, else 0.
    pub sampling_error: f64,
    /// Counts are page faults: a sample of unknown share, so rates are meaningless.
    pub online: bool,
}

/// Whether placing is worth it, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MappingVerdict {
    /// Suitable for mapping threads (OPT 4.4).
    pub thread_mapping: bool,
    /// Suitable for mapping data (OPT 5.4).
    pub data_mapping: bool,
    /// The answer in one sentence.
    pub sentence: String,
    /// The reasons, one sentence each: threads, data, confidence.
    pub reasons: Vec<String>,
}

/// H_min for a number of threads.
#[must_use]
pub fn h_min(threads: usize) -> f64 {
    H_MIN * (H_MIN_THREADS as f64 / threads.max(1) as f64).min(1.0)
}

/// The verdict that the evidence gives, by the thresholds of this module.
#[must_use]
pub fn mapping_verdict(e: &VerdictInput) -> MappingVerdict {
    let (thread_mapping, threads_why) = thread_mapping(e);
    let (data_mapping, data_why) = data_mapping(e);
    // Where all nodes use the same pages, any node that uses one a little more is right.
    let belong = e.best.is_some_and(|b| b.app >= E_HIGH);
    let already_right = e.nodes > 1 && belong && e.first_touch.is_some_and(|a| a.app >= ACC_RIGHT);
    let sentence = match (thread_mapping, data_mapping) {
        _ if e.threads == 0 => "nothing to place: no memory access was traced",
        (_, true) if e.threads == 1 => "one thread: nothing to place but data",
        (_, false) if e.threads == 1 => "one thread: nothing to place but data, and that pays little",
        (true, true) => "suitable for thread mapping and data mapping",
        (true, false) if already_right => {
            "suitable for thread mapping; for data there is nothing to gain, first touch is already right"
        }
        (true, false) => "suitable for thread mapping, not for data mapping",
        (false, true) => "suitable for data mapping, not for thread mapping",
        (false, false) if already_right => "nothing to gain, first touch is already right",
        (false, false) => "suitable for neither thread mapping nor data mapping",
    };
    let mut reasons: Vec<String> = Vec::new();
    if e.threads > 0 {
        reasons.extend([threads_why, data_why]);
    }
    if e.online {
        reasons.push(
            "From page faults seen while it ran, a sample of its accesses: shares are rough."
                .to_owned(),
        );
    } else if e.sampling_error > 0.0 {
        reasons.push(format!(
            "From a sample of the run: totals are good to about {:.1} %.",
            e.sampling_error * 100.0
        ));
    }
    MappingVerdict {
        thread_mapping,
        data_mapping,
        sentence: sentence.to_owned(),
        reasons,
    }
}

fn thread_mapping(e: &VerdictInput) -> (bool, String) {
    let c = &e.communication;
    let h_min = h_min(e.threads);
    let locality = match (e.best, e.worst) {
        (Some(b), Some(w)) => b.app - w.app,
        _ => 0.0,
    };
    let (suits, mut why) = if e.threads < 2 {
        return (
            false,
            "Threads: one thread has nobody to be near to.".to_owned(),
        );
    } else if c.events == 0 {
        (false, "Threads: they share no line of memory.".to_owned())
    } else if e.online && c.events < EVENTS_MIN * e.threads as u64 {
        (
            false,
            format!(
                "Threads: {} sharing events were seen, too few to tell who shares with whom; it \
                 takes {}.",
                c.events,
                EVENTS_MIN * e.threads as u64
            ),
        )
    } else if !e.online && c.amount_per_second < A_MIN {
        (
            false,
            format!(
                "Threads: they share little, {} events/s per pair (C_A); it takes {A_MIN:.0}.",
                format_rate(c.amount_per_second)
            ),
        )
    } else if e.threads == 2 {
        (
            false,
            "Threads: there is only one pair; keep the two close, there is no more to choose."
                .to_owned(),
        )
    } else if c.heterogeneity < h_min || c.heterogeneity_pairs < h_min {
        (
            false,
            format!(
                "Threads: all share alike, heterogeneity {:.0} between pairs (C_H {:.0}); \
                 it takes {h_min:.0}.",
                c.heterogeneity_pairs, c.heterogeneity
            ),
        )
    } else {
        (true, heterogeneity_reason(c, h_min, e.online))
    };
    if locality >= E_SPREAD {
        why.push_str(&format!(
            " Which threads share a node moves E_app by {:.0} points.",
            locality * 100.0
        ));
    }
    (suits, why)
}

fn heterogeneity_reason(c: &CommunicationMetrics, h_min: f64, online: bool) -> String {
    let often = match online {
        true => format!(
            " How often they do so, {} sampled events do not tell.",
            c.events
        ),
        false => format!(
            " They do so often ({} events/s; it takes {A_MIN:.0}).",
            format_rate(c.amount_per_second)
        ),
    };
    format!(
        "Threads: some pairs share much more than others (C_H {:.0}, {:.0} between pairs; it \
         takes {h_min:.0}).{often}",
        c.heterogeneity, c.heterogeneity_pairs,
    )
}

fn data_mapping(e: &VerdictInput) -> (bool, String) {
    let Some(best) = e.best else {
        return (false, "Data: no page use was recorded.".to_owned());
    };
    if e.nodes < 2 {
        return (false, "Data: with one node every page is local.".to_owned());
    }
    if e.pages < e.nodes {
        let why = format!(
            "Data: {} pages are too few to spread over {} nodes.",
            e.pages, e.nodes
        );
        return (false, why);
    }
    if e.cache_bytes > 0 && e.footprint <= e.cache_bytes {
        let why = format!(
            "Data: all of it, {}, fits in the caches, {} (eq. 7); pages matter little.",
            units::show_bytes(e.footprint),
            units::show_bytes(e.cache_bytes)
        );
        return (false, why);
    }
    let Some(first) = e.first_touch else {
        return (false, "Data: no first touch was recorded.".to_owned());
    };
    let (exclusive, right) = (best.app * 100.0, first.app * 100.0);
    if best.app < E_HIGH {
        let why = format!(
            "Data: all nodes use the same pages (E_app {exclusive:.0} %; it takes {:.0} %), so no \
             node is right for them; spread them if one memory is overloaded.",
            E_HIGH * 100.0
        );
        return (false, why);
    }
    if first.app >= ACC_RIGHT {
        let why = format!(
            "Data: {right:.0} % of accesses go to pages that first touch puts on the right \
             node; moving pages gains nothing."
        );
        return (false, why);
    }
    if best.app - first.local < MIN_LOCAL_GAIN {
        let why = format!(
            "Data: first touch makes {:.0} % of accesses local; with every page on its best \
             node it would be {exclusive:.0} %, which is not worth moving them.",
            first.local * 100.0
        );
        return (false, why);
    }
    let why = format!(
        "Data: pages belong to one node (E_app {exclusive:.0} %), but first touch puts only \
         {right:.0} % of accesses on the right one."
    );
    (true, why)
}

/// `24311` or, from 100 000 on, `1.62 M`.
fn format_rate(value: f64) -> String {
    match value {
        v if v < 99_999.5 => format!("{v:.0}"),
        v => units::count(v as u64),
    }
}
