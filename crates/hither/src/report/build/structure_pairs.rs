//! Which data structure of one profile is which of another. Row numbers say nothing: the
//! same program may allocate in another order, and an edit moves lines.
use crate::report::page::{DeclarationSite, StructureFigures};
use hither_profile::{file_name, ObjectKind};
use std::collections::{HashMap, VecDeque};

/// A structure as comparisons need it.
#[derive(Clone, Debug)]
pub struct ComparedStructure {
    pub name: String,
    pub type_name: String,
    pub kind: ObjectKind,
    pub process: u32,
    pub site: Option<DeclarationSite>,
    pub figures: StructureFigures,
}

/// What two rows must have in common, strictest first: the same line of the same process;
/// the same function; the same function in any process; the same name.
const MATCHING_STAGES: [fn(&ComparedStructure) -> Option<StructureKey>; 4] = [
    |row| {
        let line = row.site.as_ref().map_or(0, |s| s.line);
        Some(StructureKey {
            process: Some(row.process),
            line,
            ..structure_key(row)
        })
    },
    |row| {
        Some(StructureKey {
            process: Some(row.process),
            ..structure_key(row)
        })
    },
    |row| Some(structure_key(row)),
    |row| {
        let key = structure_key(row);
        let named = !key.name.is_empty();
        named.then(|| StructureKey {
            file: String::new(),
            function: String::new(),
            ..key
        })
    },
];

#[derive(PartialEq, Eq, Hash)]
struct StructureKey {
    kind: ObjectKind,
    process: Option<u32>,
    name: String,
    file: String,
    function: String,
    line: u32,
}

fn structure_key(row: &ComparedStructure) -> StructureKey {
    let site = row.site.clone().unwrap_or_default();
    let file = file_name(&site.file).to_owned();
    StructureKey {
        kind: row.kind,
        process: None,
        name: given_name(&row.name, &file, site.line),
        function: site.function,
        file,
        line: 0,
    }
}

/// Empty for blocks without a name, which are called by their line: `main.c:12 (main)`.
fn given_name(name: &str, file: &str, line: u32) -> String {
    let rest = name.strip_prefix(&format!("{file}:{line}"));
    match rest {
        Some(rest) if rest.is_empty() || rest.starts_with(' ') => String::new(),
        _ => name.to_owned(),
    }
}

/// For each row of `after` the position of the same structure in `before`, each of which
/// is given once. Both are in order of accesses: of rows that look alike the first gets
/// the first.
#[must_use]
pub fn pair_structures(
    before: &[ComparedStructure],
    after: &[ComparedStructure],
) -> Vec<Option<usize>> {
    let mut found = vec![None; after.len()];
    let mut taken = vec![false; before.len()];
    for stage in MATCHING_STAGES {
        let mut free: HashMap<StructureKey, VecDeque<usize>> = HashMap::new();
        for (at, row) in before.iter().enumerate().filter(|(at, _)| !taken[*at]) {
            if let Some(key) = stage(row) {
                free.entry(key).or_default().push_back(at);
            }
        }
        for (at, row) in after.iter().enumerate() {
            if found[at].is_some() {
                continue;
            }
            let same = stage(row).and_then(|key| free.get_mut(&key)?.pop_front());
            if let Some(same) = same {
                taken[same] = true;
                found[at] = Some(same);
            }
        }
    }
    found
}
