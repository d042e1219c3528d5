//! What `hither sim` predicted of the profile: read, never made here, since that may take long.
use super::AssessmentInput;
use crate::report::build::safe_text::plain_text;
use crate::report::page::ReportVerdict;
use anyhow::{bail, Result};
use hither_profile::{read_prediction, PlacementComparison, PREDICTION_JSON};
use std::path::Path;

/// The predictions of a file, else those that are kept in the profile. `warn` hears why the kept
/// ones are left out, where they are.
///
/// # Errors
/// When the file is none, or about another run.
pub fn read(
    given: &AssessmentInput,
    file: Option<&Path>,
    warn: &dyn Fn(&str),
) -> Result<Vec<PlacementComparison>> {
    let kept = given.folder.join(PREDICTION_JSON);
    let started = given.profile.meta.started_unix;
    let ours = |forecast: &PlacementComparison| {
        forecast.started_unix == started && forecast.source.command == given.profile.meta.command
    };
    let found = match file {
        Some(file) => read_prediction(file)?.comparisons,
        None if !kept.exists() => Vec::new(),
        None => match read_prediction(&kept) {
            Ok(prediction) => prediction.comparisons,
            Err(why) => {
                warn(&format!("the prediction in the profile is left out: {why}"));
                Vec::new()
            }
        },
    };
    let redacted = |mut forecast: PlacementComparison| {
        if let Some(host) = &given.redacted {
            forecast.redact(host);
        }
        forecast
    };
    let found = found.into_iter().map(redacted).filter(ours).map(shown);
    let found: Vec<PlacementComparison> = found.collect();
    if let Some(file) = file.filter(|_| found.is_empty()) {
        bail!(
            "{} is about other runs than {}; give a prediction that `hither sim {}` made",
            file.display(),
            given.file.display(),
            given.file.display()
        );
    }
    Ok(found)
}

/// With texts as a page may show them.
fn shown(mut forecast: PlacementComparison) -> PlacementComparison {
    let single = [
        &mut forecast.source.file,
        &mut forecast.title,
        &mut forecast.machine.name,
        &mut forecast.machine_file,
        &mut forecast.verdict,
        &mut forecast.pages,
    ];
    let lists = [
        &mut forecast.levels,
        &mut forecast.threads,
        &mut forecast.structures,
        &mut forecast.notes,
    ];
    for text in single.into_iter().chain(lists.into_iter().flatten()) {
        *text = plain_text(text);
    }
    for placement in &mut forecast.placements {
        let texts = [&mut placement.name, &mut placement.thread_policy];
        let optional = [&mut placement.data_policy, &mut placement.file];
        for text in texts.into_iter().chain(optional.into_iter().flatten()) {
            *text = plain_text(text);
        }
        for part in &mut placement.amounts.energy.parts {
            part.name = plain_text(&part.name);
        }
    }
    forecast
}

/// What is predicted to be gained comes before all bounds.
pub fn gain(
    verdict: &mut ReportVerdict,
    given: &AssessmentInput,
    predictions: &[PlacementComparison],
) {
    let sentence =
        |forecast: &PlacementComparison| format!("On {}: {}", forecast.title, forecast.verdict);
    let predicted: Vec<String> = predictions.iter().map(sentence).collect();
    let last = match (predicted.is_empty(), given.profile.meta.bursts.is_some()) {
        (false, _) => None,
        (true, true) => Some("`hither sim` predicts the time that placements bring on a machine, from the bursts of this profile."),
        (true, false) => Some("How much time they are worth depends on the machine: `hither sim` predicts it from a profile that was traced with --bursts."),
    };
    if verdict.gain.is_empty() && predicted.is_empty() {
        return;
    }
    verdict.gain.splice(0..0, predicted);
    verdict.gain.extend(last.map(str::to_owned));
}
