//! Runs a workload under `hither trace` and reads the profile it left.
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use crate::workloads::workload;
use hither_profile::bursts::BurstTrace;
use hither_profile::Profile;
use hither_sys::wire::SegmentHeader;
use tempfile::TempDir;

/// Threads of the OpenMP programs.
pub const OPENMP_THREADS: usize = 4;

const NAME: &str = "p.hither";

/// The source of a workload.
pub fn source(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../workloads")
        .join(file)
}

/// Whether the workload could be built on this machine.
pub fn built(name: &str) -> bool {
    workload(name).exists()
}

/// Slices are of wall time by default: two traced programs at once would halve each other's.
static RUNNING: RwLock<()> = RwLock::new(());

fn alone() -> RwLockWriteGuard<'static, ()> {
    RUNNING.write().unwrap_or_else(PoisonError::into_inner)
}

/// Beside others for which time does not matter either.
fn together() -> RwLockReadGuard<'static, ()> {
    RUNNING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Options with which the whole run is one slice, or each access is kept.
const WHOLE: &[&str] = &["--full", "60s"];

/// A workload with its arguments and the options to trace it with.
pub struct Run {
    options: Vec<String>,
    command: Vec<String>,
    prefix: Vec<String>,
}

/// `line`: a workload and its arguments, separated by spaces.
pub fn run(line: &str) -> Run {
    Run {
        options: Vec::new(),
        command: line.split(' ').map(str::to_owned).collect(),
        prefix: Vec::new(),
    }
}

/// How many places in the code the tracer has told apart at most when looked at while a shell runs `script`.
pub fn places_in_code(script: &str) -> u32 {
    let most = most_in_segment(&["sh", "-c", script], |segment| {
        let mut number = [0; 4];
        let at_site = offset_of!(SegmentHeader, next_site) as u64;
        segment.read_exact_at(&mut number, at_site).ok()?;
        Some(u32::from_ne_bytes(number).into())
    });
    u32::try_from(most).expect("a number of 32 bits")
}

/// Bytes that the segment has taken at most when looked at while a workload runs as one slice.
pub fn memory_of_segment(line: &str) -> u64 {
    let (program, arguments) = line.split_once(' ').expect("arguments");
    let program = workload(program).display().to_string();
    let command: Vec<_> = std::iter::once(program.as_str())
        .chain(arguments.split(' '))
        .collect();
    most_in_segment(&command, |segment| {
        Some(segment.metadata().ok()?.blocks() * 512)
    })
}

/// The most that `look` found in the segment of a command, which is looked at every few milliseconds.
fn most_in_segment(command: &[&str], look: impl Fn(&File) -> Option<u64>) -> u64 {
    let _alone = alone();
    let folder = TempDir::new().expect("a folder");
    let mut trace = Command::new(env!("CARGO_BIN_EXE_hither"))
        .args(["trace", "-q", "--slice", "60s", "-o"])
        .arg(folder.path().join(NAME))
        .arg("--")
        .args(command)
        .stdout(Stdio::null())
        .spawn()
        .expect("hither starts");
    let mut most = 0;
    let status = loop {
        if let Some(status) = trace.try_wait().expect("its status") {
            break status;
        }
        let found = segment_of(trace.id()).and_then(|segment| look(&segment));
        most = most.max(found.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{status}");
    most
}

/// What a process shares with the programs it traces; `None` before it has it.
fn segment_of(pid: u32) -> Option<File> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let is_segment = |at: &PathBuf| {
        let link = std::fs::read_link(at).unwrap_or_default();
        link.to_string_lossy().contains("memfd:hither")
    };
    let at = files.map(|f| f.path()).find(is_segment)?;
    File::open(at).ok()
}

impl Run {
    /// Options of `hither trace`, separated by spaces.
    pub fn with(mut self, options: &str) -> Run {
        self.options.extend(options.split(' ').map(str::to_owned));
        self
    }

    /// A command that starts the workload.
    pub fn under(mut self, command: &str) -> Run {
        self.prefix = command.split(' ').map(str::to_owned).collect();
        self
    }

    /// The profile; the workload must have found its own result correct.
    pub fn profile(self) -> Profile {
        let (profile, out) = self.ended();
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{:?}: {text}", out.status);
        assert!(!text.contains("WRONG"), "{text}");
        profile
    }

    /// The profile, and how the command ended.
    pub fn ended(self) -> (Profile, Output) {
        let (profile, out, _) = self.measured();
        (profile, out)
    }

    /// The profile, how the command ended, and the bytes of the profile's files.
    pub fn measured(self) -> (Profile, Output, u64) {
        let (profile, out, folder) = self.kept();
        let bytes = size(&folder.path().join(NAME)).expect("the size of the profile");
        (profile, out, bytes)
    }

    /// The profile with its bursts; the workload must have found its own result correct.
    pub fn recorded(self) -> (Profile, BurstTrace) {
        let (profile, out, folder) = self.kept();
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(!text.contains("WRONG"), "{text}");
        let bursts = BurstTrace::open(&folder.path().join(NAME)).expect("bursts that can be read");
        (profile, bursts.expect("bursts"))
    }

    /// The profile, how the command ended, and the folder that the profile is in.
    fn kept(self) -> (Profile, Output, TempDir) {
        let whole = self.options.iter().any(|o| WHOLE.contains(&o.as_str()));
        let _running = match whole {
            true => (Some(together()), None),
            false => (None, Some(alone())),
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(NAME);
        // The programs are short: by their own time the work would share slices with its preparation.
        let clock = match self.options.iter().any(|o| o == "--slice-clock") {
            true => &[][..],
            false => &["--slice-clock", "wall"],
        };
        let out = Command::new(env!("CARGO_BIN_EXE_hither"))
            .args(["trace", "-q", "-o"])
            .arg(&path)
            .args(clock)
            .args(&self.options)
            .arg("--")
            .args(&self.prefix)
            .arg(workload(&self.command[0]))
            .args(&self.command[1..])
            .env("OMP_NUM_THREADS", OPENMP_THREADS.to_string())
            .env("OMP_WAIT_POLICY", "passive")
            .stdin(Stdio::null())
            .output()
            .expect("hither");
        let profile = hither_profile::read(&path).unwrap_or_else(|error| {
            let said = String::from_utf8_lossy(&out.stderr);
            panic!(
                "{:?} left no profile: {error}\n{said}(`cargo xtask tracer` builds the tracer)",
                self.command
            )
        });
        (profile, out, folder)
    }
}

/// Bytes of all files in a folder.
fn size(folder: &Path) -> std::io::Result<u64> {
    let files = std::fs::read_dir(folder)?;
    files.map(|file| Ok(file?.metadata()?.len())).sum()
}
