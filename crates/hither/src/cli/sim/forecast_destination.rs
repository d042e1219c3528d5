//! Where a prediction is kept: in the profile that it is about, and where the user says.
use std::path::{Path, PathBuf};

use crate::cli::output::has_folder;
use anyhow::Result;
use hither_profile::{
    check_prediction_destination, read_prediction, write_prediction, PlacementComparison,
    Prediction, PREDICTION_FORMAT, PREDICTION_JSON,
};

const SUFFIX: &str = ".sim.json";

/// The file to write, checked before the work rather than after.
///
/// # Errors
/// When it cannot be written there.
pub fn destination(name: &Path) -> Result<PathBuf> {
    let path = with_suffix(name);
    has_folder(&path, "-o")?;
    check_prediction_destination(&path)?;
    Ok(path)
}

/// The files that may be written: one beside each profile's tables, and this one.
pub fn paths(profiles: &[PathBuf], name: Option<&Path>) -> Vec<PathBuf> {
    let kept = profiles.iter().map(|profile| profile.join(PREDICTION_JSON));
    kept.chain(name.map(with_suffix)).collect()
}

fn with_suffix(name: &Path) -> PathBuf {
    let text = name.as_os_str().to_string_lossy();
    let stem = text.strip_suffix(SUFFIX).unwrap_or(&text);
    format!("{stem}{SUFFIX}").into()
}

/// Keeps it in the profile, for `hither report`, beside what is known of other machines. That
/// the profile cannot be written to is no failure: the reader has what was printed.
pub fn in_profile(forecasts: &[PlacementComparison], profile: &Path) {
    let path = profile.join(PREDICTION_JSON);
    let mut all = forecasts.to_vec();
    if let Ok(old) = read_prediction(&path) {
        let is_new = |old: &PlacementComparison| {
            let same = |new: &PlacementComparison| new.machine == old.machine;
            !forecasts.iter().any(same)
        };
        let started = forecasts.first().map(|f| f.started_unix);
        let old = old.comparisons.into_iter();
        all.extend(old.filter(|old| is_new(old) && Some(old.started_unix) == started));
    }
    let prediction = Prediction {
        format: PREDICTION_FORMAT,
        writer: env!("CARGO_PKG_VERSION").to_owned(),
        comparisons: all,
    };
    if let Err(why) = write_prediction(&prediction, &path) {
        crate::cli::print_stderr(&format!(
            "the prediction is not kept in the profile for `hither report` ({why}); -o NAME keeps it elsewhere"
        ));
    }
}
