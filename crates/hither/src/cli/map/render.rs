//! What `hither map` prints.
use crate::cli::style::{count, percent, Style};
use crate::map::{data, threads};
use crate::place::formats;
use anyhow::Result;
use hither_profile::Placement;
use std::path::Path;

/// Policies and formats, a line each.
pub fn list(style: Style) -> String {
    let mut out = String::new();
    let mut section = |title: &str, all: Vec<(&str, &str)>| {
        out.push_str(&style.bold(title));
        out.push('\n');
        for (name, about) in all {
            out += &style.wrap(&format!("  {name:<18}"), about, 20);
        }
    };
    section(
        "Threads (--policy)",
        threads::ALL.iter().map(|p| (p.name(), p.about())).collect(),
    );
    section(
        "Pages (--data)",
        data::ALL.iter().map(|p| (p.name(), p.about())).collect(),
    );
    section(
        "For other tools (--format)",
        formats::ALL.iter().map(|f| (f.name(), f.about())).collect(),
    );
    out
}

/// The list of PUs and the objective.
pub fn json(placement: &Placement) -> Result<String> {
    let first = placement.phases.first();
    let places = first.map_or(&[][..], |phase| &phase.threads);
    let value = serde_json::json!({
        "threads": places.iter().map(|p| p.thread()).collect::<Vec<_>>(),
        "pus": places.iter().map(|p| p.os()).collect::<Vec<_>>(),
        "objective": placement.objective.after,
        "before": placement.objective.before,
        "policy": placement.policy,
    });
    Ok(format!("{value:#}\n"))
}

/// What was placed, what it brings, and what to type next.
pub fn summary(placement: &Placement, path: &Path, style: Style) -> String {
    let objective = placement.objective;
    let first = placement.phases.first();
    let mut out = String::new();
    out += &format!(
        "{} threads on {}: policy {}, objective ({}) {} -> {}{}\n",
        first.map_or(0, |p| p.threads.len()),
        placement.machine.name,
        placement.policy.threads,
        placement.policy.cost,
        count(objective.before),
        count(objective.after),
        change(objective.before, objective.after),
    );
    out += &style.wrap("", &placement.why, 0);
    let path = path.display();
    out += &format!(
        "{path} written\nnext: hither run -p {path} -- {}\n",
        command(placement)
    );
    out
}

fn change(before: u64, after: u64) -> String {
    match before {
        0 => String::new(),
        _ => format!(" ({})", percent(after as f64 / before as f64 - 1.0)),
    }
}

fn command(placement: &Placement) -> String {
    match placement.source.command.is_empty() {
        true => "COMMAND".to_owned(),
        false => crate::cli::style::clean(&placement.source.command.join(" ")),
    }
}
