//! Running commands: quiet when they succeed, everything they said when they do not.
use std::process::Command;
use std::time::Instant;

use anyhow::{bail, Context, Result};

/// Runs one step of a build and prints one line about it.
pub fn build_step(what: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let start = Instant::now();
    work()?;
    println!("{what}: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// `fix` says what to do when the command is not there; `warnings` shows what it
/// printed although it succeeded.
pub fn run(command: &mut Command, fix: &str, warnings: bool) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command
        .output()
        .with_context(|| format!("cannot start {name}; {fix}"))?;
    if !out.status.success() {
        bail!(
            "{name} failed ({}): {command:?}\n{}{}",
            out.status,
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
    }
    if warnings {
        eprint!("{}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(())
}
