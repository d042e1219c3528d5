//! While the target runs: wait for it and pass on the signals that were meant for it.
//!
//! The target stays in our process group, so whatever the terminal sends (Ctrl-C,
//! Ctrl-\) reaches it without us; we only must survive it. Signals sent to hither alone
//! (kill, mpirun, batch systems) are handed on. Both arrive through a signalfd, which
//! gives the sender's pid.
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hither_profile::RunEnd;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{kill, SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::Pid;

const HELD_SIGNALS: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];
/// How long after the program's end signals are still meant for it, which has left it to us to
/// write the profile: launchers and Ctrl-C may send several.
const AFTERWARDS: Duration = Duration::from_secs(2);
/// How often `tick` runs at least.
pub const TICK_INTERVAL: Duration = Duration::from_millis(500);

/// Signals held back from this process, to be read instead of dying of them. Must be
/// made before any thread is, as threads inherit the mask.
pub struct HeldSignals {
    fd: SignalFd,
    before: SigSet,
}

impl HeldSignals {
    /// Holds the signals back from now on, also for a while after the target has ended, see
    /// [`HeldSignals::let_go`].
    ///
    /// # Errors
    /// When the kernel gives no signalfd.
    pub fn hold() -> Result<Self> {
        hither_sys::process::reap_children();
        let held: SigSet = HELD_SIGNALS.into_iter().collect();
        let before = SigSet::thread_get_mask().context("cannot read the signal mask")?;
        held.thread_block().context("cannot hold signals back")?;
        let fd = SignalFd::with_flags(&held, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .context("cannot make a signalfd")?;
        Ok(HeldSignals { fd, before })
    }

    /// The mask as it was, for the target.
    #[must_use]
    pub fn before(&self) -> SigSet {
        self.before
    }

    /// The program has ended and the profile is still to be written, which may take long. From a while
    /// after now on the first signal has `hurry` called, and the next ends this process as any other.
    pub fn let_go(self, hurry: impl FnOnce() + Send + 'static) {
        let watch = move || {
            std::thread::sleep(AFTERWARDS);
            while let Ok(Some(_)) = self.fd.read_signal() {}
            let mut ready = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
            while poll(&mut ready, PollTimeout::NONE) == Err(nix::errno::Errno::EINTR) {}
            let _ = self.fd.read_signal();
            hurry();
            let held: SigSet = HELD_SIGNALS.into_iter().collect();
            // This thread is the one that takes them.
            if held.thread_unblock().is_ok() {
                loop {
                    std::thread::park();
                }
            }
        };
        // Without a thread they are held to the end.
        let _ = std::thread::Builder::new()
            .name("hither-signals".to_owned())
            .spawn(watch);
    }

    /// Hands to `child` what was sent to us alone. A signal from the terminal has
    /// reached the child already.
    fn forward(&self, child: Pid) {
        while let Ok(Some(info)) = self.fd.read_signal() {
            let number = i32::try_from(info.ssi_signo).unwrap_or(0);
            if let (true, Ok(signal)) = (info.ssi_code <= 0, Signal::try_from(number)) {
                // ESRCH: the child has exited.
                let _ = kill(child, signal);
            }
        }
    }
}

/// Waits until `child` has ended. Calls `tick` about twice a second.
///
/// # Errors
/// When the kernel refuses to watch the child.
pub fn wait_for_child(child: Pid, signals: &HeldSignals, mut tick: impl FnMut()) -> Result<RunEnd> {
    let watched =
        hither_sys::process::pidfd(child).context("cannot watch the program (pidfd_open)")?;
    let timeout = PollTimeout::try_from(TICK_INTERVAL).unwrap_or(PollTimeout::NONE);
    loop {
        let ready = |fd| PollFd::new(fd, PollFlags::POLLIN);
        match poll(
            &mut [ready(signals.fd.as_fd()), ready(watched.as_fd())],
            timeout,
        ) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for the program"),
        }
        signals.forward(child);
        if let Some(end) = child_end(child)? {
            return Ok(end);
        }
        tick();
    }
}

/// Waits for a process of ours that works on after the program's end. A signal that comes later than
/// those that were meant for the program ends it; its number then.
///
/// # Errors
/// When the kernel refuses to watch it.
pub fn wait_for_helper(helper: Pid, signals: &HeldSignals) -> Result<Option<u8>> {
    let watched = hither_sys::process::pidfd(helper).context("cannot watch the collector")?;
    let began = Instant::now();
    let timeout = PollTimeout::try_from(TICK_INTERVAL).unwrap_or(PollTimeout::NONE);
    loop {
        let mut ready = [PollFd::new(watched.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, timeout) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => {}
            Ok(_) => return Ok(None),
            Err(error) => return Err(error).context("cannot wait for the collector"),
        }
        while let Ok(Some(info)) = signals.fd.read_signal() {
            if began.elapsed() > AFTERWARDS {
                // ESRCH: it has ended just now.
                let _ = kill(helper, Signal::SIGKILL);
                return Ok(u8::try_from(info.ssi_signo).ok());
            }
        }
    }
}

fn child_end(child: Pid) -> Result<Option<RunEnd>> {
    let status = waitpid(child, Some(nix::sys::wait::WaitPidFlag::WNOHANG));
    Ok(match status.context("cannot wait for the program")? {
        WaitStatus::Exited(_, status) => Some(RunEnd::Exited { status }),
        WaitStatus::Signaled(_, signal, _) => Some(RunEnd::Signaled {
            signal: signal as i32,
        }),
        _ => None,
    })
}

/// The exit status by which a shell reports such an end.
#[must_use]
pub fn exit_status(end: &RunEnd) -> u8 {
    let status = match end {
        RunEnd::Exited { status } => *status,
        RunEnd::Signaled { signal } => 128 + signal,
        RunEnd::Interrupted => 2,
    };
    u8::try_from(status & 0xff).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    /// Only there is the process ours to be ended.
    const IN_CHILD: &str = "HITHER_TEST_LET_GO";

    #[test]
    fn in_child_signals_are_let_go() {
        if std::env::var_os(IN_CHILD).is_some() {
            let signals = HeldSignals::hold().expect("hold");
            signals.let_go(|| println!("\nhurried"));
            println!("\nheld");
            std::thread::sleep(Duration::from_secs(60));
        }
    }

    #[test]
    fn signals_soon_after_the_program_are_for_it_and_later_ones_for_us() {
        let test = "program::child::tests::in_child_signals_are_let_go";
        // The threads of the test harness hold them as those of hither do.
        let mut child = Command::new("env")
            .arg("--block-signal=TERM")
            .arg(std::env::current_exe().expect("own path"))
            .args(["--exact", test, "--nocapture"])
            .env(IN_CHILD, "1")
            .stdout(Stdio::piped())
            .spawn()
            .expect("spawn");
        let output = BufReader::new(child.stdout.take().expect("stdout"));
        let mut lines = output.lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "held"));
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("pid"));
        let send = || kill(pid, Signal::SIGTERM).expect("kill");
        send();
        std::thread::sleep(AFTERWARDS + Duration::from_secs(1));
        assert_eq!(child.try_wait().expect("wait"), None, "one signal too many");
        send();
        assert!(
            lines.any(|line| line == "hurried"),
            "the first one has it hurry"
        );
        send();
        let ended = child.wait().expect("wait");
        assert_eq!(ended.signal(), Some(Signal::SIGTERM as i32));
    }
}
