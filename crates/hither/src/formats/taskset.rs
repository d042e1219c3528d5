//! A script that pins a running program with util-linux' taskset.
use super::{pin_script, Format};
use hither_profile::Placement;

pub struct Taskset;

impl Format for Taskset {
    fn name(&self) -> &'static str {
        "taskset"
    }

    fn about(&self) -> &'static str {
        "a script that pins a running program's threads: sh SCRIPT PID..."
    }

    fn write(&self, placement: &Placement) -> Result<String, String> {
        pin_script::write(placement, "taskset -p -c \"$3\" \"$tid\" >/dev/null")
    }
}
