//! The table of source lines of `hither stat`.
use std::collections::{HashMap, HashSet};

use super::style::{count, percent, strip_control_characters, TerminalStyle};
use hither_model::metrics::metrics_report::MetricsReport;
use hither_model::metrics::structures::HotLine;
use hither_profile::{file_name, ObjectKind};

/// The lines with most accesses.
pub fn table(report: &MetricsReport, top: usize, style: TerminalStyle) -> String {
    let stacks = report.structures.iter();
    let stacks = stacks.filter(|s| s.kind == ObjectKind::Stack);
    let found = merge(&report.lines, &stacks.map(|s| s.name.as_str()).collect());
    let row = |l: &HotLine| {
        vec![
            percent(l.share),
            count(l.reads),
            count(l.writes),
            structure(l),
            strip_control_characters(&place(l)),
        ]
    };
    let rows: Vec<_> = found.iter().take(top).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = ["share", "reads", "writes", "structure", "line"];
    style.table(&header, rows, &[0, 1, 2])
}

/// One row for what a line does to a structure in several processes, and to the stacks of several threads.
fn merge(all: &[HotLine], stacks: &HashSet<&str>) -> Vec<HotLine> {
    let mut rows: Vec<HotLine> = Vec::new();
    let mut row_of = HashMap::new();
    for line in all {
        let stack = stacks.contains(line.structure.as_str());
        let structure = (!stack).then_some(&line.structure);
        let key = (structure, &line.file, line.line, &line.function);
        let at = *row_of.entry(key).or_insert(rows.len());
        let Some(sum) = rows.get_mut(at) else {
            rows.push(line.clone());
            continue;
        };
        if sum.structure != line.structure {
            sum.structure = "stacks".to_owned();
        }
        // A profile may have been made by anybody.
        sum.reads = sum.reads.saturating_add(line.reads);
        sum.writes = sum.writes.saturating_add(line.writes);
        sum.fetches = sum.fetches.saturating_add(line.fetches);
        sum.share += line.share;
    }
    rows.sort_by(|a, b| b.share.total_cmp(&a.share));
    rows
}

fn structure(line: &HotLine) -> String {
    match line.structure.as_str() {
        "" => "-".to_owned(),
        name => strip_control_characters(name).to_string(),
    }
}

/// `file:line (function)`, as far as it is known; of code without symbols at least the program or library: `(file)`.
fn place(line: &HotLine) -> String {
    match (line.line, line.function.is_empty()) {
        (0, true) if line.file.is_empty() => String::new(),
        (0, true) => format!("({})", file_name(&line.file)),
        (0, false) => line.function.clone(),
        (number, true) => format!("{}:{number}", line.file),
        (number, false) => format!("{}:{number} ({})", line.file, line.function),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GHC's code has lines and symbols for some of it only.
    #[test]
    fn places_are_told_as_far_as_known() {
        let of = |file: &str, line: u32, function: &str| {
            place(&HotLine {
                file: file.to_owned(),
                line,
                function: function.to_owned(),
                ..HotLine::default()
            })
        };
        assert_eq!(of("a.hs", 5, "f"), "a.hs:5 (f)");
        assert_eq!(of("a.hs", 5, ""), "a.hs:5");
        assert_eq!(of("/lib/a", 0, "f"), "f");
        assert_eq!(of("/lib/a", 0, ""), "(a)");
        assert_eq!(of("", 0, ""), "");
    }

    #[test]
    fn stacks_and_processes_are_one_row() {
        let of = |structure: &str, line: u32, reads: u64| HotLine {
            structure: structure.to_owned(),
            file: "a.c".to_owned(),
            line,
            function: "f".to_owned(),
            reads,
            share: reads as f64 / 100.0,
            ..HotLine::default()
        };
        let all = [
            of("one", 5, 30),
            of("stack of thread 1", 7, 20),
            of("stack of thread 2", 7, 15),
            of("stack of thread 1", 8, 10),
            of("one", 5, 9),
            of("one", 7, 1),
        ];
        let stacks = ["stack of thread 1", "stack of thread 2"];
        let rows = merge(&all, &HashSet::from(stacks));
        let found: Vec<_> = rows
            .iter()
            .map(|r| (&*r.structure, r.line, r.reads))
            .collect();
        let expected = [
            ("one", 5, 39),
            ("stacks", 7, 35),
            ("stack of thread 1", 8, 10),
            ("one", 7, 1),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_known_of_a_place_is_shown() {
        let at = |file: &str, number: u32, function: &str| {
            let (file, function) = (file.to_owned(), function.to_owned());
            place(&HotLine {
                file,
                line: number,
                function,
                ..HotLine::default()
            })
        };
        assert_eq!(at("src/a.c", 7, "f"), "src/a.c:7 (f)");
        assert_eq!(at("", 0, "f"), "f");
        assert_eq!(at("/bin/postgres", 0, ""), "(postgres)");
        assert_eq!(at("", 0, ""), "");
        assert_eq!(structure(&HotLine::default()), "-");
    }
}
