//! The profile of a run that was observed: where it goes, its structures, writing it.
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use hither_profile::{write, Profile, Written};

use crate::app::auto::structures;
use crate::cli::output;
use crate::cli::say;
use crate::program::mpi;
use crate::trace::symbols::Symbols;

/// Where the profile goes.
pub struct Keep {
    folder: PathBuf,
    /// The user named the place.
    named: bool,
    working_directory: String,
}

impl Keep {
    /// Looks before the run whether a profile can be written. Where the user named no
    /// place and it cannot, the program runs all the same and nothing is kept.
    ///
    /// # Errors
    /// When the place that the user named will not do.
    pub fn new(named: Option<&Path>, program: &str, quiet: bool) -> Result<Option<Keep>> {
        output::refuse_stdout(named)?;
        let here = std::env::current_dir();
        let rank = mpi::local_rank(|name| std::env::var(name).ok());
        let program = match rank {
            Some(rank) => format!("{program}.auto-{rank}"),
            None => format!("{program}.auto"),
        };
        let folder = output::folder(named, &program, None);
        let checked = output::check(&folder).and_then(|()| {
            let folder = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
            let here = here.context("cannot tell the current folder")?;
            Ok(Keep {
                folder,
                named: named.is_some(),
                working_directory: here.to_string_lossy().into_owned(),
            })
        });
        match checked {
            Ok(keep) => Ok(Some(keep)),
            Err(error) if named.is_some() => Err(error),
            Err(error) => {
                if !quiet {
                    say(&format!("note: no profile will be kept: {error:#}"));
                }
                Ok(None)
            }
        }
    }

    /// Completes the profile and writes it.
    ///
    /// # Errors
    /// When there is no room for all of it in the place that the user named.
    pub fn write(&self, profile: Profile, quiet: bool) -> Result<Option<(PathBuf, Written)>> {
        match self.put(profile) {
            Ok(written) => Ok(Some(written)),
            Err(error) if self.named => Err(error),
            Err(error) => {
                if !quiet {
                    say(&format!("note: no profile was kept: {error:#}"));
                }
                Ok(None)
            }
        }
    }

    fn put(&self, mut profile: Profile) -> Result<(PathBuf, Written)> {
        profile.meta.machine = crate::program::machine::describe_machine();
        profile
            .meta
            .working_directory
            .clone_from(&self.working_directory);
        structures::name(&mut profile, &mut Symbols::new());
        let shown = self.shown();
        let written = write(&profile, &self.folder);
        let written = written.with_context(|| format!("cannot write {}", shown.display()))?;
        if !written.missing.is_empty() {
            let missing = written.missing.join(", ");
            bail!(
                "{} is incomplete, it lacks {missing}; make room on the disk and run again",
                shown.display()
            );
        }
        Ok((shown, written))
    }

    /// As the user may type it.
    fn shown(&self) -> PathBuf {
        let here = Path::new(&self.working_directory);
        let inside = self.folder.strip_prefix(here).unwrap_or(&self.folder);
        inside.to_owned()
    }
}
