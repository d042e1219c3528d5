//! Bad input: one sentence, status 2, no file.
use super::planted::Planted;
use super::{hither, page, written};
use std::path::Path;

const SMALL: Planted = Planted {
    threads: 4,
    pages: 64,
    users: 2,
    slices: 4,
    hot: 2,
};

/// Runs in the folder; the message has these words and `app.html` is as before.
fn check(folder: &Path, args: &[&str], words: &[&str]) {
    let before = std::fs::read(folder.join("app.html")).ok();
    let mut report = hither();
    let out = report
        .current_dir(folder)
        .arg("report")
        .args(args)
        .assert()
        .code(2);
    let text = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    assert_eq!(std::fs::read(folder.join("app.html")).ok(), before);
    let left = std::fs::read_dir(folder).expect("a folder");
    let part = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|e| e.file_name().to_string_lossy().ends_with(".part"))
    };
    assert!(!left.into_iter().any(part), "half a page is left");
}

#[test]
fn a_profile_that_is_none() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path();
    check(folder, &["app.hither"], &["app.hither"]);
    let profile = written(folder, &SMALL.profile());
    let pages = profile.join("pages.parquet");
    let whole = std::fs::read(&pages).expect("a table");
    std::fs::write(&pages, &whole[..whole.len() / 2]).expect("cut off");
    check(folder, &["app.hither"], &["pages"]);
    std::fs::write(profile.join("profile.json"), "{}").expect("foreign");
    check(folder, &["app.hither"], &["profile.json"]);
}

#[test]
fn a_place_that_is_taken() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path();
    written(folder, &SMALL.profile());
    check(
        folder,
        &["app.hither", "-o", "none/app.html"],
        &["none", "-o"],
    );
    std::fs::write(folder.join("app.html"), "<html>mine</html>").expect("a file");
    check(
        folder,
        &["app.hither"],
        &["app.html", "it was left as it is"],
    );
    std::fs::remove_file(folder.join("app.html")).expect("gone");
    std::fs::create_dir(folder.join("folder.html")).expect("a folder");
    check(
        folder,
        &["app.hither", "-o", "folder.html"],
        &["folder.html"],
    );
}

#[test]
fn a_page_of_ours_is_replaced() {
    let dir = tempfile::tempdir().expect("a folder");
    let first = page(dir.path(), &SMALL.profile());
    let before = std::fs::read(&first).expect("a page");
    assert_eq!(page(dir.path(), &SMALL.profile()), first);
    assert_eq!(
        std::fs::read(&first).expect("a page"),
        before,
        "same profile, same page"
    );
}

/// It once became a file named `-`.
#[test]
fn a_page_can_go_to_standard_output() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = page(dir.path(), &SMALL.profile());
    let mut report = hither();
    report.current_dir(dir.path());
    report.arg("report").arg(dir.path().join("app.hither"));
    report.args(["-o", "-"]);
    let out = report.assert().success().get_output().clone();
    assert_eq!(out.stdout, std::fs::read(file).expect("a page"));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("hither: next: "), "{said}");
    assert!(!dir.path().join("-").exists());
}

#[test]
fn a_placement_of_something_else() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path();
    written(folder, &SMALL.profile());
    let map = |machine: &str, name: &str| {
        let mut map = hither();
        map.current_dir(folder);
        map.args(["map", "app.hither", "--topology", machine, "-o", name]);
        map.assert().success();
    };
    map("pack:2 core:4 pu:1", "right");
    let mut report = hither();
    report.current_dir(folder).args([
        "report",
        "app.hither",
        "-p",
        "right.place.json",
        "-o",
        "placed.html",
    ]);
    report.assert().success();
    check(
        folder,
        &[
            "app.hither",
            "-p",
            "right.place.json",
            "--topology",
            "pack:4 core:4 pu:1",
        ],
        &["right.place.json", "--topology"],
    );
    check(folder, &["app.hither", "-p", "app.hither"], &["app.hither"]);
    check(
        folder,
        &["app.hither", "--topology", "nonsense"],
        &["nonsense"],
    );
    let more = Planted {
        threads: 6,
        ..SMALL
    };
    std::fs::remove_dir_all(folder.join("app.hither")).expect("gone");
    written(folder, &more.profile());
    check(
        folder,
        &["app.hither", "-p", "right.place.json"],
        &["4 threads", "6"],
    );
}
