//! A small process that undoes what hither did to the system and to other processes, when
//! hither has ended, however it ended.
//!
//! ```text
//!  hither --pipe: what to undo--> helper (its own session, all signals blocked)
//!     |                              |
//!     X killed: the pipe closes ---> undoes all, ends
//! ```
//! hither announces a thread to it before it pins that thread, so there is no moment at which
//! the helper does not know a pinned thread. If the helper is killed, hither pins no more
//! threads, and restores at the end what it has changed.
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, AsRawFd};

use anyhow::{Context, Result};
use hither_sys::{launch, process};
use nix::poll::{poll, PollFd, PollFlags};
use nix::sys::signal::SigSet;
use nix::sys::wait::{waitpid, WaitStatus};

use super::pinned_threads::{PinnedThread, PinnedThreads};
use super::sysctls::SysctlOverrides;

/// Milliseconds for which it may be busy.
const PATIENCE: u16 = 1000;

/// The way to tell it. Dropping it has everything undone.
#[derive(Debug)]
pub struct RestoreHelper {
    pipe: Option<PipeWriter>,
    pid: nix::unistd::Pid,
    sysctls: Option<SysctlOverrides>,
    pinned_threads: PinnedThreads,
}

impl RestoreHelper {
    /// Splits it off; `sysctls` are let go by it. To be called before anything is changed and
    /// while this process has one thread.
    ///
    /// # Errors
    /// When the kernel makes no process or pipe.
    pub fn new(sysctls: Option<SysctlOverrides>) -> Result<RestoreHelper> {
        let (theirs, ours) = std::io::pipe().context("cannot make a pipe")?;
        let pid = process::fork_off(|| {
            let mut kept = vec![theirs.as_raw_fd()];
            kept.extend(
                sysctls
                    .as_ref()
                    .map(|sysctls| sysctls.lock_file().as_raw_fd()),
            );
            let _ = SigSet::all().thread_block();
            let _ = nix::sys::prctl::set_name(c"hither-restore");
            if launch::release_inherited_files(&kept).is_err() {
                return 1;
            }
            restore(sysctls.as_ref(), &read_pins(theirs));
            0
        });
        Ok(RestoreHelper {
            pipe: Some(ours),
            pid: pid.context("cannot split off the process that undoes what was changed")?,
            sysctls,
            pinned_threads: PinnedThreads::default(),
        })
    }

    #[must_use]
    pub fn sysctls(&self) -> Option<&SysctlOverrides> {
        self.sysctls.as_ref()
    }

    /// Tells it of a thread that is about to be pinned. Whether it has heard, and so the
    /// thread may be.
    pub fn announce(&mut self, pinned: PinnedThread) -> bool {
        let Some(pipe) = &mut self.pipe else {
            return false;
        };
        let Ok(mut line) = serde_json::to_vec(&pinned) else {
            return false;
        };
        line.push(b'\n');
        let mut ready = [PollFd::new(pipe.as_fd(), PollFlags::POLLOUT)];
        let has_room = poll(&mut ready, PATIENCE).is_ok_and(|ready| ready == 1);
        if !has_room || pipe.write_all(&line).is_err() {
            // It was stopped or killed.
            self.pipe = None;
            return false;
        }
        self.pinned_threads.insert(pinned);
        true
    }

    /// Whether it lives and hears.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.pipe.is_some()
    }
}

impl Drop for RestoreHelper {
    fn drop(&mut self) {
        let heard = self.pipe.take().is_some();
        if !heard {
            // It may have been stopped for good: what it would do is done here.
            let _ = process::send_signal(self.pid.as_raw(), nix::libc::SIGKILL);
        }
        let done = waitpid(self.pid, None);
        if !heard || !matches!(done, Ok(WaitStatus::Exited(_, 0))) {
            restore(self.sysctls.as_ref(), &self.pinned_threads);
        }
    }
}

/// Reads to the end of the pipe.
fn read_pins(pipe: PipeReader) -> PinnedThreads {
    let mut ledger = PinnedThreads::default();
    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
        if let Ok(pinned) = serde_json::from_str::<PinnedThread>(&line) {
            ledger.insert(pinned);
        }
    }
    ledger
}

fn restore(sysctls: Option<&SysctlOverrides>, ledger: &PinnedThreads) {
    if let Some(sysctls) = sysctls {
        let _ = sysctls.restore_if_last();
    }
    ledger.restore_masks();
}
