//! Whose pages are: of the one that works, of what had the memory before.
use super::data::{blocks, close, shared};
use super::Made;
use crate::metrics::findings::{concentrated, first_touch, node_imbalance, read_mostly, remote};
use hither_profile::*;

/// One thread works for three that hardly do: it makes most accesses to every page because it makes most of all,
/// and a structure that all use is none that belongs to nodes. Its twin has the same E_app, page by page another
/// thread's.
#[test]
fn the_pages_of_one_that_works_alone_do_not_belong_to_nodes() {
    let works = [80, 7, 7, 6];
    let alone = Made::new(4).used(64, 1, &works, &works).named("grid", 64);
    let pages = alone.analysis().report.pages.expect("pages").traffic;
    close(pages.best, 0.8);
    close(pages.by_work, 0.8);
    let verdict = alone.analysis().report.verdict;
    assert!(!verdict.data_mapping, "{verdict:?}");
    assert!(
        verdict.reasons[1].starts_with("Data: pages belong to no node"),
        "{verdict:?}"
    );
    let found = alone.finds(first_touch::find);
    assert!(found.fixes[0].copy.contains("grid=interleave"), "{found:?}");
    assert!(
        found.evidence[2].ends_with("(E_app 0.80; 0.80 comes of how much each node works)."),
        "{found:?}"
    );
    alone.finds_nothing(remote::find);
    // Where the one that works touches first, dealing out would take from it what it has.
    let near = Made::new(4).used(64, 0, &works, &works).named("grid", 64);
    near.finds_nothing(first_touch::find);
    let each = (0..4).fold(Made::new(4), |made, t| {
        let mut own = works;
        own.rotate_right(t);
        made.used(16, 1, &own, &own)
    });
    let each = each.named("grid", 64);
    let pages = each.analysis().report.pages.expect("pages").traffic;
    close(pages.best, 0.8);
    close(pages.by_work, 0.25);
    assert!(each.analysis().report.verdict.data_mapping);
    let found = each.finds(first_touch::find);
    assert!(
        found.evidence[1].starts_with("Its pages belong to one node each"),
        "{found:?}"
    );
    each.finds(remote::find);
}

/// What one thread uses alone is its own, however much it works.
#[test]
fn the_pages_of_the_only_one_that_works_are_its_own() {
    let made = Made::new(4)
        .pages(64, 1, &[100, 0, 0, 0])
        .pages(16, 1, &[0, 1, 1, 1]);
    let verdict = made.named("grid", 80).analysis().report.verdict;
    assert!(verdict.data_mapping, "{verdict:?}");
}

/// The memory of a block that was freed is another's later: hot pages that are not its own say nothing of it.
#[test]
fn pages_that_are_hot_for_another_are_not_concentrated() {
    let hot = Made::new(4).used(16, 0, &[100; 4], &[100; 4]);
    let mut made = hot.used(64, 0, &[1; 4], &[1; 4]).named("grid", 80);
    made.finds(concentrated::find);
    // As much less as `other`, which had the hot ones, has.
    let own = &mut made.profile.objects[0];
    own.reads /= 4;
    own.writes /= 4;
    made.finds_nothing(concentrated::find);
}

/// The line that put the pages where they are belongs to what had the memory before.
#[test]
fn the_first_touch_of_memory_that_was_given_back_is_not_the_line_to_change() {
    let told = |allocates: &str| {
        let mut made = shared(|_| 0, 10, 10).named("earlier", 64);
        made.profile.objects[1].function = "prefix_sum".to_owned();
        made.profile.objects[0].function = allocates.to_owned();
        made.profile.first_touch_lines = vec![FirstTouchLine {
            file: "/src/app.c".to_owned(),
            line: 7,
            function: "fill".to_owned(),
            path: "main (app.c:20);prefix_sum (app.c:9);fill (app.c:7)".to_owned(),
            pages: 64,
            ..FirstTouchLine::default()
        }];
        let found = made.find(first_touch::find);
        let grid = found.iter().find(|f| f.object == Some(ObjectIx(0)));
        let evidence = grid.expect("a finding").evidence.clone();
        evidence
            .into_iter()
            .find(|e| e.starts_with("The first touch is"))
            .expect("a line")
    };
    assert!(told("solve").contains(", when the memory was that of earlier. It was called"));
    assert!(told("main").contains(": that is the line to change. It was called"));
}

/// Code without source, as a compiled extension of Python has, touched the others.
#[test]
fn a_line_that_touched_a_few_of_the_pages_first_is_not_the_line_to_change() {
    let told = |pages: u64| {
        let mut made = blocks(|_| 0);
        made.profile.first_touch_lines = vec![FirstTouchLine {
            file: "/src/set.c".to_owned(),
            line: 7,
            function: "resize".to_owned(),
            path: "main (app.c:20);resize (set.c:7)".to_owned(),
            pages,
            ..FirstTouchLine::default()
        }];
        let evidence = made.finds(first_touch::find).evidence;
        evidence.into_iter().find(|e| e.contains("set.c:7"))
    };
    assert_eq!(told(3), None);
    assert_eq!(
        told(16).as_deref(),
        Some(
            "25 % of the first touches are at set.c:7, in resize, outside of any parallel region, the \
             others elsewhere. It was called from main (app.c:20)."
        )
    );
    let most = told(32).expect("a line");
    assert!(most.contains(": that is the line to change."), "{most}");
}

/// A region that OpenMP runs is one also where a single thread has all of its rounds.
#[test]
fn a_region_that_one_thread_does_alone_is_no_place_outside_of_regions() {
    let mut made = blocks(|_| 0);
    made.profile.first_touch_lines = vec![FirstTouchLine {
        file: "/src/app.c".to_owned(),
        line: 7,
        function: "fill".to_owned(),
        path: "main (app.c:20);GOMP_parallel (libgomp.so.1);fill (app.c:7)".to_owned(),
        pages: 64,
        ..FirstTouchLine::default()
    }];
    let found = made.finds(first_touch::find);
    let said = found.evidence.last().expect("a line");
    assert!(
        said.contains(", in a parallel region that one thread does alone: that is"),
        "{said}"
    );
}

/// Stockfish allocates its table of positions three times, and works with the last one.
#[test]
fn a_block_that_is_used_more_than_others_of_its_site_is_no_hot_stretch() {
    let cold = Made::new(4).used(128, 0, &[1; 4], &[1; 4]);
    let mut made = cold.used(64, 0, &[100; 4], &[100; 4]).named("grid", 192);
    made.finds(concentrated::find);
    made.profile.objects[0].count = 3;
    made.finds_nothing(concentrated::find);
}

/// From E_app 2/3 on its pages belong to one node each, but where that node makes as much of everything.
#[test]
fn what_is_read_by_one_node_needs_no_copy() {
    let alone = |most: u64| Made::new(4).pages(64, 0, &[most, 100 - most]);
    let beside = |most: u64| {
        alone(most)
            .named("grid", 64)
            .pages(64, 0, &[100 - most, most])
    };
    beside(60).finds(read_mostly::find);
    beside(70).finds_nothing(read_mostly::find);
    let found = alone(70).named("grid", 64).finds(read_mostly::find);
    assert!(
        found.title.ends_with("saves 30 % remote accesses"),
        "{found:?}"
    );
}

/// XSBench on two nodes, of which one has two thirds of the work: its table lies on one of them as well as on the other.
#[test]
fn first_touch_is_not_right_for_pages_of_all() {
    let sentence = |first, second| {
        let made = Made::new(2).pages(32, 0, first).pages(32, 0, second);
        made.analysis().report.verdict.sentence
    };
    let right = "nothing to gain, first touch is already right";
    assert_eq!(
        sentence(&[70, 30], &[70, 30]),
        "suitable for neither thread mapping nor data mapping; but one node's memory serves 100 % of the accesses, of \
         which others could serve a part"
    );
    assert_eq!(sentence(&[97, 3], &[95, 5]), right);
}

/// A matrix product that the main thread does most of: its pages lie where most of the work is, but the other node's
/// threads use them too. To deal them out would make remote half of what is local.
#[test]
fn the_verdict_says_that_one_memory_serves_most() {
    let shared = |first, second| Made::new(2).pages(100, 0, &[first, second]).named("b", 100);
    let made = shared(80, 20);
    let found = made.finds(node_imbalance::find);
    assert_eq!(found.fixes.len(), 1, "{found:?}");
    let verdict = made.analysis().report.verdict;
    assert_eq!(
        verdict.sentence,
        "suitable for neither thread mapping nor data mapping; but one node's memory serves 100 % of the accesses, of \
         which others could serve a part"
    );
    assert_eq!(
        verdict.reasons[1],
        "Data: 100 % of accesses go to pages that first touch puts on the right node; moving pages makes hardly more \
         of them local. But the memory of node 0 serves 100 % of the accesses, 2.0 times its share: others could serve \
         20 % without making any remote (`hither map --data balanced`)."
    );
    // As many are made remote as are taken off the busiest memory, and more.
    assert_eq!(shared(75, 25).finds(node_imbalance::find).fixes.len(), 2);
    let quiet = shared(91, 9);
    quiet.finds_nothing(node_imbalance::find);
    let sentence = quiet.analysis().report.verdict.sentence;
    assert_eq!(sentence, "nothing to gain, first touch is already right");
}
