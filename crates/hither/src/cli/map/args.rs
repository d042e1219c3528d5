//! The options of `hither map`.
use std::path::PathBuf;

use anyhow::{bail, Result};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::app::map::input::Source;
use crate::app::map::options::{default_policy, CostKind, MapOptions, PhaseOptions};
use crate::app::policy_pair::{PolicyPair, ThreadPolicyArg};
use crate::cli::machine_args::MachineArgs;
use crate::cli::policy_values::{self, PolicyParser};
use crate::cli::value_parsers::{number_in, one_of};
use crate::formats;
use hither_model::map::data;
use hither_model::map::data::page_groups::GroupDecision;
use hither_model::map::data::PlacementPageSize;
use hither_model::map::phase_plan::{MigrationLimits, PhaseRule};
use hither_model::metrics::phase_detection::DIFF_MIN;
use hither_model::topology::PuList;
use hither_model::units;

const EXAMPLES: &str = "\
Examples:
  hither map app.hither                           for this machine, in app.place.json
  hither map app.hither --topology 'pack:2 core:8 pu:2' --explain
  hither map app.hither --policy matching --data kmaf -o spcd
  hither map app.hither --structure buf=interleave --phases
  hither map --matrix comm.csv --json             without a profile, print the PUs
  hither map app.place.json --format likwid-pin   a placement for another launcher
  hither map app.hither --policy best             the fastest that hither sim predicts
  hither map --list                               policies and formats, a line each";

/// Choose a PU for each thread and a node for each page
#[derive(Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Profile, as `hither trace` wrote it; or, to see it in another --format, a placement
    #[arg(value_name = "PROFILE", required_unless_present_any = ["matrix", "list"])]
    pub input: Option<PathBuf>,

    /// Communication without a profile: a table of comma-separated numbers, or lines
    /// `thread thread weight`
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    pub matrix: Option<PathBuf>,

    /// With --matrix: the work of each thread, as whole numbers in order, for --policy load-balance
    #[arg(long, value_name = "FILE", requires = "matrix")]
    pub load: Option<PathBuf>,

    /// Place only these threads (0-3,8) and leave the others to the system [default: those
    /// that do at least a thousandth of the busiest one's work, by accesses or instructions]
    #[arg(long, value_name = "LIST")]
    pub threads: Option<PuList>,

    #[command(flatten)]
    pub on: MapMachineArgs,

    #[command(flatten)]
    pub choice: MapPolicyArgs,

    #[command(flatten)]
    pub phases: MapPhaseArgs,

    /// Start from this placement and move as little as pays
    #[arg(long, value_name = "PLACEMENT")]
    pub from: Option<PathBuf>,

    /// Say what the placement brings, before and after
    #[arg(long)]
    pub explain: bool,

    /// List policies and formats
    #[arg(long, exclusive = true)]
    pub list: bool,

    /// For another tool: print this instead of writing a placement (see --list)
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = formats(), hide_possible_values = true)]
    pub format: String,

    /// Print the list of PUs and the objective as JSON
    #[arg(long, conflicts_with = "format")]
    pub json: bool,

    /// File to write, `.place.json` is appended unless it ends in `.json`; by default the profile's name
    /// here. A placement of that name is replaced. With --format: the file's whole name. - is standard
    /// output
    #[arg(short, long, value_name = "NAME")]
    pub output: Option<PathBuf>,
}

/// The machine to place on.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Machine")]
pub struct MapMachineArgs {
    #[command(flatten)]
    pub machine: MachineArgs,

    /// Most threads per PU [default: as few as hold all threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub capacity: Option<u32>,

    /// Let threads share a core while another core is idle
    #[arg(long)]
    pub siblings: bool,

    /// What the distance of two PUs is
    #[arg(long, value_name = "COST", default_value = "hops", value_parser = costs())]
    pub cost: CostKind,
}

/// How to place.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Policy")]
pub struct MapPolicyArgs {
    /// How to place threads, with +DATA pages too (see --list) [default: what is predicted to be fastest in a short
    /// simulation if the profile has bursts; else locality where `hither stat` finds that threads
    /// share enough, locality-spread where not]
    #[arg(long, value_name = "POLICY", value_parser = POLICY, hide_possible_values = true)]
    pub policy: Option<MapPolicyArg>,

    /// Place even where there is nothing to gain; without it nothing is bound then, unless --policy
    /// or --data names how
    #[arg(long)]
    pub force: bool,

    /// Policy locality with one quick attempt instead of a search
    #[arg(long)]
    pub fast: bool,

    /// How to place pages (see --list) [default: most-access, on machines of several nodes]
    #[arg(long, value_name = "POLICY", value_parser = data_policy)]
    pub data: Option<String>,

    /// With --data locality-balance: 0 (balance) to 1 (locality)
    #[arg(long, value_name = "X", value_parser = number_in(0.0..=1.0))]
    pub mix: Option<f64>,

    /// Pages of a data structure, or region:N, all alike: one-node, interleave or per-page
    /// (several times)
    #[arg(long = "structure", value_name = "NAME=DECISION", value_parser = structure)]
    pub structures: Vec<(String, GroupDecision)>,

    /// Size of the pages to place: 4k or 2m
    #[arg(long, value_name = "SIZE", default_value = "4k")]
    pub page_size: PlacementPageSize,

    /// Seed of what is drawn at random: the same seed, the same placement
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// One placement per phase of communication (OPT 6.2, 6.3).
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Phases")]
pub struct MapPhaseArgs {
    /// A placement for each phase of communication that is worth one
    #[arg(long)]
    pub phases: bool,

    /// Slices whose mean tells phases apart [default: as many as last a twentieth of a second by instructions, or half a second]
    #[arg(long, value_name = "N", requires = "phases")]
    pub phase_window: Option<usize>,

    /// Least difference between phases: share of communication with other partners; with --rule opt, of heterogeneity
    #[arg(long, value_name = "X", default_value_t = DIFF_MIN, value_parser = number_in(0.0..1e18), requires = "phases")]
    pub phase_difference: f64,

    /// How phases are chosen: together, by what moving costs; or opt, in order, by the conditions of OPT 6.2.2
    /// and 6.3
    #[arg(
        long,
        value_name = "RULE",
        default_value = "together",
        value_parser = phase_rules(),
        requires = "phases"
    )]
    pub rule: PhaseRule,

    /// With --rule together: what moving a thread costs, in communication events at the distance that it
    /// moves (the lines of memory that its caches lose)
    #[arg(long, value_name = "N", default_value_t = MigrationLimits::default().thread_move, requires = "phases")]
    pub thread_move: u64,

    /// With --rule together: what moving a page costs, in remote accesses
    #[arg(long, value_name = "N", default_value_t = MigrationLimits::default().page_move, requires = "phases")]
    pub page_move: u64,

    /// With --rule opt: least heterogeneity of communication for threads to move
    #[arg(long, value_name = "X", default_value_t = MigrationLimits::default().heterogeneity, value_parser = number_in(0.0..1e18), requires = "phases")]
    pub min_heterogeneity: f64,

    /// With --rule opt: least communication for threads to move, in events per pair and second
    #[arg(long, value_name = "X", default_value_t = MigrationLimits::default().amount, value_parser = number_in(0.0..1e18), requires = "phases")]
    pub min_amount: f64,

    /// Least time between moves of threads [default: 0; 1s with --rule opt]
    #[arg(long, value_name = "TIME", value_parser = units::parse_nanoseconds, requires = "phases")]
    pub thread_interval: Option<u64>,

    /// Least time between moves of a page [default: 0; 10s with --rule opt]
    #[arg(long, value_name = "TIME", value_parser = units::parse_nanoseconds, requires = "phases")]
    pub page_interval: Option<u64>,
}

impl MapPhaseArgs {
    fn options(&self) -> PhaseOptions {
        let paper = MigrationLimits::default();
        let [threads, pages] = match self.rule {
            PhaseRule::Together => [0, 0],
            PhaseRule::Opt => [paper.thread_interval, paper.page_interval],
            PhaseRule::Kmaf => [MigrationLimits::KMAF.thread_interval, 0],
        };
        PhaseOptions {
            window: self.phase_window,
            difference: self.phase_difference,
            rule: self.rule,
            limits: MigrationLimits {
                heterogeneity: self.min_heterogeneity,
                amount: self.min_amount,
                thread_interval: self.thread_interval.unwrap_or(threads),
                page_interval: self.page_interval.unwrap_or(pages),
                thread_move: self.thread_move,
                page_move: self.page_move,
            },
        }
    }
}

fn phase_rules() -> impl TypedValueParser<Value = PhaseRule> {
    one_of([PhaseRule::Together, PhaseRule::Opt].map(|rule| (rule, rule.name().into())))
}

fn costs() -> impl TypedValueParser<Value = CostKind> {
    let all = [
        (CostKind::Hops, "Steps through the tree, up and down"),
        (
            CostKind::Levels,
            "Cycles to the closest cache or memory shared",
        ),
        (
            CostKind::Latency,
            "Latency between nodes, where the topology has it",
        ),
    ];
    one_of(all.map(|(cost, about)| (cost, PossibleValue::new(cost.name()).help(about))))
}

impl Args {
    /// What to place; `None` where neither a profile nor a matrix is given.
    pub fn source(&self) -> Option<Source> {
        let matrix = self.matrix.clone().map(Source::Matrix);
        matrix.or_else(|| self.input.clone().map(Source::Profile))
    }

    /// Whether the simulator is to choose the policies.
    pub fn wants_best(&self) -> bool {
        self.choice.policy == Some(MapPolicyArg::Best)
    }

    /// Whether it is to be found out how, or whether at all, to place. Where another placement is
    /// kept to, threads that communicate come close together, and a rule of a paper is followed as it is.
    pub fn leaves_choice(&self) -> bool {
        let choice = &self.choice;
        let by_paper = self.phases.phases && self.phases.options().rule != PhaseRule::Together;
        choice.policy.is_none() && !choice.fast && self.from.is_none() && !by_paper
    }

    /// The policy that is named, if one is.
    pub fn named_policy(&self) -> Option<&PolicyPair> {
        match &self.choice.policy {
            Some(MapPolicyArg::Named(pair)) => Some(pair),
            Some(MapPolicyArg::Best) | None => None,
        }
    }

    /// Whether to place where there is nothing to gain.
    pub fn insists(&self) -> bool {
        let choice = &self.choice;
        choice.force || choice.data.is_some() || !choice.structures.is_empty()
    }

    /// How to place it. With [`Args::wants_best`] the policies are still to be chosen.
    ///
    /// # Errors
    /// When the policy has no fast variant.
    pub fn options(&self) -> Result<MapOptions> {
        let (on, choice) = (&self.on, &self.choice);
        let options = MapOptions {
            topology: on.machine.topology.clone(),
            pus: on.machine.pus.clone(),
            cpu_kinds: on.machine.cpu_kind.clone().unwrap_or_default(),
            capacity: on.capacity,
            siblings: on.siblings,
            cost: on.cost,
            threads: self.threads.clone(),
            policy: choice.thread_policy()?,
            data: choice.data.clone(),
            mix: choice.mix,
            structures: choice.structures.clone(),
            page_size: choice.page_size,
            seed: choice.seed,
            phases: self.phases.phases.then(|| self.phases.options()),
            from: self.from.clone(),
            explain: self.explain,
        };
        match self.named_policy().filter(|_| !choice.fast) {
            Some(named) => named.map_options(options),
            None => Ok(options),
        }
    }
}

impl MapPolicyArgs {
    /// Where no policy is named; `--fast` is a policy of its own.
    fn thread_policy(&self) -> Result<&'static str> {
        let locality = ThreadPolicyArg::Policy("locality");
        match &self.policy {
            _ if !self.fast => Ok(default_policy()),
            Some(MapPolicyArg::Best) => bail!("--fast goes with --policy locality"),
            Some(MapPolicyArg::Named(pair)) if *pair != locality.into() => bail!(
                "policy {} has no fast variant; use --fast with --policy locality",
                pair.name()
            ),
            _ => Ok("locality-fast"),
        }
    }
}

/// What `--policy` says.
#[derive(Clone, Debug, PartialEq)]
pub enum MapPolicyArg {
    Named(PolicyPair),
    /// Not a policy of its own: the simulator chooses one.
    Best,
}

const POLICY: PolicyParser<MapPolicyArg> = PolicyParser::new(map_policy, &[BEST]);

fn map_policy(text: &str) -> Result<MapPolicyArg, String> {
    match text {
        BEST => Ok(MapPolicyArg::Best),
        _ => policy_values::placeable(text).map(MapPolicyArg::Named),
    }
}

pub const BEST: &str = "best";
pub const BEST_ABOUT: &str = "the policy that `hither sim` predicts to be fastest, for threads and, unless --data says, for pages; needs a profile with bursts";

fn values(all: impl Iterator<Item = (&'static str, &'static str)>) -> PossibleValuesParser {
    PossibleValuesParser::new(all.map(|(name, about)| PossibleValue::new(name).help(about)))
}

fn data_policy(text: &str) -> Result<String, String> {
    data::data_policy_by_name(text).map(|_| text.to_owned())
}

fn formats() -> PossibleValuesParser {
    let json = [("json", "a placement: the file to keep (default)")];
    let others = formats::ALL.iter().map(|f| (f.name(), f.summary()));
    values(json.into_iter().chain(others))
}

/// The decision follows the last `=`, since names of structures may contain one.
fn structure(text: &str) -> Result<(String, GroupDecision), String> {
    let (name, decision) = text
        .rsplit_once('=')
        .ok_or("write NAME=one-node, NAME=interleave or NAME=per-page")?;
    Ok((name.to_owned(), decision.parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        let parsed = structure("a=b=one-node").expect("a structure");
        assert_eq!(parsed, ("a=b".to_owned(), GroupDecision::OneNode));
        assert!(structure("buf").is_err());
        assert!(structure("buf=elsewhere").is_err());
    }

    #[test]
    fn without_options_the_defaults_hold() {
        #[derive(clap::Parser)]
        struct MapCommandLine {
            #[command(flatten)]
            args: Args,
        }
        let parsed: MapCommandLine = clap::Parser::parse_from(["map", "app.hither"]);
        let options = parsed.args.options().expect("options");
        assert_eq!(options, MapOptions::default());
    }
}
