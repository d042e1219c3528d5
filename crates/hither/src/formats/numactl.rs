//! numactl: the PUs of all threads together, and a policy for the memory of the whole
//! program. `$(hither map app.place.json --format numactl) ./app`
use super::placed_processes::{comma_list, placed_processes, sorted_unique, NO_THREAD};
use super::LauncherFormat;
use hither_profile::{NodeIx, Placement};

pub struct NumactlFormat;

impl LauncherFormat for NumactlFormat {
    fn name(&self) -> &'static str {
        "numactl"
    }

    fn summary(&self) -> &'static str {
        "PUs and nodes of the program as a whole: $(hither map ...) ./app"
    }

    /// Memory: interleaved where the data policy is that, else local to the first toucher.
    fn write(&self, placement: &Placement) -> Result<String, String> {
        let processes = placed_processes(placement);
        let pus = sorted_unique(processes.iter().flat_map(|p| p.pus()).collect());
        if pus.is_empty() {
            return Err(NO_THREAD.to_owned());
        }
        let memory = match placement.policy.data.as_deref() {
            Some("interleave") => {
                format!("--interleave={}", comma_list(&nodes_with_pages(placement)?))
            }
            _ => "--localalloc".to_owned(),
        };
        Ok(format!(
            "numactl --physcpubind={} {memory}\n",
            comma_list(&pus)
        ))
    }
}

/// The kernel's numbers of the nodes with pages, or of all.
fn nodes_with_pages(placement: &Placement) -> Result<Vec<u32>, String> {
    let machine = &placement.machine.nodes;
    let runs = placement.phases.iter().flat_map(|p| &p.pages);
    let used = runs.flat_map(|r| &r.runs).map(|run| run.node());
    let used = used.map(|NodeIx(at)| machine.get(at as usize).copied());
    let used: Option<Vec<u32>> = used.collect();
    let used = used.ok_or("the placement names a node that its machine lacks")?;
    Ok(match used.is_empty() {
        true => machine.clone(),
        false => sorted_unique(used),
    })
}
