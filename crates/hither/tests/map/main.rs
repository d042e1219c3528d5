//! `hither map` as users run it: placements for machines, real programs bound by other
//! tools as the placement says, and what bad input gets. The tools are among the
//! TEST_PACKAGES of the Makefile.
mod machines;
mod matrices;
#[path = "../common/outcome.rs"]
mod outcome;
mod phases;
mod profiles;
mod refused;
mod tools;
#[path = "../common/workloads.rs"]
mod workloads;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hither_profile::{read_placement, write, Placement, Profile};
use outcome::{check_refusal, text};
use serde_json::Value;
use tempfile::TempDir;
use workloads::workload;

const HITHER: &str = env!("CARGO_BIN_EXE_hither");
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/map");
/// Threads 0 and 3 talk, and 1 and 2.
const CROSSED: &str = "0,1,1,90\n1,0,90,1\n1,90,0,1\n90,1,1,0\n";

/// A folder to work in.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().expect("tempdir"))
    }

    /// With a matrix in `m.csv`.
    fn with_matrix(text: &str) -> Self {
        let place = Place::new();
        place.put("m.csv", text);
        place
    }

    /// With a profile in `app.hither`.
    fn with_profile(profile: &Profile) -> Self {
        let place = Place::new();
        write(profile, &place.path("app.hither")).expect("a profile");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("write");
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("list");
        let name = |e: std::io::Result<std::fs::DirEntry>| e.expect("entry").file_name();
        let mut names: Vec<String> = entries
            .map(|e| name(e).into_string().expect("a name"))
            .collect();
        names.sort();
        names
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(line[0]);
        command
            .args(&line[1..])
            .current_dir(self.0.path())
            .env("LC_ALL", "C")
            .env("COLUMNS", "80")
            .stdin(Stdio::null());
        command
    }

    /// What `hither map` prints.
    #[track_caller]
    fn map(&self, args: &[&str]) -> String {
        let output = self.try_map(args);
        assert!(
            output.status.success(),
            "{args:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    fn try_map(&self, args: &[&str]) -> Output {
        let line = [&[HITHER, "map"], args].concat();
        self.command(&line).output().expect("hither")
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        let text = self.map(&[args, &["--json"]].concat());
        serde_json::from_str(&text).expect("json")
    }

    /// The PUs of the threads, by the kernel's numbers.
    #[track_caller]
    fn pus(&self, args: &[&str]) -> Vec<u64> {
        numbers(&self.json(args)["pus"])
    }

    #[track_caller]
    fn placement(&self, name: &str) -> Placement {
        read_placement(&self.path(name)).expect("a placement")
    }

    /// One sentence, status 2, and nothing new in the folder.
    #[track_caller]
    fn refuses(&self, args: &[&str], part: &str) {
        let before = self.files();
        let output = self.try_map(args);
        check_refusal(&output, 2, &[part]);
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
        assert_eq!(self.files(), before);
    }
}

fn numbers(value: &Value) -> Vec<u64> {
    let list = value.as_array().expect("a list");
    list.iter().map(|n| n.as_u64().expect("a number")).collect()
}

/// Names in the list of policies or formats that `--list` prints under `title`.
fn listed(title: &str) -> Vec<String> {
    let text = Place::new().map(&["--list"]);
    let section = text.lines().skip_while(|l| !l.starts_with(title)).skip(1);
    let section = section.take_while(|l| l.starts_with(' '));
    let named = section.filter(|l| !l.starts_with("   "));
    let first = |l: &str| l.split_whitespace().next().map(str::to_owned);
    let names: Vec<String> = named.filter_map(first).collect();
    assert!(!names.is_empty(), "{text}");
    names
}

/// Policies that need nothing but a matrix: `best` simulates, see tests/sim, and `load-balance` needs
/// the work of threads.
fn thread_policies() -> Vec<String> {
    let mut policies = listed("Threads");
    policies.retain(|policy| !["best", "os", "load-balance"].contains(&policy.as_str()));
    policies
}

/// Machines that are shipped with the program.
fn shipped() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = std::fs::read_to_string(root.join("testdata/topologies/machines.json"));
    let table: Value = serde_json::from_str(&table.expect("table")).expect("json");
    let machines = table.as_array().expect("a list").iter();
    let names = machines.map(|m| m["name"].as_str().expect("a name").to_owned());
    names.collect()
}
