//! Findings about who uses which pages of a structure, in programs that have them and twins
//! that have not. The two stories of TABARNAC section 5 are told here.
use crate::run::{traced, traced_with, Traced};
use hither_profile::{Finding, FindingKind, TrafficUnit};

/// The finding of a kind about a structure.
#[track_caller]
fn one(run: &Traced, kind: FindingKind, name: &str) -> Finding {
    let found = run.of(kind);
    let found: Vec<Finding> = (found.into_iter())
        .filter(|f| run.name(f) == name)
        .collect();
    assert_eq!(found.len(), 1, "{kind:?} of {name}: {:?}", run.findings());
    let [finding] = <[Finding; 1]>::try_from(found).expect("one");
    assert!(finding.severity > 0.0 && !finding.evidence.is_empty());
    finding
}

#[track_caller]
fn none(run: &Traced, kind: FindingKind, name: &str) {
    let found = run.of(kind);
    assert!(found.iter().all(|f| run.name(f) != name), "{found:?}");
}

/// TABARNAC 5.1: thread 0 initialises all cubes, the threads use a block of each.
#[test]
fn ondes_is_touched_first_by_its_master() {
    let run = traced("ondes 48 10");
    let names = run.names(FindingKind::FirstTouch);
    assert_eq!(names, ["future", "past", "present", "speed"]);
    // What hurts the run as a whole comes before its causes; of these first touch is worst.
    let about_data = run.findings().into_iter().find(|f| f.object.is_some());
    let found = about_data.expect("a finding about data");
    assert_eq!(found.kind, FindingKind::FirstTouch);
    assert!(
        found.evidence[0].starts_with("Thread 0 (ondes)"),
        "{found:?}"
    );
    assert!(found.lines.iter().any(|l| l.file.ends_with("ondes.c")));
    let fix = &found.fixes[0].copy;
    assert!(
        fix.contains("#pragma omp parallel for schedule(static)"),
        "{fix}"
    );
    let zeroed = format!("{}[i] = 0;", run.name(&found));
    assert!(fix.contains(&zeroed), "{fix}");
    let repaired = traced("ondes -p 48 10").findings();
    let about_pages = [
        FindingKind::FirstTouch,
        FindingKind::SharedByAll,
        FindingKind::Concentrated,
        FindingKind::ReadMostly,
        FindingKind::LargePages,
    ];
    assert!(
        repaired.iter().all(|f| !about_pages.contains(&f.kind)),
        "{repaired:?}"
    );
}

/// TABARNAC 5.2: all share `key_buff1`, whose middle is hot. With the split cyclic schedule
/// each thread has its part, of which the same is hot.
#[test]
fn is_shares_key_buff1_until_the_schedule_is_split() {
    // So many rounds that each thread comes by each page, whoever else uses the machine.
    let dynamic = traced("is dynamic 21 24");
    let found = one(dynamic, FindingKind::SharedByAll, "key_buff1");
    assert!(
        found.title.starts_with("All 4 threads share key_buff1"),
        "{found:?}"
    );
    let fix = &found.fixes[0].copy;
    assert!(
        fix.contains("schedule(static, n / (2 * omp_get_num_threads()))"),
        "{fix}"
    );
    let hot = one(dynamic, FindingKind::Concentrated, "key_buff1");
    assert!(hot.title.ends_with("in its middle"), "{hot:?}");
    let split = traced("is split 21 8");
    none(split, FindingKind::SharedByAll, "key_buff1");
    none(split, FindingKind::Concentrated, "key_buff1");
    none(split, FindingKind::FirstTouch, "key_buff1");
}

/// In blocks, the two threads in the middle have the hot half. Even keys have no middle.
#[test]
fn the_middle_of_key_buff1_is_two_threads() {
    let bell = traced("is static 21 3");
    let hot = one(bell, FindingKind::Concentrated, "key_buff1");
    assert!(hot.title.ends_with("in its middle"), "{hot:?}");
    assert!(
        hot.evidence.iter().any(|e| e.starts_with("Of 4 threads")),
        "{hot:?}"
    );
    none(bell, FindingKind::SharedByAll, "key_buff1");
    let even = traced("is static 21 3 even");
    none(even, FindingKind::Concentrated, "key_buff1");
}

#[test]
fn a_table_read_by_all_is_worth_copies() {
    let read = traced("table read 1024 6");
    let found = one(read, FindingKind::ReadMostly, "table");
    assert!(
        found.fixes[0].copy.contains("numa_alloc_onnode"),
        "{found:?}"
    );
    none(read, FindingKind::SharedByAll, "table");
    for twin in ["table blocks 1024 6", "table update 1024 6"] {
        none(traced(twin), FindingKind::ReadMostly, "table");
    }
    one(
        traced("table update 1024 6"),
        FindingKind::SharedByAll,
        "table",
    );
    none(
        traced("table blocks 1024 6"),
        FindingKind::SharedByAll,
        "table",
    );
}

#[test]
fn a_table_dealt_out_by_pages_is_mixed_by_large_ones() {
    let pages = traced("table pages 8192 1");
    let found = one(pages, FindingKind::LargePages, "table");
    assert!(found.severity > 0.5, "{found:?}");
    none(
        traced("table blocks 8192 1"),
        FindingKind::LargePages,
        "table",
    );
}

/// Of `passed`, which thread 0 touches first, each round brings 1,024 lines into the cache of thread
/// 1. Together with the 65,536 of `swept` and 4,096 of `kept` that is known, whatever the accesses.
#[test]
fn what_is_passed_on_weighs_as_much_as_it_is_fetched() {
    let found = |options: &str| {
        let run = traced_with("fetches 1 50", &[], options);
        let found = run.findings_on("node:2 l2:1(size=32768) core:1 pu:1");
        let is_it = |f: &&Finding| f.kind == FindingKind::FirstTouch && run.name(f) == "passed";
        let found = found.iter().find(is_it);
        found
            .unwrap_or_else(|| panic!("{run:?}", run = run.findings()))
            .clone()
    };
    let passed = 1024.0 * 51.0;
    let expected = 0.5 * passed / (passed + 65_536.0 + 4096.0);
    let fetched = found("");
    assert_eq!(fetched.severity_of, TrafficUnit::Fetches);
    let far = (fetched.severity - expected).abs() > 0.15 * expected;
    assert!(!far, "{}, expected {expected}", fetched.severity);
    assert_eq!(found("--oracle").severity_of, TrafficUnit::Accesses);
}
