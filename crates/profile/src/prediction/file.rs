//! Reading and writing a prediction. A reader sees the whole file or none: it is written under
//! another name beside the target and renamed.
use super::{Forecast, Prediction, PREDICTION_FORMAT};
use serde::Deserialize;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What a prediction is called in the folder of the profile that it is about.
pub const PREDICTION_JSON: &str = "prediction.json";

/// Largest file read.
const MAX_BYTES: u64 = 256 << 20;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PredictionError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is not a prediction ({why}); give a file that `hither sim` wrote", path.display())]
    NotAPrediction { path: PathBuf, why: String },
    #[error(
        "{} has prediction format {format}, this hither reads {PREDICTION_FORMAT}; make it again with `hither sim`, or update hither",
        path.display()
    )]
    OtherVersion { path: PathBuf, format: u64 },
    #[error("{} is damaged: {what}; make it again with `hither sim`", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error(
        "{} exists and is not a prediction ({why}); it was left as it is: choose another name with -o, or move it away",
        path.display()
    )]
    Refused { path: PathBuf, why: String },
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PredictionError {
    let path = path.to_owned();
    move |source| PredictionError::Io {
        action,
        path,
        source,
    }
}

/// Reads a prediction. Lists that belong together are of one length, `best` is a placement, and
/// every number is finite.
///
/// # Errors
/// If it is missing, of another version, or damaged: the message says where.
pub fn read_prediction(path: &Path) -> Result<Prediction, PredictionError> {
    let damaged = |what: String| PredictionError::Damaged {
        path: path.to_owned(),
        what,
    };
    let text = whole(path)?;
    let format = version(&text).map_err(|why| PredictionError::NotAPrediction {
        path: path.to_owned(),
        why,
    })?;
    if format != u64::from(PREDICTION_FORMAT) {
        return Err(PredictionError::OtherVersion {
            path: path.to_owned(),
            format,
        });
    }
    let prediction: Prediction =
        serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
    for (at, forecast) in prediction.comparisons.iter().enumerate() {
        check(forecast).map_err(|e| damaged(format!("comparisons[{at}]: {e}")))?;
    }
    Ok(prediction)
}

fn check(forecast: &Forecast) -> Result<(), String> {
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

fn whole(path: &Path) -> Result<Vec<u8>, PredictionError> {
    let not_one = |why: &str| PredictionError::NotAPrediction {
        path: path.to_owned(),
        why: why.to_owned(),
    };
    // A pipe would make us wait for ever.
    match path.metadata() {
        Ok(data) if data.is_file() => {}
        Ok(_) => return Err(not_one("it is not a file")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(not_one("it does not exist")),
        Err(e) => return Err(io("read", path)(e)),
    }
    let file = File::open(path).map_err(io("read", path))?;
    let mut text = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(io("read", path))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(not_one(&format!("it is larger than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

/// The version, read before the rest, which may look different in another one.
fn version(text: &[u8]) -> Result<u64, String> {
    #[derive(Deserialize)]
    struct Version {
        format: u64,
        /// Profiles and placements have a format too, but no comparisons.
        #[serde(rename = "comparisons")]
        _comparisons: serde::de::IgnoredAny,
    }
    let version: Version = serde_json::from_slice(text).map_err(|e| e.to_string())?;
    Ok(version.format)
}

/// Writes a prediction to `path`, replacing a prediction that is there.
///
/// # Errors
/// If something else is at `path`, or it cannot be written; then nothing is left behind.
pub fn write_prediction(prediction: &Prediction, path: &Path) -> Result<u64, PredictionError> {
    let target = destination(path)?;
    let mut text =
        serde_json::to_vec_pretty(prediction).map_err(|e| io("write", path)(e.into()))?;
    text.push(b'\n');
    let parent = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".hither-")
        .permissions(Permissions::from_mode(0o664))
        .tempfile_in(parent)
        .map_err(io("make a file in", parent))?;
    file.write_all(&text)
        .and_then(|()| file.as_file().sync_all())
        .map_err(io("write", path))?;
    file.persist(&target)
        .map_err(|e| io("write", path)(e.error))?;
    Ok(text.len() as u64)
}

/// Whether [`write_prediction`] would accept `path`.
///
/// # Errors
/// If something that is not a prediction is there.
pub fn check_prediction_destination(path: &Path) -> Result<(), PredictionError> {
    destination(path).map(drop)
}

/// Where to write: `path`, or what it links to.
fn destination(path: &Path) -> Result<PathBuf, PredictionError> {
    let refused = |why: String| PredictionError::Refused {
        path: path.to_owned(),
        why,
    };
    if path.symlink_metadata().is_err() {
        return Ok(path.to_owned());
    }
    let target = path
        .canonicalize()
        .map_err(|_| refused("a broken link".to_owned()))?;
    let text = whole(&target).map_err(|e| match e {
        PredictionError::NotAPrediction { why, .. } => refused(why),
        e => refused(e.to_string()),
    })?;
    version(&text).map_err(refused)?;
    Ok(target)
}
