//! What need not be done again: a stamp file holds the recipe that made the output,
//! so a changed flag, version or file list makes it stale as a changed source does.
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

pub struct BuildStamp {
    file: PathBuf,
    recipe: String,
}

impl BuildStamp {
    pub fn new(file: PathBuf, recipe: String) -> Self {
        Self { file, recipe }
    }

    pub fn is_current(&self) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|old| old == self.recipe)
    }

    pub fn write(&self) -> Result<()> {
        if let Some(folder) = self.file.parent() {
            create_folder(folder)?;
        }
        fs::write(&self.file, &self.recipe)
            .with_context(|| format!("cannot write {}", self.file.display()))
    }

    pub fn clear(&self) {
        // It is gone either way if it cannot be removed because it is not there.
        let _ = fs::remove_file(&self.file);
    }
}

/// Whether `output` exists and is at least as new as every input.
pub fn is_newer_than<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> bool {
    let Some(made) = modified(output) else {
        return false;
    };
    inputs
        .into_iter()
        .all(|i| modified(i).is_some_and(|t| t <= made))
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|m| m.modified()).ok()
}

pub fn create_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_stamp_holds_until_its_recipe_changes() {
        let folder = scratch("stamp");
        let file = folder.join("deeper/stamp");
        let stamp = BuildStamp::new(file.clone(), "cc -O2".into());
        assert!(!stamp.is_current(), "nothing written yet");
        stamp.write().unwrap();
        assert!(stamp.is_current());
        assert!(!BuildStamp::new(file, "cc -O3".into()).is_current());
        stamp.clear();
        assert!(!stamp.is_current());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_output_is_stale_when_missing_or_older_than_an_input() {
        let folder = scratch("newer");
        let (a, b, out) = (folder.join("a"), folder.join("b"), folder.join("out"));
        let at = |file: &Path, seconds| {
            let f = fs::File::create(file).unwrap();
            f.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
                .unwrap();
        };
        at(&a, 10);
        at(&b, 20);
        let inputs = || [a.as_path(), b.as_path()];
        assert!(!is_newer_than(&out, inputs()), "missing");
        at(&out, 15);
        assert!(!is_newer_than(&out, inputs()), "older than b");
        at(&out, 20);
        assert!(is_newer_than(&out, inputs()));
        fs::remove_file(&b).unwrap();
        assert!(!is_newer_than(&out, inputs()), "an input is gone");
        fs::remove_dir_all(folder).unwrap();
    }
}
