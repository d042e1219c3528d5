//! Placing the threads and pages of profiles: a constructed one, and real programs traced.
use super::*;
use hither_profile::{
    Object, ObjectRange, PageFirstTouch, PageNo, PageUse, PairComm, Process, ProfileMeta, Region,
    RegionIx, RegionKind, Slice, Thread, ThreadIx, PAGE_SIZE,
};

/// A chain: thread t talks to t + 1. Page t is used by thread t and first touched by 0.
pub fn chain(threads: u32) -> Profile {
    let link = |t: u32| PairComm {
        i: ThreadIx(t),
        j: ThreadIx(t + 1),
        events: 1000,
        ..PairComm::default()
    };
    let page = |t: u32| PageUse {
        page: PageNo(t),
        thread: ThreadIx(t),
        reads: 500,
        writes: 500,
        ..PageUse::default()
    };
    let touch = |t: u32| PageFirstTouch {
        page: PageNo(t),
        ..PageFirstTouch::default()
    };
    let thread = |t: u32| Thread {
        creator: (t > 0).then_some(ThreadIx(0)),
        name: format!("w{t}"),
        reads: 100_000,
        ..Thread::default()
    };
    Profile {
        meta: ProfileMeta {
            command: vec!["./chain".to_owned()],
            processes: vec![Process::default()],
            ..ProfileMeta::default()
        },
        threads: (0..threads).map(thread).collect(),
        slices: vec![Slice::default()],
        comm: (0..threads - 1).map(link).collect(),
        pages: (0..threads).map(page).collect(),
        first_touch: (0..threads).map(touch).collect(),
        regions: vec![Region {
            kind: RegionKind::Brk,
            size: u64::from(threads) * PAGE_SIZE,
            ..Region::default()
        }],
        objects: vec![Object {
            name: "buf".to_owned(),
            ..Object::default()
        }],
        object_ranges: vec![ObjectRange {
            length: u64::from(threads) * PAGE_SIZE,
            ..ObjectRange::default()
        }],
        ..Profile::default()
    }
}

const TWO_NODES: [&str; 3] = ["app.hither", "--topology", "numa:2 core:2 pu:1"];

#[test]
fn what_is_placed_for_this_machine_is_to_be_run() {
    let mut profile = chain(2);
    profile.meta.command = ["./chain", "a b"].map(str::to_owned).to_vec();
    let said = Place::with_profile(&profile).map(&["app.hither", "--force"]);
    let next = "next: hither run -p app.place.json -- ./chain 'a b'\n";
    assert!(said.ends_with(next), "{said}");
}

#[test]
fn neighbours_and_their_pages_share_a_node() {
    let place = Place::with_profile(&chain(4));
    let said = place.map(&[&TWO_NODES[..], &["--explain"]].concat());
    assert!(
        said.contains("next: hither map app.place.json --format env"),
        "{said}"
    );
    assert!(said.lines().all(|l| l.chars().count() <= 80), "{said}");
    assert!(said.contains("buf"), "{said}");
    let placement = place.placement("app.place.json");
    let phase = &placement.phases[0];
    let node = |t: usize| phase.threads[t].node();
    assert_eq!((node(0), node(2)), (node(1), node(3)));
    assert_ne!(node(0), node(3));
    let runs = &phase.pages[0].runs;
    let places: Vec<_> = runs
        .iter()
        .map(|r| (r.first(), r.pages(), r.node()))
        .collect();
    assert_eq!(places, [(0, 2, node(0)), (2, 2, node(2))]);
    assert_eq!(
        placement.threads[3].order, 2,
        "the third that thread 0 made"
    );
    assert_eq!(placement.regions[0].kind, RegionKind::Brk);
    // Links 0-1 and 2-3 inside a node, 1-2 between: 1000 x (2 + 4 + 2) hops.
    assert_eq!(placement.objective.after, 8000);
}

/// Half of the pages are those of a file that processes share: they stay, and count where they are.
#[test]
fn pages_in_the_page_cache_are_not_placed() {
    let mut profile = chain(4);
    let file = Region {
        kind: RegionKind::Shared,
        file: "/data/table".to_owned(),
        ..profile.regions[0].clone()
    };
    profile.regions.push(file);
    let of_file = |t: u32| PageUse {
        region: RegionIx(1),
        page: PageNo(t),
        thread: ThreadIx(t),
        reads: 1000,
        ..PageUse::default()
    };
    let touch = |t: u32| PageFirstTouch {
        region: RegionIx(1),
        page: PageNo(t),
        ..PageFirstTouch::default()
    };
    (0..4).for_each(|t| profile.pages.push(of_file(t)));
    (0..4).for_each(|t| profile.first_touch.push(touch(t)));
    let place = Place::with_profile(&profile);
    let said = place.map(&TWO_NODES);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "Pages of files that are only read, or that processes share, 50.0 % of accesses, stay where the page cache has them.";
    assert!(said.contains(note), "{said}");
    assert!(said.contains("4 pages by"), "{said}");
    let placement = place.placement("app.place.json");
    assert_eq!(placement.regions.len(), 1);
    assert_eq!(placement.regions[0].kind, RegionKind::Brk);
    assert!(said.contains("25.0 % of accesses are remote"), "{said}");
}

#[test]
fn structures_decided_as_a_whole() {
    let place = Place::with_profile(&chain(4));
    let runs = |decision: &str| {
        let structure = format!("buf={decision}");
        place.map(&[&TWO_NODES[..], &["--structure", &structure, "-o", "x"]].concat());
        place.placement("x.place.json").phases[0].pages[0]
            .runs
            .len()
    };
    assert_eq!(runs("one-node"), 1);
    assert_eq!(runs("interleave"), 4);
    assert_eq!(runs("per-page"), 2);
    let unknown = [&TWO_NODES[..], &["--structure", "none=interleave"]].concat();
    place.refuses(&unknown, "no data structure \"none\"");
    let region = [&TWO_NODES[..], &["--structure", "region:1=interleave"]].concat();
    place.refuses(&region, "give region:0 to region:0");
}

#[test]
fn large_pages_are_placed_whole() {
    let place = Place::with_profile(&chain(4));
    place.map(&[&TWO_NODES[..], &["--page-size", "2m"]].concat());
    let placement = place.placement("app.place.json");
    assert_eq!(placement.page_bytes, 2 << 20);
    assert_eq!(placement.phases[0].pages[0].runs.len(), 1);
    assert_eq!(Placement::pages(&placement.phases[0]), 4);
}

#[test]
fn threads_that_hardly_work_take_no_unit() {
    let mut profile = chain(4);
    profile.threads[3].reads = 10;
    let place = Place::with_profile(&profile);
    let said = place.map(&TWO_NODES);
    assert!(
        said.starts_with("3 threads (1 that hardly works is left"),
        "{said}"
    );
    let json = place.json(&[&TWO_NODES[..], &["--threads", "0-3"]].concat());
    assert_eq!(json["threads"], serde_json::json!([0, 1, 2, 3]));
}

/// No pair is worth being close, but all of them may be: what they share then lies near, and caches that others leave
/// idle are lost. Counts do not tell which is more.
#[test]
fn where_all_share_alike_a_recording_is_asked_for() {
    let mut profile = chain(8);
    let pair = |i: u32, j: u32| PairComm {
        i: ThreadIx(i),
        j: ThreadIx(j),
        events: 100_000,
        ..PairComm::default()
    };
    let page_use = |page: u32, thread: u32| PageUse {
        page: PageNo(page),
        thread: ThreadIx(thread),
        reads: 10_000,
        fetches: 1000,
        ..PageUse::default()
    };
    profile.comm = (0..8)
        .flat_map(|i| (i + 1..8).map(move |j| pair(i, j)))
        .collect();
    profile.pages = (0..8)
        .flat_map(|page| (0..8).map(move |thread| page_use(page, thread)))
        .collect();
    profile.meta.duration = 10_000_000_000;
    profile.slices[0].length = profile.meta.duration;
    profile.slices[0].traced = true;
    let place = Place::with_profile(&profile);
    let on = |machine: &str| place.map(&["app.hither", "--topology", machine]);
    let said = on("numa:4 core:8 pu:1");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Nothing is bound on",
        "close together, with 25.0 % of the caches, only a simulation of recorded accesses tells.",
        "next: hither trace --bursts -- ",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert!(place.placement("app.place.json").binds_nothing());
    // They fill all caches in any case.
    let said = on("numa:4 core:2 pu:1");
    assert!(said.contains("Nothing to gain, leave it."), "{said}");
    assert!(said.contains("the same with --force"), "{said}");
}

/// Eight threads each on pages of its own, on a machine with room for all on one node: they were
/// packed there, "24 % less communication" beside a `stat` that finds nothing to gain.
#[test]
fn where_nothing_is_gained_nothing_is_bound() {
    let place = traced(&["independent", "8", "20", "64"], "8");
    let machine = ["app.hither", "--topology", "numa:4 core:8 pu:1"];
    let said = place.map(&machine);
    assert!(said.starts_with("Nothing is bound on"), "{said}");
    assert!(said.contains("Nothing to gain, leave it."), "{said}");
    assert!(place.placement("app.place.json").binds_nothing());
    let output = place.try_map(&[&machine[..], &["--format", "env"]].concat());
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(0), String::new())
    );
    assert!(
        text(&output.stderr).contains("--force"),
        "{}",
        text(&output.stderr)
    );
    let ran = place
        .command(&[HITHER, "run", "-p", "app.place.json", "--", "true"])
        .output();
    let ran = ran.expect("hither");
    assert!(ran.status.success());
    assert!(
        text(&ran.stderr).contains("binds nothing"),
        "{}",
        text(&ran.stderr)
    );
    let check = [HITHER, "check", "app.hither", "--max-remote", "100%"];
    let checked = place.command(&check).output().expect("hither");
    assert!(
        text(&checked.stdout).contains("note  verdict: "),
        "{}",
        text(&checked.stdout)
    );
    let phased = place.map(&[&machine[..], &["--phases"]].concat());
    assert!(phased.starts_with("Nothing is bound on"), "{phased}");
    assert!(
        phased.contains("One placement holds") || phased.contains("No phase"),
        "{phased}"
    );
    // All the same, over all nodes: two of the eight that work on each.
    for phases in [&[][..], &["--phases"]] {
        place.map(&[&machine[..], &["--force"], phases].concat());
        let placement = place.placement("app.place.json");
        let mut on_node = [0; 4];
        for thread in &placement.phases[0].threads {
            on_node[thread.node().at()] += 1;
        }
        assert_eq!(on_node, [2; 4], "{phases:?}");
    }
}

/// Threads that share enough but need more cache than a node has are not packed on it.
#[test]
fn threads_are_not_packed_where_their_data_does_not_fit() {
    let ring = traced(&["ring", "8", "300", "512"], "8");
    let nodes = |cache: &str| {
        let machine = format!("numa:4 l3:1(size={cache}) core:8 pu:1");
        ring.map(&["app.hither", "--topology", &machine]);
        let placement = ring.placement("app.place.json");
        let threads = placement.phases[0].threads.iter();
        threads
            .map(|t| t.node())
            .collect::<std::collections::BTreeSet<_>>()
            .len()
    };
    assert_eq!(nodes("64MB"), 1);
    assert_eq!(nodes("16kB"), 4);
}

/// Traces a program of `workloads/` with some threads, in `app.hither`.
fn traced(line: &[&str], threads: &str) -> Place {
    let program = workload(line[0]);
    let program = program.to_str().expect("a path");
    let place = Place::new();
    let line = [
        &[HITHER, "trace", "-q", "-o", "app", "--", program],
        &line[1..],
    ]
    .concat();
    let output = place
        .command(&line)
        .env("OMP_NUM_THREADS", threads)
        .output();
    let output = output.expect("hither");
    assert!(output.status.success(), "{}", text(&output.stderr));
    place
}

#[test]
fn a_ring_of_real_threads() {
    let place = traced(&["ring", "8", "300", "512"], "8");
    let args = [
        "app.hither",
        "--topology",
        "numa:4 core:2 pu:1",
        "--explain",
    ];
    let json = place.json(&args);
    // Of eight equal links four can be inside the four nodes.
    let levels = json["explanation"]["after"]["communication"]
        .as_array()
        .expect("levels");
    let node = levels.iter().find(|l| l["level"] == "node").expect("node");
    let inside = node["inside"].as_f64().expect("a share");
    assert!((0.4..0.6).contains(&inside), "{inside}");
}

#[test]
fn a_program_whose_master_touches_everything() {
    let place = traced(&["ondes", "32", "6"], "4");
    let args = [
        "app.hither",
        "--topology",
        "numa:4 core:1 pu:1",
        "--explain",
    ];
    let json = place.json(&args);
    let share = |at: &str| json["explanation"][at]["remote"].as_f64().expect("a share");
    assert!(share("before") > 0.6, "{}", share("before"));
    assert!(share("after") < 0.1, "{}", share("after"));
    // And on this machine.
    place.map(&["app.hither", "--force"]);
    assert_eq!(place.placement("app.place.json").phases[0].threads.len(), 4);
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&TWO_NODES[..], more].concat()
}

/// It once became a file named `-.place.json`, and with --format one named `-`.
#[test]
fn a_placement_can_go_to_standard_output() {
    let place = Place::with_profile(&chain(4));
    place.map(&TWO_NODES);
    let file = std::fs::read_to_string(place.path("app.place.json")).expect("a file");
    assert_eq!(place.map(&with(&["-o", "-"])), file);
    let environment = place.map(&with(&["--format", "env"]));
    assert_eq!(
        place.map(&with(&["--format", "env", "-o", "-"])),
        environment
    );
    let stored = ["app.place.json", "--format", "env", "-o", "-"];
    assert_eq!(place.map(&stored), environment);
    assert_eq!(place.files(), ["app.hither", "app.place.json"]);
    place.refuses(&with(&["-o", "-", "--json"]), "leave --json away");
    place.refuses(&with(&["-o", "-", "--explain"]), "leave --explain away");
}

/// What `stat` writes is placed as the profile is, at the same distance.
#[test]
fn the_matrix_of_a_profile_is_read_again() {
    let place = Place::with_profile(&chain(8));
    let stat = [HITHER, "stat", "app.hither", "--matrix", "m.csv"];
    let said = place.command(&stat).output().expect("hither");
    assert!(said.status.success(), "{}", text(&said.stderr));
    let machine = ["--topology", "numa:2 core:4 pu:1", "--policy", "locality"];
    let of = |args: &[&str]| place.json(&[args, &machine].concat())["objective"].clone();
    assert_eq!(of(&["--matrix", "m.csv"]), of(&["app.hither"]));
    assert_eq!(
        place.command(&stat).output().expect("hither").status.code(),
        Some(2),
        "it exists"
    );
    let mut print = place.command(&[HITHER, "stat", "app.hither", "--matrix", "-"]);
    let printed = print.output().expect("hither");
    let written = std::fs::read(place.path("m.csv")).expect("m.csv");
    assert_eq!((printed.stdout, printed.stderr), (written, Vec::new()));
    assert_eq!(place.files(), ["app.hither", "m.csv"]);
}

/// Four threads access memory as much as four others that compute ten times as much: by accesses two of
/// these share each of two PUs.
#[test]
fn load_is_counted_in_instructions() {
    let mut profile = chain(8);
    for (at, thread) in profile.threads.iter_mut().enumerate() {
        thread.instructions = if at % 4 < 2 { 10_000_000 } else { 1_000_000 };
    }
    let place = Place::with_profile(&profile);
    let pus = place.pus(&[
        "app.hither",
        "--topology",
        "core:4 pu:1",
        "--policy",
        "load-balance",
    ]);
    let mut busy = [0, 1, 4, 5].map(|t| pus[t]);
    busy.sort_unstable();
    assert_eq!(busy, [0, 1, 2, 3], "one on each: {pus:?}");
}
