//! What several finders need.
use super::Case;
use crate::metrics::structures::Structure;
use hither_profile::{Finding, FindingKind, FindingLine, ObjectIx, Picture};

/// Source lines named with a finding.
const LINES: usize = 3;
/// Characters of a name in a sentence.
const LONGEST: usize = 60;

/// A finding about a structure, without evidence and fixes yet.
pub fn about(case: &Case, kind: FindingKind, structure: &Structure, severity: f64) -> Finding {
    Finding {
        kind,
        severity: severity.clamp(0.0, 1.0),
        measured: "accesses".to_owned(),
        title: String::new(),
        evidence: Vec::new(),
        object: Some(structure.object),
        lines: lines_of(case, structure.object),
        fixes: Vec::new(),
        picture: Picture::Structure {
            object: structure.object,
        },
    }
}

/// The source lines that touch a structure most.
pub fn lines_of(case: &Case, object: ObjectIx) -> Vec<FindingLine> {
    let sites = case.profile.sites.iter();
    let mut sites: Vec<_> = sites.filter(|s| s.object == Some(object)).collect();
    let all: u64 = sites.iter().map(|s| s.reads + s.writes).sum();
    sites.sort_by_key(|s| (std::cmp::Reverse(s.reads + s.writes), &s.file, s.line));
    let sites = sites.into_iter().filter(|s| s.line > 0).take(LINES);
    let lines = sites.map(|s| FindingLine {
        file: s.file.clone(),
        line: s.line,
        function: s.function.clone(),
        share: (s.reads + s.writes) as f64 / all.max(1) as f64,
    });
    lines.collect()
}

/// A structure's name, its middle left out where it is long: `key_buff1`.
pub fn name(structure: &Structure) -> String {
    let chars: Vec<char> = structure.name.chars().collect();
    if chars.len() <= LONGEST {
        return structure.name.clone();
    }
    let (start, end) = (&chars[..LONGEST / 2], &chars[chars.len() - LONGEST / 2..]);
    let [start, end] = [start, end].map(|part| part.iter().collect::<String>());
    format!("{start}...{end}")
}

/// A share as people read it: `63 %`, `0.4 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 1.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// Bytes as people read them.
pub fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

/// Does all data fit in the caches (OPT eq. 7)? Then it matters little where pages lie, and
/// what is about pages alone stays silent.
pub fn fits_in_caches(case: &Case) -> bool {
    let report = &case.analysis.report;
    report.setup.cache_bytes > 0 && report.run.footprint <= report.setup.cache_bytes
}
