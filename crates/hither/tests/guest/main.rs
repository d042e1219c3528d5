//! What needs more than one NUMA node, on the test machine (`tests/guest`). A boot takes
//! seconds, so a test gives one guest many commands. Where there can be no guest, each
//! test says so by name, and fails if HITHER_GUEST=required.
#[path = "../common/installed.rs"]
mod installed;
#[path = "../common/placement.rs"]
mod placement;

mod auto;
mod ends;
mod look;
mod machine;
mod phases;
mod placed;
mod program;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hither_guest::{or_skip, CommandOutput, Guest};
use installed::there;

const HITHER: &str = env!("CARGO_BIN_EXE_hither");

/// A guest with hither in it.
#[track_caller]
fn guest_with_hither() -> Option<Guest> {
    Some(or_skip()?.file_at(without_debug_information(), "/usr/bin/hither"))
}

/// hither as it is on the guest, which unpacks all that it has into memory when it boots: most of the
/// development build is debug information.
fn without_debug_information() -> &'static Path {
    static STRIPPED: OnceLock<PathBuf> = OnceLock::new();
    STRIPPED.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let fresh = folder.join(format!("hither.{}", std::process::id()));
        let mut strip = Command::new("strip");
        let stripped = strip.arg("-o").arg(&fresh).arg(HITHER).status();
        assert!(stripped.expect("strip").success());
        let stripped = folder.join("hither-of-guests");
        std::fs::rename(&fresh, &stripped).expect("rename");
        stripped
    })
}

/// What the commands printed; all must succeed.
#[track_caller]
fn texts(guest: &Guest, commands: &[&str]) -> Vec<String> {
    let outputs = run_all(guest, commands);
    for (command, output) in commands.iter().zip(&outputs) {
        assert_eq!(output.status, 0, "{command}: {}", output.errors());
    }
    outputs.iter().map(CommandOutput::text).collect()
}

#[track_caller]
fn run_all(guest: &Guest, commands: &[&str]) -> Vec<CommandOutput> {
    match guest.run_all(commands) {
        Ok(outputs) => outputs,
        Err(e) => panic!("{e}"),
    }
}

/// The lines of a text, each without the spaces around and between its words.
fn lines(text: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(words).collect()
}
