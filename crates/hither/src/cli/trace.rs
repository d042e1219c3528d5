//! `hither trace`: run a program under the tracer and keep a profile.
mod args;

use std::path::Path;
use std::process::{Child, ExitCode};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use hither_profile::BurstWriter;
use hither_profile::{
    write, write_after_checkpoint, write_with_bursts, Profile, WriteOutcome, PAGE_SIZE,
};
use nix::sys::signal::SigSet;
use nix::unistd::Pid;

pub use args::Args;

use super::profile_completion::ProfileCompletion;
use super::progress::ProgressLine;
use super::style::shell_line;
use super::units::{plural, show_bytes, show_count, show_duration, show_end};
use super::{output, print_stderr};
use crate::program::child::{self, HeldSignals};
use crate::program::mpi;
use crate::program::target;
use crate::trace::collector::{
    CheckpointCompletion, CheckpointPlan, CollectedRun, Collector, CollectorConfig, ProfileBuild,
};
use crate::trace::hooks;
use crate::trace::launch::{refuse_nested, DynamoRioTracer};
use crate::trace::leader_split::{self, HalfLink, LeaderHalf};
use crate::trace::rank_join::{self, RankLeader, RankRole};
use crate::trace::symbolizer_process::SymbolizerProcess;
use crate::trace::unsupported;

/// Traces the command; the result is its exit status.
///
/// # Errors
/// When the command cannot be traced or the profile not be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    refuse_nested()?;
    hither_sys::process::lift_file_size_limit();
    output::refuse_stdout(args.output.as_deref())?;
    let options = args.options()?;
    let target = target::resolve_target(&args.command, std::env::var_os("PATH").as_deref())?;
    unsupported::check(&target)?;
    let tracer = DynamoRioTracer::locate_installed()?;
    let job = mpi::mpi_job(
        |name| std::env::var(name).ok(),
        nix::unistd::getppid().as_raw(),
    );
    let host = job
        .as_ref()
        .filter(|job| job.spans_hosts())
        .map(|_| host_name());
    let folder = output::profile_folder(args.output.as_deref(), &target.name, host.as_deref());
    let follow = options.follow;
    let role = job.filter(|job| job.local > 1);
    let role = role
        .map(|job| rank_join::elect_leader(&job, &folder))
        .transpose()?;
    if let Some(RankRole::Join(attach)) = &role {
        match tracer.become_target(&target, attach, follow)? {}
    }
    output::check(&folder)?;
    // The program runs as our user, so it may read what we may.
    let mut symbols = SymbolizerProcess::start(None)?;
    let config = CollectorConfig {
        hooks: hooks::resolve_hooks(&options, &target, &mut symbols)?,
        options,
        command: (args.command.iter())
            .map(|a| a.to_string_lossy().into_owned())
            .collect(),
        working_directory: working_directory()?,
    };
    let spawn = |attach: &str, mask: SigSet| tracer.spawn(&target, attach, follow, mask);
    let progress = ProgressLine::new(args.quiet);
    let completion = ProfileCompletion {
        source: !args.no_source,
        redact: args.redact,
    };
    let (mut collected, status) = match role {
        Some(RankRole::Lead(leader)) => {
            // It ends with its parent, and the collector outlives the launcher.
            drop(symbols);
            match leader_split::split_leader()? {
                LeaderHalf::Launcher(hither) => {
                    // Only the collector listens, so that joiners notice if it dies.
                    drop(leader);
                    return Ok(ExitCode::from(hither.run(spawn)?));
                }
                // The other half returns the program's status.
                LeaderHalf::Collector(link) => {
                    symbols = SymbolizerProcess::start(None)?;
                    let ranks = trace_ranks(
                        config,
                        &folder,
                        completion,
                        leader,
                        link,
                        progress,
                        &mut symbols,
                    );
                    (ranks?, 0)
                }
            }
        }
        _ => trace_one(config, &folder, completion, spawn, progress, &mut symbols)?,
    };
    completion.complete(&mut collected.profile, &mut symbols);
    write_profile(collected, &folder, args.quiet)?;
    Ok(ExitCode::from(status))
}

impl CheckpointCompletion for ProfileCompletion {
    fn profile(&self, build: ProfileBuild) -> Result<Profile> {
        let mut symbols = SymbolizerProcess::start(None)?;
        let mut profile = build(&mut symbols);
        self.complete(&mut profile, &mut symbols);
        Ok(profile)
    }
}

fn collector(
    config: CollectorConfig,
    folder: &Path,
    completion: ProfileCompletion,
) -> Result<Collector> {
    let recorded = config.options.bursts.map(|_| BurstWriter::create(folder));
    let bursts = recorded.transpose().context("cannot record accesses")?;
    let collector = Collector::new(config).context("cannot set up the shared segment")?;
    Ok(collector
        .with_bursts(bursts)
        .with_checkpoints(CheckpointPlan {
            folder: folder.to_owned(),
            completion: Box::new(completion),
        }))
}

/// From before the first instruction of the target to after its last; with its status.
fn trace_one(
    config: CollectorConfig,
    folder: &Path,
    completion: ProfileCompletion,
    spawn: impl FnOnce(&str, SigSet) -> Result<Child>,
    mut progress: ProgressLine,
    symbols: &mut SymbolizerProcess,
) -> Result<(CollectedRun, u8)> {
    let signals = HeldSignals::hold()?;
    let collector = collector(config, folder, completion)?;
    let attach = collector.attach_path();
    let running = collector.start()?;
    let child = spawn(&attach, signals.before())?;
    let pid = Pid::from_raw(i32::try_from(child.id()).context("the program's process id")?);
    let end = child::wait_for_child(pid, &signals, || progress.show(|| running.live()));
    progress.end();
    let leave_names = symbols.stopper()?;
    signals.let_go(move || {
        print_stderr("leaving names out; interrupt again to end without a profile");
        leave_names();
    });
    let end = end?;
    let status = child::exit_status(&end);
    let collected = running.finish(end, symbols);
    Ok((
        collected.context("cannot put the profile together")?,
        status,
    ))
}

/// From before the first rank joins to after the last one's end.
fn trace_ranks(
    config: CollectorConfig,
    folder: &Path,
    completion: ProfileCompletion,
    mut leader: RankLeader,
    mut link: HalfLink,
    mut progress: ProgressLine,
    symbols: &mut SymbolizerProcess,
) -> Result<CollectedRun> {
    let collector = collector(config, folder, completion)?;
    let attach = collector.attach_path();
    let running = collector.start()?;
    leader.set_attach_path(&attach);
    if let Some(pid) = link.exchange_start(&attach) {
        leader.add_rank(pid);
    }
    let waited = leader.wait_for_ranks(|| progress.show(|| running.live()));
    progress.end();
    waited?;
    let collected = running.finish(link.receive_run_end(), symbols);
    let mut collected = collected.context("cannot put the profile together")?;
    if leader.ranks_missing() > 0 {
        let limit = format!(
            "{} ranks on this host did not run under hither",
            leader.ranks_missing()
        );
        collected.profile.meta.limits.push(limit);
    }
    Ok(collected)
}

/// Writes the profile and says so.
fn write_profile(collected: CollectedRun, folder: &Path, quiet: bool) -> Result<()> {
    let shown = folder.display();
    let mut profile = collected.profile;
    let written = match collected.bursts {
        bursts if collected.has_checkpoint => write_after_checkpoint(&mut profile, folder, bursts),
        Some(bursts) => write_with_bursts(&mut profile, folder, bursts),
        None => write(&profile, folder),
    };
    let written = written.with_context(|| format!("cannot write {shown}"))?;
    if !quiet {
        report(&profile, &written, folder);
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

fn host_name() -> String {
    let system = nix::sys::utsname::uname();
    let name = system.map(|s| s.nodename().to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_string()
}

/// The line of result, what could not be seen, and what to type next.
fn report(profile: &Profile, written: &WriteOutcome, folder: &Path) {
    let meta = &profile.meta;
    let accesses = profile
        .threads
        .iter()
        .map(hither_profile::Thread::accesses)
        .sum();
    let touched = profile.first_touch.single_pages() * PAGE_SIZE;
    print_stderr(&format!(
        "{}{}, {}, {} accesses, {} touched -> {} ({})",
        show_duration(Duration::from_nanos(meta.duration)),
        show_end(&meta.end),
        plural(profile.threads.len() as u64, "thread", "threads"),
        show_count(accesses),
        show_bytes(touched),
        folder.display(),
        show_bytes(written.bytes),
    ));
    for limit in &meta.limits {
        print_stderr(&format!("note: {limit}"));
    }
    let shown = folder.display().to_string();
    let recorded = meta.bursts.as_ref().filter(|b| b.accesses > 0);
    if let Some(bursts) = recorded {
        print_stderr(&format!(
            "recorded {} accesses in {}, {}",
            show_count(bursts.accesses),
            plural(bursts.windows, "window", "windows"),
            show_bytes(bursts.bytes),
        ));
    }
    let words = match recorded {
        Some(_) => vec!["hither", "sim", &shown],
        None => vec!["hither", "report", "--text", &shown],
    };
    print_stderr(&format!("next: {}", shell_line(words.into_iter())));
}
