//! The options of `hither map`.
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::ValueEnum;

use super::list::List;
use crate::map::{data, threads};
use crate::metrics::PageSize;
use crate::place::formats;

const EXAMPLES: &str = "\
Examples:
  hither map app.hither                           for this machine, in app.place.json
  hither map app.hither --topology 'pack:2 core:8 pu:2' --explain
  hither map app.hither --policy matching --data most-access -o spcd
  hither map --matrix comm.csv --json             without a profile, print the PUs
  hither map app.place.json --format likwid-pin   a placement for another launcher
  hither map --list                               policies and formats, a line each";

/// Choose a PU for each thread and a node for each page
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Profile, as `hither trace` wrote it; or, to see it in another --format, a placement
    #[arg(value_name = "PROFILE", required_unless_present_any = ["matrix", "list"])]
    pub input: Option<PathBuf>,

    /// Communication without a profile: a table of comma-separated numbers, or lines
    /// `thread thread weight`
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    pub matrix: Option<PathBuf>,

    /// Place only these threads (0-3,8); the others are left to the system
    #[arg(long, value_name = "LIST")]
    pub threads: Option<List>,

    #[command(flatten)]
    pub machine: Machine,

    #[command(flatten)]
    pub choice: Choice,

    /// Start from this placement and move as little as pays
    #[arg(long, value_name = "PLACEMENT")]
    pub from: Option<PathBuf>,

    /// Say what the placement brings, before and after
    #[arg(long)]
    pub explain: bool,

    /// What there is to choose from
    #[arg(long, exclusive = true)]
    pub list: bool,

    /// For another tool: print this instead of writing a placement
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = formats())]
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
#[derive(clap::Args)]
#[command(next_help_heading = "Machine")]
pub struct Machine {
    /// hwloc XML file, description such as "pack:2 core:8 pu:2", or a name that `hither topo
    /// --list` shows [default: this machine]
    #[arg(long, value_name = "MACHINE")]
    pub topology: Option<String>,

    /// Use only these PUs, by the kernel's numbers (0-3,8)
    #[arg(long, value_name = "LIST")]
    pub pus: Option<List>,

    /// Most threads of a PU [default: as few as hold all threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub capacity: Option<u32>,
}

/// How to place.
#[derive(clap::Args)]
#[command(next_help_heading = "Policy")]
pub struct Choice {
    /// How to place threads
    #[arg(long, value_name = "POLICY", default_value = default_policy(), value_parser = policies(), hide_possible_values = true)]
    pub policy: String,

    /// How to place pages; by default they are left where they are first touched
    #[arg(long, value_name = "POLICY", value_parser = data_policies(), hide_possible_values = true)]
    pub data: Option<String>,

    /// Size of the pages to place
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = page_size)]
    pub page_size: PageSize,

    /// What the distance of two PUs is
    #[arg(long, value_name = "COST", default_value = "hops")]
    pub cost: CostKind,

    /// Where chance plays a part: the same seed, the same placement
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CostKind {
    /// Steps through the tree, up and down
    Hops,
    /// Cycles to the closest cache or memory shared
    Levels,
    /// Measured latency between nodes, where the topology has it
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

fn default_policy() -> &'static str {
    let ours = threads::ALL.iter().find(|p| p.name() == "locality");
    ours.or(threads::ALL.first()).map_or("", |p| p.name())
}

fn values(all: impl Iterator<Item = (&'static str, &'static str)>) -> PossibleValuesParser {
    PossibleValuesParser::new(all.map(|(name, about)| PossibleValue::new(name).help(about)))
}

fn policies() -> PossibleValuesParser {
    values(threads::ALL.iter().map(|p| (p.name(), p.about())))
}

fn data_policies() -> PossibleValuesParser {
    values(data::ALL.iter().map(|p| (p.name(), p.about())))
}

fn formats() -> PossibleValuesParser {
    let json = [("json", "a placement, what `hither run` reads")];
    let others = formats::ALL.iter().map(|f| (f.name(), f.about()));
    values(json.into_iter().chain(others))
}

fn page_size(text: &str) -> Result<PageSize, String> {
    match text.parse() {
        Ok(size @ (PageSize::K4 | PageSize::M2)) => Ok(size),
        _ => Err("pages are placed by 4k or 2m".to_owned()),
    }
}
