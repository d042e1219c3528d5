//! The options of `hither map`.
use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Parser, ValueEnum};

use crate::cli::topo::MachineArgs;
use crate::place::formats;
use hither_model::map::data::groups::Decision;
use hither_model::map::data::{DataPolicy, LocalityBalance, PageSize};
use hither_model::map::phases::Limits;
use hither_model::map::{data, threads};
use hither_model::metrics::phases::{DIFF_MIN, WINDOW};
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

    /// Place only these threads (0-3,8) and leave the others to the system [default: those
    /// that do at least a thousandth of the busiest one's work]
    #[arg(long, value_name = "LIST")]
    pub threads: Option<PuList>,

    #[command(flatten)]
    pub on: On,

    #[command(flatten)]
    pub choice: Choice,

    #[command(flatten)]
    pub phases: Phases,

    /// Start from this placement and move as little as pays
    #[arg(long, value_name = "PLACEMENT")]
    pub from: Option<PathBuf>,

    /// Say what the placement brings, before and after
    #[arg(long)]
    pub explain: bool,

    /// What there is to choose from
    #[arg(long, exclusive = true)]
    pub list: bool,

    /// For another tool: print this instead of writing a placement (see --list)
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = formats(), hide_possible_values = true)]
    pub format: String,

    /// Print the list of PUs and the objective as JSON
    #[arg(long, conflicts_with = "format")]
    pub json: bool,

    /// File to write, `.place.json` is appended; by default the profile's name here. A
    /// placement of that name is replaced. With --format: the file's whole name
    #[arg(short, long, value_name = "NAME")]
    pub output: Option<PathBuf>,
}

/// The machine to place on.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Machine")]
pub struct On {
    #[command(flatten)]
    pub machine: MachineArgs,

    /// Most threads of a PU [default: as few as hold all threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub capacity: Option<u32>,

    /// Let threads share a core while another core is idle
    #[arg(long)]
    pub siblings: bool,

    /// What the distance of two PUs is
    #[arg(long, value_name = "COST", default_value = "hops")]
    pub cost: CostKind,
}

/// How to place.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Policy")]
pub struct Choice {
    /// How to place threads (see --list)
    #[arg(long, value_name = "POLICY", default_value = default_policy(), value_parser = policies(), hide_possible_values = true)]
    pub policy: String,

    /// With the default policy: one quick attempt instead of a search
    #[arg(long)]
    pub fast: bool,

    /// How to place pages (see --list) [default: most-access, on machines of several nodes]
    #[arg(long, value_name = "POLICY", value_parser = data_policy)]
    pub data: Option<String>,

    /// With --data locality-balance: 0 (balance) to 1 (locality)
    #[arg(long, value_name = "X", value_parser = share)]
    pub mix: Option<f64>,

    /// Pages of a data structure, or region:N, all alike: one-node, interleave or per-page
    /// (several times)
    #[arg(long = "structure", value_name = "NAME=DECISION", value_parser = structure)]
    pub structures: Vec<(String, Decision)>,

    /// Size of the pages to place: 4k or 2m
    #[arg(long, value_name = "SIZE", default_value = "4k")]
    pub page_size: PageSize,

    /// Where chance plays a part: the same seed, the same placement
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// One placement per phase of communication (OPT 6.2, 6.3).
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Phases")]
pub struct Phases {
    /// A placement for each phase of communication that is worth one
    #[arg(long)]
    pub phases: bool,

    /// Slices whose mean tells phases apart
    #[arg(long, value_name = "N", default_value_t = WINDOW, requires = "phases")]
    pub phase_window: usize,

    /// Least relative difference between phases
    #[arg(long, value_name = "X", default_value_t = DIFF_MIN, value_parser = positive, requires = "phases")]
    pub phase_difference: f64,

    /// Least heterogeneity of communication for threads to move
    #[arg(long, value_name = "X", default_value_t = Limits::default().heterogeneity, value_parser = positive, requires = "phases")]
    pub min_heterogeneity: f64,

    /// Least communication for threads to move, in events per pair and second
    #[arg(long, value_name = "X", default_value_t = Limits::default().amount, value_parser = positive, requires = "phases")]
    pub min_amount: f64,

    /// Least time between moves of threads
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::parse_nanoseconds, requires = "phases")]
    pub thread_interval: u64,

    /// Least time between moves of a page
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::parse_nanoseconds, requires = "phases")]
    pub page_interval: u64,
}

impl Phases {
    pub fn limits(&self) -> Limits {
        Limits {
            heterogeneity: self.min_heterogeneity,
            amount: self.min_amount,
            thread_interval: self.thread_interval,
            page_interval: self.page_interval,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CostKind {
    /// Steps through the tree, up and down
    Hops,
    /// Cycles to the closest cache or memory shared
    Levels,
    /// Latency between nodes, where the topology has it
    Latency,
}

impl CostKind {
    pub fn name(self) -> &'static str {
        match self {
            CostKind::Hops => "hops",
            CostKind::Levels => "levels",
            CostKind::Latency => "latency",
        }
    }
}

impl Args {
    /// What these words mean behind `hither map`.
    ///
    /// # Errors
    /// When they are no options of it.
    pub fn of(words: &[&str]) -> Result<Args, clap::Error> {
        #[derive(Parser)]
        struct Alone {
            #[command(flatten)]
            args: Args,
        }
        let words = ["map"].iter().chain(words);
        Alone::try_parse_from(words).map(|alone| alone.args)
    }

    /// The policy for pages and its name; `None` to leave them to the system.
    ///
    /// # Errors
    /// When the parameter goes with another policy.
    pub fn data_policy(&self, nodes: usize) -> Result<Option<NamedPolicy>, String> {
        let default = if nodes > 1 {
            "most-access"
        } else {
            FIRST_TOUCH
        };
        let name = self.choice.data.as_deref().unwrap_or(default);
        let policy: Box<dyn DataPolicy> = match (name, self.choice.mix) {
            ("locality-balance", Some(mix)) => Box::new(LocalityBalance { mix }),
            (_, Some(_)) => return Err("--mix goes with --data locality-balance".to_owned()),
            (FIRST_TOUCH, None) if self.choice.structures.is_empty() => return Ok(None),
            (name, None) => data::by_name(name)?,
        };
        Ok(Some((name.to_owned(), policy)))
    }

    /// What else was asked for, to be kept with the placement.
    pub fn options(&self) -> BTreeMap<String, String> {
        let mut options = BTreeMap::new();
        let mut keep = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                options.insert(name.to_owned(), value);
            }
        };
        let pus = self.on.machine.pus.as_ref();
        keep("pus", pus.map(ToString::to_string));
        keep("threads", self.threads.as_ref().map(ToString::to_string));
        let siblings = self.on.siblings.then(|| "true".to_owned());
        keep("siblings", siblings);
        keep("mix", self.choice.mix.map(|m| m.to_string()));
        keep("from", self.from.as_ref().map(|f| f.display().to_string()));
        for (name, decision) in &self.choice.structures {
            let decision = decision_name(*decision).to_owned();
            keep(&format!("structure {name}"), Some(decision));
        }
        if self.phases.phases {
            keep("phase-window", Some(self.phases.phase_window.to_string()));
            let Limits {
                heterogeneity,
                amount,
                thread_interval,
                page_interval,
            } = self.phases.limits();
            let difference = self.phases.phase_difference;
            keep("phase-difference", Some(difference.to_string()));
            keep("min-heterogeneity", Some(heterogeneity.to_string()));
            keep("min-amount", Some(amount.to_string()));
            keep("thread-interval", Some(format!("{thread_interval}ns")));
            keep("page-interval", Some(format!("{page_interval}ns")));
        }
        options
    }
}

/// A policy and what it was called.
type NamedPolicy = (String, Box<dyn DataPolicy>);

const FIRST_TOUCH: &str = "first-touch";

/// Not a policy of its own: the simulator chooses one.
pub const BEST: &str = "best";
pub const BEST_ABOUT: &str = "the policy that `hither sim` predicts to be fastest, for threads and, unless --data says, for pages; needs a profile with bursts";

fn default_policy() -> &'static str {
    let ours = threads::ALL.iter().find(|p| p.name() == "locality");
    ours.or(threads::ALL.first()).map_or("", |p| p.name())
}

fn values(all: impl Iterator<Item = (&'static str, &'static str)>) -> PossibleValuesParser {
    PossibleValuesParser::new(all.map(|(name, about)| PossibleValue::new(name).help(about)))
}

fn policies() -> PossibleValuesParser {
    let all = threads::ALL.iter().map(|p| (p.name(), p.about()));
    values(all.chain([(BEST, BEST_ABOUT)]))
}

fn data_policy(text: &str) -> Result<String, String> {
    data::by_name(text).map(|_| text.to_owned())
}

fn formats() -> PossibleValuesParser {
    let json = [("json", "a placement: the file to keep (default)")];
    let others = formats::ALL.iter().map(|f| (f.name(), f.about()));
    values(json.into_iter().chain(others))
}

fn share(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|v| (0.0..=1.0).contains(v));
    value.ok_or_else(|| "write a number from 0 to 1".to_owned())
}

fn positive(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|v| (0.0..1e18).contains(v));
    value.ok_or_else(|| "write a number, 0 or more".to_owned())
}

/// The decision follows the last `=`, since names of structures may contain one.
fn structure(text: &str) -> Result<(String, Decision), String> {
    let (name, decision) = text
        .rsplit_once('=')
        .ok_or("write NAME=one-node, NAME=interleave or NAME=per-page")?;
    Ok((name.to_owned(), decision.parse()?))
}

/// As --structure takes it.
pub fn decision_name(decision: Decision) -> &'static str {
    match decision {
        Decision::OneNode => "one-node",
        Decision::Interleave => "interleave",
        Decision::PerPage => "per-page",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        assert_eq!(share("0.1"), Ok(0.1));
        assert!(share("1.1").is_err());
        assert!(share("NaN").is_err());
        assert_eq!(positive("150"), Ok(150.0));
        assert!(positive("-1").is_err());
        assert!(positive("inf").is_err());
        let parsed = structure("a=b=one-node").expect("a structure");
        assert_eq!(parsed, ("a=b".to_owned(), Decision::OneNode));
        assert!(structure("buf").is_err());
        assert!(structure("buf=elsewhere").is_err());
    }
}
