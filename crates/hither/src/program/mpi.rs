//! Is this hither one of several ranks that an MPI launcher started?
//!
//! Every launcher tells its ranks so in environment variables of its own: how many
//! there are, how many on this host, and something that names the job.

/// The job this process is a rank of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiJob {
    /// The same in all ranks on this host, different from other jobs'.
    pub id: String,
    /// Ranks on this host.
    pub local: usize,
    /// Ranks on all hosts.
    pub world: usize,
}

impl MpiJob {
    /// Whether ranks run on other hosts too.
    #[must_use]
    pub fn spans_hosts(&self) -> bool {
        self.world > self.local
    }
}

/// Reads the job from the environment `get`. `parent` is the process that started us:
/// it names the job where the launcher has no name for it, since one process starts all
/// ranks of a host. `None` outside MPI and for a job of a single rank.
pub fn mpi_job(get: impl Fn(&str) -> Option<String>, parent: i32) -> Option<MpiJob> {
    let number = |name: &str| get(name).and_then(|v| v.trim().parse::<usize>().ok());
    let first = |names: &[&str]| names.iter().find_map(|n| get(n));
    let job = if let Some(local) = number("OMPI_COMM_WORLD_LOCAL_SIZE") {
        let id = first(&["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"]);
        MpiJob {
            id: format!("ompi-{}", id.unwrap_or_else(|| parent.to_string())),
            local,
            world: number("OMPI_COMM_WORLD_SIZE").unwrap_or(local),
        }
    } else if let (Some(local), Some(_)) = (number("MPI_LOCALNRANKS"), number("PMI_RANK")) {
        MpiJob {
            id: format!("hydra-{parent}"),
            local,
            world: number("PMI_SIZE").unwrap_or(local),
        }
    } else {
        slurm_job(&get)?
    };
    (job.world.max(job.local) > 1).then_some(job)
}

/// The number of this process among the ranks on its host, from the environment `get`.
pub fn local_rank(get: impl Fn(&str) -> Option<String>) -> Option<u32> {
    let number = |name: &str| get(name).and_then(|v| v.trim().parse().ok());
    number("OMPI_COMM_WORLD_LOCAL_RANK")
        .or_else(|| number("MPI_LOCALRANKID"))
        // A step says so; batch scripts have a number too, but are no task.
        .or_else(|| slurm_job(&get).and_then(|_| number("SLURM_LOCALID")))
}

/// The same of process `pid`, by the environment that its program started with.
pub fn local_rank_of(pid: i32) -> Option<u32> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let environment = String::from_utf8_lossy(&environment);
    local_rank(|name| {
        let mut all = environment.split('\0');
        let value = all.find_map(|v| v.strip_prefix(name)?.strip_prefix('='));
        value.map(str::to_owned)
    })
}

/// A task of an srun step. Batch scripts see most of these variables too, but are no
/// step, or one of the special steps numbered from 0xfffffff0.
fn slurm_job(get: &impl Fn(&str) -> Option<String>) -> Option<MpiJob> {
    let step: u64 = get("SLURM_STEP_ID")?.parse().ok()?;
    if step >= 0xffff_fff0 {
        return None;
    }
    let node = get("SLURM_NODEID")?.parse().ok()?;
    let per_node =
        tasks_per_node(&get("SLURM_STEP_TASKS_PER_NODE").or_else(|| get("SLURM_TASKS_PER_NODE"))?)?;
    Some(MpiJob {
        id: format!("slurm-{}.{step}", get("SLURM_JOB_ID")?),
        local: *per_node.get::<usize>(node)?,
        world: per_node.iter().sum(),
    })
}

/// `4(x2),3` -> 4, 4, 3.
fn tasks_per_node(text: &str) -> Option<Vec<usize>> {
    let mut tasks = Vec::new();
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1),
        };
        tasks.extend(std::iter::repeat_n(count.parse::<usize>().ok()?, times));
    }
    Some(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(env: &[(&str, &str)], expected: Option<(&str, usize, usize)>) {
        let get = |name: &str| {
            let pair = env.iter().find(|(n, _)| *n == name);
            pair.map(|(_, v)| (*v).to_string())
        };
        let got = mpi_job(get, 77);
        let got = got.as_ref().map(|j| (j.id.as_str(), j.local, j.world));
        assert_eq!(got, expected);
    }

    #[test]
    fn no_launcher_no_job() {
        check(&[], None);
        check(&[("PMI_RANK", "0")], None);
        check(&[("OMPI_COMM_WORLD_LOCAL_SIZE", "many")], None);
    }

    #[test]
    fn open_mpi() {
        let ompi = |local, world| {
            vec![
                ("OMPI_COMM_WORLD_LOCAL_SIZE", local),
                ("OMPI_COMM_WORLD_SIZE", world),
            ]
        };
        check(&ompi("4", "4"), Some(("ompi-77", 4, 4)));
        check(&ompi("1", "1"), None);
        check(&ompi("1", "2"), Some(("ompi-77", 1, 2)));
        let mut named = ompi("4", "8");
        named.push(("PMIX_NAMESPACE", "1234.1"));
        named.push(("OMPI_MCA_ess_base_jobid", "99"));
        check(&named, Some(("ompi-1234.1", 4, 8)));
        check(
            &[
                ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
                ("OMPI_MCA_ess_base_jobid", "99"),
            ],
            Some(("ompi-99", 2, 2)),
        );
    }

    #[test]
    fn hydra() {
        let env = [
            ("PMI_RANK", "3"),
            ("PMI_SIZE", "6"),
            ("MPI_LOCALNRANKS", "4"),
        ];
        check(&env, Some(("hydra-77", 4, 6)));
    }

    #[test]
    fn slurm_steps_but_not_batch_scripts() {
        let mut env = vec![
            ("SLURM_JOB_ID", "5"),
            ("SLURM_NODEID", "2"),
            ("SLURM_TASKS_PER_NODE", "4(x2),3"),
        ];
        check(&env, None);
        env.push(("SLURM_STEP_ID", "0"));
        check(&env, Some(("slurm-5.0", 3, 11)));
        env[3] = ("SLURM_STEP_ID", "4294967291");
        check(&env, None);
        env[3] = ("SLURM_STEP_ID", "1");
        env.push(("SLURM_STEP_TASKS_PER_NODE", "1(x3)"));
        check(&env, Some(("slurm-5.1", 1, 3)));
    }

    #[test]
    fn numbers_of_ranks() {
        let check = |env: &[(&str, &str)], expected| {
            let get = |name: &str| {
                let pair = env.iter().find(|(n, _)| *n == name);
                pair.map(|(_, v)| (*v).to_string())
            };
            assert_eq!(local_rank(get), expected);
        };
        check(&[], None);
        check(&[("OMPI_COMM_WORLD_LOCAL_RANK", "3")], Some(3));
        check(&[("MPI_LOCALRANKID", "x")], None);
        check(&[("MPI_LOCALRANKID", "0")], Some(0));
        let mut env = vec![("SLURM_LOCALID", "2")];
        check(&env, None);
        env.extend([("SLURM_JOB_ID", "5"), ("SLURM_NODEID", "0")]);
        env.extend([("SLURM_TASKS_PER_NODE", "4"), ("SLURM_STEP_ID", "0")]);
        check(&env, Some(2));
    }

    #[test]
    fn lists_of_tasks() {
        assert_eq!(tasks_per_node("4"), Some(vec![4]));
        assert_eq!(tasks_per_node("2(x3),1"), Some(vec![2, 2, 2, 1]));
        assert_eq!(tasks_per_node("2(3)"), None);
        assert_eq!(tasks_per_node(""), None);
    }
}
