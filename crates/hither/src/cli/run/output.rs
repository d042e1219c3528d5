//! Where the outcome goes, found out before the program runs rather than after.
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{bail, Context, Result};

use hither_profile::{check_output_path, output_folder, OutputPlace};
use serde::Serialize;

use crate::cli::output::{has_folder, is_stdout, is_writable};

/// A file for the outcome. Opened at once where it is there already and no plain file (a
/// pipe, a terminal); else written under another name and renamed, so that a reader sees
/// all of it or none.
pub enum OutcomeFile {
    Open(File),
    Fresh(OutputPlace),
}

/// # Errors
/// When it cannot be written there.
pub fn destination(path: &Path) -> Result<OutcomeFile> {
    if is_stdout(path) {
        return Ok(OutcomeFile::Open(stdout()?));
    }
    let shown = path.display();
    let failed = || format!("cannot write {shown}");
    check_output_path(path).with_context(failed)?;
    match path.metadata() {
        Ok(data) if data.is_dir() => bail!("{shown} is a folder; name a file with --export-json"),
        Ok(data) if !data.is_file() => {
            let file = File::options().write(true).open(path);
            return Ok(OutcomeFile::Open(file.with_context(failed)?));
        }
        _ => {}
    }
    has_folder(path, "--export-json")?;
    is_writable(&output_folder(path), path, "--export-json")?;
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let place = OutputPlace::new(&path).with_context(failed)?;
    Ok(OutcomeFile::Fresh(place))
}

/// Opens what is written as it comes, a line at a time.
///
/// # Errors
/// When it cannot be written.
pub fn open_stream(path: &Path) -> Result<File> {
    if is_stdout(path) {
        return stdout();
    }
    let opened = check_output_path(path).and_then(|()| match path.metadata() {
        Ok(data) if !data.is_file() => File::options().write(true).open(path),
        _ => OutputPlace::new(path)?.truncate(),
    });
    opened.with_context(|| format!("cannot write {}", path.display()))
}

/// Standard output as a file.
///
/// # Errors
/// When it is closed.
pub fn stdout() -> Result<File> {
    let own = std::io::stdout().as_fd().try_clone_to_owned();
    Ok(File::from(own.context("cannot write to standard output")?))
}

impl OutcomeFile {
    /// Writes the outcome as JSON.
    ///
    /// # Errors
    /// When there is no room for it; then nothing is left behind.
    pub fn write(self, outcome: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(outcome)? + "\n";
        match self {
            OutcomeFile::Open(mut file) => file.write_all(text.as_bytes()),
            OutcomeFile::Fresh(place) => place.replace(text.as_bytes()),
        }
        .context("cannot write the outcome; make room, or choose another place with --export-json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::outcome::RunOutcome;

    #[test]
    fn outcomes_replace_files_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("out.json");
        for _ in 0..2 {
            let output = destination(&file).expect("a destination");
            output.write(&RunOutcome::default()).expect("written");
            let text = std::fs::read_to_string(&file).expect("a file");
            let read: RunOutcome = serde_json::from_str(&text).expect("an outcome");
            assert_eq!(read, RunOutcome::default());
        }
        assert_eq!(std::fs::read_dir(dir.path()).expect("a folder").count(), 1);
        assert!(destination(dir.path()).is_err());
        assert!(destination(&dir.path().join("none/out.json")).is_err());
        assert!(destination(Path::new("/dev/null")).is_ok());
    }
}
