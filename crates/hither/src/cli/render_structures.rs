//! The table of data structures of `hither stat`.
use std::collections::{BTreeSet, HashMap};

use super::style::{bytes, count, percent, ranges, strip_control_characters, TerminalStyle};
use hither_model::metrics::metrics_report::MetricsReport;
use hither_model::metrics::structures::StructureMetrics;
use hither_profile::{ObjectKind, ThreadIx};

/// The structures with most traffic. Those of one declaration are one row, in however many processes.
pub fn table(report: &MetricsReport, top: usize, style: TerminalStyle) -> String {
    let found = merge_stacks(merge_processes(&report.structures));
    let rows: Vec<_> = found.iter().take(top).map(structure_row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = [
        "name",
        if report.run.online {
            "faults"
        } else {
            "accesses"
        },
        "share",
        "fetches",
        "size",
        "first touch",
        "E",
        "right",
    ];
    let mut out = style.table(&header, rows, &[1, 2, 3, 4, 6, 7]);
    let left = found.len().saturating_sub(top);
    if left > 0 {
        out.push_str(&format!("  ... and {left} more (-n {})\n", found.len()));
    }
    out
}

/// One row for what ranks or forked processes each have of a declaration; as before, those with the largest share
/// of accesses or fetches first.
fn merge_processes(all: &[StructureMetrics]) -> Vec<StructureMetrics> {
    let mut rows: Vec<(StructureMetrics, BTreeSet<u32>)> = Vec::new();
    let mut row_of = HashMap::new();
    for s in all {
        let key = (&s.name, &s.type_name, s.kind, &s.file, s.line, &s.function);
        let at = *row_of.entry(key).or_insert(rows.len());
        match rows.get_mut(at) {
            None => rows.push((s.clone(), BTreeSet::from([s.process]))),
            Some((sum, processes)) => {
                add(sum, s);
                processes.insert(s.process);
            }
        }
    }
    for (row, processes) in rows.iter_mut().filter(|(_, of)| of.len() > 1) {
        row.name += &format!(" ({} processes)", processes.len());
    }
    sorted(rows.into_iter().map(|(row, _)| row).collect())
}

fn sorted(mut rows: Vec<StructureMetrics>) -> Vec<StructureMetrics> {
    let larger = |s: &StructureMetrics| s.fetch_share.unwrap_or(0.0).max(s.share);
    rows.sort_by(|a, b| larger(b).total_cmp(&larger(a)));
    rows
}

/// One row for the stacks of many threads, where none stands out: otherwise they would be all that is seen.
fn merge_stacks(rows: Vec<StructureMetrics>) -> Vec<StructureMetrics> {
    let (stacks, mut rows): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .partition(|row| row.kind == ObjectKind::Stack);
    let all = stacks.iter().map(|s| s.share).sum::<f64>();
    if stacks.len() < 2 || stacks.iter().any(|s| s.share > all / 2.0) {
        rows.extend(stacks);
        return sorted(rows);
    }
    let count = stacks.len();
    let sum = stacks.into_iter().reduce(|mut sum, s| {
        add(&mut sum, &s);
        sum
    });
    let name = format!("{count} stacks");
    rows.extend(sum.map(|sum| StructureMetrics { name, ..sum }));
    sorted(rows)
}

fn add(sum: &mut StructureMetrics, s: &StructureMetrics) {
    let (of_a, of_b) = (sum.accesses() as f64, s.accesses() as f64);
    let mean = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => Some((a * of_a + b * of_b) / (of_a + of_b).max(1.0)),
        (a, b) => a.or(b),
    };
    sum.exclusivity = mean(sum.exclusivity, s.exclusivity);
    sum.first_touch_accuracy = mean(sum.first_touch_accuracy, s.first_touch_accuracy);
    // A profile may have been made by anybody.
    sum.reads = sum.reads.saturating_add(s.reads);
    sum.writes = sum.writes.saturating_add(s.writes);
    sum.share += s.share;
    sum.fetch_share = sum.fetch_share.zip(s.fetch_share).map(|(a, b)| a + b);
    sum.size = sum.size.saturating_add(s.size);
    sum.pages += s.pages;
    sum.estimated |= s.estimated;
    for &(thread, pages) in &s.first_touch {
        match sum.first_touch.iter_mut().find(|t| t.0 == thread) {
            Some(known) => known.1 += pages,
            None => sum.first_touch.push((thread, pages)),
        }
    }
    sum.first_touch.sort_by_key(|t| std::cmp::Reverse(t.1));
}

fn structure_row(s: &StructureMetrics) -> Vec<String> {
    let number = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), percent);
    let shared = match s.kind {
        ObjectKind::Shared => " (shared)",
        _ => "",
    };
    vec![
        strip_control_characters(&s.name) + shared,
        format!(
            "{}{}",
            if s.estimated { "~" } else { "" },
            count(s.accesses())
        ),
        percent(s.share),
        number(s.fetch_share),
        match s.size {
            0 => "-".to_owned(),
            size => bytes(size),
        },
        first_touchers(&s.first_touch, s.pages),
        number(s.exclusivity),
        number(s.first_touch_accuracy),
    ]
}

/// `0`, `0 (83 %)`, `0-63`: the thread that placed most, or the threads that share it.
fn first_touchers(touched: &[(ThreadIx, u64)], pages: u64) -> String {
    match touched {
        [] => "-".to_owned(),
        [(thread, _)] => thread.to_string(),
        [(thread, most), ..] if *most * 2 > pages => {
            format!(
                "{thread} ({:.0} %)",
                *most as f64 * 100.0 / pages.max(1) as f64
            )
        }
        many => {
            let mut threads: Vec<u32> = many.iter().map(|t| t.0 .0).collect();
            threads.sort_unstable();
            ranges(&threads)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, process: u32, reads: u64, exclusivity: f64) -> StructureMetrics {
        StructureMetrics {
            name: name.to_owned(),
            process,
            reads,
            share: reads as f64 / 100.0,
            size: 4096,
            pages: 1,
            exclusivity: Some(exclusivity),
            first_touch: vec![(ThreadIx(process), 1)],
            ..StructureMetrics::default()
        }
    }

    #[test]
    fn what_several_processes_have_is_one_row() {
        let all = [
            of("one", 0, 40, 1.0),
            of("each", 1, 30, 0.5),
            of("each", 2, 20, 1.0),
            of("small", 2, 10, 1.0),
        ];
        let rows = merge_processes(&all);
        let found: Vec<_> = rows.iter().map(|r| (&*r.name, r.reads, r.size)).collect();
        let expected = [
            ("each (2 processes)", 50, 8192),
            ("one", 40, 4096),
            ("small", 10, 4096),
        ];
        assert_eq!(found, expected);
        assert_eq!(rows[0].exclusivity, Some(0.7));
        assert_eq!(first_touchers(&rows[0].first_touch, rows[0].pages), "1-2");
    }

    #[test]
    fn stacks_are_one_row_where_none_stands_out() {
        let stack = |thread: u32, reads| StructureMetrics {
            kind: ObjectKind::Stack,
            ..of(&format!("stack of thread {thread}"), 0, reads, 1.0)
        };
        let names = |reads: [u64; 3]| {
            let stacks = reads.iter().zip(0..).map(|(n, thread)| stack(thread, *n));
            let rows = merge_stacks(stacks.chain([of("one", 0, 25, 1.0)]).collect());
            let row = |r: StructureMetrics| (r.name, r.reads);
            rows.into_iter().map(row).collect::<Vec<_>>()
        };
        let row = |name: &str, reads| (name.to_owned(), reads);
        assert_eq!(names([30, 20, 10]), [row("3 stacks", 60), row("one", 25)]);
        let mut sum = stack(0, 1);
        add(&mut sum, &stack(1, 1));
        assert_eq!(sum.first_touch, [(ThreadIx(0), 2)]);
        let apart = [
            row("stack of thread 0", 60),
            row("one", 25),
            row("stack of thread 1", 10),
            row("stack of thread 2", 5),
        ];
        assert_eq!(names([60, 10, 5]), apart);
    }
}
