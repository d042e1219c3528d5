//! What is said at the end of `hither auto`.
use std::path::Path;
use std::time::Duration;

use hither_model::units::plural;
use hither_profile::WriteOutcome;

use crate::auto::outcome::AutoOutcome;
use crate::cli::style::shell_line;
use crate::cli::units::{show_bytes, show_count, show_duration, show_end};

/// Sentences; the last ones tell where the profile is and what to type next.
pub fn report(
    outcome: &AutoOutcome,
    verbose: bool,
    kept: Option<(&Path, &WriteOutcome)>,
) -> Vec<String> {
    let mut lines = vec![headline(outcome)];
    if verbose {
        lines.extend(details(outcome));
    }
    if let Some((folder, written)) = kept {
        let shown = folder.display().to_string();
        lines.push(format!(
            "{}{}, {} page faults ({} caused) on {} of its {}, sampled -> {shown} ({})",
            show_duration(Duration::from_nanos(outcome.duration)),
            show_end(&outcome.end),
            show_count(outcome.faults),
            show_count(outcome.extra),
            show_bytes(outcome.memory_seen.min(outcome.memory)),
            show_bytes(outcome.memory),
            show_bytes(written.bytes),
        ));
        let next = ["hither", "report", "--text", &shown];
        lines.push(format!("next: {}", shell_line(next.into_iter())));
    }
    lines
}

fn headline(outcome: &AutoOutcome) -> String {
    if outcome.mappings == 0 && outcome.pages_moved == 0 {
        return format!("nothing was moved: {}", why_nothing(outcome));
    }
    let times = match outcome.mappings {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    format!(
        "mapped {times}, moving {} threads and {} pages",
        outcome.threads_moved, outcome.pages_moved
    )
}

fn why_nothing(outcome: &AutoOutcome) -> String {
    let events = plural(outcome.events, "sharing event", "sharing events");
    match outcome.decisions {
        0 if outcome.faults == 0 => "no page fault was seen".to_owned(),
        0 => format!("{events} of the program's threads are too few to tell a pattern"),
        _ => format!("{events} show no places that would surely be better: all share alike, or are where they belong"),
    }
}

fn details(outcome: &AutoOutcome) -> Vec<String> {
    let cost = &outcome.cost;
    let ms = |nanos: u64| nanos as f64 / 1e6;
    // One that ended at once had no time that could be read.
    let share = match cost.target {
        0 => "no share is known".to_owned(),
        target => format!(
            "{:.2} %",
            100.0 * (cost.cpu + cost.faulting) as f64 / target as f64
        ),
    };
    let set = outcome.parameters.iter();
    let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
    vec![
        format!(
            "mechanism: {}, {}; policy: {}",
            outcome.mechanism,
            set.join(", "),
            outcome.policy
        ),
        format!(
            "samplers: {}",
            match outcome.samplers.is_empty() {
                true => "none".to_owned(),
                false => outcome.samplers.join(", "),
            }
        ),
        format!(
            "{} page faults, {} of them caused, {} lost; {} sharing events",
            outcome.faults, outcome.extra, outcome.lost, outcome.events
        ),
        format!(
            "table: {} entries of {} bytes, {} bytes; matrix: {} bytes",
            outcome.entries, outcome.entry_bytes, outcome.table_bytes, outcome.matrix_bytes
        ),
        format!(
            "cost: {share} of the program's {:.0} ms: injecting {:.1} ms, detecting {:.1}, mapping {:.1}, migrating {:.1}, faulting {:.1} (estimated)",
            ms(cost.target), ms(cost.injecting), ms(cost.detecting), ms(cost.mapping),
            ms(cost.migrating), ms(cost.faulting)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_said() {
        let outcome = AutoOutcome {
            mechanism: "kmaf".to_owned(),
            policy: "scotch".to_owned(),
            parameters: [("ageing".to_owned(), 0.6), ("sharers".to_owned(), 4.0)].into(),
            ..AutoOutcome::default()
        };
        let said = report(&outcome, true, None);
        let line = "mechanism: kmaf, ageing=0.6, sharers=4; policy: scotch";
        assert!(said.iter().any(|said| said == line), "{said:?}");
    }

    #[test]
    fn why_nothing_was_moved_is_said() {
        let said = |(faults, events, decisions)| {
            headline(&AutoOutcome {
                faults,
                events,
                decisions,
                ..AutoOutcome::default()
            })
        };
        let why = [(0, 0, 0), (90, 1, 0), (9000, 400, 3)].map(said);
        assert!(why[0].ends_with("no page fault was seen"), "{why:?}");
        assert!(why[1].contains("1 sharing event of"), "{why:?}");
        assert!(why[1].ends_with("too few to tell a pattern"), "{why:?}");
        assert!(why[2].contains("400 sharing events show no"), "{why:?}");
    }
}
