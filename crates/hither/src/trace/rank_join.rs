//! One profile for all ranks that `mpirun -np N hither trace -- ./app` starts on a host.
//!
//! The first hither to bind a socket named after the job and the output leads; the others
//! connect, receive the path of the segment, and become their rank's program, so that mpirun
//! sees that program's own status. The socket is in the folder that the system keeps for the user
//! alone, where nobody else can take the name; without such a folder it is in the abstract name
//! space, which leaves no file behind.
//!
//!     mpirun --- hither (rank that leads) --- its program
//!        |          |
//!        |          `--- collector, in a session of its own: offers the segment,
//!        |               waits for all ranks, writes the profile
//!        `------ program of a rank that joined
//!
//! The collector is split off because launchers kill all ranks, hither among them, as
//! soon as one fails: then the profile is wanted most.
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::{access, getuid, AccessFlags, Pid};

use crate::program::child::TICK_INTERVAL;
use crate::program::mpi::MpiJob;

/// How long after the start a rank may come.
const JOIN_TIMEOUT: Duration = Duration::from_secs(10);

/// What this hither is to do.
pub enum RankRole {
    Lead(RankLeader),
    /// Attach the target to the segment at this path.
    Join(String),
}

/// Elects the leader among the ranks of `job` that write `output`.
///
/// # Errors
/// When the leader is another user's process or ends before it answers.
pub fn elect_leader(job: &MpiJob, output: &Path) -> Result<RankRole> {
    let name = socket_name(job, output);
    let met = match runtime_folder() {
        Some(folder) => meet_in_folder(&folder, &name),
        None => meet_in_name_space(&name),
    };
    match met.context("cannot make the socket on which ranks meet")? {
        Met::First(listener, file) => {
            Ok(RankRole::Lead(RankLeader::new(listener, file, job.local)?))
        }
        Met::Leader(stream) => Ok(RankRole::Join(request_attach_path(stream)?)),
    }
}

/// Whom a rank finds.
enum Met {
    /// Nobody: it listens, at a file if it is one.
    First(UnixListener, Option<PathBuf>),
    Leader(UnixStream),
}

/// The folder that the system keeps for this user and in which nobody else may write.
fn runtime_folder() -> Option<PathBuf> {
    let user = getuid();
    let folder = match user.is_root() {
        true => PathBuf::from("/run"),
        false => format!("/run/user/{user}").into(),
    };
    let data = folder.symlink_metadata().ok()?;
    let ours = data.is_dir() && data.uid() == user.as_raw() && data.mode() & 0o022 == 0;
    (ours && access(&folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok()).then_some(folder)
}

/// One rank at a time looks and takes the leader's place, also that of one that was killed.
fn meet_in_folder(folder: &Path, name: &str) -> io::Result<Met> {
    let turn = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(folder.join("hither-ranks.lock"))?;
    let _turn = Flock::lock(turn, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;
    let file = folder.join(name);
    if let Ok(stream) = UnixStream::connect(&file) {
        return Ok(Met::Leader(stream));
    }
    let _ = std::fs::remove_file(&file);
    Ok(Met::First(UnixListener::bind(&file)?, Some(file)))
}

fn meet_in_name_space(name: &str) -> io::Result<Met> {
    let address = SocketAddr::from_abstract_name(name)?;
    loop {
        match UnixListener::bind_addr(&address) {
            Ok(listener) => return Ok(Met::First(listener, None)),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
        // Refused: that leader has just ended, so lead in its place.
        if let Ok(stream) = UnixStream::connect_addr(&address) {
            return Ok(Met::Leader(stream));
        }
    }
}

fn socket_name(job: &MpiJob, output: &Path) -> String {
    let mut hash = DefaultHasher::new();
    (&job.id, std::path::absolute(output).ok()).hash(&mut hash);
    format!("hither-{}-{:016x}", getuid(), hash.finish())
}

/// Asks the leader for the path of the segment.
fn request_attach_path(mut stream: UnixStream) -> Result<String> {
    let leader = getsockopt(&stream, PeerCredentials).context("cannot tell who leads the trace")?;
    if leader.uid() != getuid().as_raw() {
        bail!("another user's process answers in place of the rank that leads the trace; choose another name with -o");
    }
    let mut path = String::new();
    stream
        .read_to_string(&mut path)
        .context("cannot hear from the rank that leads the trace")?;
    if path.is_empty() {
        bail!("the rank that leads the trace ended before this one could join; see its message");
    }
    Ok(path)
}

/// The collector's view of the ranks.
pub struct RankLeader {
    listener: UnixListener,
    /// What the listener is in the file system, to be removed at the end.
    file: Option<PathBuf>,
    attach: Option<String>,
    /// A descriptor for each joined rank that still runs.
    running: Vec<OwnedFd>,
    missing: usize,
    started: Instant,
}

impl RankLeader {
    fn new(listener: UnixListener, file: Option<PathBuf>, ranks: usize) -> Result<Self> {
        listener
            .set_nonblocking(true)
            .context("cannot set up the socket on which ranks meet")?;
        Ok(RankLeader {
            listener,
            file,
            attach: None,
            running: Vec::new(),
            missing: ranks,
            started: Instant::now(),
        })
    }

    /// From now on, ranks that connect get `path` to attach to.
    pub fn set_attach_path(&mut self, path: &str) {
        self.attach = Some(path.to_string());
    }

    /// Counts process `pid` as a rank that has joined.
    pub fn add_rank(&mut self, pid: Pid) {
        // Without a descriptor it has ended already.
        self.running.extend(hither_sys::process::pidfd(pid));
        self.missing = self.missing.saturating_sub(1);
    }

    /// Ranks that never came.
    #[must_use]
    pub fn ranks_missing(&self) -> usize {
        self.missing
    }

    /// Descriptors that become readable when there is something to serve.
    fn poll_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let running = self.running.iter().map(AsFd::as_fd);
        running.chain([self.listener.as_fd()])
    }

    /// Waits until all ranks have ended. Calls `tick` about twice a second.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait_for_ranks(&mut self, mut tick: impl FnMut()) -> Result<()> {
        let timeout = PollTimeout::try_from(TICK_INTERVAL).unwrap_or(PollTimeout::NONE);
        while self.serve_ranks() {
            tick();
            let watched = self.poll_fds().map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            match poll(&mut watched.collect::<Vec<_>>(), timeout) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error).context("cannot wait for the ranks"),
            }
        }
        if let Some(file) = self.file.take() {
            let _ = std::fs::remove_file(file);
        }
        Ok(())
    }

    /// Lets ranks in, drops those that ended; tells whether to go on waiting for some.
    fn serve_ranks(&mut self) -> bool {
        while let Ok((stream, _)) = self.listener.accept() {
            if let Some(rank) = self.accept_rank(stream) {
                self.running.push(rank);
                self.missing = self.missing.saturating_sub(1);
            }
        }
        self.running.retain(|rank| !has_ended(rank));
        !self.running.is_empty() || (self.missing > 0 && self.started.elapsed() < JOIN_TIMEOUT)
    }

    /// `None` for a stranger, or a rank that has gone already; it hears the connection
    /// close and says so itself.
    fn accept_rank(&self, mut stream: UnixStream) -> Option<OwnedFd> {
        let peer = getsockopt(&stream, PeerCredentials).ok()?;
        if peer.uid() != getuid().as_raw() {
            return None;
        }
        let rank = hither_sys::process::pidfd(Pid::from_raw(peer.pid())).ok()?;
        stream.write_all(self.attach.as_ref()?.as_bytes()).ok()?;
        Some(rank)
    }
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, local: usize) -> MpiJob {
        MpiJob {
            id: format!("{id}-{}", std::process::id()),
            local,
            world: local,
        }
    }

    #[test]
    fn the_first_leads_and_the_second_is_told_the_path() {
        let output = Path::new("prof.hither");
        let RankRole::Lead(mut leader) = elect_leader(&job("pair", 2), output).expect("meet")
        else {
            panic!("the first must lead");
        };
        leader.set_attach_path("/proc/1/fd/9");
        let mut own = std::process::Command::new("true").spawn().expect("true");
        leader.add_rank(Pid::from_raw(i32::try_from(own.id()).expect("pid")));
        let second = std::thread::spawn(|| elect_leader(&job("pair", 2), Path::new("prof.hither")));
        while !second.is_finished() {
            assert!(leader.serve_ranks(), "a rank is still missing or running");
            std::thread::yield_now();
        }
        let RankRole::Join(path) = second.join().expect("thread").expect("meet") else {
            panic!("the second must join");
        };
        assert_eq!(path, "/proc/1/fd/9");
        assert_eq!(leader.missing, 0);
        own.wait().expect("wait");
        // The joined "rank" is this very process, which still runs; the own one ended.
        assert!(leader.serve_ranks());
        assert_eq!(leader.running.len(), 1);
    }

    /// In a folder as in the name space, whichever is used here.
    #[test]
    fn one_leads_until_it_is_gone() {
        let folder = tempfile::tempdir().expect("folder");
        let space = format!("hither-test-{}", std::process::id());
        let ways: [&dyn Fn() -> io::Result<Met>; 2] =
            [&|| meet_in_folder(folder.path(), "ranks"), &|| {
                meet_in_name_space(&space)
            }];
        for way in ways {
            let Met::First(leader, _) = way().expect("meet") else {
                panic!("nobody is there");
            };
            assert!(matches!(way().expect("meet"), Met::Leader(_)));
            drop(leader);
            assert!(matches!(way().expect("meet"), Met::First(..)));
        }
    }

    #[test]
    fn other_outputs_are_other_groups_and_a_dead_leader_is_replaced() {
        let lead = |output: &str| elect_leader(&job("groups", 2), Path::new(output)).expect("meet");
        let a = lead("a.hither");
        assert!(matches!(a, RankRole::Lead(_)));
        assert!(matches!(lead("b.hither"), RankRole::Lead(_)));
        drop(a);
        assert!(matches!(lead("a.hither"), RankRole::Lead(_)));
    }

    #[test]
    fn a_leader_that_gives_up_leaves_joiners_with_a_message() {
        let RankRole::Lead(leader) = elect_leader(&job("gone", 2), Path::new("x")).expect("meet")
        else {
            panic!("the first must lead");
        };
        let waiting = std::thread::spawn(|| elect_leader(&job("gone", 2), Path::new("x")));
        std::thread::sleep(Duration::from_millis(100));
        drop(leader);
        match waiting.join().expect("thread") {
            Err(error) => assert!(error.to_string().contains("leads the trace"), "{error}"),
            Ok(role) => assert!(
                matches!(role, RankRole::Lead(_)),
                "it came too late and leads"
            ),
        }
    }
}
