//! `--explain`: before and after, side by side.
use super::render::objective_text;
use crate::app::map::pages::StructurePages;
use crate::app::map::MapSolution;
use crate::cli::style::{bytes, count, percent, strip_control_characters, TerminalStyle};
use hither_model::map::explain::{PlacementExplanation, PlacementQuality};
use hither_profile::MappingObjective;

/// `objective`: in whose units it counts.
pub fn render(solution: &MapSolution, objective: MappingObjective, style: TerminalStyle) -> String {
    let structures = solution.pages.as_ref().map_or(&[][..], |p| &p.structures);
    table(&solution.explanation, objective, style) + &self::structures(structures, style)
}

fn table(
    explanation: &PlacementExplanation,
    objective: MappingObjective,
    style: TerminalStyle,
) -> String {
    let after = &explanation.after;
    let before = explanation.before.as_ref();
    let mut rows = Vec::new();
    let mut row = |name: String, value: &dyn Fn(&PlacementQuality) -> Option<String>| {
        let dash = || "-".to_owned();
        rows.push(vec![
            name,
            before.and_then(value).unwrap_or_else(dash),
            value(after).unwrap_or_else(dash),
        ]);
    };
    row("objective".to_owned(), &|s| {
        Some(objective_text(objective, s.objective))
    });
    for level in levels(before, after) {
        row(format!("communication inside {level}"), &|s| {
            let found = s.communication.iter().find(|r| r.level == level);
            Some(percent(found.map_or(0.0, |r| r.inside)))
        });
    }
    row("remote accesses".to_owned(), &|s| s.remote.map(percent));
    for cache in &after.caches {
        row(
            format!("B_comm of {} x {}", cache.caches, cache.level),
            &|s| {
                let found = s.caches.iter().find(|c| c.level == cache.level);
                found.map(|c| percent(c.balance / 100.0))
            },
        );
    }
    let mut out = style.table(&["", "before", "after"], rows, &[1, 2]);
    out += &format!(
        " {} of {} threads move, {} of {} pages\n",
        explanation.threads_moved,
        explanation.threads,
        count(explanation.pages_moved as u64),
        count(explanation.pages as u64),
    );
    out
}

/// Where the bytes of data structures are: nodes that have some, the fullest first.
fn structures(structures: &[StructurePages], style: TerminalStyle) -> String {
    if structures.is_empty() {
        return String::new();
    }
    let row = |s: &StructurePages| {
        let total: u64 = s.bytes.iter().sum();
        vec![
            strip_control_characters(&s.name),
            bytes(total),
            nodes(&s.bytes, total),
            s.suits.to_string(),
        ]
    };
    let rows = structures.iter().map(row).collect();
    style.table(&["structure", "size", "nodes", "suits"], rows, &[1])
}

fn nodes(bytes: &[u64], total: u64) -> String {
    let mut on: Vec<(usize, u64)> = bytes.iter().copied().enumerate().collect();
    on.retain(|(_, bytes)| *bytes > 0);
    on.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let more = on.len().saturating_sub(MOST_NODES);
    let shown = on.iter().take(MOST_NODES).map(|(node, bytes)| {
        let share = *bytes as f64 / total.max(1) as f64;
        format!("{node}: {:.0} %", share * 100.0)
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if more > 0 {
        text += &format!(", {more} more");
    }
    text
}

/// Nodes named in a line.
const MOST_NODES: usize = 4;

/// Levels below the machine that either has anything in, the loosest first.
fn levels<'a>(before: Option<&'a PlacementQuality>, after: &'a PlacementQuality) -> Vec<&'a str> {
    let mut levels: Vec<&str> = after.communication.iter().map(|r| r.level).collect();
    for row in before.iter().flat_map(|b| &b.communication) {
        if !levels.contains(&row.level) {
            levels.push(row.level);
        }
    }
    let inside = |state: &PlacementQuality, level: &str| {
        let row = state.communication.iter().find(|r| r.level == level);
        row.is_some_and(|row| row.inside > 0.0)
    };
    levels.retain(|level| {
        *level != "machine" && (inside(after, level) || before.is_some_and(|b| inside(b, level)))
    });
    levels
}
