//! What a placement brings, in a sentence.
use super::options::PhaseOptions;
use super::pages::PagePlacement;
use super::MapSolution;
use super::NOTICEABLE;
use hither_model::map::explain::{PlacementExplanation, PlacementQuality};
use hither_model::metrics::phase_detection::traced_slices;
use hither_model::metrics::stable_phases::NO_STABLE_PHASES;
use hither_model::units::percent;
use hither_profile::Profile;

pub fn reason_sentence(solution: &MapSolution) -> String {
    let mut parts = vec![threads(&solution.explanation)];
    parts.extend(pages(&solution.explanation));
    format!(
        "{}, compared with {}.",
        parts.join("; "),
        solution.compared_with
    )
}

/// What is said where phases cannot be told apart, or one placement holds for the whole run in spite of
/// `--phases`; `placed`: parts of the run that have a placement of their own.
pub fn phase_note(profile: &Profile, options: &PhaseOptions, placed: usize) -> Option<String> {
    let found = || options.phases_of(profile).len();
    let of_one = || match found() {
        0 | 1 => format!(" {NO_STABLE_PHASES} One placement holds for the whole run."),
        _ => " No phase is worth a placement of its own: one holds for the whole run.".to_owned(),
    };
    too_short_for_phases(profile, options).or_else(|| (placed == 1).then(of_one))
}

/// What is said where pages of files that are not placed have a share of the accesses.
pub fn page_cache_note(placed: &PagePlacement) -> Option<String> {
    placed.policy.as_ref()?;
    let accesses = |at: usize| {
        let uses = placed.pages.uses(at).map(|u| u.accesses);
        uses.fold(0, u64::saturating_add)
    };
    let (mut cached, mut all) = (0u64, 0u64);
    for (at, &is_cached) in placed.cached.iter().enumerate() {
        let of_page = accesses(at);
        all = all.saturating_add(of_page);
        cached = cached.saturating_add(if is_cached { of_page } else { 0 });
    }
    let share = cached as f64 / all.max(1) as f64;
    (share >= NOTICEABLE).then(|| {
        format!(
            " Pages of files that are only read, or that processes share, {} of accesses, stay where the page cache has them.",
            percent(share)
        )
    })
}

/// Why `--phases` finds none, where the slices are too few.
fn too_short_for_phases(profile: &Profile, options: &PhaseOptions) -> Option<String> {
    let (traced, needed) = (traced_slices(profile), 2 * options.window_of(profile));
    let cure = match profile.meta.options.sample {
        Some(_) => "trace without --sample, or longer",
        None => "trace a longer run, or with shorter slices",
    };
    (traced < needed).then(|| {
        format!(" No phases: {traced} slices were traced, at least {needed} are needed to tell phases apart; {cure}.")
    })
}

fn threads(explanation: &PlacementExplanation) -> String {
    let after = &explanation.after;
    let Some(before) = &explanation.before else {
        return "Threads are placed".to_owned();
    };
    if before.objective == 0 {
        return "No communication between PUs to save".to_owned();
    }
    let ratio = after.objective as f64 / before.objective as f64;
    if (1.0 - ratio).abs() < NOTICEABLE {
        return "Communication costs as much as before".to_owned();
    }
    if ratio > 1.0 {
        return format!("Communication costs {} more", percent(ratio - 1.0));
    }
    let closer = most_gained(before, after);
    let closer = closer.map_or_else(String::new, |(level, was, is)| {
        let article = if level.starts_with('L') { "an" } else { "a" };
        let (is, was) = (percent(is), percent(was));
        format!(": {is} of it stays inside {article} {level}, {was} before")
    });
    format!("Communication costs {} less{closer}", percent(1.0 - ratio))
}

/// The level below the whole machine with the largest gain, the closest of several.
fn most_gained<'a>(
    before: &PlacementQuality,
    after: &'a PlacementQuality,
) -> Option<(&'a str, f64, f64)> {
    let share = |state: &PlacementQuality, level: &str| {
        let row = state.communication.iter().find(|row| row.level == level);
        row.map_or(0.0, |row| row.inside)
    };
    let levels = after.communication.iter().map(|row| row.level);
    let gains = levels.map(|level| (level, share(before, level), share(after, level)));
    // The last of equals wins, and levels come loosest first.
    gains
        .filter(|(_, was, is)| is - was >= NOTICEABLE)
        .max_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)))
}

fn pages(explanation: &PlacementExplanation) -> Option<String> {
    let after = explanation.after.remote?;
    let before = explanation.before.as_ref()?.remote?;
    if before.max(after) == 0.0 {
        return None;
    }
    Some(match before - after {
        gain if gain.abs() < NOTICEABLE => format!("{} of accesses stay remote", percent(after)),
        _ => format!(
            "{} of accesses are remote instead of {}",
            percent(after),
            percent(before)
        ),
    })
}
