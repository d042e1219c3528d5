//! The profile of a run that goes on, written so that something is left of the run should nobody
//! live to write its end. A copy of the process writes it, so the folder has two owners: whoever of
//! them is left removes what is not wanted.
use super::staging::StagingFolder;
use super::write::{write_tables, DiskSpace};
use crate::error::ProfileError;
use crate::Profile;
use std::path::{Path, PathBuf};

/// Where a checkpoint is written before it is complete; removed when dropped, if the process that
/// drops it is the last that uses it.
pub struct CheckpointFolder {
    growing: StagingFolder,
    dir: PathBuf,
}

impl CheckpointFolder {
    /// Beside the profile to be; see [`write()`](super::write()).
    ///
    /// # Errors
    /// If something that is not a profile is at `dir`, or no folder can be made there.
    pub fn create(dir: &Path) -> Result<CheckpointFolder, ProfileError> {
        let growing = StagingFolder::create_beside(dir)?;
        let dir = dir.to_owned();
        Ok(CheckpointFolder { growing, dir })
    }

    /// Writes the profile and puts it in its place, where the one before stays until then. Not one that
    /// lacks tables: then the disk is full, and the one before is better.
    ///
    /// # Errors
    /// As of [`write()`](super::write()).
    pub fn write(self, profile: &Profile) -> Result<bool, ProfileError> {
        let (_, room) = write_tables(profile, &self.dir, &self.growing)?;
        if room == DiskSpace::Short {
            return Ok(false);
        }
        self.growing.commit()?;
        Ok(true)
    }
}
