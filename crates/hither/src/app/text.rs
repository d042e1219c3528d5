//! Commands as a shell takes them.
use hither_profile::shell_quote;

/// A command as a shell takes it.
pub fn shell_line<T: AsRef<str>>(words: impl Iterator<Item = T>) -> String {
    let quoted = words.map(|word| shell_quote(word.as_ref()));
    quoted.collect::<Vec<_>>().join(" ")
}
