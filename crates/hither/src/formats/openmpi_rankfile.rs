//! A rankfile for Open MPI 4: a line per rank. On a machine with several threads per core
//! mpirun takes the numbers as PUs, and as the kernel's numbers, only with options that say so.
use super::placed_processes::{comma_list, mpi_ranks, sorted_unique, NO_THREAD};
use super::LauncherFormat;
use hither_profile::Placement;

pub struct RankfileFormat;

impl LauncherFormat for RankfileFormat {
    fn name(&self) -> &'static str {
        "openmpi-rankfile"
    }

    fn summary(&self) -> &'static str {
        "Open MPI: mpirun --rankfile FILE, with the options that FILE names"
    }

    /// A rank with several threads gets the PUs of all of them.
    fn write(&self, placement: &Placement) -> Result<String, String> {
        let ranks = mpi_ranks(placement);
        if ranks.is_empty() {
            return Err(NO_THREAD.to_owned());
        }
        let mut out = format!(
            "# mpirun -np {} --use-hwthread-cpus --mca rmaps_rank_file_physical 1 --rankfile FILE\n",
            ranks.len()
        );
        for (rank, process) in ranks.iter().enumerate() {
            let pus = comma_list(&sorted_unique(process.pus()));
            out += &format!("rank {rank}=localhost slot={pus}\n");
        }
        Ok(out)
    }
}
