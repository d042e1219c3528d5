//! What the tests of whole programs share: a folder to work in, commands that may not hang,
//! their output and status.
mod installed;
mod outcome;
mod workloads;

// Each test uses some of them.
#[allow(unused_imports)]
pub use installed::there;
#[allow(unused_imports)]
pub use outcome::{check_refusal, status, text};

use std::fs;
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use tempfile::TempDir;

pub const HITHER: &str = env!("CARGO_BIN_EXE_hither");

/// A run that takes longer hangs. The longest takes half a minute on two idle processors,
/// but machines that test may be busy with much else. `HITHER_PATIENCE`: other seconds.
fn patience() -> Duration {
    let seconds = std::env::var("HITHER_PATIENCE").map_or(600, |s| s.parse().expect("seconds"));
    Duration::from_secs(seconds)
}

/// A folder to work in.
pub struct Place(pub TempDir);

impl Place {
    pub fn new() -> Self {
        Place(tempfile::tempdir().expect("tempdir"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Signals that whoever started the tests ignores (nohup, a shell's `&`) are not
    /// ignored by what is tested.
    pub fn command(&self, line: &[&str]) -> Command {
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
    pub fn shell(&self, line: &str) -> Output {
        run(self.command(&["sh", "-c", line]))
    }
}

/// Runs it, but not for ever.
pub fn run(command: Command) -> Output {
    Running::start(command).end()
}

/// A command at work. Its output goes through files, so that a leftover process cannot
/// keep a pipe open.
pub struct Running {
    command: Command,
    pub child: Child,
    out: fs::File,
    err: fs::File,
}

impl Running {
    pub fn start(mut command: Command) -> Running {
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

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("pid"));
        kill(pid, signal).expect("kill");
    }

    pub fn end(mut self) -> Output {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                break status;
            }
            if start.elapsed() > patience() {
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

pub fn wait_for(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < patience(), "no {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A folder with what a shell's script builds there.
pub fn built_by(script: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("tempdir");
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(folder.path());
    assert!(shell.status().expect("sh").success());
    folder
}

/// A program of `workloads/`.
pub fn workload(name: &str) -> String {
    let program = workloads::workload(name);
    assert!(
        program.exists(),
        "{} cannot be built here",
        program.display()
    );
    program.to_string_lossy().into_owned()
}

/// What runs a program as the user who has no rights.
pub const NOBODY: [&str; 6] = [
    "setpriv",
    "--reuid",
    "65534",
    "--regid",
    "65534",
    "--clear-groups",
];

/// Programs that cannot be followed: how to make one, its name, the exit status that hither
/// returns, and what its message contains.
pub const REFUSED: [(&str, &str, i32, &str); 8] = [
    ("true", "no-such-program", 127, "no such program"),
    ("mkdir folder", "./folder", 126, "folder"),
    ("echo > plain", "./plain", 126, "not executable"),
    (
        r"printf '\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0\1\0\0\0' > p; chmod +x p",
        "./p",
        2,
        "32-bit x86",
    ),
    ("cp /bin/true p; chmod 4755 p", "./p", 2, "set-user-id"),
    ("cp /bin/true p; chmod 2755 p", "./p", 2, "set-group-id"),
    (
        r"printf '\177ELF\2\1\1' > p; chmod +x p",
        "./p",
        126,
        "neither a program nor a script",
    ),
    (
        "printf '#!/no/such\\n' > p; chmod +x p",
        "./p",
        127,
        "/no/such",
    ),
];
