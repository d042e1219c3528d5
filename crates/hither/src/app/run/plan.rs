//! What is to be done, before anything is started.
use std::ffi::OsString;
use std::path::Path;

use anyhow::{bail, Result};
use hither_profile::{read_placement, Placement};
use nix::unistd::getppid;

use super::machine::{self, LocalMachine};
use super::options::RunOptions;
use super::{launch_conditions, policy};
use crate::program::mpi;
use crate::program::target::TargetProgram;
use crate::run::request::{MemoryPolicy, RunRequest};
use crate::run::rule_guide::RuleGuide;
use crate::run::{pinning_conflicts, progress};
use crate::run::{PlacementGuide, ProfileGuide};
use hither_sys::Cpu;

/// What is to be done.
pub struct RunPlan {
    pub here: LocalMachine,
    pub kind: PlacementOrigin,
    pub memory: Option<MemoryPolicy>,
    pub strict: bool,
    /// Set for the program.
    pub environment: Vec<(&'static str, &'static str)>,
    pub warnings: Vec<String>,
}

/// Where threads and pages come from.
pub enum PlacementOrigin {
    /// Of this file, without what was to be left out.
    Placement(String, Box<Placement>),
    Rule(RulePlan),
}

/// Threads in an order.
pub struct RulePlan {
    /// `compact`, or how it came about.
    pub name: String,
    pub order: Vec<Cpu>,
    /// Whether to tell ranks apart.
    ranks: bool,
}

impl RunPlan {
    /// # Errors
    /// A sentence when what was asked for contradicts itself, cannot be read or cannot be
    /// done on this machine.
    pub fn new(options: &RunOptions, target: &TargetProgram) -> Result<RunPlan> {
        let choice = &options.choice;
        let here = LocalMachine::new(options.pus.as_ref())?;
        let memory = choice.memory.as_ref().map(|m| m.resolve(&here.nodes));
        let memory = memory.transpose()?;
        let mut warnings = Vec::new();
        let kind = match &options.placement {
            Some(file) => {
                let placement = read(file, options)?;
                warnings.extend(machine::check(&placement, &here)?);
                PlacementOrigin::Placement(file.display().to_string(), Box::new(placement))
            }
            None => PlacementOrigin::Rule(by_rule(options, choice.threads, &here)?),
        };
        let (threads, pages) = match &kind {
            PlacementOrigin::Placement(_, placement) => (
                placement.phases.iter().any(|p| !p.threads.is_empty()),
                placement.phases.iter().any(|p| !p.pages.is_empty()),
            ),
            PlacementOrigin::Rule(rule) => (!rule.order.is_empty(), false),
        };
        let mut around = launch_conditions::launch_conditions(
            &options.command,
            target,
            options.placement.is_some(),
        );
        around.threads = threads;
        around.pages = pages || memory.is_some();
        around.memory = memory.is_some();
        warnings.extend(pinning_conflicts::conflict_warnings(
            |name| std::env::var(name).ok(),
            &around,
        ));
        Ok(RunPlan {
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
    pub fn request(
        self,
        options: &RunOptions,
        target: TargetProgram,
    ) -> (RunRequest, Box<dyn PlacementGuide>) {
        let environment = self.environment.iter();
        let environment = environment.map(|(k, v)| (OsString::from(k), OsString::from(v)));
        let progress = match &self.kind {
            PlacementOrigin::Placement(_, placement) => {
                progress::follow(placement, options.phases_by_time)
            }
            PlacementOrigin::Rule(_) => None,
        };
        let request = RunRequest {
            target,
            command: options.command.clone(),
            strict: self.strict,
            memory: self.memory,
            progress,
            environment: environment.collect(),
            method: options.method,
        };
        let guide: Box<dyn PlacementGuide> = match self.kind {
            PlacementOrigin::Placement(_, placement) => Box::new(ProfileGuide::new(*placement)),
            PlacementOrigin::Rule(rule) => {
                Box::new(RuleGuide::new(rule.order, options.skip.clone(), rule.ranks))
            }
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
fn by_rule(
    options: &RunOptions,
    order: Option<policy::PuOrder>,
    here: &LocalMachine,
) -> Result<RulePlan> {
    let (name, all) = match (order, &options.pus) {
        (Some(order), _) => (order.name().to_owned(), order.units(&here.selected.tree)?),
        (None, Some(list)) => (format!("the list {list}"), policy::listed(list)),
        (None, None) => (String::new(), Vec::new()),
    };
    let get = |name: &str| std::env::var(name).ok();
    let job = mpi::mpi_job(get, getppid().as_raw());
    let rank = mpi::local_rank(get);
    let order = here.share_of_rank(&all, job.as_ref(), rank.map(|r| r as usize));
    Ok(RulePlan {
        name,
        order: order.to_vec(),
        // A rank with a hither of its own has no others to be told from.
        ranks: rank.is_none(),
    })
}
