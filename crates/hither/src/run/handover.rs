//! The pipe between the front and the follower, both ends of it.
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::unix::net::UnixStream;

use anyhow::{bail, Result};
use hither_sys::Pid;
use serde::{Deserialize, Serialize};

use super::guide::PlacementGuide;
use super::outcome::RunOutcome;
use super::progress::PhaseFollower;
use super::request::FollowRefusal;

/// What the front hands over.
pub struct FollowJob<'a> {
    pub guide: &'a mut (dyn PlacementGuide + 'static),
    pub progress: Option<&'a mut PhaseFollower>,
    pub strict: bool,
    pub front: Pid,
    /// Takes one [`FollowReport`].
    pub sink: PipeWriter,
    /// The program on its way to exec.
    pub gate: UnixStream,
}

/// The message to the front, sent once.
#[derive(Debug, Serialize, Deserialize)]
pub enum FollowReport {
    Refused(FollowRefusal),
    Over(Box<RunOutcome>),
}

/// Sends it to the front. An error is ignored: the front may have been killed.
pub fn send_report(mut sink: PipeWriter, report: FollowReport) {
    if let Ok(text) = serde_json::to_vec(&report) {
        let _ = sink.write_all(&text);
    }
}

/// What the follower told; `None` when it was killed before.
fn read(reports: &mut PipeReader) -> Option<FollowReport> {
    let mut text = Vec::new();
    reports.read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Why the follower did not let the program start, where it was the follower.
pub fn read_refusal(reports: &mut PipeReader) -> Option<anyhow::Error> {
    match read(reports)? {
        FollowReport::Refused(refused) => Some(refused.into()),
        FollowReport::Over(_) => None,
    }
}

/// What was asked and got, when all is over.
///
/// # Errors
/// When the follower could not follow the program, or was killed.
pub fn read_outcome(reports: &mut PipeReader, follower: nix::unistd::Pid) -> Result<RunOutcome> {
    match read(reports) {
        Some(FollowReport::Over(outcome)) => Ok(*outcome),
        Some(FollowReport::Refused(refused)) => Err(refused.into()),
        None => {
            bail!("the process that followed the program, {follower}, was killed, and the program with it; run it again, and leave that process alone")
        }
    }
}
