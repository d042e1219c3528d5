//! How output may look: width, colour, characters; and numbers for people.
use comfy_table::{presets, ContentArrangement, Table};
use std::io::IsTerminal;

/// Width where there is no terminal to ask.
const DEFAULT_WIDTH: usize = 80;

/// What the reader's terminal can show.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub width: usize,
    pub height: usize,
    pub colour: bool,
    pub unicode: bool,
}

impl Style {
    /// Of standard output.
    pub fn of_stdout() -> Self {
        let tty = std::io::stdout().is_terminal();
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let number = |name| std::env::var(name).ok().and_then(|v| v.parse::<usize>().ok());
        let columns = Table::new().width().map(usize::from);
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
        let locale = locale.filter_map(|n| std::env::var(n).ok()).find(|v| !v.is_empty());
        let locale = locale.unwrap_or_default().to_ascii_uppercase();
        Style {
            width: number("COLUMNS").or(columns).unwrap_or(DEFAULT_WIDTH).clamp(40, 200),
            height: number("LINES").unwrap_or(40).clamp(10, 1000),
            colour: tty && !set("NO_COLOR"),
            unicode: locale.contains("UTF-8") || locale.contains("UTF8"),
        }
    }

    /// Bold, where there is colour.
    pub fn bold(self, text: &str) -> String {
        if self.colour {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Text broken at blanks to the width, every line after the first indented.
    pub fn wrap(self, text: &str, indent: usize) -> String {
        let mut out = String::new();
        let mut used = 0;
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > self.width {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                used = indent;
            } else if used > 0 {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += length;
        }
        out.push('\n');
        out
    }

    /// A table without lines that fits the width; numbers to the right in `right` columns.
    pub fn table(self, header: &[&str], rows: Vec<Vec<String>>, right: &[usize]) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.force_no_tty();
        table.set_width(self.width as u16);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        if !header.is_empty() {
            table.set_header(header.to_vec());
        }
        for row in rows {
            table.add_row(row);
        }
        for &column in right {
            if let Some(c) = table.column_mut(column) {
                c.set_cell_alignment(comfy_table::CellAlignment::Right);
            }
        }
        let text = table.to_string();
        let lines = text.lines().map(|l| format!(" {}\n", l.trim_end()));
        lines.collect()
    }
}

/// `1.23 M`: three digits and a unit.
pub fn count(n: u64) -> String {
    scaled(n as f64, 1000.0, &["", " k", " M", " G", " T", " P", " E"])
}

/// `1.23 MiB`.
pub fn bytes(n: u64) -> String {
    scaled(n as f64, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"])
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    if unit == 0 {
        return format!("{value:.0}{}", units[0]);
    }
    format!("{}{}", three(value), units[unit])
}

/// Three digits: 1.23, 12.3, 123.
pub fn three(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.01 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.1e}"),
    }
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Names come from traced programs: control characters would steer the terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
