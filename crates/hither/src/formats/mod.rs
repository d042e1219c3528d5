//! A placement for other tools: one file per format, one line in [`ALL`].
//!
//! Other tools know the kernel's numbers of PUs and nodes, bind once, and bind whole
//! processes or their threads in order. Pages one by one and phases are beyond them: they
//! get the first phase.
mod env;
mod hwloc_bind;
mod likwid_pin;
mod mpich;
mod numactl;
mod openmpi_rankfile;
mod pin_script;
mod placed_processes;
mod slurm;
mod taskset;
#[cfg(test)]
mod tests;
mod text;

pub use text::describe_region;

use hither_profile::Placement;

/// What other tools read instead of a placement.
pub trait LauncherFormat: Sync {
    /// As `--format` takes it.
    fn name(&self) -> &'static str;
    /// One line: what it is for, and how to use it.
    fn summary(&self) -> &'static str;
    /// The whole text, lines ended.
    ///
    /// # Errors
    /// A sentence that says what in the placement the format cannot express.
    fn write(&self, placement: &Placement) -> Result<String, String>;
}

/// Every format, in the order in which `hither map --list` shows them.
pub const ALL: &[&dyn LauncherFormat] = &[
    &text::TextFormat,
    &env::EnvFormat,
    &taskset::TasksetFormat,
    &numactl::NumactlFormat,
    &hwloc_bind::HwlocBindFormat,
    &likwid_pin::LikwidPinFormat,
    &openmpi_rankfile::RankfileFormat,
    &mpich::MpichFormat,
    &slurm::SlurmFormat,
];
