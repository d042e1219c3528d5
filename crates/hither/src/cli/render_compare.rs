//! `hither stat BEFORE AFTER`: metric by metric and structure by structure.
use super::render_report::header;
use super::style::{strip_control_characters, written, TerminalStyle};
use hither_model::metrics::figures::compared_figures;
use hither_model::metrics::metrics_report::MetricsReport;
use hither_model::metrics::structures::StructureMetrics;
use hither_profile::FigureUnit;
use std::collections::BTreeMap;

pub fn render(
    before: &MetricsReport,
    after: &MetricsReport,
    top: usize,
    style: TerminalStyle,
) -> String {
    let mut out = format!(
        "A: {}B: {}",
        header(&before.run, style),
        header(&after.run, style)
    );
    out.push_str(&format!(
        "\nVerdict A: {}.\nVerdict B: {}.\n\n",
        before.verdict.sentence, after.verdict.sentence
    ));
    let rows = compared_figures(before)
        .into_iter()
        .zip(compared_figures(after));
    let rows = rows.map(|(a, b)| {
        vec![
            a.name,
            written(a.value, a.unit),
            written(b.value, b.unit),
            change(a.value, b.value),
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
fn structures(before: &MetricsReport, after: &MetricsReport, top: usize) -> Vec<Vec<String>> {
    type StructurePair<'a> = [Option<&'a StructureMetrics>; 2];
    let mut by_name: BTreeMap<(&str, &str), StructurePair> = BTreeMap::new();
    for (side, report) in [before, after].into_iter().enumerate() {
        for s in &report.structures {
            // The list is in order of accesses: the first of a name is the one to compare.
            by_name.entry((&s.name, &s.function)).or_default()[side].get_or_insert(s);
        }
    }
    let mut pairs: Vec<((&str, &str), StructurePair)> = by_name.into_iter().collect();
    pairs.sort_by_key(|(_, sides)| {
        std::cmp::Reverse(sides.iter().flatten().map(|s| s.accesses()).max())
    });
    let row = |((name, _), [a, b]): ((&str, &str), StructurePair)| {
        let accesses = |s: Option<&StructureMetrics>| s.map(|s| s.accesses() as f64);
        let part = |s: Option<&StructureMetrics>, f: fn(&StructureMetrics) -> Option<f64>| {
            written(s.and_then(f), FigureUnit::Share)
        };
        vec![
            strip_control_characters(name),
            written(accesses(a), FigureUnit::Count),
            written(accesses(b), FigureUnit::Count),
            change(accesses(a), accesses(b)),
            part(a, |s| s.exclusivity),
            part(b, |s| s.exclusivity),
            part(a, |s| s.first_touch_accuracy),
            part(b, |s| s.first_touch_accuracy),
        ]
    };
    pairs.into_iter().take(top).map(row).collect()
}
