//! `hither check` and `hither report --before`: really traced programs and their twins, and
//! what is refused.
mod compared;
mod limits;
#[path = "../common/outcome.rs"]
#[allow(dead_code)] // Other tests use more of it.
mod outcome;
mod refused;
#[path = "../common/workloads.rs"]
mod workloads;

use hither_profile::Profile;
use outcome::text;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const HITHER: &str = env!("CARGO_BIN_EXE_hither");

/// Four nodes of two cores; without caches, so that no data fits in them.
const MACHINE: &str = "node:4 core:2 pu:1";

/// A folder with profiles.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, profile: &Profile) {
        hither_profile::write(profile, &self.path(name)).expect("a profile that can be written");
    }

    /// Traces `ondes` with four threads, each on its own planes.
    fn trace(&self, name: &str, options: &[&str]) {
        let out = Command::new(HITHER)
            .args(["trace", "-q", "-o", name, "--"])
            .arg(ondes())
            .args(options)
            .args(["48", "40"])
            .env("OMP_NUM_THREADS", "4")
            .env("OMP_WAIT_POLICY", "passive")
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .output()
            .expect("hither");
        assert!(out.status.success(), "{}", text(&out.stderr));
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(HITHER);
        let command = command.args(arguments).current_dir(self.0.path());
        command.env("COLUMNS", "100").output().expect("hither")
    }

    /// On [`MACHINE`]: the exit status, and what is printed.
    fn check(&self, arguments: &[&str]) -> (i32, String) {
        let all = [&["check"], arguments, &["--topology", MACHINE]].concat();
        let out = self.run(&all);
        assert_eq!(text(&out.stderr), "", "{arguments:?}");
        let status = out.status.code().expect("a status");
        (status, text(&out.stdout))
    }
}

/// A wave equation whose first thread touches all data first, or with `-p` none but its own.
fn ondes() -> PathBuf {
    workloads::workload("ondes")
}
