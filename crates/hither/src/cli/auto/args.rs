//! The options of `hither auto`.
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{anyhow, Result};
use clap::builder::TypedValueParser;

use crate::app::policy_pair;
use crate::auto::analysis::fault_rate::SamplingLimits;
use crate::auto::mechanism::{describe_parameters, DetectionMechanism, MechanismParameters};
use crate::auto::sampler::{SamplerChoice, SAMPLERS};
use crate::cli::value_parsers::one_of;
use hither_model::map::threads::{ThreadPolicy, THREAD_POLICIES};

const EXAMPLES: &str = "\
Examples:
  hither auto -- ./app                         threads and pages, found and placed as it runs
  hither auto --live -- ./app                  the same, and show what goes on
  hither auto --threads-only -- ./app          leave the pages where they are
  hither auto --pid 4711                       a program that runs already
  hither auto --json-lines app.jsonl -- ./app  what was seen and done, every 100 ms

The program's output, exit status and signals are its own: 128 + n for signal n, 127 when it
does not exist, 126 when it cannot be executed. 2: hither itself could not do it. What hither
says goes to stderr, never to stdout. The samplers `move` and `write-protect` put a thread of
hither's into the program, which they stop for that for some milliseconds; the others do
neither. What was seen is kept as a profile, marked as sampled: hither stat, report and map
read it.";

/// Find and apply the placement while the program runs
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Attach to this running process, until it ends or Ctrl-C
    #[arg(
        long,
        value_name = "PID",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,

    /// Join with --pid also process 1 and those of another user
    #[arg(long, requires = "pid")]
    pub yes: bool,

    /// How communication is found: by hither's own rules, or as published: kMAF, which places
    /// pages too, or SPCD, which places threads only
    #[arg(long, value_name = "MECHANISM", default_value = "adaptive", value_parser = mechanisms())]
    pub mechanism: DetectionMechanism,

    /// Set a parameter of the mechanism (list: --help); may be given several times
    #[arg(long, value_name = "NAME=VALUE", long_help = describe_parameters())]
    pub parameter: Vec<String>,

    /// What maps the threads, a policy of hither map [default: locality-fast; scotch with kmaf,
    /// matching with spcd]
    #[arg(long, value_name = "POLICY", conflicts_with = "data_only", value_parser = policy_pair::policy)]
    pub policy: Option<&'static str>,

    /// Leave the pages to the system
    #[arg(long, conflicts_with = "data_only")]
    pub threads_only: bool,

    /// Leave the threads to the system
    #[arg(long)]
    pub data_only: bool,

    /// How page faults are caused [default: all ways that work here]
    #[arg(long, value_name = "SAMPLER", value_parser = clap::builder::PossibleValuesParser::new(SAMPLERS.iter().map(|(name, _)| *name)))]
    sampler: Option<String>,

    /// Let settings of the whole system be changed for the run (kernel.numa_balancing), as
    /// root; they are put back afterwards
    #[arg(long)]
    allow_sysctl: bool,

    /// Processor time for sampling, in per cent of the program's
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    budget: f64,

    /// Folder for the profile, `.hither` is appended; by default the program's name with
    /// `.auto` here. A profile of that name is replaced once the new one is complete
    #[arg(short, long, value_name = "NAME")]
    pub output: Option<PathBuf>,

    /// Keep no profile
    #[arg(long, conflicts_with = "output")]
    pub no_profile: bool,

    /// Keep no lines of the program's source in the profile
    #[arg(long, conflicts_with = "no_profile")]
    pub no_source: bool,

    /// Keep nothing in the profile of the program's arguments, of folders, of the host's name and of
    /// source lines
    #[arg(long, conflicts_with = "no_profile")]
    pub redact: bool,

    /// Show live what happens while the program runs. What it writes to the
    /// terminal is shown at the end
    #[arg(long, alias = "top")]
    pub live: bool,

    /// Write how it went to this file at the end, - for standard output, as JSON (names:
    /// docs/format.md)
    #[arg(long, alias = "json", value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Write what was seen and done to this file, - for standard output, a line of JSON for
    /// each 100 ms
    #[arg(long, value_name = "FILE")]
    pub json_lines: Option<PathBuf>,

    /// Say at the end what was seen, done and spent
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,

    /// The program and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

fn mechanisms() -> impl TypedValueParser<Value = DetectionMechanism> {
    use DetectionMechanism::{Adaptive, Kmaf, Spcd};
    one_of([Adaptive, Kmaf, Spcd].map(|mechanism| (mechanism, mechanism.name().into())))
}

/// `2%`, `0.5`
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("say a share between 0% and 100%, as in --budget 2%".to_owned()),
    }
}

impl Args {
    pub fn samplers(&self) -> SamplerChoice {
        SamplerChoice {
            only: self.sampler.clone(),
            allow_sysctl: self.allow_sysctl,
        }
    }

    pub fn limits(&self, parameters: &MechanismParameters) -> SamplingLimits {
        SamplingLimits {
            budget: self.budget,
            share: parameters.caused_share(),
            interval: parameters.look_interval(),
            ..SamplingLimits::default()
        }
    }

    /// What was set of the mechanism.
    ///
    /// # Errors
    /// When it cannot be set.
    pub fn parameters(&self) -> Result<MechanismParameters> {
        let mut parameters = MechanismParameters::of(self.mechanism);
        for text in &self.parameter {
            parameters.set(text).map_err(|error| anyhow!(error))?;
        }
        Ok(parameters)
    }

    /// What maps the threads.
    ///
    /// # Errors
    /// When this hither lacks it.
    pub fn thread_policy(&self) -> Result<&'static dyn ThreadPolicy> {
        let name = self.policy.unwrap_or(self.mechanism.usual_policy());
        let found = THREAD_POLICIES.iter().find(|policy| policy.name() == name);
        found.copied().ok_or_else(|| {
            anyhow!("this hither was built without libscotch, which kMAF maps with; --policy locality-fast can stand in for it")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn budgets() {
        let check = |text, expected: Option<f64>| assert_eq!(percent(text).ok(), expected);
        check("2%", Some(2.0));
        check("0.5", Some(0.5));
        check("100 %", Some(100.0));
        check("101%", None);
        check("-1", None);
        check("nan", None);
        check("", None);
    }
}
