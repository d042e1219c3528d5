//! The processes that `hither auto --pid` is about to join: shown first, and not joined unasked where they are
//! hardly meant.
use std::fs;
use std::os::unix::fs::MetadataExt;

use anyhow::{bail, Result};
use hither_sys::Pid;
use nix::unistd::{geteuid, Uid, User};

use crate::auto::{self, ProcessTree};
use crate::cli::print_stderr;
use crate::follow::procfs;

/// Processes shown.
const MOST_SHOWN: usize = 12;
/// Of a command line.
const MOST_CHARACTERS: usize = 60;
/// What the kernel says of a process that no login has led to.
const NO_LOGIN: u32 = u32::MAX;

/// Shows the tree of a process.
///
/// # Errors
/// When it cannot be joined, and, unless `yes`, when it is the first process or another user's.
pub fn confirm(pid: Pid, yes: bool, quiet: bool) -> Result<()> {
    auto::check_joinable(pid)?;
    let tree = auto::process_tree(pid);
    if let Some(why) = reason_to_ask(pid).filter(|_| !yes) {
        let number = tree.len();
        bail!("process {pid} {why}: say --yes to join it and those that come from it, {number} in all");
    }
    if !quiet {
        for line in shown(&tree) {
            print_stderr(&line);
        }
    }
    Ok(())
}

/// Why a process may not be the one that is meant.
fn reason_to_ask(pid: Pid) -> Option<String> {
    if pid == 1 {
        return Some("is the one from which all others come".to_owned());
    }
    let owner = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    let ours = [Some(geteuid().as_raw()), login_user()];
    (!ours.contains(&Some(owner))).then(|| format!("belongs to {}", user_name(owner)))
}

/// Who logged in, also where sudo has made them root since.
fn login_user() -> Option<u32> {
    let user = fs::read_to_string("/proc/self/loginuid").ok()?;
    user.trim().parse().ok().filter(|user| *user != NO_LOGIN)
}

fn user_name(user: u32) -> String {
    let known = User::from_uid(Uid::from_raw(user)).ok().flatten();
    known.map_or_else(|| format!("user {user}"), |known| known.name)
}

/// `joins 2 processes:`, and a line for each, deeper where it comes from another.
fn shown(tree: &ProcessTree) -> Vec<String> {
    let mut lines = vec![match tree.len() {
        1 => "joins 1 process:".to_owned(),
        number => format!("joins {number} processes:"),
    }];
    for &(pid, depth) in tree.iter().take(MOST_SHOWN) {
        let command = procfs::command_line(pid).join(" ");
        let command: String = command.chars().take(MOST_CHARACTERS).collect();
        lines.push(format!("{}{pid} {command}", "  ".repeat(depth + 1)));
    }
    if tree.len() > MOST_SHOWN {
        lines.push(format!("  and {} more", tree.len() - MOST_SHOWN));
    }
    lines
}
