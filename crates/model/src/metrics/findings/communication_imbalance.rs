//! Some threads communicate much more than others, most of the time.
//!
//! B_comm of Locality and Balance eq. 2, over the threads that work (T of them):
//!
//! ```text
//!   CommV[i] = sum over j of M[i][j]
//!   B_comm   = max(CommV) / (sum(CommV) / T) - 1
//! ```
//! Found when B_comm is at least [`IMBALANCE`] with at least [`LEAST_THREADS`], communication
//! is worth a placement (A_min of OPT 6.2.2, and [`LEAST_SHARE`] of the accesses), enough of it may
//! find a line changed ([`LEAST_CHANGED`]), and the threads that communicate that much do so in at
//! least half of the slices: a master that initialises or gathers results now and then is not busy
//! in between. Several threads that communicate with one another, no more than they work, are those that do the
//! work, and the others helpers of a run-time system or stages before and after: that is no imbalance.
//! Severity: the share of CommV that is above the mean.
use super::common::{communication_share, format_percent};
use super::FindingContext;
use crate::metrics::thresholds::{h_min, A_MIN};
use hither_profile::{Finding, FindingKind, FindingPicture, SliceIx, SuggestedFix, TrafficUnit};
use std::collections::{BTreeMap, BTreeSet};

/// Half again as much as the mean. The paper calls Ferret imbalanced, whose B_comm is 58 %,
/// and SP, whose is 16.5 %; but a chain of four threads has 33 %, only because its ends have
/// one neighbour, and that no placement can change.
const IMBALANCE: f64 = 0.5;
/// Ours: a chain of three has 50 %.
const LEAST_THREADS: usize = 4;
/// Of the busiest thread's instructions. Ours: threads of pools that libraries start and never use (OpenBLAS) do
/// less and are none that others would share out their communication to.
const LEAST_INSTRUCTIONS: f64 = 0.01;
/// Communication events per access. Ours: less is lost among the other accesses.
const LEAST_SHARE: f64 = 0.01;
/// Coherence events per communication event, where they are known. Ours: with less, threads wait for
/// flags in their own caches or read what nobody writes, which no placement changes.
const LEAST_CHANGED: f64 = 0.01;
/// Ours: of the slices with communication, in which the busiest are as busy as on the whole.
const MOST_TIME: f64 = 0.5;
/// Threads named.
const NAMED: usize = 3;

/// Communication by thread.
struct CommunicationVolume {
    /// CommV.
    of: Vec<f64>,
    /// Of the threads that work.
    mean: f64,
    working: usize,
}

impl CommunicationVolume {
    fn of(case: &FindingContext) -> Option<CommunicationVolume> {
        let threads = &case.profile.threads;
        let mut of = vec![0.0; threads.len()];
        let mut communicates = BTreeSet::new();
        for &(i, j, events) in &case.analysis.report.matrix.0 {
            for thread in [i, j].map(|t| t as usize) {
                of[thread] += events as f64;
                communicates.insert(threads[thread].process);
            }
        }
        // A process that shares nothing, such as the shell that started the program, has no part.
        let works = case.profile.working_threads();
        let most = threads.iter().map(|t| t.instructions).max().unwrap_or(0);
        let least = most as f64 * LEAST_INSTRUCTIONS;
        let working = threads.iter().zip(works).filter(|(t, works)| {
            *works && t.instructions as f64 >= least && communicates.contains(&t.process)
        });
        let working = working.count();
        let mean = of.iter().sum::<f64>() / working as f64;
        (working >= LEAST_THREADS && mean > 0.0).then_some(CommunicationVolume {
            of,
            mean,
            working,
        })
    }

    /// Threads that communicate much more than the mean, most first.
    fn busiest_threads(&self) -> Vec<usize> {
        let limit = self.mean * (1.0 + IMBALANCE);
        let mut busy: Vec<usize> = (0..self.of.len())
            .filter(|&t| self.of[t] >= limit)
            .collect();
        busy.sort_by(|&a, &b| self.of[b].total_cmp(&self.of[a]).then(a.cmp(&b)));
        busy
    }

    /// Of all that threads communicate, what these do.
    fn share_of(&self, threads: &[usize]) -> f64 {
        let theirs: f64 = threads.iter().map(|&t| self.of[t]).sum();
        theirs / self.of.iter().sum::<f64>()
    }

    /// Of all that threads communicate.
    fn share_above_mean(&self) -> f64 {
        let above = self.of.iter().map(|v| (v - self.mean).max(0.0));
        above.sum::<f64>() / self.of.iter().sum::<f64>()
    }
}

pub fn find(case: &FindingContext) -> Vec<Finding> {
    let report = &case.analysis.report;
    let c = &report.communication;
    let accesses = report.run.reads.saturating_add(report.run.writes) as f64;
    if c.amount_per_second < A_MIN || (c.events as f64) < accesses * LEAST_SHARE {
        return Vec::new();
    }
    let coherence = report.coherence.as_ref();
    if coherence.is_some_and(|known| known.share < LEAST_CHANGED) {
        return Vec::new();
    }
    let Some(volume) = CommunicationVolume::of(case) else {
        return Vec::new();
    };
    let busy = volume.busiest_threads();
    if busy.is_empty()
        || do_the_work(case, &volume, &busy)
        || busy_time_share(case, &volume, &busy) < MOST_TIME
    {
        return Vec::new();
    }
    vec![finding(case, &volume, &busy)]
}

/// Whether these are just the threads that work: several, which communicate with one another for most, and
/// have hardly more of the communication than of the instructions.
fn do_the_work(case: &FindingContext, volume: &CommunicationVolume, busy: &[usize]) -> bool {
    let is_busy = |t: u32| busy.contains(&(t as usize));
    let events = case.analysis.report.matrix.0.iter();
    let among: u64 = events
        .filter(|&&(i, j, _)| is_busy(i) && is_busy(j))
        .map(|&(_, _, events)| events)
        .sum();
    let theirs: f64 = busy.iter().map(|&t| volume.of[t]).sum();
    let more_than_work = |work: WorkShare| volume.share_of(busy) >= work.theirs * (1.0 + IMBALANCE);
    busy.len() > 1
        && 2.0 * among as f64 > theirs / 2.0
        && work_share(case, busy).is_some_and(|work| !more_than_work(work))
}

/// Of the slices with communication, the share in which these threads communicate much more
/// than the mean.
fn busy_time_share(case: &FindingContext, volume: &CommunicationVolume, busy: &[usize]) -> f64 {
    let mut is_busy = vec![false; volume.of.len()];
    busy.iter().for_each(|&t| is_busy[t] = true);
    // Of all threads and of the busy ones.
    let mut slices: BTreeMap<SliceIx, (f64, f64)> = BTreeMap::new();
    for c in case.profile.comm.iter().filter(|c| c.events > 0) {
        let slice = slices.entry(c.slice).or_default();
        let ends = [c.i, c.j].map(|t| f64::from(u8::from(is_busy[t.at()])));
        slice.0 += 2.0 * c.events as f64;
        slice.1 += (ends[0] + ends[1]) * c.events as f64;
    }
    let limit = (1.0 + IMBALANCE) * busy.len() as f64 / volume.working as f64;
    let hold = slices.values().filter(|s| s.1 >= s.0 * limit).count();
    hold as f64 / slices.len().max(1) as f64
}

fn finding(case: &FindingContext, volume: &CommunicationVolume, busy: &[usize]) -> Finding {
    let threads = &case.profile.threads;
    let called = |t: usize| match threads[t].name.as_str() {
        "" => format!("thread {t}"),
        name => format!("thread {t} ({name})"),
    };
    let times = |t: usize| volume.of[t] / volume.mean;
    let shown: Vec<String> = (busy.iter().take(NAMED))
        .map(|&t| format!("{} {:.1} times the mean", called(t), times(t)))
        .collect();
    let more = match busy.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more at least {:.1} times", 1.0 + IMBALANCE),
    };
    let alone = work_share(case, busy).filter(|work| work.theirs >= work.even * (1.0 + IMBALANCE));
    let theirs = volume.share_of(busy);
    let title = match busy {
        [one] => format!(
            "{} communicates {:.1} times as much as the mean",
            called(*one),
            times(*one)
        ),
        _ => format!(
            "{} of {} threads communicate far more than the others",
            busy.len(),
            volume.working
        ),
    };
    let work = alone.map(|work| {
        format!(
            "So is the work: {} of the instructions are {}, evenly it would be {}.",
            format_percent(work.theirs),
            if busy.len() == 1 {
                "its own"
            } else {
                "their own"
            },
            format_percent(work.even)
        )
    });
    let mut evidence = vec![
        format!("Communication: {}{more}.", shown.join(", ")),
        format!(
            "B_comm is {:.0} % over the {} threads that work (0 % is even); {} {} of the communication, evenly it would be {}.",
            (times(busy[0]) - 1.0) * 100.0,
            volume.working,
            if busy.len() == 1 { "this one has".to_owned() } else { format!("these {} have", busy.len()) },
            format_percent(theirs),
            format_percent(busy.len() as f64 / volume.working as f64),
        ),
    ];
    let mut fixes = fixes(case, volume);
    if let Some(work) = work {
        evidence.push(work);
        fixes.insert(0, share_out());
    }
    Finding {
        kind: FindingKind::CommunicationImbalance,
        severity: volume.share_above_mean().clamp(0.0, 1.0) * communication_share(case),
        severity_of: TrafficUnit::Accesses,
        title: title.replacen("thread", "Thread", usize::from(title.starts_with("thread"))),
        evidence,
        object: None,
        lines: Vec::new(),
        fixes,
        picture: FindingPicture::Communication,
    }
}

/// Shares of the instructions.
struct WorkShare {
    theirs: f64,
    even: f64,
}

/// Of some threads among those that work; `None` where instructions were not counted.
fn work_share(case: &FindingContext, busy: &[usize]) -> Option<WorkShare> {
    let threads = &case.profile.threads;
    let works = case.profile.working_threads();
    let working = threads.iter().zip(works).filter(|(_, works)| *works);
    let all: Vec<f64> = working.map(|(t, _)| t.instructions as f64).collect();
    let theirs: f64 = busy.iter().map(|&t| threads[t].instructions as f64).sum();
    let sum: f64 = all.iter().sum();
    (sum > 0.0).then(|| WorkShare {
        theirs: theirs / sum,
        even: busy.len() as f64 / all.len() as f64,
    })
}

fn share_out() -> SuggestedFix {
    SuggestedFix {
        what: "Share out what the others wait for: placing threads does not change how much one of them has to do."
            .to_owned(),
        copy: String::new(),
    }
}

fn fixes(case: &FindingContext, volume: &CommunicationVolume) -> Vec<SuggestedFix> {
    let commands = &case.commands;
    let pairs_differ =
        case.analysis.report.communication.heterogeneity_pairs >= h_min(volume.working);
    let (policy, what) = if pairs_differ {
        (
            "balanced-locality",
            "Keep threads that communicate together, but no more of them under a cache or node than it has its share of.",
        )
    } else {
        (
            "balance",
            "All pairs communicate alike: spread the busy threads, so that caches and interconnects have the same to do.",
        )
    };
    vec![
        SuggestedFix {
            what: what.to_owned(),
            copy: format!(
                "hither map {} --policy {policy} -o {}\nhither run -p {} -- {}",
                commands.profile, commands.placement, commands.placement, commands.program
            ),
        },
        SuggestedFix {
            what: "Where a thread hands out work or gathers results, let it do so in larger pieces, or let several threads do it.".to_owned(),
            copy: String::new(),
        },
    ]
}
