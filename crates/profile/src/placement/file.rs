//! Reading and writing `NAME.place.json`.
use super::{check, layout, Placement, PLACEMENT_FORMAT};
use crate::artefact::{self, ArtefactError, JsonArtefact};
use serde::de::IgnoredAny;
use serde::Deserialize;
use std::path::Path;

impl JsonArtefact for Placement {
    const NOUN: &'static str = "placement";
    const MAKER: &'static str = "hither map";
    const FORMAT: u32 = PLACEMENT_FORMAT;

    fn read_version(text: &[u8]) -> serde_json::Result<u64> {
        #[derive(Deserialize)]
        struct PlacementVersion {
            format: u64,
            /// Profiles have a format too, but no phases.
            #[serde(rename = "phases")]
            _phases: IgnoredAny,
        }
        serde_json::from_slice(text).map(|version: PlacementVersion| version.format)
    }

    fn check(&self) -> Result<(), String> {
        check::check_placement(self)
    }

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        layout::placement_json(self)
    }
}

/// Reads a placement. Every index in it is valid.
///
/// # Errors
/// If it is missing, of another version, or damaged: the message says where.
pub fn read_placement(path: &Path) -> Result<Placement, ArtefactError> {
    artefact::read(path)
}

/// Writes a placement to `path`, replacing a placement that is there.
///
/// # Errors
/// If something else is at `path`, or it cannot be written; then nothing is left behind.
pub fn write_placement(placement: &Placement, path: &Path) -> Result<u64, ArtefactError> {
    artefact::write(placement, path)
}

/// What [`write_placement`] writes.
///
/// # Errors
/// If a number in it cannot be expressed as JSON.
pub fn placement_text(placement: &Placement) -> serde_json::Result<String> {
    let text = placement.to_json()?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// Whether [`write_placement`] would accept `path`.
///
/// # Errors
/// If something that is not a placement is there.
pub fn check_placement_destination(path: &Path) -> Result<(), ArtefactError> {
    artefact::destination::<Placement>(path).map(drop)
}
