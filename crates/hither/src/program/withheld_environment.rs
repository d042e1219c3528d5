//! Variables by which whoever starts hither could have code loaded into it (hwloc's plugins) or choose
//! what it takes for this machine. Root does not take them over from an environment that may be another
//! user's (su), nor does a hither that has rights which its user has not (file capabilities). The program
//! that it starts gets them back.
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

static WITHHELD: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// To be called before anything else.
pub fn withhold() {
    let more_rights = hither_sys::process::has_more_rights_than_its_user();
    if !more_rights && !nix::unistd::geteuid().is_root() {
        return;
    }
    let dangerous = |name: &[u8]| match more_rights {
        true => name.starts_with(b"HWLOC_"),
        false => name == b"HWLOC_PLUGINS_PATH",
    };
    let withheld: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| dangerous(name.as_bytes()))
        .collect();
    for (name, _) in &withheld {
        std::env::remove_var(name);
    }
    // It is called once.
    let _ = WITHHELD.set(withheld);
}

/// Puts them back for the program, before its process is made.
pub fn give_back() {
    for (name, value) in WITHHELD.get().into_iter().flatten() {
        std::env::set_var(name, value);
    }
}

/// Takes them away again once that process is there: hither itself goes on.
pub fn withhold_again() {
    for (name, _) in WITHHELD.get().into_iter().flatten() {
        std::env::remove_var(name);
    }
}
