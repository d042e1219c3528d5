//! `hither run` on programs that must not notice: each runs alone and followed, and must
//! print and return the same; nobody may be left behind. Needs the example programs
//! (`make -C workloads`); where pages are placed, the tracer (`cargo xtask tracer`).
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/placement.rs"]
mod placement;

mod cli;
mod endings;
mod foreign;
mod jobs;
mod placed;
mod refused;
mod surroundings;
mod unnoticed;

use std::fs;
use std::process::{Command, Output};
use std::sync::OnceLock;

use common::{
    built_by, check_refusal, run, status, text, there, wait_for, workload, Place, Running, HITHER,
    NOBODY,
};
use nix::sys::signal::Signal;
use tempfile::TempDir;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run");
const FIELD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/field");
/// The command that follows a program without a profile.
const RUN: [&str; 6] = [HITHER, "run", "-q", "--policy", "compact", "--"];
/// The variable by which what a test started is found.
const MARK: &str = "HITHER_TEST_PLACE";

impl Place {
    /// A command that [`Place::left`] finds while it or a descendant lives.
    fn marked(&self, line: &[&str]) -> Command {
        let mut command = self.command(line);
        command.env(MARK, self.0.path());
        command
    }

    fn marked_shell(&self, line: &str) -> Output {
        run(self.marked(&["sh", "-c", line]))
    }

    fn followed(&self, line: &[&str]) -> Output {
        run(self.marked(&[&RUN[..], line].concat()))
    }

    /// Command lines of what is left of what this test started.
    fn left(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.0.path().display());
        let processes = fs::read_dir("/proc").expect("proc").flatten();
        let marked = processes.filter_map(|process| {
            let environment = fs::read(process.path().join("environ")).ok()?;
            let mut words = environment.split(|&byte| byte == 0);
            words.find(|word| *word == mark.as_bytes())?;
            let command = fs::read(process.path().join("cmdline")).ok()?;
            Some(text(&command).replace('\0', " "))
        });
        marked.collect()
    }

    /// A follower may need a moment to see that all have gone.
    #[track_caller]
    fn nobody_left(&self) {
        wait_for("end of all that was started", || self.left().is_empty());
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("write");
    }
}

#[track_caller]
fn same(line: &[&str], alone: &Output, followed: &Output) {
    assert_eq!(text(&alone.stderr), text(&followed.stderr), "{line:?}");
    assert!(
        alone.stdout == followed.stdout,
        "{line:?}: followed it prints\n{}alone\n{}",
        text(&followed.stdout),
        text(&alone.stdout)
    );
    assert_eq!(status(alone), status(followed), "{line:?}");
}

/// `line` alone and followed: same output and status.
#[track_caller]
fn check_in(place: &Place, line: &[&str]) -> Output {
    let alone = run(place.command(line));
    let followed = place.followed(line);
    same(line, &alone, &followed);
    place.nobody_left();
    followed
}

/// The same, where the end is known.
#[track_caller]
fn check(line: &[&str], code: i32) {
    let output = check_in(&Place::new(), line);
    assert_eq!(status(&output), code, "{line:?}");
}

/// A program built from the files here, once per run of the tests: `notice` and the
/// others of this folder, `abuse` of the tests of `trace`, each also as `...-static`.
fn built(name: &str) -> &'static str {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let script = format!(
            "set -e
             cc() {{ gcc -std=gnu11 -O1 -g -pthread -o $@; }}
             for how in '' -static; do
               cc notice$how $how {SOURCES}/notice.c {SOURCES}/signals.c {SOURCES}/crowds.c {SOURCES}/memory.c
               cc abuse$how $how {FIELD}/abuse.c
             done
             cc waits {SOURCES}/waits.c -lrt
             cc deny {SOURCES}/deny.c
             gcc -O1 -fopenmp -o processors {SOURCES}/processors.c
             cp {HITHER} . ; chmod 755 ."
        );
        built_by(&script)
    });
    // Leaked: it is needed until the tests end.
    folder
        .path()
        .join(name)
        .to_string_lossy()
        .into_owned()
        .leak()
}

/// Whether a program that a test needs is there; says so where it is not.
fn root() -> bool {
    let root = nix::unistd::getuid().is_root();
    if !root {
        eprintln!("skipped: only root can do this");
    }
    root
}
