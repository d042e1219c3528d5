//! A run from start to end: of a program that is started, or of one that runs already.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;

use anyhow::{anyhow, bail, Context, Result};
use hither_profile::{Profile, RunEnd};
use hither_sys::affinity::Mask;
use hither_sys::process;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use super::affinity_proxy::Answers;
use super::analysis::affinity::AffinityTable;
use super::analysis::controller::Controller;
use super::analysis::regions::{self, RegionTable};
use super::analysis::Detector;
use super::attach::join;
use super::engine::Engine;
use super::event_log::Journal;
use super::observer::{Means, Observer};
use super::outcome::Outcome;
use super::request::{Mechanism, Request};
use super::restore_helper::Guardian;
use super::state::State;
use super::sysctls::Knobs;
use super::{sampler, sysctls, unobservable};
use crate::follow::job_control::{self, Beat, Signals};
use crate::follow::launch;
use crate::follow::procfs;
use crate::program::target::Target;
use hither_sys::Pid;

/// Starts a program and follows it to its end.
///
/// # Errors
/// When it cannot be started, or page faults cannot be observed.
pub fn run(
    mut request: Request,
    target: &Target,
    words: &[OsString],
) -> Result<(Outcome, Profile)> {
    let signals = Signals::hold()?;
    let streams = std::mem::take(&mut request.streams);
    let mut command = launch::command(target, &[], &signals);
    let answers = Answers::new(&mut command)?;
    let cpus = request.machine.cpus();
    let mut engine = engine(request, |means| means.of_children(&cpus))?;
    engine.answers = Some(answers);
    let [out, err] = streams;
    out.map(|fd| command.stdout(Stdio::from(fd)));
    err.map(|fd| command.stderr(Stdio::from(fd)));
    let child = launch::spawn(target, command)?;
    // Only now, for a child inherits it.
    hither_sys::launch::be_prompt();
    let end = job_control::wait_with(child, None, &signals, |beat| match beat {
        Beat::Tick => Some(engine.tick()),
        other => engine.pause(other == Beat::Stopping),
    })?;
    let words = words.iter();
    let words = words.map(|w| w.to_string_lossy().into_owned()).collect();
    Ok(engine.finish(end, words))
}

/// Units that threads of a process may run on, as far as hither may too: it is to be placed on
/// no others. None of a process that is gone.
#[must_use]
pub fn units_of(pid: Pid) -> Vec<u32> {
    let masks = procfs::threads(pid).into_iter().flat_map(Mask::of);
    let units: BTreeSet<u32> = masks
        .flat_map(|mask| mask.cpus().collect::<Vec<_>>())
        .collect();
    let own = Mask::of(0).unwrap_or_default();
    units.into_iter().filter(|unit| own.has(*unit)).collect()
}

/// Follows a process that runs already until it ends or the user has enough.
///
/// # Errors
/// When there is no such process, or its page faults cannot be observed.
pub fn attach(request: Request, pid: Pid) -> Result<(Outcome, Profile)> {
    let signals = Signals::hold()?;
    unobservable::check(pid)?;
    let of = process::pidfd(nix::unistd::Pid::from_raw(pid))
        .with_context(|| format!("there is no process {pid}"))?;
    process::lift_descriptor_limit();
    let command = procfs::command(pid);
    let cpus = request.machine.cpus();
    let mut processes = Vec::new();
    let mut refused = Vec::new();
    let mut engine = engine(request, |means| {
        let joined = join(pid, &cpus, means)?;
        (processes, refused) = (joined.processes, joined.refused);
        Ok(joined.observer)
    })?;
    for pid in processes {
        engine.adopt(pid);
    }
    for pid in refused {
        engine.state.note(format!(
            "process {pid} belongs to another user and was left alone; be root to follow it too"
        ));
    }
    hither_sys::launch::be_prompt();
    let mut end = RunEnd::Interrupted;
    loop {
        let pause = PollTimeout::try_from(engine.tick()).unwrap_or(PollTimeout::ZERO);
        let mut ready = [PollFd::new(of.as_fd(), PollFlags::POLLIN), signals.ready()];
        match poll(&mut ready, pause) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for the process"),
        }
        let is = |at: usize| ready[at].any().unwrap_or(false);
        if is(0) {
            end = RunEnd::Exited { status: 0 };
            break;
        }
        if is(1) && signals.has_enough() {
            break;
        }
    }
    Ok(engine.finish(end, command))
}

fn engine(
    request: Request,
    observe: impl FnOnce(Means) -> std::io::Result<Box<dyn Observer>>,
) -> Result<Engine> {
    // Before anything is changed for it.
    let means = Means::find()?;
    let state_file = Path::new(sysctls::STATE);
    let knobs = match request.samplers.allow_sysctl {
        true => Some(Knobs::open(state_file).context(
            "settings of the system cannot be changed safely; be root, or leave out --allow-sysctl",
        )?),
        false => None,
    };
    if knobs.is_none() {
        sysctls::tidy(state_file);
    }
    let guardian = Guardian::new(knobs)?;
    // Before anybody is observed, for it starts a child to try something on.
    let (samplers, reasons) = sampler::choose(&request.samplers, guardian.knobs());
    if let (true, Some(name)) = (samplers.is_empty(), &request.samplers.only) {
        bail!("sampler {name} does not work here: {}", reasons.join("; "));
    }
    let held_off = match request.parts.pages && request.machine.nodes.len() > 1 {
        true => sampler::hold_off(&samplers, guardian.knobs()),
        false => None,
    };
    let observer = observe(means).map_err(|e| anyhow!(unobservable::why(&e)))?;
    let mut state = State::new();
    held_off.into_iter().for_each(|note| state.note(note));
    if samplers.is_empty() {
        state.note(format!(
            "no sampler works here, so of each page only the first access was seen: {}; see `hither doctor`",
            reasons.join("; ")
        ));
    }
    let detector: Box<dyn Detector> = match request.mechanism {
        Mechanism::Kmaf => Box::new(AffinityTable::new(request.machine.nodes.len())),
        Mechanism::Spcd => Box::new(RegionTable::new(regions::Settings::default())),
    };
    Ok(Engine {
        mechanism: request.mechanism,
        observer,
        samplers,
        detector,
        mapper: request.mapper,
        machine: request.machine,
        parts: request.parts,
        controller: Controller::new(request.limits),
        guardian,
        answers: None,
        budget: request.limits.budget,
        journal: Journal::new(request.journal),
        watch: request.watch,
        state,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_units_that_it_may_run_on() {
        let own: Vec<u32> = Mask::of(0).expect("mask").cpus().collect();
        let last = own[own.len() - 1];
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("60").spawn().expect("sleep");
        let pid = i32::try_from(child.id()).expect("pid");
        assert_eq!(units_of(pid), own);
        Mask::one(last).give(pid).expect("pin");
        assert_eq!(units_of(pid), [last]);
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert!(units_of(pid).is_empty());
    }
}
