//! Builds the agent of the sampler `move`: `tracer/agent/*.c` -> `agent.bin`, bare code that
//! hither carries with it and puts into other programs (`src/auto/sampler/agent/inject.rs`).
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Nothing in it may need a library, relocation or thread-local storage.
const COMPILE: &str = "-std=c11 -Os -ffreestanding -fpie -fvisibility=hidden \
    -fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables \
    -fno-tree-loop-distribute-patterns -mgeneral-regs-only -Wall -Wextra";
const LINK: &str = "-nostdlib -static -Wl,--no-dynamic-linker -Wl,--build-id=none";
const FIX: &str = "install Debian's build-essential";

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot build the agent in tracer/agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    let variable = |name| std::env::var_os(name).ok_or("run by cargo only");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../tracer/agent");
    let folder = folder.canonicalize()?;
    // A folder stands for all files in it, new ones too.
    println!("cargo::rerun-if-changed={}", folder.display());

    let mut gcc = Command::new("gcc");
    gcc.current_dir(&out).args(COMPILE.split_whitespace());
    run(gcc.arg("-c").args(sources(&folder)?))?;
    let code = link(&folder, &out, 0)?;
    if link(&folder, &out, 0x40_0000)? != code {
        return Err("its code depends on the address at which it lies".into());
    }
    fs::write(out.join("agent.bin"), code)?;
    Ok(())
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    paths.retain(|path| path.extension() == Some(OsStr::new("c")));
    paths.sort();
    Ok(paths)
}

/// The code, linked to lie at `address`.
fn link(folder: &Path, out: &Path, address: u64) -> Result<Vec<u8>, Box<dyn Error>> {
    let objects = sources(folder)?;
    let objects = objects.iter().filter_map(|source| source.file_stem());
    let objects = objects.map(|stem| Path::new(stem).with_extension("o"));
    let mut gcc = Command::new("gcc");
    gcc.current_dir(out).args(LINK.split_whitespace());
    gcc.arg(format!("-Wl,-T,{}", folder.join("agent.ld").display()));
    gcc.arg(format!("-Wl,--defsym=agent_address={address}"));
    run(gcc.args(["-o", "agent.elf"]).args(objects))?;
    let mut objcopy = Command::new("objcopy");
    objcopy.current_dir(out).args(["-O", "binary"]);
    run(objcopy.args(["agent.elf", "linked.bin"]))?;
    Ok(fs::read(out.join("linked.bin"))?)
}

/// Warnings are shown by cargo.
fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output();
    let done = done.map_err(|error| format!("cannot start {name} ({error}); {FIX}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        return Err(format!("{name} failed: {said}").into());
    }
    for line in said.lines() {
        println!("cargo::warning={line}");
    }
    Ok(())
}
