//! The commands that the documents show are run, and print what the documents say: every `$ ` line
//! of a ```` ```console ```` block, in order, in one folder for each document. Figures may differ, so
//! numbers are not compared, nor where lines break; a line `...` stands for any text.
#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

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
        if line.starts_with("```") {
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

fn check(document: &str) {
    let root = root();
    let text = std::fs::read_to_string(root.join(document)).expect("a document");
    let samples = samples(&text);
    assert!(!samples.is_empty(), "{document} shows no command");
    let place = Place::new();
    std::os::unix::fs::symlink(root.join("target"), place.path("target")).expect("a link");
    let programs = Path::new(HITHER).parent().expect("a folder").display();
    for sample in samples {
        let line = format!("PATH={programs}:$PATH; ({}) 2>&1", sample.command);
        let done = place.shell(&line);
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
