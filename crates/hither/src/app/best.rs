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
use super::study::{forecast, LEAST_WINDOWS};

/// How far a short study goes.
struct StudyRound {
    /// Accesses simulated in all, and of a window at most.
    accesses: u64,
    piece: u64,
    /// Policies at most, beside the system.
    policies: usize,
    /// Seeds of the system's own placements.
    seeds: u32,
}

/// First all policies, by pieces of windows; then the one that promises most, by whole windows, of which three of 8 threads
/// for 10 ms must fit in: NPB BT has 41 million accesses in one.
const ROUNDS: [StudyRound; 2] = [
    StudyRound {
        accesses: 120_000_000,
        piece: 4_000_000,
        policies: usize::MAX,
        seeds: 4,
    },
    StudyRound {
        accesses: 370_000_000,
        piece: WHOLE_WINDOWS,
        policies: 1,
        seeds: 2,
    },
];
const WHOLE_WINDOWS: u64 = u64::MAX;

/// The accesses of a recording, as far as they decide what of it is played.
#[derive(Clone, Copy)]
struct RecordedAccesses {
    mean_window: u64,
    /// Where all of a run was recorded, which cannot be cut short.
    whole_run: Option<u64>,
}

impl RecordedAccesses {
    fn of(recording: &RunRecording) -> RecordedAccesses {
        RecordedAccesses {
            mean_window: recording.mean_window(),
            whole_run: recording.is_whole().then(|| recording.bursts.accesses()),
        }
    }

    /// What a study plays of each placement at least.
    fn least(self, piece: u64) -> u64 {
        let windows = match piece {
            WHOLE_WINDOWS => LEAST_WINDOWS.saturating_mul(self.mean_window),
            _ => 0,
        };
        self.whole_run.unwrap_or(windows)
    }

    /// Whether a study plays parts of windows, which hold some steps of a program and not others. NPB BT gained 14 to 46 % in
    /// pieces of 15 %, and 13 % in whole windows.
    fn are_cut(self, short: ShortStudy) -> bool {
        self.whole_run.is_none() && short.cuts(self.mean_window)
    }
}

/// What a short study compares with the system.
const SHORT: [&str; 3] = ["locality", SPREAD, "scatter"];

/// What to map with.
pub struct BestPolicies {
    pub options: MapOptions,
    /// The share of the system's time that they are predicted to save, and whether it is surely no loss.
    pub gain: f64,
    pub gains: bool,
    /// Windows were too long to be played whole, so that neither is sure.
    pub cut: bool,
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
    let study = study(options, &SHORT, SimOptions::default())?;
    let recorded = RecordedAccesses::of(recording);
    in_rounds(study, recorded, |study, cut| {
        let forecast = forecast(study, recording, &model, progress)?;
        // One window of many that there might have been says nothing of how the others do.
        let judged = recording.is_whole() || !cut && forecast.sample.windows > 1;
        let sure = |p: &PredictedPlacement| judged && p.relative.time.is_some_and(surely_gains);
        let best = fastest(options, &forecast, sure)?;
        Ok((forecast, best))
    })
}

/// Plays the rounds until one is sure or promises nothing, but those for which too much was recorded; what the last of
/// them finds. Of cut windows nothing is sure, not even that there is no gain.
fn in_rounds(
    mut study: SimOptions,
    recorded: RecordedAccesses,
    mut play: impl FnMut(&SimOptions, bool) -> Result<(PlacementComparison, BestPolicies)>,
) -> Result<Option<BestPolicies>> {
    let mut found: Option<(PlacementComparison, BestPolicies)> = None;
    let mut cut = false;
    for round in &ROUNDS {
        if let Some((forecast, _)) = &found {
            let least = if cut {
                f64::NEG_INFINITY
            } else {
                WORTH_BINDING
            };
            study.policies = promising(&study.policies, forecast, (round.policies, least));
        }
        let plans = study.policies.len() as u64 - 1 + u64::from(round.seeds);
        let budget = round.accesses / plans;
        if recorded.least(round.piece) > budget {
            continue;
        }
        let short = ShortStudy {
            accesses: budget,
            piece: round.piece,
        };
        cut = recorded.are_cut(short);
        study.short = Some(short);
        study.seeds = round.seeds;
        // What a migration costs is spread over a whole window, of which a part is played.
        study.migrations = 0.0;
        let (forecast, best) = play(&study, cut)?;
        let unsure = !best.gains && (best.gain >= WORTH_BINDING || cut);
        found = Some((forecast, BestPolicies { cut, ..best }));
        if !unsure {
            break;
        }
    }
    Ok(found.map(|(_, best)| best))
}

/// Of the policies that were compared, the system and the fastest: so many, of those that gain so much.
fn promising(
    compared: &[PolicyPair],
    forecast: &PlacementComparison,
    (most, least): (usize, f64),
) -> Vec<PolicyPair> {
    let ratio = |p: &PredictedPlacement| p.relative.time.map_or(1.0, |time| time.value);
    let all = compared.iter().zip(&forecast.placements);
    let (system, mut others): (Vec<_>, Vec<_>) =
        all.partition(|(pair, _)| pair.threads == ThreadPolicyArg::Os);
    others.retain(|(_, p)| 1.0 - ratio(p) >= least);
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
        cut: false,
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
    fn what_promises_a_gain_is_played_for_longer() {
        let check = |first: &[(&str, f64, f64)], recorded, expected: &[&[&str]]| {
            let study = SimOptions {
                policies: compared(first).0,
                ..SimOptions::default()
            };
            let mut played: Vec<Vec<String>> = Vec::new();
            let mut budgets = Vec::new();
            let found = in_rounds(study, recorded, |study, cut| {
                played.push(study.policies.iter().map(PolicyPair::name).collect());
                budgets.push(study.short.map_or(0, |short| short.accesses));
                let (_, forecast) = compared(first);
                let best = fastest(&MapOptions::default(), &forecast, |p| !cut && sure(p))?;
                Ok((forecast, best))
            });
            assert_eq!(played, expected);
            assert!(budgets.is_sorted_by(|a, b| a < b), "{budgets:?}");
            found.expect("a study").map(|best| (best.gains, best.cut))
        };
        let windows = |mean_window| RecordedAccesses {
            mean_window,
            whole_run: None,
        };
        let whole_run = |accesses| RecordedAccesses {
            mean_window: accesses,
            whole_run: Some(accesses),
        };
        let all = [
            "os",
            "locality",
            "locality+most-access",
            "scatter",
            "compact",
        ];
        let (sure, unsure) = ([0.9, 0.04], [0.9, 0.2]);
        let times = |[value, half]: [f64; 2]| {
            [
                ("os", 1.0, 0.0),
                ("locality", value, half),
                ("locality+most-access", value, half),
                ("scatter", 0.95, 0.2),
                ("compact", 0.97, 0.2),
            ]
        };
        let (short, long) = (windows(4_000_000), windows(40_000_000));
        let none = [("os", 1.0, 0.0), ("locality", 0.995, 0.2)];
        let again: [&[&str]; 2] = [&all, &["os", "locality"]];
        let two: [&[&str]; 2] = [&["os", "locality"], &["os", "locality"]];
        assert_eq!(check(&times(sure), short, &again[..1]), Some((true, false)));
        assert_eq!(check(&times(unsure), short, &again), Some((false, false)));
        assert_eq!(check(&none, short, &two[..1]), Some((false, false)));
        // Pieces of windows say who may be the fastest, and no more.
        assert_eq!(check(&times(sure), long, &again), Some((true, false)));
        assert_eq!(check(&none, long, &two), Some((false, false)));
        let too_long = windows(50_000_000);
        assert_eq!(
            check(&times(sure), too_long, &again[..1]),
            Some((false, true))
        );
        // Of a recording of a whole run all is played.
        assert_eq!(
            check(&times(unsure), whole_run(20_000_000), &again[..1]),
            Some((false, false))
        );
        assert_eq!(check(&times(unsure), whole_run(100_000_000), &[]), None);
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
