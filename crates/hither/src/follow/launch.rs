//! The user's program as a child of hither.
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};
use hither_sys::process;
use nix::unistd::Pid;

use super::job_control::BlockedSignals;
use crate::program::target::TargetProgram;
use crate::program::withheld_environment;

/// The program, its arguments and environment, signals as they were before us.
pub fn build_command(
    target: &TargetProgram,
    environment: &[(OsString, OsString)],
    signals: &BlockedSignals,
) -> Command {
    withheld_environment::give_back();
    // In our own environment, since `Command` would sort one that it changes.
    for (name, value) in environment {
        std::env::set_var(name, value);
    }
    let mut command = Command::new(&target.executable);
    if let Some((name, arguments)) = target.argv.split_first() {
        command.arg0(name).args(arguments);
    }
    process::restore_signals_and_limits(&mut command, signals.previous_mask());
    process::close_streams(&mut command);
    command
}

/// # Errors
/// When the kernel does not start it.
pub fn spawn_target(target: &TargetProgram, mut command: Command) -> Result<Pid> {
    let child = command.spawn();
    withheld_environment::withhold_again();
    let child = child.with_context(|| format!("cannot start {}", target.executable.display()))?;
    Ok(Pid::from_raw(
        i32::try_from(child.id()).context("the program's process id")?,
    ))
}
