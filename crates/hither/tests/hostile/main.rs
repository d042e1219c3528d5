//! Attacks by those beside whom hither works: other users, traced programs, files from anybody.
//! Those of other users need root, who makes them; where that is not so, each test says so.
#[path = "../common/mod.rs"]
#[allow(dead_code)] // Other tests use more of it.
mod common;

mod confined;
mod inputs;
mod outputs;
mod printed;
mod privacy;
mod ranks;
mod rights;
mod segment;
mod symbolizer;

use std::fs;
use std::os::unix::fs::{chown, lchown, symlink, PermissionsExt};
use std::path::Path;

use std::time::{Duration, Instant};

use common::{run, status, text, wait_for, workload, Place, Running, HITHER};
use nix::sys::signal::Signal;

/// A user without rights, whether or not it has an entry in /etc/passwd.
const STRANGER: u32 = 54_321;

/// A folder of ours that all may enter, with `stranger/` of another user and `secret/` of
/// root alone in it; `None` where we may not give files away.
fn place_of_two() -> Option<Place> {
    let place = Place::new();
    let (strange, secret) = (place.path("stranger"), place.path("secret"));
    for folder in [&strange, &secret] {
        fs::create_dir(folder).expect("mkdir");
    }
    set_mode(place.0.path(), 0o755);
    set_mode(&secret, 0o700);
    fs::write(secret.join("data"), "kept\n").expect("write");
    set_mode(&secret.join("data"), 0o600);
    if let Err(error) = chown(&strange, Some(STRANGER), Some(STRANGER)) {
        println!("skipped: only root can test what another user does ({error})");
        return None;
    }
    Some(place)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

/// A link that the stranger made.
fn plant_link(to: &Path, at: &Path) {
    symlink(to, at).expect("symlink");
    lchown(at, Some(STRANGER), Some(STRANGER)).expect("lchown");
}

/// Permissions of a file or folder.
fn mode(path: &Path) -> u32 {
    let data = path.metadata().unwrap_or_else(|e| panic!("{path:?}: {e}"));
    data.permissions().mode() & 0o7777
}
