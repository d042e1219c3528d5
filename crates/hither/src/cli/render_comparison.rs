//! `hither report --text --before OTHER`: what changed, for people at a terminal.
use super::report_view::header;
use super::style::{count, percent, strip_control_characters, written, TerminalStyle};
use crate::report::page::{
    ChangeKind, FindingChange, MetricChange, ProfileComparison, StructureChange, StructureFigures,
};
use hither_profile::FigureUnit;

/// `top` structures are shown at most, those that changed before the others.
pub fn render(comparison: &ProfileComparison, top: usize, style: TerminalStyle) -> String {
    let title = format!(
        "Compared with {}",
        strip_control_characters(&comparison.file)
    );
    let mut out = format!("\n{}\n", style.bold(&title));
    out.push_str(&style.wrap("  ", &strip_control_characters(&comparison.sentence), 2));
    out.push_str(&style.wrap("  - before: ", &header(&comparison.run), 4));
    let verdict = strip_control_characters(&comparison.verdict.sentence);
    out.push_str(&style.wrap("  - verdict before: ", &verdict, 4));
    for note in &comparison.notes {
        out.push_str(&style.wrap("  - ", &strip_control_characters(note), 4));
    }
    let rows: Vec<_> = comparison.findings.iter().map(finding).collect();
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&style.table(&["", "before", "after", "finding"], rows, &[1, 2]));
    }
    out.push('\n');
    let rows = comparison.metrics.iter().map(metric).collect();
    let header = ["metric", "before", "after", "difference", ""];
    out.push_str(&style.table(&header, rows, &[1, 2, 3]));
    out.push_str(&structures(comparison, top, style));
    out
}

/// A change in a word.
pub fn word(change: ChangeKind) -> &'static str {
    match change {
        ChangeKind::New => "new",
        ChangeKind::Worse => "worse",
        ChangeKind::Changed => "changed",
        ChangeKind::Same => "same",
        ChangeKind::Better => "better",
        ChangeKind::Gone => "gone",
    }
}

fn finding(change: &FindingChange) -> Vec<String> {
    let share = |severity: Option<f64>| written(severity, FigureUnit::Share);
    vec![
        word(change.change).to_owned(),
        share(change.before),
        share(change.after),
        format!(
            "{}: {}",
            change.kind.name(),
            strip_control_characters(&change.title)
        ),
    ]
}

fn metric(change: &MetricChange) -> Vec<String> {
    let said = match change.change {
        ChangeKind::Same if change.within_error => "within the sampling error",
        // Only what differs from run to run would be told here.
        ChangeKind::Same => "",
        other => word(other),
    };
    vec![
        change.name.clone(),
        written(change.before, change.unit),
        written(change.after, change.unit),
        difference(change.unit, change.before, change.after),
        said.to_owned(),
    ]
}

/// In points where the unit is a share, else in per cent of before.
pub fn difference(unit: FigureUnit, before: Option<f64>, after: Option<f64>) -> String {
    let (Some(before), Some(after)) = (before, after) else {
        return String::new();
    };
    let points = match unit {
        FigureUnit::Share => (after - before) * 100.0,
        FigureUnit::Percent => after - before,
        _ if before == after => return "=".to_owned(),
        _ if before == 0.0 => return String::new(),
        _ => return format!("{:+.1} %", (after / before - 1.0) * 100.0),
    };
    match format!("{points:+.1} points") {
        none if none.ends_with("0.0 points") && points.abs() < 0.05 => "=".to_owned(),
        text => text,
    }
}

fn structures(comparison: &ProfileComparison, top: usize, style: TerminalStyle) -> String {
    let mut rows: Vec<&StructureChange> = comparison.structures.iter().collect();
    if rows.is_empty() {
        return String::new();
    }
    // Stable: most accesses first among each.
    rows.sort_by_key(|s| s.change == ChangeKind::Same);
    let left = comparison.structures_left + rows.len().saturating_sub(top);
    let rows = rows.into_iter().take(top).map(structure).collect();
    let header = ["", "structure", "share", "accesses", "E", "right"];
    let mut out = format!("\n{}", style.table(&header, rows, &[2, 3, 4, 5]));
    if left > 0 {
        out.push_str(&format!("  ... and {left} more\n"));
    }
    out
}

fn structure(change: &StructureChange) -> Vec<String> {
    let side = |f: Option<StructureFigures>, of: fn(StructureFigures) -> Option<String>| {
        f.and_then(of).unwrap_or_else(|| "-".to_owned())
    };
    let both = |of: fn(StructureFigures) -> Option<String>| {
        let (before, after) = (side(change.before, of), side(change.after, of));
        if before == after {
            before
        } else {
            format!("{before} -> {after}")
        }
    };
    vec![
        word(change.change).to_owned(),
        strip_control_characters(&change.name),
        both(|f| Some(percent(f.share))),
        both(|f| Some(count(f.reads.saturating_add(f.writes)))),
        both(|f| f.exclusivity.map(percent)),
        both(|f| f.accuracy.map(percent)),
    ]
}
