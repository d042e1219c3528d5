//! Two profiles -> what changed: finding by finding, metric by metric, structure by
//! structure.
use super::structure_pairs::pair_structures;
pub use super::structure_pairs::ComparedStructure;
use super::structures::FOLD_BELOW_SHARE;
use crate::report::page::{
    ChangeKind, FindingChange, MetricChange, ProfileComparison, ReportRun, ReportVerdict,
    StructureChange, StructureFigures,
};
use hither_model::units::{as_sentence, plural};
use hither_profile::{BetterWhen, FigureUnit, Finding, FindingKind, ObjectIx, RunFigure};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// Standard errors of a difference that sampling is taken to account for.
const SIGNIFICANT_ERRORS: f64 = 2.0;
/// Most structures that are listed.
const MOST_ROWS: usize = 1000;

/// One of the two profiles.
#[derive(Clone, Debug)]
pub struct ComparisonSide {
    pub file: String,
    pub run: ReportRun,
    pub verdict: ReportVerdict,
    /// Worst first.
    pub findings: Vec<Finding>,
    pub figures: Vec<RunFigure>,
    /// Most accesses first.
    pub rows: Vec<ComparedStructure>,
}

/// Shares that differ by no more than `spread` are the same.
#[must_use]
pub fn compare_profiles(
    before: ComparisonSide,
    after: &ComparisonSide,
    spread: f64,
) -> ProfileComparison {
    let error = sampling_error_of_difference(before.run.sampling_error, after.run.sampling_error);
    let pairs = pair_structures(&before.rows, &after.rows);
    let spread = spread.max(error);
    let findings = finding_changes(&before, after, &pairs, spread);
    let metrics = metric_changes(&before.figures, &after.figures, error);
    let (structures, structures_left) =
        structure_changes(&before.rows, &after.rows, &pairs, spread);
    ProfileComparison {
        sentence: summary_sentence(&findings, &metrics),
        notes: comparison_notes(&before, after, error),
        file: before.file,
        run: before.run,
        verdict: before.verdict,
        findings,
        metrics,
        structures,
        structures_left,
    }
}

/// The relative difference that sampling accounts for: the standard errors of both, which
/// are independent, twice. Shares are taken to differ by as much in points, which is more
/// than they do.
#[must_use]
pub fn sampling_error_of_difference(before: f64, after: f64) -> f64 {
    SIGNIFICANT_ERRORS * before.hypot(after)
}

fn metric_changes(before: &[RunFigure], after: &[RunFigure], error: f64) -> Vec<MetricChange> {
    let other = |name: &str| before.iter().find(|f| f.name == name);
    let rows = after.iter().map(|after| {
        let earlier = other(&after.name).and_then(|f| f.value);
        let distance = figure_difference(after.unit, earlier, after.value);
        MetricChange {
            name: after.name.clone(),
            meaning: after.meaning.clone(),
            unit: after.unit,
            better: after.better,
            before: earlier,
            after: after.value,
            change: classify_change(
                after.better,
                after.spread.max(scale_to_unit(after.unit, error)),
                distance,
                (earlier, after.value),
            ),
            within_error: distance
                .is_some_and(|d| d != 0.0 && d.abs() <= scale_to_unit(after.unit, error)),
        }
    });
    rows.collect()
}

/// An error of shares in the unit's own scale.
fn scale_to_unit(unit: FigureUnit, error: f64) -> f64 {
    match unit {
        FigureUnit::Percent => error * 100.0,
        _ => error,
    }
}

/// After less before, relative to the larger where the unit asks for it.
fn figure_difference(unit: FigureUnit, before: Option<f64>, after: Option<f64>) -> Option<f64> {
    let (before, after) = (before?, after?);
    let whole = match unit.is_absolute() {
        true => 1.0,
        false => before.abs().max(after.abs()),
    };
    Some(if whole > 0.0 {
        (after - before) / whole
    } else {
        0.0
    })
}

fn classify_change(
    better: BetterWhen,
    spread: f64,
    distance: Option<f64>,
    values: (Option<f64>, Option<f64>),
) -> ChangeKind {
    let Some(distance) = distance else {
        return match values {
            (None, Some(_)) => ChangeKind::New,
            (Some(_), None) => ChangeKind::Gone,
            _ => ChangeKind::Same,
        };
    };
    match better {
        _ if distance.abs() <= spread => ChangeKind::Same,
        BetterWhen::Neither => ChangeKind::Changed,
        BetterWhen::Higher if distance > 0.0 => ChangeKind::Better,
        BetterWhen::Lower if distance < 0.0 => ChangeKind::Better,
        _ => ChangeKind::Worse,
    }
}

/// Findings of a kind about the same structure are the same, several of them by severity.
fn finding_changes(
    before: &ComparisonSide,
    after: &ComparisonSide,
    pairs: &[Option<usize>],
    spread: f64,
) -> Vec<FindingChange> {
    let (of_before, of_after) = (by_object(&before.rows), by_object(&after.rows));
    // Row of before, or `None` for what is about the whole run; not there: it has no like.
    let mut earlier: BTreeMap<(FindingKind, Option<usize>), VecDeque<&Finding>> = BTreeMap::new();
    let mut gone: Vec<&Finding> = Vec::new();
    for f in &before.findings {
        let row = match f.object {
            None => Some(None),
            Some(o) => of_before.get(&o).map(|&row| Some(row)),
        };
        match row {
            Some(row) => earlier.entry((f.kind, row)).or_default().push_back(f),
            None => gone.push(f),
        }
    }
    let mut changes: Vec<FindingChange> = Vec::new();
    for (at, f) in after.findings.iter().enumerate() {
        let row = match f.object {
            None => Some(None),
            Some(o) => of_after.get(&o).and_then(|&row| pairs[row]).map(Some),
        };
        let same = row.and_then(|row| earlier.get_mut(&(f.kind, row))?.pop_front());
        changes.push(FindingChange {
            evidence: same.map_or_else(Vec::new, |f| f.evidence.clone()),
            finding: Some(at),
            ..finding_change(f, &after.rows, &of_after, (same, Some(f)), spread)
        });
    }
    gone.extend(earlier.into_values().flatten());
    changes.extend(gone.into_iter().map(|f| FindingChange {
        evidence: f.evidence.clone(),
        ..finding_change(f, &before.rows, &of_before, (Some(f), None), spread)
    }));
    changes.sort_by(|a, b| {
        let worst = |c: &FindingChange| c.after.or(c.before).unwrap_or(0.0);
        let order = a.change.cmp(&b.change);
        let order = order.then_with(|| worst(b).total_cmp(&worst(a)));
        order.then_with(|| (a.kind, &a.structure, &a.title).cmp(&(b.kind, &b.structure, &b.title)))
    });
    changes
}

fn by_object(rows: &[ComparedStructure]) -> HashMap<ObjectIx, usize> {
    let rows = rows.iter().enumerate();
    rows.map(|(at, row)| (ObjectIx(row.figures.object), at))
        .collect()
}

/// `f` is the finding of `rows` to describe.
fn finding_change(
    f: &Finding,
    rows: &[ComparedStructure],
    at: &HashMap<ObjectIx, usize>,
    (before, after): (Option<&Finding>, Option<&Finding>),
    spread: f64,
) -> FindingChange {
    let severity = |f: Option<&Finding>| f.map(|f| f.severity);
    let (a, b) = (severity(before), severity(after));
    let row = f.object.and_then(|o| at.get(&o));
    FindingChange {
        change: classify_change(
            BetterWhen::Lower,
            spread,
            figure_difference(FigureUnit::Share, a, b),
            (a, b),
        ),
        kind: f.kind,
        title: f.title.clone(),
        structure: row.map_or_else(String::new, |&row| rows[row].name.clone()),
        before: a,
        after: b,
        evidence: Vec::new(),
        finding: None,
    }
}

fn structure_changes(
    before: &[ComparedStructure],
    after: &[ComparedStructure],
    pairs: &[Option<usize>],
    spread: f64,
) -> (Vec<StructureChange>, usize) {
    let paired: HashSet<usize> = pairs.iter().flatten().copied().collect();
    let both = after.iter().zip(pairs);
    let both =
        both.map(|(row, pair)| structure_change(pair.map(|at| &before[at]), Some(row), spread));
    let gone = before
        .iter()
        .enumerate()
        .filter(|(at, _)| !paired.contains(at));
    let gone = gone.map(|(_, row)| structure_change(Some(row), None, spread));
    let mut all: Vec<StructureChange> = both.chain(gone).flatten().collect();
    let known = all.len();
    let most = |s: &StructureChange| {
        let shares = [s.before, s.after].into_iter().flatten();
        shares.map(|f| f.share).fold(0.0, f64::max)
    };
    all.retain(|s| most(s) >= FOLD_BELOW_SHARE);
    all.sort_by(|a, b| most(b).total_cmp(&most(a)));
    all.truncate(MOST_ROWS);
    let left = known - all.len();
    (all, left)
}

fn structure_change(
    before: Option<&ComparedStructure>,
    after: Option<&ComparedStructure>,
    spread: f64,
) -> Option<StructureChange> {
    let row = after.or(before)?;
    let figures = |row: Option<&ComparedStructure>| row.map(|r| r.figures);
    let (a, b) = (figures(before), figures(after));
    Some(StructureChange {
        change: classify_structure(a, b, spread),
        name: row.name.clone(),
        type_name: row.type_name.clone(),
        kind: row.kind,
        site: row.site.clone(),
        before: a,
        after: b,
    })
}

/// By where first touch puts its pages, else by how exclusive they are, else by its part in
/// the run.
fn classify_structure(
    before: Option<StructureFigures>,
    after: Option<StructureFigures>,
    spread: f64,
) -> ChangeKind {
    let (Some(a), Some(b)) = (before, after) else {
        return if before.is_some() {
            ChangeKind::Gone
        } else {
            ChangeKind::New
        };
    };
    let figures = [
        (a.accuracy, b.accuracy, BetterWhen::Higher),
        (a.exclusivity, b.exclusivity, BetterWhen::Higher),
        (Some(a.share), Some(b.share), BetterWhen::Neither),
    ];
    let changes = figures.into_iter().map(|(a, b, better)| {
        let distance = figure_difference(FigureUnit::Share, a, b)?;
        Some(classify_change(better, spread, Some(distance), (a, b)))
    });
    let mut told = changes.flatten().filter(|c| *c != ChangeKind::Same);
    told.next().unwrap_or(ChangeKind::Same)
}

fn summary_sentence(findings: &[FindingChange], metrics: &[MetricChange]) -> String {
    let parts = [
        (ChangeKind::Gone, "gone"),
        (ChangeKind::Better, "better"),
        (ChangeKind::New, "new"),
        (ChangeKind::Worse, "worse"),
    ];
    let counted = parts.into_iter().filter_map(|(change, word)| {
        let count = findings.iter().filter(|f| f.change == change).count();
        let counted = plural(count as u64, "finding is", "findings are");
        (count > 0).then(|| format!("{counted} {word}"))
    });
    let mut said: Vec<String> = counted.collect();
    let moved = |m: &&MetricChange| {
        m.unit == FigureUnit::Share && matches!(m.change, ChangeKind::Better | ChangeKind::Worse)
    };
    // The first is the share of remote accesses; the others say much the same.
    said.extend(metrics.iter().find(moved).and_then(|m| {
        let (a, b) = (m.before? * 100.0, m.after? * 100.0);
        Some(format!("{} went from {a:.0} % to {b:.0} %", m.name))
    }));
    if said.is_empty() {
        return "No difference: the same findings, and no share moved by more than runs of one program differ.".to_owned();
    }
    as_sentence(&said.join(", "))
}

fn comparison_notes(before: &ComparisonSide, after: &ComparisonSide, error: f64) -> Vec<String> {
    let (a, b) = (&before.run, &after.run);
    let mut notes = Vec::new();
    if a.command != b.command {
        notes.push(format!(
            "The commands differ: {} before, {} after.",
            a.command, b.command
        ));
    }
    if a.active_threads != b.active_threads {
        notes.push(format!(
            "{} active threads before, {} after: shares can be compared, counts hardly.",
            a.active_threads, b.active_threads
        ));
    }
    if error > 0.0 {
        notes.push(format!(
            "Sampled: differences up to {:.1} % (of shares, points) are within the error.",
            error * 100.0
        ));
    }
    notes
}
