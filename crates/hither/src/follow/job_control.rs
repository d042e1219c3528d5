//! Signals and job control between the user's shell and the program.
//!
//! The program is in our process group, so what the terminal sends reaches it without us.
//! Signals to us alone are handed on. When the program stops (Ctrl-Z, SIGSTOP), we stop
//! by the same signal, as the shell watches us and not it; when we are continued, so is it.
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

use super::procfs;
use anyhow::{Context, Result};
use hither_profile::RunEnd;
use hither_sys::process;
use hither_sys::ptrace::{child_state_change, ChildStateChange};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{waitid, waitpid, Id, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

/// Signals that tell of our own mistakes; everything else is held back, real-time signals
/// included.
const NOT_BLOCKED: [Signal; 9] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGFPE,
    Signal::SIGILL,
    Signal::SIGTRAP,
    Signal::SIGSYS,
    Signal::SIGABRT,
    Signal::SIGXCPU,
    Signal::SIGXFSZ,
];
/// Between two looks at a program that is stopped.
const WAKER_PAUSE: Duration = Duration::from_millis(50);
/// How long a process group takes at most to hear of one signal.
const GROUP_DELAY: Duration = Duration::from_millis(10);

/// The signal mask that hither was started with: the poller that takes over when following
/// fails must not inherit ours.
static BEFORE: OnceLock<SigSet> = OnceLock::new();

/// Signals held back from this process from now on.
pub struct BlockedSignals {
    fd: SignalFd,
    before: SigSet,
}

impl BlockedSignals {
    /// # Errors
    /// When the kernel gives no signalfd.
    pub fn block() -> Result<Self> {
        process::reap_children();
        let mut held = SigSet::all();
        NOT_BLOCKED
            .into_iter()
            .for_each(|signal| held.remove(signal));
        let now = SigSet::thread_get_mask().context("cannot read the signal mask")?;
        let before = *BEFORE.get_or_init(|| now);
        held.thread_block().context("cannot hold signals back")?;
        let fd = SignalFd::with_flags(&held, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .context("cannot make a signalfd")?;
        Ok(BlockedSignals { fd, before })
    }

    /// The mask as it was, for the program.
    pub fn previous_mask(&self) -> SigSet {
        self.before
    }

    /// To be waited for.
    pub fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)
    }

    /// Whether a signal that ends this process is pending. Call it when signals are ready.
    pub fn is_interrupted(&self) -> bool {
        let ends = [
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGQUIT,
        ];
        let mut enough = false;
        while let Ok(Some(info)) = self.fd.read_signal() {
            enough |= ends.iter().any(|&signal| signal as u32 == info.ssi_signo);
        }
        enough
    }

    /// Hands to `child` what was sent to us alone; whether SIGCONT was among it all.
    fn forward(&self, child: Pid, follower: Option<Pid>) -> bool {
        let mut continued = false;
        while let Ok(Some(info)) = self.fd.read_signal() {
            let signal = i32::try_from(info.ssi_signo).unwrap_or(0);
            continued |= signal == Signal::SIGCONT as i32;
            let sender = i32::try_from(info.ssi_pid).map(Pid::from_raw);
            let from_follower = follower.is_some() && sender.ok() == follower;
            let sent = info.ssi_code <= 0 && !from_follower && signal != Signal::SIGCHLD as i32;
            if sent && signal != Signal::SIGCONT as i32 {
                // ESRCH: the child has exited.
                let _ = process::send_signal(child.as_raw(), signal);
            }
        }
        continued
    }
}

/// Waits until `child` has ended, stopping and going on with it.
///
/// # Errors
/// When the kernel refuses to watch the child.
pub fn wait_for_child(child: Pid, follower: Pid, signals: &BlockedSignals) -> Result<RunEnd> {
    wait_with_callback(child, Some(follower), signals, |_| None)
}

/// Why waiting ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEvent {
    /// At first, and when the time it asked for is over, or earlier.
    Tick,
    /// This process is about to stop, as the program was stopped...
    Stopping,
    /// ...and goes on.
    GoingOn,
}

/// As [`wait`], calling `tick` at first and again after the time that it returns, at most.
///
/// # Errors
/// As [`wait`].
pub fn wait_with_callback(
    child: Pid,
    follower: Option<Pid>,
    signals: &BlockedSignals,
    mut tick: impl FnMut(WaitEvent) -> Option<Duration>,
) -> Result<RunEnd> {
    let mut stopped = false;
    loop {
        let pause = tick(WaitEvent::Tick).and_then(|pause| PollTimeout::try_from(pause).ok());
        let mut ready = [PollFd::new(signals.fd.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, pause.unwrap_or(PollTimeout::NONE)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for the program"),
        }
        let mut continued = signals.forward(child, follower);
        while let Some(change) =
            child_state_change(child.as_raw()).context("cannot wait for the program")?
        {
            match change {
                ChildStateChange::Exited(status) => return Ok(RunEnd::Exited { status }),
                ChildStateChange::Killed(signal) => return Ok(RunEnd::Signaled { signal }),
                ChildStateChange::Continued => stopped = false,
                ChildStateChange::Stopped(signal) => {
                    continued = false;
                    tick(WaitEvent::Stopping);
                    stopped = stop_like_child(child, follower, signal, signals)?;
                    tick(WaitEvent::GoingOn);
                }
            }
        }
        if continued && stopped {
            continue_child(child)?;
            stopped = false;
        }
    }
}

/// Stops this process as `child` was stopped by `signal`. Whether that is still stopped
/// when we are not.
fn stop_like_child(
    child: Pid,
    follower: Option<Pid>,
    signal: i32,
    signals: &BlockedSignals,
) -> Result<bool> {
    // Whatever came before is older than the stop.
    signals.forward(child, follower);
    let Ok(signal) = Signal::try_from(signal) else {
        return Ok(true);
    };
    // A follower tells us when the program goes on; else somebody must.
    let waker = match follower {
        Some(_) => None,
        None => Some(wake_with(child)?),
    };
    process::send_signal(nix::unistd::getpid().as_raw(), signal as i32).context("cannot stop")?;
    let one = SigSet::from(signal);
    let mask = |how| nix::sys::signal::sigprocmask(how, Some(&one), None);
    // SIGSTOP cannot be held back and has its effect before this.
    mask(SigmaskHow::SIG_UNBLOCK).context("cannot stop")?;
    mask(SigmaskHow::SIG_BLOCK).context("cannot stop")?;
    if let Some(waker) = waker {
        let _ = process::send_signal(waker.as_raw(), Signal::SIGKILL as i32);
        let _ = waitpid(waker, None);
    }
    if signals.forward(child, follower) {
        return continue_child(child).map(|()| false);
    }
    // Stop signals of the terminal do nothing to a process group that no shell minds.
    Ok(true)
}

/// Splits off a process that continues this one, which is about to stop, when `child` goes on: a
/// SIGCONT to the program alone is told to nobody who is stopped.
fn wake_with(child: Pid) -> Result<Pid> {
    let stopped = nix::unistd::getpid();
    let work = move || {
        while nix::unistd::getppid() == stopped {
            let goes_on = !procfs::is_stopped(child.as_raw());
            if goes_on && procfs::is_stopped(stopped.as_raw()) {
                let _ = process::send_signal(stopped.as_raw(), Signal::SIGCONT as i32);
            }
            std::thread::sleep(WAKER_PAUSE);
        }
        0
    };
    process::fork_off(work).context("cannot stop")
}

/// Continues the child, unless the SIGCONT that continued us reached it, too: then it has
/// been continued, or even stopped again, which is for the caller to hear.
fn continue_child(child: Pid) -> Result<()> {
    std::thread::sleep(GROUP_DELAY);
    let flags = WaitPidFlag::WNOHANG
        | WaitPidFlag::WNOWAIT
        | WaitPidFlag::WEXITED
        | WaitPidFlag::WSTOPPED
        | WaitPidFlag::WCONTINUED;
    if waitid(Id::Pid(child), flags) == Ok(WaitStatus::StillAlive) {
        process::send_signal(child.as_raw(), Signal::SIGCONT as i32).context("cannot go on")?;
    }
    Ok(())
}
