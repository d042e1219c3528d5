//! The verdict: whether placing threads, pages, both or neither would help this program, and why.
use super::evidence::{BusyThreadsEvidence, SharingEvidence};
use super::memory_balance::MemoryImbalance;
use super::memory_traffic::PageTraffic;
use super::thresholds::{ACC_RIGHT, A_MIN, COHERENCE_MIN, FAR_FETCH, SHARED_MIN, TIME_MIN};
use crate::units;
use hither_profile::TrafficUnit;
use serde::Serialize;

mod data;
mod threads;

/// The figures that the verdict is based on.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerdictInput<'a> {
    /// Threads that accessed memory.
    pub threads: usize,
    /// All communication events.
    pub sharing: SharingEvidence<'a>,
    /// The coherence events among them; `None` where they were not told apart.
    pub coherence: Option<SharingEvidence<'a>>,
    /// Both without what threads share that hardly work; `None` where they share nothing.
    pub of_busy_threads: Option<BusyThreadsEvidence<'a>>,
    /// Pages used times their size, bytes.
    pub footprint: u64,
    /// Pages used.
    pub pages: usize,
    /// NUMA nodes of the machine, N.
    pub nodes: usize,
    /// 0 when unknown.
    pub cache_bytes: u64,
    /// That all threads executed; 0 when unknown.
    pub instructions: u64,
    /// Threads took turns on the traced machine's processing units: those that wait may have spun for all of a turn.
    pub take_turns: bool,
    /// Times that threads brought lines into their private caches; `None` where that was not counted.
    pub fetches: Option<FetchCounts>,
    /// E_app and first touch of the memory traffic; `None` when no page use was recorded.
    pub page_traffic: Option<PageTraffic>,
    /// With first touch one node's memory serves much more of it than the others'.
    pub imbalance: Option<&'a MemoryImbalance>,
    /// What it is counted in.
    pub traffic: TrafficUnit,
    /// Relative standard error of totals when sampled, else 0.
    pub sampling_error: f64,
    /// Counts are page faults: a sample of unknown share, so rates are meaningless.
    pub online: bool,
    /// Accesses beyond the first to each page.
    pub accesses_again: u64,
}

impl VerdictInput<'_> {
    /// Whether pages were seen in use. The first fault on a page says who touched it first and so
    /// agrees with first touch, whoever uses the page later. Ours: as many faults more as pages.
    fn saw_use_of_pages(&self) -> bool {
        !self.online || self.accesses_again >= self.pages as u64
    }

    /// About the largest part of the threads' time that so many fetches take more from afar than from near; `None` where
    /// the instructions do not tell how long they work.
    fn time_of(&self, fetches: f64) -> Option<f64> {
        let time = fetches * FAR_FETCH / self.instructions as f64;
        (self.instructions > 0 && !self.may_spin()).then(|| time.min(1.0))
    }

    /// Whether many of the instructions may be those of threads that spin while others have the processing units.
    fn may_spin(&self) -> bool {
        let events = self.coherence_events().unwrap_or(0.0);
        let wait_little = |f: FetchCounts| events < COHERENCE_MIN * f.all as f64;
        self.take_turns && !self.fetches.is_some_and(wait_little)
    }

    /// Whether all data fits in the caches (OPT eq. 7).
    fn fits_in_caches(&self) -> bool {
        self.cache_bytes > 0 && self.footprint <= self.cache_bytes
    }

    /// The memory that serves too much, where that may take time. Pages that do not belong to a node can still be
    /// dealt out, so that all memories serve them.
    fn overloaded_memory(&self) -> Option<&MemoryImbalance> {
        let moved = |i: &MemoryImbalance| self.fetches.map(|f| f.all as f64 * i.movable);
        let takes_time = |i: &MemoryImbalance| {
            let time = moved(i).and_then(|fetches| self.time_of(fetches));
            time.is_none_or(|time| time >= TIME_MIN)
        };
        let seen = !self.fits_in_caches() && self.saw_use_of_pages();
        self.imbalance.filter(|i| seen && takes_time(i))
    }

    fn coherence_time(&self) -> Option<f64> {
        self.time_of(self.coherence_events()?)
    }

    fn coherence_events(&self) -> Option<f64> {
        self.coherence.map(|c| c.communication.events as f64)
    }

    /// Whether what threads share may matter, whoever shares it with whom.
    fn shares_much(&self) -> bool {
        let often = self.sharing.communication.amount_per_second >= A_MIN && !self.online;
        let changed = self.coherence_events().unwrap_or(0.0);
        let much = |f: FetchCounts| {
            let of_others = f.shared as f64 + changed;
            let takes_time = self.time_of(of_others).is_none_or(|time| time >= TIME_MIN);
            takes_time && of_others >= SHARED_MIN * (f.all as f64 + changed)
        };
        self.threads > 1 && often && self.fetches.is_some_and(much)
    }
}

/// Fetches of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchCounts {
    /// All of them.
    pub all: u64,
    /// Those of pages that several threads use.
    pub shared: u64,
}

/// Whether placing is worth it, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MappingVerdict {
    /// Suitable for mapping threads (OPT 4.4).
    pub thread_mapping: bool,
    /// The profile cannot tell whether it is suitable for mapping threads.
    pub threads_undecided: bool,
    /// Suitable for mapping data (OPT 5.4).
    pub data_mapping: bool,
    /// The profile cannot tell whether it is suitable for mapping data.
    pub data_undecided: bool,
    /// The answer in one sentence.
    pub sentence: String,
    /// About the largest part of the threads' time that lines which others have changed can take, 0 to 1: one far
    /// fetch for each coherence event. `None` where these or the instructions were not counted, and where instructions
    /// may be those of threads that spin.
    pub coherence_time: Option<f64>,
    /// No pair is worth being close, but all of them may be, since much of what they fetch others use or change. What
    /// that gains, and what the caches that they leave idle lose, no count tells.
    pub closeness_undecided: bool,
    /// The reasons, one sentence each: threads, data, confidence.
    pub reasons: Vec<String>,
}

/// The verdict that the evidence gives, by the thresholds of [`super::thresholds`].
#[must_use]
pub fn mapping_verdict(e: &VerdictInput) -> MappingVerdict {
    let (threads, threads_why) = threads::thread_mapping(e);
    let (data, data_why) = data::data_mapping(e);
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
        thread_mapping: threads == Answer::Yes,
        threads_undecided: threads == Answer::Unknown,
        data_mapping: data == Answer::Yes,
        data_undecided: data == Answer::Unknown,
        sentence: whole_sentence(e, threads, data),
        coherence_time: e.coherence_time(),
        closeness_undecided: threads == Answer::No && e.shares_much(),
        reasons,
    }
}

impl MappingVerdict {
    /// Whether placing threads or pages gains something, as far as the profile can tell. Where it does not, `hither map`
    /// leaves the program as it is.
    #[must_use]
    pub fn may_gain(&self) -> bool {
        self.thread_mapping || self.threads_undecided || self.data_mapping || self.data_undecided
    }

    /// The sentence, with how much time placing threads can be about where that is little.
    #[must_use]
    pub fn sentence_with_time(&self) -> String {
        let little = self
            .coherence_time
            .filter(|time| self.thread_mapping && *time < 0.1);
        let time = little.map(|time| {
            format!(
                "; what threads change for one another is at most about {} % of their time",
                percent(time)
            )
        });
        format!("{}{}", self.sentence, time.unwrap_or_default())
    }
}

/// The answers, and what placing by use does not mend.
fn whole_sentence(e: &VerdictInput, threads: Answer, data: Answer) -> String {
    let answers = sentence(e, threads, data);
    match e.overloaded_memory().filter(|_| data == Answer::No) {
        Some(i) => format!(
            "{answers}; but one node's memory serves {} % of the {}, of which others could serve a part",
            percent(i.most()),
            e.traffic
        ),
        None => answers.to_owned(),
    }
}

fn sentence(e: &VerdictInput, threads: Answer, data: Answer) -> &'static str {
    use Answer::{No, Unknown, Yes};
    // Where all nodes use the same pages, any node that uses one a little more is right, or that which works most.
    let already_right = e.nodes > 1
        && e.overloaded_memory().is_none()
        && e.saw_use_of_pages()
        && e.page_traffic
            .is_some_and(|p| p.belongs() && p.first_touch.is_some_and(|a| a.app >= ACC_RIGHT));
    match (threads, data) {
        _ if e.threads == 0 => "nothing to place: no memory access was traced",
        (_, Yes) if e.threads == 1 => "one thread: nothing to place but data",
        (_, No) if e.threads == 1 => "one thread: nothing to place but data, and that pays little",
        (_, Unknown) if e.threads == 1 => {
            "one thread: nothing to place but data, and whether that pays, this profile cannot tell"
        }
        (Unknown, Yes) => {
            "suitable for data mapping; whether for thread mapping, this profile cannot tell"
        }
        (Unknown, Unknown) => {
            "this profile cannot tell whether it is suitable for thread mapping or data mapping"
        }
        (Unknown, No) if already_right => {
            "this profile cannot tell whether it is suitable for thread mapping; for data there is nothing to gain, first touch is already right"
        }
        (Unknown, No) => {
            "this profile cannot tell whether it is suitable for thread mapping; not suitable for data mapping"
        }
        (Yes, Yes) => "suitable for thread mapping and data mapping",
        (Yes, Unknown) => {
            "suitable for thread mapping; whether for data mapping, this profile cannot tell"
        }
        (Yes, No) if already_right => {
            "suitable for thread mapping; for data there is nothing to gain, first touch is already right"
        }
        (Yes, No) => "suitable for thread mapping, not for data mapping",
        (No, Yes) => "suitable for data mapping, not for thread mapping",
        (No, Unknown) => {
            "not suitable for thread mapping; whether for data mapping, this profile cannot tell"
        }
        (No, No) if already_right => "nothing to gain, first touch is already right",
        (No, No) => "suitable for neither thread mapping nor data mapping",
    }
}

/// Yes, no, or that it cannot be told.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Yes,
    No,
    Unknown,
}

/// The metrics of the papers, which are shown beside this, count accesses.
fn of_traffic(unit: TrafficUnit) -> &'static str {
    match unit {
        TrafficUnit::Accesses => "",
        TrafficUnit::Fetches => " of the fetches",
    }
}

/// `24311` or, from 100 000 on, `1.62 M`.
fn format_rate(value: f64) -> String {
    match value {
        v if v < 99_999.5 => format!("{v:.0}"),
        v => units::count(v as u64),
    }
}

/// Of a share from 0 to 1, two digits or more: `0.04`, `2.4`, `31`.
fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p < 0.995 => format!("{:.2}", p.max(0.01)),
        p if p < 10.0 => format!("{p:.1}"),
        p => format!("{p:.0}"),
    }
}
