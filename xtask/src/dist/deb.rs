//! The Debian package: the tree of `make install PREFIX=/usr`, with what Debian wants to have
//! elsewhere or compressed, and a control file. dpkg-shlibdeps says what it depends on.
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::{
    add_licences, install, permit, programs, remove_list_of_folders, scratch, size, strip, VERSION,
};
use crate::commands::run;
use crate::workspace::Workspace;

const FIX: &str = "install it: apt-get install dpkg-dev";
const ABOUT: &str = "
 hither runs an unmodified parallel program, finds out which threads share data
 with each other and which pages each thread uses, and says whether placing
 threads or data on a NUMA machine would help. It computes such a placement,
 predicts what it brings, and runs the program so placed. It needs no root, no
 hardware counters and no recompilation.
";

/// # Errors
/// When a tool of dpkg is missing or fails.
pub fn build(ws: &Workspace, hither: &Path, to: &Path) -> Result<()> {
    let scratch = scratch(to, "deb")?;
    let tree = scratch.join("tree");
    let zsh = "ZSH_DIR=$(SHARE)/zsh/vendor-completions";
    fs::create_dir(&tree).context("cannot make the package's folder")?;
    install(ws, hither, &tree, &["PREFIX=/usr", zsh])?;
    remove_list_of_folders(&tree.join("usr"))?;
    strip(&tree.join("usr"))?;
    add_licences(&tree.join("usr"))?;
    document(&tree.join("usr/share"))?;
    permit(&tree)?;
    let control = control(
        &ws.description("hither")?,
        &depends(&scratch)?,
        size(&tree)?,
    );
    let folder = tree.join("DEBIAN");
    fs::create_dir(&folder).context("cannot make DEBIAN")?;
    fs::write(folder.join("control"), control).context("cannot write the control file")?;
    permit(&folder)?;
    let mut deb = Command::new("dpkg-deb");
    deb.args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&tree);
    run(
        deb.arg(to.join(format!("hither_{VERSION}_amd64.deb"))),
        FIX,
        true,
    )?;
    fs::remove_dir_all(&scratch).context("cannot remove what was packaged")
}

/// Man pages and the changelog compressed, and a file `copyright`, as Debian's policy says.
fn document(share: &Path) -> Result<()> {
    let doc = share.join("doc/hither");
    let text = |name: &str| {
        let file = doc.join(name);
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    };
    let copyright = format!(
        "hither is under the MIT licence or the Apache License 2.0, at your choice. The latter is\n\
         in /usr/share/common-licenses/Apache-2.0 and LICENSE-APACHE, the former is:\n\n{}\n\
         What else is in this package:\n\n{}\n\
         DynamoRIO's licences are in LICENSE-DynamoRIO, those of the crates in LICENSES-crates.txt.\n",
        text("LICENSE-MIT")?,
        text("THIRD-PARTY.md")?
    );
    fs::write(doc.join("copyright"), copyright).context("cannot write copyright")?;
    let mut gzip = Command::new("gzip");
    gzip.args(["-9", "-n"]).arg(doc.join("CHANGELOG.md"));
    let man = share.join("man/man1");
    for page in fs::read_dir(&man).with_context(|| format!("cannot list {}", man.display()))? {
        gzip.arg(page?.path());
    }
    run(&mut gzip, "install it: apt-get install gzip", true)?;
    fs::rename(doc.join("CHANGELOG.md.gz"), doc.join("changelog.gz"))
        .context("cannot rename the changelog")
}

/// As Debian's tool finds it in the programs of `scratch/tree`.
fn depends(scratch: &Path) -> Result<String> {
    // It reads this file, and wants it to be there.
    let source = scratch.join("debian");
    fs::create_dir_all(&source).context("cannot make the folder debian")?;
    let control = "Source: hither\n\nPackage: hither\nArchitecture: amd64\n";
    fs::write(source.join("control"), control).context("cannot write debian/control")?;
    let mut shlibdeps = Command::new("dpkg-shlibdeps");
    shlibdeps.args(["-O", "--ignore-missing-info", "-ltree/usr/lib/hither"]);
    let programs = programs(&scratch.join("tree/usr"))?;
    let out = shlibdeps.args(programs).current_dir(scratch).output();
    let out = out.with_context(|| format!("cannot start dpkg-shlibdeps; {FIX}"))?;
    if !out.status.success() {
        bail!(
            "dpkg-shlibdeps failed:\n{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let depends = text.trim().strip_prefix("shlibs:Depends=");
    depends
        .map(str::to_string)
        .with_context(|| format!("dpkg-shlibdeps printed no dependencies: {text}"))
}

fn control(description: &str, depends: &str, bytes: u64) -> String {
    format!(
        "Package: hither\nVersion: {VERSION}\nArchitecture: amd64\nSection: devel\n\
         Priority: optional\nMaintainer: The hither developers\nInstalled-Size: {}\n\
         Depends: {depends}\nDescription: {description}{ABOUT}",
        bytes.div_ceil(1024)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_file_has_a_field_a_line() {
        let text = control("places threads", "libc6 (>= 2.35)", 2049);
        assert!(
            text.contains("\nInstalled-Size: 3\nDepends: libc6 (>= 2.35)\n"),
            "{text}"
        );
        assert!(
            text.contains("\nDescription: places threads\n hither runs"),
            "{text}"
        );
        let continued = |line: &str| line.starts_with(' ') || line.contains(": ");
        assert!(
            text.lines().all(continued) && text.ends_with('\n'),
            "{text}"
        );
    }
}
