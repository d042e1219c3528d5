//! What can go wrong with a profile on disk.
use std::io;
use std::path::PathBuf;

/// Why a profile cannot be read or written. Every message is a sentence for the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
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
    /// The folder is no profile.
    #[error("{} is not a profile ({why}); give a folder that `hither trace` wrote", path.display())]
    NotAProfile {
        /// The file or folder.
        path: PathBuf,
        /// Why it is none.
        why: String,
    },
    /// A newer hither wrote it.
    #[error("{} was made by a newer hither (format {format}); update hither", path.display())]
    Newer {
        /// The file or folder.
        path: PathBuf,
        /// Version of the format.
        format: u32,
    },
    /// A table or `profile.json` is damaged.
    #[error("{} is damaged: {what}; make the profile again with `hither trace`", path.display())]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// One row is damaged.
    #[error(
        "{} is damaged: row {row}, column {column}: {what}; make the profile again with `hither trace`",
        path.display()
    )]
    Row {
        /// The file or folder.
        path: PathBuf,
        /// Row of the table, from 0.
        row: usize,
        /// Column of the table.
        column: &'static str,
        /// What is wrong.
        what: String,
    },
    /// Something else has the name of the profile to write.
    #[error(
        "{} exists and is not a profile ({why}); it was left as it is: choose another name with -o, or move it away",
        path.display()
    )]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// Why it is none.
        why: String,
    },
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
