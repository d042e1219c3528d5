//! From a recording and a machine to a forecast: plans, warm-up, all simulations, figures.
use anyhow::{anyhow, Result};
use hither_profile::{LinkEndpoints, PlacementComparison, SimulatedSample};

use super::candidates::wanted_policies;
use super::forecast::CandidateResult;
use super::options::{ShortStudy, SimOptions};
use super::placement_study::{PlacementStudy, COLD};
use super::progress::Progress;
use super::replay::{ReplayMonitor, ReplaySetup};
use super::run_recording::{RunRecording, SimWindow, FEW_WINDOWS};
use super::sim_machine::SimMachine;
use super::structures::StructureIndex;
use super::verdict;
use super::warm_up::{self, LineTraffic, WarmUp};
use crate::app::policy_pair::ThreadPolicyArg;
use hither_model::simulate::replay_input::cache_warming::CacheWarming;
use hither_model::simulate::replay_input::page_homes::PageHomeRule;
use hither_model::units::percent;

/// Windows of a short study: of two, nothing could be said of how they differ.
const LEAST_WINDOWS: u64 = 3;
const MOST_WINDOWS: u64 = 64;
/// How many accesses of a thread warm the caches at most: its own hold some thousand lines, and the larger ones are filled before.
const COLD_OF_THREAD: u64 = 62_500;

/// What the placements that are asked for are predicted to do.
///
/// # Errors
/// One sentence when a placement does not suit, or the machine cannot be simulated.
pub fn forecast(
    options: &SimOptions,
    recording: &RunRecording,
    model: &SimMachine,
    progress: &dyn Progress,
) -> Result<PlacementComparison> {
    Ok(forecast_with_seed_error(options, recording, model, progress)?.0)
}

/// The same, and by what share of its time one seed of the first placement may be off; `None` where it was played with
/// one.
///
/// # Errors
/// As [`forecast`].
pub fn forecast_with_seed_error(
    options: &SimOptions,
    recording: &RunRecording,
    model: &SimMachine,
    progress: &dyn Progress,
) -> Result<(PlacementComparison, Option<f64>)> {
    let warming = cache_warming(options, recording, model)?;
    let warming = warming.as_ref();
    let (windows, warm) = match options.short {
        Some(short) => (short_windows(recording, short), WarmUp::default()),
        None => {
            let warm = warm_up(options, (recording, warming), model, progress)?;
            let before = warm.changes.map(|_| warm.before);
            (recording.windows(options.accesses, before), warm)
        }
    };
    let played = played_share(options, &windows);
    let left_out = match (options.short, warming) {
        (Some(_), Some(_)) => left_out_share(&windows, played, recording.input.placed.len()),
        _ => 0.0,
    };
    let study = PlacementStudy {
        options,
        stand: ReplaySetup {
            played,
            left_out,
            ..replay_setup(options, recording, (&windows, warming), model)
        },
        progress,
    };
    let candidates = study.planner().candidates()?;
    let structures = options
        .by_structure
        .then(|| recording.profile().map(StructureIndex::of));
    let structures = structures.transpose()?;
    let parts = study.parts(warm);
    let (mut played, damaged) = study.simulate(candidates, &parts, structures.as_ref())?;
    let joint = resolve_joint(&mut played, model);
    let played: Vec<&CandidateResult> = display_order(&played, joint, options);
    let first = *played
        .first()
        .ok_or_else(|| anyhow!("there is nothing to simulate"))?;
    let mut placements: Vec<_> = played
        .iter()
        .map(|p| p.predicted(first, model, (recording, &windows)))
        .collect();
    for (placement, played) in placements.iter_mut().zip(&played) {
        if played.candidate.for_joint {
            placement.name = ThreadPolicyArg::Joint.name().to_owned();
        }
    }
    let profile = recording.profile()?;
    let comparison = PlacementComparison {
        source: recording.input.source.clone(),
        started_unix: profile.meta.started_unix,
        machine: model.target.id.clone(),
        title: model.title.clone(),
        machine_file: model.file.clone(),
        frequency: model.machine.core.frequency,
        levels: model
            .machine
            .levels
            .iter()
            .map(|l| l.name.clone())
            .collect(),
        links: links(model),
        threads: recording.thread_names(),
        structures: structures.map_or_else(Vec::new, |s| s.names),
        sample: sample(&study.stand, &parts, warm),
        pages: options.pages.name().to_owned(),
        best: verdict::fastest(&placements) as u32,
        verdict: verdict::sentence(&placements, &|one, other| {
            played[one].time_to(played[other], model)
        }),
        notes: notes(study.stand, warm, damaged),
        placements,
    };
    Ok((comparison, first.seed_error(model)))
}

fn replay_setup<'a>(
    options: &SimOptions,
    recording: &'a RunRecording,
    (windows, warming): (&'a [SimWindow], Option<&'a CacheWarming>),
    model: &'a SimMachine,
) -> ReplaySetup<'a> {
    ReplaySetup {
        recording,
        windows,
        model,
        rule: options.pages,
        played: 1.0,
        left_out: 0.0,
        starts: None,
        warming,
    }
}

/// What caches hold as windows begin. A recording of the whole run begins with empty ones, and where pages go by what
/// is replayed, nothing may touch them before.
fn cache_warming(
    options: &SimOptions,
    recording: &RunRecording,
    model: &SimMachine,
) -> Result<Option<CacheWarming>> {
    if recording.is_whole() || options.pages == PageHomeRule::Replay {
        return Ok(None);
    }
    let known = (recording.profile()?, &recording.bursts);
    Ok(Some(CacheWarming::of(
        known,
        &recording.space,
        &model.machine,
    )))
}

/// How much of each window is played.
fn played_share(options: &SimOptions, windows: &[SimWindow]) -> f64 {
    let all = windows.iter().map(SimWindow::accesses_with_warm_up);
    let all = all.fold(0, u64::saturating_add).max(1) as f64;
    options
        .short
        .map_or(1.0, |short| (short.accesses as f64 / all).min(1.0))
}

/// What share of what is played of windows, by so many threads, is not needed to warm the caches.
fn left_out_share(windows: &[SimWindow], played: f64, threads: usize) -> f64 {
    let all = windows.iter().map(SimWindow::own_accesses);
    let all = all.fold(0, u64::saturating_add) as f64;
    let each = all * played / windows.len().max(1) as f64;
    let needed = COLD_OF_THREAD as f64 * threads as f64;
    (COLD - needed / each.max(1.0)).max(0.0)
}

/// Windows of a short study, evenly over the run: as many as there are accesses to play if a piece is
/// played of each. The first of more than are needed only warms the caches.
fn short_windows(recording: &RunRecording, short: ShortStudy) -> Vec<SimWindow> {
    let each = recording.mean_window();
    let pieces = short.accesses / each.min(short.piece).max(1);
    let pieces = pieces.clamp(LEAST_WINDOWS + 1, MOST_WINDOWS);
    let windows = recording.windows(Some(each.saturating_mul(pieces)), None);
    let mut windows = RunRecording::warmed_by(windows, 0, u64::BITS - 1);
    if windows.len() as u64 > LEAST_WINDOWS {
        let first = windows.remove(0);
        windows[0].before.push(first);
    }
    windows
}

/// What is to warm up: as asked for; nothing in a recording of the whole run; else what is found.
fn warm_up(
    options: &SimOptions,
    (recording, warming): (&RunRecording, Option<&CacheWarming>),
    model: &SimMachine,
    progress: &dyn Progress,
) -> Result<WarmUp> {
    let asked = options.warm_up.or(recording.is_whole().then_some(0.0));
    if let Some(share) = asked {
        return Ok(WarmUp {
            share,
            ..WarmUp::default()
        });
    }
    let steps = progress.begin(0, "windows simulated to find the warm-up");
    let step = || steps.step();
    let line = LineTraffic::of_machine(&model.machine);
    let (limit, jobs) = (options.accesses, options.jobs);
    warm_up::find_warm_up(recording, limit, jobs, line, |windows, parts| {
        let study = PlacementStudy {
            options,
            stand: replay_setup(options, recording, (windows, warming), model),
            progress,
        };
        let plan = study.planner().first()?;
        let all: Vec<usize> = (0..windows.len()).collect();
        let heard = ReplayMonitor::new(&step);
        study.stand.replay_plan(&plan, &all, parts, None, &heard)
    })
}

/// Leaves one of those that `joint` chooses from, the fastest; its position.
fn resolve_joint(played: &mut Vec<CandidateResult>, model: &SimMachine) -> Option<usize> {
    let all = 0..played.len();
    let candidates = all.filter(|at| played[*at].candidate.for_joint);
    let seconds = |at: &usize| played[*at].seconds(model);
    let best = candidates.min_by(|a, b| seconds(a).total_cmp(&seconds(b)))?;
    let kept = played.swap_remove(best);
    played.retain(|p| !p.candidate.for_joint);
    played.push(kept);
    Some(played.len() - 1)
}

/// As they were asked for: `joint` where it was named, files last.
fn display_order<'a>(
    played: &'a [CandidateResult],
    joint: Option<usize>,
    options: &SimOptions,
) -> Vec<&'a CandidateResult> {
    let mut order: Vec<&CandidateResult> =
        played.iter().filter(|p| !p.candidate.for_joint).collect();
    if let Some(joint) = joint {
        let asked = wanted_policies(options);
        let at = asked
            .iter()
            .position(|w| w.threads == ThreadPolicyArg::Joint);
        order.insert(at.unwrap_or(order.len()).min(order.len()), &played[joint]);
    }
    order
}

fn links(model: &SimMachine) -> Vec<LinkEndpoints> {
    let links = model.machine.links.links.iter();
    let name = |link: &hither_model::simulate::simulated_machine::LinkParameters| LinkEndpoints {
        from: link.from,
        to: link.to,
        between_packages: link.between_packages,
    };
    links.map(name).collect()
}

fn sample(stand: &ReplaySetup, parts: &[(f64, bool); 2], warm: WarmUp) -> SimulatedSample {
    let (recording, windows) = (stand.recording, stand.windows);
    let [begin, end] = parts.map(|(share, _)| share * stand.played);
    let own = windows.iter().map(SimWindow::own_accesses);
    let own = own.fold(0, u64::saturating_add) as f64;
    let with_warm_up = windows.iter().map(SimWindow::accesses_with_warm_up);
    let before = with_warm_up.fold(0, u64::saturating_add) as f64 - own;
    let simulated = stand.played * before + (end - stand.left_out * stand.played) * own;
    SimulatedSample {
        windows_recorded: recording.bursts.windows().len() as u64,
        windows: windows.len() as u64,
        accesses_recorded: recording.bursts.accesses(),
        accesses: simulated as u64,
        warm_up: 1.0 - (end - begin) * own / simulated.max(1.0),
        warm_up_change: warm.change(),
    }
}

fn notes(stand: ReplaySetup, warm: WarmUp, damaged: bool) -> Vec<String> {
    let (recording, model) = (stand.recording, stand.model);
    let mut notes = Vec::new();
    if let Some(broken) = recording.bursts.broken() {
        notes.push(format!("{}.", broken.trim_end_matches('.')));
    } else if damaged {
        notes.push("Some of the bursts are damaged: what comes before is used.".to_owned());
    }
    if let Some([time, misses, traffic]) = warm.changes.filter(|_| !warm.is_settled()) {
        notes.push(format!(
            "The caches are not quite warm: with twice the warm-up, time changes by {}, misses of the last level by {} and traffic by {}. Longer windows help where the program comes back to the same data: see --bursts of `hither trace --help`. Of one that goes on to new data, take differences of that size for none.",
            percent(time), percent(misses), percent(traffic)
        ));
    }
    match stand.windows.len() {
        1 => notes.push(
            "One window is little to judge by: intervals tell how much chance does in it, not how it stands for the run.".to_owned(),
        ),
        few if few < FEW_WINDOWS => notes.push(format!(
            "{few} windows are few to judge by: how sure results are is itself uncertain."
        )),
        _ => {}
    }
    let seen = recording.threads_seen(stand.windows);
    let working = recording.input.placed.len();
    if seen * 2 < working {
        notes.push(format!(
            "Only {seen} of {working} threads that work are in these windows, so placements of the others make no difference: record windows more often, see --bursts of `hither trace --help`."
        ));
    }
    notes.extend(model.notes.iter().cloned());
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_model::simulate::replay_input::replay_space::WindowLayout;

    #[test]
    fn long_pieces_are_warmed_by_as_much_as_short_ones() {
        let window = || SimWindow {
            number: 0,
            layout: WindowLayout::default(),
            accesses: vec![4_000_000, 4_000_000],
            before: Vec::new(),
        };
        let windows = [window(), window()];
        let check = |played, threads, expected: f64| {
            let found = left_out_share(&windows, played, threads);
            assert!(
                (found - expected).abs() < 1e-12,
                "{played} {threads}: {found}"
            );
        };
        // 62,500 by each of 8 threads: a sixteenth of all, an eighth of half of it.
        check(1.0, 8, 0.25 - 0.0625);
        check(0.5, 8, 0.25 - 0.125);
        check(0.25, 8, 0.0);
        check(1.0, 64, 0.0);
    }
}
