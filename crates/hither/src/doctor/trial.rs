//! The trial: a small program traced for real, by this very hither and its tracer, into a
//! folder that is gone afterwards. Stages do not call one another, so it starts `hither
//! trace` as a user would, and believes the profile rather than the exit status alone: a
//! program that ran without the tracer in it leaves one with nothing in it.
use super::{CheckState, CheckedVerb, DoctorCheck};
use hither_profile::{read, Thread};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Takes a third of a second on an idle machine.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(60);
/// Starting any program makes tens of thousands.
const FEW_ACCESSES: u64 = 1000;

/// `hither` tracing `program`.
pub fn check_trial_run(hither: &Path, program: &str) -> DoctorCheck {
    let tried = format!("hither trace {program}");
    let trial = DoctorCheck::ok(CheckedVerb::Trace, "trial run", &tried, "");
    match run_trial(hither, program) {
        Ok(accesses) => DoctorCheck {
            found: format!("it ran and {accesses} accesses were counted"),
            ..trial
        },
        Err(e) => trial.with_error(&e).failing(
            CheckState::Fails,
            "no program can be traced",
            "reading profiles made elsewhere",
            "see what else fails here; else trace outside of this container or sandbox",
        ),
    }
}

/// Accesses that the tracer counted.
fn run_trial(hither: &Path, program: &str) -> io::Result<u64> {
    let place = TrialFolder::new()?;
    let profile = place.0.join("trial.hither");
    let said = place.0.join("said");
    let mut command = Command::new(hither);
    command.args(["trace", "-q", "-o"]).arg(&profile);
    command.args(["--", program]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&said)?);
    let status = wait_with_timeout(command)?;
    if !status.success() {
        let said = fs::read_to_string(&said).unwrap_or_default();
        let why = said.lines().next().unwrap_or_default();
        let why = why.strip_prefix("hither: ").unwrap_or(why);
        return Err(io::Error::other(match why {
            "" => format!("it ended with {status}"),
            why => format!("it ended with {status}: {why}"),
        }));
    }
    let profile = read(&profile).map_err(io::Error::other)?;
    match profile.threads.iter().map(Thread::accesses).sum() {
        accesses if accesses >= FEW_ACCESSES => Ok(accesses),
        _ => Err(io::Error::other("the program ran, but without the tracer")),
    }
}

fn wait_with_timeout(mut command: Command) -> io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() > TRIAL_TIMEOUT {
            child.kill()?;
            child.wait()?;
            let message = format!("it did not end within {TRIAL_TIMEOUT:?}");
            return Err(io::Error::other(message));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder of our own, removed in the end.
struct TrialFolder(PathBuf);

impl TrialFolder {
    fn new() -> io::Result<TrialFolder> {
        let template = std::env::temp_dir().join("hither-doctor-XXXXXX");
        Ok(TrialFolder(nix::unistd::mkdtemp(&template)?))
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        // An error in drop cannot be reported.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_cannot_start_fails_with_its_errno() {
        let check = check_trial_run(Path::new("/nonexistent/hither"), "/bin/true");
        assert_eq!(check.state, CheckState::Fails);
        assert_eq!(check.errno.as_deref(), Some("ENOENT"));
    }

    #[test]
    fn places_are_removed() {
        let place = TrialFolder::new().expect("a folder");
        let path = place.0.clone();
        fs::write(path.join("file"), "x").expect("write");
        drop(place);
        assert!(!path.exists());
    }
}
