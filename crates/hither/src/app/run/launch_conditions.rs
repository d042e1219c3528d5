//! What the program finds around it that may pin threads or bind memory as well.
use std::fs;

use hither_sys::proc_text::proc_field;

use crate::program::target::TargetProgram;
use crate::run::pinning_conflicts::{open_mpi_pins, policy_of, LaunchConditions};

/// What is known here. `placement`: threads go where a placement says, whatever the mask
/// that we were started with.
pub fn launch_conditions(
    command: &[std::ffi::OsString],
    target: &TargetProgram,
    placement: bool,
) -> LaunchConditions {
    let program = target.executable.canonicalize();
    let program = program.unwrap_or_else(|_| target.executable.clone());
    let words: Vec<String> = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let online = read("/sys/devices/system/cpu/online");
    let allowed = allowed_cpus().filter(|_| placement);
    LaunchConditions {
        allowed: allowed.unwrap_or_else(|| online.clone()),
        online,
        policy: policy_of(&read("/proc/self/numa_maps")),
        balancing: !matches!(read("/proc/sys/kernel/numa_balancing").as_str(), "" | "0"),
        open_mpi: open_mpi_pins(&words, &program.to_string_lossy()),
        ..LaunchConditions::default()
    }
}

fn allowed_cpus() -> Option<String> {
    proc_field(&read("/proc/self/status"), "Cpus_allowed_list").map(str::to_owned)
}

/// A small file of the kernel without the line end; nothing where there is none.
fn read(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim_end().to_owned()
}
