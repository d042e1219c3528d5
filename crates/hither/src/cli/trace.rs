//! `hither trace`: run a program under the tracer and keep a profile.
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use hither_profile::{Profile, RunEnd, TraceOptions, PAGE_SIZE};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

use super::progress::Progress;
use super::units::{self, show_bytes, show_count, show_duration};
use super::{output, say};
use crate::trace::child::{self, Signals};
use crate::trace::collector::{write, Collector, Config, Written};
use crate::trace::hooks;
use crate::trace::join::{self, Leader, Role};
use crate::trace::launch::{already_traced, Tracer};
use crate::trace::mpi;
use crate::trace::rank::{self, Half, Link};
use crate::trace::target;

const EXAMPLES: &str = "\
Examples:
  hither trace -- ./app --size 1000          profile in app.hither
  hither trace -o run1 -- ./app              profile in run1.hither
  hither trace --sample -- ./app             about 5 % of the time, much faster
  hither trace --from solve -- ./app         only from the first call of solve on
  mpirun -np 4 hither trace -o all -- ./app  all ranks in one profile
  hither trace -- mpirun -np 4 ./app         the same

The program's output, exit status and signals are its own: 128 + n for signal n, 127 when
it does not exist, 126 when it cannot be executed. 2: hither itself could not do it.";

/// Run a program, see who shares memory with whom, and keep that as a profile
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder for the profile, `.hither` is appended; by default the program's name here.
    /// A profile of that name is replaced once the new one is complete
    #[arg(short, long, value_name = "NAME")]
    output: Option<PathBuf>,

    /// Length of a time slice: 500us, 10ms, 1s
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = slice)]
    slice: u64,

    /// Bytes in a line, the unit that threads share: a power of two from 16 to 4096
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line)]
    line: u32,

    /// An access communicates with at most this many threads that used the line before:
    /// 1 or 2, with --oracle up to 8
    #[arg(long, value_name = "K", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=8))]
    sharers: u32,

    /// Trace only this share of the time and estimate the rest
    #[arg(long, value_name = "RATIO", num_args = 0..=1, default_missing_value = "0.05", value_parser = ratio)]
    sample: Option<f64>,

    /// Count nothing before this function is called the first time
    #[arg(long, value_name = "FUNCTION")]
    from: Option<String>,

    /// Count nothing after this function is called
    #[arg(long, value_name = "FUNCTION")]
    until: Option<String>,

    /// Count only in these functions and what they call; separate them by commas
    #[arg(long, value_name = "F,G,...", value_parser = functions)]
    only_functions: Option<Functions>,

    /// Do not trace the programs that this one starts
    #[arg(long)]
    no_follow: bool,

    /// Keep the profile about this small, by coarser slices where necessary
    #[arg(long, value_name = "SIZE", default_value = "80M", value_parser = max_size)]
    max_size: u64,

    /// Examine every single access: very slow, the reference for hither's own accuracy
    #[arg(long, conflicts_with = "sample")]
    oracle: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,

    /// The program and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    command: Vec<OsString>,
}

#[derive(Clone)]
struct Functions(Vec<String>);

fn slice(text: &str) -> Result<u64, String> {
    let slice = units::nanoseconds(text)?;
    match slice {
        100_000..=3_600_000_000_000 => Ok(slice),
        _ => Err("a slice lasts from 100us to 60min".to_string()),
    }
}

fn line(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(line) if line.is_power_of_two() && (16..=4096).contains(&line) => Ok(line),
        _ => Err("a line is a power of two from 16 to 4096 bytes long".to_string()),
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio > 0.0 && ratio <= 1.0 => Ok(ratio),
        Ok(_) => Err("the share is above 0 and at most 1".to_string()),
        Err(_) => {
            Err("write the share as 0.05, and -- between the options and the command".to_string())
        }
    }
}

fn max_size(text: &str) -> Result<u64, String> {
    match units::bytes(text)? {
        size if size >= 1 << 20 => Ok(size),
        _ => Err("a profile needs 1M at least".to_string()),
    }
}

/// Splits at commas, except those within the parentheses or angle brackets of C++ names.
fn functions(text: &str) -> Result<Functions, String> {
    let mut names = vec![String::new()];
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '(' | '<' => depth += 1,
            ')' | '>' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            names.push(String::new());
        } else if let Some(name) = names.last_mut() {
            name.push(c);
        }
    }
    let names: Vec<_> = names.iter().map(|n| n.trim().to_string()).collect();
    if names.iter().any(String::is_empty) {
        return Err("write the functions as f,g".to_string());
    }
    Ok(Functions(names))
}

impl Args {
    fn options(&self) -> Result<TraceOptions> {
        if self.sharers > 2 && !self.oracle {
            bail!(
                "--sharers {} needs --oracle; without it choose 1 or 2",
                self.sharers
            );
        }
        let only = self.only_functions.clone();
        Ok(TraceOptions {
            slice: self.slice,
            line: self.line,
            sharers: self.sharers,
            sample: self.sample,
            oracle: self.oracle,
            follow: !self.no_follow,
            from: self.from.clone(),
            until: self.until.clone(),
            only_functions: only.map(|f| f.0).unwrap_or_default(),
            max_size: self.max_size,
        })
    }
}

/// Traces the command; the result is its exit status.
///
/// # Errors
/// When the command cannot be traced or the profile not be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    if already_traced() {
        bail!("this hither is itself being traced by hither, which cannot be nested; leave one of the two out");
    }
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
    let (profile, status) = match role {
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
    let running = collector.start();
    let child = spawn(&attach, signals.before())?;
    let pid = Pid::from_raw(i32::try_from(child.id()).context("the program's process id")?);
    let end = child::wait(pid, &signals, || progress.show(|| running.live()));
    progress.end();
    let end = end?;
    let status = child::exit_status(&end);
    let profile = running.finish(end);
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
    let running = collector.start();
    leader.offer(&attach);
    if let Some(pid) = link.offer(&attach) {
        leader.count_in(pid);
    }
    let waited = leader.wait(|| progress.show(|| running.live()));
    progress.end();
    waited?;
    let profile = running.finish(link.end());
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
        bail!("{shown} is incomplete, the disk is full: {missing} did not fit; make room and trace again");
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
    say(&format!("next: hither stat {}", folder.display()));
}

fn show_end(end: &RunEnd) -> String {
    match end {
        RunEnd::Exited { status: 0 } => String::new(),
        RunEnd::Exited { status } => format!(", exit status {status}"),
        RunEnd::Signaled { signal } => {
            let name = Signal::try_from(*signal).map_or("", Signal::as_str);
            format!(", killed by signal {signal} {name}")
                .trim_end()
                .to_string()
        }
        RunEnd::Interrupted => ", interrupted".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_lists() {
        let check = |text, expected: Option<&[&str]>| {
            let got = functions(text).ok().map(|f| f.0);
            let expected = expected.map(|e| e.iter().map(ToString::to_string).collect());
            assert_eq!(got, expected);
        };
        check("f", Some(&["f"]));
        check("f, g", Some(&["f", "g"]));
        check("f(int, int),g<a,b>", Some(&["f(int, int)", "g<a,b>"]));
        check("f,,g", None);
        check("", None);
    }

    #[test]
    fn ends() {
        assert_eq!(show_end(&RunEnd::Exited { status: 0 }), "");
        assert_eq!(show_end(&RunEnd::Exited { status: 3 }), ", exit status 3");
        let killed = RunEnd::Signaled { signal: 11 };
        assert_eq!(show_end(&killed), ", killed by signal 11 SIGSEGV");
        assert_eq!(child::exit_status(&killed), 139);
        assert_eq!(child::exit_status(&RunEnd::Exited { status: 7 }), 7);
    }
}
