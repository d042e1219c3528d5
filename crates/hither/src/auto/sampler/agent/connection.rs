//! The connection to an agent, and whether there can be one.
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use hither_sys::probe;
use nix::libc;
use nix::sys::statfs::{fstatfs, FsType};

use super::protocol::{self, AgentCounts, AgentOrder, AgentReport};
use hither_sys::{Pid, Tid};

/// An agent that is there.
#[derive(Debug)]
pub struct AgentConnection {
    pub tid: Tid,
    orders: File,
    reports: File,
    pub counts: AgentCounts,
    /// Its userfaultfd: as long as hither holds it too, a process that ends in the middle of
    /// a system call does not read pages that are away as zeros.
    faults: Option<OwnedFd>,
}

impl AgentConnection {
    /// Opens its pipes and has it begin.
    ///
    /// # Errors
    /// When it is gone, or is none of ours.
    pub fn connect(pid: Pid, tid: Tid) -> io::Result<AgentConnection> {
        let pipe = |fd: i32| open_pipe(&format!("/proc/{pid}/task/{tid}/fd/{fd}"), fd);
        let reports = pipe(protocol::REPORTS)?;
        let mut agent = AgentConnection {
            tid,
            orders: pipe(protocol::ORDERS)?,
            reports,
            counts: AgentCounts::default(),
            faults: hither_sys::inject::copy_descriptor(tid, protocol::FAULTS).ok(),
        };
        let hello = AgentReport::Hello {
            magic: protocol::MAGIC,
            version: protocol::VERSION,
        };
        if agent.read_reports()? != [hello] {
            return Err(io::Error::other("it is no agent of this hither"));
        }
        agent.send_orders(&[AgentOrder::Go])?;
        Ok(agent)
    }

    /// Its userfaultfd; with that it is let go.
    ///
    /// # Errors
    /// Before Linux 6.9.
    pub fn lend_userfaultfd(self) -> io::Result<OwnedFd> {
        let unknown = || io::Error::other("descriptors of threads cannot be had (Linux 6.9)");
        self.faults.ok_or_else(unknown)
    }

    /// What it reported since the last time.
    ///
    /// # Errors
    /// UnexpectedEof when it is gone.
    pub fn read_reports(&mut self) -> io::Result<Vec<AgentReport>> {
        let mut news = Vec::new();
        let mut bytes = [0; 32 * protocol::REPORT];
        loop {
            match self.reports.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(length) => {
                    let (reports, _) = bytes[..length].as_chunks();
                    for (what, counts) in reports.iter().filter_map(protocol::decode_report) {
                        news.push(what);
                        self.counts = counts;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(news),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Gives orders; those that it has no room for are forgotten.
    ///
    /// # Errors
    /// BrokenPipe when it is gone.
    pub fn send_orders(&mut self, all: &[AgentOrder]) -> io::Result<()> {
        // What a pipe takes at once, or not at all.
        for some in all.chunks(4096 / protocol::ORDER) {
            let bytes: Vec<u8> = some.iter().flat_map(AgentOrder::encode).collect();
            match self.orders.write(&bytes) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                done => done?,
            };
        }
        Ok(())
    }
}

/// What pipes without a name are kept in.
const PIPEFS_MAGIC: FsType = FsType(0x5049_5045);

/// Opens the end of a pipe that descriptor `fd` of an agent, at `path`, is. The program could
/// have put something else there: to open a file of the system with our rights, even a
/// device only for a look, is what it could not do itself.
fn open_pipe(path: &str, fd: i32) -> io::Result<File> {
    let mut options = File::options();
    let what = options.read(true).custom_flags(libc::O_PATH).open(path)?;
    if fstatfs(&what)?.filesystem_type() != PIPEFS_MAGIC {
        return Err(io::Error::other("it is no agent of this hither"));
    }
    let read = fd == protocol::REPORTS;
    let mut options = File::options();
    options.read(read).write(!read);
    options.custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    // The same, whatever is at `path` by now.
    options.open(format!("/proc/self/fd/{}", what.as_raw_fd()))
}

/// Whether this kernel and this user can have an agent at all.
pub fn is_possible() -> Result<(), String> {
    // Faults inside system calls must be told of, too, and children.
    hither_sys::inject::can_enable_uffd_features(protocol::FEATURES).map_err(|e| match e.raw_os_error() {
        Some(libc::EINVAL) => "the kernel cannot move pages (UFFDIO_MOVE, Linux 6.8)".to_owned(),
        _ => format!("userfaultfd is not allowed here ({e}); be root, outside of containers, or in docker add --cap-add SYS_PTRACE"),
    })?;
    can_enter()
}

/// Whether a thread can be put into a program.
pub fn can_enter() -> Result<(), String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("the agent is there for x86-64 only".to_owned());
    }
    probe::ptrace_seize().map_err(|e| {
        format!(
            "no thread can be put into a program (ptrace: {e}); in docker: --cap-add SYS_PTRACE"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pipes_are_opened() {
        let (reader, writer) = io::pipe().expect("pipe");
        let path = |fd: i32| format!("/proc/self/fd/{fd}");
        let ours = open_pipe(&path(writer.as_raw_fd()), protocol::ORDERS);
        assert_eq!(ours.expect("opened").write(b"x").expect("write"), 1);
        assert!(open_pipe(&path(reader.as_raw_fd()), protocol::REPORTS).is_ok());
        let folder = tempfile::tempdir().expect("folder");
        let named = folder.path().join("pipe");
        nix::unistd::mkfifo(&named, nix::sys::stat::Mode::S_IRWXU).expect("fifo");
        let file = tempfile::tempfile().expect("file");
        for other in [named.to_string_lossy().into_owned(), path(file.as_raw_fd())] {
            let refused = open_pipe(&other, protocol::REPORTS).expect_err("no pipe of ours");
            assert!(refused.to_string().contains("no agent"), "{refused}");
        }
    }
}
