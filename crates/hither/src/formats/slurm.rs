//! Slurm: the PUs of each task of a node. `$(hither map app.place.json --format slurm) ./app`
use super::placed_processes::{comma_list, mpi_ranks, sorted_unique, PlacedProcess, NO_THREAD};
use super::LauncherFormat;
use hither_profile::Placement;

pub struct SlurmFormat;

impl LauncherFormat for SlurmFormat {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn summary(&self) -> &'static str {
        "Slurm, one node: $(hither map ... --format slurm) ./app"
    }

    /// srun(1): `map_cpu` takes a CPU number per task, `mask_cpu` a mask per task.
    fn write(&self, placement: &Placement) -> Result<String, String> {
        let ranks = mpi_ranks(placement);
        let width = ranks.iter().map(|r| r.placed.len()).max();
        let width = width.ok_or(NO_THREAD)?;
        let tasks = ranks.len();
        let bind = if width == 1 {
            let pus: Vec<u32> = ranks.iter().flat_map(PlacedProcess::pus).collect();
            format!("map_cpu:{}", comma_list(&pus))
        } else {
            let masks: Vec<String> = ranks
                .iter()
                .map(|r| hex_mask(&sorted_unique(r.pus())))
                .collect();
            format!("mask_cpu:{}", masks.join(","))
        };
        Ok(format!(
            "srun --nodes=1 --ntasks={tasks} --cpus-per-task={width} --cpu-bind={bind} --mem-bind=local\n"
        ))
    }
}

/// A set of numbers as a hexadecimal mask of any length.
pub(super) fn hex_mask(sorted: &[u32]) -> String {
    let Some(last) = sorted.last() else {
        return "0x0".to_owned();
    };
    let digits = (0..=last / 4).rev().map(|digit| {
        let bits = sorted.iter().filter(|n| *n / 4 == digit);
        bits.fold(0u32, |value, n| value | 1 << (n % 4))
    });
    let digits: String = digits.map(|d| format!("{d:x}")).collect();
    format!("0x{digits}")
}
