//! Placeholder for the collector: replaced when it lands. It collects nothing, but has
//! the interface that the command line is written against.
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use super::naming::Naming;
use anyhow::{Context, Result};
use hither_profile::{Meta, Profile, RunEnd, TraceOptions, FORMAT_VERSION};

/// What to trace.
pub struct Config {
    pub options: TraceOptions,
    pub hooks: Vec<Hook>,
    pub command: Vec<String>,
    pub working_directory: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    From,
    Until,
    Only,
}

/// A function that switches tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    pub kind: HookKind,
    /// From the module's load base.
    pub offset: u64,
    pub dev: u64,
    pub ino: u64,
}

pub struct Collector {
    config: Config,
    segment: OwnedFd,
}

pub struct Running {
    config: Config,
    _segment: OwnedFd,
    started: Instant,
}

/// How far the run is.
pub struct Live {
    pub elapsed: Duration,
    pub slices: u64,
    pub threads_alive: u32,
    pub threads_total: u32,
    pub accesses: u64,
    pub footprint_bytes: u64,
}

impl Collector {
    pub fn new(config: Config) -> Result<Self> {
        let name = c"hither";
        let flags = nix::sys::memfd::MFdFlags::MFD_CLOEXEC;
        let segment = nix::sys::memfd::memfd_create(name, flags).context("no memory file")?;
        Ok(Collector { config, segment })
    }

    pub fn attach_path(&self) -> String {
        let fd = self.segment.as_raw_fd();
        format!("/proc/{}/fd/{fd}", std::process::id())
    }

    pub fn start(self) -> Result<Running> {
        Ok(Running {
            config: self.config,
            _segment: self.segment,
            started: Instant::now(),
        })
    }
}

impl Running {
    pub fn live(&self) -> Live {
        let elapsed = self.started.elapsed();
        Live {
            elapsed,
            slices: elapsed.as_nanos() as u64 / self.config.options.slice,
            threads_alive: 1,
            threads_total: 1,
            accesses: 0,
            footprint_bytes: 0,
        }
    }

    pub fn finish(self, end: RunEnd, _: &mut dyn Naming) -> Result<Profile> {
        let meta = Meta {
            format: FORMAT_VERSION,
            command: self.config.command,
            working_directory: self.config.working_directory,
            options: self.config.options,
            duration: self.started.elapsed().as_nanos() as u64,
            end,
            ..Meta::default()
        };
        Ok(Profile {
            meta,
            ..Profile::default()
        })
    }
}

/// Stands in for `hither_profile::Written`.
pub struct Written {
    pub missing: Vec<String>,
    pub bytes: u64,
}

/// Stands in for `hither_profile::write`.
pub fn write(profile: &Profile, path: &Path) -> Result<Written> {
    std::fs::create_dir_all(path)?;
    let text = serde_json::to_string_pretty(&profile.meta)?;
    std::fs::write(path.join("profile.json"), &text)?;
    Ok(Written {
        missing: Vec::new(),
        bytes: text.len() as u64,
    })
}

/// Stands in for `hither_profile::check_destination`.
pub fn check_destination(dir: &Path) -> Result<()> {
    let replaceable = dir.symlink_metadata().is_err() || dir.join("profile.json").is_file();
    anyhow::ensure!(replaceable, "{} exists and is not a profile", dir.display());
    Ok(())
}
