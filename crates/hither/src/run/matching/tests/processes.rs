use super::*;

/// What a program does with processes, and which process each is then.
enum ProcessStep {
    Start(&'static str, Option<u32>),
    Fork(Pid, Pid),
    Vfork(Pid, Pid),
    Exec(Pid, &'static str, Option<u32>),
    End(Pid),
}
use ProcessStep::*;

/// Each process has one thread, of its own number.
#[track_caller]
fn follow(
    processes: &[(&str, Option<u32>, Option<u32>)],
    steps: &[(ProcessStep, Option<u32>)],
) -> Vec<String> {
    let mut placed = TestPlacement::new();
    for (path, parent, rank) in processes {
        placed.process(path, *parent, *rank);
    }
    let mut r = placed.recogniser();
    for (at, (step, expected)) in steps.iter().enumerate() {
        let ranked = |path: &str, rank: &Option<u32>| ExecImage {
            rank: *rank,
            ..image(path)
        };
        let initial = match step {
            Start(path, rank) => r.program_started(FIRST, &ranked(path, rank)),
            Fork(parent, pid) => r.process_forked(*parent, *pid, false),
            Vfork(parent, pid) => r.process_forked(*parent, *pid, true),
            Exec(pid, path, rank) => r.process_execed(*pid, *pid, &ranked(path, rank)),
            End(pid) => {
                r.thread_ended(*pid);
                Default::default()
            }
        };
        assert_eq!(initial.thread, expected.map(ThreadIx), "step {at}");
    }
    r.notes()
}

/// `mpirun -np 2 app`: the launcher forks, its copies become the program.
const LAUNCHED: &[(&str, Option<u32>, Option<u32>)] = &[
    ("/usr/bin/orterun", None, None),
    ("/usr/bin/orterun", Some(0), None),
    ("/home/me/app", Some(1), Some(0)),
    ("/usr/bin/orterun", Some(0), None),
    ("/home/me/app", Some(3), Some(1)),
];

#[test]
fn the_same_again() {
    let notes = follow(
        LAUNCHED,
        &[
            (Start("/usr/bin/orterun", None), Some(0)),
            (Fork(100, 201), Some(1)),
            (Fork(100, 202), Some(3)),
            // The second to be forked is the first to start.
            (Exec(202, "/home/me/app", Some(1)), Some(4)),
            (Exec(201, "/home/me/app", Some(0)), Some(2)),
        ],
    );
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn ranks_count_more_than_order() {
    follow(
        LAUNCHED,
        &[
            (Start("/usr/bin/orterun", None), Some(0)),
            (Fork(100, 201), Some(1)),
            (Fork(100, 202), Some(3)),
            (Exec(201, "/home/me/app", Some(1)), Some(4)),
            (Exec(202, "/home/me/app", Some(0)), Some(2)),
        ],
    );
    // Without ranks: whom they were forked as.
    follow(
        LAUNCHED,
        &[
            (Start("/usr/bin/orterun", None), Some(0)),
            (Fork(100, 201), Some(1)),
            (Fork(100, 202), Some(3)),
            (Exec(202, "/home/me/app", None), Some(4)),
        ],
    );
}

#[test]
fn launched_inside_or_outside() {
    // mpirun -np 2 hither run app, from a profile of hither trace mpirun -np 2 app.
    let notes = follow(LAUNCHED, &[(Start("/elsewhere/app", Some(1)), Some(4))]);
    assert!(
        notes.is_empty(),
        "the other ranks have a hither of their own: {notes:?}"
    );
    // And the other way round.
    let ranks: &[_] = &[
        ("/home/me/app", None, Some(0)),
        ("/home/me/app", None, Some(1)),
    ];
    let notes = follow(
        ranks,
        &[
            (Start("/usr/bin/orterun", None), Some(0)),
            (Fork(100, 201), None),
            (Fork(100, 202), None),
            (Exec(202, "/home/me/app", Some(1)), Some(1)),
            (Exec(201, "/home/me/app", Some(0)), Some(0)),
        ],
    );
    assert!(
        notes.is_empty(),
        "the launcher was taken for rank 0 only until that came: {notes:?}"
    );
    // A rank that the profile has not.
    follow(ranks, &[(Start("/home/me/app", Some(2)), None)]);
}

#[test]
fn shells_in_between() {
    let app: &[_] = &[("/bin/app", None, None)];
    // sh -c app, which becomes it or forks for it.
    follow(
        app,
        &[
            (Start("/bin/dash", None), Some(0)),
            (Exec(100, "/bin/app", None), Some(0)),
        ],
    );
    let forked = [
        (Start("/bin/dash", None), Some(0)),
        (Vfork(100, 201), None),
        (Exec(201, "/bin/app", None), Some(0)),
    ];
    assert!(follow(app, &forked).is_empty());
    // Vforked processes have no parent in a profile.
    let shell: &[_] = &[
        ("/bin/dash", None, None),
        ("/bin/date", None, None),
        ("/bin/app", None, None),
    ];
    follow(
        shell,
        &[
            (Start("/bin/dash", None), Some(0)),
            (Vfork(100, 201), None),
            (Exec(201, "/bin/app", None), Some(2)),
            (Vfork(100, 202), None),
            (Exec(202, "/bin/other", None), None),
            (Vfork(100, 203), None),
            (Exec(203, "/bin/date", None), Some(1)),
        ],
    );
}

/// Each rank is a script that starts the program among others.
#[test]
fn scripts_for_ranks() {
    let ranks: &[_] = &[
        ("/home/me/app", None, Some(0)),
        ("/home/me/app", None, Some(1)),
    ];
    let notes = follow(
        ranks,
        &[
            (Start("/bin/dash", Some(1)), Some(1)),
            (Vfork(100, 201), None),
            (Exec(201, "/bin/date", Some(1)), Some(1)),
            (End(201), None),
            (Vfork(100, 202), None),
            (Exec(202, "/home/me/app", Some(1)), Some(1)),
            (Vfork(202, 203), None),
            (Exec(203, "/bin/date", Some(1)), None),
        ],
    );
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn processes_that_do_not_come() {
    let workers: &[_] = &[
        ("/bin/app", None, None),
        ("/bin/app", Some(0), None),
        ("/bin/app", Some(0), None),
    ];
    let notes = follow(workers, &[(Start("/bin/app", None), Some(0))]);
    assert_eq!(
        notes,
        ["2 processes of app in the placement did not start in this run."]
    );
}

#[test]
fn another_program_in_the_place_of_the_first() {
    let notes = follow(
        &[("/bin/app", None, None)],
        &[(Start("/bin/app2", None), Some(0))],
    );
    assert_eq!(notes, ["The placement is of app, this is app2: what is alike in their order of threads and mappings was placed."]);
}

#[test]
fn nothing_is_recognised() {
    let ranks: &[_] = &[("/bin/app", None, Some(0)), ("/bin/app", None, Some(1))];
    let notes = follow(ranks, &[(Start("/bin/other", Some(7)), None)]);
    assert_eq!(
        notes,
        ["Nothing was placed: the placement is of app, and other started none of these."]
    );
}

#[test]
fn run_again_and_again() {
    let app: &[_] = &[("/bin/dash", None, None), ("/bin/app", None, None)];
    follow(
        app,
        &[
            (Start("/bin/dash", None), Some(0)),
            (Fork(100, 201), None),
            (Exec(201, "/bin/app", None), Some(1)),
            (Fork(100, 202), None),
            // Two at a time were not seen.
            (Exec(202, "/bin/app", None), None),
            (End(201), None),
            (Fork(100, 203), None),
            (Exec(203, "/bin/app", None), Some(1)),
        ],
    );
}

/// A helper that is forked and becomes another program is none of the workers.
#[test]
fn workers_and_helpers() {
    let workers: &[_] = &[
        ("/bin/app", None, None),
        ("/bin/app", Some(0), None),
        ("/bin/app", Some(0), None),
    ];
    follow(
        workers,
        &[
            (Start("/bin/app", None), Some(0)),
            (Fork(100, 201), Some(1)),
            (Exec(201, "/bin/sh", None), None),
            (Fork(100, 202), Some(1)),
            (Fork(100, 203), Some(2)),
            (Fork(100, 204), None),
        ],
    );
}
