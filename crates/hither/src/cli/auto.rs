//! `hither auto`: find the placement while the program runs, and apply it.
mod args;
mod mapper;
mod render;

use std::fs::File;
use std::process::ExitCode;

use anyhow::{bail, Context, Result};
use hither_profile::NodeIx;

pub use args::Args;

use super::{say, style};
use crate::place::online::{self, Machine, Parts, Request};
use crate::place::run::guide::Node;
use crate::program::{child, target};
use crate::topology::{select, Restrictions, Selected, Tree};
use crate::trace::launch::already_traced;
use mapper::Warm;

/// Runs the command or joins a process; the result is the exit status.
///
/// # Errors
/// When what was asked for cannot be done here, or the command not be started.
pub fn run(args: &Args) -> Result<ExitCode> {
    if already_traced() {
        bail!("this hither is itself being traced by hither, which cannot be nested; leave one of the two out");
    }
    hither_sys::process::withstand_file_limit();
    let selected = select(None, &Restrictions::default())?;
    let machine = machine(&selected)?;
    let journal = args
        .json_lines
        .as_deref()
        .map(|path| File::create(path).with_context(|| format!("cannot write {}", path.display())));
    let parts = Parts {
        threads: !args.data_only,
        pages: !args.threads_only && args.mechanism() == online::Mechanism::Kmaf,
    };
    let request = Request {
        mechanism: args.mechanism(),
        parts,
        samplers: args.samplers(),
        limits: args.limits(),
        machine,
        mapper: Box::new(Warm::new(selected.tree, args.mechanism())),
        journal: journal.transpose()?,
    };
    let outcome = match args.pid {
        Some(pid) => online::attach(request, pid)?,
        None => {
            let target = target::resolve(&args.command, std::env::var_os("PATH").as_deref())?;
            online::run(request, &target, &args.command)?
        }
    };
    if !args.quiet {
        for note in &outcome.notes {
            say(&format!("note: {}", style::clean(note)));
        }
        for line in render::report(&outcome, args.verbose) {
            say(&line);
        }
    }
    if args.pid.is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::from(child::exit_status(&outcome.end)))
}

/// Every processor of this machine and its node, those too that may not be used.
fn machine(selected: &Selected) -> Result<Machine> {
    let whole = Tree::new(&selected.topology, |_| true);
    let whole = whole.context("the machine has no processing unit")?;
    let most = whole.units.iter().map(|unit| unit.os as usize + 1).max();
    let mut node_of = vec![NodeIx(u32::MAX); most.unwrap_or(0)];
    for unit in &whole.units {
        node_of[unit.os as usize] = unit.node;
    }
    Ok(Machine {
        node_of,
        nodes: whole.nodes.iter().map(|node| Node(node.os)).collect(),
    })
}
