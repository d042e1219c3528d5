//! The options of `hither sim`.
use std::path::PathBuf;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::ValueEnum;

use crate::app::map::options::MapOptions;
use crate::app::policy_pair::PolicyPair;
use crate::app::study::options::{SimOptions, MIGRATIONS, SEEDS};
use crate::cli::policy_values::PolicyParser;
use crate::cli::value_parsers::{number_in, one_of, share_to};
use hither_model::simulate::replay_input::page_homes::PageHomeRule;
use hither_model::units;

const EXAMPLES: &str = "\
Examples:
  hither trace --bursts -o app -- ./app                     record what is needed
  hither sim app.hither                                     the usual placements, this machine
  hither sim app.hither --topology xeon-x7550x4,epyc-9654x2-nps4
  hither sim app.hither --policy os,locality,locality+most-access,joint
  hither sim app.hither -p app.place.json                   a placement of hither map
  hither sim app.hither --machine mine.toml --by level,energy
  hither sim app.hither bt.hither cg.hither --json          several programs

Policies are those of `hither map --list`, and
  os               threads as Linux spreads them, and moves them now and then
  POLICY+DATA      with pages placed for these threads (--data of hither map)
  next-touch       os, and in each window pages go to the node that touches them next
  joint            of all policies here that place threads alone and know the program or the
                   machine, each with pages placed for it by most-access, the fastest one";

/// Predict what placements would do on a machine, here or one you do not have
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Profiles with bursts, as `hither trace --bursts` wrote them
    #[arg(value_name = "PROFILE", required = true)]
    pub profiles: Vec<PathBuf>,

    #[command(flatten)]
    pub on: SimMachineArgs,

    #[command(flatten)]
    pub what: SimPlacementArgs,

    #[command(flatten)]
    pub how: SimExtentArgs,

    /// More tables: level, link, node, thread, structure, energy, time (several with commas)
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub by: Vec<BreakdownTable>,

    /// All tables of --by but thread and structure
    #[arg(short, long)]
    pub verbose: bool,

    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,

    /// File to write the prediction to, `.sim.json` is appended; `hither report --prediction`
    /// reads it. - prints it instead of the tables. It is kept in the profile too
    #[arg(short, long, value_name = "NAME")]
    pub output: Option<PathBuf>,

    /// Leave the profile as it is: do not keep the prediction in it
    #[arg(long)]
    pub no_keep: bool,

    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
}

impl Args {
    pub fn options(&self) -> SimOptions {
        let (what, how) = (&self.what, &self.how);
        SimOptions {
            policies: what.policy.clone(),
            placements: what.placements.clone(),
            pages: what.pages,
            seeds: what.seeds,
            seed: what.seed,
            migrations: what.migrations,
            accesses: (!how.all).then_some(how.accesses),
            short: None,
            warm_up: how.warm_up,
            jobs: how.jobs,
            by_structure: self.by.contains(&BreakdownTable::Structure) || self.json,
            map: MapOptions::default(),
        }
    }
}

/// The machines.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Machine")]
pub struct SimMachineArgs {
    /// Machines: names of `hither topo --list`, hwloc XML files, or hwloc's short notation as
    /// "node:4 core:8 pu:2"; several names with commas [default: this machine]
    #[arg(long, value_name = "NAME|FILE|STRING")]
    pub topology: Vec<String>,

    /// Caches, memory, links and energy of the machine, in TOML [default: those shipped for
    /// machines known by name, else estimates from the topology]
    #[arg(long, value_name = "FILE")]
    pub machine: Option<PathBuf>,
}

impl SimMachineArgs {
    /// Names, one each; `None` is this machine. Short notation may hold commas itself.
    pub fn names(&self) -> Vec<Option<String>> {
        let several = |text: &String| match text.contains(':') {
            true => vec![text.clone()],
            false => text.split(',').map(str::to_owned).collect(),
        };
        let names: Vec<_> = self.topology.iter().flat_map(several).map(Some).collect();
        match names.is_empty() {
            true => vec![None],
            false => names,
        }
    }
}

/// The placements.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Placements")]
pub struct SimPlacementArgs {
    /// Policies, several with commas; the others are compared with the first [default: os,
    /// compact, random, scatter, locality, balanced-locality, distance, joint; with -p: os]
    #[arg(long, value_name = "POLICY", value_delimiter = ',', value_parser = PolicyParser::SIMULATED, hide_possible_values = true)]
    pub policy: Vec<PolicyPair>,

    /// Placement that `hither map` made of this profile (several times)
    #[arg(short, long = "placement", value_name = "FILE")]
    pub placements: Vec<PathBuf>,

    /// Where pages are that a placement does not place
    #[arg(long, value_name = "RULE", default_value = "first-touch", value_parser = page_rules())]
    pub pages: PageHomeRule,

    /// Seeds of os and random: their mean is shown, with its uncertainty
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,

    /// The first seed, and that of the other policies
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// How often the operating system moves a thread, per second of the program's own time
    #[arg(long, value_name = "N", default_value_t = MIGRATIONS, value_parser = number_in(0.0..1e6))]
    pub migrations: f64,
}

/// How much is simulated.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Effort")]
pub struct SimExtentArgs {
    /// Most accesses to simulate for each placement and seed: windows are left out evenly
    #[arg(long, value_name = "N", default_value = "96M", value_parser = units::parse_count)]
    pub accesses: u64,

    /// Simulate all that was recorded
    #[arg(long, conflicts_with = "accesses")]
    pub all: bool,

    /// Share of each window that warms the caches and is not counted, 0 to 0.9 [default: so much
    /// that twice as much changes results by less than 1 %, else up to 8 windows recorded before;
    /// 0 for a recording of the whole run]
    #[arg(long, value_name = "SHARE", value_parser = share_to(0.9))]
    pub warm_up: Option<f64>,

    /// Simulations at a time; the results are the same [default: one for each processor]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
}

fn page_rules() -> impl TypedValueParser<Value = PageHomeRule> {
    use PageHomeRule::{FirstTouch, Interleave, Replay};
    let all = [
        (
            FirstTouch,
            "On the node of the thread that touched them first in the traced run",
        ),
        (
            Replay,
            "On the node of the thread that touches them first in the simulation",
        ),
        (Interleave, "In turn over the nodes"),
    ];
    one_of(all.map(|(rule, about)| (rule, PossibleValue::new(rule.name()).help(about))))
}

/// Tables beyond the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BreakdownTable {
    /// Misses of each level of caches, by kind
    Level,
    /// Bytes on each link
    Link,
    /// Reads and writes of each node's memory
    Node,
    /// Misses, transfers and remote reads of each thread
    Thread,
    /// The same of each data structure
    Structure,
    /// Where the energy goes
    Energy,
    /// Window by window
    Time,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_apart_by_commas() {
        let check = |given: &[&str], expected: &[Option<&str>]| {
            let on = SimMachineArgs {
                topology: given.iter().map(|text| (*text).to_owned()).collect(),
                machine: None,
            };
            let expected: Vec<_> = expected.iter().map(|n| n.map(str::to_owned)).collect();
            assert_eq!(on.names(), expected);
        };
        check(&[], &[None]);
        check(&["a,b", "c.xml"], &[Some("a"), Some("b"), Some("c.xml")]);
        check(
            &["core:2 pu:2(indexes=0,2,1,3)"],
            &[Some("core:2 pu:2(indexes=0,2,1,3)")],
        );
    }

    #[test]
    fn without_options_the_defaults_hold() {
        #[derive(clap::Parser)]
        struct SimCommandLine {
            #[command(flatten)]
            args: Args,
        }
        let parsed: SimCommandLine = clap::Parser::parse_from(["sim", "app.hither"]);
        assert_eq!(parsed.args.options(), SimOptions::default());
    }
}
