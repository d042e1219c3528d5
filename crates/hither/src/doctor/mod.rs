//! What this machine and user may do: every answer comes from trying it.
//!
//! One file per verb that needs the answers; `parse` reads the kernel's files, purely.
mod auto;
mod parse;
mod program;
mod run;
mod trace;
mod trial;

use nix::errno::Errno;
use serde::Serialize;
use std::io;
use std::path::Path;

/// The verb of hither that needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckedVerb {
    Trace,
    Run,
    Auto,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    Ok,
    /// The verb works, but for something.
    Degraded,
    /// The verb does not work.
    Fails,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorCheck {
    pub verb: CheckedVerb,
    pub name: &'static str,
    pub state: CheckState,
    /// What was tried.
    pub tried: String,
    /// What came of it.
    pub found: String,
    /// The kernel's error by name, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errno: Option<String>,
    /// What does not work, what works anyway, and what to do; empty where all is well.
    pub stops: String,
    pub works: String,
    pub fix: String,
}

impl DoctorCheck {
    fn ok(
        verb: CheckedVerb,
        name: &'static str,
        tried: &str,
        found: impl Into<String>,
    ) -> DoctorCheck {
        DoctorCheck {
            verb,
            name,
            state: CheckState::Ok,
            tried: tried.to_string(),
            found: found.into(),
            errno: None,
            stops: String::new(),
            works: String::new(),
            fix: String::new(),
        }
    }

    /// The same, but something is wrong: what stops, what works anyway, what to do.
    fn failing(mut self, state: CheckState, stops: &str, works: &str, fix: &str) -> DoctorCheck {
        self.state = state;
        self.stops = stops.to_string();
        self.works = works.to_string();
        self.fix = fix.to_string();
        self
    }

    /// The same, with the error as what was found.
    fn with_error(mut self, error: &io::Error) -> DoctorCheck {
        self.errno = error
            .raw_os_error()
            .map(|n| format!("{:?}", Errno::from_raw(n)));
        self.found = match error.raw_os_error() {
            Some(n) => Errno::from_raw(n).desc().to_string(),
            None => error.to_string(),
        };
        self
    }
}

/// All answers, and those about a program if one is given.
#[must_use]
pub fn run_checks(program: Option<&Path>) -> Vec<DoctorCheck> {
    let mut checks = trace::checks();
    if let Some(program) = program {
        checks.extend(program::checks(program));
    }
    checks.extend(run::checks());
    checks.extend(auto::checks());
    checks
}

/// A small file of the kernel, without the line end.
fn read_kernel_file(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim_end().to_string())
}
