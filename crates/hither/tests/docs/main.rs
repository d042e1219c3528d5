//! The commands that the documents show work. Every `$ ` line of a ```` ```console ```` block is
//! run, in order, in one folder for each document, and prints what is shown below it; where
//! nothing is shown, it succeeds. Numbers are not compared, nor where lines break; a line `...`
//! stands for any text. What a ```` ```sh ```` block calls hither with is at least accepted.
#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use common::{Place, HITHER};

/// A command and what is shown below it.
struct Sample {
    line: usize,
    command: String,
    shown: String,
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the root of the sources")
}

fn samples(document: &str) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut inside = false;
    for (at, line) in document.lines().enumerate() {
        let unfinished = samples.last_mut().filter(|s| s.command.ends_with('\\'));
        if let Some(sample) = unfinished {
            sample.command.pop();
            sample.command += line.trim_start();
        } else if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            samples.push(Sample {
                line: at + 1,
                command: command.to_owned(),
                shown: String::new(),
            });
        } else if let Some(sample) = samples.last_mut().filter(|_| inside) {
            sample.shown += line;
            sample.shown.push('\n');
        }
    }
    samples
}

/// Words to compare: numbers are all alike, and the prefixes of units go with them.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let mut plain = String::new();
        for c in word.chars() {
            match c {
                '0'..='9' if plain.ends_with('#') => {}
                '0'..='9' => plain.push('#'),
                // 12.3, 1e-5
                '.' | 'e' | '-' if plain.ends_with('#') => {}
                _ => plain.push(c),
            }
        }
        let prefix = matches!(
            plain.as_str(),
            "k" | "M" | "G" | "KiB" | "MiB" | "GiB" | "ms" | "s"
        );
        if !prefix || !words.last().is_some_and(|last| last.ends_with('#')) {
            words.push(plain);
        }
    }
    words
}

/// The first part of what is shown that was not printed in its place.
fn missing<'a>(shown: &'a str, printed: &str) -> Option<&'a str> {
    let printed = words(printed);
    let parts: Vec<&str> = shown.split("...\n").collect();
    let mut at = 0;
    for (number, part) in parts.iter().enumerate() {
        let wanted = words(part);
        let (first, last) = (number == 0, number + 1 == parts.len());
        let begins = |from: usize| printed[from..].starts_with(&wanted);
        let found = match (first, last) {
            (true, _) => begins(0).then_some(0),
            (_, true) => (at..=printed.len().saturating_sub(wanted.len())).rfind(|&n| begins(n)),
            _ => (at..=printed.len()).find(|&n| begins(n)),
        };
        let Some(found) = found else {
            return Some(part);
        };
        at = found + wanted.len();
        if last && at != printed.len() {
            return Some(part);
        }
    }
    None
}

/// What documents call hither with and no test can run: a process that is not there, launchers
/// that are not installed.
fn check_syntax(document: &str, text: &str) {
    let blocks = text.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    for line in lines {
        let line = format!(" {line}").replace("(hither ", " hither ");
        for call in line.split(" hither ").skip(1) {
            let end = call.find([')', ';', '#', '&', '\'']).unwrap_or(call.len());
            let call = call[..end].split(" -- ").next().unwrap_or_default();
            let mut hither = std::process::Command::new(HITHER);
            let done = hither.args(call.split_whitespace()).arg("--help").output();
            let done = done.expect("hither");
            let error = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{document}: hither {call}: {error}");
        }
    }
}

fn check(document: &str) {
    check_in(&Place::new(), document);
}

fn check_in(place: &Place, document: &str) {
    let root = root();
    let text = std::fs::read_to_string(root.join(document)).expect("a document");
    check_syntax(document, &text);
    let samples = samples(&text);
    assert!(!samples.is_empty(), "{document} shows no command");
    std::os::unix::fs::symlink(root.join("target"), place.path("target")).expect("a link");
    let programs = Path::new(HITHER).parent().expect("a folder").display();
    for sample in samples {
        let line = format!("PATH={programs}:$PATH; ({}\n) 2>&1", sample.command);
        let done = place.shell(&line);
        if sample.shown.is_empty() {
            let text = String::from_utf8_lossy(&done.stdout);
            assert!(
                done.status.success(),
                "{document}:{}: `{}` fails: {text}",
                sample.line,
                sample.command
            );
            continue;
        }
        let printed =
            String::from_utf8_lossy(&done.stdout).replace(&format!("{}/", root.display()), "");
        if let Some(part) = missing(&sample.shown, &printed) {
            panic!(
                "{document}:{}: `{}` does not print\n{part}\nIt prints\n{printed}",
                sample.line, sample.command
            );
        }
    }
}

#[test]
fn the_readme_shows_what_happens() {
    check("README.md");
}

#[test]
fn the_first_session_shows_what_happens() {
    check("docs/first-session.md");
}

/// `./app` of the guide, whatever its arguments.
const APP: &str =
    "#!/bin/sh\nOMP_NUM_THREADS=${OMP_NUM_THREADS-4} exec target/workloads/ondes 64 40\n";

#[test]
fn the_guide_shows_what_happens() {
    let place = Place::new();
    let app = place.path("app");
    std::fs::write(&app, APP).expect("a script");
    std::fs::set_permissions(&app, PermissionsExt::from_mode(0o755)).expect("a program");
    let couples = root().join("crates/hither/tests/auto/couples.c");
    let built = place.shell(&format!(
        "gcc -O1 -pthread -o couples {}",
        couples.display()
    ));
    assert!(built.status.success());
    check_in(&place, "docs/guide.md");
}

#[test]
fn what_is_not_printed_is_found() {
    let printed = "a 12 k\nb  7.5 MiB (x)\nc\n";
    let check =
        |shown: &str, fits: bool| assert_eq!(missing(shown, printed).is_none(), fits, "{shown}");
    check("a 3\nb 4 GiB (x)\nc\n", true);
    check("...\nb 7 MiB (x)\n...\n", true);
    check("a 1\n...\nc\n", true);
    check("...\n", true);
    check("a 1\n", false);
    check("...\nd\n...\n", false);
    check("...\nc\n...\nb 7 (x)\n...\n", false);
    check("b 7 (x)\n...\n", false);
    check("a 1\n...\nb 7 (x)\n", false);
}
