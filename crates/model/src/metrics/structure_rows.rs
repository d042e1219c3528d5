//! Which data structures reports show as one row: those of one declaration, in however many processes, and
//! the stacks of many threads where none stands out.
use super::structures::StructureMetrics;
use hither_profile::{Object, ObjectKind, ProcessIx};
use std::collections::HashMap;

/// What tells a structure from others in a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListedStructure<'a> {
    declaration: (&'a str, &'a str, ObjectKind, &'a str, u32, &'a str),
    process: ProcessIx,
    accesses: u64,
}

impl<'a> From<&'a Object> for ListedStructure<'a> {
    fn from(o: &'a Object) -> Self {
        ListedStructure {
            declaration: (&o.name, &o.type_name, o.kind, &o.file, o.line, &o.function),
            process: o.process,
            accesses: o.reads.saturating_add(o.writes),
        }
    }
}

impl<'a> From<&'a StructureMetrics> for ListedStructure<'a> {
    fn from(s: &'a StructureMetrics) -> Self {
        ListedStructure {
            declaration: (&s.name, &s.type_name, s.kind, &s.file, s.line, &s.function),
            process: ProcessIx(s.process),
            accesses: s.accesses(),
        }
    }
}

/// What is one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StructureGroup {
    /// That of the structure, or how many stacks they are.
    pub name: String,
    /// Positions in what was given, in their order; at least one.
    pub members: Vec<usize>,
    /// The processes that have them, in their order.
    pub processes: Vec<ProcessIx>,
}

/// The rows of a table of these structures, in the order of their first members.
#[must_use]
pub fn group_structures(all: &[ListedStructure]) -> Vec<StructureGroup> {
    let mut rows = merge_stacks(all, merge_processes(all));
    tell_apart(all, &mut rows);
    rows
}

/// Structures of one name are told by where they are declared or allocated, `eh (ksw.c:424)`.
fn tell_apart(all: &[ListedStructure], rows: &mut [StructureGroup]) {
    let mut named: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        named.entry(row.name.clone()).or_default().push(at);
    }
    for at in named.into_values().filter(|rows| rows.len() > 1).flatten() {
        let row = &mut rows[at];
        let (name, _, _, file, line, _) = all[row.members[0]].declaration;
        let place = format!("{}:{line}", file.rsplit('/').next().unwrap_or(file));
        if line > 0 && !name.contains(&place) {
            row.name.push_str(&format!(" ({place})"));
        }
    }
}

fn merge_processes(all: &[ListedStructure]) -> Vec<StructureGroup> {
    let mut rows: Vec<StructureGroup> = Vec::new();
    let mut row_of = HashMap::new();
    for (at, structure) in all.iter().enumerate() {
        let row = *row_of.entry(structure.declaration).or_insert(rows.len());
        if row == rows.len() {
            rows.push(StructureGroup {
                name: structure.declaration.0.to_owned(),
                ..StructureGroup::default()
            });
        }
        rows[row].members.push(at);
        rows[row].processes.push(structure.process);
    }
    for row in &mut rows {
        row.processes.sort_unstable();
        row.processes.dedup();
    }
    rows
}

/// Stacks stay apart where one has more than half of the accesses of all: it would be hidden.
fn merge_stacks(all: &[ListedStructure], rows: Vec<StructureGroup>) -> Vec<StructureGroup> {
    let is_stack = |row: &&StructureGroup| all[row.members[0]].declaration.2 == ObjectKind::Stack;
    let accesses = |row: &StructureGroup| {
        let members = row.members.iter().map(|&at| all[at].accesses);
        members.fold(0, u64::saturating_add)
    };
    let stacks: Vec<u64> = rows.iter().filter(is_stack).map(accesses).collect();
    let sum = stacks.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
    if stacks.len() < 2 || stacks.iter().any(|&n| n > sum / 2) {
        return rows;
    }
    let mut merged: Vec<StructureGroup> = Vec::new();
    let mut stack_row = None;
    for row in rows {
        if !is_stack(&&row) {
            merged.push(row);
            continue;
        }
        let at = *stack_row.get_or_insert(merged.len());
        if at == merged.len() {
            merged.push(StructureGroup {
                name: format!("{} stacks", stacks.len()),
                ..StructureGroup::default()
            });
        }
        merged[at].members.extend(row.members);
        merged[at].processes.extend(row.processes);
    }
    if let Some(at) = stack_row {
        merged[at].members.sort_unstable();
        merged[at].processes.sort_unstable();
        merged[at].processes.dedup();
    }
    merged
}

/// The mean of what is known, each value with the accesses that it is of.
pub fn mean_by_accesses(values: impl IntoIterator<Item = (Option<f64>, u64)>) -> Option<f64> {
    let known = values.into_iter().filter_map(|(v, n)| Some((v?, n as f64)));
    let known: Vec<(f64, f64)> = known.collect();
    let weight: f64 = known.iter().map(|(_, n)| n).sum();
    match known.as_slice() {
        [] => None,
        [(one, _)] => Some(*one),
        _ => Some(known.iter().map(|(v, n)| v * n).sum::<f64>() / weight.max(1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, process: u32, reads: u64) -> Object {
        Object {
            name: name.to_owned(),
            process: ProcessIx(process),
            reads,
            ..Object::default()
        }
    }

    fn rows(all: &[Object]) -> Vec<(String, Vec<usize>, usize)> {
        let listed: Vec<_> = all.iter().map(ListedStructure::from).collect();
        let rows = group_structures(&listed).into_iter();
        rows.map(|r| (r.name, r.members, r.processes.len()))
            .collect()
    }

    fn row(name: &str, members: &[usize], processes: usize) -> (String, Vec<usize>, usize) {
        (name.to_owned(), members.to_vec(), processes)
    }

    #[test]
    fn what_several_processes_have_is_one_row() {
        let all = [
            of("one", 0, 40),
            of("each", 1, 30),
            of("each", 2, 20),
            of("each", 2, 10),
        ];
        assert_eq!(
            rows(&all),
            [row("one", &[0], 1), row("each", &[1, 2, 3], 2)]
        );
    }

    #[test]
    fn stacks_are_one_row_where_none_stands_out() {
        let all = |reads: [u64; 3]| {
            let stack = |(thread, reads): (u32, u64)| Object {
                kind: ObjectKind::Stack,
                ..of(&format!("stack of thread {thread}"), thread / 2, reads)
            };
            let mut all: Vec<_> = (0..).zip(reads).map(stack).collect();
            all.insert(1, of("one", 0, 25));
            all
        };
        let together = [row("3 stacks", &[0, 2, 3], 2), row("one", &[1], 1)];
        assert_eq!(rows(&all([30, 20, 10])), together);
        let apart = rows(&all([60, 10, 5]));
        assert_eq!(apart.len(), 4);
        assert_eq!(apart[0], row("stack of thread 0", &[0], 1));
    }

    #[test]
    fn structures_of_one_name_are_told_by_their_places() {
        let at = |name: &str, file: &str, line, reads| Object {
            file: file.to_owned(),
            line,
            ..of(name, 0, reads)
        };
        let all = [
            at("eh", "/src/ksw.c", 424, 40),
            at("eh", "/src/ksw.c", 551, 30),
            at("qp", "/src/ksw.c", 423, 20),
            // Nothing tells these apart, or their names do.
            at("pool", "", 0, 10),
            at("pool", "/src/pool.c", 7, 9),
            at("a.c:3 (f)", "/one/a.c", 3, 8),
            at("a.c:3 (f)", "/two/a.c", 3, 7),
        ];
        let names: Vec<_> = rows(&all).into_iter().map(|(name, ..)| name).collect();
        let expected = [
            "eh (ksw.c:424)",
            "eh (ksw.c:551)",
            "qp",
            "pool",
            "pool (pool.c:7)",
            "a.c:3 (f)",
            "a.c:3 (f)",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn means_leave_out_what_is_not_known() {
        assert_eq!(mean_by_accesses([(None, 5)]), None);
        assert_eq!(mean_by_accesses([(Some(0.5), 0)]), Some(0.5));
        let three = [(Some(1.0), 10), (None, 1000), (Some(0.5), 30)];
        assert_eq!(mean_by_accesses(three), Some(0.625));
    }
}
