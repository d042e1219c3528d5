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

/// The most telling columns; 100 characters wide with the longest usual name.
fn table(forecast: &Forecast, style: Style) -> String {
    let last = forecast.levels.last().map_or("LLC", String::as_str);
    let misses = format!("{last} MPKI");
    let header = ["", "time", "+-", "IPC", &misses, "inval.", "transfers", "links", "DRAM", "remote", "energy"];
    let rows = forecast.placements.iter().enumerate().map(|(at, placement)| {
        let best = at == forecast.best as usize && forecast.placements.len() > 1;
        row(placement, best, style)
    });
    let right: Vec<usize> = (1..header.len()).collect();
    style.table(&header, rows.collect(), &right)
}

fn row(placement: &Predicted, best: bool, style: Style) -> Vec<String> {
    let relative = &placement.relative;
    let amounts = &placement.amounts;
    let mark = if best { "*" } else { " " };
    let remote = match amounts.dram() {
        all if all > 0.0 => format!("{:.0} %", amounts.remote_dram() / all * 100.0),
        _ => "-".to_owned(),
    };
    let last = amounts.levels.last();
    let row = vec![
        format!("{mark}{}", clean(&placement.name)),
        value(relative.time),
        half(relative.time),
        format!("{:.2}", amounts.ipc),
        last.map_or("-".to_owned(), |level| three(level.mpki)),
        value(relative.invalidations),
        value(relative.transfers),
        value(relative.link_bytes),
        value(relative.dram),
        remote,
        value(relative.energy),
    ];
    match best {
        true => row.into_iter().map(|cell| style.bold(&cell)).collect(),
        false => row,
    }
}

/// A ratio to the first; a dash where the first has nothing to compare with.
pub fn value(ratio: Option<Ratio>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.3}", ratio.value))
}

fn half(ratio: Option<Ratio>) -> String {
    let half = ratio.and_then(|ratio| ratio.half_width);
    half.map_or_else(|| "-".to_owned(), |half| format!("{half:.3}"))
}

/// What numbers are, and what to bear in mind.
fn notes(forecast: &Forecast) -> Vec<String> {
    let first = forecast.placements.first().map_or("", |p| p.name.as_str());
    let mut notes = vec![format!(
        "time, inval. (copies that writes took away), transfers (lines from cache to cache), links (bytes), DRAM (lines) and energy are ratios to {first}; +- is half of the 95 % interval of time; remote is the share of DRAM's lines that another node asked for. Pages without a place: {}.",
        forecast.pages
    )];
    for placement in forecast.placements.iter().filter(|p| p.name == "joint") {
        let data = placement.data_policy.as_deref().unwrap_or(Pages::FirstTouch.name());
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
    words.extend(["--data", best.data_policy.as_deref().unwrap_or("first-touch")]);
    shell_line(words.iter())
}
