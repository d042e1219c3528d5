//! What is said at the end of `hither auto`.
use crate::place::online::journal::Outcome;

/// Sentences.
pub fn report(outcome: &Outcome, verbose: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if outcome.mappings == 0 && outcome.pages_moved == 0 {
        lines.push("nothing was moved: no pattern was seen that placing would serve".to_owned());
    } else {
        lines.push(format!(
            "mapped {} times, moving {} threads and {} pages",
            outcome.mappings, outcome.threads_moved, outcome.pages_moved
        ));
    }
    if !verbose {
        return lines;
    }
    let cost = &outcome.cost;
    let ms = |nanos: u64| nanos as f64 / 1e6;
    let share = 100.0 * (cost.cpu + cost.faulting) as f64 / cost.target.max(1) as f64;
    lines.push(format!(
        "samplers: {}",
        match outcome.samplers.is_empty() {
            true => "none".to_owned(),
            false => outcome.samplers.join(", "),
        }
    ));
    lines.push(format!(
        "{} page faults, {} of them caused, {} lost; {} sharing events",
        outcome.faults, outcome.extra, outcome.lost, outcome.events
    ));
    lines.push(format!(
        "table: {} entries of {} bytes, {} bytes; matrix: {} bytes",
        outcome.entries, outcome.entry_bytes, outcome.table_bytes, outcome.matrix_bytes
    ));
    lines.push(format!(
        "cost: {share:.2} % of the program's {:.0} ms: injecting {:.1} ms, detecting {:.1}, mapping {:.1}, migrating {:.1}, faulting {:.1} (estimated)",
        ms(cost.target), ms(cost.injecting), ms(cost.detecting), ms(cost.mapping),
        ms(cost.migrating), ms(cost.faulting)
    ));
    lines
}
