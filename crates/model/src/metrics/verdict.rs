//! The verdict: whether placing threads, pages, both or neither would help this program, and why.
use super::communication::CommunicationMetrics;
use super::evidence::{Doubt, SharingEvidence, REPEAT_MIN, SECONDS_MIN};
use super::memory_traffic::{PageTraffic, TrafficAccuracy};
use super::thresholds::{h_min, ACC_RIGHT, A_MIN, E_HIGH, E_SPREAD, MIN_LOCAL_GAIN, PHASE_EVENTS};
use crate::units;
use hither_profile::TrafficUnit;
use serde::Serialize;

/// The figures that the verdict is based on.
#[derive(Clone, Copy, Debug, Default)]
pub struct VerdictInput<'a> {
    /// Threads that accessed memory.
    pub threads: usize,
    /// All communication events.
    pub sharing: SharingEvidence<'a>,
    /// The coherence events among them; `None` where they were not told apart.
    pub coherence: Option<SharingEvidence<'a>>,
    /// Pages used times their size, bytes.
    pub footprint: u64,
    /// Pages used.
    pub pages: usize,
    /// NUMA nodes of the machine, N.
    pub nodes: usize,
    /// 0 when unknown.
    pub cache_bytes: u64,
    /// E_app and first touch of the memory traffic; `None` when no page use was recorded.
    pub page_traffic: Option<PageTraffic>,
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
    /// The reasons, one sentence each: threads, data, confidence.
    pub reasons: Vec<String>,
}

/// The verdict that the evidence gives, by the thresholds of [`super::thresholds`].
#[must_use]
pub fn mapping_verdict(e: &VerdictInput) -> MappingVerdict {
    let (threads, threads_why) = thread_mapping(e);
    let (data, data_why) = data_mapping(e);
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
        sentence: sentence(e, threads, data).to_owned(),
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
}

fn sentence(e: &VerdictInput, threads: Answer, data: Answer) -> &'static str {
    use Answer::{No, Unknown, Yes};
    // Where all nodes use the same pages, any node that uses one a little more is right.
    let already_right = e.nodes > 1
        && e.saw_use_of_pages()
        && e.page_traffic
            .is_some_and(|p| p.best >= E_HIGH && p.first_touch.is_some_and(|a| a.app >= ACC_RIGHT));
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

fn thread_mapping(e: &VerdictInput) -> (Answer, String) {
    if e.threads < 2 {
        let why = "Threads: one thread has nobody to be near to.";
        return (Answer::No, why.to_owned());
    }
    let (answer, mut why) = threads_that_share(e);
    let locality = e.page_traffic.map_or(0.0, |p| p.best - p.worst);
    if locality >= E_SPREAD {
        why.push_str(&format!(
            " Which threads share a node moves E_app{} by {:.0} points.",
            of_traffic(e.traffic),
            locality * 100.0
        ));
    }
    (answer, why)
}

/// The answer that both kinds of events give, see "Verdict" in docs/metrics.md.
fn threads_that_share(e: &VerdictInput) -> (Answer, String) {
    let all = answer_of(e, &e.sharing);
    let Some(coherence) = e.coherence else {
        return all;
    };
    if e.threads == 2 || e.sharing.communication.events == 0 {
        return all;
    }
    if coherence.communication.amount_per_second < A_MIN {
        return only_read(e, all, &coherence.communication);
    }
    let by_writes = answer_of(e, &coherence);
    match (by_writes.0, all.0) {
        (Answer::No, Answer::No) => all,
        (Answer::Yes, _) if all.0 != Answer::Yes && coherence.comes_again => {
            (Answer::Yes, by_writes.1 + &hidden_reason(e, &coherence))
        }
        (_, Answer::Yes) => (Answer::Yes, all.1 + &writes_reason(e, &coherence)),
        (Answer::Unknown, Answer::No | Answer::Unknown) => by_writes,
        (Answer::No, Answer::Unknown) => all,
        _ => (Answer::Unknown, kinds_differ(e, &coherence)),
    }
}

/// What is not written while it is shared costs the space of copies, which matters where caches are short.
fn only_read(
    e: &VerdictInput,
    (answer, why): (Answer, String),
    coherence: &CommunicationMetrics,
) -> (Answer, String) {
    let rate = format_rate(coherence.amount_per_second);
    let fits = e.cache_bytes > 0 && e.footprint <= e.cache_bytes;
    match answer {
        Answer::No => (Answer::No, why),
        _ if fits => {
            let why = format!(
                "Threads: what they share they only read ({rate} coherence events/s per pair; it takes \
                 {A_MIN:.0}), and the caches have room for a copy each."
            );
            (Answer::No, why)
        }
        _ => {
            let copies = format!(
                " They only read what they share ({rate} coherence events/s per pair): close to each \
                 other they need fewer copies of it (replication)."
            );
            (answer, why + &copies)
        }
    }
}

fn writes_reason(e: &VerdictInput, coherence: &SharingEvidence) -> String {
    format!(
        " Up to {} of the events find a line that the other has changed (coherence, C_H residual {:.0}); \
         the others read copies again (replication).",
        coherence_share(e, coherence),
        coherence.communication.heterogeneity_residual,
    )
}

fn hidden_reason(e: &VerdictInput, coherence: &SharingEvidence) -> String {
    format!(
        " That is of the events that find a line which the other has changed (coherence), up to {} of all; what \
         threads only read or wait for hides them (C_H residual {:.0} of all).",
        coherence_share(e, coherence),
        e.sharing.communication.heterogeneity_residual,
    )
}

/// `12.9 %`, rounded up where it would be nothing.
fn coherence_share(e: &VerdictInput, coherence: &SharingEvidence) -> String {
    let all = e.sharing.communication.events.max(1) as f64;
    match coherence.communication.events as f64 / all * 100.0 {
        share if share < 0.05 => "0.1 %".to_owned(),
        share => format!("{share:.1} %"),
    }
}

fn kinds_differ(e: &VerdictInput, coherence: &SharingEvidence) -> String {
    format!(
        "Threads: cannot tell, all events have a C_H residual of {:.0}, those that find a line changed \
         (coherence) {:.0}, it takes {:.0}, and there are too few slices to see whether the same \
         pairs come again; trace a longer run.",
        e.sharing.communication.heterogeneity_residual,
        coherence.communication.heterogeneity_residual,
        h_min(e.threads),
    )
}

/// The answer that one kind of events gives.
fn answer_of(e: &VerdictInput, kind: &SharingEvidence) -> (Answer, String) {
    let doubt = |about_pairs: bool| kind.doubt.filter(|d| d.is_about_pairs() == about_pairs);
    if let Some(doubt) = doubt(false) {
        return (Answer::Unknown, doubt_reason(&doubt, e.online));
    }
    if kind.communication.events == 0 {
        return (Answer::No, "Threads: they share no line of memory.".into());
    }
    let (suits, why) = match kind.phases {
        [] | [_] => conditions(e, &kind.communication),
        // Page faults have no rate, and it takes many to know a phase.
        _ if e.online || e.threads == 2 => conditions(e, &kind.communication),
        phases => conditions_of_phases(e, phases),
    };
    match doubt(true) {
        Some(doubt) if suits => (Answer::Unknown, doubt_reason(&doubt, e.online)),
        _ if suits => (Answer::Yes, why),
        _ => (Answer::No, why),
    }
}

/// The conditions of OPT 6.2.2 on the communication of a run or a phase.
fn conditions(e: &VerdictInput, c: &CommunicationMetrics) -> (bool, String) {
    let h_min = h_min(e.threads);
    if !e.online && c.amount_per_second < A_MIN {
        let why = format!(
            "Threads: they share little, {} events/s per pair (C_A); it takes {A_MIN:.0}.",
            format_rate(c.amount_per_second)
        );
        return (false, why);
    }
    if e.threads == 2 {
        let why =
            "Threads: there is only one pair; keep the two close, there is no more to choose.";
        return (false, why.to_owned());
    }
    if c.heterogeneity < h_min || c.heterogeneity_pairs < h_min {
        let why = format!(
            "Threads: all share alike, heterogeneity {:.0} between pairs (C_H {:.0}); \
             it takes {h_min:.0}.",
            c.heterogeneity_pairs, c.heterogeneity
        );
        return (false, why);
    }
    if c.heterogeneity_residual < h_min {
        let why = format!(
            "Threads: some share more than others, but with all alike: beside that, heterogeneity {:.0} \
             (C_H {:.0}, {:.0} between pairs); it takes {h_min:.0}.",
            c.heterogeneity_residual, c.heterogeneity, c.heterogeneity_pairs
        );
        return (false, why);
    }
    (true, heterogeneity_reason(c, h_min, e.online))
}

/// Threads are worth a mapping where phases that meet the conditions have enough of the events.
fn conditions_of_phases(e: &VerdictInput, phases: &[CommunicationMetrics]) -> (bool, String) {
    let events = |phases: &mut dyn Iterator<Item = &CommunicationMetrics>| -> u64 {
        phases.map(|p| p.events).sum()
    };
    let meet: Vec<bool> = phases.iter().map(|p| conditions(e, p).0).collect();
    let met = || phases.iter().zip(&meet).filter(|(_, meets)| **meets);
    let share = events(&mut met().map(|(p, _)| p)) as f64 / events(&mut phases.iter()) as f64;
    let most = |of: &mut dyn Iterator<Item = &CommunicationMetrics>| {
        let most = of.max_by_key(|p| p.events).copied();
        most.unwrap_or_default()
    };
    let suits = share >= PHASE_EVENTS;
    let shown = match suits {
        true => most(&mut met().map(|(p, _)| p)),
        false => most(&mut phases.iter()),
    };
    let (_, why) = conditions(e, &shown);
    let (number, all) = (met().count(), phases.len());
    let share = format!(
        "{number} of {all} phases, with {:.0} % of the events",
        share * 100.0
    );
    let of_all = match number {
        0 => format!("That is the phase with most events; in none of {all} is it worth it."),
        _ if suits => format!("That is the phase with most events of those worth it: {share}."),
        _ => format!("That is the phase with most events; worth it: {share}, too few."),
    };
    (suits, format!("{why} {of_all}"))
}

fn doubt_reason(doubt: &Doubt, online: bool) -> String {
    let longer = match online {
        true => "observe it for longer, or trace it",
        false => "trace without --sample, or longer",
    };
    match *doubt {
        Doubt::TooShort { seconds } => format!(
            "Threads: cannot tell from {seconds:.2} s, it takes {SECONDS_MIN} s; trace a longer run."
        ),
        Doubt::TooFewEvents { events, needed } => format!(
            "Threads: cannot tell, {events} sharing events were seen, too few to tell who shares with \
             whom; it takes {needed}: {longer}."
        ),
        Doubt::Unrepeated {
            correlation,
            units: Some(units),
        } => format!(
            "Threads: cannot tell, they took turns on {units} processing units, and which pairs share \
             changes from slice to slice (correlation {correlation:.2}; it takes {REPEAT_MIN}); trace with \
             a longer --slice, such as 100ms, or where each thread has a unit."
        ),
        Doubt::Unrepeated { correlation, .. } => format!(
            "Threads: cannot tell, which pairs share changes from slice to slice in this sample \
             (correlation {correlation:.2}; it takes {REPEAT_MIN}): {longer}."
        ),
        Doubt::Chance { heterogeneity } => format!(
            "Threads: cannot tell, events as few as these differ by chance between pairs that share \
             alike, by a heterogeneity of {heterogeneity:.0}: {longer}."
        ),
    }
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

fn data_mapping(e: &VerdictInput) -> (Answer, String) {
    let Some(pages) = e.page_traffic else {
        return (Answer::No, "Data: no page use was recorded.".to_owned());
    };
    if e.nodes < 2 {
        return (
            Answer::No,
            "Data: with one node every page is local.".to_owned(),
        );
    }
    if e.pages < e.nodes {
        let why = format!(
            "Data: {} pages are too few to spread over {} nodes.",
            e.pages, e.nodes
        );
        return (Answer::No, why);
    }
    if e.cache_bytes > 0 && e.footprint <= e.cache_bytes {
        let why = format!(
            "Data: all of it, {}, fits in the caches, {} (eq. 7); pages matter little.",
            units::show_bytes(e.footprint),
            units::show_bytes(e.cache_bytes)
        );
        return (Answer::No, why);
    }
    let Some(first) = pages.first_touch else {
        return (Answer::No, "Data: no first touch was recorded.".to_owned());
    };
    if pages.best < E_HIGH {
        let why = format!(
            "Data: all nodes use the same pages (E_app{} {:.0} %; it takes {:.0} %), so no \
             node is right for them; spread them if one memory is overloaded.",
            of_traffic(e.traffic),
            pages.best * 100.0,
            E_HIGH * 100.0
        );
        return (Answer::No, why);
    }
    first_touch_answer(e, &pages, &first)
}

/// Of pages that belong to one node each.
fn first_touch_answer(
    e: &VerdictInput,
    pages: &PageTraffic,
    first: &TrafficAccuracy,
) -> (Answer, String) {
    let (unit, right, most) = (e.traffic, first.app * 100.0, pages.best * 100.0);
    let gains = first.app < ACC_RIGHT && pages.best - first.local >= MIN_LOCAL_GAIN;
    if !gains && !e.saw_use_of_pages() {
        let why =
            "Data: cannot tell, most page faults that were seen are the first of their page and \
                   say nothing of who uses it later; observe it for longer, or trace it.";
        return (Answer::Unknown, why.to_owned());
    }
    if first.app >= ACC_RIGHT {
        let why = format!(
            "Data: {right:.0} % of {unit} go to pages that first touch puts on the right \
             node; moving pages gains nothing."
        );
        return (Answer::No, why);
    }
    if !gains {
        let why = format!(
            "Data: first touch makes {:.0} % of {unit} local; with every page on its best \
             node it would be {most:.0} %, which is not worth moving them.",
            first.local * 100.0
        );
        return (Answer::No, why);
    }
    let why = format!(
        "Data: pages belong to one node (E_app{} {most:.0} %), but first touch puts only \
         {right:.0} % of {unit} on the right one.",
        of_traffic(unit)
    );
    (Answer::Yes, why)
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
