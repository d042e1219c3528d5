//! Builds the agent of the sampler `move`: `tracer/agent/*.c` -> `tracer/agent/agent.bin`,
//! bare code that hither carries with it. It is committed, so that only who changes it needs
//! a C compiler for it.
use std::process::Command;

use anyhow::Result;

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
/// Nothing in it may need a library, relocation or thread-local storage.
const FLAGS: &str = "-std=c11 -Os -ffreestanding -fpie -fvisibility=hidden \
    -fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables \
    -fno-tree-loop-distribute-patterns -mgeneral-regs-only -Wall -Wextra -nostdlib -static \
    -Wl,--no-dynamic-linker -Wl,--build-id=none -Wl,-T,agent.ld";
const FIX: &str = "install Debian's gcc and binutils";

pub fn build(ws: &Workspace) -> Result<()> {
    let folder = ws.root.join("tracer/agent");
    let elf = ws.root.join("target/agent.elf");
    step("agent", || {
        let mut gcc = Command::new("gcc");
        gcc.args(FLAGS.split_whitespace()).arg("-o").arg(&elf);
        run(gcc.args(SOURCES).current_dir(&folder), FIX, true)?;
        let mut objcopy = Command::new("objcopy");
        objcopy.args(["-O", "binary"]).arg(&elf).arg("agent.bin");
        run(objcopy.current_dir(&folder), FIX, true)
    })
}
