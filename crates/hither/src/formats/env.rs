//! Environment variables for OpenMP: those of the standard, which every runtime reads, and
//! the older ones of GNU and of Intel and LLVM.
//! `eval "$(hither map app.place.json --format env)"; ./app`
use super::placed_processes::{comma_list, largest_process};
use super::LauncherFormat;
use hither_profile::Placement;

pub struct EnvFormat;

impl LauncherFormat for EnvFormat {
    fn name(&self) -> &'static str {
        "env"
    }

    fn summary(&self) -> &'static str {
        "OpenMP: eval \"$(hither map ... --format env)\" before the program"
    }

    /// LLVM's runtime takes KMP_AFFINITY first and would warn that it ignores OMP_PLACES,
    /// which says the same.
    ///
    /// Place n is the PU of thread n. There are as many places as threads, so `close`
    /// gives thread n place n (OpenMP 5.2, 10.1.3).
    fn write(&self, placement: &Placement) -> Result<String, String> {
        let pus = largest_process(placement)?.pus();
        let places: Vec<String> = pus.iter().map(|pu| format!("{{{pu}}}")).collect();
        let blanks: Vec<String> = pus.iter().map(u32::to_string).collect();
        Ok(format!(
            "export OMP_NUM_THREADS={}\n\
             export OMP_PLACES='{}'\n\
             export OMP_PROC_BIND=close\n\
             export GOMP_CPU_AFFINITY='{}'\n\
             export KMP_WARNINGS=FALSE\n\
             export KMP_AFFINITY='granularity=fine,explicit,proclist=[{}]'\n",
            pus.len(),
            places.join(","),
            blanks.join(" "),
            comma_list(&pus),
        ))
    }
}
