//! The communication pattern changes during the run, so that one placement of threads
//! cannot fit all of it.
//!
//! The run is cut at its phases ([`crate::metrics::stable_phases`]), which leave out what does not stay, and into stretches
//! of [`WINDOW`] slices, the shortest phase of OPT. Each is compared with the patterns seen
//! before by [`PartnerShares::overlap`]; a thread that falls silent keeps its partners.
//!
//! A stretch has the pattern that it overlaps most with, if by at least [`ALIKE`]; else it
//! is a new one. Stretches that no placement would be made for (C_A per second below A_min,
//! heterogeneity between pairs below H_min) have none and change nothing.
//!
//! Found when there are several patterns. Severity: the share of communication events that
//! is not in the most common one.
use super::common::{communication_share, format_percent};
use super::FindingContext;
use crate::metrics::partner_shares::{directed_cells, PartnerShares};
use crate::metrics::phase_detection::WINDOW;
use crate::metrics::thresholds::{h_min, A_MIN};
use hither_profile::{
    Finding, FindingKind, FindingPicture, PairComm, Slice, SuggestedFix, TrafficUnit,
};
use std::ops::Range;

/// Ours: when less than half of the communication is with the same partners, another
/// placement is wanted.
const ALIKE: f64 = 0.5;
/// t_min of OPT 6.2.2: threads move at most once in this many seconds.
const LEAST_SECONDS: f64 = 1.0;
/// Least share of events outside the most common pattern. Ours: as with pages, a placement
/// that suits nine tenths is right.
const LEAST_OUTSIDE: f64 = 0.1;
/// Least share of the run's accesses. Ours: as for false sharing.
const LEAST_SEVERITY: f64 = 0.001;
/// Patterns told apart; what is none of them counts as another one, and that is unstable
/// whatever it is.
const PATTERNS: usize = 8;
/// Changes named.
const NAMED: usize = 3;

/// A time with one pattern.
struct PatternPeriod {
    pattern: usize,
    start: f64,
    seconds: f64,
    events: f64,
    /// With the pattern of the stage before.
    overlap: f64,
    /// It begins with a phase that `hither map --phases` knows of.
    is_phase: bool,
}

pub fn find(case: &FindingContext) -> Vec<Finding> {
    let slices = &case.profile.slices;
    // One stretch cannot change, and with two threads there is one pair.
    if slices.len() < 2 * WINDOW || case.profile.threads.len() < 3 {
        return Vec::new();
    }
    let stages = pattern_periods(case);
    let mut events = [0.0; PATTERNS + 1];
    stages.iter().for_each(|s| events[s.pattern] += s.events);
    let all: f64 = events.iter().sum();
    let outside = 1.0 - events.iter().copied().fold(0.0, f64::max) / all;
    if stages.len() < 2 || outside < LEAST_OUTSIDE {
        return Vec::new();
    }
    if outside * communication_share(case) < LEAST_SEVERITY {
        return Vec::new();
    }
    let patterns = events.iter().filter(|e| **e > 0.0).count();
    vec![finding(case, &stages, patterns, outside)]
}

/// Stretches of the run, put together where the pattern stays.
fn pattern_periods(case: &FindingContext) -> Vec<PatternPeriod> {
    let profile = case.profile;
    let mut comm: Vec<&PairComm> = profile.comm.iter().filter(|c| c.events > 0).collect();
    if !comm.is_sorted_by_key(|c| c.slice) {
        comm.sort_by_key(|c| c.slice);
    }
    let threads = profile.threads.len();
    let working = profile.working_threads();
    let mut patterns: Vec<PartnerShares> = Vec::new();
    let mut stages: Vec<PatternPeriod> = Vec::new();
    let mut from = 0;
    for stretch in comparison_windows(case) {
        let to = comm.partition_point(|c| c.slice.at() < stretch.end);
        let cells = directed_cells(&comm[from..to]);
        from = to;
        let mut phases = case.analysis.report.phases.iter();
        let is_phase = phases.any(|p| p.first == stretch.start);
        let slices = &profile.slices[stretch];
        let seconds = total_seconds(slices);
        if !worth_placing(&cells, &working, counted_seconds(slices)) {
            if let Some(last) = stages.last_mut() {
                last.seconds += seconds;
            }
            continue;
        }
        let partners = PartnerShares::of_cells(cells, threads);
        let events = partners.events.iter().sum::<f64>() / 2.0;
        let alike: Vec<f64> = patterns.iter().map(|p| p.overlap(&partners)).collect();
        let best = (0..alike.len()).max_by(|&a, &b| alike[a].total_cmp(&alike[b]));
        let best = best.filter(|&p| alike[p] >= ALIKE);
        let pattern = best.unwrap_or(patterns.len());
        match best {
            Some(best) => add_new_threads(&mut patterns[best], &partners),
            None if patterns.len() < PATTERNS => patterns.push(partners),
            None => {}
        }
        match stages.last_mut() {
            Some(last) if last.pattern == pattern && pattern < PATTERNS => {
                last.seconds += seconds;
                last.events += events;
            }
            last => {
                let before = last.map(|s| alike.get(s.pattern).copied().unwrap_or(0.0));
                let stage = PatternPeriod {
                    pattern,
                    start: slices.first().map_or(0.0, |s| s.start as f64 / 1e9),
                    seconds,
                    events,
                    overlap: before.unwrap_or(1.0),
                    is_phase,
                };
                stages.push(stage);
            }
        }
    }
    stages
}

/// The phases of the run, cut into stretches of [`WINDOW`] traced slices; what is left at the end
/// of a phase belongs to its last one.
fn comparison_windows(case: &FindingContext) -> Vec<Range<usize>> {
    let slices = &case.profile.slices;
    let mut out: Vec<Range<usize>> = Vec::new();
    for phase in &case.analysis.report.phases {
        let (mut start, mut traced) = (phase.first, 0);
        let of_phase = slices[phase.first..phase.end].iter();
        for (end, slice) in (phase.first + 1..).zip(of_phase) {
            traced += usize::from(slice.traced);
            if traced == WINDOW {
                out.push(start..end);
                (start, traced) = (end, 0);
            }
        }
        match out.last_mut() {
            Some(last) if start > phase.first => last.end = phase.end,
            _ => out.push(start..phase.end),
        }
    }
    out
}

fn total_seconds(slices: &[Slice]) -> f64 {
    slices.iter().map(|s| s.length as f64 / 1e9).sum()
}

/// Sampled events stand for the slices that were skipped, too.
fn counted_seconds(slices: &[Slice]) -> f64 {
    slices.iter().map(|s| s.counted_time() as f64 / 1e9).sum()
}

/// The conditions of OPT 6.2.2 on a phase's communication, heterogeneity as in the verdict:
/// [`crate::metrics::communication::pair_heterogeneity`], of the cells that are not zero.
fn worth_placing(cells: &[((u32, u32), f64)], working: &[bool], seconds: f64) -> bool {
    let works = |t: u32| working[t as usize];
    let cells = || cells.iter().filter(|((i, j), _)| works(*i) && works(*j));
    let threads = working.iter().filter(|w| **w).count();
    let (mut max, mut sum) = (0.0, 0.0);
    for (_, events) in cells() {
        max = f64::max(max, *events);
        sum += events;
    }
    // Sum and sum of squares of each row.
    let mut rows = vec![(0.0, 0.0); working.len()];
    for &((t, _), events) in cells() {
        let value = events * 100.0 / max;
        let row = &mut rows[t as usize];
        *row = (row.0 + value, row.1 + value * value);
    }
    let others = threads as f64 - 1.0;
    let variance = |row: &(f64, f64)| (row.1 / others - (row.0 / others).powi(2)).max(0.0);
    let heterogeneity = rows.iter().map(variance).sum::<f64>() / threads as f64;
    let amount = sum / (threads * threads) as f64;
    amount > A_MIN * seconds && heterogeneity > h_min(threads)
}

/// Takes over the partners of threads that have none in the pattern.
fn add_new_threads(pattern: &mut PartnerShares, now: &PartnerShares) {
    let known = pattern.shares.len();
    let new = now.shares.iter();
    let new = new.filter(|c| pattern.events[c.0 .0 as usize] == 0.0);
    pattern.shares.extend(new.copied());
    if pattern.shares.len() == known {
        return;
    }
    pattern.shares.sort_unstable_by_key(|c| c.0);
    for (before, now) in pattern.events.iter_mut().zip(&now.events) {
        if *before == 0.0 {
            *before = *now;
        }
    }
}

fn finding(
    case: &FindingContext,
    stages: &[PatternPeriod],
    patterns: usize,
    outside: f64,
) -> Finding {
    let phases = case.analysis.report.phases.len();
    let listed = |shown: Vec<String>, all: usize| match all.saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    };
    let changes = &stages[1..];
    let shown = changes.iter().take(NAMED);
    let shown = shown.map(|s| format!("{} from {:.1} s on", format_percent(s.overlap), s.start));
    let at = listed(shown.collect(), changes.len());
    let lengths = stages.iter().take(NAMED);
    let lengths = lengths.map(|s| format!("{:.1} s", s.seconds)).collect();
    let lengths = listed(lengths, stages.len());
    Finding {
        kind: FindingKind::UnstablePhases,
        severity: outside.clamp(0.0, 1.0) * communication_share(case),
        severity_of: TrafficUnit::Accesses,
        title: format!(
            "Who communicates with whom changes {}: one placement of threads cannot fit the whole run",
            match changes.len() {
                1 => "once".to_owned(),
                more => format!("{more} times"),
            }
        ),
        evidence: vec![
            format!("With the same partners as before: {at} of the communication (alike from {} on).", format_percent(ALIKE)),
            format!("{patterns} patterns in turn, for {lengths}; {} of the communication is not in the most common one.", format_percent(outside)),
            format!(
                "{}.{}",
                match phases {
                    1 => "`hither map --phases` finds no stable phases".to_owned(),
                    more => format!("`hither map --phases` finds {more} phases"),
                },
                match case.analysis.report.run.online {
                    true => "",
                    false => " Times are those of the traced run, which is slower.",
                }
            ),
        ],
        object: None,
        lines: Vec::new(),
        fixes: fixes(case, stages),
        picture: FindingPicture::Timeline,
    }
}

fn fixes(case: &FindingContext, stages: &[PatternPeriod]) -> Vec<SuggestedFix> {
    let commands = &case.commands;
    let lines = |option: &str| {
        format!(
            "hither map {}{option} -o {}\nhither run -p {} -- {}",
            commands.profile, commands.placement, commands.placement, commands.program
        )
    };
    let sum =
        |stages: &mut dyn Iterator<Item = &PatternPeriod>| stages.map(|s| s.seconds).sum::<f64>();
    let long = sum(&mut stages.iter().filter(|s| s.seconds >= LEAST_SECONDS));
    let known = stages[1..].iter().filter(|s| s.is_phase).count();
    let why_not = if 2.0 * long < sum(&mut stages.iter()) {
        "No pattern stays long enough to move threads for (they move at most once a second)"
    } else if 2 * known < stages.len() - 1 {
        "The patterns do not begin with stable phases, by which `hither map --phases` places"
    } else {
        return vec![SuggestedFix {
            what: "Move the threads where a phase begins: they stay long enough for that (threads move at most once a second).".to_owned(),
            copy: lines(" --phases"),
        }];
    };
    let whole_run = SuggestedFix {
        what: format!("{why_not}: place for the run as a whole."),
        copy: lines(""),
    };
    let work_alike = SuggestedFix {
        what: "Let the same threads work together all the time: the same schedule and the same blocks of data in each part of the program.".to_owned(),
        copy: String::new(),
    };
    // Else it would leave the program as it is.
    let may_gain = case.analysis.report.verdict.may_gain();
    let fixes = may_gain.then_some(whole_run).into_iter();
    fixes.chain([work_alike]).collect()
}
