//! `hither trace`: run a program under the tracer and keep a profile.
mod args;

use std::path::Path;
use std::process::{Child, ExitCode};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use hither_profile::{write, Profile, Written, PAGE_SIZE};
use nix::sys::signal::SigSet;
use nix::unistd::Pid;

pub use args::Args;

use super::progress::Progress;
use super::style::shell_line;
use super::units::{show_bytes, show_count, show_duration, show_end};
use super::{output, say};
use crate::program::child::{self, Signals};
use crate::program::mpi;
use crate::program::target;
use crate::topology;
use crate::trace::collector::{Collector, Config};
use crate::trace::hooks;
use crate::trace::join::{self, Leader, Role};
use crate::trace::launch::{already_traced, Tracer};
use crate::trace::rank::{self, Half, Link};
use crate::trace::symbols::Symbols;

/// Traces the command; the result is its exit status.
///
/// # Errors
/// When the command cannot be traced or the profile not be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    if already_traced() {
        bail!("this hither is itself being traced by hither, which cannot be nested; leave one of the two out");
    }
    hither_sys::process::withstand_file_limit();
    let options = args.options()?;
    let target = target::resolve(&args.command, std::env::var_os("PATH").as_deref())?;
    let tracer = Tracer::find()?;
    let job = mpi::job(
        |name| std::env::var(name).ok(),
        nix::unistd::getppid().as_raw(),
    );
    let host = job.as_ref().filter(|job| job.spans_hosts()).map(|_| host());
    let folder = output::folder(args.output.as_deref(), &target.name, host.as_deref());
    let follow = options.follow;
    let role = job.filter(|job| job.local > 1);
    let role = role.map(|job| join::meet(&job, &folder)).transpose()?;
    if let Some(Role::Join(attach)) = &role {
        match tracer.become_target(&target, attach, follow)? {}
    }
    output::check(&folder)?;
    let config = Config {
        hooks: hooks::resolve(&options, &target)?,
        options,
        command: (args.command.iter())
            .map(|a| a.to_string_lossy().into_owned())
            .collect(),
        working_directory: working_directory()?,
    };
    let spawn = |attach: &str, mask: SigSet| tracer.spawn(&target, attach, follow, mask);
    let progress = Progress::new(args.quiet);
    let (mut profile, status) = match role {
        Some(Role::Lead(leader)) => match rank::split()? {
            Half::Hither(hither) => {
                // Only the collector listens, so that joiners notice if it dies.
                drop(leader);
                return Ok(ExitCode::from(hither.run(spawn)?));
            }
            // The other half returns the program's status.
            Half::Collector(link) => (trace_ranks(config, leader, link, progress)?, 0),
        },
        _ => trace_one(config, spawn, progress)?,
    };
    profile.meta.machine = topology::describe_machine();
    keep(&profile, &folder, args.quiet)?;
    Ok(ExitCode::from(status))
}

/// From before the first instruction of the target to after its last; with its status.
fn trace_one(
    config: Config,
    spawn: impl FnOnce(&str, SigSet) -> Result<Child>,
    mut progress: Progress,
) -> Result<(Profile, u8)> {
    let signals = Signals::hold()?;
    let collector = Collector::new(config).context("cannot set up the shared segment")?;
    let attach = collector.attach_path();
    let running = collector.start()?;
    let child = spawn(&attach, signals.before())?;
    let pid = Pid::from_raw(i32::try_from(child.id()).context("the program's process id")?);
    let end = child::wait(pid, &signals, || progress.show(|| running.live()));
    progress.end();
    let end = end?;
    let status = child::exit_status(&end);
    let profile = running.finish(end, &mut Symbols::new());
    Ok((profile.context("cannot put the profile together")?, status))
}

/// From before the first rank joins to after the last one's end.
fn trace_ranks(
    config: Config,
    mut leader: Leader,
    mut link: Link,
    mut progress: Progress,
) -> Result<Profile> {
    let collector = Collector::new(config).context("cannot set up the shared segment")?;
    let attach = collector.attach_path();
    let running = collector.start()?;
    leader.offer(&attach);
    if let Some(pid) = link.offer(&attach) {
        leader.count_in(pid);
    }
    let waited = leader.wait(|| progress.show(|| running.live()));
    progress.end();
    waited?;
    let profile = running.finish(link.end(), &mut Symbols::new());
    let mut profile = profile.context("cannot put the profile together")?;
    if leader.missing() > 0 {
        let limit = format!(
            "{} ranks on this host did not run under hither",
            leader.missing()
        );
        profile.meta.limits.push(limit);
    }
    Ok(profile)
}

/// Writes the profile and says so.
fn keep(profile: &Profile, folder: &Path, quiet: bool) -> Result<()> {
    let shown = folder.display();
    let written = write(profile, folder).with_context(|| format!("cannot write {shown}"))?;
    if !quiet {
        report(profile, &written, folder);
    }
    if !written.missing.is_empty() {
        let missing = written.missing.join(", ");
        bail!("{shown} is incomplete, it lacks {missing}; make room on the disk and trace again");
    }
    Ok(())
}

fn working_directory() -> Result<String> {
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    Ok(here.to_string_lossy().into_owned())
}

fn host() -> String {
    let system = nix::sys::utsname::uname();
    let name = system.map(|s| s.nodename().to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_string()
}

/// The line of result, what could not be seen, and what to type next.
fn report(profile: &Profile, written: &Written, folder: &Path) {
    let meta = &profile.meta;
    let accesses = profile
        .threads
        .iter()
        .map(hither_profile::Thread::accesses)
        .sum();
    let touched = profile.first_touch.len() as u64 * PAGE_SIZE;
    say(&format!(
        "{}{}, {} threads, {} accesses, {} touched -> {} ({})",
        show_duration(Duration::from_nanos(meta.duration)),
        show_end(&meta.end),
        profile.threads.len(),
        show_count(accesses),
        show_bytes(touched),
        folder.display(),
        show_bytes(written.bytes),
    ));
    for limit in &meta.limits {
        say(&format!("note: {limit}"));
    }
    let shown = folder.display().to_string();
    let words = ["hither", "report", "--text", &shown];
    say(&format!("next: {}", shell_line(words.into_iter())));
}
