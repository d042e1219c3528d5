//! Where a profile goes, checked before the target runs rather than after.
use std::path::{Path, PathBuf};

use anyhow::{bail, Result};
use nix::unistd::{access, AccessFlags};

use hither_profile::check_destination;

const SUFFIX: &str = ".hither";

/// The profile's folder: `name` with `.hither` appended unless it ends so, or after the
/// program. `host` tells apart the profiles of a job that spans several hosts.
pub fn folder(name: Option<&Path>, program: &str, host: Option<&str>) -> PathBuf {
    let name = name.unwrap_or(Path::new(program));
    let mut text = name.as_os_str().to_string_lossy().into_owned();
    while text.len() > 1 && text.ends_with('/') {
        text.pop();
    }
    let stem = text.strip_suffix(SUFFIX).unwrap_or(&text);
    match host {
        Some(host) => format!("{stem}-{host}{SUFFIX}"),
        None => format!("{stem}{SUFFIX}"),
    }
    .into()
}

/// Makes sure that a profile can be written to `folder`.
///
/// # Errors
/// When the parent folder is missing or not writable, or something that is no profile
/// has that name.
pub fn check(folder: &Path) -> Result<()> {
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (shown, parent_shown) = (folder.display(), parent.display());
    if !parent.is_dir() {
        bail!("cannot write {shown}: there is no folder {parent_shown}; make it, or choose another place with -o");
    }
    if let Err(error) = access(parent, AccessFlags::W_OK | AccessFlags::X_OK) {
        bail!("cannot write {shown}: the folder {parent_shown} is not writable ({error}); choose another place with -o");
    }
    check_destination(folder)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let check = |name: Option<&str>, host, expected: &str| {
            assert_eq!(
                folder(name.map(Path::new), "app", host),
                Path::new(expected)
            );
        };
        check(None, None, "app.hither");
        check(Some("prof"), None, "prof.hither");
        check(Some("prof.hither"), None, "prof.hither");
        check(Some("dir/prof/"), None, "dir/prof.hither");
        check(Some("a.b"), None, "a.b.hither");
        check(Some("prof.hither/"), Some("n1"), "prof-n1.hither");
    }

    #[test]
    fn only_profiles_are_replaced() {
        let dir = tempfile::tempdir().expect("tempdir");
        let at = |name: &str| dir.path().join(name);
        assert!(check(&at("new.hither")).is_ok());
        assert!(check(&at("none/new.hither")).is_err());
        std::fs::create_dir(at("other.hither")).expect("mkdir");
        std::fs::write(at("other.hither").join("notes"), "x").expect("write");
        assert!(check(&at("other.hither")).is_err());
        std::fs::write(at("file.hither"), "x").expect("write");
        assert!(check(&at("file.hither")).is_err());
    }
}
