//! The half that the user started: starts the program, hands signals on, stops and goes
//! on with it, returns how it ended.
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use anyhow::{Context, Result};
use hither_sys::launch::{release_inherited_files, wait_for_follower, ChildSetup};
use hither_sys::process;
use hither_sys::seccomp::{self, FilteredCalls};
use nix::unistd::Pid;

use super::guide::PlacementGuide;
use super::handover::{self, FollowJob};
use super::outcome::{FollowMethod, RunOutcome};
use super::request::{FollowRefusal, MemoryPolicy, RunRequest};
use super::{follower, proc_poller};
use crate::follow::cpu_time::to_nanos;
use crate::follow::job_control::{self, BlockedSignals};
use crate::follow::launch;

/// Starts the program, follows it to its end.
///
/// # Errors
/// When it cannot be started or followed at all.
pub fn run(mut request: RunRequest, mut guide: Box<dyn PlacementGuide>) -> Result<RunOutcome> {
    if request.method == Some(FollowMethod::Polling) {
        return proc_poller::run(request, guide, None);
    }
    // What the guide has heard in a follower that failed, it has not heard here.
    match run_followed(&mut request, &mut *guide) {
        Err(error) => match error.downcast_ref() {
            Some(FollowRefusal::Forbidden(why)) if request.method.is_none() => {
                proc_poller::run(request, guide, Some(why))
            }
            _ => Err(error),
        },
        result => result,
    }
}

fn run_followed(
    request: &mut RunRequest,
    guide: &mut (dyn PlacementGuide + 'static),
) -> Result<RunOutcome> {
    let signals = BlockedSignals::block()?;
    let (mut reports, sink) = std::io::pipe().context("cannot make a pipe")?;
    let (gate, theirs) = UnixStream::pair().context("cannot make a pair of sockets")?;
    let wanted = FilteredCalls {
        mappings: guide.smallest_mapping(),
        code: request
            .progress
            .as_ref()
            .is_some_and(|p| p.wants_mappings()),
        affinity: true,
    };
    let front = nix::unistd::getpid();
    let began = Instant::now();
    let (progress, strict) = (request.progress.as_deref_mut(), request.strict);
    let follower = process::fork_off(|| {
        // The front's ends stay with the front.
        let kept = [sink.as_raw_fd(), theirs.as_raw_fd()];
        let job = FollowJob {
            guide,
            progress,
            strict,
            front: front.as_raw(),
            sink,
            gate: theirs,
        };
        u8::from(release_inherited_files(&kept).is_err() || !follower::follow_program(job))
    });
    let follower = follower.context("cannot split off the process that follows the program")?;
    let child = start(
        request,
        gate,
        follower,
        seccomp::build_filter(wanted),
        &signals,
    );
    let child = match child {
        Ok(child) => child,
        Err(error) => return Err(handover::read_refusal(&mut reports).unwrap_or(error)),
    };
    let end = job_control::wait_for_child(child, follower, &signals)?;
    let mut outcome = handover::read_outcome(&mut reports, follower)?;
    outcome.command = (request.command.iter())
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    outcome.end = end;
    outcome.duration = to_nanos(began.elapsed());
    Ok(outcome)
}

fn start(
    request: &RunRequest,
    gate: UnixStream,
    follower: Pid,
    filter: Vec<seccomp::SockFilter>,
    signals: &BlockedSignals,
) -> Result<Pid> {
    let mut command = launch::build_command(&request.target, &request.environment, signals);
    let start = ChildSetup {
        gate,
        follower,
        policy: request.memory.as_ref().map(MemoryPolicy::for_kernel),
        filter,
    };
    wait_for_follower(&mut command, start);
    launch::spawn_target(&request.target, command)
}
