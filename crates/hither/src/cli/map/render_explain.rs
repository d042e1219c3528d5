//! `--explain`: before and after, side by side.
use crate::cli::style::{count, percent, Style};
use crate::map::explain::{Explanation, State};

pub fn render(explanation: &Explanation, style: Style) -> String {
    let after = &explanation.after;
    let before = explanation.before.as_ref();
    let mut rows = Vec::new();
    let mut row = |name: String, value: &dyn Fn(&State) -> Option<String>| {
        let dash = || "-".to_owned();
        rows.push(vec![
            name,
            before.and_then(value).unwrap_or_else(dash),
            value(after).unwrap_or_else(dash),
        ]);
    };
    row("objective".to_owned(), &|s| {
        Some(count(u64::try_from(s.objective).unwrap_or(u64::MAX)))
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

/// Levels that either has, the loosest first.
fn levels<'a>(before: Option<&'a State>, after: &'a State) -> Vec<&'a str> {
    let mut levels: Vec<&str> = after.communication.iter().map(|r| r.level).collect();
    for row in before.iter().flat_map(|b| &b.communication) {
        if !levels.contains(&row.level) {
            levels.push(row.level);
        }
    }
    levels
}
