//! Reading and writing `NAME.place.json`. A reader sees the whole file or none: it is
//! written under another name beside the target and renamed.
use super::check::check;
use super::layout;
use super::{Placement, PLACEMENT_FORMAT};
use serde::Deserialize;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Largest file read. A run of pages takes some 15 bytes.
const MAX_BYTES: u64 = 256 << 20;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is not a placement ({why}); give a file that `hither map` wrote", path.display())]
    NotAPlacement { path: PathBuf, why: String },
    #[error(
        "{} has placement format {format}, this hither reads {PLACEMENT_FORMAT}; make it again with `hither map`, or update hither",
        path.display()
    )]
    OtherVersion { path: PathBuf, format: u64 },
    #[error("{} is damaged: {what}; make it again with `hither map`", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error(
        "{} exists and is not a placement ({why}); it was left as it is: choose another name with -o, or move it away",
        path.display()
    )]
    Refused { path: PathBuf, why: String },
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PlacementError {
    let path = path.to_owned();
    move |source| PlacementError::Io {
        action,
        path,
        source,
    }
}

/// Reads a placement. Every index in it is valid.
///
/// # Errors
/// If it is missing, of another version, or damaged: the message says where.
pub fn read_placement(path: &Path) -> Result<Placement, PlacementError> {
    let damaged = |what: String| PlacementError::Damaged {
        path: path.to_owned(),
        what,
    };
    let text = whole(path)?;
    let format = version(&text).map_err(|why| PlacementError::NotAPlacement {
        path: path.to_owned(),
        why,
    })?;
    if format != u64::from(PLACEMENT_FORMAT) {
        return Err(PlacementError::OtherVersion {
            path: path.to_owned(),
            format,
        });
    }
    let placement = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
    check(&placement).map_err(damaged)?;
    Ok(placement)
}

fn whole(path: &Path) -> Result<Vec<u8>, PlacementError> {
    let not_one = |why: &str| PlacementError::NotAPlacement {
        path: path.to_owned(),
        why: why.to_owned(),
    };
    // A pipe would make us wait for ever.
    match path.metadata() {
        Ok(data) if data.is_file() => {}
        Ok(_) => return Err(not_one("it is not a file")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(not_one("it does not exist"));
        }
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
        /// Profiles have a format too, but no phases.
        #[serde(rename = "phases")]
        _phases: serde::de::IgnoredAny,
    }
    let version: Version = serde_json::from_slice(text).map_err(|e| e.to_string())?;
    Ok(version.format)
}

/// Writes a placement to `path`, replacing a placement that is there.
///
/// # Errors
/// If something else is at `path`, or it cannot be written; then nothing is left behind.
pub fn write_placement(placement: &Placement, path: &Path) -> Result<u64, PlacementError> {
    let target = destination(path)?;
    let text = layout::text(placement).map_err(|e| io("write", path)(e.into()))?;
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

/// Whether [`write_placement`] would accept `path`.
///
/// # Errors
/// If something that is not a placement is there.
pub fn check_placement_destination(path: &Path) -> Result<(), PlacementError> {
    destination(path).map(drop)
}

/// Where to write: `path`, or what it links to.
fn destination(path: &Path) -> Result<PathBuf, PlacementError> {
    let refused = |why: String| PlacementError::Refused {
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
        PlacementError::NotAPlacement { why, .. } => refused(why),
        e => refused(e.to_string()),
    })?;
    version(&text).map_err(refused)?;
    Ok(target)
}
