//! What each format makes of a few placements; that the tools understand it is tested
//! with the tools, in `tests/map`.
use super::{slurm, ALL};
use hither_profile::{
    NodeIx, PageRun, PlacedPhase, Placement, ProcessIdentity, ProcessIx, PuIx, RegionPlacement,
    ThreadIdentity, ThreadIx, ThreadPlace,
};

/// Threads as (process, PU of the kernel); no PU is a thread left to the system.
fn placement(threads: &[(u32, Option<u32>)], ranks: &[Option<u32>]) -> Placement {
    let place = |(at, (_, os)): (u32, &(u32, Option<u32>))| {
        os.map(|os| ThreadPlace(ThreadIx(at), PuIx(os), os, NodeIx(0)))
    };
    let mut placement = Placement {
        threads: threads
            .iter()
            .map(|(process, _)| ThreadIdentity {
                process: ProcessIx(*process),
                ..ThreadIdentity::default()
            })
            .collect(),
        processes: ranks
            .iter()
            .map(|rank| ProcessIdentity {
                rank: *rank,
                ..ProcessIdentity::default()
            })
            .collect(),
        phases: vec![PlacedPhase {
            threads: (0..).zip(threads).filter_map(place).collect(),
            ..PlacedPhase::default()
        }],
        ..Placement::default()
    };
    placement.machine.nodes = vec![0, 8];
    placement.machine.units = 8;
    placement.source.command = vec!["app".to_owned()];
    placement
}

#[track_caller]
fn check(format: &str, placement: &Placement, part: &str) {
    let format = ALL.iter().find(|f| f.name() == format).expect("a format");
    let text = format.write(placement).unwrap_or_else(|e| e);
    assert!(text.contains(part), "{text}");
}

#[test]
fn threads_of_one_process() {
    let four = placement(
        &[(0, Some(0)), (0, Some(2)), (0, Some(1)), (0, Some(2))],
        &[None],
    );
    check(
        "env",
        &four,
        "OMP_NUM_THREADS=4\nexport OMP_PLACES='{0},{2},{1},{2}'\n",
    );
    check("env", &four, "GOMP_CPU_AFFINITY='0 2 1 2'\n");
    check("env", &four, "proclist=[0,2,1,2]'\n");
    check(
        "taskset",
        &four,
        "\npin \"${1}\" 1 0\npin \"${1}\" 2 2\npin \"${1}\" 3 1\npin \"${1}\" 4 2\n",
    );
    check(
        "numactl",
        &four,
        "numactl --physcpubind=0,1,2 --localalloc\n",
    );
    check("likwid-pin", &four, "likwid-pin -q -s 0x0 -c 0@2@1@2\n");
    check("openmpi-rankfile", &four, "rank 0=localhost slot=0,1,2\n");
    check("mpich", &four, "mpiexec -n 1 -bind-to user:0+1+2\n");
    check(
        "slurm",
        &four,
        "--ntasks=1 --cpus-per-task=4 --cpu-bind=mask_cpu:0x7 ",
    );
}

#[test]
fn threads_left_to_the_system() {
    let some = placement(&[(0, Some(3)), (0, None), (0, Some(1)), (0, None)], &[None]);
    check("env", &some, "OMP_PLACES='{3},{1}'");
    check("taskset", &some, "\npin \"${1}\" 1 3\npin \"${1}\" 3 1\n");
    check("likwid-pin", &some, "-s 0x1 -c 3,1\n");
    let not_first = placement(&[(0, None), (0, Some(1))], &[None]);
    check(
        "likwid-pin",
        &not_first,
        "pins the first thread of a process always",
    );
    let none = placement(&[(0, None)], &[None]);
    for format in ALL.iter().filter(|f| f.name() != "text") {
        assert!(format.write(&none).is_err(), "{}", format.name());
    }
}

#[test]
fn likwid_and_more_threads_than_units() {
    let crowded = |pus: &[u32]| {
        let threads: Vec<_> = pus.iter().map(|pu| (0, Some(*pu))).collect();
        let mut placement = placement(&threads, &[None]);
        placement.machine.units = 2;
        placement
    };
    check("likwid-pin", &crowded(&[1, 0, 1, 0, 1]), "-c 1,0\n");
    check("likwid-pin", &crowded(&[1, 1]), "-c 1\n");
    check("likwid-pin", &crowded(&[1, 0, 0, 1]), "only in turn");
}

#[test]
fn ranks_in_their_order() {
    // A launcher, and three ranks that appeared in another order.
    let ranks = placement(
        &[(0, None), (1, Some(5)), (2, Some(6)), (3, Some(7))],
        &[None, Some(2), Some(0), Some(1)],
    );
    check(
        "openmpi-rankfile",
        &ranks,
        "rank 0=localhost slot=6\nrank 1=localhost slot=7\nrank 2=localhost slot=5\n",
    );
    check("mpich", &ranks, "mpiexec -n 3 -bind-to user:6,7,5\n");
    check(
        "slurm",
        &ranks,
        "--ntasks=3 --cpus-per-task=1 --cpu-bind=map_cpu:6,7,5 ",
    );
    check(
        "hwloc-bind",
        &ranks,
        "pin \"${1}\" 1 6\npin \"${2}\" 1 7\npin \"${3}\" 1 5\n",
    );
    let threaded = placement(
        &[(0, Some(0)), (0, Some(1)), (1, Some(4)), (1, Some(5))],
        &[Some(0), Some(1)],
    );
    check("mpich", &threaded, "mpiexec -n 2 -bind-to user:0+1,4+5\n");
    check(
        "slurm",
        &threaded,
        "--ntasks=2 --cpus-per-task=2 --cpu-bind=mask_cpu:0x3,0x30 ",
    );
    check(
        "openmpi-rankfile",
        &threaded,
        "slot=0,1\nrank 1=localhost slot=4,5\n",
    );
}

#[test]
fn memory_of_the_whole_program() {
    let mut interleaved = placement(&[(0, Some(0))], &[None]);
    interleaved.policy.data = Some("interleave".to_owned());
    check("numactl", &interleaved, "--interleave=0,8\n");
    interleaved.phases[0].pages = vec![RegionPlacement {
        region: 0,
        runs: vec![PageRun(0, 1, NodeIx(1))],
    }];
    check("numactl", &interleaved, "--interleave=8\n");
    check("text", &interleaved, "page");
}

#[test]
fn masks_of_any_length() {
    let check = |set: &[u32], want: &str| assert_eq!(slurm::hex_mask(set), want);
    check(&[0], "0x1");
    check(&[0, 1, 5], "0x23");
    check(&[127], "0x80000000000000000000000000000000");
    check(&[], "0x0");
}
