//! Lines of source that the profile keeps, as they are quoted: some around the one that is meant,
//! without the indentation that they have in common.
use super::safe_text::plain_text;
use crate::report::page::{QuotedLine, SourceQuote};
use hither_profile::Profile;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Lines before and after the one that is meant.
const AROUND: u32 = 2;

/// What the profile keeps, by file, as it is shown, and line.
pub struct SourceQuotes<'a> {
    lines: HashMap<String, BTreeMap<u32, &'a str>>,
}

impl<'a> SourceQuotes<'a> {
    #[must_use]
    pub fn of_profile(profile: &'a Profile) -> Self {
        let mut lines: HashMap<String, BTreeMap<u32, &str>> = HashMap::new();
        for row in &profile.source_text {
            let file = lines.entry(plain_text(&row.file)).or_default();
            file.insert(row.line, &row.text);
        }
        SourceQuotes { lines }
    }

    /// `None` where the line is not kept, or empty.
    #[must_use]
    pub fn around(&self, file: &str, line: u32) -> Option<SourceQuote> {
        let file = plain_text(file);
        let kept = self.lines.get(&file)?;
        let text = |at: u32| kept.get(&at).copied();
        text(line).filter(|t| !t.trim().is_empty())?;
        // Lines without a gap to the one that is meant.
        let before =
            (1..=AROUND).map_while(|n| line.checked_sub(n).filter(|&at| text(at).is_some()));
        let after =
            (1..=AROUND).map_while(|n| line.checked_add(n).filter(|&at| text(at).is_some()));
        let first = before.last().unwrap_or(line);
        let last = after.last().unwrap_or(line);
        let kept: Vec<(u32, &str)> = (first..=last)
            .map(|at| (at, text(at).unwrap_or_default()))
            .collect();
        let common = common_indent(kept.iter().map(|(_, text)| *text));
        let lines = kept.into_iter().map(|(line, text)| QuotedLine {
            line,
            text: plain_text(text.get(common..).unwrap_or_default()),
        });
        Some(SourceQuote {
            file,
            line,
            lines: lines.collect(),
        })
    }

    /// Around each place that the profile names, once.
    #[must_use]
    pub fn of_all_places(&self, profile: &Profile) -> Vec<SourceQuote> {
        let mut places: BTreeSet<(&str, u32)> = BTreeSet::new();
        places.extend(profile.objects.iter().map(|o| (&*o.file, o.line)));
        places.extend(profile.sites.iter().map(|s| (&*s.file, s.line)));
        let touched = profile.first_touch_lines.iter();
        places.extend(touched.map(|l| (&*l.file, l.line)));
        let quotes = places.into_iter();
        quotes
            .filter_map(|(file, line)| self.around(file, line))
            .collect()
    }
}

/// Bytes of blanks that all lines begin with, but for those that are blank.
fn common_indent<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let written = lines.filter(|line| !line.trim().is_empty());
    written.map(indent).min().unwrap_or(0)
}
