//! Findings about where pages lie, who communicates and when.
use crate::run::{found, traced, traced_with, Traced, HITHER, MACHINE};
use hither_profile::{Finding, FindingKind};
use std::process::Command;

/// Thread 0 touches everything first; with -p each thread its part. What a thread uses is twice as large as a private cache: with
/// a grid of 64 it was as large, so that chance decided how much of it was fetched.
const BY_ONE: &str = "ondes 80 20";
const BY_ALL: &str = "ondes -p 80 20";

/// What is found with a placement for [`MACHINE`] that `hither map` makes with these options.
fn placed(traced: &Traced, options: &[&str]) -> Vec<Finding> {
    let name = format!("{}.place.json", options.join("-").trim_start_matches('-'));
    let file = traced.path.with_extension(name);
    let out = Command::new(HITHER)
        .arg("map")
        .arg(&traced.path)
        .args(["--topology", MACHINE, "-o"])
        .arg(&file)
        .args(options)
        .output()
        .expect("hither");
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{errors}");
    let file = file.to_string_lossy();
    found(&traced.path, &["--topology", MACHINE, "-p", &file])
}

#[track_caller]
fn silent(findings: &[Finding], kinds: &[FindingKind]) {
    let found: Vec<_> = findings
        .iter()
        .filter(|f| kinds.contains(&f.kind))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn remote_accesses_of_what_one_thread_touches_first() {
    let found = traced(BY_ONE).of(FindingKind::RemoteAccesses);
    let [remote] = found.as_slice() else {
        panic!("{found:#?}");
    };
    // Three of four blocks are used by others than the master; how often borders are fetched
    // beside them depends on who runs when.
    assert!((0.5..0.8).contains(&remote.severity), "{remote:#?}");
    // The three with most fetches, of four that have alike.
    let grids = ["past", "present", "future", "speed"];
    let named = grids.map(|grid| remote.evidence[2].contains(grid));
    assert_eq!(
        named.iter().filter(|named| **named).count(),
        3,
        "{remote:#?}"
    );
    silent(&traced(BY_ALL).findings(), &[FindingKind::RemoteAccesses]);
}

#[test]
fn one_memory_that_serves_all() {
    let found = traced(BY_ONE).of(FindingKind::NodeImbalance);
    let [imbalance] = found.as_slice() else {
        panic!("{found:#?}");
    };
    // The same fetches as are remote.
    assert!((0.5..0.8).contains(&imbalance.severity), "{imbalance:#?}");
    silent(&traced(BY_ALL).findings(), &[FindingKind::NodeImbalance]);
}

/// The fixes do what they say.
#[test]
fn with_a_placement_accesses_are_local_and_memories_serve_alike() {
    let kinds = [FindingKind::RemoteAccesses, FindingKind::NodeImbalance];
    silent(&placed(traced(BY_ONE), &[]), &kinds);
    silent(&placed(traced(BY_ONE), &["--data", "balanced"]), &kinds);
    // Dealt out, memories serve alike and accesses are as remote as before.
    let dealt_out = placed(traced(BY_ONE), &["--data", "interleave"]);
    silent(&dealt_out, &kinds[1..]);
    assert!(
        dealt_out.iter().any(|f| f.kind == kinds[0]),
        "{dealt_out:#?}"
    );
}

/// Events per access of the run.
fn communicating(run: &Traced) -> f64 {
    let accesses: u64 = run.profile.threads.iter().map(|t| t.accesses()).sum();
    run.profile.matrix().total() as f64 / accesses as f64
}

#[test]
fn a_master_that_talks_to_all() {
    let kind = FindingKind::CommunicationImbalance;
    let run = traced("master 4 2000 128");
    let found = run.of(kind);
    let [imbalance] = found.as_slice() else {
        panic!("{found:#?}");
    };
    // B_comm is 100 %, (T - 2) / 2T of the communication is above the mean.
    let share = imbalance.severity / communicating(run);
    assert!((0.23..0.27).contains(&share), "{imbalance:#?}");
    assert!(imbalance.title.contains("thread 0") || imbalance.title.contains("Thread 0"));
    for twin in ["ring 4 2000 128", "pipeline 4 2000 128"] {
        silent(&traced(twin).findings(), &[kind]);
    }
}

/// A second or so of neighbours, then one of pairs that are far apart.
#[test]
fn pairs_that_change() {
    let kind = FindingKind::UnstablePhases;
    // They wait for one another most of the time.
    let traced = |line| traced_with(line, &[], "--slice-clock wall");
    let run = traced("pairs 8 2 40000 64");
    let found = run.of(kind);
    let [unstable] = found.as_slice() else {
        panic!("{found:#?}");
    };
    let share = unstable.severity / communicating(run);
    assert!((0.2..=0.5).contains(&share), "{unstable:#?}");
    silent(&traced("pairs 8 1 80000 64").findings(), &[kind]);
}

/// 16 MiB, on a machine with more and with less cache.
#[test]
fn a_problem_that_fits_into_the_caches() {
    let fits = |l2: &str| {
        let machine = format!("node:4 l2:1(size={l2}) core:1 pu:1");
        let found = traced(BY_ONE).findings_on(&machine);
        let kinds: Vec<FindingKind> = found.iter().map(|f| f.kind).collect();
        if let Some(at) = kinds.iter().position(|k| *k == FindingKind::FitsInCaches) {
            assert_eq!(at + 1, kinds.len(), "it is the last: {kinds:?}");
            silent(
                &found,
                &[FindingKind::RemoteAccesses, FindingKind::NodeImbalance],
            );
        }
        kinds.contains(&FindingKind::FitsInCaches)
    };
    assert!(fits("8MB"));
    assert!(!fits("2MB"));
    // A small problem fits where the large one does not.
    let small = traced("ondes 8 2").findings_on("node:4 l2:1(size=1MB) core:1 pu:1");
    assert!(small.iter().any(|f| f.kind == FindingKind::FitsInCaches));
}
