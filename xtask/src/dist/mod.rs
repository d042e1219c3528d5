//! Release packages, of what `make install` installs: `hither-VERSION-x86_64-linux.tar.gz`,
//! which can be unpacked anywhere, and a Debian package. Both without debug symbols.
//!
//!     make install DESTDIR=scratch -> strip -> tar
//!                                          '-> dpkg-deb
mod deb;
mod licences;
mod needs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{bail, Context, Result};

use crate::commands::{build_step, run};
use crate::stamp::create_folder;
use crate::workspace::Workspace;
use needs::Needs;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Of a release, unpacked.
const MAX_BYTES: u64 = 25_000_000;
const README: &str = include_str!("tarball.md");
const USAGE: &str = "\
Usage: cargo xtask dist [--hither FILE] [--to FOLDER]
  --hither FILE   program to package; its size is not checked [default: target/release/hither]
  --to FOLDER     where the packages go [default: target/dist]";

/// # Errors
/// When something cannot be built, or the result is larger than promised.
pub fn main(arguments: &[String]) -> Result<ExitCode> {
    let ws = Workspace::find()?;
    let mut hither = None;
    let mut to = ws.target.join("dist");
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match (argument.as_str(), rest.next()) {
            ("--hither", Some(file)) => hither = Some(PathBuf::from(file)),
            ("--to", Some(folder)) => to = PathBuf::from(folder),
            _ => bail!("`{argument}` is no option, or its value is missing\n{USAGE}"),
        }
    }
    let limit = hither.is_none().then_some(MAX_BYTES);
    let hither = hither.unwrap_or_else(|| ws.target.join("release/hither"));
    create_folder(&to)?;
    let to = fs::canonicalize(to).context("cannot find the folder for packages")?;
    build_step("tarball", || tarball(&ws, &hither, &to, limit))?;
    build_step("deb", || deb::build(&ws, &hither, &to))?;
    Ok(ExitCode::SUCCESS)
}

fn tarball(ws: &Workspace, hither: &Path, to: &Path, limit: Option<u64>) -> Result<()> {
    let name = format!("hither-{VERSION}-x86_64-linux");
    let scratch = scratch(to, "tarball")?;
    let tree = scratch.join(&name);
    install(ws, hither, &scratch, &[&format!("PREFIX=/{name}")])?;
    remove_list_of_folders(&tree)?;
    strip(&tree)?;
    add_licences(&tree)?;
    let size = size(&tree)?;
    if limit.is_some_and(|limit| size > limit) {
        bail!(
            "{name} has {size} bytes unpacked, more than {MAX_BYTES}; see what grew with du -a {}",
            tree.display()
        );
    }
    let readme = tree.join("README.md");
    fs::write(readme, readme_of(&Needs::of(&tree)?)).context("cannot write README.md")?;
    permit(&scratch)?;
    let mut tar = Command::new("tar");
    tar.args([
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--sort=name",
        "-czf",
    ]);
    tar.arg(to.join(name.clone() + ".tar.gz"))
        .arg("-C")
        .arg(&scratch)
        .arg(name);
    run(&mut tar, "install it: apt-get install tar", true)?;
    fs::remove_dir_all(&scratch).context("cannot remove what was packaged")
}

fn readme_of(needs: &Needs) -> String {
    let libraries: Vec<String> = needs.libraries.iter().map(|l| format!("- `{l}`")).collect();
    let readme = README
        .replace("@VERSION@", VERSION)
        .replace("@GLIBC@", &needs.glibc);
    readme.replace("@LIBRARIES@", &libraries.join("\n"))
}

/// An empty folder beside the packages.
fn scratch(to: &Path, name: &str) -> Result<PathBuf> {
    let scratch = to.join(format!(".{name}"));
    if scratch.exists() {
        fs::remove_dir_all(&scratch)
            .with_context(|| format!("cannot empty {}", scratch.display()))?;
    }
    create_folder(&scratch)?;
    Ok(scratch)
}

/// Into `scratch`, by the one recipe there is.
fn install(ws: &Workspace, hither: &Path, scratch: &Path, variables: &[&str]) -> Result<()> {
    let hither = fs::canonicalize(hither)
        .with_context(|| format!("cannot find {}; run make first", hither.display()))?;
    let scratch = fs::canonicalize(scratch).context("cannot find the scratch folder")?;
    let mut make = Command::new("make");
    make.args(["--no-print-directory", "install"])
        .args(variables);
    make.arg(format!("HITHER={}", hither.display()));
    make.arg(format!("DESTDIR={}", scratch.display()));
    // What `make dist` was called with is not for this one.
    make.current_dir(&ws.root)
        .env_remove("MAKEFLAGS")
        .env_remove("MAKEOVERRIDES");
    run(&mut make, "install it: apt-get install make", true)
}

/// The list that `make uninstall` goes by: a package manager, or `rm`, has no use for it.
fn remove_list_of_folders(prefix: &Path) -> Result<()> {
    let file = prefix.join("lib/hither/installed-folders");
    fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))
}

/// Beside those of `THIRD-PARTY.md`: what is linked in.
fn add_licences(prefix: &Path) -> Result<()> {
    let file = prefix.join("share/doc/hither/LICENSES-crates.txt");
    fs::write(&file, licences::of_crates()?)
        .with_context(|| format!("cannot write {}", file.display()))
}

fn strip(prefix: &Path) -> Result<()> {
    for file in programs(prefix)? {
        let mut strip = Command::new("strip");
        run(
            strip.arg(file),
            "install it: apt-get install binutils",
            true,
        )?;
    }
    Ok(())
}

/// The ELF files of an installation.
fn programs(prefix: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![prefix.join("bin/hither")];
    let libraries = prefix.join("lib/hither");
    for file in
        fs::read_dir(&libraries).with_context(|| format!("cannot list {}", libraries.display()))?
    {
        files.push(file?.path());
    }
    files.sort();
    Ok(files)
}

/// Whatever the umask: all may read.
fn permit(folder: &Path) -> Result<()> {
    let mut chmod = Command::new("chmod");
    chmod.args(["-R", "u=rwX,go=rX"]).arg(folder);
    run(&mut chmod, "install it: apt-get install coreutils", true)
}

/// Bytes of all files below.
fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?
    {
        let entry = entry?;
        let meta = entry.metadata()?;
        sum += if meta.is_dir() {
            size(&entry.path())?
        } else {
            meta.len()
        };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_says_what_is_needed() {
        let needs = Needs {
            glibc: "2.35".into(),
            libraries: ["liba.so.1".into(), "libb.so.2".into()].into(),
        };
        let readme = readme_of(&needs);
        assert!(readme.contains("glibc 2.35"), "{readme}");
        assert!(
            readme.contains("- `liba.so.1`\n- `libb.so.2`\n"),
            "{readme}"
        );
        assert!(
            readme.contains(VERSION) && !readme.contains('@'),
            "{readme}"
        );
    }

    #[test]
    fn sizes_are_those_of_all_files_below() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), "12345").unwrap();
        fs::write(folder.path().join("c"), "12").unwrap();
        assert_eq!(size(folder.path()).unwrap(), 7);
    }

    #[test]
    fn unknown_options_are_refused() {
        let refused = main(&["--prefix".into(), "/usr".into()]);
        assert!(refused.unwrap_err().to_string().contains("--prefix"));
        let refused = main(&["--to".into()]);
        assert!(refused.unwrap_err().to_string().contains("--to"));
    }
}
