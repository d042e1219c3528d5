//! A run from start to end: of a program that is started, or of one that runs already.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;

use anyhow::{anyhow, bail, Context, Result};
use hither_profile::{Profile, RunEnd};
use hither_sys::affinity::CpuMask;
use hither_sys::process;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use super::affinity_proxy::AffinityProxy;
use super::analysis::affinity_settings::{AffinityRules, AffinityTableConfig};
use super::analysis::affinity_table::AffinityTable;
use super::analysis::fault_rate::FaultRateController;
use super::analysis::region_table::{RegionTable, RegionTableConfig};
use super::analysis::SharingDetector;
use super::attach::attach_tree;
use super::engine::OnlineEngine;
use super::event_log::EventLog;
use super::filter_trigger::FilterTrigger;
use super::mechanism::{DetectionMechanism, MechanismParameters};
use super::observed_runs::ObservedRuns;
use super::observer::{FaultObserver, ObserverBackend};
use super::outcome::AutoOutcome;
use super::request::AutoRequest;
use super::restore_helper::RestoreHelper;
use super::state::OnlineState;
use super::sysctls::SysctlOverrides;
use super::taken_pages::TakenPages;
use super::{sampler, sysctls, unobservable};
use crate::follow::job_control::{self, BlockedSignals, WaitEvent};
use crate::follow::launch;
use crate::follow::procfs;
use crate::program::target::TargetProgram;
use hither_sys::Pid;

/// Starts a program and follows it to its end.
///
/// # Errors
/// When it cannot be started, or page faults cannot be observed.
pub fn run(
    mut request: AutoRequest,
    target: &TargetProgram,
    words: &[OsString],
) -> Result<(AutoOutcome, Profile)> {
    let signals = BlockedSignals::block()?;
    let streams = std::mem::take(&mut request.streams);
    let mut command = launch::build_command(target, &[], &signals);
    let answers = AffinityProxy::new(&mut command)?;
    let cpus = request.machine.cpus();
    let mut engine = build_engine(request, |means| means.of_children(&cpus))?;
    engine.affinity_proxy = Some(answers);
    let [out, err] = streams;
    out.map(|fd| command.stdout(Stdio::from(fd)));
    err.map(|fd| command.stderr(Stdio::from(fd)));
    let child = launch::spawn_target(target, command)?;
    // Only now, for a child inherits it.
    hither_sys::launch::request_short_slice();
    let end = job_control::wait_with_callback(child, None, &signals, |beat| match beat {
        WaitEvent::Tick => Some(engine.tick()),
        other => engine.suspend_view(other == WaitEvent::Stopping),
    })?;
    let words = words.iter();
    let words = words.map(|w| w.to_string_lossy().into_owned()).collect();
    Ok(engine.finish(end, words))
}

/// Units that threads of a process may run on, as far as hither may too: it is to be placed on
/// no others. None of a process that is gone.
#[must_use]
pub fn allowed_cpus(pid: Pid) -> Vec<u32> {
    let masks = procfs::thread_ids(pid)
        .into_iter()
        .flat_map(CpuMask::of_thread);
    let units: BTreeSet<u32> = masks
        .flat_map(|mask| mask.cpus().collect::<Vec<_>>())
        .collect();
    let own = CpuMask::of_thread(0).unwrap_or_default();
    units
        .into_iter()
        .filter(|unit| own.contains(*unit))
        .collect()
}

/// Follows a process that runs already until it ends or the user has enough.
///
/// # Errors
/// When there is no such process, or its page faults cannot be observed.
pub fn attach(request: AutoRequest, pid: Pid) -> Result<(AutoOutcome, Profile)> {
    let signals = BlockedSignals::block()?;
    let of = process::pidfd(nix::unistd::Pid::from_raw(pid))
        .with_context(|| format!("there is no process {pid}"))?;
    process::lift_descriptor_limit();
    let command = procfs::command_line(pid);
    let cpus = request.machine.cpus();
    let mut processes = Vec::new();
    let mut refused = Vec::new();
    let mut engine = build_engine(request, |means| {
        let joined = attach_tree(pid, &cpus, means)?;
        (processes, refused) = (joined.processes, joined.refused);
        Ok(joined.observer)
    })?;
    for pid in processes {
        engine.attach_process(pid);
    }
    for pid in refused {
        engine.state.note(format!(
            "process {pid} belongs to another user and was left alone; be root to follow it too"
        ));
    }
    hither_sys::launch::request_short_slice();
    let mut end = RunEnd::Interrupted;
    loop {
        let pause = PollTimeout::try_from(engine.tick()).unwrap_or(PollTimeout::ZERO);
        let mut ready = [
            PollFd::new(of.as_fd(), PollFlags::POLLIN),
            signals.poll_fd(),
        ];
        match poll(&mut ready, pause) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for the process"),
        }
        let is = |at: usize| ready[at].any().unwrap_or(false);
        if is(0) {
            end = RunEnd::Exited { status: 0 };
            break;
        }
        if is(1) && signals.is_interrupted() {
            break;
        }
    }
    Ok(engine.finish(end, command))
}

fn build_engine(
    request: AutoRequest,
    observe: impl FnOnce(ObserverBackend) -> std::io::Result<FaultObserver>,
) -> Result<OnlineEngine> {
    // Before anything is changed for it.
    let means = ObserverBackend::detect()?;
    let state_file = Path::new(sysctls::STATE_FILE);
    let sysctls = match request.samplers.allow_sysctl {
        true => Some(SysctlOverrides::open(state_file).context(
            "settings of the system cannot be changed safely; be root, or leave out --allow-sysctl",
        )?),
        false => None,
    };
    if sysctls.is_none() {
        sysctls::restore_stale(state_file);
    }
    let helper = RestoreHelper::new(sysctls)?;
    // Before anybody is observed, for it starts a child to try something on.
    let (samplers, reasons) = sampler::choose_samplers(&request.samplers, helper.sysctls());
    if let (true, Some(name)) = (samplers.is_empty(), &request.samplers.only) {
        bail!("sampler {name} does not work here: {}", reasons.join("; "));
    }
    let held_off = match request.scope.pages && request.machine.nodes.len() > 1 {
        true => sampler::disable_kernel_migration(&samplers, helper.sysctls()),
        false => None,
    };
    let mut observer =
        observe(means).map_err(|e| anyhow!(unobservable::explain_observe_error(&e)))?;
    let mut taken_pages = TakenPages::new(sampler::kernel_takes_pages());
    if let Some(filter) = observer.take_filter() {
        taken_pages.filter_in_kernel(filter);
    }
    let mut state = OnlineState::new();
    let is_adaptive = request.mechanism == DetectionMechanism::Adaptive;
    state.observed_runs = is_adaptive.then(ObservedRuns::default);
    state.remap_trigger.is_periodic = request.mechanism == DetectionMechanism::Kmaf;
    state.remap_trigger.ageing = request.parameters.ageing();
    held_off.into_iter().for_each(|note| state.note(note));
    if samplers.is_empty() {
        state.note(format!(
            "no sampler works here, so of each page only the first access was seen: {}; see `hither doctor`",
            reasons.join("; ")
        ));
    }
    let nodes = request.machine.nodes.len();
    Ok(OnlineEngine {
        mechanism: request.mechanism,
        observer,
        samplers,
        detector: build_detector(request.mechanism, &request.parameters, nodes),
        parameters: request.parameters,
        mapper: request.mapper,
        machine: request.machine,
        scope: request.scope,
        controller: FaultRateController::new(request.limits),
        taken_pages,
        filter_trigger: FilterTrigger::default(),
        restore_helper: helper,
        affinity_proxy: None,
        budget: request.limits.budget,
        event_log: EventLog::new(request.event_log),
        live_view: request.live_view,
        state,
    })
}

fn build_detector(
    mechanism: DetectionMechanism,
    set: &MechanismParameters,
    nodes: usize,
) -> Box<dyn SharingDetector> {
    let rules = match mechanism {
        DetectionMechanism::Adaptive => AffinityRules::Adaptive,
        DetectionMechanism::Kmaf => AffinityRules::Paper,
        DetectionMechanism::Spcd => {
            return Box::new(RegionTable::new(RegionTableConfig {
                elements: set.table_entries(),
                granularity: set.granularity(),
                window: set.window(),
            }))
        }
    };
    let settings = AffinityTableConfig {
        rules,
        elements: set.table_entries(),
        sub_block: set.sub_block(),
        sharers: set.sharers(),
        counter_bits: set.counter_bits(),
        window: set.window(),
    };
    Box::new(AffinityTable::new(nodes, settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_units_that_it_may_run_on() {
        let own: Vec<u32> = CpuMask::of_thread(0).expect("mask").cpus().collect();
        let last = own[own.len() - 1];
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("60").spawn().expect("sleep");
        let pid = i32::try_from(child.id()).expect("pid");
        assert_eq!(allowed_cpus(pid), own);
        CpuMask::single(last).set_affinity(pid).expect("pin");
        assert_eq!(allowed_cpus(pid), [last]);
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert!(allowed_cpus(pid).is_empty());
    }
}
