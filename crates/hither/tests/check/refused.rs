//! Bad input: status 2, nothing on stdout, a message that names what is wrong.
use super::{text, Folder};
use hither_profile::*;

fn small() -> Profile {
    let mut profile = Profile {
        threads: vec![
            Thread {
                reads: 100,
                ..Thread::default()
            };
            2
        ],
        regions: vec![Region {
            size: PAGE_SIZE,
            ..Region::default()
        }],
        pages: vec![PageUse {
            reads: 100,
            ..PageUse::default()
        }]
        .into(),
        first_touch: vec![PageFirstTouch::default()].into(),
        slices: vec![Slice {
            traced: true,
            length: 1,
            ..Slice::default()
        }],
        ..Profile::default()
    };
    profile.meta.format = FORMAT_VERSION;
    profile.meta.processes = vec![Process::default()];
    profile
}

/// The message has these words.
fn check(folder: &Folder, arguments: &[&str], words: &[&str]) {
    let out = folder.run(&[&["check"], arguments].concat());
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(text(&out.stdout), "", "{arguments:?}");
    for word in words {
        assert!(
            said.contains(word),
            "{arguments:?}: {word:?} is not in: {said}"
        );
    }
}

#[test]
fn what_cannot_be_told_is_refused() {
    let folder = Folder::new();
    folder.write("app.hither", &small());
    let app = "app.hither";
    check(
        &folder,
        &[app],
        &[
            "--max-remote",
            "--min-exclusivity",
            "--no",
            "--baseline",
            "--fail-on-regression",
        ],
    );
    check(&folder, &[app, "--fail-on-regression"], &["--baseline"]);
    check(
        &folder,
        &[app, "--baseline", app],
        &["--fail-on-regression"],
    );
    check(
        &folder,
        &[app, "--no", "mistakes"],
        &["mistakes", "first-touch"],
    );
    for share in ["10", "101%", "-1%", "ten", "NaN", ""] {
        let option = format!("--max-remote={share}");
        check(&folder, &[app, &option], &["--max-remote", "10% or 0.1"]);
    }
    let mut idle = small();
    idle.pages.clear();
    folder.write("idle.hither", &idle);
    check(
        &folder,
        &["idle.hither", "--max-remote", "10%"],
        &["idle.hither", "--max-remote"],
    );
    check(
        &folder,
        &["idle.hither", "--min-exclusivity", "10%"],
        &["idle.hither", "--min-exclusivity"],
    );
}

#[test]
fn profiles_that_are_none() {
    let folder = Folder::new();
    folder.write("app.hither", &small());
    let limit = ["--max-remote", "10%"];
    let than = |old| ["--baseline", old, "--fail-on-regression"];
    check(
        &folder,
        &[&["none.hither"], &limit[..]].concat(),
        &["none.hither"],
    );
    check(
        &folder,
        &[&["app.hither"], &than("none.hither")[..]].concat(),
        &["none.hither"],
    );
    folder.write("cut.hither", &small());
    let pages = folder.path("cut.hither").join("pages.parquet");
    let whole = std::fs::read(&pages).expect("a table");
    std::fs::write(&pages, &whole[..whole.len() / 2]).expect("cut off");
    check(
        &folder,
        &[&["cut.hither"], &limit[..]].concat(),
        &["cut.hither", "pages"],
    );
    check(
        &folder,
        &[&["app.hither"], &than("cut.hither")[..]].concat(),
        &["cut.hither", "pages"],
    );
    std::fs::create_dir(folder.path("foreign.hither")).expect("a folder");
    std::fs::write(folder.path("foreign.hither/profile.json"), "{}").expect("a file");
    check(
        &folder,
        &[&["foreign.hither"], &limit[..]].concat(),
        &["profile.json"],
    );
    check(
        &folder,
        &[&["app.hither"], &than("foreign.hither")[..]].concat(),
        &["profile.json"],
    );
}

/// A limit is kept by what equals it, and one node has no other.
#[test]
fn limits_include_themselves() {
    let folder = Folder::new();
    folder.write("app.hither", &small());
    let check = |option: &str, value: &str, status: i32| {
        let (code, said) = folder.check(&["app.hither", option, value]);
        assert_eq!(code, status, "{option} {value}: {said}");
    };
    check("--max-remote", "0", 0);
    check("--min-exclusivity", "1", 0);
    check("--min-exclusivity", "100%", 0);
}
