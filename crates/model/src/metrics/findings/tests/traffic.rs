//! Where findings and the verdict go by fetches, and where by accesses.
use super::Made;
use crate::metrics::findings::{
    concentrated, find_all, fits_in_caches, node_imbalance, remote, shared_by_all,
};
use crate::metrics::memory_traffic::LEAST_FETCHES;
use hither_profile::*;

/// Threads of two nodes spin on a flag, which lies in a structure of 16 pages, and use an array of 100
/// pages that thread 0 touched first, half each. The flag's pages have `of_flag` fetches each, the
/// array's `of_array`.
fn spinning(of_flag: u64, of_array: u64) -> Made {
    let made = Made::new(2);
    let made = made.used(16, 0, &[1_000_000, 700_000], &[0, 300_000]);
    let made = made.fetched(16, of_flag).named("flags", 16);
    let made = made.pages(50, 0, &[1000, 0]).pages(50, 0, &[0, 1000]);
    made.fetched(100, of_array).named("array", 100)
}

#[test]
fn a_spin_is_no_memory_traffic() {
    let made = spinning(2, 640);
    let found = made.find(find_all);
    let about = |object| found.iter().any(|f| f.object == Some(ObjectIx(object)));
    assert!(about(1) && !about(0), "{found:#?}");
    let found = made.finds(remote::find);
    assert_eq!(
        found.title,
        "50 % of the fetches go to another node's memory; 0.0 % need to"
    );
    assert!((found.severity - 0.5).abs() < 0.001, "{found:?}");
    assert_eq!(
        found.evidence.last().unwrap(),
        "A fetch brings a line into a private cache; of the accesses, most of which find it there, \
         50 % are remote."
    );
    let verdict = made.analysis().report.verdict;
    assert!(verdict.data_mapping, "{verdict:?}");
    assert!(
        verdict.reasons[1].contains("E_app of the fetches 100 %"),
        "{verdict:?}"
    );
}

/// The same counts without fetches, as in older profiles: the spin is all there is.
#[test]
fn without_fetches_accesses_decide() {
    let mut made = spinning(2, 640);
    made.profile.meta.options.cache = 0;
    made.finds_nothing(remote::find);
    let found = made.finds(shared_by_all::find);
    assert_eq!(found.object, Some(ObjectIx(0)));
    assert!(
        found.title.ends_with("50 % of its accesses are remote"),
        "{}",
        found.title
    );
    let verdict = made.analysis().report.verdict;
    assert!(
        !verdict.data_mapping && verdict.reasons[1].contains("(E_app 5"),
        "{verdict:?}"
    );
    assert_eq!(made.analysis().report.run.fetches, None);
}

#[test]
fn fetches_decide_once_they_are_enough_to_tell() {
    let unit = |made: &Made| made.analysis().report.run.traffic;
    let made = spinning(0, LEAST_FETCHES / 100);
    assert_eq!(unit(&made), TrafficUnit::Fetches);
    assert_eq!(made.analysis().report.run.fetches, Some(LEAST_FETCHES));
    let mut made = spinning(0, LEAST_FETCHES / 100);
    let mut rows: Vec<_> = made.profile.pages.rows().collect();
    rows.last_mut().unwrap().fetches -= 1;
    made.profile.pages = rows.into();
    assert_eq!(unit(&made), TrafficUnit::Accesses);
}

/// A structure counts from 1 % of the fetches on, however many accesses it has.
#[test]
fn a_structure_needs_a_hundredth_of_the_fetches() {
    let share = |made: &Made| made.find(shared_by_all::find).first().map(|f| f.severity);
    assert_eq!(share(&spinning(62, 1000)), None);
    let found = share(&spinning(64, 1000)).unwrap();
    assert!((0.004..0.006).contains(&found), "{found}");
}

#[test]
fn a_finding_shows_both_shares() {
    let found = spinning(640, 640).finds(shared_by_all::find);
    assert_eq!(
        found.evidence.last().unwrap(),
        "It has 14 % of the run's fetches (lines brought into a private cache), 100 % of its accesses."
    );
}

/// The memory that serves the spin has no more to do for it.
#[test]
fn a_spin_does_not_load_a_node() {
    let spin = |fetches| {
        let made = Made::new(4).pages(1, 0, &[10_000_000; 4]).fetched(1, 20);
        (0..4).fold(made, |made, thread| {
            let mut reads = [0; 4];
            reads[thread as usize] = 1000;
            made.pages(50, thread, &reads).fetched(50, fetches)
        })
    };
    spin(640).finds_nothing(node_imbalance::find);
    let found = spin(0).finds(node_imbalance::find);
    assert!(
        found.title.contains("100 % of the accesses"),
        "{}",
        found.title
    );
}

/// Three quarters of the accesses beyond an even spread go to a quarter of the pages, which belong to no
/// node and have a quarter of the structure's fetches: no memory serves more for them. Where they are fetched
/// less, as locks beside blocks that are filled once, it is hardly any.
#[test]
fn what_is_concentrated_weighs_as_much_as_it_is_fetched() {
    let made = |fetches_of_hot| {
        let made = Made::new(2).used(32, 0, &[4000, 6000], &[100, 100]);
        let made = made.fetched(32, fetches_of_hot);
        let made = made.used(96, 0, &[0, 1], &[0, 0]).fetched(96, 64);
        let made = made.named("counts", 128).pages(128, 0, &[1, 0]);
        made.fetched(128, 64)
    };
    let found = made(64).finds(concentrated::find);
    assert!((found.severity - 0.5 * 0.25).abs() < 0.001, "{found:?}");
    assert!(found
        .title
        .starts_with("100 % of the accesses to counts go to 25 %"));
    made(63).finds_nothing(concentrated::find);
}

/// One fault brings many pages: a run that was observed has used all the memory that it had.
#[test]
fn what_was_observed_fits_in_the_caches_if_its_memory_does() {
    let mut made = Made::new(2).pages(10, 0, &[1, 1]);
    made.cache_bytes = 12 * PAGE_SIZE;
    let with = |memory| OnlineInfo {
        memory,
        ..OnlineInfo::default()
    };
    made.profile.meta.online = Some(with(made.cache_bytes));
    let found = made.finds(fits_in_caches::find);
    assert_eq!(found.kind, FindingKind::FitsInCaches);
    made.profile.meta.online = Some(with(made.cache_bytes + 1));
    made.finds_nothing(fits_in_caches::find);
}
