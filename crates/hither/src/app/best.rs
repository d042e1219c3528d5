//! The policies that a study of a recorded run finds to be the fastest, for a placement to be made
//! with them: a full study for `hither map --policy best`, a short one where no policy is named.
use anyhow::{bail, Context, Result};
use hither_profile::{PlacementComparison, PredictedPlacement, RatioEstimate};

use super::map::input::Source;
use super::map::options::{MapOptions, SPREAD};
use super::policy_pair::{self, PolicyPair, ThreadPolicyArg, JOINT_DATA, USUAL};
use super::study::options::{ShortStudy, SimOptions};
use super::study::progress::Progress;
use super::study::run_recording::RunRecording;
use super::study::sim_machine::SimMachine;
use super::study::{forecast, forecast_with_seed_error};

/// How far a short study goes.
struct StudyRound {
    /// Accesses simulated in all, and of a window about.
    accesses: u64,
    piece: u64,
    /// Policies at most, beside the system.
    policies: usize,
}

/// First all policies, to see which promises most; then that one alone, by longer pieces of many more windows: the interval is
/// as wide as windows differ (NPB SP with 32 threads: 15.7 % by three whole windows, 8.8 % by 30 pieces of 5 million accesses).
const ROUNDS: [StudyRound; 2] = [
    StudyRound {
        accesses: 120_000_000,
        piece: 2_000_000,
        policies: usize::MAX,
    },
    StudyRound {
        accesses: 320_000_000,
        piece: 5_000_000,
        policies: 1,
    },
];

/// Seeds of the system's own placements in the first round, which tells how far one of them may be off. What follows
/// is played with one.
const SEEDS: u32 = 4;

/// What to map with.
pub struct BestPolicies {
    pub options: MapOptions,
    /// The share of the system's time that they are predicted to save, and whether it is surely no loss.
    pub gain: f64,
    pub gains: bool,
    /// The confidence interval holds nothing that is worth binding for.
    rules_out_gain: bool,
    pub verdict: String,
}

/// Less predicted time than this is saved: not worth binding for.
pub const WORTH_BINDING: f64 = 0.01;

/// How wide the interval is taken that must hold no loss, in intervals of 95 % confidence. The fastest of six, looked
/// at up to twice, is so by luck more often than one is, and few windows may be alike by luck: NPB MG was placed
/// for a gain of 11.1 +- 11.0 %, of which the whole recording says 5.5 +- 19.2 %.
const WIDTH: f64 = 2.0;

/// Whether so much time is saved that it is worth binding for, and the interval that is taken holds no loss.
fn surely_gains(time: RatioEstimate) -> bool {
    let gain = 1.0 - time.value;
    let sure = |half: f64| gain > half * WIDTH;
    gain >= WORTH_BINDING && time.half_width.is_some_and(sure)
}

/// Whether not even the most that the interval holds is worth binding for.
fn gains_nothing(time: RatioEstimate) -> bool {
    time.half_width
        .is_some_and(|half| 1.0 - time.value + half < WORTH_BINDING)
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

/// The same by a short study of these policies; `None` where the recording is of a whole run, which
/// cannot be cut short, and a long one.
///
/// # Errors
/// As [`best`].
pub fn best_in_short(
    options: &MapOptions,
    policies: &[&str],
    recording: &RunRecording,
    progress: &dyn Progress,
) -> Result<Option<BestPolicies>> {
    let model = SimMachine::of_map(options, recording.input.placed.len())?;
    let study = study(options, policies, SimOptions::default())?;
    let whole_run = recording.is_whole().then(|| recording.bursts.accesses());
    in_rounds(study, whole_run, |study, last| {
        let (forecast, seed_error) = forecast_with_seed_error(study, recording, &model, progress)?;
        // One window of many that there might have been says nothing of how the others do.
        let judged = last && (recording.is_whole() || forecast.sample.windows > 1);
        let sure = |p: &PredictedPlacement| judged && p.relative.time.is_some_and(surely_gains);
        let best = fastest(options, &forecast, sure)?;
        Ok((forecast, seed_error, best))
    })
}

/// What a round finds: all figures, by what share one seed of the system's placement may be off, and the fastest.
type RoundResult = (PlacementComparison, Option<f64>, BestPolicies);

/// Plays the rounds until there is surely nothing to gain; what the last of them finds. `whole_run`: accesses of a
/// recording of a whole run, all of which are played in the one round that has room for them.
fn in_rounds(
    mut study: SimOptions,
    whole_run: Option<u64>,
    mut play: impl FnMut(&SimOptions, bool) -> Result<RoundResult>,
) -> Result<Option<BestPolicies>> {
    let mut found: Option<RoundResult> = None;
    for (at, round) in ROUNDS.iter().enumerate() {
        study.seeds = SEEDS;
        let mut seed_error = 0.0;
        if let Some((forecast, of_one, _)) = &found {
            study.policies = promising(&study.policies, forecast, round.policies);
            study.seeds = if of_one.is_some() { 1 } else { SEEDS };
            seed_error = of_one.unwrap_or(0.0);
        }
        let plans = study.policies.len() as u64 - 1 + u64::from(study.seeds);
        let accesses = round.accesses / plans;
        if whole_run.is_some_and(|all| all > accesses) {
            continue;
        }
        study.short = Some(ShortStudy {
            accesses,
            piece: round.piece,
            seed_error,
        });
        // What a migration costs is spread over a whole window, of which a part is played.
        study.migrations = 0.0;
        let last = whole_run.is_some() || at + 1 == ROUNDS.len();
        let played = play(&study, last)?;
        let over = last || played.2.rules_out_gain;
        found = Some(played);
        if over {
            break;
        }
    }
    Ok(found.map(|(.., best)| best))
}

/// Of the policies that were compared, the system and so many of the fastest. What is not among the forecast's lost a race.
fn promising(
    compared: &[PolicyPair],
    forecast: &PlacementComparison,
    most: usize,
) -> Vec<PolicyPair> {
    let ratio = |p: &PredictedPlacement| p.relative.time.map_or(1.0, |time| time.value);
    let all = compared.iter().filter_map(|pair| {
        let mut placements = forecast.placements.iter();
        Some((pair, placements.find(|p| p.name == pair.name())?))
    });
    let (system, mut others): (Vec<_>, Vec<_>) =
        all.partition(|(pair, _)| pair.threads == ThreadPolicyArg::Os);
    others.sort_by(|(_, a), (_, b)| ratio(a).total_cmp(&ratio(b)));
    // Placing pages where they are anyway makes no other placement.
    others.dedup_by(|(_, a), (_, b)| ratio(a) == ratio(b));
    others.truncate(most);
    let kept = system.into_iter().chain(others);
    kept.map(|(pair, _)| pair.clone()).collect()
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
        rules_out_gain: fastest.relative.time.is_some_and(gains_nothing),
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
        check(0.9, Some(0.045), true);
        // NPB MG on four sockets: the whole recording is not sure.
        check(0.889, Some(0.11), false);
        // -7 to 28 % to gain.
        check(0.895, Some(0.175), false);
        check(0.995, Some(0.001), false);
        check(1.2, Some(0.1), false);
        // One window and one seed.
        check(0.5, None, false);
    }

    /// The policies of a study with these times and half widths, as they are compared.
    fn compared(times: &[(&str, f64, f64)]) -> (Vec<PolicyPair>, PlacementComparison) {
        let placements = times.iter().map(|(name, value, half)| PredictedPlacement {
            name: (*name).to_owned(),
            thread_policy: (*name).split('+').next().unwrap_or("").to_owned(),
            relative: RelativeFigures {
                time: Some(RatioEstimate {
                    value: *value,
                    half_width: Some(*half),
                }),
                ..RelativeFigures::default()
            },
            amounts: PredictedAmounts {
                time: *value,
                ..PredictedAmounts::default()
            },
            ..PredictedPlacement::default()
        });
        let comparison = PlacementComparison {
            placements: placements.collect(),
            ..PlacementComparison::default()
        };
        let pairs = times.iter().map(|(name, ..)| policy_pair::parse(name));
        (pairs.map(|p| p.expect("a policy")).collect(), comparison)
    }

    fn sure(p: &PredictedPlacement) -> bool {
        p.relative.time.is_some_and(surely_gains)
    }

    /// NPB SP was left unplaced: of two windows a gain of 21 % was not sure.
    #[test]
    fn what_promises_most_is_played_for_longer() {
        let check = |first: &[(&str, f64, f64)], whole_run, expected: &[(&[&str], u32)]| {
            let study = SimOptions {
                policies: compared(first).0,
                ..SimOptions::default()
            };
            let mut played: Vec<(Vec<String>, u32)> = Vec::new();
            let mut short = Vec::new();
            let found = in_rounds(study, whole_run, |study, last| {
                let names = study.policies.iter().map(PolicyPair::name);
                played.push((names.collect(), study.seeds));
                short.extend(study.short.map(|short| (short.accesses, short.seed_error)));
                let (_, forecast) = compared(first);
                let best = fastest(&MapOptions::default(), &forecast, |p| last && sure(p))?;
                let seed_error = (study.seeds > 1).then_some(0.02);
                Ok((forecast, seed_error, best))
            });
            let expected: Vec<(Vec<String>, u32)> = expected
                .iter()
                .map(|(names, seeds)| (names.iter().map(ToString::to_string).collect(), *seeds))
                .collect();
            assert_eq!(played, expected);
            assert!(short.is_sorted_by(|a, b| a.0 < b.0), "{short:?}");
            // What the seeds of the first round tell holds for the one of the second.
            let errors = short.iter().map(|short| short.1);
            assert!(errors.eq([0.0, 0.02].into_iter().take(short.len())));
            found.expect("a study").map(|best| best.gains)
        };
        let all = [
            "os",
            "locality",
            "locality+most-access",
            "scatter",
            "compact",
        ];
        let times = |value, half| {
            [
                ("os", 1.0, 0.0),
                ("locality", value, half),
                ("locality+most-access", value, half),
                ("scatter", 0.95, 0.2),
                ("compact", 0.97, 0.2),
            ]
        };
        let both: [(&[&str], u32); 2] = [(&all, 4), (&["os", "locality"], 1)];
        // The first look only says which is the fastest, however sure it is.
        assert_eq!(check(&times(0.9, 0.04), None, &both), Some(true));
        assert_eq!(check(&times(0.9, 0.2), None, &both), Some(false));
        // By the interval there may be something to gain, or surely not.
        let none = |half| [("os", 1.0, 0.0), ("locality", 1.01, half)];
        let two: [(&[&str], u32); 2] = [(&["os", "locality"], 4), (&["os", "locality"], 1)];
        assert_eq!(check(&none(0.05), None, &two), Some(false));
        assert_eq!(check(&none(0.01), None, &two[..1]), Some(false));
        // Of a recording of a whole run all is played, once.
        let whole = |accesses| check(&times(0.9, 0.04), accesses, &both[..1]);
        assert_eq!(whole(Some(5_000_000)), Some(true));
        assert_eq!(whole(Some(20_000_000)), Some(true));
        assert_eq!(check(&times(0.9, 0.04), Some(100_000_000), &[]), None);
    }

    /// The fastest may be so by chance; another one surely gains.
    #[test]
    fn the_fastest_of_those_that_surely_gain_is_taken() {
        let (_, forecast) = compared(&[
            ("os", 1.0, 0.0),
            ("locality", 0.89, 0.03),
            ("compact", 0.95, 0.01),
            ("scatter", 0.87, 0.6),
        ]);
        let check = |preferred: &dyn Fn(&PredictedPlacement) -> bool, policy, gains| {
            let best = fastest(&MapOptions::default(), &forecast, preferred).expect("a policy");
            assert_eq!((best.options.policy, best.gains), (policy, gains));
        };
        check(&sure, "locality", true);
        check(&|_| false, "scatter", false);
    }
}
