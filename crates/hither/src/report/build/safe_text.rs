//! Texts of the traced program are not ours: symbols can be as long as they like and hold
//! any character. On the page they must neither move others nor pretend to be them.

use crate::report::page::DeclarationSite;
use hither_profile::is_hidden_char;

/// Characters of a name that are kept.
const LONGEST: usize = 240;
/// Of a sentence, which holds several.
const LONGEST_SENTENCE: usize = 1200;
const ELLIPSIS: char = '\u{2026}';

/// The text without control characters and those that change the direction of writing,
/// its middle left out where it is long.
#[must_use]
pub fn plain_text(text: &str) -> String {
    at_most(LONGEST, text)
}

/// The same for a sentence of ours with such names in it.
#[must_use]
pub fn plain_sentence(text: &str) -> String {
    at_most(LONGEST_SENTENCE, text)
}

fn at_most(longest: usize, text: &str) -> String {
    let length = text.chars().count();
    if length <= longest {
        return text.chars().map(visible_char).collect();
    }
    let half = longest / 2;
    let start = text.chars().take(half).map(visible_char);
    let end = text.chars().skip(length - half).map(visible_char);
    start.chain([ELLIPSIS]).chain(end).collect()
}

/// A place in the source.
#[must_use]
pub fn plain_site(file: &str, line: u32, function: &str) -> DeclarationSite {
    DeclarationSite {
        file: plain_text(file),
        line,
        function: plain_text(function),
    }
}

/// The same for what is copied: nothing is left out, lines stay.
#[must_use]
pub fn copyable_text(text: &str) -> String {
    let keep = |c: char| if c == '\n' { c } else { visible_char(c) };
    text.chars().map(keep).collect()
}

fn visible_char(c: char) -> char {
    if is_hidden_char(c) {
        '\u{fffd}'
    } else {
        c
    }
}
