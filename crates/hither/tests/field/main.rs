//! `hither trace` on programs that are not ours, and under abuse: each runs natively and
//! traced, and must print and return the same; the profile must make sense. Needs the
//! tracer (`cargo xtask tracer`) and the example programs (`make -C workloads`).
mod doctor;
mod endings;
mod environment;
mod limits;
mod mpi;
mod programs;
mod refused;

use std::fs;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use hither_profile::Profile;
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use tempfile::TempDir;

const HITHER: &str = env!("CARGO_BIN_EXE_hither");
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/field");
/// A run that takes longer hangs. The longest here takes half a minute on two idle
/// processors, but machines that test may be busy with much else.
const PATIENCE: Duration = Duration::from_secs(600);

/// A folder to work in.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().expect("tempdir"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Signals that whoever started the tests ignores (nohup, a shell's `&`) are not
    /// ignored by what is tested.
    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new("env");
        command
            .arg("--default-signal")
            .args(line)
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a shell's command line.
    fn shell(&self, line: &str) -> Output {
        run(self.command(&["sh", "-c", line]))
    }

    fn trace(&self, line: &[&str]) -> Output {
        let traced = [&[HITHER, "trace", "-q", "-o", "traced", "--"], line].concat();
        run(self.command(&traced))
    }

    fn profile(&self) -> Profile {
        self.profile_of("traced.hither")
    }

    fn profile_of(&self, name: &str) -> Profile {
        let profile = hither_profile::read(&self.path(name)).expect("a profile");
        let stat = run(self.command(&[HITHER, "stat", name]));
        assert!(stat.status.success(), "{}", text(&stat.stderr));
        assert!(text(&stat.stdout).contains("Verdict"));
        profile
    }
}

/// Runs it, but not for ever.
fn run(command: Command) -> Output {
    Running::start(command).end()
}

/// A command at work. Its output goes through files, so that a leftover process cannot
/// keep a pipe open.
struct Running {
    command: Command,
    child: Child,
    out: fs::File,
    err: fs::File,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let out = tempfile::tempfile().expect("tempfile");
        let err = tempfile::tempfile().expect("tempfile");
        command.stdout(out.try_clone().expect("dup"));
        command.stderr(err.try_clone().expect("dup"));
        let child = command.spawn().expect("spawn");
        Running {
            command,
            child,
            out,
            err,
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("pid"));
        kill(pid, signal).expect("kill");
    }

    fn end(mut self) -> Output {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                break status;
            }
            if start.elapsed() > PATIENCE {
                let _ = self.child.kill();
                panic!("{:?} hangs", self.command);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        Output {
            status,
            stdout: whole(self.out),
            stderr: whole(self.err),
        }
    }
}

fn whole(mut file: fs::File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().expect("rewind");
    file.read_to_end(&mut bytes).expect("read");
    bytes
}

fn wait_for(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "no {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The exit status as a shell shows it.
fn status(output: &Output) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let signal = output.status.signal().map(|signal| 128 + signal);
    output.status.code().or(signal).expect("a status")
}

fn accesses(profile: &Profile) -> u64 {
    profile
        .threads
        .iter()
        .map(hither_profile::Thread::accesses)
        .sum()
}

/// How much a profile has to show.
struct Expected {
    processes: usize,
    threads: usize,
}

/// `line` natively and traced in `place`: same output and status, at least what is
/// `expected` in the profile.
#[track_caller]
fn check_in(place: &Place, line: &[&str], expected: &Expected) -> Profile {
    let native = run(place.command(line));
    let traced = place.trace(line);
    assert_eq!(text(&native.stderr), text(&traced.stderr), "{line:?}");
    assert!(
        native.stdout == traced.stdout,
        "{line:?}: {} is not {}",
        text(&traced.stdout),
        text(&native.stdout)
    );
    assert_eq!(status(&native), status(&traced), "{line:?}");
    let profile = place.profile();
    assert!(
        profile.threads.len() >= expected.threads,
        "{line:?}: {} threads",
        profile.threads.len()
    );
    assert!(
        profile.meta.processes.len() >= expected.processes,
        "{line:?}: {} processes",
        profile.meta.processes.len()
    );
    assert!(
        accesses(&profile) > 1000,
        "{line:?}: {} accesses",
        accesses(&profile)
    );
    profile
}

#[track_caller]
fn check(line: &[&str], processes: usize, threads: usize) -> Profile {
    check_in(&Place::new(), line, &Expected { processes, threads })
}

/// A program of `workloads/`.
fn workload(name: &str) -> String {
    let target = Path::new(HITHER).ancestors().nth(2).expect("target");
    let program = target.join("workloads").join(name);
    assert!(
        program.exists(),
        "{} is missing: make -C workloads",
        program.display()
    );
    program.to_string_lossy().into_owned()
}

/// A program built from a file of this folder, once per run of the tests.
fn built(name: &str) -> String {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().expect("tempdir");
        let script = format!(
            "set -e; gcc -std=gnu11 -O1 -g -pthread -o abuse {SOURCES}/abuse.c
             gcc -static -std=gnu11 -O1 -g -pthread -o abuse-static {SOURCES}/abuse.c
             g++ -std=c++17 -O1 -g -pthread -o throws {SOURCES}/throws.cpp -ldl; chmod 755 ."
        );
        let mut shell = Command::new("sh");
        let done = shell
            .args(["-c", &script])
            .current_dir(folder.path())
            .status();
        assert!(done.expect("sh").success());
        folder
    });
    folder.path().join(name).to_string_lossy().into_owned()
}
