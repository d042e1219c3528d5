//! How output may look: width, colour, characters; and numbers for people.
use comfy_table::{presets, ContentArrangement, Table};
pub use hither_profile::clean;
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
        Style::of(std::io::stdout().is_terminal())
    }

    /// Of standard error.
    pub fn of_stderr() -> Self {
        Style::of(std::io::stderr().is_terminal())
    }

    fn of(tty: bool) -> Self {
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
        Style {
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
        let mut out = first.to_owned();
        let mut used = first.chars().count();
        let mut empty = true;
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if !empty && used + 1 + length > self.width {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                used = indent;
            } else if !empty {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += length;
            empty = false;
        }
        out.push('\n');
        out
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

/// `1.23 M`: three digits and a unit.
pub fn count(n: u64) -> String {
    scaled(n as f64, 1000.0, &["", " k", " M", " G", " T", " P", " E"])
}

/// `1.23 MiB`.
pub fn bytes(n: u64) -> String {
    scaled(
        n as f64,
        1024.0,
        &[" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"],
    )
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // What would be written as 1000 of a unit is 1 of the next.
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    if unit == 0 {
        return format!("{value:.0}{}", units[0]);
    }
    format!("{}{}", three(value), units[unit])
}

/// Three digits: 1.23, 12.3, 123; a unit from 100 000 on, a power of ten below 0.001.
pub fn three(value: f64) -> String {
    match value.abs() {
        v if v >= 99_999.5 => count(value as u64),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.0995 || v == 0.0 => format!("{value:.2}"),
        v if v >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A command as a shell takes it.
pub fn shell_line<T: AsRef<str>>(words: impl Iterator<Item = T>) -> String {
    let quoted = words.map(|word| quoted(word.as_ref()));
    quoted.collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", clean(word).replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let check = |value: f64, want: &str| assert_eq!(three(value), want);
        check(0.0, "0.00");
        check(1.234, "1.23");
        check(99.96, "100");
        check(1875.2, "1875");
        check(15_075_000_000.0, "15.1 G");
        check(0.0525, "0.0525");
        check(0.000_012, "1.2e-5");
        let check = |value: u64, want: &str| assert_eq!(count(value), want);
        check(999, "999");
        check(1000, "1.00 k");
        check(999_960, "1.00 M");
        check(u64::MAX, "18.4 E");
        assert_eq!(bytes(1 << 20), "1.00 MiB");
        assert_eq!(bytes(17), "17 B");
    }

    #[test]
    fn text_is_broken_at_blanks() {
        let style = Style {
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
    fn words_are_quoted_for_the_shell() {
        let check = |word: &str, expected: &str| assert_eq!(quoted(word), expected);
        check("./app", "./app");
        check("--n=3", "--n=3");
        check("a b", "'a b'");
        check("it's", "'it'\\''s'");
        check("", "''");
    }
}
