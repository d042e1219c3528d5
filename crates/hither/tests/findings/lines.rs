//! False sharing, in programs whose lines and bytes are known.
use crate::run::{traced, Traced};
use hither_profile::{Finding, FindingKind::FalseSharing};

/// The only finding, about this structure.
fn only(program: &'static Traced, structure: &str) -> Finding {
    let mut found = program.of(FalseSharing);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(program.name(&found[0]), structure);
    found.remove(0)
}

fn silent(line: &str) {
    let found = traced(line).of(FalseSharing);
    assert!(found.is_empty(), "{line}: {found:#?}");
}

#[test]
fn counters_in_one_line_and_in_a_page_each() {
    let program = traced("false_sharing 4 20000000 packed");
    let found = only(program, "packed");
    // Nearly all accesses are to the counters; they count where the threads run side by side.
    assert!(found.severity > 0.2, "{}", found.severity);
    assert!(found.evidence[0].starts_with("1 line of 64 bytes, 4 threads"));
    let bytes = "bytes 0-7 thread 0, 8-15 thread 1, 16-23 thread 2, 24-31 thread 3";
    assert!(found.evidence[2].contains(bytes), "{:?}", found.evidence);
    assert!(found.lines[0].file.ends_with("false_sharing.c"));
    assert!(
        found.fixes[0].copy.contains("packed[1024]"),
        "{:?}",
        found.fixes
    );
    silent("false_sharing 4 20000000 padded");
}

#[test]
fn members_of_a_structure() {
    let found = only(traced("bytes members 4000000"), "tally");
    let bytes = "bytes 0-7 thread 0 (hits), 8-15 thread 1 (misses)";
    assert!(found.evidence[2].contains(bytes), "{:?}", found.evidence);
    assert_eq!(
        found.fixes[0].copy,
        "_Alignas(64) cell hits;\n_Alignas(64) cell misses;"
    );
}

#[test]
fn variables_side_by_side() {
    let found = traced("bytes neighbours 4000000").of(FalseSharing);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0]
        .title
        .starts_with("left and right lie in the same line"));
}

#[test]
fn the_same_bytes_are_no_false_sharing() {
    silent("bytes same 4000000");
    silent("pairs 4 4 400 512");
    silent("ring 4 1000 512");
}

#[test]
fn borders_of_parts_are_too_few_accesses() {
    silent("stencil2d 256 200");
}
