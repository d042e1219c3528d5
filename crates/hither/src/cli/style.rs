//! How output may look: width, colour, characters.
pub use hither_model::units::{bytes, count, percent, three_digits};

use comfy_table::{presets, ContentArrangement, Table};
use hither_profile::FigureUnit;
pub use hither_profile::{shell_line, strip_control_characters};
use std::collections::BTreeSet;
use std::io::IsTerminal;
use textwrap::core::display_width;
use textwrap::WordSplitter;

/// Width where there is no terminal to ask.
const DEFAULT_WIDTH: usize = 80;
/// Blanks around a cell.
const PADDING: usize = 2;

/// What the reader's terminal can show.
#[derive(Clone, Copy, Debug)]
pub struct TerminalStyle {
    pub width: usize,
    pub height: usize,
    pub colour: bool,
    pub unicode: bool,
}

impl TerminalStyle {
    /// Of standard output.
    pub fn of_stdout() -> Self {
        TerminalStyle::detect(std::io::stdout().is_terminal())
    }

    /// Of standard error.
    pub fn of_stderr() -> Self {
        TerminalStyle::detect(std::io::stderr().is_terminal())
    }

    fn detect(tty: bool) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let number = |name| {
            std::env::var(name)
                .ok()
                .and_then(|v| v.parse::<usize>().ok())
        };
        let columns = Table::new().width().map(usize::from);
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
        let locale = locale
            .filter_map(|n| std::env::var(n).ok())
            .find(|v| !v.is_empty());
        let locale = locale.unwrap_or_default().to_ascii_uppercase();
        TerminalStyle {
            width: number("COLUMNS")
                .or(columns)
                .unwrap_or(DEFAULT_WIDTH)
                .clamp(40, 200),
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

    /// Text broken at blanks to the width: the first line after `first`, the others
    /// indented by `indent`.
    pub fn wrap(self, first: &str, text: &str, indent: usize) -> String {
        let blank = " ".repeat(indent);
        let options = textwrap::Options::new(self.width)
            .initial_indent(first)
            .subsequent_indent(&blank)
            .break_words(false)
            .word_splitter(WordSplitter::NoHyphenation);
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            [] => format!("{first}\n"),
            _ => textwrap::fill(&words.join(" "), options) + "\n",
        }
    }

    /// A table without lines that fits the width; numbers to the right in `right` columns. A name, in the
    /// first column, that has no room beside its figures stands on a line of its own above them.
    pub fn table(self, header: &[&str], mut rows: Vec<Vec<String>>, right: &[usize]) -> String {
        let long = self.long_names(header, &rows, right);
        let mut above = vec![None; usize::from(!header.is_empty())];
        for row in &mut rows {
            let name = row.first_mut().filter(|name| long.contains(name.as_str()));
            above.push(name.map(std::mem::take));
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
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
        let mut above = above.into_iter();
        let lines = text.lines().map(|figures| {
            let name = above.next().flatten();
            let name = name.map_or(String::new(), |name| self.wrap("  ", &name, 4));
            format!("{name} {}\n", figures.trim_end())
        });
        lines.collect()
    }

    /// The names that have no room, where everything beside them fits: each row is one line then.
    fn long_names(
        self,
        header: &[&str],
        rows: &[Vec<String>],
        right: &[usize],
    ) -> BTreeSet<String> {
        let width_of = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let cells = cells.map(String::as_str).chain(header.get(column).copied());
            cells.map(display_width).max().unwrap_or(0)
        };
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        // Text in the last column is broken at blanks.
        let needed = |column| match right.contains(&column) || column + 1 < columns {
            true => width_of(column),
            false => width_of(column).min(self.width / 2),
        };
        let beside: usize = (1..columns).map(|c| needed(c) + PADDING).sum();
        let room = self.width.saturating_sub(1 + beside + PADDING);
        if right.contains(&0) || room < header.first().map_or(1, |h| h.len().max(1)) {
            return BTreeSet::new();
        }
        let names = rows.iter().filter_map(|row| row.first());
        let long = names.filter(|name| display_width(name) > room);
        long.cloned().collect()
    }
}

/// A value as its unit is written.
pub fn written(value: Option<f64>, unit: FigureUnit) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    match unit {
        FigureUnit::Share => percent(value),
        FigureUnit::Percent => format!("{} %", three_digits(value)),
        FigureUnit::Bytes => bytes(value as u64),
        FigureUnit::Count => count(value as u64),
        FigureUnit::Seconds | FigureUnit::Number => three_digits(value),
    }
}

/// Numbers in order as `0-3,7`, cut after three runs.
pub fn ranges(sorted: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &t in sorted {
        match runs.last_mut() {
            Some(run) if run.1 + 1 == t => run.1 = t,
            _ => runs.push((t, t)),
        }
    }
    let text = |&(a, b): &(u32, u32)| {
        if a == b {
            a.to_string()
        } else {
            format!("{a}-{b}")
        }
    };
    let shown: Vec<String> = runs.iter().take(3).map(text).collect();
    let more = if runs.len() > 3 { ",..." } else { "" };
    format!("{}{more}", shown.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_blanks() {
        let style = TerminalStyle {
            width: 10,
            height: 1,
            colour: false,
            unicode: false,
        };
        let check = |text: &str, want: &str| assert_eq!(style.wrap("- ", text, 2), want);
        check("one two three", "- one two\n  three\n");
        check("", "- \n");
        check("far-too-long-a-word it", "- far-too-long-a-word\n  it\n");
    }

    #[test]
    fn names_without_room_stand_above_their_figures() {
        let style = TerminalStyle {
            width: 24,
            height: 1,
            colour: false,
            unicode: false,
        };
        let row = |name: &str, n: &str| vec![name.to_owned(), n.to_owned(), n.to_owned()];
        let rows = vec![row("grid", "12"), row("boundary_cells+0x4b0", "7")];
        let want = "  name  reads  writes\n  grid     12      12\n  boundary_cells+0x4b0\n            7       7\n";
        assert_eq!(
            style.table(&["name", "reads", "writes"], rows, &[1, 2]),
            want
        );
        // Text in the last column is broken before a name loses its place.
        let style = TerminalStyle { width: 38, ..style };
        let row = |name: &str| [name, "12", "words that break at blanks"].map(str::to_owned);
        let rows = vec![row("grid").to_vec(), row("boundary").to_vec()];
        let lines = style.table(&[], rows, &[1]);
        let firsts: Vec<_> = lines.lines().map(|l| l.get(..14).unwrap_or("")).collect();
        assert_eq!(
            firsts,
            [
                "  grid      12",
                "              ",
                "  boundary  12",
                "              "
            ]
        );
    }
}
