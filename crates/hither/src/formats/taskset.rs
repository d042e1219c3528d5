//! A script that pins a running program with util-linux' taskset.
use super::{pin_script, LauncherFormat};
use hither_profile::Placement;

pub struct TasksetFormat;

impl LauncherFormat for TasksetFormat {
    fn name(&self) -> &'static str {
        "taskset"
    }

    fn summary(&self) -> &'static str {
        "a script that pins a running program's threads: sh SCRIPT PID..."
    }

    fn write(&self, placement: &Placement) -> Result<String, String> {
        pin_script::write(placement, "taskset -p -c \"$3\" \"$tid\" >/dev/null")
    }
}
