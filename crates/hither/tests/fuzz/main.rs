//! Files and programs that mean harm, at random: hither must neither panic nor be killed by a signal,
//! nor take more than five seconds of processor or a gigabyte of memory, nor write anything but its output.
//!
//! Each test goes on for `HITHER_FUZZ_SECONDS` (default: 2). What is tried depends on `HITHER_FUZZ_SEED` and
//! the number of the trial alone: what fails is repeated with that seed and `HITHER_FUZZ_FIRST`.
#[path = "../common/mod.rs"]
#[allow(dead_code)] // Other tests use more of it.
mod common;
mod files;
mod mutate;
mod programs;

use common::HITHER;
use mutate::Mutator;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Seconds of processor time that a trial may take, and KiB of address space: the program and its
/// libraries take some 200 MiB of it.
const MOST_CPU: u32 = 5;
const MOST_MEMORY: u64 = 1_300_000;
/// KiB in memory: of what traces, whose addresses cannot be bounded.
const MOST_RESIDENT: u64 = 1 << 20;
/// A trial that takes this long waits for something that will not come.
const MOST_WALL: Duration = Duration::from_secs(120);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |s| s.parse().expect("a number"))
}

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzz/corpus")
        .join(name)
}

/// A folder `work/` in a folder in which nothing else may appear.
struct Trial {
    place: tempfile::TempDir,
    pub mutator: Mutator,
}

impl Trial {
    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("work").join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("write");
    }

    /// What hither does with a line of words must be none of what it must not.
    fn check(&self, line: &[&str]) -> Result<(), String> {
        self.check_limited(line, &MOST_MEMORY.to_string(), MOST_WALL)
    }

    /// The same for one that traces a program, whose shared memory is many gigabytes of addresses. The
    /// program is killed when it should have ended.
    fn check_trace(&self, line: &[&str]) -> Result<(), String> {
        self.check_limited(line, "unlimited", Duration::from_secs(3))
    }

    /// No file that it was to name things from was too much for it.
    fn check_names(&self) -> Result<(), String> {
        let profile = hither_profile::read(&self.path("p.hither")).map_err(|e| e.to_string())?;
        let mut limits = profile.meta.limits.iter();
        match limits.find(|limit| limit.starts_with("Names and source lines are missing")) {
            Some(limit) => Err(limit.clone()),
            None => Ok(()),
        }
    }

    fn check_limited(&self, line: &[&str], memory: &str, patience: Duration) -> Result<(), String> {
        let limits =
            format!("ulimit -c 0; ulimit -t {MOST_CPU}; ulimit -v {memory}; exec \"$0\" \"$@\"");
        let errors = self.place.path().join("errors");
        let child = Command::new("bash")
            .args(["-c", &limits, HITHER])
            .args(line)
            .current_dir(self.path(""))
            .env("HOME", self.path("../home"))
            .env("TMPDIR", self.path("../tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&errors).expect("errors"))
            .spawn();
        let status = wait(child.expect("bash"), patience);
        let told = fs::read(&errors).expect("errors");
        let told = String::from_utf8_lossy(&told);
        fs::remove_file(&errors).expect("errors");
        let status = status?;
        if told.contains("panicked at") || status.code() == Some(101) {
            return Err(format!("it panics: {told}"));
        }
        if let Some(signal) = status.signal() {
            return Err(format!("signal {signal}: {told}"));
        }
        self.check_places()
    }

    /// Nothing was written beside the folder that it works in.
    fn check_places(&self) -> Result<(), String> {
        let names = |path: &Path| -> Vec<_> {
            let entries = fs::read_dir(path).expect("folder");
            entries.map(|e| e.expect("entry").file_name()).collect()
        };
        let around = names(self.place.path());
        let empty = ["home", "tmp"].map(|name| names(&self.place.path().join(name)).len());
        match around.len() == 3 && empty == [0, 0] {
            true => Ok(()),
            false => Err(format!("it wrote somewhere else: {around:?} {empty:?}")),
        }
    }
}

/// KiB that a process had in memory at most.
fn peak_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.map_or(0, |kib| kib.parse().expect("a number"))
}

fn children_of(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    children
        .split_whitespace()
        .map(|pid| pid.parse().expect("pid"))
        .collect()
}

fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// The process that reads the program's files for hither.
fn symbolizer_of(pid: u32) -> Option<u32> {
    children_of(pid)
        .into_iter()
        .find(|&child| name_of(child).trim() == "hither-symbols")
}

/// After `patience` the program is killed: not what is hither's own, also what is to become the program yet.
fn wait(mut child: Child, patience: Duration) -> Result<ExitStatus, String> {
    let began = Instant::now();
    let mut looks = 0;
    loop {
        if let Some(status) = child.try_wait().expect("wait") {
            return Ok(status);
        }
        let id = child.id();
        looks += 1;
        if looks % 16 == 0 && peak_of(id).max(symbolizer_of(id).map_or(0, peak_of)) > MOST_RESIDENT
        {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("it takes more than {} MiB", MOST_RESIDENT >> 10));
        }
        if began.elapsed() > patience {
            let is_program = |pid: &u32| !name_of(*pid).starts_with("hither");
            for pid in children_of(id).into_iter().filter(is_program) {
                let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
            }
        }
        if began.elapsed() > MOST_WALL {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("no end within {MOST_WALL:?}"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Tries until the time is over. What fails is kept in target/fuzz.
fn fuzz(target: &str, mut attempt: impl FnMut(&mut Trial) -> Result<(), String>) {
    let seconds = setting("HITHER_FUZZ_SECONDS", 2);
    let seed = setting("HITHER_FUZZ_SEED", 1);
    let first = setting("HITHER_FUZZ_FIRST", 0);
    let began = Instant::now();
    let mut number = first;
    let mut failures = Vec::new();
    while number == first || began.elapsed().as_secs() < seconds {
        let place = tempfile::tempdir().expect("tempdir");
        for folder in ["work", "home", "tmp"] {
            fs::create_dir(place.path().join(folder)).expect("mkdir");
        }
        let mixed = seed
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(number);
        let mut trial = Trial {
            place,
            mutator: Mutator::new(mixed),
        };
        if let Err(why) = attempt(&mut trial) {
            let kept = keep(target, seed, number, trial);
            let again =
                format!("HITHER_FUZZ_SEED={seed} HITHER_FUZZ_FIRST={number} HITHER_FUZZ_SECONDS=0");
            eprintln!("{target}: {why}\n  {} ({again})", kept.display());
            failures.push(number);
            if failures.len() == 20 {
                break;
            }
        }
        number += 1;
    }
    println!("{target}: {} trials", number - first);
    assert!(failures.is_empty(), "{target}: trials {failures:?} fail");
}

fn keep(target: &str, seed: u64, number: u64, trial: Trial) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../fuzz");
    fs::create_dir_all(&folder).expect("mkdir");
    let kept = folder.join(format!("{target}-{seed}-{number}"));
    let _ = fs::remove_dir_all(&kept);
    let from = trial.place.keep();
    let copied = Command::new("cp").arg("-r").args([&from, &kept]).status();
    assert!(copied.expect("cp").success());
    fs::remove_dir_all(from).expect("remove");
    kept
}
