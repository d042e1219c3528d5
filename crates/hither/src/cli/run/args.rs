//! The options of `hither run`.
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{bail, Result};
use clap::builder::{PossibleValue, TypedValueParser};

use crate::app::run::policy::{RunPolicies, RunPolicy};
use crate::app::run::RunOptions;
use crate::cli::value_parsers::one_of;
use crate::run::outcome::FollowMethod;
use hither_model::topology::PuList;

const EXAMPLES: &str = "\
Examples:
  hither run -p app.place.json -- ./app        as `hither map` decided
  hither run -p app.place.json --dry-run -- ./app
                                               say what would be done, start nothing
  hither run --policy scatter -- ./app         without a profile: threads far apart
  hither run --policy cores,interleave -- ./app
                                               a core for each thread, pages on all nodes
  hither run --pus 0,2,4-7 -- ./app            n-th thread on n-th PU of the list
  hither run --policy bind:0-1 -- ./app        pages on nodes 0 and 1 only
  hither run -p all.place.json -- mpirun --bind-to none -np 4 ./app
                                               ranks, too

Policies for threads (one of them):
  compact      next thread on the next PU: siblings, cores, nodes (OMP_PROC_BIND=close)
  cores        next thread on the next core; siblings once every core has a thread
  scatter      next thread on another node, package, cache, core; siblings last
  random[:SEED]  next thread on any PU that is free, to see what an average placement does
  os           threads stay where the system puts them
Memory policies (one of them), as numactl has them:
  interleave[:NODES]   in turn over all nodes, or over these
  local, first-touch   on the node of the thread that touches them first
  preferred:NODE       on this node while it has room
  bind:NODES           on these nodes only

A new thread takes the first PU with the fewest of the program's threads; what a thread
leaves is free again. Programs that only start others (shells, mpirun) do not count, and
MPI ranks take PUs by rank. OMP_PROC_BIND=false is set for the program while its threads
are placed.

The program's output, exit status and signals are its own: 128 + n for signal n, 127 when
it does not exist, 126 when it cannot be executed. 2: hither itself could not do it. What
hither says goes to stderr, never to stdout.";

/// Run a program with its threads and pages placed
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Placement, as `hither map` wrote it
    #[arg(short, long, value_name = "PLACEMENT")]
    pub placement: Option<PathBuf>,

    /// Leave the pages of the placement to the system
    #[arg(long, requires = "placement", conflicts_with = "data_only")]
    pub threads_only: bool,

    /// Leave the threads of the placement to the system
    #[arg(long, requires = "placement")]
    pub data_only: bool,

    /// Bind pages of the placement to their nodes: fail an allocation rather than use another node's memory
    #[arg(long, requires = "placement", conflicts_with = "threads_only")]
    pub strict: bool,

    /// Follow the phases of the placement by time only: count no barriers
    #[arg(long, requires = "placement")]
    pub phases_by_time: bool,

    /// Place by a rule: one for threads, one for pages, or both, separated by a comma; with
    /// -p only one for the pages that are not placed
    #[arg(long, value_name = "POLICY")]
    policy: Vec<String>,

    /// Only these PUs: the kernel's (physical) numbers as for taskset. Without a policy for
    /// threads, in this order
    #[arg(
        long,
        alias = "cpus",
        value_name = "LIST",
        conflicts_with = "placement"
    )]
    pub pus: Option<PuList>,

    /// Leave these threads alone, numbered from 0 in order of creation: 0,5-7
    #[arg(long, value_name = "LIST", conflicts_with = "placement")]
    pub skip: Option<PuList>,

    /// How to follow the program [default: ptrace, where that is forbidden polling]
    #[arg(long, value_name = "METHOD", value_parser = methods())]
    method: Option<FollowMethod>,

    /// Print what would be done and start nothing
    #[arg(long, conflicts_with_all = ["export_json", "quiet"])]
    pub dry_run: bool,

    /// Write what was asked and what was got to this file, - for standard output, as JSON
    /// (names: docs/format.md)
    #[arg(long, alias = "json", value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Say what is done at the start, and of each thread and region at the end
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,

    /// The program and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

fn methods() -> impl TypedValueParser<Value = FollowMethod> {
    let ptrace = "Every thread before its first instruction, and pages";
    let polling = "From outside, by reading /proc repeatedly; pages are not placed";
    one_of([
        (
            FollowMethod::Ptrace,
            PossibleValue::new("ptrace").help(ptrace),
        ),
        (
            FollowMethod::Polling,
            PossibleValue::new("polling").help(polling),
        ),
    ])
}

impl Args {
    /// # Errors
    /// When a policy is unknown, or they contradict one another.
    pub fn options(&self) -> Result<RunOptions> {
        Ok(RunOptions {
            placement: self.placement.clone(),
            threads_only: self.threads_only,
            data_only: self.data_only,
            strict: self.strict,
            phases_by_time: self.phases_by_time,
            choice: self.choice()?,
            pus: self.pus.clone(),
            skip: self.skip.clone(),
            method: self.method,
            command: self.command.clone(),
        })
    }

    /// What the policies ask for.
    ///
    /// # Errors
    /// When one is unknown, or they contradict one another.
    fn choice(&self) -> Result<RunPolicies> {
        if self.placement.is_none() && self.policy.is_empty() && self.pus.is_none() {
            bail!("say where threads and pages belong: -p app.place.json, --policy compact or another, or --pus 0-3; see `hither run --help`");
        }
        let mut choice = RunPolicies::default();
        for text in &self.policy {
            RunPolicies::check_pair(text)?;
        }
        for text in self.policy.iter().flat_map(|text| split(text)) {
            let part: RunPolicy = text.parse()?;
            if let Some(other) = choice.add_policy(&text, part) {
                bail!("--policy {other} and {text} contradict each other; choose one");
            }
        }
        if let (Some(threads), Some(file)) = (&choice.threads, &self.placement) {
            bail!(
                "--policy {} places threads, and so does {}; leave one of them out",
                threads.name(),
                file.display()
            );
        }
        if self.skip.is_some() && choice.threads.is_none() && self.pus.is_none() {
            bail!("--skip needs a --policy for threads, or --pus");
        }
        Ok(choice)
    }
}

/// Splits at commas, but for those within a list of nodes: `scatter,bind:0,2`. A + is as good, as
/// other verbs have it.
fn split(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in text.split([',', '+']) {
        match parts.last_mut() {
            Some(last) if part.starts_with(|c: char| c.is_ascii_digit()) => {
                last.push(',');
                last.push_str(part);
            }
            _ => parts.push(part.to_owned()),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_policies_and_nodes() {
        let check = |text: &str, expected: &[&str]| assert_eq!(split(text), expected);
        check("scatter", &["scatter"]);
        check("scatter,interleave", &["scatter", "interleave"]);
        check("bind:0,2-3,scatter", &["bind:0,2-3", "scatter"]);
        check("scatter,", &["scatter", ""]);
        check("os+interleave:0,1", &["os", "interleave:0,1"]);
    }
}
