//! Our DynamoRIO client: `tracer/core` and `tracer/dynamorio`, one shared library.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{bail, Context, Result};

use crate::commands::{build_step, run};
use crate::dynamorio::DynamoRioBuild;
use crate::stamp::{create_folder, is_newer_than, BuildStamp};
use crate::workspace::Workspace;

const SOURCES: [&str; 2] = ["tracer/core", "tracer/dynamorio"];
const FLAGS: [&str; 15] = [
    "-std=gnu11",
    "-fPIC",
    "-O2",
    "-g",
    "-fvisibility=hidden",
    "-fstack-protector-strong",
    // Thread-local storage, where the guard is else, may be the program's. See client.c.
    "-mstack-protector-guard=global",
    "-U_FORTIFY_SOURCE",
    "-D_FORTIFY_SOURCE=3",
    "-Wall",
    "-Wextra",
    "-DLINUX",
    "-DX86_64",
    "-D_GNU_SOURCE",
    // Without it DynamoRIO's DR_EXPORT is empty and hidden hides the entry point too.
    "-DUSE_VISIBILITY_ATTRIBUTES",
];
/// For files named `*_lean.c`: the stub that calls them saves no vector registers. They run at every miss; the
/// few arrays on their stack are filled by loops that end at the arrays' own constants.
const LEAN: [&str; 2] = ["-mgeneral-regs-only", "-fno-stack-protector"];
const LINK: [&str; 3] = ["-shared", "-Wl,--no-undefined", "-Wl,-z,relro,-z,now"];
const FIX: &str = "install it: apt-get install build-essential";

struct CompileUnit {
    source: PathBuf,
    object: PathBuf,
    lean: bool,
}

pub fn build(ws: &Workspace, dynamorio: &DynamoRioBuild) -> Result<()> {
    let lib = ws.lib();
    create_folder(&lib)?;
    copy(&dynamorio.runtime(), &lib.join("libdynamorio.so"))?;
    copy(&dynamorio.license(), &lib.join("LICENSE-DynamoRIO"))?;
    let objects = ws.target.join("tracer");
    create_folder(&objects)?;
    let (units, headers) = compile_units(&ws.root, &objects)?;
    if units.is_empty() {
        bail!("there is no C file in {}", SOURCES.join(" or "));
    }
    let mut flags: Vec<String> = FLAGS.iter().map(|f| (*f).to_string()).collect();
    flags.push(format!("-I{}", ws.root.join("tracer").display()));
    // -isystem: warnings in DynamoRIO's headers are not ours to fix.
    for folder in dynamorio.includes() {
        flags.push(format!("-isystem{}", folder.display()));
    }
    let recipe = format!(
        "dynamorio-sys {}\n{flags:?} {LEAN:?} {LINK:?}\n{:?}\n",
        dynamorio.version,
        units.iter().map(|u| &u.source).collect::<Vec<_>>()
    );
    let stamp = BuildStamp::new(objects.join("recipe"), recipe);
    let same_recipe = stamp.is_current();
    let stale: Vec<&CompileUnit> = units
        .iter()
        .filter(|u| !same_recipe || !u.is_up_to_date(&headers))
        .collect();
    let library = lib.join("libhither_tracer.so");
    let mut inputs: Vec<PathBuf> = units.iter().map(|u| u.object.clone()).collect();
    inputs.extend(dynamorio.extensions());
    if stale.is_empty() && is_newer_than(&library, inputs.iter().map(PathBuf::as_path)) {
        return Ok(());
    }
    if !same_recipe {
        // Objects of two recipes must not mix if this build breaks off.
        stamp.clear();
    }
    let label = format!("tracer: {} of {} files compiled", stale.len(), units.len());
    build_step(&label, || compile(&stale, &flags))?;
    stamp.write()?;
    build_step("tracer: linked", || link(&library, &inputs))
}

impl CompileUnit {
    fn is_up_to_date(&self, headers: &[PathBuf]) -> bool {
        let inputs = headers.iter().chain([&self.source]);
        is_newer_than(&self.object, inputs.map(PathBuf::as_path))
    }

    fn compile(&self, flags: &[String]) -> Result<()> {
        let mut cc = Command::new("cc");
        cc.args(flags);
        if self.lean {
            cc.args(LEAN);
        }
        cc.arg("-c").arg("-o").arg(&self.object).arg(&self.source);
        run(&mut cc, FIX, true)
    }
}

/// Every C file with its object, and every header under `tracer`: there are few, so
/// any changed header recompiles all.
fn compile_units(root: &Path, objects: &Path) -> Result<(Vec<CompileUnit>, Vec<PathBuf>)> {
    let mut units = Vec::new();
    let mut headers = files(&root.join("tracer"), "h")?;
    for folder in SOURCES {
        let path = root.join(folder);
        if !path.is_dir() {
            continue;
        }
        headers.extend(files(&path, "h")?);
        for source in files(&path, "c")? {
            let stem = source.file_stem().unwrap_or_default().to_string_lossy();
            let stage = path.file_name().unwrap_or_default().to_string_lossy();
            units.push(CompileUnit {
                object: objects.join(format!("{stage}-{stem}.o")),
                lean: stem.ends_with("_lean"),
                source: source.clone(),
            });
        }
    }
    Ok((units, headers))
}

fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .collect();
    found.sort();
    Ok(found)
}

fn compile(units: &[&CompileUnit], flags: &[String]) -> Result<()> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    // The queue and the errors are all that the workers share.
    let queue = Mutex::new(units.iter());
    let errors = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| loop {
                let next = queue.lock().ok().and_then(|mut q| q.next());
                let Some(unit) = next else { break };
                if let (Err(e), Ok(mut all)) = (unit.compile(flags), errors.lock()) {
                    all.push(e);
                }
            });
        }
    });
    let errors = errors.into_inner().unwrap_or_default();
    if errors.is_empty() {
        return Ok(());
    }
    let text: Vec<String> = errors.iter().map(|e| format!("{e:#}")).collect();
    bail!("{}", text.join("\n"))
}

/// Links beside the library and renames, so that a running trace keeps its own copy.
fn link(library: &Path, inputs: &[PathBuf]) -> Result<()> {
    let fresh = library.with_extension("new");
    let mut cc = Command::new("cc");
    cc.args(LINK).arg("-o").arg(&fresh);
    cc.args(inputs).arg("-L").arg(library.with_file_name(""));
    cc.arg("-ldynamorio");
    run(&mut cc, FIX, true)?;
    rename(&fresh, library)
}

/// Copies a file unless the copy is up to date.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if is_newer_than(to, [from]) {
        return Ok(());
    }
    let fresh = to.with_extension("new");
    fs::copy(from, &fresh).with_context(|| format!("cannot write {}", fresh.display()))?;
    rename(&fresh, to)
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).with_context(|| format!("cannot write {}", to.display()))
}
