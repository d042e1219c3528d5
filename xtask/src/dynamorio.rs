//! DynamoRIO, built from the source that the crate `dynamorio-sys` carries, with the patches of
//! `tracer/patches`. The crate's own build script is not used: it builds far more than we link and
//! ships no headers.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::commands::{build_step, run};
use crate::stamp::{create_folder, BuildStamp};
use crate::workspace::Workspace;

const TARGETS: [&str; 8] = [
    "dynamorio",
    "drx_static",
    "drutil_static",
    "drreg_static",
    "drmgr_static",
    "drwrap_static",
    "drbbdup_static",
    "drcontainers",
];
const OPTIONS: [&str; 7] = [
    "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
    "-DBUILD_CLIENTS=NO",
    "-DBUILD_DOCS=NO",
    "-DBUILD_SAMPLES=NO",
    "-DBUILD_TESTS=NO",
    "-DBUILD_TOOLS=NO",
    // Else it answers RUNNING_ON_VALGRIND, and programs that ask behave otherwise.
    "-DANNOTATIONS=NO",
];
const FIX: &str = "install it: apt-get install cmake build-essential";

/// A finished DynamoRIO build.
pub struct DynamoRioBuild {
    pub version: String,
    source: PathBuf,
    folder: PathBuf,
}

impl DynamoRioBuild {
    pub fn includes(&self) -> [PathBuf; 2] {
        [self.folder.join("include"), self.folder.join("ext/include")]
    }

    /// Its licences: they have to go where its binaries go.
    pub fn license(&self) -> PathBuf {
        self.source.join("License.txt")
    }

    pub fn runtime(&self) -> PathBuf {
        self.folder.join("lib64/release/libdynamorio.so")
    }

    /// The extensions in the order in which the linker needs them: users first.
    pub fn extensions(&self) -> Vec<PathBuf> {
        let folder = self.folder.join("ext/lib64/release");
        [
            "libdrwrap_static.a",
            "libdrx_static.a",
            "libdrutil_static.a",
            "libdrbbdup_static.a",
            "libdrreg_static.a",
            "libdrmgr_static.a",
            "libdrcontainers.a",
        ]
        .iter()
        .map(|name| folder.join(name))
        .collect()
    }
}

pub fn build(ws: &Workspace) -> Result<DynamoRioBuild> {
    let (package, version) = ws.package("dynamorio-sys")?;
    let published = package.join("dynamorio");
    let source = ws.target.join("dynamorio-source");
    let folder = ws.target.join("dynamorio");
    let patches = patches(ws)?;
    let recipe = format!(
        "dynamorio-sys {version}\n{} -> {}\n{OPTIONS:?}\n{TARGETS:?}\n{patches:?}\n",
        published.display(),
        folder.display()
    );
    let configured = BuildStamp::new(folder.join("hither-configured"), recipe.clone());
    let built = BuildStamp::new(folder.join("hither-built"), recipe);
    let dynamorio = DynamoRioBuild {
        version,
        source: source.clone(),
        folder: folder.clone(),
    };
    if built.is_current() && dynamorio.runtime().exists() {
        return Ok(dynamorio);
    }
    if !configured.is_current() {
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        create_folder(&folder)?;
        build_step("DynamoRIO: patched", || {
            patch(&published, &source, &patches)
        })?;
        build_step("DynamoRIO: configured", || {
            let mut cmake = Command::new("cmake");
            cmake.arg("-S").arg(&source).arg("-B").arg(&folder);
            // An inherited CFLAGS or LDFLAGS breaks its freestanding core.
            for variable in ["CFLAGS", "CXXFLAGS", "LDFLAGS"] {
                cmake.env_remove(variable);
            }
            run_quietly(cmake.args(OPTIONS))
        })?;
        configured.write()?;
    }
    build_step("DynamoRIO: built", || {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let mut cmake = Command::new("cmake");
        cmake.arg("--build").arg(&folder);
        cmake.arg("--parallel").arg(jobs.to_string());
        run_quietly(cmake.arg("--target").args(TARGETS))
    })?;
    built.write()?;
    Ok(dynamorio)
}

/// The patches by name, with their texts.
fn patches(ws: &Workspace) -> Result<BTreeMap<PathBuf, String>> {
    let folder = ws.root.join("tracer/patches");
    let read = |file: std::io::Result<fs::DirEntry>| {
        let path = file?.path();
        let text = fs::read_to_string(&path)?;
        Ok((path, text))
    };
    let files = fs::read_dir(&folder).and_then(|all| all.map(read).collect());
    files.with_context(|| format!("cannot read {}", folder.display()))
}

/// Makes `source` what was published, with the patches.
fn patch(published: &Path, source: &Path, patches: &BTreeMap<PathBuf, String>) -> Result<()> {
    if source.exists() {
        fs::remove_dir_all(source)
            .with_context(|| format!("cannot remove {}", source.display()))?;
    }
    run_quietly(Command::new("cp").arg("-r").arg(published).arg(source))?;
    for file in patches.keys() {
        let mut patch = Command::new("patch");
        patch.args(["--strip=1", "--fuzz=0", "--input"]).arg(file);
        run_quietly(patch.arg("--directory").arg(source))?;
    }
    Ok(())
}

/// DynamoRIO's own warnings are not ours to show.
fn run_quietly(command: &mut Command) -> Result<()> {
    run(command, FIX, false)
}
