//! Whether placing threads would help: the conditions of OPT 6.2.2, asked of all events and of coherence events.
use super::{format_rate, of_traffic, percent, Answer, VerdictInput};
use crate::metrics::communication::CommunicationMetrics;
use crate::metrics::evidence::{InsufficientEvidence, SharingEvidence, REPEAT_MIN, SECONDS_MIN};
use crate::metrics::thresholds::{h_min, A_MIN, E_SPREAD, PHASE_EVENTS, TIME_MIN};

pub(super) fn thread_mapping(e: &VerdictInput) -> (Answer, String) {
    if e.threads < 2 {
        let why = "Threads: one thread has nobody to be near to.";
        return (Answer::No, why.to_owned());
    }
    let (answer, mut why) = threads_that_work(e, threads_that_share(e));
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

/// The answer less what threads have between them that hardly work: nobody waits for what they could save.
fn threads_that_work(e: &VerdictInput, (answer, why): (Answer, String)) -> (Answer, String) {
    let Some(left) = e.of_busy_threads.filter(|_| answer != Answer::No) else {
        return (answer, why);
    };
    let without = VerdictInput {
        sharing: left.sharing,
        coherence: left.coherence,
        ..*e
    };
    match threads_that_share(&without) {
        (Answer::No, reason) => {
            let why = format!(
                "Threads: without what those have between them that hardly work ({} % of the instructions together): {}",
                percent(left.left_out),
                reason.trim_start_matches("Threads: ")
            );
            (Answer::No, why)
        }
        (Answer::Unknown, reason) => (Answer::Unknown, reason),
        (Answer::Yes, _) => (answer, why),
    }
}

/// The answer that one kind of events gives.
struct KindAnswer {
    answer: Answer,
    why: String,
    /// The communication that decided it: that of the run, or of one phase.
    decided_by: CommunicationMetrics,
    of_phase: bool,
}

impl KindAnswer {
    fn reason(self) -> (Answer, String) {
        (self.answer, self.why)
    }

    /// `C_H residual 500`, of what decided.
    fn residual(&self) -> String {
        let residual = self.decided_by.heterogeneity_residual;
        match self.of_phase {
            true => format!("C_H residual {residual:.0} in that phase"),
            false => format!("C_H residual {residual:.0}"),
        }
    }

    /// The first C_H of what decided that is below the threshold, in brackets.
    fn too_low(&self, h_min: f64, of: &str) -> String {
        let c = &self.decided_by;
        let figures = [
            ("C_H residual", c.heterogeneity_residual),
            ("C_H between pairs", c.heterogeneity_pairs),
            ("C_H", c.heterogeneity),
        ];
        let low = figures.iter().find(|(_, value)| *value < h_min);
        low.map_or(String::new(), |(name, value)| {
            format!(" ({name} {value:.0}{of})")
        })
    }
}

/// The answer that both kinds of events give, see "Verdict" in docs/metrics.md.
fn threads_that_share(e: &VerdictInput) -> (Answer, String) {
    let all = answer_of(e, &e.sharing);
    let Some(coherence) = e.coherence else {
        return all.reason();
    };
    if e.threads == 2 || e.sharing.communication.events == 0 {
        return all.reason();
    }
    let by_writes = answer_of(e, &coherence);
    let takes_no_time = e.coherence_time().is_some_and(|time| time < TIME_MIN);
    if takes_no_time || coherence.communication.amount_per_second < A_MIN {
        let few = format!(
            "what they share they hardly write ({} coherence events/s per pair{})",
            format_rate(coherence.communication.amount_per_second),
            shown_time(e, ", ")
        );
        return replication(e, all.reason(), &few);
    }
    if by_writes.answer == Answer::No && all.answer != Answer::No {
        let alike = format!(
            "what one writes all read alike{}",
            by_writes.too_low(h_min(e.threads), " of the coherence events")
        );
        return replication(e, all.reason(), &alike);
    }
    match (by_writes.answer, all.answer) {
        (Answer::No, Answer::No) => all.reason(),
        (Answer::Yes, _) if all.answer != Answer::Yes && coherence.comes_again => {
            let hidden = hidden_reason(e, &coherence, &all);
            (Answer::Yes, by_writes.why + &hidden)
        }
        (_, Answer::Yes) => {
            let writes = writes_reason(e, &coherence, &by_writes);
            (Answer::Yes, all.why + &writes)
        }
        (Answer::Unknown, Answer::No | Answer::Unknown) => by_writes.reason(),
        _ => (Answer::Unknown, kinds_differ(e, &by_writes, &all)),
    }
}

/// The answer where only what threads do not write tells pairs apart: it costs the space of copies, which matters where
/// caches are short and lines are fetched again.
fn replication(
    e: &VerdictInput,
    (answer, why): (Answer, String),
    because: &str,
) -> (Answer, String) {
    let fits = e.cache_bytes > 0 && e.footprint <= e.cache_bytes;
    let time = e.fetches.and_then(|f| e.time_of(f.shared as f64));
    match time {
        _ if answer == Answer::No => (answer, why),
        _ if fits => {
            let why = format!(
                "Threads: {because}, and the caches have room for a copy of the rest each."
            );
            (Answer::No, why)
        }
        Some(time) if time < TIME_MIN => {
            let why = format!(
                "Threads: {because}, and of the pages that they share they fetch few lines, at most about {} % of their time.",
                percent(time)
            );
            (Answer::No, why)
        }
        _ if answer == Answer::Unknown => (answer, why),
        _ => {
            let copies = format!(
                " But {because}: close to each other they need fewer copies (replication)."
            );
            (answer, why + &copies)
        }
    }
}

/// `, at most about 2.4 % of their time`; empty where that is not known.
fn shown_time(e: &VerdictInput, before: &str) -> String {
    match e.coherence_time() {
        None => String::new(),
        Some(time) if time >= 0.5 => format!("{before}which may be most of their time"),
        Some(time) => format!("{before}at most about {} % of their time", percent(time)),
    }
}

fn writes_reason(e: &VerdictInput, coherence: &SharingEvidence, by_writes: &KindAnswer) -> String {
    let pairs = match by_writes.answer {
        Answer::Yes => by_writes.residual(),
        _ => "which pairs have them cannot be told".to_owned(),
    };
    format!(
        " Up to {} of the events hit a line that the other thread has modified (coherence misses, {pairs}{}); the \
         others re-read shared lines (replication misses).",
        coherence_share(e, coherence),
        shown_time(e, ", "),
    )
}

fn hidden_reason(e: &VerdictInput, coherence: &SharingEvidence, all: &KindAnswer) -> String {
    format!(
        " That is of the events that hit a line which the other thread has modified (coherence misses), up to {} of \
         all{}; what threads only read or wait for hides them{}.",
        coherence_share(e, coherence),
        shown_time(e, " and "),
        all.too_low(h_min(e.threads), " of all"),
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

fn kinds_differ(e: &VerdictInput, by_writes: &KindAnswer, all: &KindAnswer) -> String {
    format!(
        "Threads: cannot tell, the events that hit a modified line (coherence misses) tell pairs apart ({}, threshold \
         {:.0}), all events do not{}, and there are too few slices to see whether the same pairs come again; trace a \
         longer run.",
        by_writes.residual(),
        h_min(e.threads),
        all.too_low(h_min(e.threads), " of all"),
    )
}

/// The answer that one kind of events gives.
fn answer_of(e: &VerdictInput, kind: &SharingEvidence) -> KindAnswer {
    let insufficient = |about_pairs: bool| {
        let of_that_kind = kind
            .insufficient
            .filter(|d| d.is_about_pairs() == about_pairs);
        of_that_kind.map(|d| insufficient_evidence_text(&d, e.online))
    };
    let of_run = |answer, why| KindAnswer {
        answer,
        why,
        decided_by: kind.communication,
        of_phase: false,
    };
    if let Some(insufficient) = insufficient(false) {
        return of_run(Answer::Unknown, insufficient);
    }
    if kind.communication.events == 0 {
        return of_run(Answer::No, "Threads: they share no line of memory.".into());
    }
    let found = match kind.phases {
        // Page faults have no rate, and it takes many to know a phase.
        phases if phases.len() > 1 && !e.online && e.threads > 2 => conditions_of_phases(e, phases),
        _ => {
            let (suits, why) = conditions(e, &kind.communication);
            of_run(if suits { Answer::Yes } else { Answer::No }, why)
        }
    };
    match insufficient(true).filter(|_| found.answer == Answer::Yes) {
        Some(insufficient) => of_run(Answer::Unknown, insufficient),
        None => found,
    }
}

/// The conditions of OPT 6.2.2 on the communication of a run or a phase.
fn conditions(e: &VerdictInput, c: &CommunicationMetrics) -> (bool, String) {
    let h_min = h_min(e.threads);
    if !e.online && c.amount_per_second < A_MIN {
        let why = format!(
            "Threads: they share little, {} events/s per pair (C_A; threshold {A_MIN:.0}).",
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
        let (pairs, all) = (c.heterogeneity_pairs, c.heterogeneity);
        let figures = match pairs < h_min {
            true => format!("communication heterogeneity {pairs:.0} between pairs (C_H {all:.0}"),
            false => format!("communication heterogeneity C_H {all:.0} ({pairs:.0} between pairs"),
        };
        let why = format!("Threads: all share alike, {figures}; threshold {h_min:.0}).");
        return (false, why);
    }
    if c.heterogeneity_residual < h_min {
        let why = format!(
            "Threads: some share more than others, but with all alike: beside that, heterogeneity {:.0} \
             (C_H {:.0}, {:.0} between pairs; threshold {h_min:.0}).",
            c.heterogeneity_residual, c.heterogeneity, c.heterogeneity_pairs
        );
        return (false, why);
    }
    (true, heterogeneity_reason(c, h_min, e.online))
}

/// Threads are worth a mapping where phases that meet the conditions have enough of the events.
fn conditions_of_phases(e: &VerdictInput, phases: &[CommunicationMetrics]) -> KindAnswer {
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
    KindAnswer {
        answer: if suits { Answer::Yes } else { Answer::No },
        why: format!("{why} {of_all}"),
        decided_by: shown,
        of_phase: true,
    }
}

fn insufficient_evidence_text(insufficient: &InsufficientEvidence, online: bool) -> String {
    let longer = match online {
        true => "observe it for longer, or trace it",
        false => "trace without --sample, or longer",
    };
    match *insufficient {
        InsufficientEvidence::TooShort { seconds } => format!(
            "Threads: cannot tell from {seconds:.2} s, at least {SECONDS_MIN} s are needed; trace a longer run."
        ),
        InsufficientEvidence::TooFewEvents { events, needed } => format!(
            "Threads: cannot tell, {events} sharing events were seen, too few to tell who shares with \
             whom; at least {needed} are needed: {longer}."
        ),
        InsufficientEvidence::Unrepeated {
            correlation,
            units: Some(units),
        } => format!(
            "Threads: cannot tell, they took turns on {units} processing units, and which pairs share \
             changes from slice to slice (correlation {correlation:.2}, threshold {REPEAT_MIN}); trace with \
             a longer --slice, such as 100ms, or where each thread has a unit."
        ),
        InsufficientEvidence::Unrepeated { correlation, .. } => format!(
            "Threads: cannot tell, which pairs share changes from slice to slice in this sample \
             (correlation {correlation:.2}, threshold {REPEAT_MIN}): {longer}."
        ),
        InsufficientEvidence::Chance { heterogeneity } => format!(
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
            " They do so often ({} events/s, threshold {A_MIN:.0}).",
            format_rate(c.amount_per_second)
        ),
    };
    format!(
        "Threads: some pairs share much more than others (communication heterogeneity C_H {:.0}, \
         {:.0} between pairs, threshold {h_min:.0}).{often}",
        c.heterogeneity, c.heterogeneity_pairs,
    )
}
