//! All tests: the binaries that `cargo test` would run one after the other, two at a time.
//! Many tests wait for a clock, a disk or one another, so that one binary alone leaves
//! processors without work.
use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{bail, Context, Result};
use serde_json::Value;

use crate::workspace::{cargo, Workspace};

const LANES: usize = 2;
/// What takes longest starts first, so that nothing long is left for the end.
const LONGEST: &[&str] = &[
    "hither-guest",
    "hither-truth",
    "hither-field",
    "hither-auto",
    "hither-report",
    "hither-run",
];

#[derive(Debug, PartialEq)]
struct TestBinary {
    /// Of the package's folder and of the binary: several packages have tests of one name.
    name: String,
    program: PathBuf,
    /// Tests run in the folder of their package.
    folder: PathBuf,
}

/// Builds all tests and runs them; then the examples of the documentation.
pub fn run() -> Result<()> {
    let ws = Workspace::find()?;
    let mut build = cargo();
    build.args(["test", "--workspace", "--no-run"]);
    build.args(["--message-format", "json-render-diagnostics"]);
    let built = build.stderr(Stdio::inherit()).output();
    let built = built.context("cannot start cargo")?;
    if !built.status.success() {
        bail!("the tests do not build");
    }
    let binaries = longest_first(test_binaries(&built.stdout)?);
    let folder = ws.target.join("tests");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let queue = Mutex::new(VecDeque::from(binaries));
    let next = || queue.lock().map_or(None, |mut queue| queue.pop_front());
    let lane = || -> Result<Vec<String>> {
        let mut failed = Vec::new();
        while let Some(binary) = next() {
            if !passes(&binary, folder.join(format!("{}.txt", binary.name)))? {
                failed.push(binary.name);
            }
        }
        Ok(failed)
    };
    let lanes: Vec<Result<Vec<String>>> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        let ended = lanes.into_iter().map(|lane| lane.join());
        ended
            .map(|end| end.unwrap_or_else(|_| bail!("a lane of tests panicked")))
            .collect()
    });
    let failed: Vec<String> = lanes.into_iter().collect::<Result<Vec<_>>>()?.concat();
    let examples = cargo()
        .args(["test", "--quiet", "--workspace", "--doc"])
        .status();
    let examples = examples.context("cannot start cargo")?.success();
    if !failed.is_empty() {
        bail!("tests failed in {}", failed.join(", "));
    }
    if !examples {
        bail!("an example of the documentation fails");
    }
    Ok(())
}

/// Runs a binary and prints what it printed, whole: lines of two would mix.
fn passes(binary: &TestBinary, output: PathBuf) -> Result<bool> {
    let written = || format!("cannot write {}", output.display());
    let file = File::create(&output).with_context(written)?;
    let errors = file.try_clone().with_context(written)?;
    let start = Instant::now();
    let mut test = Command::new(&binary.program);
    test.current_dir(&binary.folder)
        .env("CARGO_MANIFEST_DIR", &binary.folder);
    test.stdin(Stdio::null()).stdout(file).stderr(errors);
    let status = test.status();
    let status = status.with_context(|| format!("cannot start {}", binary.program.display()))?;
    let seconds = start.elapsed().as_secs();
    let printed =
        std::fs::read(&output).with_context(|| format!("cannot read {}", output.display()))?;
    let printed = String::from_utf8_lossy(&printed);
    println!("--- {}: {seconds} s\n{printed}", binary.name);
    Ok(status.success())
}

/// The test binaries among what cargo says that it built, a JSON object a line.
fn test_binaries(messages: &[u8]) -> Result<Vec<TestBinary>> {
    let mut binaries: Vec<TestBinary> = Vec::new();
    for line in String::from_utf8_lossy(messages).lines() {
        let message: Value = serde_json::from_str(line).context("cargo printed no JSON")?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (Some(program), Some(manifest)) = (
            text(&message["executable"]),
            text(&message["manifest_path"]),
        ) else {
            continue;
        };
        if message["profile"]["test"] != true {
            continue;
        }
        let name = text(&message["target"]["name"]).context("cargo names no target")?;
        let folder = PathBuf::from(manifest);
        let folder = folder.parent().context("a manifest without a folder")?;
        let package = folder.file_name().unwrap_or_default().to_string_lossy();
        binaries.push(TestBinary {
            name: format!("{package}-{name}"),
            program: program.into(),
            folder: folder.into(),
        });
    }
    if binaries.is_empty() {
        bail!("cargo has built no tests");
    }
    Ok(binaries)
}

fn longest_first(mut binaries: Vec<TestBinary>) -> Vec<TestBinary> {
    let rank = |b: &TestBinary| LONGEST.iter().position(|name| *name == b.name);
    binaries.sort_by_key(|b| rank(b).unwrap_or(LONGEST.len()));
    binaries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(package: &str, name: &str, test: bool, executable: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/w/{package}/Cargo.toml","target":{{"name":"{name}"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
        )
    }

    #[test]
    fn every_test_binary_is_run_and_the_longest_starts_first() {
        let messages = [
            built("profile", "hostile", true, r#""/t/hostile-1""#),
            built("profile", "profile", false, "null"),
            built("hither", "hither", false, r#""/t/hither""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            built("hither", "hostile", true, r#""/t/hostile-2""#),
            built("hither", "truth", true, r#""/t/truth-3""#),
        ];
        let found = test_binaries(messages.join("\n").as_bytes()).unwrap();
        let found: Vec<_> = longest_first(found)
            .into_iter()
            .map(|b| (b.name, b.program, b.folder))
            .collect();
        let expected = [
            ("hither-truth", "/t/truth-3", "/w/hither"),
            ("profile-hostile", "/t/hostile-1", "/w/profile"),
            ("hither-hostile", "/t/hostile-2", "/w/hither"),
        ];
        assert_eq!(
            found,
            expected.map(|(name, program, folder)| (name.into(), program.into(), folder.into()))
        );
    }

    #[test]
    fn a_build_without_tests_is_no_success() {
        assert!(test_binaries(b"").is_err());
    }

    #[test]
    fn a_binary_that_fails_is_said_to_fail() {
        let folder = tempfile::tempdir().unwrap();
        for (program, passed) in [("/bin/true", true), ("/bin/false", false)] {
            let binary = TestBinary {
                name: "one".into(),
                program: program.into(),
                folder: folder.path().into(),
            };
            assert_eq!(
                passes(&binary, folder.path().join("one.txt")).unwrap(),
                passed
            );
        }
    }
}
