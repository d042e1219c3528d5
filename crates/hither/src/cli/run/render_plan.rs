//! What `hither run` would do, for --dry-run and --verbose.
use hither_profile::{
    file_name, PlacedPhase, Placement, RegionIdentity, RegionPlacement, LEFT_TO_SYSTEM, PAGE_SIZE,
};
use std::collections::BTreeMap;

use crate::app::run::{PlacementOrigin, RulePlan, RunPlan};
use crate::cli::style::{bytes, count, strip_control_characters, TerminalStyle};
use crate::formats::describe_region;
use crate::program::target::TargetProgram;
use crate::run::request::MemoryPolicy;
use hither_model::topology::PuList;
use hither_sys::Node;

/// Everything.
pub fn plan_text(plan: &RunPlan, target: &TargetProgram, style: TerminalStyle) -> String {
    let argv: Vec<String> = target
        .argv
        .iter()
        .map(|a| strip_control_characters(&a.to_string_lossy()))
        .collect();
    let mut out = style.bold("Program");
    out += &format!(
        "\n  {}",
        strip_control_characters(&target.executable.display().to_string())
    );
    if argv.len() > 1 {
        out += &format!(" ({})", argv.join(" "));
    }
    out.push('\n');
    match &plan.kind {
        PlacementOrigin::Placement(file, placement) => {
            out += &of_placement(plan, file, placement, style)
        }
        PlacementOrigin::Rule(rule) => out += &of_rule(plan, rule, style),
    }
    if let Some(memory) = &plan.memory {
        out += &format!("{}\n  {}\n", style.bold("Memory policy"), policy(memory));
    }
    if !plan.environment.is_empty() {
        out += &format!("{}\n", style.bold("Environment"));
    }
    for (name, value) in &plan.environment {
        out += &format!("  {name}={value}\n");
    }
    if !plan.warnings.is_empty() {
        out += &format!("{}\n", style.bold("Warnings"));
    }
    for warning in &plan.warnings {
        out += &style.wrap("  - ", warning, 4);
    }
    out
}

/// Why a placement leaves everything to the system, where it was made to.
pub fn binds_nothing(plan: &RunPlan) -> Option<String> {
    let PlacementOrigin::Placement(file, placement) = &plan.kind else {
        return None;
    };
    let left = placement.policy.threads == LEFT_TO_SYSTEM;
    let (file, why) = (
        strip_control_characters(file),
        strip_control_characters(&placement.why),
    );
    left.then(|| format!("{file} binds nothing. {why}"))
}

fn of_placement(plan: &RunPlan, file: &str, placement: &Placement, style: TerminalStyle) -> String {
    let mut out = style.bold("Placement");
    let policy = &placement.policy;
    let data = policy.data.as_ref();
    let data = data.map_or_else(String::new, |d| format!(", pages by {d}"));
    out += &format!(
        "\n  {}: threads by {}{data}\n",
        strip_control_characters(file),
        strip_control_characters(&policy.threads)
    );
    if let Some(why) = binds_nothing(plan) {
        out += &style.wrap("  ", &why, 2);
    }
    let Some((first, later)) = placement.phases.split_first() else {
        return out;
    };
    if first.threads.is_empty() {
        out += "  threads are left to the system\n";
    } else {
        out += &format!("{}\n", style.bold("Threads"));
        out += &threads(placement, first, style);
    }
    if first.pages.is_empty() {
        out += "  pages are left to the system\n";
    } else {
        let how = if plan.strict { "bound" } else { "preferred" };
        out += &format!("{} ({how})\n", style.bold("Pages"));
        out += &regions(placement, first, style);
    }
    if !later.is_empty() {
        out += &format!("{}\n", style.bold("Phases"));
    }
    for (at, phase) in (1..).zip(later) {
        let before = &placement.phases[at - 1];
        let moved = phase
            .threads
            .iter()
            .filter(|t| !before.threads.contains(t))
            .count();
        out += &format!(
            "  phase {at} from {:.2} s of the profiled run: {moved} threads and {} pages move\n",
            phase.start as f64 / 1e9,
            count(Placement::pages(phase)),
        );
    }
    out
}

fn threads(placement: &Placement, phase: &PlacedPhase, style: TerminalStyle) -> String {
    let row = |place: &hither_profile::ThreadPlace| {
        let thread = placement.threads.get(place.thread().at());
        let process = thread.and_then(|t| placement.processes.get(t.process.at()));
        let name = thread.map_or("", |t| t.name.as_str());
        let program = process.map_or("", |p| p.executable.as_str());
        let program = file_name(program);
        let node = placement.machine.nodes.get(place.node().at());
        vec![
            place.thread().to_string(),
            format!("L#{}", place.pu()),
            format!("P#{}", place.os_index()),
            node.map_or_else(String::new, |node| format!("N#{node}")),
            strip_control_characters(name),
            strip_control_characters(program),
        ]
    };
    let rows = phase.threads.iter().map(row).collect();
    let header = ["thread", "PU", "kernel's", "node", "name", "program"];
    style.table(&header, rows, &[0, 1, 2, 3])
}

fn regions(placement: &Placement, phase: &PlacedPhase, style: TerminalStyle) -> String {
    let row = |places: &RegionPlacement| {
        let region = placement.regions.get(places.region as usize);
        let size = region.map_or(0, |r: &RegionIdentity| r.size);
        vec![
            region.map_or_else(String::new, |r| {
                strip_control_characters(&describe_region(r))
            }),
            bytes(size),
            nodes(placement, places),
        ]
    };
    let rows = phase.pages.iter().map(row).collect();
    style.table(&["region", "size", "placed, by node"], rows, &[1])
}

/// `N#0: 12 MiB, N#1: 4 KiB`.
fn nodes(placement: &Placement, places: &RegionPlacement) -> String {
    let mut by_node: BTreeMap<u32, u64> = BTreeMap::new();
    for run in &places.runs {
        let node = placement.machine.nodes.get(run.node().at()).copied();
        let pages = by_node.entry(node.unwrap_or(u32::MAX)).or_default();
        *pages = pages.saturating_add(run.pages());
    }
    let parts = by_node.into_iter();
    let parts = parts.map(|(n, p)| format!("N#{n}: {}", bytes(p.saturating_mul(PAGE_SIZE))));
    parts.collect::<Vec<_>>().join(", ")
}

fn of_rule(plan: &RunPlan, rule: &RulePlan, style: TerminalStyle) -> String {
    let tree = &plan.here.selected.tree;
    if rule.order.is_empty() {
        return "Threads are left to the system.\n".to_owned();
    }
    let row = |(at, cpu): (usize, &hither_sys::Cpu)| {
        let unit = tree.units.iter().find(|u| u.os == cpu.0);
        let node = unit.and_then(|u| tree.nodes.get(u.node.at()));
        vec![
            at.to_string(),
            unit.map_or_else(String::new, |u| format!("L#{}", u.pu)),
            format!("P#{}", cpu.0),
            node.map_or_else(String::new, |node| format!("N#{}", node.os)),
        ]
    };
    let rows = rule.order.iter().enumerate().map(row).collect();
    format!(
        "{} by {}, each to the first PU with the fewest\n{}",
        style.bold("Threads"),
        rule.name,
        style.table(&["thread", "PU", "kernel's", "node"], rows, &[0, 1, 2, 3])
    )
}

/// As numactl would call it.
fn policy(memory: &MemoryPolicy) -> String {
    let list = |nodes: &[Node]| PuList::from_numbers(nodes.iter().map(|n| n.0)).to_string();
    match memory {
        MemoryPolicy::Interleave(nodes) => format!("interleave over nodes {}", list(nodes)),
        MemoryPolicy::Bind(nodes) => format!("bind to nodes {}", list(nodes)),
        MemoryPolicy::Preferred(node) => format!("prefer node {}", node.0),
        MemoryPolicy::Local => "local to the thread that touches a page first".to_owned(),
    }
}

/// One line.
pub fn plan_summary(plan: &RunPlan) -> String {
    let mut parts = Vec::new();
    match &plan.kind {
        PlacementOrigin::Placement(file, placement) => {
            let first = placement.phases.first();
            let threads = first.map_or(0, |p| p.threads.len());
            let pages = first.map_or(0, Placement::pages);
            let phases = match placement.phases.len() {
                1 => String::new(),
                n => format!(", in {n} placed phases"),
            };
            parts.push(format!(
                "placing {threads} threads and {} pages of {} regions as {} says{phases}",
                count(pages),
                placement.regions.len(),
                strip_control_characters(file),
            ));
        }
        PlacementOrigin::Rule(rule) if rule.order.is_empty() => {}
        PlacementOrigin::Rule(rule) => {
            let first: Vec<String> = rule.order.iter().take(8).map(|c| c.0.to_string()).collect();
            let more = if rule.order.len() > 8 { ",..." } else { "" };
            parts.push(format!(
                "placing threads by {} on PUs {}{more}",
                rule.name,
                first.join(",")
            ));
        }
    }
    parts.extend(
        plan.memory
            .as_ref()
            .map(|m| format!("memory policy: {}", policy(m))),
    );
    parts.extend(plan.environment.iter().map(|(k, v)| format!("{k}={v}")));
    parts.join("; ")
}
