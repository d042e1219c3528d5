//! `hither report --text` and `--json`: the findings in the terminal, whatever names hold.
use super::planted::Planted;
use super::{hither, written};
use hither_profile::{Profile, SourceText};
use std::path::Path;

/// Four nodes without caches: nothing fits in them.
const MACHINE: &str = "node:4 core:2 pu:1";

/// Thread 0 touches first what four threads use a quarter of each.
fn profile() -> Profile {
    let planted = Planted {
        threads: 4,
        pages: 256,
        users: 1,
        slices: 4,
        hot: 2,
    };
    planted.profile()
}

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let mut report = hither();
    report.current_dir(folder).env("COLUMNS", "72");
    report.args(["report", "app.hither", "--topology", MACHINE]);
    let out = report.args(arguments).assert().success();
    let output = out.get_output();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let left = std::fs::read_dir(folder).expect("a folder").count();
    assert_eq!(left, 1, "only the profile is there");
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn findings_are_told_with_evidence_place_and_fix() {
    let dir = tempfile::tempdir().expect("a folder");
    written(dir.path(), &profile());
    let said = printed(dir.path(), &["--text"]);
    let json = printed(dir.path(), &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let findings = json["findings"].as_array().expect("findings");
    assert_eq!(findings[0]["kind"], "first-touch", "{said}");
    assert_eq!(findings[0]["structure"]["name"], "field");
    // Every word of the evidence is there, and what is copied is there unbroken.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let flat = words(&said);
    assert!(
        flat.contains("allocated at /src/planted.c:17 (main)"),
        "{said}"
    );
    for finding in findings {
        for sentence in finding["evidence"].as_array().expect("evidence") {
            let sentence = words(sentence.as_str().expect("a sentence"));
            assert!(flat.contains(&sentence), "{sentence:?} is not in {said}");
        }
        for fix in finding["fixes"].as_array().expect("fixes") {
            for line in fix["copy"].as_str().expect("a text").lines() {
                assert!(said.contains(line), "{line:?} is not in {said}");
            }
        }
    }
    let last = said.lines().last().expect("a line");
    assert!(last.starts_with("next: hither "), "{last}");
}

/// Lines 15 to 19 of the source that the structure is declared in.
fn with_source(mut profile: Profile) -> Profile {
    let texts = [
        "int main(void) {",
        "",
        "    field = map(n);",
        "    use(field);",
        "}",
    ];
    let rows = (15..).zip(texts).map(|(line, text)| SourceText {
        file: "/src/planted.c".to_owned(),
        line,
        text: text.to_owned(),
    });
    profile.source_text = rows.collect();
    profile
}

#[test]
fn source_is_quoted_from_the_profile() {
    let dir = tempfile::tempdir().expect("a folder");
    written(dir.path(), &with_source(profile()));
    let said = printed(dir.path(), &["--text"]);
    let quote = "\n        15  int main(void) {\n        16\n   >    17      field = map(n);\n        18      use(field);\n        19  }\n";
    assert!(said.contains(quote), "{said}");
    let json = printed(dir.path(), &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let quotes = &json["findings"][0]["quotes"];
    assert_eq!(quotes[0]["line"], 17, "{quotes}");
    assert_eq!(quotes[0]["lines"][2]["text"], "    field = map(n);");
    assert!(!quotes.to_string().contains("null"), "{quotes}");
}

/// What is allocated again in each round is one structure, as large as what lived at once.
#[test]
fn blocks_allocated_again_are_told_as_such() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut again = profile();
    let object = &mut again.objects[0];
    (object.count, object.allocated) = (20, 20 * object.size);
    (object.smallest, object.largest) = (object.size, object.size);
    written(dir.path(), &again);
    let blocks = "20 times, 1.00 MiB each, 20.0 MiB in all";
    let said = printed(dir.path(), &["--text"]);
    assert!(said.contains(blocks), "{said}");
    let json = printed(dir.path(), &["--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["findings"][0]["structure"]["blocks"], blocks);
}

#[test]
fn lines_fit_but_for_what_is_copied() {
    let dir = tempfile::tempdir().expect("a folder");
    written(dir.path(), &profile());
    let said = printed(dir.path(), &["--text"]);
    let copied = |line: &str| line.starts_with("       ") || line.starts_with("next: ");
    for line in said.lines().filter(|line| !copied(line)) {
        assert!(line.chars().count() <= 72, "{line:?}");
    }
}

#[test]
fn nothing_wrong_is_said() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut right = profile();
    right.first_touch.retain_mut(|touch| {
        touch.thread = hither_profile::ThreadIx(touch.page.0 / 64);
        true
    });
    right.comm.clear();
    written(dir.path(), &right);
    let said = printed(dir.path(), &["--text"]);
    assert!(
        said.contains("Nothing wrong was found in this profile."),
        "{said}"
    );
    assert!(
        said.ends_with(&format!(
            "next: hither stat app.hither --topology '{MACHINE}'\n"
        )),
        "{said}"
    );
}

/// On a terminal, between lines.
fn harmful(c: char) -> bool {
    (c.is_control() && c != '\n') || c == '\u{202e}'
}

/// Its names steer terminals.
fn hostile() -> Profile {
    let mut hostile = profile();
    let escape = "\u{1b}]0;owned\u{7}\u{1b}[31m\u{202e}";
    let object = &mut hostile.objects[0];
    object.name = format!("{escape}<script>alert(1)</script>{}", "x".repeat(10_000));
    object.type_name = format!("T<{}>", "y".repeat(10_000));
    object.file = format!("/src/{escape}\n\r/{}.c", "z".repeat(10_000));
    object.function = escape.repeat(100);
    hostile.threads[0].name = escape.to_owned();
    hostile.regions[0].file = format!("/dev/shm/{escape}\n; rm");
    hostile.meta.processes[0].executable = format!("/bin/{escape}\n; rm");
    hostile.meta.machine.hostname = format!("{escape}\n; rm");
    hostile.meta.command = vec!["./app".to_owned(), format!("{escape}; rm -rf ~ '\n")];
    let text = SourceText {
        file: hostile.objects[0].file.clone(),
        line: hostile.objects[0].line,
        text: format!("{escape}\n; rm"),
    };
    hostile.source_text = vec![text];
    hostile.meta.limits = vec![format!("{escape}{}", "w".repeat(10_000))];
    hostile
}

/// `stat` printed U+202E as it is.
#[test]
fn hostile_names_do_no_harm_on_the_terminal_of_any_verb() {
    let dir = tempfile::tempdir().expect("a folder");
    written(dir.path(), &hostile());
    let folder = dir.path().join("\u{1b}[31m\n\u{202e}");
    std::fs::create_dir(&folder).expect("a folder");
    written(&folder, &hostile());
    let run = |line: &[&str]| {
        let mut verb = hither();
        verb.current_dir(dir.path()).args(line);
        let out = verb.output().expect("hither");
        for said in [out.stdout, out.stderr] {
            let said = String::from_utf8(said).expect("UTF-8");
            assert!(!said.contains(harmful), "{line:?}: {said:?}");
            let forged = said.lines().any(|line| line.starts_with("; rm"));
            assert!(!forged, "{line:?}: {said:?}");
        }
        out.status.code()
    };
    for file in ["app.hither", "\u{1b}[31m\n\u{202e}/app.hither"] {
        for line in [
            &["stat", file][..],
            &["stat", file, "--slices"],
            &["stat", file, "app.hither"],
            &["stat", file, "--topology", MACHINE],
            &["report", file, "--text", "--before", file],
            &["report", file, "--topology", MACHINE, "-o", "app.html"],
            &["check", file, "--max-remote", "100%"],
            &["check", file, "--baseline", file, "--fail-on-regression"],
            &["map", file, "--topology", MACHINE, "--explain", "-o", "app"],
            &["map", "app.place.json", "--format", "text"],
            &["report", file, "--text", "-p", "app.place.json"],
        ] {
            assert_eq!(run(line), Some(0), "{line:?}");
        }
        assert_eq!(run(&["sim", file]), Some(2), "nothing is recorded");
        assert_eq!(run(&["check", file, "--no", "first-touch"]), Some(1));
        assert_eq!(run(&["run", "-p", file, "--", "true"]), Some(2));
    }
}

#[test]
fn hostile_names_do_no_harm() {
    let dir = tempfile::tempdir().expect("a folder");
    let hostile = hostile();
    written(dir.path(), &hostile);
    let before = ["--before", "app.hither"];
    for arguments in [&["--text"][..], &[&["--text"], &before[..]].concat()] {
        let said = printed(dir.path(), arguments);
        assert!(!said.contains(harmful), "{said:?}");
        assert!(said.len() < 40_000, "{} bytes", said.len());
        assert!(said.contains("<script>alert(1)"), "names are kept: {said}");
    }
    let json = printed(dir.path(), &[&["--json"], &before[..]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let name = json["findings"][0]["structure"]["name"]
        .as_str()
        .expect("a name");
    assert!(
        !name.contains('\u{1b}') && name.chars().count() <= 241,
        "{name}"
    );
}

#[test]
fn a_page_is_not_asked_for_at_the_same_time() {
    let dir = tempfile::tempdir().expect("a folder");
    written(dir.path(), &profile());
    let mut report = hither();
    report.current_dir(dir.path());
    report.args(["report", "app.hither", "--text", "-o", "app.html"]);
    let out = report.assert().code(2);
    let said = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    assert!(
        said.contains("--output") && said.contains("--text"),
        "{said}"
    );
}

#[test]
fn what_to_type_next_is_said_after_the_page_too() {
    let dir = tempfile::tempdir().expect("a folder");
    written(dir.path(), &profile());
    let text = printed(dir.path(), &["--text"]);
    let expected = text.lines().last().expect("a line");
    let mut report = hither();
    report.current_dir(dir.path());
    report.args(["report", "app.hither", "--topology", MACHINE]);
    let out = report.assert().success();
    let said = String::from_utf8_lossy(&out.get_output().stderr).into_owned();
    let last = said.lines().last().expect("a line");
    assert_eq!(last, format!("hither: {expected}"));
}
