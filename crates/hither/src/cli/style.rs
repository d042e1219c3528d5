//! How output may look: width, colour, characters.
pub use hither_model::units::{bytes, count, percent, three_digits};

use comfy_table::{presets, ContentArrangement, Table};
use hither_profile::FigureUnit;
pub use hither_profile::{shell_line, strip_control_characters};
use std::io::IsTerminal;
use textwrap::WordSplitter;

/// Width where there is no terminal to ask.
const DEFAULT_WIDTH: usize = 80;

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

    /// A table without lines that fits the width; numbers to the right in `right` columns.
    pub fn table(self, header: &[&str], rows: Vec<Vec<String>>, right: &[usize]) -> String {
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
        let lines = text.lines().map(|l| format!(" {}\n", l.trim_end()));
        lines.collect()
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
}
