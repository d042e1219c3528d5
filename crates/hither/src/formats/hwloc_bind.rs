//! A script that pins a running program with hwloc-bind.
use super::{pin_script, LauncherFormat};
use hither_profile::Placement;

pub struct HwlocBindFormat;

impl LauncherFormat for HwlocBindFormat {
    fn name(&self) -> &'static str {
        "hwloc-bind"
    }

    fn summary(&self) -> &'static str {
        "a script that pins a running program's threads: sh SCRIPT PID..."
    }

    /// By the kernel's numbers: hwloc numbers logically only what the cgroup allows.
    fn write(&self, placement: &Placement) -> Result<String, String> {
        pin_script::write(placement, "hwloc-bind --tid \"$tid\" --physical pu:\"$3\"")
    }
}
