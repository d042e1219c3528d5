//! Text of a profile or of a traced program on a terminal.

/// Whether a character steers a terminal or cannot be seen: control characters, line and
/// paragraph separators, those that change the direction of writing (U+202E makes `gpj.exe`
/// of `exe.jpg`), and those without width.
#[must_use]
pub fn is_hidden_char(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The text on one line, with a question mark for each character that [`is_hidden_char`] names.
/// Everything
/// printed that is from a profile or from a program goes through this.
#[must_use]
pub fn strip_control_characters(text: &str) -> String {
    let shown = |c| if is_hidden_char(c) { '?' } else { c };
    text.chars().map(shown).collect()
}

/// The last part of a path.
#[must_use]
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A word as a POSIX shell takes it, in single quotes where it needs them, on one line.
#[must_use]
pub fn shell_quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let quoted = strip_control_characters(word).replace('\'', "'\\''");
    format!("'{quoted}'")
}

/// A command as a POSIX shell takes it.
pub fn shell_line<T: AsRef<str>>(words: impl Iterator<Item = T>) -> String {
    let quoted = words.map(|word| shell_quote(word.as_ref()));
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{shell_quote, strip_control_characters};

    #[test]
    fn words_are_quoted_for_the_shell() {
        let check = |word: &str, expected: &str| assert_eq!(shell_quote(word), expected);
        check("./app", "./app");
        check("--n=3", "--n=3");
        check("a b", "'a b'");
        check("it's", "'it'\\''s'");
        check("", "''");
    }

    #[test]
    fn what_steers_terminals_is_replaced() {
        let check =
            |text: &str, expected: &str| assert_eq!(strip_control_characters(text), expected);
        check("plain, größer, 日本", "plain, größer, 日本");
        check("\u{1b}[31mred\u{7}", "?[31mred?");
        check(
            "two\nlines\r\tand\u{85}more\u{2028}",
            "two?lines??and?more?",
        );
        check(
            "user\u{202e}gnp.exe\u{2066}\u{200f}\u{61c}",
            "user?gnp.exe???",
        );
        check("\u{9b}2J\u{7f}\u{feff}", "?2J??");
    }
}
