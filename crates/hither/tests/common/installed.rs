//! Programs of others that a machine may lack.
use std::process::{Command, Stdio};

/// Whether a program is installed; says so where it is not.
pub fn there(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}
