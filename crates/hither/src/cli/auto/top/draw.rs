//! The picture: a pure function of the state.
//!
//! ```text
//! what runs, since when, by what means
//! faults per second, natural and caused      where they go: remote share, moves, budget
//! threads: where they run                    who shares with whom
//! what it costs, by source (kMAF figure 12)  the program's last lines
//! ```
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style as Look};
use ratatui::symbols::bar;
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Sparkline, Table};
use ratatui::Frame;

use super::TopState;
use crate::auto::event_log::ThreadSnapshot;
use crate::cli::style::{count, strip_control_characters, TerminalStyle};

/// Intervals of 100 ms in a second.
const SECOND: usize = 10;
/// Intervals over which the remote share is taken.
const WINDOW: usize = 50;

pub fn draw(frame: &mut Frame, state: &TopState, style: TerminalStyle) {
    let area = frame.area();
    let written = match &state.written {
        Some(lines) if area.height >= 24 => (lines.len() as u16).clamp(1, 5) + 1,
        _ => 0,
    };
    let [head, faults, middle, costs, tail] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(4),
        Constraint::Min(4),
        Constraint::Length(6),
        Constraint::Length(written),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(title(state, area.width)), head);
    rates(frame, faults, state, style);
    let matrix = (2 * middle.height).clamp(36, 64).min(middle.width / 2);
    let [left, right] =
        Layout::horizontal([Constraint::Min(36), Constraint::Length(matrix)]).areas(middle);
    threads(frame, left, state, style);
    pairs(frame, right, state, style);
    overhead(frame, costs, state, style);
    if let (Some(lines), true) = (&state.written, written > 0) {
        let from = lines.len().saturating_sub(usize::from(written) - 1);
        let text: Vec<Text> = lines[from..]
            .iter()
            .map(|line| Text::raw(line.clone()))
            .collect();
        let block = block(
            "what the program writes, all of it is shown at the end",
            style,
        );
        frame.render_widget(Paragraph::new(text).block(block), tail);
    }
}

fn block(title: &str, style: TerminalStyle) -> Block<'_> {
    let lines = match style.unicode {
        true => ratatui::symbols::border::PLAIN,
        false => ratatui::symbols::border::Set {
            horizontal_top: "-",
            ..ratatui::symbols::border::PLAIN
        },
    };
    Block::new()
        .borders(Borders::TOP)
        .border_set(lines)
        .title(format!(" {title} "))
}

fn paint(style: TerminalStyle, colour: Color) -> Look {
    match style.colour {
        true => Look::new().fg(colour),
        false => Look::new(),
    }
}

fn title(state: &TopState, width: u16) -> Vec<Text<'static>> {
    let line = &state.line;
    let first = format!("hither auto: {}", strip_control_characters(&state.command));
    let first: String = first.chars().take(usize::from(width)).collect();
    let second = format!(
        "{:.1} s, {}, {} threads; Ctrl-C goes to the program",
        line.at as f64 / 1000.0,
        state.mechanism,
        line.threads.len()
    );
    vec![
        Text::styled(first, Look::new().add_modifier(Modifier::BOLD)),
        Text::raw(second),
    ]
}

/// Faults per second over the last second, and how they came over time.
fn rates(frame: &mut Frame, area: Rect, state: &TopState, style: TerminalStyle) {
    let [left, right] =
        Layout::horizontal([Constraint::Length(36), Constraint::Min(10)]).areas(area);
    let recent: Vec<_> = state.faults.iter().rev().take(SECOND).collect();
    let seconds = (recent.len() as f64 / SECOND as f64).max(0.1);
    let per_second = |n: u64| count((n as f64 / seconds).round() as u64);
    let natural = recent.iter().map(|f| f.0).sum();
    let caused = recent.iter().map(|f| f.1).sum();
    let text = vec![
        Text::raw(format!("natural  {:>9}", per_second(natural))),
        Text::raw(format!("caused   {:>9}", per_second(caused))),
        Text::raw(format!("lost     {:>9} in all", count(state.lost))),
    ];
    let title = "page faults per second";
    frame.render_widget(Paragraph::new(text).block(block(title, style)), left);
    let columns = usize::from(right.width);
    let from = state.faults.len().saturating_sub(columns);
    let bars: Vec<u64> = state.faults.iter().skip(from).map(|f| f.0 + f.1).collect();
    let most = bars.iter().copied().max().unwrap_or(0);
    let title = format!("over time, at most {} per 100 ms", count(most));
    let set = match style.unicode {
        true => bar::NINE_LEVELS,
        false => bar::Set {
            full: "#",
            seven_eighths: "#",
            three_quarters: "*",
            five_eighths: "*",
            half: "+",
            three_eighths: "+",
            one_quarter: ".",
            one_eighth: ".",
            empty: " ",
        },
    };
    let line = Sparkline::default()
        .block(block(&title, style))
        .bar_set(set)
        .style(paint(style, Color::Cyan))
        .data(&bars);
    frame.render_widget(line, right);
}

/// The threads, those with a place first, as many as there is room for.
fn threads(frame: &mut Frame, area: Rect, state: &TopState, style: TerminalStyle) {
    let all = &state.line.threads;
    let room = usize::from(area.height.saturating_sub(2));
    let mut shown: Vec<&ThreadSnapshot> = all.iter().collect();
    shown.sort_by_key(|t| (t.assigned_cpu.is_none(), t.pid, t.tid));
    let left = shown.len().saturating_sub(room);
    let title = match left {
        0 => "threads".to_owned(),
        left => format!("threads ({left} more)"),
    };
    let number = |n: Option<u32>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let rows = shown.into_iter().take(room).map(|t| {
        let pinned = match (t.assigned_cpu, t.chose_itself) {
            (_, true) => "by itself".to_owned(),
            (cpu, _) => number(cpu.map(|s| s.0)),
        };
        Row::new([
            Cell::from(Text::raw(t.tid.to_string()).alignment(Alignment::Right)),
            Cell::from(strip_control_characters(&t.name)),
            Cell::from(number(t.cpu.map(|c| c.0))),
            Cell::from(number(t.node.map(|n| n.0))),
            Cell::from(pinned).style(paint(style, Color::Green)),
        ])
    });
    let widths = [
        Constraint::Length(7),
        Constraint::Min(8),
        Constraint::Length(4),
        Constraint::Length(4),
        Constraint::Length(9),
    ];
    let header = Row::new(["    tid", "name", "cpu", "node", "pinned to"]);
    let table = Table::new(rows, widths)
        .header(header.style(Look::new().add_modifier(Modifier::BOLD)))
        .block(block(&title, style));
    frame.render_widget(table, area);
}

/// Shades from nothing to most.
fn shade(share: f64, style: TerminalStyle) -> Span<'static> {
    let step = match share {
        s if s <= 0.0 => 0,
        s => (1 + (s.sqrt() * 3.999) as usize).min(4),
    };
    let shades = match style.unicode {
        true => [
            "  ",
            "\u{2591}\u{2591}",
            "\u{2592}\u{2592}",
            "\u{2593}\u{2593}",
            "\u{2588}\u{2588}",
        ],
        false => ["  ", "..", "::", "**", "##"],
    };
    let colours = [17, 25, 37, 178, 196].map(Color::Indexed);
    match style.colour {
        true => Span::styled(shades[step], Look::new().fg(colours[step])),
        false => Span::raw(shades[step]),
    }
}

/// The matrix of threads in order of their ids; where there are more than there is room
/// for, each cell is the largest of a block of them.
fn pairs(frame: &mut Frame, area: Rect, state: &TopState, style: TerminalStyle) {
    let line = &state.line;
    let mut tids: Vec<i32> = line.pairs.iter().flat_map(|p| [p.0, p.1]).collect();
    tids.sort_unstable();
    tids.dedup();
    let room = usize::from(area.height.saturating_sub(1)).min(usize::from(area.width / 2));
    let block_of = tids.len().div_ceil(room.max(1)).max(1);
    let title = match block_of {
        1 => "who shares".to_owned(),
        n => format!("who shares ({n} threads a cell)"),
    };
    let side = tids.len().div_ceil(block_of);
    let mut cells = vec![0.0f64; side * side];
    for &(a, b, events) in &line.pairs {
        let at = |tid| tids.partition_point(|t| *t < tid) / block_of;
        for cell in [at(a) * side + at(b), at(b) * side + at(a)] {
            cells[cell] = cells[cell].max(events);
        }
    }
    let most = cells.iter().copied().fold(0.0, f64::max);
    let rows = cells.chunks(side.max(1)).map(|row| {
        let spans = row.iter().map(|v| shade(v / f64::max(most, 1e-9), style));
        Text::from(spans.collect::<Vec<_>>())
    });
    let mut text: Vec<Text> = rows.collect();
    if text.is_empty() {
        text.push(Text::raw("nobody was seen to share yet"));
    }
    frame.render_widget(Paragraph::new(text).block(block(&title, style)), area);
}

/// What it costs, by source, and what came of it.
fn overhead(frame: &mut Frame, area: Rect, state: &TopState, style: TerminalStyle) {
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(55), Constraint::Min(30)]).areas(area);
    let (line, cost) = (&state.line, &state.line.cost);
    let target = cost.target.max(1) as f64;
    let sources = [
        ("injecting", cost.injecting),
        ("resolving", cost.faulting),
        ("table", cost.detecting),
        ("mapping", cost.mapping),
        ("migrating", cost.migrating),
    ];
    let most = sources.iter().map(|s| s.1).max().unwrap_or(0).max(1) as f64;
    let width = usize::from(left.width.saturating_sub(24)).min(40);
    let full = if style.unicode { "\u{2588}" } else { "#" };
    let rows = sources.map(|(name, nanos)| {
        let bar = (nanos as f64 / most * width as f64).round() as usize;
        Text::from(vec![
            Span::raw(format!(
                "{name:<10}{:>7.3} %  ",
                100.0 * nanos as f64 / target
            )),
            Span::styled(full.repeat(bar), paint(style, Color::Yellow)),
        ])
    });
    let title = "overhead, of the program's processor time";
    let sources = Paragraph::new(rows.to_vec()).block(block(title, style));
    frame.render_widget(sources, left);
    let used = 100.0 * (cost.cpu + cost.faulting) as f64 / target;
    let recent = state.remote.iter().rev().take(WINDOW);
    let (known, remote) = recent.fold((0, 0), |sum, r| (sum.0 + r.0, sum.1 + r.1));
    let remote = match known {
        0 => "-".to_owned(),
        _ => format!("{:.0} %", 100.0 * remote as f64 / known as f64),
    };
    let text = vec![
        Text::raw(format!("budget used      {used:.2} % of {} %", line.budget)),
        Text::raw(format!(
            "threads moved    {}",
            count(line.all_threads_moved)
        )),
        Text::raw(format!("pages moved      {}", count(line.all_pages_moved))),
        Text::raw(format!("remote, about    {remote} (last 5 s)")),
    ];
    frame.render_widget(Paragraph::new(text).block(block("so far", style)), right);
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
