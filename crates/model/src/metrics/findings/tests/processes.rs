//! What several processes have, and what is a library's.
use super::Made;
use crate::metrics::findings::{find_all, first_touch};
use hither_profile::*;

/// Pages that thread 0 touches first; thread 1 uses half of them.
fn misplaced(made: Made, name: &str, reads: u64) -> Made {
    let own = made.pages(16, 0, &[reads, 0]);
    own.pages(16, 0, &[0, reads]).named(name, 32)
}

/// An array in each rank.
fn ranks(count: u32, reads: u64) -> Made {
    let grids = (0..count).fold(Made::new(2), |made, _| misplaced(made, "grid", reads));
    of_ranks(grids)
}

fn of_ranks(mut made: Made) -> Made {
    for (rank, object) in (0..).zip(&mut made.profile.objects) {
        object.process = ProcessIx(rank);
    }
    made
}

/// Memory that a library shares between processes.
fn with_segment(made: Made, reads: u64) -> Made {
    let mut made = misplaced(made, "/dev/shm/segment", reads);
    let segment = made.profile.objects.last_mut().expect("an object");
    (segment.kind, segment.line) = (ObjectKind::Shared, 0);
    segment.file.clear();
    segment.function.clear();
    made
}

fn titles(made: &Made) -> Vec<String> {
    let found = made.find(find_all).into_iter();
    found
        .filter(|f| f.kind == FindingKind::FirstTouch)
        .map(|f| f.title)
        .collect()
}

#[test]
fn what_each_rank_has_is_one_finding_with_the_severity_of_all() {
    let made = with_segment(ranks(8, 10), 79);
    let found = made.find(first_touch::find);
    let named = |name: &str| found.iter().filter(|f| f.title.contains(name)).count();
    assert_eq!((named("grid"), named("/dev/shm/segment")), (1, 1));
    assert!(found[0].title.contains("grid"), "{found:#?}");
    assert!((found[0].severity - 0.5 * 80.0 / 159.0).abs() < 1e-9);
    let said = found[0].evidence.last().expect("evidence");
    assert_eq!(
        said,
        "The same was found in it in 7 more processes: with them it is 25 % of the accesses."
    );
    // Two structures of one name in one process are two.
    let mut two = ranks(2, 10);
    two.profile.objects[1].process = ProcessIx(0);
    assert_eq!(titles(&two).len(), 2);
}

/// Of 200 ranks none has a hundredth of the run.
#[test]
fn what_many_ranks_have_is_found() {
    assert_eq!(titles(&ranks(200, 10)).len(), 1);
}

#[test]
fn what_a_library_keeps_comes_behind_what_is_about_as_bad() {
    let first = |segment| titles(&with_segment(ranks(1, 100), segment)).remove(0);
    assert!(first(190).contains("grid"));
    assert!(first(210).contains("/dev/shm/segment"));
    // The program maps it itself.
    let mut own = with_segment(ranks(1, 100), 190);
    own.profile.objects[1].file = "/src/app.c".to_owned();
    assert!(titles(&own)[0].contains("/dev/shm/segment"));
}
