//! The rank that leads splits into two: hither proper, which mpirun knows and which is
//! the parent of the rank's program, and the collector. See [`super::join`].
//!
//! They talk through a pair of sockets, a line each: the collector tells the path of the
//! segment, hither the program's process id and, later, how it ended.
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Child;

use anyhow::{bail, Context, Result};
use hither_profile::RunEnd;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::Pid;

use crate::program::child::{self, Signals};

/// Which of the two this process is.
pub enum Half {
    Hither(Hither),
    Collector(Link),
}

/// The end of the socket pair that one half holds.
pub struct Link(BufReader<UnixStream>);

pub struct Hither {
    link: Link,
    collector: Pid,
}

/// Splits this process. Must come before any thread is made.
///
/// # Errors
/// When the kernel refuses.
pub fn split() -> Result<Half> {
    let (here, there) = UnixStream::pair().context("cannot make a socket pair")?;
    let link = |socket| Link(BufReader::new(socket));
    match hither_sys::process::split_off().context("cannot split off the collector")? {
        Some(collector) => Ok(Half::Hither(Hither {
            link: link(here),
            collector,
        })),
        None => Ok(Half::Collector(link(there))),
    }
}

impl Link {
    fn tell(&mut self, line: &str) -> Result<()> {
        let told = writeln!(self.0.get_mut(), "{line}");
        told.context("the other half of hither has ended")
    }

    /// `None` when the other side has ended.
    fn hear(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_string())
    }

    /// The collector's part: tells where the segment is, hears whom to wait for.
    pub fn offer(&mut self, attach: &str) -> Option<Pid> {
        self.tell(attach).ok()?;
        Some(Pid::from_raw(self.hear()?.parse().ok()?))
    }

    /// The collector's part: how the leading rank's program ended. Killed, if hither
    /// cannot tell any more, since nothing less keeps it from telling.
    pub fn end(&mut self) -> RunEnd {
        let told = self
            .hear()
            .and_then(|line| serde_json::from_str(&line).ok());
        told.unwrap_or(RunEnd::Signaled {
            signal: Signal::SIGKILL as i32,
        })
    }
}

impl Hither {
    /// Starts the program by `spawn`, given the path of the segment and the signal mask,
    /// and waits for it and the collector. Returns the exit status.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn run(mut self, spawn: impl FnOnce(&str, SigSet) -> Result<Child>) -> Result<u8> {
        let signals = Signals::hold()?;
        let Some(attach) = self.link.hear() else {
            // It has said why.
            return self.collector_status();
        };
        let child = spawn(&attach, signals.before())?;
        let pid = Pid::from_raw(i32::try_from(child.id()).context("the program's process id")?);
        self.link.tell(&pid.to_string())?;
        let end = child::wait(pid, &signals, || {})?;
        self.link.tell(&serde_json::to_string(&end)?)?;
        match self.collector_status()? {
            0 => Ok(child::exit_status(&end)),
            failed => Ok(failed),
        }
    }

    fn collector_status(&self) -> Result<u8> {
        match waitpid(self.collector, None).context("cannot wait for the collector")? {
            WaitStatus::Exited(_, status) => Ok(u8::try_from(status & 0xff)?),
            other => bail!("the collector was killed, the profile is lost: {other:?}"),
        }
    }
}
