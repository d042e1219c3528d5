//! What can go wrong with a profile on disk.
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is not a profile ({why}); give a folder that `hither trace` wrote", path.display())]
    NotAProfile { path: PathBuf, why: String },
    #[error("{} was made by a newer hither (format {format}); update hither", path.display())]
    Newer { path: PathBuf, format: u32 },
    #[error("{} is damaged: {what}; make the profile again with `hither trace`", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error(
        "{} is damaged: row {row}, column {column}: {what}; make the profile again with `hither trace`",
        path.display()
    )]
    Row {
        path: PathBuf,
        row: usize,
        column: &'static str,
        what: String,
    },
    #[error(
        "{} exists and is not a profile ({why}); it was left as it is: choose another name with -o, or move it away",
        path.display()
    )]
    Refused { path: PathBuf, why: String },
}

impl ProfileError {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> ProfileError {
        let path = path.into();
        move |source| ProfileError::Io {
            action,
            path,
            source,
        }
    }
}
