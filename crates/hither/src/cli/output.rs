//! Where a profile or a page goes, checked before the work rather than after.
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use nix::unistd::{access, AccessFlags};

use hither_profile::{
    check_destination, check_output_path, open_regular_file, parent_of, OutputPlace,
};

const SUFFIX: &str = ".hither";

/// What stands for standard output in place of a file's name. A file of that name is `./-`.
pub fn is_stdout(name: &Path) -> bool {
    name == Path::new("-")
}

/// # Errors
/// For `-`: a profile is a folder.
pub fn refuse_stdout(name: Option<&Path>) -> Result<()> {
    if name.is_some_and(is_stdout) {
        bail!("a profile is a folder and cannot go to standard output; name it with -o NAME (-o ./- for one that is called -)");
    }
    Ok(())
}

/// The profile's folder: `name` with `.hither` appended unless it ends so, or after the
/// program. `host` tells apart the profiles of a job that spans several hosts.
pub fn profile_folder(name: Option<&Path>, program: &str, host: Option<&str>) -> PathBuf {
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
    has_folder(folder, "-o")?;
    is_writable(&parent_of(folder), folder, "-o")?;
    check_destination(folder)?;
    Ok(())
}

/// # Errors
/// When the folder of `path` is missing; `option` names another place.
pub fn has_folder(path: &Path, option: &str) -> Result<()> {
    let (shown, parent) = (path.display(), parent_of(path));
    if !parent.is_dir() {
        let parent = parent.display();
        bail!("cannot write {shown}: there is no folder {parent}; make it, or choose another place with {option}");
    }
    Ok(())
}

/// # Errors
/// When nothing can be made in `folder`, where `path` belongs.
pub fn is_writable(folder: &Path, path: &Path, option: &str) -> Result<()> {
    if let Err(error) = access(folder, AccessFlags::W_OK | AccessFlags::X_OK) {
        let (shown, folder) = (path.display(), folder.display());
        bail!("cannot write {shown}: the folder {folder} is not writable ({error}); choose another place with {option}");
    }
    Ok(())
}

/// What a page says of itself in its first lines, so that no other file is replaced.
const PAGE_MARK: &str = "<meta name=\"generator\" content=\"hither report\">";

/// The page's file: `name`, or after the profile; `-` is standard output.
///
/// # Errors
/// When the folder is missing, or something that is no page of ours has that name.
pub fn page_path(name: Option<&Path>, profile: &Path) -> Result<PathBuf> {
    let path = match name {
        Some(name) => name.to_owned(),
        None => {
            let stem = profile.file_stem().unwrap_or("report".as_ref());
            format!("{}.html", stem.to_string_lossy()).into()
        }
    };
    if is_stdout(&path) {
        return Ok(path);
    }
    let shown = path.display();
    has_folder(&path, "-o")?;
    check_output_path(&path).with_context(|| format!("cannot write {shown}"))?;
    if path.symlink_metadata().is_ok() && !is_page(&path) {
        bail!("{shown} exists and is no page of hither; it was left as it is: choose another name with -o, or move it away");
    }
    Ok(path)
}

fn is_page(path: &Path) -> bool {
    let mut head = Vec::new();
    let file = open_regular_file(path).ok();
    let read = file.and_then(|file| file.take(1024).read_to_end(&mut head).ok());
    read.is_some() && String::from_utf8_lossy(&head).contains(PAGE_MARK)
}

/// Writes a page under another name beside its own and renames it: there is never half of one.
///
/// # Errors
/// When there is no room, or the folder may not be written to.
pub fn write_page(html: &str, path: &Path) -> Result<()> {
    written(
        OutputPlace::new(path).and_then(|place| place.replace(html.as_bytes())),
        path,
    )
}

/// # Errors
/// When `path` was not written, which `done` says.
pub fn written(done: std::io::Result<()>, path: &Path) -> Result<()> {
    done.with_context(|| {
        format!(
            "cannot write {}; choose another place with -o",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let check = |name: Option<&str>, host, expected: &str| {
            assert_eq!(
                profile_folder(name.map(Path::new), "app", host),
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
