//! The one way to standard output and standard error. Whatever hither prints may hold names of
//! programs, files, machines and threads that others chose: none of them may steer the terminal.
use std::io::{self, ErrorKind, Write};

use anyhow::{Context, Result};
use hither_profile::{is_hidden_char, strip_control_characters};

/// Prints text for people, or JSON, in which hidden characters are written as JSON can. A closed
/// pipe is not an error: the reader has seen enough.
///
/// # Errors
/// When it cannot be written.
pub fn print(text: &str) -> Result<()> {
    let shown = match text.starts_with(['{', '[']) {
        true => json_text(text),
        false => visible_text(text),
    };
    print_as_is(&shown)
}

/// Prints what is no text for a terminal, such as a page.
///
/// # Errors
/// When it cannot be written.
pub fn print_as_is(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// One line on stderr, which may be closed.
pub fn print_stderr(line: &str) {
    let _ = writeln!(io::stderr(), "hither: {}", strip_control_characters(line));
}

/// What is wrong with the command line.
pub fn print_usage(usage: &clap::Error) {
    // A closed pipe is not an error.
    if !usage.use_stderr() {
        let _ = usage.print();
        return;
    }
    let style = super::style::TerminalStyle::of_stderr();
    let text = usage.render();
    let text = match style.colour {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    let _ = io::stderr().write_all(visible_text(&text).as_bytes());
}

/// What went wrong, then why; what a message repeats of its cause is said once.
pub fn error_sentence(error: &anyhow::Error) -> String {
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.ends_with(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}

/// Lines and their columns are ours: in names from others neither is left.
fn may_steer(c: char) -> bool {
    is_hidden_char(c) && c != '\n' && c != '\t'
}

/// Lines without what steers terminals, but for colours and the like.
fn visible_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(may_steer) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let style = style_length(from);
        match style {
            0 => shown.push('?'),
            length => shown.push_str(&from[..length]),
        }
        let hidden = from.chars().next().map_or(1, char::len_utf8);
        rest = &from[style.max(hidden)..];
    }
    shown.push_str(rest);
    shown
}

/// Bytes of the sequence that chooses colour or weight with which `text` begins; 0 if it does not.
fn style_length(text: &str) -> usize {
    let Some(numbers) = text.strip_prefix("\u{1b}[") else {
        return 0;
    };
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';');
    match end {
        Some(end) if numbers[end..].starts_with('m') => 2 + end + 1,
        _ => 0,
    }
}

/// The same JSON with hidden characters, which are all within texts, as `\u202e`.
fn json_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match may_steer(c) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_of_ours_reach_the_terminal() {
        let check = |text: &str, expected: &str| assert_eq!(visible_text(text), expected);
        check(
            "\u{1b}[1mbold\u{1b}[0m\nplain",
            "\u{1b}[1mbold\u{1b}[0m\nplain",
        );
        check("\u{1b}[2J\u{1b}[1;31", "?[2J?[1;31");
        check("\u{9b}1A\u{202e}x\r\n", "?1A?x?\n");
        check("größer\tals", "größer\tals");
    }

    #[test]
    fn json_stays_the_same_data() {
        let text = "{\"a\u{202e}\": \"b\u{9b}\u{feff}\"}";
        let shown = json_text(text);
        assert!(!shown.contains(is_hidden_char), "{shown}");
        let read = |text| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(read(&shown), read(text));
    }

    #[test]
    fn causes_are_said_once() {
        let io = io::Error::other("no room");
        let error = anyhow::Error::new(io).context("cannot write x: no room");
        assert_eq!(error_sentence(&error), "cannot write x: no room");
        let error = error.context("nothing kept");
        assert_eq!(
            error_sentence(&error),
            "nothing kept: cannot write x: no room"
        );
    }
}
