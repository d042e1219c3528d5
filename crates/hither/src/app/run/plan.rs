//! What is to be done, before anything is started.
use std::ffi::OsString;
use std::path::Path;

use anyhow::{bail, Result};
use hither_profile::{read_placement, Placement};
use nix::unistd::getppid;

use super::machine::{self, Here};
use super::options::RunOptions;
use super::{policy, surroundings};
use crate::program::mpi;
use crate::program::target::Target;
use crate::run::request::{MemoryPolicy, Request};
use crate::run::rule_guide::Rule;
use crate::run::{pinning_conflicts, progress};
use crate::run::{Guide, Recogniser};
use hither_sys::Cpu;

/// What is to be done.
pub struct Plan {
    pub here: Here,
    pub kind: Kind,
    pub memory: Option<MemoryPolicy>,
    pub strict: bool,
    /// Set for the program.
    pub environment: Vec<(&'static str, &'static str)>,
    pub warnings: Vec<String>,
}

/// Where threads and pages come from.
pub enum Kind {
    /// Of this file, without what was to be left out.
    Placement(String, Box<Placement>),
    Rule(ByRule),
}

/// Threads in an order.
pub struct ByRule {
    /// `compact`, or how it came about.
    pub name: String,
    pub order: Vec<Cpu>,
    /// Whether to tell ranks apart.
    ranks: bool,
}

impl Plan {
    /// # Errors
    /// A sentence when what was asked for contradicts itself, cannot be read or cannot be
    /// done on this machine.
    pub fn new(options: &RunOptions, target: &Target) -> Result<Plan> {
        let choice = &options.choice;
        let here = Here::new(options.cpus.as_ref())?;
        let memory = choice.memory.as_ref().map(|m| m.resolve(&here.nodes));
        let memory = memory.transpose()?;
        let mut warnings = Vec::new();
        let kind = match &options.placement {
            Some(file) => {
                let placement = read(file, options)?;
                warnings.extend(machine::check(&placement, &here)?);
                Kind::Placement(file.display().to_string(), Box::new(placement))
            }
            None => Kind::Rule(by_rule(options, choice.threads, &here)?),
        };
        let (threads, pages) = match &kind {
            Kind::Placement(_, placement) => (
                placement.phases.iter().any(|p| !p.threads.is_empty()),
                placement.phases.iter().any(|p| !p.pages.is_empty()),
            ),
            Kind::Rule(rule) => (!rule.order.is_empty(), false),
        };
        let mut around = surroundings::here(&options.command, target, options.placement.is_some());
        around.threads = threads;
        around.pages = pages || memory.is_some();
        around.memory = memory.is_some();
        warnings.extend(pinning_conflicts::warnings(
            |name| std::env::var(name).ok(),
            &around,
        ));
        Ok(Plan {
            here,
            kind,
            memory,
            strict: options.strict,
            environment: match threads {
                true => vec![("OMP_PROC_BIND", "false")],
                false => Vec::new(),
            },
            warnings,
        })
    }

    /// What does it.
    pub fn request(self, options: &RunOptions, target: Target) -> (Request, Box<dyn Guide>) {
        let environment = self.environment.iter();
        let environment = environment.map(|(k, v)| (OsString::from(k), OsString::from(v)));
        let progress = match &self.kind {
            Kind::Placement(_, placement) => progress::follow(placement, options.phases_by_time),
            Kind::Rule(_) => None,
        };
        let request = Request {
            target,
            command: options.command.clone(),
            strict: self.strict,
            memory: self.memory,
            progress,
            environment: environment.collect(),
            method: options.method,
        };
        let guide: Box<dyn Guide> = match self.kind {
            Kind::Placement(_, placement) => Box::new(Recogniser::new(*placement)),
            Kind::Rule(rule) => Box::new(Rule::new(rule.order, options.skip.clone(), rule.ranks)),
        };
        (request, guide)
    }
}

fn read(file: &Path, options: &RunOptions) -> Result<Placement> {
    if file.is_dir() {
        let shown = file.display();
        bail!("{shown} is a folder, not a placement; if it is a profile, map it first: hither map {shown}");
    }
    let mut placement = read_placement(file)?;
    for phase in &mut placement.phases {
        if options.data_only {
            phase.threads.clear();
        }
        if options.threads_only {
            phase.pages.clear();
        }
    }
    if options.threads_only {
        placement.regions.clear();
    }
    Ok(placement)
}

/// The order in which threads take PUs here; none where nothing asks for one.
fn by_rule(options: &RunOptions, order: Option<policy::Order>, here: &Here) -> Result<ByRule> {
    let (name, all) = match (order, &options.cpus) {
        (Some(order), _) => (order.name().to_owned(), order.units(&here.selected.tree)?),
        (None, Some(list)) => (format!("the list {list}"), policy::listed(list)),
        (None, None) => (String::new(), Vec::new()),
    };
    let get = |name: &str| std::env::var(name).ok();
    let job = mpi::job(get, getppid().as_raw());
    let rank = mpi::local_rank(get);
    let order = here.share(&all, job.as_ref(), rank.map(|r| r as usize));
    Ok(ByRule {
        name,
        order: order.to_vec(),
        // A rank with a hither of its own has no others to be told from.
        ranks: rank.is_none(),
    })
}
