//! MPICH and what else starts ranks with Hydra: the PUs of each rank, as the kernel numbers them.
//! `$(hither map app.place.json --format mpich) ./app`
use super::placed_processes::{mpi_ranks, sorted_unique, PlacedProcess, NO_THREAD};
use super::LauncherFormat;
use hither_profile::Placement;

pub struct MpichFormat;

impl LauncherFormat for MpichFormat {
    fn name(&self) -> &'static str {
        "mpich"
    }

    fn summary(&self) -> &'static str {
        "MPICH (Hydra), one node: $(hither map ... --format mpich) ./app"
    }

    /// `mpiexec -bind-to -help`: a comma between ranks, a plus between the PUs of one.
    fn write(&self, placement: &Placement) -> Result<String, String> {
        let ranks = mpi_ranks(placement);
        if ranks.is_empty() {
            return Err(NO_THREAD.to_owned());
        }
        let of_rank = |rank: &PlacedProcess| {
            let pus = sorted_unique(rank.pus());
            let pus: Vec<String> = pus.iter().map(u32::to_string).collect();
            pus.join("+")
        };
        let all: Vec<String> = ranks.iter().map(of_rank).collect();
        Ok(format!(
            "mpiexec -n {} -bind-to user:{}\n",
            ranks.len(),
            all.join(",")
        ))
    }
}
