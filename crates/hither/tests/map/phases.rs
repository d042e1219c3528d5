//! A program whose partners change: a placement for each phase.
use super::*;
use hither_profile::{
    PageNo, PageUse, PairComm, Process, ProfileMeta, Region, RegionKind, Slice, SliceIx, Thread,
    ThreadIx, PAGE_SIZE,
};

/// Sixty slices of 10 ms in which 0-1 and 2-3 talk, then sixty in which 0-2 and 1-3 do.
/// Page 0 is used by thread 0 and then by thread 3.
fn changing() -> Profile {
    let pairs = |s: u32| match s < 60 {
        true => [(0, 1), (2, 3)],
        false => [(0, 2), (1, 3)],
    };
    let comm = (0..120).flat_map(|s| {
        pairs(s).map(|(i, j)| PairComm {
            slice: SliceIx(s),
            i: ThreadIx(i),
            j: ThreadIx(j),
            events: 5000,
            ..PairComm::default()
        })
    });
    let page = |(slice, thread)| PageUse {
        slice: SliceIx(slice),
        page: PageNo(0),
        thread: ThreadIx(thread),
        reads: 1000,
        ..PageUse::default()
    };
    Profile {
        meta: ProfileMeta {
            processes: vec![Process::default()],
            comm_slices: 1,
            page_slices: 60,
            ..ProfileMeta::default()
        },
        threads: vec![
            Thread {
                reads: 1_000_000,
                ..Thread::default()
            };
            4
        ],
        slices: (0..120u32)
            .map(|s| Slice {
                start: u64::from(s) * 10_000_000,
                length: 10_000_000,
                heterogeneity: if s < 60 { 1875.0 } else { 900.0 },
                sync: [4, 0, 0, 0],
                threads: 4,
                traced: true,
                ..Slice::default()
            })
            .collect(),
        comm: comm.collect(),
        pages: [(0, 0), (60, 3)].map(page).into_iter().collect(),
        regions: vec![Region {
            kind: RegionKind::Brk,
            size: PAGE_SIZE,
            ..Region::default()
        }],
        ..Profile::default()
    }
}

const MACHINE: [&str; 3] = ["app.hither", "--topology", "numa:2 core:2 pu:1"];

#[test]
fn threads_and_pages_follow() {
    let place = Place::with_profile(&changing());
    let how = ["--phases", "--thread-interval", "100ms"];
    let said = place.map(&[&MACHINE[..], &how, &["-o", "x"]].concat());
    assert!(said.contains("from 0.60 s: "), "{said}");
    let placement = place.placement("x.place.json");
    let [first, second] = &placement.phases[..] else {
        panic!("{} phases", placement.phases.len())
    };
    let node = |phase: &hither_profile::PlacedPhase, t: usize| phase.threads[t].node();
    assert_eq!(node(first, 0), node(first, 1));
    assert_ne!(node(first, 0), node(first, 2));
    assert_eq!(node(second, 0), node(second, 2));
    assert_ne!(node(second, 0), node(second, 1));
    assert_eq!((second.start, second.sync), (600_000_000, [240, 0, 0, 0]));
    // The page is where its user is, and moves if that is another node.
    let page = |phase: &hither_profile::PlacedPhase| {
        let places = phase.pages.first();
        places.map(|region| region.runs[0].node())
    };
    let (then, later) = (node(first, 0), node(second, 3));
    assert_eq!(page(first), Some(then));
    assert_eq!(page(second), Some(later).filter(|node| *node != then));
    assert_eq!(placement.policy.options["thread-interval"], "100000000ns");
}

#[test]
fn phases_that_are_not_worth_it() {
    let place = Place::with_profile(&changing());
    let phases = |args: &[&str]| {
        place.map(&[&MACHINE[..], args, &["-o", "x"]].concat());
        place.placement("x.place.json").phases.len()
    };
    assert_eq!(phases(&[]), 1, "only where asked for");
    let opt = |args: &[&str]| phases(&[&["--phases", "--rule", "opt"], args].concat());
    assert_eq!(opt(&[]), 2);
    assert_eq!(
        opt(&["--min-amount", "1e9", "--page-interval", "0s"]),
        2,
        "the page"
    );
    assert_eq!(opt(&["--min-heterogeneity", "2500"]), 2, "the page");
    assert_eq!(phases(&["--phases"]), 2);
    assert_eq!(
        phases(&["--phases", "--phase-difference", "2", "--page-move", "1000"]),
        1
    );
    // 60 slices of two pairs with 5000 events are 2 hops closer: 1.2 million.
    assert_eq!(phases(&["--phases", "--page-move", "1000"]), 2);
    let dear = ["--phases", "--page-move", "1000", "--thread-move", "300000"];
    assert_eq!(phases(&dear), 1);
}

/// The summary, `--json` and `--explain` are of all stages: pairs are together in both, where one
/// placement leaves those of one phase apart. They were those of the first stage's threads.
#[test]
fn what_phases_bring_stands_beside_one_placement() {
    let place = Place::with_profile(&changing());
    let args = [&MACHINE[..], &["--phases", "--page-move", "1"]].concat();
    let found = place.json(&args);
    // 120 slices of two pairs with 5000 events at 2 hops, or half of them at 4.
    assert_eq!(found["objective"], 2 * 120 * 2 * 5000);
    let one = &found["one_placement"];
    assert_eq!(one["objective"], 3 * 120 * 2 * 5000);
    assert_eq!(one["remote"], 0.5);
    let explained = place.json(&[&args[..], &["--explain"]].concat());
    let after = &explained["explanation"]["after"];
    assert_eq!(after["objective"], found["objective"]);
    assert_eq!(after["remote"], 0.0);
    let said = place.map(&[&args[..], &["-o", "x"]].concat());
    assert!(
        said.contains("One placement for the whole run: objective 3.60 M, 50.0 %"),
        "{said}"
    );
}

/// As with `--sample`: one slice of four was traced.
#[test]
fn too_few_traced_slices_for_phases_are_told_of() {
    let mut profile = changing();
    profile.meta.options.sample = Some(0.25);
    for (at, slice) in profile.slices.iter_mut().enumerate() {
        slice.traced = at % 4 == 0;
    }
    let place = Place::with_profile(&profile);
    let said = place.map(&[&MACHINE[..], &["--phases", "-o", "x"]].concat());
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted =
        "No phases: 30 slices were traced, at least 100 are needed to tell phases apart; trace without \
                  --sample, or longer.";
    assert!(words.contains(wanted), "{said}");
}
