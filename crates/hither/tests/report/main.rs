//! `hither report`: what it refuses, and its page in a real browser.
mod browser;
mod planted;
mod refused;
mod text;

use assert_cmd::Command;
use hither_profile::Profile;
use std::path::{Path, PathBuf};

fn hither() -> Command {
    Command::cargo_bin("hither").expect("the program")
}

/// Writes a profile into the folder.
fn written(folder: &Path, profile: &Profile) -> PathBuf {
    let path = folder.join("app.hither");
    hither_profile::write(profile, &path).expect("a profile that can be written");
    path
}

/// The page of a profile, in the folder.
fn page(folder: &Path, profile: &Profile) -> PathBuf {
    let profile = written(folder, profile);
    let page = folder.join("app.html");
    let mut report = hither();
    report.arg("report").arg(profile).arg("-o").arg(&page);
    report.assert().success();
    page
}
