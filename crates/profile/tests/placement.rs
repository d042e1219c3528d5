//! Placements on disk: what is written is read back, whatever is wrong is said, and
//! nothing that is no placement is replaced.
use hither_profile::*;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

/// Two threads on two nodes, two pages of a heap apart.
fn placement() -> Placement {
    Placement {
        format: PLACEMENT_FORMAT,
        writer: "0.1.0".to_owned(),
        source: PlacementSource {
            file: "app.hither".to_owned(),
            command: vec!["./app".to_owned(), "\"quoted\"".to_owned()],
        },
        machine: MachineIdentity {
            name: "node:2 core:1 pu:1".to_owned(),
            fingerprint: "0123456789abcdef".to_owned(),
            units: 2,
            cores: 2,
            nodes: vec![0, 1],
        },
        policy: PolicyChoice {
            threads: "compact".to_owned(),
            data: Some("most-access".to_owned()),
            cost: "hops".to_owned(),
            seed: 7,
            capacity: 1,
            options: [("mix".to_owned(), "0.5".to_owned())].into(),
        },
        objective: MappingObjective {
            before: 10,
            after: u64::MAX,
            fraction_bits: 0,
        },
        why: "it is an example".to_owned(),
        processes: vec![ProcessIdentity {
            executable: "./app".to_owned(),
            ..ProcessIdentity::default()
        }],
        threads: vec![
            ThreadIdentity::default(),
            ThreadIdentity {
                name: "worker".to_owned(),
                creator: Some(ThreadIx(0)),
                ..ThreadIdentity::default()
            },
        ],
        page_bytes: PAGE_SIZE,
        regions: vec![RegionIdentity {
            kind: RegionKind::Brk,
            size: 10 * PAGE_SIZE,
            ..RegionIdentity::default()
        }],
        phases: vec![PlacedPhase {
            sync: [1, 2, 3, 4],
            threads: vec![
                ThreadPlace(ThreadIx(0), PuIx(0), 0, NodeIx(0)),
                ThreadPlace(ThreadIx(1), PuIx(1), 1, NodeIx(1)),
            ],
            pages: vec![RegionPlacement {
                region: 0,
                runs: vec![PageRun(0, 4, NodeIx(0)), PageRun(9, 1, NodeIx(1))],
            }],
            ..PlacedPhase::default()
        }],
    }
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("tempdir");
    let path = folder.path().join("app.place.json");
    (folder, path)
}

/// What reading `text` says.
fn error_of(text: &str) -> String {
    let (_folder, path) = folder();
    fs::write(&path, text).expect("write");
    let error = read_placement(&path).expect_err("an error").to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("app.place.json"), "{error}");
    error
}

#[test]
fn round_trip() {
    let (folder, path) = folder();
    write_placement(&placement(), &path).expect("write");
    assert_eq!(read_placement(&path).expect("read"), placement());
    let names: Vec<_> = fs::read_dir(folder.path()).expect("list").collect();
    assert_eq!(names.len(), 1, "no temporary file is left");
    let text = fs::read_to_string(&path).expect("text");
    assert!(text.contains("\n        [1,1,1,1]\n"), "{text}");
}

#[test]
fn a_placement_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = folder();
    write_placement(&placement(), &path).expect("write");
    let mode = path.metadata().expect("mode").permissions().mode();
    assert_eq!(mode & 0o177, 0, "{mode:o}");
}

fn folder_with(text: &str) -> (tempfile::TempDir, PathBuf) {
    let (folder, path) = folder();
    fs::write(&path, text).expect("write");
    (folder, path)
}

#[test]
fn only_placements_are_replaced() {
    let (_folder, path) = folder();
    write_placement(&placement(), &path).expect("write");
    write_placement(&placement(), &path).expect("replace");
    for text in ["", "hello", "{}", "{\"format\": 1}", "[1]"] {
        let (_folder, path) = folder_with(text);
        let error = write_placement(&placement(), &path).expect_err("refused");
        assert!(
            error.to_string().contains("it was left as it is"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).expect("text"), text);
        assert!(check_placement_destination(&path).is_err());
    }
    let (folder, path) = folder();
    fs::create_dir(&path).expect("mkdir");
    assert!(write_placement(&placement(), &path).is_err());
    assert!(write_placement(&placement(), &folder.path().join("none/x")).is_err());
}

#[test]
fn a_link_stays_a_link() {
    let (folder, path) = folder();
    write_placement(&placement(), &path).expect("write");
    let link = folder.path().join("link.place.json");
    std::os::unix::fs::symlink(&path, &link).expect("link");
    write_placement(&placement(), &link).expect("write");
    assert!(link.symlink_metadata().expect("link").is_symlink());
    std::os::unix::fs::symlink("nowhere", folder.path().join("broken")).expect("link");
    assert!(check_placement_destination(&folder.path().join("broken")).is_err());
}

#[test]
fn what_is_no_placement() {
    let check = |text: &str, part: &str| {
        let error = error_of(text);
        assert!(error.contains(part), "{error}");
    };
    check("", "is not a placement");
    check("{\"format\": 1}", "is not a placement");
    check("{\"format\": \"x\", \"phases\": []}", "is not a placement");
    check("{\"format\": 2, \"phases\": []}", "has placement format 2");
    check("{\"format\": 0, \"phases\": []}", "has placement format 0");
    check(
        "{\"format\": 1, \"phases\": []}",
        "is damaged: missing field",
    );
    check(&"[".repeat(100_000), "is not a placement");
    assert!(read_placement(Path::new("/nonexistent.place.json")).is_err());
    assert!(read_placement(Path::new("/dev/zero")).is_err());
    assert!(read_placement(Path::new("/")).is_err());
}

/// Reads a placement in which something was changed.
fn check_damaged(change: impl Fn(&mut Placement), part: &str) {
    let mut placement = placement();
    change(&mut placement);
    let text = serde_json::to_string(&placement).expect("json");
    let error = error_of(&text);
    assert!(
        error.contains("is damaged") && error.contains(part),
        "{error}"
    );
}

#[test]
fn intervals_are_times() {
    let mut choice = PolicyChoice::default();
    assert_eq!(choice.phase_intervals(), Ok(PhaseIntervals::default()));
    let intervals = PhaseIntervals {
        threads: 1000,
        pages: 7,
    };
    choice.set_phase_intervals(intervals);
    assert_eq!(choice.options["thread-interval"], "1000ns");
    assert_eq!(choice.phase_intervals(), Ok(intervals));
    let with = |text: &'static str| {
        move |p: &mut Placement| {
            let options = &mut p.policy.options;
            options.insert("page-interval".to_owned(), text.to_owned());
        }
    };
    check_damaged(with("10s"), "page-interval is \"10s\"");
    check_damaged(with("-1ns"), "1000ns");
}

#[test]
fn indices_out_of_range() {
    check_damaged(
        |p| p.phases[0].threads[1].0 = ThreadIx(2),
        "phases[0].threads[1][0] is 2",
    );
    check_damaged(
        |p| p.phases[0].threads[1].1 = PuIx(2),
        "phases[0].threads[1][1] is 2",
    );
    check_damaged(
        |p| p.phases[0].threads[1].2 = u32::MAX,
        "phases[0].threads[1][2]",
    );
    check_damaged(
        |p| p.phases[0].threads[1].3 = NodeIx(2),
        "phases[0].threads[1][3] is 2",
    );
    check_damaged(|p| p.phases[0].threads[1].0 = ThreadIx(0), "not in order");
    check_damaged(|p| p.phases[0].pages[0].region = 1, "region is 1");
    check_damaged(
        |p| p.phases[0].pages[0].runs[1].0 = 10,
        "runs[1] is 1 pages from 10",
    );
    check_damaged(|p| p.phases[0].pages[0].runs[1].1 = u64::MAX, "runs[1]");
    check_damaged(|p| p.phases[0].pages[0].runs[1].1 = 0, "runs[1] is 0 pages");
    check_damaged(|p| p.phases[0].pages[0].runs[1].0 = 3, "overlaps");
    check_damaged(
        |p| p.phases[0].pages[0].runs[1].2 = NodeIx(2),
        "runs[1][2] is 2",
    );
    check_damaged(
        |p| p.regions[0].process = ProcessIx(1),
        "regions[0].process is 1",
    );
    check_damaged(
        |p| p.regions[0].thread = Some(ThreadIx(9)),
        "regions[0].thread is 9",
    );
    check_damaged(|p| p.regions[0].size = u64::MAX, "regions[0].size");
    check_damaged(
        |p| p.threads[1].process = ProcessIx(1),
        "threads[1].process is 1",
    );
    check_damaged(
        |p| p.threads[1].creator = Some(ThreadIx(5)),
        "threads[1].creator is 5",
    );
    check_damaged(
        |p| p.processes[0].parent = Some(ProcessIx(1)),
        "processes[0].parent is 1",
    );
    check_damaged(|p| p.page_bytes = 5, "page_bytes is 5");
    check_damaged(|p| p.phases.clear(), "no phase");
    check_damaged(|p| p.machine.units = u32::MAX, "machine.units");
    check_damaged(
        |p| {
            let mut earlier = p.phases[0].clone();
            p.phases[0].start = 5;
            earlier.start = 1;
            p.phases.push(earlier);
        },
        "not in order of start",
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever byte of a file is changed: it is read or there is one sentence.
    #[test]
    fn damage_never_panics(at in 0usize..1400, byte in any::<u8>()) {
        let mut text = serde_json::to_vec(&placement()).expect("json");
        let at = at % text.len();
        text[at] = byte;
        let (_folder, path) = folder();
        fs::write(&path, &text).expect("write");
        if let Err(error) = read_placement(&path) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    /// Runs pushed in order say the same as page by page.
    #[test]
    fn runs_are_what_was_pushed(nodes in proptest::collection::vec(proptest::option::of(0u32..3), 0..40)) {
        let mut places = RegionPlacement::default();
        for (page, node) in (0u64..).zip(&nodes) {
            if let Some(node) = node {
                places.push(page, 1, NodeIx(*node));
            }
        }
        let mut back = vec![None; nodes.len()];
        for run in &places.runs {
            for page in run.first()..run.first() + run.pages() {
                back[page as usize] = Some(run.node().0);
            }
        }
        prop_assert_eq!(back, nodes.clone());
        let joined = places.runs.windows(2).all(|w| w[0].0 + w[0].1 < w[1].0 || w[0].2 != w[1].2);
        prop_assert!(joined);
    }
}
