//! `hither map --policy best`: the policies that a study of a recorded run finds to be the
//! fastest, for a placement to be made with them.
use anyhow::{bail, Context, Result};

use super::map::input::Source;
use super::map::options::MapOptions;
use super::study::forecast;
use super::study::options::SimOptions;
use super::study::policy_pair::{self, PolicyPair, JOINT_DATA, USUAL};
use super::study::progress::Progress;
use super::study::run_recording::RunRecording;
use super::study::sim_machine::SimMachine;

/// What to map with.
pub struct BestPolicies {
    pub options: MapOptions,
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
    let study = SimOptions {
        policies: candidates(options.data.as_deref())?,
        seed: options.seed,
        // What else says where threads and pages go; the machine is that of the model.
        map: MapOptions {
            from: None,
            explain: false,
            ..options.clone()
        },
        ..SimOptions::default()
    };
    let recording = RunRecording::open(profile, options.threads.as_ref())?;
    let model = SimMachine::of_map(options, recording.input.placed.len())?;
    let forecast = forecast(&study, &recording, &model, progress)?;
    let ours = forecast
        .placements
        .iter()
        .filter(|p| p.thread_policy != "os");
    let fastest = ours.min_by(|a, b| a.amounts.time.total_cmp(&b.amounts.time));
    let fastest = fastest.context("there is nothing to choose from")?;
    let data = fastest.data_policy.as_deref().unwrap_or("first-touch");
    Ok(BestPolicies {
        options: MapOptions {
            policy: policy_pair::policy(&fastest.thread_policy).map_err(anyhow::Error::msg)?,
            data: Some(data.to_owned()),
            ..options.clone()
        },
        verdict: forecast.verdict,
    })
}

/// What is compared: the system first, then each policy with each way to place pages.
fn candidates(data: Option<&str>) -> Result<Vec<PolicyPair>> {
    let data = data.map_or(vec!["first-touch", JOINT_DATA], |data| vec![data]);
    let known = USUAL.iter().filter(|threads| threads.is_known());
    let pairs =
        known.flat_map(|threads| data.iter().map(|data| format!("{}+{data}", threads.name())));
    let all = std::iter::once("os".to_owned()).chain(pairs);
    let all: Result<Vec<PolicyPair>, String> = all.map(|text| policy_pair::parse(&text)).collect();
    all.map_err(anyhow::Error::msg)
}
