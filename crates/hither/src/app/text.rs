//! Commands as a shell takes them.
use hither_profile::strip_control_characters;

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
    format!(
        "'{}'",
        strip_control_characters(word).replace('\'', "'\\''")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
