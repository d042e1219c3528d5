//! The table of `hither sim` on the terminal.
use hither_profile::{Forecast, Predicted, Ratio};

use super::args::{By, Pages};
use super::render_by;
use crate::cli::style::{clean, count, percent, shell_line, three, Style};

/// All of it; `file` is the profile as it was named.
pub fn render(forecast: &Forecast, by: &[By], style: Style) -> String {
    let mut out = style.wrap("", &head(forecast), 2);
    out += &table(forecast, style);
    let verdict = style.wrap("Verdict: ", &clean(&forecast.verdict), 2);
    out += &format!("{}\n", style.bold(verdict.trim_end()));
    for one in by {
        out += &render_by::render(forecast, *one, style);
    }
    for note in notes(forecast) {
        out += &style.wrap("  - ", &clean(&note), 4);
    }
    out
}

fn head(forecast: &Forecast) -> String {
    let sample = &forecast.sample;
    let windows = match sample.windows {
        1 => "1 window".to_owned(),
        n => format!("{n} windows"),
    };
    let of = match sample.windows == sample.windows_recorded {
        true => String::new(),
        false => format!(" of {}", sample.windows_recorded),
    };
    format!(
        "{} on {}: {windows}{of}, {} accesses, {} of each warms up",
        clean(&forecast.source.file),
        clean(&forecast.title),
        count(sample.accesses),
        percent(sample.warm_up),
    )
}

/// A column: its head, its cells, and how much it is missed where there is no room: the largest
/// goes first.
struct Column {
    head: String,
    cell: fn(&Predicted) -> String,
    spare: u32,
}

/// All columns of the first table.
fn columns(forecast: &Forecast, style: Style) -> Vec<Column> {
    let last = forecast.levels.last().map_or("LLC", String::as_str);
    let column = |head: &str, spare, cell| Column {
        head: head.to_owned(),
        cell,
        spare,
    };
    vec![
        column("time", 0, |p| value(p.relative.time)),
        column(if style.unicode { "\u{b1}" } else { "+-" }, 0, |p| {
            half(p.relative.time)
        }),
        column("IPC", 4, |p| format!("{:.2}", p.amounts.ipc)),
        column(&format!("{} MPKI", clean(last)), 1, |p| {
            p.amounts
                .levels
                .last()
                .map_or("-".to_owned(), |level| three(level.mpki))
        }),
        column("inval.", 3, |p| value(p.relative.invalidations)),
        column("transf.", 2, |p| value(p.relative.transfers)),
        column("links", 0, |p| value(p.relative.link_bytes)),
        column("DRAM", 0, |p| value(p.relative.dram)),
        column("remote", 0, |p| match p.amounts.dram() {
            all if all > 0.0 => format!("{:.0} %", p.amounts.remote_dram() / all * 100.0),
            _ => "-".to_owned(),
        }),
        column("energy", 0, |p| value(p.relative.energy)),
    ]
}

/// The most telling columns that fit; the winner is marked.
pub fn table(forecast: &Forecast, style: Style) -> String {
    let mut columns = columns(forecast, style);
    let several = forecast.placements.len() > 1;
    let name = |at: usize, p: &Predicted| {
        let mark = if several && at == forecast.best as usize {
            '*'
        } else {
            ' '
        };
        format!("{mark}{}", clean(&p.name))
    };
    let names: Vec<String> = forecast
        .placements
        .iter()
        .enumerate()
        .map(|(at, p)| name(at, p))
        .collect();
    let width = |column: &Column| {
        let cells = forecast
            .placements
            .iter()
            .map(|p| (column.cell)(p).chars().count());
        cells.max().unwrap_or(0).max(column.head.chars().count()) + 2
    };
    let first = names.iter().map(|n| n.chars().count()).max().unwrap_or(0) + 3;
    while first + columns.iter().map(width).sum::<usize>() > style.width {
        let spare = columns.iter().map(|c| c.spare).max().unwrap_or(0);
        if spare == 0 {
            break;
        }
        columns.retain(|c| c.spare != spare);
    }
    let mut header = vec![""];
    header.extend(columns.iter().map(|c| c.head.as_str()));
    let rows = forecast.placements.iter().zip(names).map(|(p, name)| {
        let cells = columns.iter().map(|c| (c.cell)(p));
        [name].into_iter().chain(cells).collect()
    });
    let right: Vec<usize> = (1..header.len()).collect();
    let text = style.table(&header, rows.collect(), &right);
    let bold = |line: &str| match line.starts_with(" *") {
        true => style.bold(line) + "\n",
        false => format!("{line}\n"),
    };
    text.lines().map(bold).collect()
}

/// A ratio to the first; a dash where the first has nothing to compare with.
pub fn value(ratio: Option<Ratio>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.3}", ratio.value))
}

fn half(ratio: Option<Ratio>) -> String {
    let half = ratio.and_then(|ratio| ratio.half_width);
    half.map_or_else(|| "-".to_owned(), |half| format!("{half:.3}"))
}

/// What the numbers are.
pub fn legend(forecast: &Forecast) -> String {
    let first = forecast.placements.first().map_or("", |p| p.name.as_str());
    format!(
        "Ratios to {}: time, inval. (copies that writes took away), transf. (lines from cache to cache), links (bytes), DRAM (lines) and energy; +- is half of the 95 % interval of time; remote is the share of DRAM's lines that another node asked for.",
        clean(first)
    )
}

/// What to bear in mind.
fn notes(forecast: &Forecast) -> Vec<String> {
    let mut notes = vec![
        legend(forecast),
        format!(
            "Pages that a placement leaves to the system: {}.",
            forecast.pages
        ),
    ];
    for placement in forecast.placements.iter().filter(|p| p.name == "joint") {
        let data = placement
            .data_policy
            .as_deref()
            .unwrap_or(Pages::FirstTouch.name());
        notes.push(format!("joint is {}+{data}.", placement.thread_policy));
    }
    notes.extend(forecast.notes.iter().cloned());
    notes
}

/// What to type now.
pub fn next(forecast: &Forecast, topology: Option<&str>) -> String {
    let best = &forecast.placements[forecast.best as usize];
    let file = forecast.source.file.as_str();
    let mut words = vec!["hither"];
    if let Some(placement) = &best.file {
        if topology.is_some() {
            return shell_line(["hither", "map", placement, "--format", "env"].iter());
        }
        words.extend(["run", "-p", placement, "--"]);
        words.extend(forecast.source.command.iter().map(String::as_str));
        return shell_line(words.iter());
    }
    if best.thread_policy == "os" {
        return shell_line(["hither", "report", file].iter());
    }
    words.extend(["map", file]);
    words.extend(topology.iter().flat_map(|name| ["--topology", name]));
    words.extend(["--policy", &best.thread_policy]);
    words.extend([
        "--data",
        best.data_policy.as_deref().unwrap_or("first-touch"),
    ]);
    shell_line(words.iter())
}
