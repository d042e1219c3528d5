//! The rank that leads splits into two: hither proper, which mpirun knows and which is
//! the parent of the rank's program, and the collector. See [`super::rank_join`].
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

use crate::program::child::{self, HeldSignals};

/// Which of the two this process is.
pub enum LeaderHalf {
    Launcher(LauncherHalf),
    Collector(HalfLink),
}

/// The end of the socket pair that one half holds.
pub struct HalfLink(BufReader<UnixStream>);

pub struct LauncherHalf {
    link: HalfLink,
    collector: Pid,
}

/// Splits this process. Must come before any thread is made.
///
/// # Errors
/// When the kernel refuses.
pub fn split_leader() -> Result<LeaderHalf> {
    let (here, there) = UnixStream::pair().context("cannot make a socket pair")?;
    let link = |socket| HalfLink(BufReader::new(socket));
    match hither_sys::process::split_off().context("cannot split off the collector")? {
        Some(collector) => Ok(LeaderHalf::Launcher(LauncherHalf {
            link: link(here),
            collector,
        })),
        None => Ok(LeaderHalf::Collector(link(there))),
    }
}

impl HalfLink {
    fn send_line(&mut self, line: &str) -> Result<()> {
        let told = writeln!(self.0.get_mut(), "{line}");
        told.context("the other half of hither has ended")
    }

    /// `None` when the other side has ended.
    fn receive_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_string())
    }

    /// The collector's part: tells where the segment is, hears whom to wait for.
    pub fn exchange_start(&mut self, attach: &str) -> Option<Pid> {
        self.send_line(attach).ok()?;
        Some(Pid::from_raw(self.receive_line()?.parse().ok()?))
    }

    /// The collector's part: how the leading rank's program ended. Killed, if hither
    /// cannot tell any more, since nothing less keeps it from telling.
    pub fn receive_run_end(&mut self) -> RunEnd {
        let told = self
            .receive_line()
            .and_then(|line| serde_json::from_str(&line).ok());
        told.unwrap_or(RunEnd::Signaled {
            signal: Signal::SIGKILL as i32,
        })
    }
}

impl LauncherHalf {
    /// Starts the program by `spawn`, given the path of the segment and the signal mask,
    /// and waits for it and the collector. Returns the exit status.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn run(mut self, spawn: impl FnOnce(&str, SigSet) -> Result<Child>) -> Result<u8> {
        let signals = HeldSignals::hold()?;
        let Some(attach) = self.link.receive_line() else {
            // It has said why.
            return self.collector_status();
        };
        let child = spawn(&attach, signals.before())?;
        let pid = Pid::from_raw(i32::try_from(child.id()).context("the program's process id")?);
        self.link.send_line(&pid.to_string())?;
        let end = child::wait_for_child(pid, &signals, || {})?;
        self.link.send_line(&serde_json::to_string(&end)?)?;
        let collected = child::wait_for_helper(self.collector, &signals)?;
        if let Some(signal) = collected {
            // Whoever waits for the profile has had enough.
            return Ok(128u8.saturating_add(signal));
        }
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
