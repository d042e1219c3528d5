//! Traces a program, once per run of the tests, and asks `hither report` what it finds.
use crate::workloads::workload;
use hither_profile::{Finding, FindingKind, Profile};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

pub const HITHER: &str = env!("CARGO_BIN_EXE_hither");

/// Four nodes of one core, whose caches are so small that the data of a quick run does not
/// fit: 128 KiB together.
pub const MACHINE: &str = "node:4 l2:1(size=32768) core:1 pu:1";

/// A profile of a program.
pub struct Traced {
    pub path: PathBuf,
    pub profile: Profile,
}

/// A program of `workloads/` and its arguments, separated by spaces; four threads if it is
/// an OpenMP program. Each line is traced once.
pub fn traced(line: &str) -> &'static Traced {
    traced_with(line, &[], "")
}

/// The same with more environment, and options for `hither trace`, separated by spaces.
pub fn traced_with(line: &str, environment: &[(&str, &str)], options: &str) -> &'static Traced {
    static ALL: LazyLock<Mutex<HashMap<String, &'static OnceLock<Traced>>>> =
        LazyLock::new(Mutex::default);
    let key = format!("{line} {environment:?} {options}");
    let number;
    let cell = {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        number = all.len();
        *all.entry(key).or_insert_with(|| Box::leak(Box::default()))
    };
    cell.get_or_init(|| trace(number, line, environment, options))
}

fn trace(number: usize, line: &str, environment: &[(&str, &str)], options: &str) -> Traced {
    let mut words = line.split(' ');
    let name = words.next().expect("a program");
    // Cargo's own folder for this: what is leaked above would never remove a folder in /tmp.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("findings");
    std::fs::create_dir_all(&folder).expect("a folder for profiles");
    let path = folder.join(format!("{number}-{name}.hither"));
    let _ = std::fs::remove_dir_all(&path);
    let out = Command::new(HITHER)
        .args(["trace", "-q", "-o"])
        .arg(&path)
        .args(options.split_whitespace())
        .arg("--")
        .arg(workload(name))
        .args(words)
        .env("OMP_NUM_THREADS", "4")
        .env("OMP_WAIT_POLICY", "passive")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("hither");
    let [said, errors] = [&out.stdout, &out.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(
        out.status.success(),
        "{line}: {:?} {said}{errors}",
        out.status
    );
    assert!(!said.contains("WRONG"), "{line}: {said}");
    let profile = hither_profile::read(&path)
        .unwrap_or_else(|error| panic!("{line} left no profile: {error}\n{errors}"));
    Traced { path, profile }
}

/// What `hither report` finds in a profile with these arguments.
pub fn found(profile: &Path, arguments: &[&str]) -> Vec<Finding> {
    let out = Command::new(HITHER)
        .args(["report", "--json"])
        .arg(profile)
        .args(arguments)
        .output()
        .expect("hither");
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{errors}");
    let mut report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let found: Vec<Finding> = serde_json::from_value(report["findings"].take()).expect("findings");
    for finding in &found {
        let once: HashSet<&String> = finding.evidence.iter().collect();
        assert_eq!(
            once.len(),
            finding.evidence.len(),
            "said twice: {finding:#?}"
        );
    }
    found
}

impl Traced {
    /// What is found on [`MACHINE`], worst first.
    pub fn findings(&self) -> Vec<Finding> {
        self.findings_on(MACHINE)
    }

    /// What is found on another machine, as `--topology` takes it.
    pub fn findings_on(&self, machine: &str) -> Vec<Finding> {
        found(&self.path, &["--topology", machine])
    }

    /// The findings of one kind on [`MACHINE`].
    pub fn of(&self, kind: FindingKind) -> Vec<Finding> {
        let mut all = self.findings();
        all.retain(|finding| finding.kind == kind);
        all
    }

    /// The name of the structure that a finding is about, or an empty string.
    pub fn name(&self, finding: &Finding) -> &str {
        let object = finding.object.map(|o| &self.profile.objects[o.at()]);
        object.map_or("", |o| &o.name)
    }

    /// The structures that findings of a kind are about, in order of their names.
    pub fn names(&self, kind: FindingKind) -> Vec<String> {
        let found = self.of(kind);
        let mut names: Vec<String> = found.iter().map(|f| self.name(f).to_owned()).collect();
        names.sort();
        names
    }
}
