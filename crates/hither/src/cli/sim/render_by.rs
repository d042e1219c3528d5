//! `--by`: what the first table leaves out.
use hither_profile::{PartAmounts, PlacementComparison, PredictedPlacement};

use super::args::BreakdownTable;
use crate::cli::style::{count, percent, strip_control_characters, three_digits, TerminalStyle};

/// Threads shown in a table, those with most misses.
const MOST_PARTS: usize = 16;
/// Windows shown.
const MOST_WINDOWS: usize = 40;

pub fn render(forecast: &PlacementComparison, by: BreakdownTable, style: TerminalStyle) -> String {
    let (title, body) = match by {
        BreakdownTable::Level => ("Misses by level and kind", levels(forecast, style)),
        BreakdownTable::Link => ("Bytes on each link", links(forecast, style)),
        BreakdownTable::Node => ("Lines of each node's memory", nodes(forecast, style)),
        BreakdownTable::Thread => (
            "Threads",
            parts(forecast, &forecast.threads, |p| &p.by_thread, style),
        ),
        BreakdownTable::Structure => (
            "Data structures",
            parts(forecast, &forecast.structures, |p| &p.by_structure, style),
        ),
        BreakdownTable::Energy => ("Energy", energy(forecast, style)),
        BreakdownTable::Time => ("Over time", over_time(forecast, style)),
    };
    match body.is_empty() {
        true => String::new(),
        false => format!("\n{}\n{body}", style.bold(title)),
    }
}

fn number(value: f64) -> String {
    // Means over seeds are not whole.
    count(value.round().max(0.0) as u64)
}

fn levels(forecast: &PlacementComparison, style: TerminalStyle) -> String {
    let header = [
        "",
        "level",
        "MPKI",
        "cold",
        "capacity",
        "invalidation",
        "replication",
        "prefetched",
        "used",
    ];
    let mut rows = Vec::new();
    for placement in &forecast.placements {
        for (name, level) in forecast.levels.iter().zip(&placement.amounts.levels) {
            rows.push(vec![
                strip_control_characters(&placement.name),
                strip_control_characters(name),
                three_digits(level.mpki),
                number(level.cold),
                number(level.capacity),
                number(level.invalidation),
                number(level.replication),
                number(level.prefetches),
                match level.prefetches {
                    all if all > 0.0 => percent(level.useful / all),
                    _ => "-".to_owned(),
                },
            ]);
        }
    }
    style.table(&header, rows, &[2, 3, 4, 5, 6, 7, 8])
}

fn links(forecast: &PlacementComparison, style: TerminalStyle) -> String {
    let header = names(forecast, "link");
    let rows = forecast.links.iter().enumerate().map(|(at, link)| {
        let kind = if link.between_packages {
            ""
        } else {
            " (inside)"
        };
        let bytes = forecast
            .placements
            .iter()
            .map(|p| number(p.amounts.link_bytes[at]));
        let name = format!("{} -> {}{kind}", link.from, link.to);
        [name].into_iter().chain(bytes).collect()
    });
    let rows: Vec<_> = rows.collect();
    match rows.is_empty() {
        true => String::new(),
        false => table(&header, rows, style),
    }
}

/// A column for each placement.
fn names(forecast: &PlacementComparison, first: &str) -> Vec<String> {
    let names = forecast
        .placements
        .iter()
        .map(|p| strip_control_characters(&p.name));
    [first.to_owned()].into_iter().chain(names).collect()
}

fn table(header: &[String], rows: Vec<Vec<String>>, style: TerminalStyle) -> String {
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let right: Vec<usize> = (1..header.len()).collect();
    style.table(&header, rows, &right)
}

fn nodes(forecast: &PlacementComparison, style: TerminalStyle) -> String {
    let header = [
        "",
        "node",
        "reads here",
        "from afar",
        "writes here",
        "from afar",
        "rows opened",
    ];
    let mut rows = Vec::new();
    for placement in &forecast.placements {
        for (at, node) in placement.amounts.nodes.iter().enumerate() {
            let amounts = [
                node.local_reads,
                node.remote_reads,
                node.local_writes,
                node.remote_writes,
                node.rows,
            ];
            let head = [strip_control_characters(&placement.name), at.to_string()];
            rows.push(head.into_iter().chain(amounts.map(number)).collect());
        }
    }
    style.table(&header, rows, &[1, 2, 3, 4, 5, 6])
}

/// The busiest parts of each placement.
fn parts(
    forecast: &PlacementComparison,
    names: &[String],
    of: fn(&PredictedPlacement) -> &Vec<PartAmounts>,
    style: TerminalStyle,
) -> String {
    let header = [
        "",
        "",
        "misses",
        "last level",
        "transfers",
        "local",
        "remote",
        "read time",
    ];
    let mut rows = Vec::new();
    for placement in &forecast.placements {
        let mut parts: Vec<(&String, &PartAmounts)> = names.iter().zip(of(placement)).collect();
        parts.sort_by(|(_, a), (_, b)| b.read_time.total_cmp(&a.read_time));
        let busy = parts
            .into_iter()
            .filter(|(_, part)| part.first_level_misses > 0.0);
        for (name, part) in busy.take(MOST_PARTS) {
            rows.push(vec![
                strip_control_characters(&placement.name),
                strip_control_characters(name),
                number(part.first_level_misses),
                number(part.last_level_misses),
                number(part.transfers),
                number(part.local_reads),
                number(part.remote_reads),
                milliseconds(part.read_time),
            ]);
        }
    }
    style.table(&header, rows, &[2, 3, 4, 5, 6, 7])
}

fn milliseconds(seconds: f64) -> String {
    format!("{} ms", three_digits(seconds * 1e3))
}

fn energy(forecast: &PlacementComparison, style: TerminalStyle) -> String {
    let header = names(forecast, "");
    let mut rows: Vec<Vec<String>> = Vec::new();
    let parts = forecast
        .placements
        .first()
        .map_or(&[][..], |p| &p.amounts.energy.parts);
    for (at, part) in parts.iter().enumerate() {
        let sum = |p: &PredictedPlacement| {
            let part = p.amounts.energy.parts.get(at);
            part.map_or_else(
                || "-".to_owned(),
                |part| joules(part.at_rest + part.dynamic),
            )
        };
        let amounts = forecast.placements.iter().map(sum);
        rows.push(
            [strip_control_characters(&part.name)]
                .into_iter()
                .chain(amounts)
                .collect(),
        );
    }
    let all = |name: &str, of: fn(&PredictedPlacement) -> String| -> Vec<String> {
        let amounts = forecast.placements.iter().map(of);
        [name.to_owned()].into_iter().chain(amounts).collect()
    };
    rows.push(all("in all", |p| joules(p.amounts.energy.total)));
    rows.push(all("nJ/instruction", |p| {
        three_digits(p.amounts.energy.per_instruction)
    }));
    table(&header, rows, style)
}

fn joules(joules: f64) -> String {
    format!("{} mJ", three_digits(joules * 1e3))
}

fn over_time(forecast: &PlacementComparison, style: TerminalStyle) -> String {
    let header = names(forecast, "at");
    let windows = forecast.placements.first().map_or(0, |p| p.over_time.len());
    let step = windows.div_ceil(MOST_WINDOWS).max(1);
    let row = |at: usize| {
        let start = forecast.placements[0].over_time[at].start;
        let times = forecast.placements.iter().map(|p| {
            let moment = p.over_time.get(at);
            moment.map_or_else(|| "-".to_owned(), |moment| milliseconds(moment.time))
        });
        let start = format!("{:.3} s", start as f64 / 1e9);
        [start].into_iter().chain(times).collect()
    };
    let rows = (0..windows).step_by(step).map(row).collect();
    table(&header, rows, style)
}
