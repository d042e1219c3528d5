//! `hither stat` on constructed profiles: what it prints, and what it says about bad input.
use assert_cmd::Command;
use hither_profile::*;
use std::path::Path;

/// Four threads: 0-1 and 2-3 work in pairs, then 0-2 and 1-3. `grid` is set up by thread 0
/// and used a quarter each; `mine` is touched by its users.
fn profile() -> Profile {
    let thread = |n: u32| Thread {
        tid: 100 + n as i32,
        name: format!("worker {n}"),
        creator: (n > 0).then_some(ThreadIx(0)),
        end: 1_200_000_000,
        instructions: 1_000_000 * (u64::from(n == 0) + 1),
        reads: 400_000,
        writes: 100_000,
        ..Thread::default()
    };
    let pairs = |s: u32| {
        if s < 60 {
            [(0, 1), (2, 3)]
        } else {
            [(0, 2), (1, 3)]
        }
    };
    let comm = (0..120u32).flat_map(|s| {
        let events = if s < 60 { 5000 } else { 2000 };
        let cell = move |(i, j)| PairComm {
            slice: SliceIx(s),
            i: ThreadIx(i),
            j: ThreadIx(j),
            events,
            coherence: events / 2,
        };
        pairs(s).map(cell)
    });
    let slice = |s: u32| Slice {
        start: u64::from(s) * 10_000_000,
        length: 10_000_000,
        accesses: 16_666,
        amount: if s < 60 { 1250.0 } else { 500.0 },
        heterogeneity: if s < 60 { 1875.0 } else { 900.0 },
        threads: 4,
        sync: [u64::from(s.is_multiple_of(10)) * 4, 0, 0, 0],
        traced: true,
        paused: 0,
    };
    Profile {
        meta: meta(),
        threads: (0..4).map(thread).collect(),
        slices: (0..120).map(slice).collect(),
        comm: comm.collect(),
        regions: vec![Region {
            kind: RegionKind::Brk,
            size: 800 * PAGE_SIZE,
            ..Region::default()
        }],
        ..with_pages()
    }
}

fn meta() -> ProfileMeta {
    ProfileMeta {
        format: FORMAT_VERSION,
        writer: "0.1.0".to_owned(),
        command: vec!["./pairs".to_owned(), "4".to_owned()],
        duration: 1_200_000_000,
        machine: MachineInfo {
            numa_nodes: 1,
            cache_bytes: 1 << 20,
            ..MachineInfo::default()
        },
        processes: vec![Process {
            pid: 100,
            executable: "./pairs".to_owned(),
            ..Process::default()
        }],
        end: RunEnd::Exited { status: 0 },
        limits: vec!["libm.so.6 has no symbols: its functions have no names".to_owned()],
        comm_slices: 1,
        has_coherence: true,
        page_slices: 60,
        ..ProfileMeta::default()
    }
}

fn with_pages() -> Profile {
    let mut profile = Profile::default();
    for page in 0..800u32 {
        let owner = ThreadIx(page / 200);
        let first = if page % 200 < 100 { ThreadIx(0) } else { owner };
        profile.first_touch.push(PageFirstTouch {
            page: PageNo(page),
            thread: first,
            ..PageFirstTouch::default()
        });
        for slice in [0, 60] {
            profile.pages.push(PageUse {
                slice: SliceIx(slice),
                page: PageNo(page),
                thread: owner,
                reads: 1000,
                writes: 250,
                ..PageUse::default()
            });
        }
    }
    for (n, name) in ["grid", "mine"].into_iter().enumerate() {
        profile.objects.push(Object {
            name: name.to_owned(),
            type_name: "double [4][51200]".to_owned(),
            kind: ObjectKind::Heap,
            size: 400 * PAGE_SIZE,
            count: 1,
            file: "pairs.c".to_owned(),
            line: 10 + n as u32,
            function: "main".to_owned(),
            reads: 1_000_000 - n as u64 * 400_000,
            writes: 200_000,
            estimated: n == 1,
            ..Object::default()
        });
        for quarter in 0..4u64 {
            profile.object_ranges.push(ObjectRange {
                object: ObjectIx(n as u32),
                offset: (quarter * 200 + n as u64 * 100) * PAGE_SIZE,
                length: 100 * PAGE_SIZE,
                ..ObjectRange::default()
            });
        }
    }
    profile.sites.push(SourceSite {
        object: Some(ObjectIx(0)),
        file: "pairs.c".to_owned(),
        line: 42,
        function: "relax".to_owned(),
        callee: "memcpy".to_owned(),
        reads: 1_080_000,
        writes: 120_000,
        fetches: 0,
    });
    for (path, reads) in [
        ("main (pairs.c:9);make (pairs.c:10)", 750_000),
        ("", 250_000),
    ] {
        profile.allocation_paths.push(AllocationPath {
            object: ObjectIx(0),
            path: path.to_owned(),
            count: 20,
            size: 400 * PAGE_SIZE,
            allocated: 8000 * PAGE_SIZE,
            smallest: 400 * PAGE_SIZE,
            largest: 400 * PAGE_SIZE,
            reads,
            writes: 0,
            fetches: 0,
        });
    }
    profile
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(profile: &Profile) -> Self {
        let dir = tempfile::tempdir().unwrap();
        write(profile, &dir.path().join("app.hither")).unwrap();
        Folder(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn hither(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("hither").unwrap();
        command.current_dir(self.path()).arg("stat").args(args);
        command
            .env("LC_ALL", "C")
            .env("COLUMNS", "80")
            .env("LINES", "24");
        command
    }

    fn says(&self, args: &[&str]) -> String {
        let out = self
            .hither(args)
            .assert()
            .success()
            .get_output()
            .stdout
            .clone();
        String::from_utf8(out).unwrap()
    }
}

/// Compares with a file of `tests/expected`; HITHER_BLESS=1 rewrites it.
fn check(name: &str, got: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/expected")
        .join(name);
    if std::env::var_os("HITHER_BLESS").is_some() {
        std::fs::write(&file, got).unwrap();
    }
    let want = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        got, want,
        "differs from {name}; if it should, run with HITHER_BLESS=1"
    );
}

#[test]
fn report() {
    let folder = Folder::with(&profile());
    let text = folder.says(&["app.hither"]);
    check("stat.txt", &text);
    assert!(
        text.lines().all(|l| l.chars().count() <= 80),
        "fits in 80 columns"
    );
}

#[test]
fn allocation_paths() {
    let folder = Folder::with(&profile());
    check("sites.txt", &folder.says(&["--sites", "app.hither"]));
    let mut none = profile();
    none.allocation_paths.clear();
    let folder = Folder::with(&none);
    assert!(folder
        .says(&["--sites", "app.hither"])
        .starts_with("No heap blocks were seen."));
}

#[test]
fn slices() {
    let folder = Folder::with(&profile());
    check("slices.txt", &folder.says(&["--slices", "app.hither"]));
    let csv = folder.says(&["--slices", "--csv", "app.hither"]);
    assert_eq!(csv.lines().count(), 121);
    let fields = csv.lines().map(|l| l.split(',').count());
    assert!(fields.into_iter().all(|n| n == 13));
}

#[test]
fn comparison() {
    let folder = Folder::with(&profile());
    let mut other = profile();
    other.objects[0].reads = 500_000;
    other.objects.remove(1);
    other.object_ranges.retain(|r| r.object.0 == 0);
    other.comm.retain(|c| c.slice.0 < 60);
    write(&other, &folder.path().join("other.hither")).unwrap();
    check("compare.txt", &folder.says(&["app.hither", "other.hither"]));
}

#[test]
fn json_has_the_documented_names() {
    let folder = Folder::with(&profile());
    let json: serde_json::Value =
        serde_json::from_str(&folder.says(&["--json", "app.hither"])).unwrap();
    let docs = include_str!("../../../docs/metrics.md");
    let mut names = Vec::new();
    collect(&json, "", &mut names);
    for name in names {
        assert!(
            docs.contains(&format!("`{name}`")),
            "docs/metrics.md does not name `{name}`"
        );
    }
    assert_eq!(json["pages"]["best"]["app"], 1.0);
    assert_eq!(json["setup"]["nodes"], 4);
    // Pairs 0-1, 2-3 with 60 x 5000 events and 0-2, 1-3 with 60 x 2000.
    assert_eq!(json["communication"]["events"], 840_000);
    assert_eq!(json["coherence"]["events"], 420_000);
    assert_eq!(json["phases"][1]["first"], 60);
    assert_eq!(
        json["phases"][1]["matrix"][0],
        serde_json::json!([0, 2, 120_000])
    );
    // Pages 0..100 of each quarter were touched by thread 0; those of quarter 0 rightly.
    assert_eq!(json["pages"]["first_touch"]["page"], 0.625);
}

fn collect(value: &serde_json::Value, at: &str, names: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, inner) in map {
                let name = if at.is_empty() {
                    key.clone()
                } else {
                    format!("{at}.{key}")
                };
                collect(inner, &name, names);
            }
        }
        serde_json::Value::Array(list) => match list.iter().find(|v| v.is_object()) {
            Some(first) => collect(first, at, names),
            None => names.push(at.to_owned()),
        },
        _ => names.push(at.to_owned()),
    }
}

#[test]
fn nodes_come_from_the_user_first() {
    let folder = Folder::with(&profile());
    let nodes = |args: &[&str]| {
        let text = folder.says(&[args, &["--json", "app.hither"]].concat());
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json["setup"]["nodes"].as_u64().unwrap()
    };
    assert_eq!(nodes(&[]), 4);
    assert_eq!(nodes(&["--nodes", "2"]), 2);
    assert_eq!(nodes(&["--topology", "node:3 core:2 pu:1"]), 3);
    assert_eq!(
        nodes(&["--topology", "node:3 core:2 pu:1", "--nodes", "8"]),
        8
    );
}

#[test]
fn bad_input_is_one_sentence_and_status_2() {
    let folder = Folder::with(&profile());
    let path = folder.path();
    std::fs::create_dir(path.join("empty.hither")).unwrap();
    std::fs::write(path.join("file.hither"), "hello").unwrap();
    std::fs::create_dir(path.join("torn.hither")).unwrap();
    std::fs::write(path.join("torn.hither/profile.json"), "{\"format\": 1,").unwrap();
    let check = |args: &[&str]| {
        let out = folder.hither(args).assert().code(2).get_output().clone();
        let text = String::from_utf8(out.stderr).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.starts_with("hither: ") && out.stdout.is_empty(),
            "{text}"
        );
    };
    check(&["missing.hither"]);
    check(&["empty.hither"]);
    check(&["file.hither"]);
    check(&["torn.hither"]);
    check(&["app.hither", "missing.hither"]);
    check(&["app.hither", "--topology", "nonsense"]);
    check(&["app.hither", "--topology", "missing.xml"]);
    std::fs::write(path.join("torn.xml"), "<topology version=\"2.0\"><object").unwrap();
    check(&["app.hither", "--topology", "torn.xml"]);
    std::fs::write(
        path.join("wrong.xml"),
        "<topology><object type=\"PU\"/></topology>",
    )
    .unwrap();
    check(&["app.hither", "--topology", "wrong.xml"]);
}

#[test]
fn a_closed_pipe_is_success() {
    let folder = Folder::with(&profile());
    let program = assert_cmd::cargo::cargo_bin("hither");
    let mut child = std::process::Command::new(program)
        .args(["stat", "--json", "app.hither"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn names_from_the_program_cannot_steer_the_terminal() {
    let mut hostile = profile();
    hostile.objects[0].name = "evil\x1b[2J".to_owned();
    hostile.allocation_paths[0].path = "\x1b[2J;main".to_owned();
    hostile.meta.command = vec!["\x1b]0;x\x07".to_owned()];
    let folder = Folder::with(&hostile);
    assert!(!folder.says(&["app.hither"]).contains('\x1b'));
    assert!(!folder.says(&["--sites", "app.hither"]).contains('\x1b'));
}
