//! The profile of a run that was observed: where it goes, its structures, writing it.
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use hither_profile::{write, Profile, WriteOutcome};

use crate::app::auto::structures;
use crate::cli::output;
use crate::cli::printed::{error_sentence, print_stderr};
use crate::cli::profile_completion::ProfileCompletion;
use crate::follow::procfs;
use crate::program::mpi;
use crate::trace::symbolizer_process::SymbolizerProcess;
use hither_sys::Pid;

/// Where the profile goes.
pub struct ProfileSink {
    folder: PathBuf,
    /// The user named the place.
    named: bool,
    working_directory: String,
    completion: ProfileCompletion,
    symbols: SymbolizerProcess,
}

impl ProfileSink {
    /// Looks before the run whether a profile can be written, and splits off what reads the files of
    /// the program, or of process `pid` with the rights of that. Where the user named no
    /// place and it cannot, the program runs all the same and nothing is kept.
    ///
    /// # Errors
    /// When the place that the user named will not do.
    pub fn new(
        named: Option<&Path>,
        program: &str,
        quiet: bool,
        pid: Option<Pid>,
        completion: ProfileCompletion,
    ) -> Result<Option<ProfileSink>> {
        output::refuse_stdout(named)?;
        let here = std::env::current_dir();
        let rank = mpi::local_rank(|name| std::env::var(name).ok());
        let program = match rank {
            Some(rank) => format!("{program}.auto-{rank}"),
            None => format!("{program}.auto"),
        };
        let folder = output::profile_folder(named, &program, None);
        let checked = output::check(&folder).and_then(|()| {
            let folder = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
            let here = here.context("cannot tell the current folder")?;
            Ok(ProfileSink {
                folder,
                named: named.is_some(),
                working_directory: here.to_string_lossy().into_owned(),
                completion,
                symbols: SymbolizerProcess::start(pid.and_then(procfs::file_rights).as_ref())?,
            })
        });
        match checked {
            Ok(keep) => Ok(Some(keep)),
            Err(error) if named.is_some() => Err(error),
            Err(error) => {
                if !quiet {
                    let why = error_sentence(&error);
                    print_stderr(&format!("note: no profile will be kept: {why}"));
                }
                Ok(None)
            }
        }
    }

    /// Completes the profile and writes it.
    ///
    /// # Errors
    /// When there is no room for all of it in the place that the user named.
    pub fn write(
        mut self,
        profile: Profile,
        quiet: bool,
    ) -> Result<Option<(PathBuf, WriteOutcome)>> {
        match self.write_profile(profile) {
            Ok(written) => Ok(Some(written)),
            Err(error) if self.named => Err(error),
            Err(error) => {
                if !quiet {
                    let why = error_sentence(&error);
                    print_stderr(&format!("note: no profile was kept: {why}"));
                }
                Ok(None)
            }
        }
    }

    fn write_profile(&mut self, mut profile: Profile) -> Result<(PathBuf, WriteOutcome)> {
        profile
            .meta
            .working_directory
            .clone_from(&self.working_directory);
        structures::name(&mut profile, &mut self.symbols);
        self.completion.complete(&mut profile, &mut self.symbols);
        let shown = self.display_path();
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
    fn display_path(&self) -> PathBuf {
        let here = Path::new(&self.working_directory);
        let inside = self.folder.strip_prefix(here).unwrap_or(&self.folder);
        inside.to_owned()
    }
}
