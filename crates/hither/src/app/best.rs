//! The policies that a study of a recorded run finds to be the fastest, for a placement to be made
//! with them: a full study for `hither map --policy best`, a short one where no policy is named.
use anyhow::{bail, Context, Result};
use hither_profile::{PlacementComparison, PredictedPlacement};

use super::map::input::Source;
use super::map::options::MapOptions;
use super::policy_pair::{self, PolicyPair, ThreadPolicyArg, JOINT_DATA, USUAL};
use super::study::forecast;
use super::study::options::SimOptions;
use super::study::progress::Progress;
use super::study::run_recording::RunRecording;
use super::study::sim_machine::SimMachine;

/// Accesses that a short study simulates in all: a few seconds of two processors.
const SHORT_BUDGET: u64 = 300_000_000;
/// Seeds of the system's own placements in a short study.
const SHORT_SEEDS: u32 = 2;
/// What a short study compares with the system.
const SHORT: [&str; 3] = ["locality", SPREAD, "scatter"];
const SPREAD: &str = "locality-spread";

/// What to map with.
pub struct BestPolicies {
    pub options: MapOptions,
    /// Predicted time as a ratio to that of the system.
    pub time: f64,
    pub verdict: String,
}

/// The fastest of the usual policies that `hither map` has and that leave nothing to chance, with
/// pages left to the system and placed, or placed as `options` say.
///
/// # Errors
/// One sentence when there is no recording, or it cannot be simulated.
pub fn best(
    options: &MapOptions,
    source: &Source,
    progress: &dyn Progress,
) -> Result<BestPolicies> {
    let Source::Profile(profile) = source else {
        bail!("--policy best needs a profile with bursts, which `hither trace --bursts` records; a matrix says too little to simulate");
    };
    let known = USUAL.iter().filter(|threads| threads.is_known());
    let names: Vec<&str> = known
        .map(|threads| threads.name())
        .chain([SPREAD])
        .collect();
    let study = study(options, &names, SimOptions::default())?;
    let recording = RunRecording::open(profile, options.threads.as_ref())?;
    let model = SimMachine::of_map(options, recording.input.placed.len())?;
    fastest(options, &forecast(&study, &recording, &model, progress)?)
}

/// The same by a short study of few policies; `None` where the recording is of a whole run, which
/// cannot be cut short, and a long one.
///
/// # Errors
/// As [`best`].
pub fn best_in_short(
    options: &MapOptions,
    recording: &RunRecording,
    progress: &dyn Progress,
) -> Result<Option<BestPolicies>> {
    let model = SimMachine::of_map(options, recording.input.placed.len())?;
    let mut study = study(options, &SHORT, SimOptions::default())?;
    let plans = study.policies.len() as u64 - 1 + u64::from(SHORT_SEEDS);
    let budget = SHORT_BUDGET / plans;
    if recording.is_whole() && recording.bursts.accesses() > budget {
        return Ok(None);
    }
    study = SimOptions {
        budget: Some(budget),
        seeds: SHORT_SEEDS,
        // What a migration costs is spread over a whole window, of which a part is played.
        migrations: 0.0,
        ..study
    };
    let forecast = forecast(&study, recording, &model, progress)?;
    fastest(options, &forecast).map(Some)
}

/// The system first, then each policy with each way to place pages.
fn study(options: &MapOptions, policies: &[&str], study: SimOptions) -> Result<SimOptions> {
    let data = options.data.as_deref();
    let data = data.map_or(vec!["first-touch", JOINT_DATA], |data| vec![data]);
    let with_data = |threads: &&str| -> Vec<String> {
        data.iter()
            .map(|data| format!("{threads}+{data}"))
            .collect()
    };
    let pairs = policies.iter().flat_map(with_data);
    let all = std::iter::once(ThreadPolicyArg::Os.name().to_owned()).chain(pairs);
    let all: Result<Vec<PolicyPair>, String> = all.map(|text| policy_pair::parse(&text)).collect();
    Ok(SimOptions {
        policies: all.map_err(anyhow::Error::msg)?,
        seed: options.seed,
        // What else says where threads and pages go; the machine is that of the model.
        map: MapOptions {
            from: None,
            explain: false,
            ..options.clone()
        },
        ..study
    })
}

fn fastest(options: &MapOptions, forecast: &PlacementComparison) -> Result<BestPolicies> {
    let is_ours = |p: &&PredictedPlacement| p.thread_policy != ThreadPolicyArg::Os.name();
    let ours = forecast.placements.iter().filter(is_ours);
    let fastest = ours.min_by(|a, b| a.amounts.time.total_cmp(&b.amounts.time));
    let fastest = fastest.context("there is nothing to choose from")?;
    let data = fastest.data_policy.as_deref().unwrap_or("first-touch");
    Ok(BestPolicies {
        options: MapOptions {
            policy: policy_pair::policy(&fastest.thread_policy).map_err(anyhow::Error::msg)?,
            data: Some(data.to_owned()),
            ..options.clone()
        },
        time: fastest.relative.time.map_or(1.0, |time| time.value),
        verdict: forecast.verdict.clone(),
    })
}
