//! The policies that a study of a recorded run finds to be the fastest, for a placement to be made
//! with them: a full study for `hither map --policy best`, a short one where no policy is named.
use anyhow::{bail, Context, Result};
use hither_profile::{PlacementComparison, PredictedPlacement, RatioEstimate};

use super::map::input::Source;
use super::map::options::MapOptions;
use super::policy_pair::{self, PolicyPair, ThreadPolicyArg, JOINT_DATA, USUAL};
use super::study::forecast;
use super::study::options::SimOptions;
use super::study::progress::Progress;
use super::study::run_recording::RunRecording;
use super::study::sim_machine::SimMachine;
use super::study::verdict;

/// Accesses that a short study simulates in all: a few seconds of two processors.
const SHORT_BUDGET: u64 = 300_000_000;
/// Seeds of the system's own placements in a short study: of two, nothing could be said of how they differ.
const SHORT_SEEDS: u32 = 4;
/// What a short study compares with the system.
const SHORT: [&str; 3] = ["locality", SPREAD, "scatter"];
const SPREAD: &str = "locality-spread";

/// What to map with.
pub struct BestPolicies {
    pub options: MapOptions,
    /// The share of the system's time that they are predicted to save, and whether it is surely no loss.
    pub gain: f64,
    pub gains: bool,
    pub verdict: String,
}

/// Less predicted time than this is saved: not worth binding for.
pub const WORTH_BINDING: f64 = 0.01;

/// Whether so much time is saved that it is worth binding for, and the interval of 95 % confidence holds no
/// loss.
fn surely_gains(time: RatioEstimate) -> bool {
    1.0 - time.value >= WORTH_BINDING && verdict::is_sure(time)
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
    let forecast = forecast(&study, &recording, &model, progress)?;
    fastest(options, &forecast, |_| false)
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
    // One window of many that there might have been says nothing of how the others do.
    let judged = recording.is_whole() || forecast.sample.windows > 1;
    let sure = |p: &PredictedPlacement| judged && p.relative.time.is_some_and(surely_gains);
    fastest(options, &forecast, sure).map(Some)
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

/// The fastest of those that are `preferred`, or else of all.
fn fastest(
    options: &MapOptions,
    forecast: &PlacementComparison,
    preferred: impl Fn(&PredictedPlacement) -> bool,
) -> Result<BestPolicies> {
    let is_ours = |p: &&PredictedPlacement| p.thread_policy != ThreadPolicyArg::Os.name();
    let ours = forecast.placements.iter().filter(is_ours);
    let rank = |p: &&PredictedPlacement| (!preferred(p), p.amounts.time);
    let fastest = ours.min_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let fastest = fastest.context("there is nothing to choose from")?;
    let data = fastest.data_policy.as_deref().unwrap_or("first-touch");
    Ok(BestPolicies {
        options: MapOptions {
            policy: policy_pair::policy(&fastest.thread_policy).map_err(anyhow::Error::msg)?,
            data: Some(data.to_owned()),
            ..options.clone()
        },
        gains: preferred(fastest),
        gain: fastest.relative.time.map_or(0.0, |time| 1.0 - time.value),
        verdict: forecast.verdict.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_profile::{PredictedAmounts, RelativeFigures};

    #[test]
    fn what_may_be_a_loss_is_no_gain() {
        let check = |value, half_width, expected| {
            let time = RatioEstimate { value, half_width };
            assert_eq!(surely_gains(time), expected, "{time:?}");
        };
        check(0.9, Some(0.05), true);
        // -7 to 28 % to gain.
        check(0.895, Some(0.175), false);
        check(0.995, Some(0.001), false);
        check(1.2, Some(0.1), false);
        // One window and one seed.
        check(0.5, None, false);
    }

    /// The fastest may be so by chance; another one surely gains.
    #[test]
    fn the_fastest_of_those_that_surely_gain_is_taken() {
        let one = |name: &str, value: f64, half: f64| PredictedPlacement {
            thread_policy: name.to_owned(),
            relative: RelativeFigures {
                time: Some(RatioEstimate {
                    value,
                    half_width: Some(half),
                }),
                ..RelativeFigures::default()
            },
            amounts: PredictedAmounts {
                time: value,
                ..PredictedAmounts::default()
            },
            ..PredictedPlacement::default()
        };
        let forecast = PlacementComparison {
            placements: vec![
                one("os", 1.0, 0.0),
                one("locality", 0.89, 0.03),
                one("compact", 0.95, 0.01),
                one("scatter", 0.87, 0.6),
            ],
            ..PlacementComparison::default()
        };
        let sure = |p: &PredictedPlacement| p.relative.time.is_some_and(surely_gains);
        let check = |preferred: &dyn Fn(&PredictedPlacement) -> bool, policy, gains| {
            let best = fastest(&MapOptions::default(), &forecast, preferred).expect("a policy");
            assert_eq!((best.options.policy, best.gains), (policy, gains));
        };
        check(&sure, "locality", true);
        check(&|_| false, "scatter", false);
    }
}
