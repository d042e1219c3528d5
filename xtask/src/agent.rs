//! Builds the agent of the sampler `move`: `tracer/agent/*.c` -> `tracer/agent/agent.bin`,
//! bare code that hither carries with it. It is committed, so that only who changes it needs
//! a C compiler for it; `agent.made` beside it says what it was made of and by which compiler,
//! and a test that this is still so.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::step::{run, step};
use crate::workspace::Workspace;

const SOURCES: &[&str] = &[
    "agent.c",
    "events.c",
    "fork.c",
    "orders.c",
    "pages.c",
    "regions.c",
];
const HEADERS: &[&str] = &["agent.h", "kernel.h", "orders.h", "agent.ld"];
/// Nothing in it may need a library, relocation or thread-local storage.
const FLAGS: &str = "-std=c11 -Os -ffreestanding -fpie -fvisibility=hidden \
    -fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables \
    -fno-tree-loop-distribute-patterns -mgeneral-regs-only -Wall -Wextra -nostdlib -static \
    -Wl,--no-dynamic-linker -Wl,--build-id=none -Wl,-T,agent.ld";
const FIX: &str = "install Debian's gcc and binutils";

pub fn build(ws: &Workspace) -> Result<()> {
    let folder = folder(ws);
    step("agent", || {
        compile(&folder, &ws.target, &folder.join("agent.bin"))?;
        let made = made(&folder)?;
        fs::write(folder.join("agent.made"), made).context("cannot write agent.made")
    })
}

fn folder(ws: &Workspace) -> PathBuf {
    ws.root.join("tracer/agent")
}

/// By way of a file in `scratch`.
fn compile(folder: &Path, scratch: &Path, to: &Path) -> Result<()> {
    let elf = scratch.join("agent.elf");
    let mut gcc = Command::new("gcc");
    gcc.args(FLAGS.split_whitespace()).arg("-o").arg(&elf);
    run(gcc.args(SOURCES).current_dir(folder), FIX, true)?;
    let mut objcopy = Command::new("objcopy");
    objcopy.args(["-O", "binary"]).arg(&elf).arg(to);
    run(&mut objcopy, FIX, true)
}

/// The compiler, then a sum (FNV-1a) over the flags and over each file.
fn made(folder: &Path) -> Result<String> {
    let gcc = Command::new("gcc").arg("--version").output();
    let gcc = gcc
        .with_context(|| format!("cannot start gcc; {FIX}"))?
        .stdout;
    let gcc = String::from_utf8_lossy(&gcc);
    let mut lines = vec![gcc.lines().next().unwrap_or_default().to_owned()];
    lines.push(format!("{:016x} flags", sum(FLAGS.as_bytes())));
    for name in SOURCES.iter().chain(HEADERS) {
        let text = fs::read(folder.join(name)).with_context(|| format!("cannot read {name}"))?;
        lines.push(format!("{:016x} {name}", sum(&text)));
    }
    Ok(lines.join("\n") + "\n")
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_fnv() {
        // From the tables of the function's authors.
        assert_eq!(sum(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(sum(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(sum(b"foobar"), 0x8594_4171_f739_67e8);
    }

    /// Other compilers make other bytes of the same: then it is the sources that are compared.
    #[test]
    fn what_is_committed_is_what_the_sources_make() {
        let ws = Workspace::find().unwrap();
        let folder = folder(&ws);
        let read = |path: PathBuf| fs::read(path).unwrap();
        let expected = String::from_utf8(read(folder.join("agent.made"))).unwrap();
        let found = made(&folder).unwrap();
        let (before, now) = (expected.split_once('\n'), found.split_once('\n'));
        let ((maker, before), (gcc, now)) = (before.unwrap(), now.unwrap());
        assert_eq!(
            before, now,
            "run `cargo xtask agent` and commit what it made"
        );
        if maker != gcc {
            println!("not built again: made by {maker}, here is {gcc}");
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let again = scratch.path().join("agent.bin");
        compile(&folder, scratch.path(), &again).unwrap();
        let same = read(again) == read(folder.join("agent.bin"));
        assert!(same, "run `cargo xtask agent` and commit what it made");
    }

    #[test]
    fn every_source_is_built() {
        let ws = Workspace::find().unwrap();
        let all = fs::read_dir(folder(&ws)).unwrap();
        let names = all.map(|f| f.unwrap().file_name().into_string().unwrap());
        for name in names.filter(|name| !name.starts_with("agent.bin") && name != "agent.made") {
            let known = SOURCES.iter().chain(HEADERS).any(|known| *known == name);
            assert!(known, "{name} is in no list of xtask/src/agent.rs");
        }
    }
}
