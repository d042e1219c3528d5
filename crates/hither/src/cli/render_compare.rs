//! `hither stat BEFORE AFTER`: metric by metric and structure by structure.
use super::render_report::header;
use super::style::{bytes, clean, count, percent, three, Style};
use crate::metrics::report::{PageReport, Report};
use crate::metrics::structures::Structure;
use std::collections::BTreeMap;

/// How a value is written.
type Format = fn(f64) -> String;

pub fn render(before: &Report, after: &Report, top: usize, style: Style) -> String {
    let mut out = format!(
        "A: {}B: {}",
        header(&before.run, style),
        header(&after.run, style)
    );
    out.push_str(&format!(
        "\nVerdict A: {}.\nVerdict B: {}.\n\n",
        before.verdict.sentence, after.verdict.sentence
    ));
    let rows = metrics(before).into_iter().zip(metrics(after));
    let rows = rows.map(|((name, format, a), (_, _, b))| {
        vec![
            name.to_owned(),
            written(a, format),
            written(b, format),
            change(a, b),
        ]
    });
    out.push_str(&style.table(&["metric", "A", "B", "change"], rows.collect(), &[1, 2, 3]));
    let rows = structures(before, after, top);
    if !rows.is_empty() {
        let header = [
            "structure",
            "accesses A",
            "B",
            "change",
            "E A",
            "B",
            "right A",
            "B",
        ];
        out.push('\n');
        out.push_str(&style.table(&header, rows, &[1, 2, 3, 4, 5, 6, 7]));
    }
    out
}

fn metrics(r: &Report) -> Vec<(&'static str, Format, Option<f64>)> {
    let c = &r.communication;
    let pages = |f: fn(&PageReport) -> f64| r.pages.as_ref().map(f);
    let first = r.pages.as_ref().and_then(|p| p.first_touch);
    let points: Format = |v| format!("{} %", three(v));
    let whole: Format = |v| count(v as u64);
    let size: Format = |v| bytes(v as u64);
    vec![
        ("seconds traced", three, Some(r.run.seconds)),
        ("threads", whole, Some(r.run.threads as f64)),
        ("instructions", whole, Some(r.run.instructions as f64)),
        ("reads", whole, Some(r.run.reads as f64)),
        ("writes", whole, Some(r.run.writes as f64)),
        ("footprint", size, Some(r.run.footprint as f64)),
        ("C_H", three, Some(c.heterogeneity)),
        ("C_H pairs", three, Some(c.heterogeneity_pairs)),
        ("C_A", three, Some(c.amount)),
        ("C_A per second", three, Some(c.amount_per_second)),
        ("B_comm", points, Some(c.balance)),
        ("R_comm", three, Some(c.ratio)),
        ("load balance", points, Some(r.load_balance)),
        ("phases", whole, Some(r.phases.len() as f64)),
        ("E_app best", percent, pages(|p| p.best.app)),
        ("E_app worst", percent, pages(|p| p.worst.app)),
        ("Acc_page", percent, first.map(|f| f.page)),
        ("Acc_app", percent, first.map(|f| f.app)),
        ("local", percent, first.map(|f| f.local)),
        ("migrations", whole, pages(|p| p.timeline.migrations as f64)),
    ]
}

fn written(value: Option<f64>, format: Format) -> String {
    value.map_or_else(|| "-".to_owned(), format)
}

/// Relative change in per cent; "new" and "gone" where one side has nothing.
fn change(a: Option<f64>, b: Option<f64>) -> String {
    match (a, b) {
        (Some(a), Some(b)) if a == b => "=".to_owned(),
        (Some(a), Some(b)) if a != 0.0 => format!("{:+.1} %", (b / a - 1.0) * 100.0),
        (Some(_) | None, Some(_)) => "new".to_owned(),
        (Some(_), None) => "gone".to_owned(),
        (None, None) => String::new(),
    }
}

/// Structures of either run by name, those with most accesses in either first.
fn structures(before: &Report, after: &Report, top: usize) -> Vec<Vec<String>> {
    type Pair<'a> = [Option<&'a Structure>; 2];
    let mut by_name: BTreeMap<(&str, &str), Pair> = BTreeMap::new();
    for (side, report) in [before, after].into_iter().enumerate() {
        for s in &report.structures {
            // The list is in order of accesses: the first of a name is the one to compare.
            by_name.entry((&s.name, &s.function)).or_default()[side].get_or_insert(s);
        }
    }
    let mut pairs: Vec<((&str, &str), Pair)> = by_name.into_iter().collect();
    pairs.sort_by_key(|(_, sides)| {
        std::cmp::Reverse(sides.iter().flatten().map(|s| s.accesses()).max())
    });
    let row = |((name, _), [a, b]): ((&str, &str), Pair)| {
        let accesses = |s: Option<&Structure>| s.map(|s| s.accesses() as f64);
        let part = |s: Option<&Structure>, f: fn(&Structure) -> Option<f64>| {
            written(s.and_then(f), percent)
        };
        vec![
            clean(name),
            written(accesses(a), |v| count(v as u64)),
            written(accesses(b), |v| count(v as u64)),
            change(accesses(a), accesses(b)),
            part(a, |s| s.exclusivity),
            part(b, |s| s.exclusivity),
            part(a, |s| s.first_touch_accuracy),
            part(b, |s| s.first_touch_accuracy),
        ]
    };
    pairs.into_iter().take(top).map(row).collect()
}
