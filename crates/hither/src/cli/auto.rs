//! `hither auto`: find the placement while the program runs, and apply it.
mod args;
mod joined_tree;
mod profile_destination;
mod render;
mod top;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use hither_profile::{NodeIx, WriteOutcome};

pub use args::Args;

use super::print_stderr;
use super::profile_completion::ProfileCompletion;
use super::run::output;
use crate::app::auto::incremental_mapper::IncrementalMapper;
use crate::auto;
use crate::auto::event_log::LiveView;
use crate::auto::mechanism::DetectionMechanism;
use crate::auto::outcome::AutoOutcome;
use crate::auto::request::{AutoRequest, CpuNodeMap, PlacementScope};
use crate::program::{child, target};
use crate::trace::launch::refuse_nested;
use hither_model::topology::{
    select_machine, MachineRestrictions, PuList, SelectedMachine, TopologyTree,
};
use hither_sys::Node;
use profile_destination::ProfileSink;
use top::TopView;

/// Runs the command or joins a process; the result is the exit status.
///
/// # Errors
/// When what was asked for cannot be done here, or the command not be started.
pub fn run(args: &Args) -> Result<ExitCode> {
    refuse_nested()?;
    let parameters = args.parameters()?;
    let policy = args.thread_policy()?;
    hither_sys::process::lift_file_size_limit();
    let target = match args.pid {
        Some(pid) => {
            joined_tree::confirm(pid, args.yes, args.quiet)?;
            None
        }
        None => {
            let path = std::env::var_os("PATH");
            Some(target::resolve_target(&args.command, path.as_deref())?)
        }
    };
    let json = args
        .export_json
        .as_deref()
        .map(output::destination)
        .transpose()?;
    let journal = args
        .json_lines
        .as_deref()
        .map(output::open_stream)
        .transpose()?;
    let program = target.as_ref().map(|target| target.name.clone());
    let program = program
        .or_else(|| args.pid.and_then(program_of))
        .unwrap_or_default();
    let completion = ProfileCompletion {
        source: !args.no_source,
        redact: args.redact,
    };
    let output = args.output.as_deref();
    let keep = match args.no_profile {
        true => None,
        false => ProfileSink::new(output, &program, args.quiet, args.pid, completion)?,
    };
    let selected = select_machine(None, &restrictions(args.pid))?;
    let machine = cpu_node_map(&selected)?;
    let parts = PlacementScope {
        threads: !args.data_only,
        pages: !args.threads_only
            && args.mechanism != DetectionMechanism::Spcd
            && machine.nodes.len() > 1,
    };
    let (watch, streams) = open_view(args)?;
    let threshold = parameters.filter_threshold();
    let mapper = IncrementalMapper::new(selected.tree, args.mechanism, policy, threshold);
    let request = AutoRequest {
        mechanism: args.mechanism,
        scope: parts,
        samplers: args.samplers(),
        limits: args.limits(&parameters),
        parameters,
        machine,
        mapper: Box::new(mapper),
        event_log: journal,
        live_view: watch,
        streams,
    };
    let (outcome, profile) = match (&target, args.pid) {
        (Some(target), _) => auto::run(request, target, &args.command)?,
        (None, pid) => auto::attach(request, pid.unwrap_or_default())?,
    };
    let kept = keep.map(|keep| keep.write(profile, args.quiet)).transpose();
    let kept = kept.map(Option::flatten);
    if !args.quiet {
        let kept = kept.as_ref().ok().and_then(Option::as_ref);
        print_result(
            args,
            &outcome,
            kept.map(|(folder, written)| (folder.as_path(), written)),
        );
    }
    if let Some(json) = json {
        json.write(&outcome)?;
    }
    kept?;
    if args.pid.is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(child::exit_status(&outcome.end)))
}

/// A process that runs already may have fewer units than we have.
fn restrictions(pid: Option<i32>) -> MachineRestrictions {
    let units = pid.map(auto::allowed_cpus).unwrap_or_default();
    MachineRestrictions {
        pus: (!units.is_empty()).then(|| PuList::from_numbers(units)),
        ..MachineRestrictions::default()
    }
}

type RedirectedStreams = [Option<OwnedFd>; 2];

/// The live view, and what the program gets as standard output and error then.
fn open_view(args: &Args) -> Result<(Option<Box<dyn LiveView>>, RedirectedStreams)> {
    if !args.live {
        return Ok((None, [None, None]));
    }
    let words = args.command.iter().map(|word| word.to_string_lossy());
    let command = match args.pid {
        Some(pid) => format!("process {pid}"),
        None => words.collect::<Vec<_>>().join(" "),
    };
    let (top, streams) = TopView::new(command, args.mechanism.name())?;
    Ok((Some(Box::new(top)), streams))
}

/// What was seen and done, and what to type next.
fn print_result(args: &Args, outcome: &AutoOutcome, kept: Option<(&Path, &WriteOutcome)>) {
    for note in &outcome.notes {
        print_stderr(&format!("note: {note}"));
    }
    for line in render::report(outcome, args.verbose, kept) {
        print_stderr(&line);
    }
}

/// The name of the program that a process runs.
fn program_of(pid: i32) -> Option<String> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(program.file_name()?.to_string_lossy().into_owned())
}

/// Every processor of this machine and its node, those too that may not be used.
fn cpu_node_map(selected: &SelectedMachine) -> Result<CpuNodeMap> {
    let whole = TopologyTree::new(&selected.topology, |_| true);
    let whole = whole.context("the machine has no processing unit")?;
    let most = whole.units.iter().map(|unit| unit.os as usize + 1).max();
    let mut node_of = vec![NodeIx(u32::MAX); most.unwrap_or(0)];
    for unit in &whole.units {
        node_of[unit.os as usize] = unit.node;
    }
    Ok(CpuNodeMap {
        node_of,
        nodes: whole.nodes.iter().map(|node| Node(node.os)).collect(),
    })
}
