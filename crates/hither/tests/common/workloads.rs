//! The programs of `workloads/`, built when the first is asked for, which takes no time when they are
//! up to date.
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where a program is, or would be if this machine could build it.
pub fn workload(name: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        // Next to the profile folder of hither.
        let target = Path::new(env!("CARGO_BIN_EXE_hither")).ancestors().nth(2);
        let folder = target.expect("a target folder").join("workloads");
        let out = Command::new("make")
            .arg("-C")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads"))
            .arg(format!("BUILD={}", folder.display()))
            .output()
            .expect("make, to build the workloads");
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(
            out.status.success(),
            "the workloads do not build:\n{errors}"
        );
        folder
    });
    folder.join(name)
}
