//! The profile of the run so far, written while the run goes on: it is what a hither that is killed
//! leaves.
//!
//! A copy of this process writes it (fork): it has all that was collected up to a slice and ends the
//! collection as it is ended after a run, while the collector goes on. Of the segment it has a mapping
//! that nobody else sees its changes of.
use super::engine::CollectorEngine;
use super::profile_rows;
use crate::trace::symbolizer::Symbolizer;
use hither_profile::{CheckpointFolder, Profile, RunEnd};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a run goes on before its first one, and between two at least.
const LEAST_INTERVAL: Duration = Duration::from_secs(10);
/// Between two there are so many times what one took, so that they take 2 % of the run at most.
const TIMES_OF_ONE: u32 = 50;
/// Statuses of the copy.
const KEPT: u8 = 0;
const NOT_KEPT: u8 = 1;
/// Of all processes, the one to be ended where memory runs out.
const FIRST_TO_GO: &str = "1000";

/// Builds the profile of what was collected, with names.
pub type ProfileBuild = Box<dyn FnOnce(&mut dyn Symbolizer) -> Profile>;

/// What names it and adds the rest that a profile has.
pub trait CheckpointCompletion: Send {
    /// # Errors
    /// When nothing can be named.
    fn profile(&self, build: ProfileBuild) -> anyhow::Result<Profile>;
}

/// Where checkpoints go, and how they are made.
pub struct CheckpointPlan {
    pub folder: PathBuf,
    pub completion: Box<dyn CheckpointCompletion>,
}

/// What is left of a plan in the process that writes one.
pub struct CheckpointCopy {
    folder: CheckpointFolder,
    completion: Box<dyn CheckpointCompletion>,
}

/// A copy at work.
struct CheckpointWriter {
    pid: Pid,
    since: Instant,
    /// Removed once it has ended.
    _folder: CheckpointFolder,
}

pub struct Checkpoints {
    plan: Option<CheckpointPlan>,
    /// When the next one is due.
    pub(super) next: Instant,
    writer: Option<CheckpointWriter>,
    /// Whether there is one.
    pub kept: bool,
}

impl Checkpoints {
    pub fn new(plan: Option<CheckpointPlan>) -> Checkpoints {
        Checkpoints {
            plan,
            next: Instant::now() + LEAST_INTERVAL,
            writer: None,
            kept: false,
        }
    }

    /// To be called after each slice. Begins a checkpoint where it is time for one, and returns in the
    /// copy what it is to write with.
    pub fn keep_up(&mut self) -> Option<CheckpointCopy> {
        if let Some(writer) = &self.writer {
            let flags = Some(WaitPidFlag::WNOHANG);
            self.kept |= how_it_ended(waitpid(writer.pid, flags))?;
            let pause = writer.since.elapsed() * TIMES_OF_ONE;
            self.next = Instant::now() + pause.max(LEAST_INTERVAL);
            self.writer = None;
        }
        let folder = &self.plan.as_ref()?.folder;
        let since = Instant::now();
        if since < self.next {
            return None;
        }
        self.next = since + LEAST_INTERVAL;
        let folder = CheckpointFolder::create(folder).ok()?;
        match hither_sys::process::fork_copy().ok()? {
            Some(pid) => {
                let _folder = folder;
                self.writer = Some(CheckpointWriter {
                    pid,
                    since,
                    _folder,
                });
                None
            }
            None => Some(CheckpointCopy {
                folder,
                completion: self.plan.take()?.completion,
            }),
        }
    }

    #[cfg(test)]
    pub(super) fn is_writing(&self) -> bool {
        self.writer.is_some()
    }

    /// The run has ended, and the whole profile comes.
    pub fn stop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // ESRCH: it has ended just now.
            let _ = kill(writer.pid, Signal::SIGKILL);
            self.kept |= how_it_ended(waitpid(writer.pid, None)).unwrap_or(false);
        }
    }
}

/// Whether it left a checkpoint; `None` where it has not ended.
fn how_it_ended(status: nix::Result<WaitStatus>) -> Option<bool> {
    match status {
        Ok(WaitStatus::StillAlive) | Err(nix::errno::Errno::EINTR) => None,
        Ok(WaitStatus::Exited(_, status)) => Some(status == i32::from(KEPT)),
        // Ended in the middle, or nobody knows how where SIGCHLD is ignored: there may be one.
        _ => Some(true),
    }
}

impl CheckpointCopy {
    /// Writes the checkpoint and ends this process.
    pub fn write(self, mut engine: CollectorEngine) -> ! {
        // What is recorded goes on in the file of the other.
        std::mem::forget(engine.recorder.take());
        // Another thread may have been printing.
        std::panic::set_hook(Box::new(|_| {}));
        hither_sys::process::end_copy(move || {
            // Where /proc is not there, or read-only, it is ended as any other.
            let _ = std::fs::write("/proc/self/oom_score_adj", FIRST_TO_GO);
            if engine.segment.detach().is_err() {
                return NOT_KEPT;
            }
            engine.finish();
            let built = self.completion.profile(Box::new(|symbolizer| {
                let collected =
                    profile_rows::build_profile(engine, RunEnd::Interrupted, symbolizer);
                let mut profile = collected.profile;
                profile.meta.limits.push(cut_off(&profile));
                profile
            }));
            match built.map(|profile| self.folder.write(&profile)) {
                Ok(Ok(true)) => KEPT,
                _ => NOT_KEPT,
            }
        })
    }
}

/// For whoever reads it: what is there is not the whole run.
fn cut_off(profile: &Profile) -> String {
    let seconds = profile.meta.duration / 1_000_000_000;
    let bursts = match profile.meta.options.bursts {
        Some(_) => "; accesses that were recorded are kept at the end only",
        None => "",
    };
    format!(
        "The profile is cut off {seconds} s into the run, where it was last written: hither was killed later, or still traces{bursts}."
    )
}
