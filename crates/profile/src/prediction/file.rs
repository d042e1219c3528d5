//! Reading and writing `NAME.sim.json`, and what is kept of it in a profile.
use super::{PlacementComparison, Prediction, PREDICTION_FORMAT};
use crate::artefact::{self, ArtefactError, JsonArtefact};
use serde::de::IgnoredAny;
use serde::Deserialize;
use std::path::Path;

/// What a prediction is called in the folder of the profile that it is about.
pub const PREDICTION_JSON: &str = "prediction.json";

impl JsonArtefact for Prediction {
    const NOUN: &'static str = "prediction";
    const MAKER: &'static str = "hither sim";
    const FORMAT: u32 = PREDICTION_FORMAT;

    fn read_version(text: &[u8]) -> serde_json::Result<u64> {
        #[derive(Deserialize)]
        struct PredictionVersion {
            format: u64,
            /// Profiles and placements have a format too, but no comparisons.
            #[serde(rename = "comparisons")]
            _comparisons: IgnoredAny,
        }
        serde_json::from_slice(text).map(|version: PredictionVersion| version.format)
    }

    fn check(&self) -> Result<(), String> {
        let mut forecasts = self.comparisons.iter().enumerate();
        forecasts.try_for_each(|(at, forecast)| {
            check_comparison(forecast).map_err(|e| format!("comparisons[{at}]: {e}"))
        })
    }

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }
}

/// Reads a prediction. Lists that belong together are of one length, `best` is a placement, and
/// every number is finite.
///
/// # Errors
/// If it is missing, of another version, or damaged: the message says where.
pub fn read_prediction(path: &Path) -> Result<Prediction, ArtefactError> {
    artefact::read(path)
}

/// Writes a prediction to `path`, replacing a prediction that is there.
///
/// # Errors
/// If something else is at `path`, or it cannot be written; then nothing is left behind.
pub fn write_prediction(prediction: &Prediction, path: &Path) -> Result<u64, ArtefactError> {
    artefact::write(prediction, path)
}

/// Whether [`write_prediction`] would accept `path`.
///
/// # Errors
/// If something that is not a prediction is there.
pub fn check_prediction_destination(path: &Path) -> Result<(), ArtefactError> {
    artefact::destination::<Prediction>(path).map(drop)
}

fn check_comparison(forecast: &PlacementComparison) -> Result<(), String> {
    if forecast.best as usize >= forecast.placements.len() {
        return Err(format!(
            "best is {}, but there are {} placements",
            forecast.best,
            forecast.placements.len()
        ));
    }
    for (at, placement) in forecast.placements.iter().enumerate() {
        let amounts = &placement.amounts;
        let lists = [
            (
                "amounts.levels",
                amounts.levels.len(),
                forecast.levels.len(),
            ),
            (
                "amounts.link_bytes",
                amounts.link_bytes.len(),
                forecast.links.len(),
            ),
        ];
        let parts = [
            (
                "by_thread",
                placement.by_thread.len(),
                forecast.threads.len(),
            ),
            (
                "by_structure",
                placement.by_structure.len(),
                forecast.structures.len(),
            ),
        ];
        let parts = parts.into_iter().filter(|(_, has, _)| *has > 0);
        for (name, has, wanted) in lists.into_iter().chain(parts) {
            if has != wanted {
                return Err(format!(
                    "placements[{at}].{name} has {has} rows, not {wanted}"
                ));
            }
        }
    }
    Ok(())
}
