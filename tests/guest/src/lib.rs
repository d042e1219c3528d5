//! The test machine: a NUMA guest in QEMU that boots in seconds, runs shell commands on
//! copies of the host's programs, and gives back what they print.
//!
//! ```no_run
//! use hither_guest::Guest;
//!
//! let guest = Guest::new().nodes(2).file("/usr/lib/python3.11");
//! let output = guest.run("numactl -H").unwrap();
//! assert_eq!(output.status, 0);
//! // One boot for many commands, which share /tmp:
//! let outputs = guest.run_all(&["python3 -c 'print(1)'", "cp /proc/cpuinfo /out"]).unwrap();
//! assert_eq!(outputs[0].text(), "1\n");
//! assert!(outputs[1].files.contains_key("cpuinfo"));
//! ```
//!
//! Code runs 20 to 50 times slower than on the host: right for what happens and where,
//! useless for how long it takes. Everything comes from Debian packages, see [`missing()`].
#![forbid(unsafe_code)]
mod boot;
mod cpio;
mod kernel;
mod machine;
mod requirements;
mod root;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use boot::{BootEnd, MarkedStream, QemuRun};
use machine::GuestMachine;

pub use machine::DebianKernel;
pub use requirements::{missing, or_skip, or_skip_with, prepare, required};
pub use root::GuestRoot;

/// A machine to boot: what it looks like, what is on it. Each run boots it afresh.
#[derive(Clone, Debug)]
pub struct Guest {
    machine: GuestMachine,
    kernel: DebianKernel,
    kernel_arguments: String,
    own_clock: bool,
    limit: Duration,
    folder: PathBuf,
    copies: Vec<(PathBuf, PathBuf)>,
    texts: Vec<(PathBuf, String)>,
    live: bool,
}

/// What came of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit status; 128 + n after signal n, as shells have it.
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// The regular files that it left in `/out`, by path below that.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl CommandOutput {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// Something from a package is not there; which, and how to get it.
    #[error("{0}")]
    Missing(String),
    /// A machine that cannot be built as asked; what is wrong.
    #[error("{0}")]
    Shape(String),
    #[error("{what}: {cause}")]
    Io { what: String, cause: io::Error },
    #[error("{0}")]
    Unfinished(Box<UnfinishedRun>),
}

/// A guest that did not get through its commands.
#[derive(Debug, thiserror::Error)]
#[error("the guest {how}, in command {} of {commands}\n{}{console}", done.len() + 1, self.printed())]
pub struct UnfinishedRun {
    /// "was killed after 3 s" or the like.
    pub how: String,
    pub commands: usize,
    /// Of the commands before.
    pub done: Vec<CommandOutput>,
    /// What the command printed up to then; its status means nothing.
    pub last: CommandOutput,
    /// The last lines of the guest's console.
    pub console: String,
}

impl UnfinishedRun {
    fn printed(&self) -> String {
        let tail = |name: &str, text: String| {
            let lines: Vec<&str> = text.lines().collect();
            let last = lines[lines.len().saturating_sub(20)..].join("\n");
            if last.is_empty() {
                last
            } else {
                format!("its {name} ended in:\n{last}\n")
            }
        };
        let printed = tail("stdout", self.last.text()) + &tail("stderr", self.last.errors());
        printed + "the console ended in:\n"
    }
}

impl GuestError {
    fn io(what: String, cause: io::Error) -> GuestError {
        GuestError::Io { what, cause }
    }
}

impl Default for Guest {
    fn default() -> Self {
        Guest::new()
    }
}

impl Guest {
    /// Four nodes of two processors and 512 MiB each, in a ring (distances 21 and 31),
    /// kernel 6.12, five minutes of time.
    pub fn new() -> Guest {
        Guest {
            machine: GuestMachine::default(),
            kernel: DebianKernel::V6_12,
            kernel_arguments: String::new(),
            own_clock: false,
            limit: Duration::from_secs(300),
            folder: "/tmp".into(),
            copies: Vec::new(),
            texts: Vec::new(),
            live: false,
        }
    }

    /// Nodes that have processors.
    pub fn nodes(mut self, nodes: usize) -> Guest {
        self.machine.nodes = nodes;
        self
    }

    /// Processing units in all, shared equally among the nodes in order.
    pub fn cpus(mut self, cpus: usize) -> Guest {
        self.machine.cpus = cpus;
        self
    }

    /// Sockets in all; as many as nodes if not said.
    pub fn sockets(mut self, sockets: usize) -> Guest {
        self.machine.sockets = Some(sockets);
        self
    }

    /// Dies per socket, each with an L3 cache of its own.
    pub fn dies(mut self, dies: usize) -> Guest {
        self.machine.dies = dies;
        self
    }

    /// Hardware threads per core.
    pub fn threads(mut self, threads: usize) -> Guest {
        self.machine.threads = threads;
        self
    }

    /// A row per node; 10 from a node to itself, up to 254 to others.
    pub fn distances(mut self, rows: &[Vec<u8>]) -> Guest {
        self.machine.distances = Some(rows.to_vec());
        self
    }

    /// Adds a node without processors, numbered after the others.
    pub fn memory_only_node(mut self) -> Guest {
        self.machine.memory_only += 1;
        self
    }

    /// Memory of each node in MiB. All that is copied in lies in node 0's.
    pub fn memory(mut self, mib: usize) -> Guest {
        self.machine.memory_mib = mib;
        self
    }

    pub fn kernel(mut self, kernel: DebianKernel) -> Guest {
        self.kernel = kernel;
        self
    }

    /// More arguments for the kernel, such as `numa_balancing=disable`.
    pub fn kernel_arguments(mut self, arguments: &str) -> Guest {
        self.kernel_arguments = arguments.to_string();
        self
    }

    /// Time in the guest goes by what it computes, 4 ns an instruction, and not by the wall
    /// clock: how busy the host is changes nothing of what happens when.
    pub fn own_clock(mut self) -> Guest {
        self.own_clock = true;
        self
    }

    /// From power on until all commands are done, of wall time less that for which QEMU had no processor.
    pub fn timeout(mut self, limit: Duration) -> Guest {
        self.limit = limit;
        self
    }

    /// Where commands start; `/tmp` if not said. It is made if it is not there, and a
    /// program that a command names by a relative path is looked for there on the host.
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Guest {
        self.folder = folder.as_ref().to_path_buf();
        self
    }

    /// Copies a file or folder of the host to the same place in the guest, with the
    /// shared libraries of the programs in it. Paths must be absolute.
    pub fn file(self, path: impl AsRef<Path>) -> Guest {
        let path = path.as_ref();
        self.file_at(path, path)
    }

    /// The same, to another place.
    pub fn file_at(mut self, host: impl AsRef<Path>, guest: impl AsRef<Path>) -> Guest {
        let pair = (host.as_ref().to_path_buf(), guest.as_ref().to_path_buf());
        self.copies.push(pair);
        self
    }

    /// A file with that text; executable, so that it can be a script.
    pub fn text(mut self, guest: impl AsRef<Path>, text: &str) -> Guest {
        self.texts
            .push((guest.as_ref().to_path_buf(), text.to_string()));
        self
    }

    /// Also prints what commands print, as it comes.
    pub fn live(mut self) -> Guest {
        self.live = true;
        self
    }

    /// Boots, runs one command as `sh` does, and switches off. The shell and the small
    /// tools are busybox; any other program of the host's that the command names, by a
    /// name in /usr or by path, is copied along.
    pub fn run(&self, command: &str) -> Result<CommandOutput, GuestError> {
        let mut outputs = self.run_all(&[command])?;
        Ok(outputs.pop().unwrap_or_default())
    }

    /// Boots once and runs commands one after the other, each with its own `/out`, all
    /// with the same `/tmp`.
    pub fn run_all(&self, commands: &[&str]) -> Result<Vec<CommandOutput>, GuestError> {
        // Refused before anything is downloaded.
        self.machine.arguments()?;
        requirements::check_tools()?;
        let image = kernel::prepare(self.kernel, &requirements::kernel_store()?)?;
        let scratch = tempfile::Builder::new().prefix("hither-guest-").tempdir();
        let scratch = scratch.map_err(|e| GuestError::io("cannot make a folder".into(), e))?;
        let token = random_marker();
        let root = self.root(&image, commands, &token)?;
        // It may be big, so it has no name that a killed process could leave behind.
        let archive = tempfile::tempfile();
        let archive = archive.map_err(|e| GuestError::io("cannot make a file".into(), e))?;
        root.write(&archive)?;
        let mut boot = QemuRun::start(self, &image.vmlinux(), archive, scratch.path(), &token)?;
        let seconds = self.limit.as_secs_f64();
        let how = match boot.watch(commands.len(), self.limit)? {
            BootEnd::Done => return outputs(&boot),
            BootEnd::TimedOut => format!("was killed because it took more than {seconds} s"),
            BootEnd::Died(status) => format!("ended ({status}) before its commands did"),
        };
        Err(unfinished_error(&boot, how, commands.len()))
    }

    fn root(
        &self,
        image: &kernel::KernelImage,
        commands: &[&str],
        token: &str,
    ) -> Result<GuestRoot, GuestError> {
        let mut root = GuestRoot::new()?;
        for (host, guest) in &self.copies {
            if !host.is_absolute() || !guest.is_absolute() {
                let (host, guest) = (host.display(), guest.display());
                let refusal = format!("{host} and {guest} must be absolute paths to be copied");
                return Err(GuestError::Shape(refusal));
            }
            root.copy(host, guest)?;
        }
        for (guest, text) in &self.texts {
            root.text(guest, 0o755, text.as_bytes());
        }
        root.folder(&self.folder);
        for (job, command) in commands.iter().enumerate() {
            for program in named_programs(command, &self.folder, &root) {
                root.copy(&program, &program)?;
            }
            let script = format!("/guest/{job}.sh");
            root.text(Path::new(&script), 0o644, format!("{command}\n").as_bytes());
        }
        let folder = self.folder.display().to_string().replace('\'', r"'\''");
        let settings = format!("TOKEN={token}\nFOLDER='{folder}'\n");
        root.text(Path::new("/guest/settings"), 0o644, settings.as_bytes());
        for module in image.modules() {
            let name = module.file_name().unwrap_or_default();
            root.copy(&module, &Path::new("/guest/modules").join(name))?;
        }
        root.text(Path::new("/init"), 0o755, include_bytes!("init.sh"));
        Ok(root)
    }
}

/// Programs of the host that a command names and the root does not have yet.
fn named_programs(command: &str, folder: &Path, root: &GuestRoot) -> Vec<PathBuf> {
    let part = |c: char| c.is_alphanumeric() || "_./+-".contains(c);
    let words = command.split(|c| !part(c)).filter(|w| !w.is_empty());
    let program = |word: &str| {
        if word.contains('/') {
            let path = folder.join(word);
            return (root::is_program(&path) && !root.has(&path)).then_some(path);
        }
        let there = root.has_program(word);
        root::on_guest_path(word).filter(|_| !there)
    };
    words.filter_map(program).collect()
}

/// A word that no program prints by chance.
fn random_marker() -> String {
    let random = RandomState::new();
    format!("@@{:016x}{:016x}", random.hash_one(0), random.hash_one(1))
}

fn outputs(boot: &QemuRun) -> Result<Vec<CommandOutput>, GuestError> {
    let mut outputs = completed_outputs(&boot.stdout, &boot.stderr);
    let (archive, _) = boot.files.parts();
    let archive = archive.first().map_or(&[][..], |(_, bytes)| bytes);
    let damaged = || {
        GuestError::io(
            "the guest's files".into(),
            io::ErrorKind::InvalidData.into(),
        )
    };
    for (name, data) in cpio::regular_files(archive).ok_or_else(damaged)? {
        let (job, name) = name.split_once('/').ok_or_else(damaged)?;
        let job: usize = job.parse().map_err(|_| damaged())?;
        let output = outputs.get_mut(job).ok_or_else(damaged)?;
        output.files.insert(name.to_string(), data);
    }
    Ok(outputs)
}

/// Of the commands whose end is marked on both streams.
fn completed_outputs(stdout: &MarkedStream, stderr: &MarkedStream) -> Vec<CommandOutput> {
    let ((out, _), (err, _)) = (stdout.parts(), stderr.parts());
    let mut outputs = Vec::new();
    for ((status, out), (_, err)) in out.into_iter().zip(err) {
        outputs.push(CommandOutput {
            status,
            stdout: out.to_vec(),
            stderr: err.to_vec(),
            files: BTreeMap::new(),
        });
    }
    outputs
}

fn unfinished_error(boot: &QemuRun, how: String, commands: usize) -> GuestError {
    let last = CommandOutput {
        stdout: boot.stdout.parts().1.to_vec(),
        stderr: boot.stderr.parts().1.to_vec(),
        ..CommandOutput::default()
    };
    GuestError::Unfinished(Box::new(UnfinishedRun {
        how,
        commands,
        done: completed_outputs(&boot.stdout, &boot.stderr),
        last,
        console: boot.console(),
    }))
}
