//! The half that the user started: starts the program, hands signals on, stops and goes
//! on with it, returns how it ended.
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use anyhow::{Context, Result};
use hither_sys::launch::{followed, let_go, Start};
use hither_sys::process;
use hither_sys::seccomp::{self, Wanted};
use nix::unistd::Pid;

use super::guide::Guide;
use super::handover::{self, Job};
use super::outcome::{Method, Outcome};
use super::request::{MemoryPolicy, Refused, Request};
use super::{follower, proc_poller};
use crate::follow::cpu_time::nanos;
use crate::follow::job_control::{self, Signals};
use crate::follow::launch;

/// Starts the program, follows it to its end.
///
/// # Errors
/// When it cannot be started or followed at all.
pub fn run(mut request: Request, mut guide: Box<dyn Guide>) -> Result<Outcome> {
    if request.method == Some(Method::Polling) {
        return proc_poller::run(request, guide, None);
    }
    // What the guide has heard in a follower that failed, it has not heard here.
    match follow(&mut request, &mut *guide) {
        Err(error) => match error.downcast_ref() {
            Some(Refused::Forbidden(why)) if request.method.is_none() => {
                proc_poller::run(request, guide, Some(why))
            }
            _ => Err(error),
        },
        result => result,
    }
}

fn follow(request: &mut Request, guide: &mut (dyn Guide + 'static)) -> Result<Outcome> {
    let signals = Signals::hold()?;
    let (mut reports, sink) = std::io::pipe().context("cannot make a pipe")?;
    let (gate, theirs) = UnixStream::pair().context("cannot make a pair of sockets")?;
    let wanted = Wanted {
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
        let job = Job {
            guide,
            progress,
            strict,
            front: front.as_raw(),
            sink,
            gate: theirs,
        };
        u8::from(let_go(&kept).is_err() || !follower::serve(job))
    });
    let follower = follower.context("cannot split off the process that follows the program")?;
    let child = start(request, gate, follower, seccomp::filter(wanted), &signals);
    let child = match child {
        Ok(child) => child,
        Err(error) => return Err(handover::refusal(&mut reports).unwrap_or(error)),
    };
    let end = job_control::wait(child, follower, &signals)?;
    let mut outcome = handover::outcome(&mut reports, follower)?;
    outcome.command = (request.command.iter())
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    outcome.end = end;
    outcome.duration = nanos(began.elapsed());
    Ok(outcome)
}

fn start(
    request: &Request,
    gate: UnixStream,
    follower: Pid,
    filter: Vec<seccomp::Instruction>,
    signals: &Signals,
) -> Result<Pid> {
    let mut command = launch::command(&request.target, &request.environment, signals);
    let start = Start {
        gate,
        follower,
        policy: request.memory.as_ref().map(MemoryPolicy::for_kernel),
        filter,
    };
    followed(&mut command, start);
    launch::spawn(&request.target, command)
}
