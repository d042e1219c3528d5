//! `--before`: what is the same is said to be, what changed is found again though rows and
//! lines have moved.
use super::{text, Folder, MACHINE};
use hither_profile::*;

/// Thread 0 sets up `grid`, of which both threads use a half; `mine` is used by thread 1.
fn profile() -> Profile {
    let pages = (0..64u32).map(|page| PageUse {
        page: PageNo(page),
        thread: ThreadIx(u32::from(page >= 16)),
        reads: 1000,
        ..PageUse::default()
    });
    let touched = (0..64).map(|page| PageFirstTouch {
        page: PageNo(page),
        ..PageFirstTouch::default()
    });
    let object = |name: &str, line, accesses| Object {
        name: name.to_owned(),
        kind: ObjectKind::Heap,
        size: 32 * PAGE_SIZE,
        count: 1,
        file: "/src/app.c".to_owned(),
        line,
        function: "main".to_owned(),
        reads: accesses,
        ..Object::default()
    };
    let range = |object, first: u64| ObjectRange {
        object: ObjectIx(object),
        offset: first * PAGE_SIZE,
        length: 32 * PAGE_SIZE,
        ..ObjectRange::default()
    };
    let mut profile = Profile {
        threads: vec![
            Thread {
                reads: 32_000,
                ..Thread::default()
            };
            2
        ],
        regions: vec![Region {
            size: 64 * PAGE_SIZE,
            ..Region::default()
        }],
        pages: pages.collect(),
        first_touch: touched.collect(),
        objects: vec![
            object("grid", 10, 32_000),
            object("app.c:20 (main)", 20, 32_000),
        ],
        object_ranges: vec![range(0, 0), range(1, 32)],
        slices: vec![Slice {
            traced: true,
            length: 1_000_000,
            ..Slice::default()
        }],
        ..Profile::default()
    };
    profile.meta.format = FORMAT_VERSION;
    profile.meta.command = vec!["./app".to_owned()];
    profile.meta.processes = vec![Process::default()];
    profile
}

fn compared(folder: &Folder, before: &str, after: &str) -> serde_json::Value {
    let out = folder.run(&[
        "report",
        "--json",
        after,
        "--before",
        before,
        "--topology",
        MACHINE,
    ]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let mut json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    json["comparison"].take()
}

fn changes<'a>(comparison: &'a serde_json::Value, list: &str) -> Vec<&'a str> {
    let rows = comparison[list].as_array().expect("a list");
    rows.iter()
        .map(|row| row["change"].as_str().expect("a change"))
        .collect()
}

#[test]
fn a_profile_is_the_same_as_itself() {
    let folder = Folder::new();
    folder.write("app.hither", &profile());
    let comparison = compared(&folder, "app.hither", "app.hither");
    for list in ["findings", "metrics", "structures"] {
        let changes = changes(&comparison, list);
        assert!(!changes.is_empty(), "{list}");
        assert!(changes.iter().all(|c| *c == "same"), "{list}: {changes:?}");
    }
    let sentence = comparison["sentence"].as_str().expect("a sentence");
    assert!(sentence.starts_with("No difference"), "{sentence}");
    let out = folder.run(&["report", "--text", "app.hither", "--before", "app.hither"]);
    let said = text(&out.stdout);
    assert!(
        said.contains("Compared with app.hither") && said.contains("No difference"),
        "{said}"
    );
}

#[test]
fn structures_are_found_again_where_lines_and_rows_have_moved() {
    let folder = Folder::new();
    folder.write("old.hither", &profile());
    let mut edited = profile();
    edited.first_touch.retain_mut(|touch| {
        touch.thread = ThreadIx(u32::from(touch.page.0 >= 16));
        true
    });
    edited.objects.swap(0, 1);
    for range in &mut edited.object_ranges {
        range.object = ObjectIx(1 - range.object.0);
    }
    edited.objects[0].line = 27;
    edited.objects[0].name = "app.c:27 (main)".to_owned();
    edited.objects[1].line = 12;
    folder.write("new.hither", &edited);
    let comparison = compared(&folder, "old.hither", "new.hither");
    let mut rows: Vec<(String, String)> = Vec::new();
    for row in comparison["structures"].as_array().expect("structures") {
        rows.push((row["name"].to_string(), row["change"].to_string()));
    }
    rows.sort();
    let better = |name: &str| (format!("\"{name}\""), "\"better\"".to_owned());
    assert_eq!(rows, [better("app.c:27 (main)"), better("grid")]);
    assert!(changes(&comparison, "findings")
        .iter()
        .all(|c| *c == "gone"));
    let remote = &comparison["metrics"][0];
    assert_eq!(
        (&remote["name"], &remote["change"]),
        (&"remote accesses".into(), &"better".into())
    );
    assert_eq!(remote["before"], 0.75);
    assert_eq!(remote["after"], 0.0);
}

#[test]
fn what_is_only_in_one_is_new_or_gone() {
    let folder = Folder::new();
    folder.write("with.hither", &profile());
    let mut without = profile();
    without.objects[1].reads = 0;
    folder.write("without.hither", &without);
    let of = |before, after| {
        let comparison = compared(&folder, before, after);
        let mut all: Vec<String> = Vec::new();
        all.extend(
            changes(&comparison, "structures")
                .iter()
                .map(|c| (*c).to_owned()),
        );
        all.sort();
        all
    };
    assert_eq!(of("with.hither", "without.hither"), ["gone", "same"]);
    assert_eq!(of("without.hither", "with.hither"), ["new", "same"]);
}

#[test]
fn what_sampling_accounts_for_is_said() {
    let folder = Folder::new();
    let mut before = profile();
    before.meta.sampling_error = 0.3;
    folder.write("before.hither", &before);
    let mut after = profile();
    after.threads[0].reads = 40_000;
    folder.write("after.hither", &after);
    let comparison = compared(&folder, "before.hither", "after.hither");
    let metrics = comparison["metrics"].as_array().expect("metrics");
    let reads = metrics
        .iter()
        .find(|m| m["name"] == "reads")
        .expect("reads");
    assert_eq!(
        (&reads["change"], &reads["within_error"]),
        (&"same".into(), &true.into())
    );
    let notes = comparison["notes"].to_string();
    assert!(
        notes.contains("Sampled: differences up to 60.0 %"),
        "{notes}"
    );
}

/// Two of 64 pages more are remote, 3 points.
#[test]
fn how_much_a_share_may_differ_is_up_to_the_user() {
    let folder = Folder::new();
    folder.write("new.hither", &profile());
    let mut old = profile();
    old.first_touch.retain_mut(|touch| {
        touch.thread = ThreadIx(u32::from(touch.page.0 >= 62));
        true
    });
    folder.write("old.hither", &old);
    let regression = ["--baseline", "old.hither", "--fail-on-regression"];
    let check = |tolerance: &[&str]| {
        let (status, said) = folder.check(&[&["new.hither"], &regression[..], tolerance].concat());
        let remote = said.lines().find(|line| line.contains("remote accesses"));
        (status, remote.expect("a line").to_owned())
    };
    let sentence = "remote accesses: 75.0 %, 71.9 % in the baseline";
    let holds = (0, format!("ok    {sentence}"));
    let fails = (1, format!("FAIL  {sentence}"));
    assert_eq!(check(&[]), holds);
    assert_eq!(check(&["--tolerance", "4%"]), holds);
    assert_eq!(check(&["--tolerance", "0.01"]), fails);
}
