//! `hither topo` for people and for programs.
use super::machine_args::MachineArgs;
use super::style::{bytes, strip_control_characters, TerminalStyle};
use anyhow::Result;
use hither_model::topology::{
    self, shipped_machines, OutlineItem, OutlinePart, PuList, SelectedMachine, ShippedMachine,
};
use hither_model::units::plural;
use serde_json::json;
use std::ops::Range;

/// Largest node matrix that is printed; a wider one is read by programs.
const SHOWN_NODES: usize = 16;

/// The machine, part by part; parts that look alike are drawn once unless `all`.
pub fn render(
    selected: &SelectedMachine,
    args: &MachineArgs,
    all: bool,
    style: TerminalStyle,
) -> String {
    let known = args.topology.as_deref().and_then(by_name);
    let title = match (&known, &args.topology) {
        (Some(known), _) => known.title.clone(),
        (None, Some(name)) => strip_control_characters(name),
        (None, None) => "This machine".to_owned(),
    };
    let mut out = style.bold(&title);
    out.push('\n');
    out.push_str(&summary(selected, style));
    if let Some(known) = &known {
        out.push_str(&style.wrap("source: ", &known.source, 2));
    }
    out.push('\n');
    let drawing = TopologyDrawing {
        selected,
        all,
        style,
    };
    drawing.root(&selected.outline(), &mut out);
    out.push_str(&distances(selected, known.as_ref(), style));
    out.push_str(&format!("\nnext: hither map PROFILE{}\n", options(args)));
    out
}

fn by_name(name: &str) -> Option<ShippedMachine> {
    shipped_machines().into_iter().find(|m| m.name == name)
}

/// The options to repeat for the next command.
fn options(args: &MachineArgs) -> String {
    let mut text = String::new();
    if let Some(name) = &args.topology {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
        let name = strip_control_characters(name);
        if !name.is_empty() && name.chars().all(plain) {
            text.push_str(&format!(" --topology {name}"));
        } else {
            text.push_str(&format!(" --topology '{}'", name.replace('\'', "'\\''")));
        }
    }
    if let Some(pus) = &args.pus {
        text.push_str(&format!(" --pus {pus}"));
    }
    if let Some(kinds) = &args.cpu_kind {
        text.push_str(&format!(" --cpu-kind {kinds}"));
    }
    text
}

fn summary(selected: &SelectedMachine, style: TerminalStyle) -> String {
    let tree = &selected.tree;
    let (used, there) = (tree.units.len(), selected.topology.pu_count());
    let of = if used < there {
        format!(" (of {there})")
    } else {
        String::new()
    };
    let memory: u64 = tree.nodes.iter().map(|n| n.bytes).sum();
    let mut parts = vec![
        format!("{}{of}", many(used, "PU")),
        many(tree.core_count(), "core"),
        many(tree.nodes.len(), "NUMA node"),
    ];
    if memory > 0 {
        parts.push(format!("{} of memory", size(memory)));
    }
    let caches = selected.topology.cache_bytes();
    if caches > 0 && used == there {
        parts.push(format!("{} of cache", size(caches)));
    }
    let mut text = style.wrap("", &parts.join(", "), 2);
    for rank in (0..selected.topology.cpu_kinds().len()).rev() {
        let units = tree.units.iter().filter(|u| u.kind as usize == rank);
        let name = kind_name(selected, rank as u32);
        let units = many(units.count(), "PU");
        text.push_str(&format!("kind {rank}: {name}, {units}\n"));
    }
    text
}

fn many(n: usize, what: &str) -> String {
    plural(n as u64, what, &format!("{what}s"))
}

/// Whole numbers of a unit where they are, as sizes of caches mostly are.
fn size(n: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = units.iter().find(|(shift, _)| n >= 1 << shift);
    match whole {
        Some((shift, unit)) if n.trailing_zeros() >= *shift => format!("{} {unit}", n >> shift),
        _ => bytes(n),
    }
}

fn kind_name(selected: &SelectedMachine, rank: u32) -> String {
    let kinds = selected.topology.cpu_kinds();
    let speed = match rank as usize + 1 {
        n if n == kinds.len() => "fast",
        _ => "efficient",
    };
    let name = kinds
        .get(rank as usize)
        .map(|k| strip_control_characters(&k.name));
    match name.filter(|n| !n.is_empty()) {
        Some(name) => format!("{speed} ({name})"),
        None => speed.to_owned(),
    }
}

struct TopologyDrawing<'a> {
    selected: &'a SelectedMachine,
    all: bool,
    style: TerminalStyle,
}

impl TopologyDrawing<'_> {
    fn root(&self, root: &OutlinePart, out: &mut String) {
        self.line("", "", &self.describe(root), out);
        self.below(root, "", out);
    }

    /// The parts of `part`, each run of alike ones folded unless all are to be seen.
    fn below(&self, part: &OutlinePart, indent: &str, out: &mut String) {
        let tree = &self.selected.tree;
        let mut rest = &part.parts[..];
        while let Some((first, others)) = rest.split_first() {
            let alike = others.iter().take_while(|p| first.same_shape(p, tree));
            let mut alike = alike.count();
            // Folding one line into one line saves nothing.
            if self.all || (alike == 1 && first.parts.is_empty()) {
                alike = 0;
            }
            let (folded, after) = others.split_at(alike);
            rest = after;
            let (mark, next) = self.marks(indent, rest.is_empty() && alike == 0);
            self.line(&mark, &next, &self.describe(first), out);
            self.below(first, &next, out);
            if alike > 0 {
                let (mark, next) = self.marks(indent, rest.is_empty());
                let text = format!("{alike} more alike: {}", self.describe_folded(folded));
                self.line(&mark, &next, &text, out);
            }
        }
    }

    /// What stands before a part's line, and before the lines of what is in it.
    fn marks(&self, indent: &str, last: bool) -> (String, String) {
        let (mark, next) = match (self.style.unicode, last) {
            (true, false) => ("├─ ", "│  "),
            (true, true) => ("└─ ", "   "),
            (false, false) => ("|- ", "|  "),
            (false, true) => ("`- ", "   "),
        };
        (format!("{indent}{mark}"), format!("{indent}{next}"))
    }

    fn line(&self, mark: &str, next: &str, text: &str, out: &mut String) {
        let mut style = self.style;
        style.width = style.width.saturating_sub(mark.chars().count());
        for (at, line) in style.wrap("", text, 2).lines().enumerate() {
            out.push_str(if at == 0 { mark } else { next });
            out.push_str(line);
            out.push('\n');
        }
    }

    /// Items with their numbers and sizes; PUs where nothing below shows them.
    fn describe(&self, part: &OutlinePart) -> String {
        let items = part.items.iter();
        let mut texts: Vec<String> = items.map(|i| show_items(&[i], true)).collect();
        if part.units.is_empty() {
            texts.push("no PUs".to_owned());
        } else if part.parts.iter().all(|p| p.units.is_empty()) {
            texts.push(self.show_units(part.units.clone()));
        }
        texts.join(", ")
    }

    /// The numbers of several parts of the same shape.
    fn describe_folded(&self, parts: &[OutlinePart]) -> String {
        let items = parts.first().map_or(0, |p| p.items.len());
        let mut texts: Vec<String> = Vec::new();
        for at in 0..items {
            let same: Vec<&OutlineItem> = parts.iter().filter_map(|p| p.items.get(at)).collect();
            texts.push(show_items(&same, false));
        }
        // Parts that follow one another cover units that do.
        let first = parts.first().map_or(0, |p| p.units.start);
        let end = parts.last().map_or(0, |p| p.units.end);
        if end > first {
            texts.push(self.show_units(first..end));
        }
        texts.join(", ")
    }

    fn show_units(&self, units: Range<u32>) -> String {
        let units = self.selected.tree.units[units.start as usize..units.end as usize].iter();
        let logical = PuList::from_numbers(units.clone().map(|u| u.pu.0));
        let mut os: Vec<u32> = units.clone().map(|u| u.os).collect();
        os.sort_unstable();
        let mut text = format!("PU {logical} P#{}", PuList::from_numbers(os));
        if !self.selected.topology.cpu_kinds().is_empty() {
            if let Some(unit) = units.clone().next() {
                text.push_str(&format!(", {}", kind_name(self.selected, unit.kind)));
            }
        }
        text
    }
}

/// `Package 0`, `Node 1-3 P#1-3`, `L3 0 18 MiB`.
fn show_items(items: &[&OutlineItem], sized: bool) -> String {
    let Some(first) = items.first() else {
        return String::new();
    };
    let mut text = first.what.to_owned();
    if first.what != "Machine" {
        let numbers = PuList::from_numbers(items.iter().map(|i| i.logical));
        text.push_str(&format!(" {numbers}"));
    }
    if first.what == "Node" {
        let mut os: Vec<u32> = items.iter().filter_map(|i| i.os).collect();
        os.sort_unstable();
        text.push_str(&format!(" P#{}", PuList::from_numbers(os)));
    }
    if first.bytes > 0 && sized {
        text.push_str(&format!(" ({})", size(first.bytes)));
    }
    text
}

/// The node matrix, and where it is from.
fn distances(
    selected: &SelectedMachine,
    known: Option<&ShippedMachine>,
    style: TerminalStyle,
) -> String {
    let nodes = selected.tree.nodes.len();
    if nodes < 2 {
        return String::new();
    }
    let mut out = format!("\n{}\n", style.bold("Distances between nodes"));
    let Some(values) = &selected.latencies else {
        out.push_str(" not known; hither counts hops through the tree\n");
        return out;
    };
    if nodes > SHOWN_NODES {
        let (low, high) = (values.iter().min(), values.iter().max());
        let (low, high) = (low.copied().unwrap_or(0), high.copied().unwrap_or(0));
        out.push_str(&format!(
            " {low} to {high}; --json has all {nodes} x {nodes}\n"
        ));
    } else {
        let mut header = vec!["from \\ to".to_owned()];
        header.extend((0..nodes).map(|n| n.to_string()));
        let rows = values.chunks(nodes).enumerate().map(|(n, row)| {
            let mut cells = vec![format!("Node {n}")];
            cells.extend(row.iter().map(ToString::to_string));
            cells
        });
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let right: Vec<usize> = (1..=nodes).collect();
        out.push_str(&style.table(&header, rows.collect(), &right));
    }
    if let Some(latencies) = known.and_then(|k| k.latencies.as_ref()) {
        out.push_str(&style.wrap("source: ", &latencies.source, 2));
    }
    out
}

/// The machines known by name.
pub fn list(known: &[ShippedMachine], style: TerminalStyle) -> Result<String> {
    let mut rows = Vec::new();
    for machine in known {
        let topology = topology::load(&machine.name)?;
        let distances = if machine.latencies.is_some() {
            "yes"
        } else {
            "-"
        };
        rows.push(vec![
            machine.name.clone(),
            topology.pu_count().to_string(),
            topology.node_count().to_string(),
            distances.to_owned(),
            machine.title.clone(),
        ]);
    }
    let header = ["name", "PUs", "nodes", "distances", "machine"];
    let table = style.table(&header, rows, &[1, 2]);
    Ok(format!("{table}\nnext: hither topo NAME\n"))
}

/// The same for programs, with sources.
pub fn list_json(known: &[ShippedMachine]) -> Result<String> {
    let mut machines = Vec::new();
    for machine in known {
        let topology = topology::load(&machine.name)?;
        machines.push(json!({
            "name": machine.name,
            "title": machine.title,
            "source": machine.source,
            "processing_units": topology.pu_count(),
            "nodes": topology.node_count(),
            "latency_source": machine.latencies.as_ref().map(|l| &l.source),
        }));
    }
    Ok(format!("{:#}\n", serde_json::Value::from(machines)))
}

/// The machine as hither maps to it.
pub fn json(selected: &SelectedMachine, name: Option<&str>) -> Result<String> {
    let tree = &selected.tree;
    let known = name.and_then(by_name);
    let units = tree.units.iter().map(
        |u| json!({ "pu": u.pu.0, "os": u.os, "node": u.node.0, "core": u.core, "kind": u.kind }),
    );
    let nodes = tree
        .nodes
        .iter()
        .map(|n| json!({ "node": n.node.0, "os": n.os, "bytes": n.bytes, "units": n.units }));
    let vertices = tree.vertices.iter().map(|v| {
        let levels: Vec<String> = v
            .levels
            .iter()
            .map(|l| format!("{l:?}").to_lowercase())
            .collect();
        json!({ "parent": v.parent, "levels": levels, "units": [v.units.start, v.units.end] })
    });
    let kinds = selected.topology.cpu_kinds();
    let value = json!({
        "topology": name,
        "title": known.as_ref().map(|k| &k.title),
        "source": known.as_ref().map(|k| &k.source),
        "cache_bytes": selected.topology.cache_bytes(),
        "kinds": kinds.iter().map(|k| &k.name).collect::<Vec<_>>(),
        "units": units.collect::<Vec<_>>(),
        "nodes": nodes.collect::<Vec<_>>(),
        "latencies": selected.latencies.as_ref().map(|values| json!({
            "values": values.chunks(tree.nodes.len()).collect::<Vec<_>>(),
            "source": known.and_then(|k| k.latencies).map(|l| l.source),
        })),
        "tree": vertices.collect::<Vec<_>>(),
        "parts": serde_json::to_value(selected.outline())?,
    });
    Ok(format!("{value:#}\n"))
}
