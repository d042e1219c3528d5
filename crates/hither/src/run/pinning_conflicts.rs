//! Others that pin threads or bind memory: variables of OpenMP runtimes, MPI launchers and
//! batch systems, masks and policies that hither was started with. What fights with a
//! placement is said before the program starts, each in a sentence with the fix.

use hither_profile::{file_name, strip_control_characters};

/// What is known before the program starts.
#[derive(Clone, Debug, Default)]
pub struct LaunchConditions {
    /// Hither places threads.
    pub threads: bool,
    /// Hither binds pages or sets the memory policy.
    pub pages: bool,
    /// Hither itself sets the memory policy of the process.
    pub memory: bool,
    /// PUs that the affinity mask allows, and those that are online, as `0-3,8`.
    pub allowed: String,
    pub online: String,
    /// The memory policy hither was started with, as /proc/self/numa_maps names it.
    pub policy: Option<String>,
    /// The kernel moves pages by itself.
    pub balancing: bool,
    /// The program is a launcher of Open MPI, and was not told to leave ranks alone.
    pub open_mpi: bool,
}

/// Environment variables by which another runtime pins threads, and the warning for each.
const VARIABLES: &[PinningVariable] = &[
    PinningVariable {
        name: "OMP_PROC_BIND",
        harmless: |value| value.eq_ignore_ascii_case("false"),
        message: "asks OpenMP to pin threads; hither sets it to false for this program, so unset it",
    },
    PinningVariable {
        name: "OMP_PLACES",
        harmless: |_| false,
        message: "has no effect while hither places the threads; unset it",
    },
    PinningVariable {
        name: "GOMP_CPU_AFFINITY",
        harmless: |_| false,
        message: "has no effect while hither places the threads; unset it",
    },
    PinningVariable {
        name: "KMP_AFFINITY",
        harmless: |value| value.contains("disabled") || value.contains("none"),
        message: "lets the OpenMP runtime of Intel and LLVM pin threads away from where hither puts them; unset it",
    },
    PinningVariable {
        name: "KMP_HW_SUBSET",
        harmless: |_| false,
        message: "makes the OpenMP runtime of Intel and LLVM leave out PUs, and threads with them; unset it",
    },
    PinningVariable {
        name: "SLURM_CPU_BIND",
        harmless: |value| value.is_empty() || value.contains("none"),
        message: "says that Slurm pinned the task; start it with srun --cpu-bind=none",
    },
    PinningVariable {
        name: "OMPI_MCA_hwloc_base_binding_policy",
        harmless: |value| value.starts_with("none"),
        message: "makes Open MPI pin ranks; start them with mpirun --bind-to none",
    },
    PinningVariable {
        name: "PRTE_MCA_hwloc_default_binding_policy",
        harmless: |value| value.starts_with("none"),
        message: "makes Open MPI pin ranks; start them with mpirun --bind-to none",
    },
];

struct PinningVariable {
    name: &'static str,
    harmless: fn(&str) -> bool,
    message: &'static str,
}

/// A sentence for each of those that fight, the environment being `get`.
#[must_use]
pub fn conflict_warnings(
    get: impl Fn(&str) -> Option<String>,
    surroundings: &LaunchConditions,
) -> Vec<String> {
    let mut all = Vec::new();
    if surroundings.threads {
        for variable in VARIABLES {
            let value = get(variable.name).filter(|value| !(variable.harmless)(value));
            all.extend(value.map(|value| variable_warning(variable, &value)));
        }
        all.extend(mask_warning(surroundings));
        if surroundings.open_mpi {
            all.push("Open MPI pins its ranks after hither has placed them; add --bind-to none behind mpirun".to_owned());
        }
    }
    all.extend(memory_warnings(surroundings));
    all
}

fn variable_warning(variable: &PinningVariable, value: &str) -> String {
    let shown: String = strip_control_characters(value).chars().take(40).collect();
    format!("{}={shown} {}", variable.name, variable.message)
}

fn mask_warning(surroundings: &LaunchConditions) -> Option<String> {
    let (allowed, online) = (&surroundings.allowed, &surroundings.online);
    (allowed != online).then(|| {
        format!("only the PUs {allowed} of {online} are allowed here (taskset, numactl, mpirun or a batch system), which holds for threads that are not placed too; start hither without that for all of them")
    })
}

fn memory_warnings(surroundings: &LaunchConditions) -> Vec<String> {
    let mut all = Vec::new();
    let policy = surroundings.policy.as_deref().filter(|p| *p != "default");
    if let Some(policy) = policy {
        all.push(match surroundings.memory {
            true => format!("the memory policy {policy} that hither was started with (numactl) gives way to --policy; leave numactl out"),
            false => format!("the memory policy {policy} that hither was started with (numactl) holds for all pages that are not placed; leave numactl out"),
        });
    }
    if surroundings.balancing && surroundings.pages {
        all.push("the kernel balances NUMA nodes (kernel.numa_balancing), which costs time and moves pages that are not placed; sudo sysctl kernel.numa_balancing=0 ends it".to_owned());
    }
    all
}

/// Whether `command` starts ranks with Open MPI, which pins them unless told otherwise.
/// `program` is the file that it names, links resolved.
#[must_use]
pub fn open_mpi_pins(command: &[String], program: &str) -> bool {
    let file = file_name(program);
    let launcher = ["orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi"].contains(&file);
    let mut words = command.iter().map(|word| word.trim_start_matches('-'));
    let told = words.any(|word| matches!(word, "bind-to" | "bind-to-none" | "bind-to-core"));
    launcher && !told
}

/// The memory policy in the first line of /proc/PID/numa_maps: `00400000 bind:0 file=...`.
#[must_use]
pub fn policy_of(numa_maps: &str) -> Option<String> {
    let line = numa_maps.lines().next()?;
    line.split_whitespace().nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(environment: &[(&str, &str)], surroundings: &LaunchConditions, expected: &[&str]) {
        let get = |name: &str| {
            let pair = environment.iter().find(|(n, _)| *n == name);
            pair.map(|(_, value)| (*value).to_owned())
        };
        let got = conflict_warnings(get, surroundings);
        assert_eq!(got.len(), expected.len(), "{got:?}");
        for (got, expected) in got.iter().zip(expected) {
            assert!(got.starts_with(expected), "{got}");
        }
    }

    fn threads() -> LaunchConditions {
        LaunchConditions {
            threads: true,
            ..LaunchConditions::default()
        }
    }

    #[test]
    fn variables_of_other_pinners() {
        let check = |environment: &[(&str, &str)], expected: &[&str]| {
            check(environment, &threads(), expected);
            super::tests::check(environment, &LaunchConditions::default(), &[]);
        };
        check(&[], &[]);
        check(&[("OMP_PROC_BIND", "FALSE")], &[]);
        check(
            &[("OMP_PROC_BIND", "close")],
            &["OMP_PROC_BIND=close asks OpenMP"],
        );
        check(
            &[("OMP_PLACES", "cores"), ("GOMP_CPU_AFFINITY", "0-3")],
            &["OMP_PLACES=cores has no", "GOMP_CPU_AFFINITY=0-3 has no"],
        );
        check(&[("KMP_AFFINITY", "verbose,none")], &[]);
        check(
            &[("KMP_AFFINITY", "compact")],
            &["KMP_AFFINITY=compact lets"],
        );
        check(&[("KMP_HW_SUBSET", "1t")], &["KMP_HW_SUBSET=1t makes"]);
        check(&[("SLURM_CPU_BIND", "quiet,none")], &[]);
        check(
            &[("SLURM_CPU_BIND", "quiet,mask_cpu:0x3")],
            &["SLURM_CPU_BIND=quiet"],
        );
        let ompi = "OMPI_MCA_hwloc_base_binding_policy";
        check(&[(ompi, "none")], &[]);
        check(
            &[(ompi, "core\x1b[2J")],
            &["OMPI_MCA_hwloc_base_binding_policy=core?[2J makes"],
        );
    }

    #[test]
    fn masks_and_policies() {
        let narrow = LaunchConditions {
            allowed: "0-1".to_owned(),
            online: "0-3".to_owned(),
            ..threads()
        };
        check(&[], &narrow, &["only the PUs 0-1 of 0-3 are allowed"]);
        let bound = |memory| LaunchConditions {
            policy: Some("bind:0".to_owned()),
            memory,
            ..LaunchConditions::default()
        };
        check(
            &[],
            &bound(false),
            &["the memory policy bind:0 that hither was started with (numactl) holds"],
        );
        check(
            &[],
            &bound(true),
            &["the memory policy bind:0 that hither was started with (numactl) gives way"],
        );
        let balanced = |pages| LaunchConditions {
            policy: Some("default".to_owned()),
            balancing: true,
            pages,
            ..LaunchConditions::default()
        };
        check(&[], &balanced(true), &["the kernel balances"]);
        check(&[], &balanced(false), &[]);
        let open_mpi = LaunchConditions {
            open_mpi: true,
            ..threads()
        };
        check(&[], &open_mpi, &["Open MPI pins its ranks"]);
    }

    #[test]
    fn launchers_of_open_mpi() {
        let check = |command: &str, program, expected| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(open_mpi_pins(&words, program), expected, "{command}");
        };
        check("mpirun -np 4 ./app", "/usr/bin/orterun", true);
        check(
            "mpirun --bind-to none -np 4 ./app",
            "/usr/bin/orterun",
            false,
        );
        check("mpirun -np 4 ./app", "/usr/bin/mpiexec.hydra", false);
        check("./app orterun", "/home/me/app", false);
    }

    #[test]
    fn policies_by_name() {
        let maps = "55d0 interleave:0-1 file=/bin/cat mapped=2\n7ffe default stack\n";
        assert_eq!(policy_of(maps).as_deref(), Some("interleave:0-1"));
        assert_eq!(policy_of(""), None);
    }
}
