//! Reading and writing what is kept as one JSON file: a placement, a prediction. A reader sees
//! the whole file or none: it is written under another name beside the target and renamed.
use crate::files::{check_output_path, open_regular_file, OutputPlace};
use serde::de::DeserializeOwned;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Largest file read: a placement takes some 15 bytes for each run of pages.
const MAX_BYTES: u64 = 256 << 20;

/// What is kept as JSON, told from other files by a version of its own and what only it has.
pub(crate) trait JsonArtefact: DeserializeOwned {
    /// What it is called, and the command that makes it.
    const NOUN: &'static str;
    const MAKER: &'static str;
    /// The version that is read and written.
    const FORMAT: u32;

    /// The version that a file says, read before the rest, which may look different in another
    /// one; an error where it is something else.
    fn read_version(text: &[u8]) -> serde_json::Result<u64>;

    /// A sentence about the first thing that is wrong.
    fn check(&self) -> Result<(), String>;

    fn to_json(&self) -> serde_json::Result<Vec<u8>>;
}

/// Why a placement or a prediction cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtefactError {
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is not a {noun} ({why}); give a file that `{maker}` wrote", path.display())]
    NotOne {
        /// The file or folder.
        path: PathBuf,
        /// What the file should be: placement, prediction.
        noun: &'static str,
        /// The command that writes such a file.
        maker: &'static str,
        /// Why it is none.
        why: String,
    },
    /// Another version of hither wrote it.
    #[error(
        "{} has {noun} format {format}, this hither reads {known}; make it again with `{maker}`, or update hither",
        path.display()
    )]
    OtherVersion {
        /// The file or folder.
        path: PathBuf,
        /// What the file should be: placement, prediction.
        noun: &'static str,
        /// The command that writes such a file.
        maker: &'static str,
        /// Version of the format.
        format: u64,
        /// The version that this hither reads.
        known: u32,
    },
    /// The file contradicts itself.
    #[error("{} is damaged: {what}; make it again with `{maker}`", path.display())]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// The command that writes such a file.
        maker: &'static str,
        /// What is wrong.
        what: String,
    },
    /// Something else has the name of the file to write.
    #[error(
        "{} exists and is not a {noun} ({why}); it was left as it is: choose another name with -o, or move it away",
        path.display()
    )]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// What the file should be: placement, prediction.
        noun: &'static str,
        /// Why it is none.
        why: String,
    },
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ArtefactError {
    let path = path.to_owned();
    move |source| ArtefactError::Io {
        action,
        path,
        source,
    }
}

/// Reads one and checks it.
pub(crate) fn read<T: JsonArtefact>(path: &Path) -> Result<T, ArtefactError> {
    let damaged = |what: String| ArtefactError::Damaged {
        path: path.to_owned(),
        maker: T::MAKER,
        what,
    };
    let not_one = |why: String| ArtefactError::NotOne {
        path: path.to_owned(),
        noun: T::NOUN,
        maker: T::MAKER,
        why,
    };
    let text = read_bounded(path)?.map_err(not_one)?;
    let format = T::read_version(&text).map_err(|e| not_one(e.to_string()))?;
    if format != u64::from(T::FORMAT) {
        return Err(ArtefactError::OtherVersion {
            path: path.to_owned(),
            noun: T::NOUN,
            maker: T::MAKER,
            format,
            known: T::FORMAT,
        });
    }
    let artefact: T = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
    artefact.check().map_err(damaged)?;
    Ok(artefact)
}

/// All of a file; inside, why it cannot be an artefact.
fn read_bounded(path: &Path) -> Result<Result<Vec<u8>, String>, ArtefactError> {
    let file = match open_regular_file(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Ok(Err("it does not exist".to_owned()));
        }
        Err(_) if path.metadata().is_ok_and(|data| !data.is_file()) => {
            return Ok(Err("it is not a file".to_owned()));
        }
        Err(e) => return Err(io_error("read", path)(e)),
    };
    let mut text = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(io_error("read", path))?;
    if text.len() as u64 > MAX_BYTES {
        return Ok(Err(format!("it is larger than {MAX_BYTES} bytes")));
    }
    Ok(Ok(text))
}

/// Writes one to `path`, replacing one that is there; how many bytes it has.
pub(crate) fn write<T: JsonArtefact>(artefact: &T, path: &Path) -> Result<u64, ArtefactError> {
    let target = destination::<T>(path)?;
    let text = artefact
        .to_json()
        .map_err(|e| io_error("write", path)(e.into()))?;
    OutputPlace::new(&target)
        .and_then(|place| place.replace(&text))
        .map_err(io_error("write", path))?;
    Ok(text.len() as u64)
}

/// Where to write: `path`, or what it links to; an error where something else is.
pub(crate) fn destination<T: JsonArtefact>(path: &Path) -> Result<PathBuf, ArtefactError> {
    let refused = |why: String| ArtefactError::Refused {
        path: path.to_owned(),
        noun: T::NOUN,
        why,
    };
    check_output_path(path).map_err(io_error("write", path))?;
    if path.symlink_metadata().is_err() {
        return Ok(path.to_owned());
    }
    let target = path
        .canonicalize()
        .map_err(|_| refused("a broken link".to_owned()))?;
    let text = read_bounded(&target)
        .map_err(|e| refused(e.to_string()))?
        .map_err(refused)?;
    T::read_version(&text).map_err(|e| refused(e.to_string()))?;
    Ok(target)
}
