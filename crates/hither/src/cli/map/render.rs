//! What `hither map` prints.
use super::args::{BEST, BEST_ABOUT};
use super::{render_phases, UnboundNext};
use crate::app::map::machine::THIS_MACHINE;
use crate::app::map::pages::StructurePages;
use crate::app::map::MapSolution;
use crate::app::policy_pair::{NEXT_TOUCH, PUBLISHED};
use crate::cli::policy_values::OS;
use crate::cli::style::{
    count, percent, shell_line, strip_control_characters, three_digits, TerminalStyle,
};
use crate::formats;
use anyhow::Result;
use hither_model::map::explain::{PlacementExplanation, PlacementQuality};
use hither_model::map::{data, threads};
use hither_profile::{MappingObjective, PlacedPhase, Placement, PolicyChoice, ThreadIx};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Policies and formats, a line each.
pub fn list(style: TerminalStyle) -> String {
    let mut out = String::new();
    let mut section = |title: &str, all: Vec<(&str, &str)>| {
        out.push_str(&style.bold(title));
        out.push('\n');
        for (name, about) in all {
            out += &style.wrap(&format!("  {name:<18}"), about, 20);
        }
    };
    section("Threads (--policy)", {
        let all = threads::THREAD_POLICIES
            .iter()
            .map(|p| (p.name(), p.about()));
        all.chain([OS, (BEST, BEST_ABOUT)]).collect()
    });
    let published = PUBLISHED.iter().filter(|p| p.name != NEXT_TOUCH);
    section(
        "Threads and pages, as published (--policy)",
        published.map(|p| (p.name, p.about)).collect(),
    );
    section(
        "Pages (--data)",
        data::data_policies()
            .iter()
            .map(|p| (p.name(), p.about()))
            .collect(),
    );
    section(
        "For other tools (--format)",
        formats::ALL
            .iter()
            .map(|f| (f.name(), f.summary()))
            .collect(),
    );
    out
}

/// What `--json` prints; docs/format.md names the fields.
#[derive(Serialize)]
struct MapJson<'a> {
    threads: Vec<ThreadIx>,
    /// The kernel's numbers, one for each thread above.
    pus: Vec<u32>,
    objective: Value,
    before: Value,
    why: &'a str,
    policy: &'a PolicyChoice,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    one_placement: Option<&'a PlacementQuality>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    structures: &'a [StructurePages],
}

/// The list of PUs and the objective.
pub fn json(
    placement: &Placement,
    solution: Option<&MapSolution>,
    explain: bool,
) -> Result<String> {
    let one_placement = solution.and_then(|s| s.one_placement.as_ref());
    let solution = solution.filter(|_| explain);
    let pages = solution.and_then(|s| s.pages.as_ref());
    let first = placement.phases.first();
    let places = first.map_or(&[][..], |phase| &phase.threads);
    let printed = MapJson {
        threads: places.iter().map(|p| p.thread()).collect(),
        pus: places.iter().map(|p| p.os_index()).collect(),
        objective: number(placement.objective, placement.objective.after.into()),
        before: number(placement.objective, placement.objective.before.into()),
        why: &placement.why,
        policy: &placement.policy,
        explanation: solution
            .map(|s| explained(placement.objective, &s.explanation))
            .transpose()?,
        one_placement,
        structures: pages.map_or(&[], |p| &p.structures),
    };
    Ok(serde_json::to_string_pretty(&printed)? + "\n")
}

/// A whole number where weights are.
fn number(objective: MappingObjective, units: u128) -> Value {
    match u64::try_from(units) {
        Ok(units) if objective.fraction_bits == 0 => units.into(),
        _ => objective.value(units).into(),
    }
}

fn explained(objective: MappingObjective, explanation: &PlacementExplanation) -> Result<Value> {
    let mut shown = serde_json::to_value(explanation)?;
    let states = [
        ("before", explanation.before.as_ref()),
        ("after", Some(&explanation.after)),
    ];
    for (name, state) in states {
        if let Some(state) = state {
            shown[name]["objective"] = number(objective, state.objective);
        }
    }
    Ok(shown)
}

/// The objective as text.
pub fn objective_text(objective: MappingObjective, units: u128) -> String {
    match u64::try_from(units) {
        Ok(units) if objective.fraction_bits == 0 => count(units),
        _ => three_digits(objective.value(units)),
    }
}

/// What was placed and what it brings.
pub fn summary(
    placement: &Placement,
    solution: Option<&MapSolution>,
    style: TerminalStyle,
) -> String {
    let first = placement.phases.first();
    if placement.binds_nothing() {
        let machine = strip_control_characters(&placement.machine.name);
        let why = strip_control_characters(&placement.why);
        return format!("Nothing is bound on {machine}\n") + &style.wrap("", &why, 2);
    }
    let mut out = headline(placement, first);
    let objective = placement.objective;
    if placement
        .phases
        .iter()
        .all(|phase| phase.threads.is_empty())
    {
        return out + &style.wrap("", &strip_control_characters(&placement.why), 2);
    }
    out += &format!(
        "Objective ({}): {} -> {}{}\n",
        strip_control_characters(&placement.policy.cost),
        objective_text(objective, objective.before.into()),
        objective_text(objective, objective.after.into()),
        change(objective.before, objective.after),
    );
    if let Some(explanation) = solution.map(|s| &s.explanation) {
        out += &style.wrap("Communication inside: ", &inside(explanation), 2);
        out += &remote(explanation);
    }
    if let Some(one) = solution.and_then(|s| s.one_placement.as_ref()) {
        let objective = u64::try_from(one.objective).unwrap_or(u64::MAX);
        let remote = one
            .remote
            .map(|remote| format!(", {} of accesses remote", percent(remote)));
        out += &format!(
            "One placement for the whole run: objective {}{}\n",
            count(objective),
            remote.unwrap_or_default()
        );
    }
    if placement.phases.len() > 1 {
        let pages = solution.and_then(|s| s.pages.as_ref());
        let moves = pages.map_or(0, |p| p.plan.total_moves());
        out += &render_phases::phases(placement, moves);
    }
    out += &style.wrap("", &strip_control_characters(&placement.why), 2);
    out
}

fn headline(placement: &Placement, first: Option<&PlacedPhase>) -> String {
    let threads = first.map_or(0, |p| p.threads.len());
    let left = placement.threads.len() - threads;
    let left = match left {
        all if threads == 0 => return pages_only(placement, first, all),
        0 => String::new(),
        1 => " (1 that hardly works is left to the system)".to_owned(),
        n => format!(" ({n} that hardly work are left to the system)"),
    };
    let data = pages_placed(placement, first);
    format!(
        "{threads} threads{left} on {}: {}{data}\n",
        strip_control_characters(&placement.machine.name),
        strip_control_characters(&placement.policy.threads),
    )
}

fn pages_only(placement: &Placement, first: Option<&PlacedPhase>, threads: usize) -> String {
    format!(
        "{threads} threads on {} are left to the system{}\n",
        strip_control_characters(&placement.machine.name),
        pages_placed(placement, first)
    )
}

fn pages_placed(placement: &Placement, first: Option<&PlacedPhase>) -> String {
    let pages: u64 = first.map_or(0, Placement::pages);
    let data = placement.policy.data.as_ref().filter(|_| pages > 0);
    data.map_or_else(String::new, |data| {
        format!(
            ", {} pages by {}",
            count(pages),
            strip_control_characters(data)
        )
    })
}

/// Shares of communication, the closest level last. Levels of the same shares as the one
/// before, being the same parts of the machine, are left out.
fn inside(explanation: &PlacementExplanation) -> String {
    let share = |state: &PlacementQuality, level: &str| {
        let row = state.communication.iter().find(|r| r.level == level);
        row.map_or(0.0, |row| row.inside)
    };
    let mut last = (0.0, 0.0);
    let mut parts = Vec::new();
    for row in explanation.after.communication.iter().rev() {
        let before = explanation.before.as_ref();
        let shares = (before.map_or(0.0, |b| share(b, row.level)), row.inside);
        let whole = row.level == "machine";
        if shares == last || whole {
            continue;
        }
        last = shares;
        let (was, is) = (percent(shares.0), percent(shares.1));
        parts.push(format!("{} {was} -> {is}", row.level));
    }
    parts.reverse();
    match parts.is_empty() {
        true => "only the machine as a whole".to_owned(),
        false => parts.join(", "),
    }
}

fn remote(explanation: &PlacementExplanation) -> String {
    let before = explanation.before.as_ref().and_then(|state| state.remote);
    match (before, explanation.after.remote) {
        (Some(0.0), Some(0.0)) => String::new(),
        (Some(before), Some(after)) => format!(
            "Remote accesses: {} -> {}\n",
            percent(before),
            percent(after)
        ),
        (None, Some(after)) => format!("Remote accesses: {}\n", percent(after)),
        (_, None) => String::new(),
    }
}

/// What was written, and what to type: here, or on the machine it is for.
pub fn next(placement: &Placement, path: &Path, unbound: UnboundNext) -> String {
    let shown = strip_control_characters(&path.display().to_string());
    let command = match placement.source.command.is_empty() {
        true => "COMMAND".to_owned(),
        false => shell_line(placement.source.command.iter()),
    };
    if placement.binds_nothing() {
        let next = match unbound {
            UnboundNext::Nothing => String::new(),
            UnboundNext::Force => "next: the same with --force, to place all the same\n".to_owned(),
            UnboundNext::Record => {
                format!("next: hither trace --bursts -- {command}, then hither map\n")
            }
        };
        return format!("{shown} written\n{next}");
    }
    let next = if placement.machine.name == THIS_MACHINE {
        let path = path.to_string_lossy();
        format!("hither run -p {} -- {command}", shell_line([path].iter()))
    } else {
        format!("hither map {shown} --format env (others: hither map --list)")
    };
    format!("{shown} written\nnext: {next}\n")
}

fn change(before: u64, after: u64) -> String {
    match before {
        0 => String::new(),
        _ => {
            let change = after as f64 / before as f64 - 1.0;
            let sign = if change > 0.0 { "+" } else { "" };
            format!(" ({sign}{})", percent(change))
        }
    }
}
