//! The call paths by which heap blocks are allocated.
use super::heap::{smaller, AllocationSite};
use crate::trace::symbolizer::{AllocationName, SourceLine};
use hither_profile::{file_name, AllocationPath, ObjectIx, ObjectKind};
use std::collections::BTreeMap;

/// Calls of a path that are kept, innermost first.
const MAX_FRAMES: usize = 8;

/// What allocations of one process have in common that are one structure.
#[derive(PartialEq, Eq, Hash)]
pub struct AllocationKey(ObjectKind, String, String, String, u32, String);

impl AllocationKey {
    pub fn of(n: &AllocationName, kind: ObjectKind) -> Self {
        AllocationKey(
            kind,
            n.name.clone(),
            n.type_name.clone(),
            n.file.clone(),
            n.line,
            n.function.clone(),
        )
    }
}

/// Sums by object and path: several sites of the tracer may read the same.
#[derive(Default)]
pub struct AllocationPaths {
    rows: BTreeMap<(u32, String), AllocationPath>,
}

impl AllocationPaths {
    /// `calls`: innermost first.
    pub fn add(&mut self, object: u32, calls: &[SourceLine], site: &AllocationSite) {
        let path = folded(calls);
        let row = self.rows.entry((object, path.clone()));
        let row = row.or_insert_with(|| AllocationPath {
            object: ObjectIx(object),
            path,
            ..AllocationPath::default()
        });
        for (sum, part) in [
            (&mut row.count, site.count),
            (&mut row.size, site.peak),
            (&mut row.allocated, site.allocated),
            (&mut row.reads, site.counts[0]),
            (&mut row.writes, site.counts[1]),
            (&mut row.fetches, site.counts[2]),
        ] {
            *sum = sum.saturating_add(part);
        }
        row.smallest = smaller(row.smallest, site.smallest);
        row.largest = row.largest.max(site.largest);
    }

    /// Most accesses first.
    pub fn rows(self) -> Vec<AllocationPath> {
        let mut rows: Vec<_> = self.rows.into_values().collect();
        rows.sort_by_key(|r| std::cmp::Reverse(r.reads.saturating_add(r.writes)));
        rows
    }
}

/// `main (app.c:12);make (lib.c:30)`.
pub fn folded(calls: &[SourceLine]) -> String {
    let kept = &calls[..calls.len().min(MAX_FRAMES)];
    let call = |l: &SourceLine| {
        let file = file_name(&l.file).replace(';', ",");
        let function = match l.function.as_str() {
            "" => "?".to_owned(),
            name => name.replace(';', ","),
        };
        match l.line {
            0 if file.is_empty() => function,
            0 => format!("{function} ({file})"),
            line => format!("{function} ({file}:{line})"),
        }
    };
    let texts: Vec<String> = kept.iter().rev().map(call).collect();
    texts.join(";")
}
