use super::*;

/// What happens, and the unit that the thread is to get.
enum RuleEvent {
    Start(Pid, Option<u32>),
    Thread(Tid, Tid),
    Fork(Tid, Pid),
    Exec(Pid, Tid, Option<u32>),
    End(Tid),
}
use RuleEvent::{End, Exec, Fork, Start, Thread};

#[track_caller]
fn check(mut rule: RuleGuide, events: &[(RuleEvent, Option<u32>)]) -> RuleGuide {
    let image = |rank: &Option<u32>| ExecImage {
        rank: *rank,
        ..ExecImage::default()
    };
    for (at, (event, expected)) in events.iter().enumerate() {
        let initial = match event {
            Start(pid, rank) => rule.program_started(*pid, &image(rank)),
            Thread(creator, tid) => rule.thread_created(*creator, *tid, 0),
            Fork(creator, pid) => rule.process_forked(*creator, *pid, false),
            Exec(pid, tid, rank) => rule.process_execed(*pid, *tid, &image(rank)),
            End(tid) => {
                rule.thread_ended(*tid);
                InitialPlacement::default()
            }
        };
        assert_eq!(initial.cpu, expected.map(Cpu), "event {at}");
        assert_eq!((initial.thread, initial.binds.len()), (None, 0));
    }
    rule
}

fn order(units: &[u32]) -> RuleGuide {
    RuleGuide::new(units.iter().copied().map(Cpu).collect(), None, true)
}

#[test]
fn thread_after_thread_takes_unit_after_unit_and_then_shares() {
    let rule = check(
        order(&[4, 2, 6]),
        &[
            (Start(10, None), Some(4)),
            (Thread(10, 11), Some(2)),
            (Thread(11, 12), Some(6)),
            (Thread(10, 13), Some(4)),
            (Thread(10, 14), Some(2)),
        ],
    );
    let expected = "5 threads were alive at once on 3 PUs, so some shared one";
    assert_eq!(rule.notes(), [expected]);
}

#[test]
fn a_team_that_ended_leaves_its_units() {
    let rule = check(
        order(&[0, 1, 2]),
        &[
            (Start(10, None), Some(0)),
            (Thread(10, 11), Some(1)),
            (Thread(10, 12), Some(2)),
            (End(11), None),
            (Thread(10, 13), Some(1)),
            (End(12), None),
            (End(13), None),
            (Thread(10, 14), Some(1)),
        ],
    );
    assert!(rule.notes().is_empty());
}

#[test]
fn a_program_started_by_a_shell_begins_where_the_shell_began() {
    check(
        order(&[0, 1, 2, 3]),
        &[
            (Start(10, None), Some(0)),
            (Fork(10, 20), Some(1)),
            (Exec(20, 20, None), Some(0)),
            (Thread(20, 21), Some(1)),
            // A second one beside it: `./a & ./b &`.
            (Fork(10, 30), Some(2)),
            (Exec(30, 30, None), Some(2)),
            // One program running another is no launcher.
            (Exec(30, 30, None), Some(2)),
            (Thread(30, 31), Some(3)),
        ],
    );
}

#[test]
fn forked_workers_count_as_threads() {
    check(
        order(&[0, 1, 2]),
        &[
            (Start(10, None), Some(0)),
            (Fork(10, 20), Some(1)),
            (Fork(20, 30), Some(2)),
            (Thread(20, 21), Some(0)),
        ],
    );
}

#[test]
fn exec_ends_the_other_threads_and_takes_the_process_number() {
    check(
        order(&[0, 1, 2]),
        &[
            (Start(10, None), Some(0)),
            (Thread(10, 11), Some(1)),
            (Thread(10, 12), Some(2)),
            (Exec(10, 12, None), Some(0)),
            (Thread(10, 13), Some(1)),
        ],
    );
}

#[test]
fn ranks_take_the_units_of_their_numbers() {
    let job = |ranks, expected: [u32; 4]| {
        let rule = RuleGuide::new((0..4).map(Cpu).collect(), None, ranks);
        check(
            rule,
            &[
                (Start(10, None), Some(0)),
                (Thread(10, 11), Some(1)),
                (Fork(10, 20), Some(2)),
                (Fork(10, 30), Some(3)),
                (Exec(30, 30, Some(1)), Some(expected[0])),
                (Exec(20, 20, Some(0)), Some(expected[1])),
                (Thread(20, 21), Some(expected[2])),
                (Thread(30, 31), Some(expected[3])),
            ],
        );
    };
    job(true, [1, 0, 2, 3]);
    // As first come, once the launcher waits.
    job(false, [0, 1, 2, 3]);
}

#[test]
fn skipped_threads_take_no_unit() {
    let list = "0,2".parse().expect("a list");
    check(
        RuleGuide::new(vec![Cpu(5), Cpu(7)], Some(list), true),
        &[
            (Start(10, None), None),
            (Thread(10, 11), Some(5)),
            (Thread(10, 12), None),
            (Thread(10, 13), Some(7)),
            (Exec(10, 10, None), None),
        ],
    );
}

#[test]
fn without_an_order_nothing_is_placed() {
    let events = [(Start(1, Some(3)), None), (Thread(1, 2), None)];
    assert!(check(order(&[]), &events).notes().is_empty());
}

#[test]
fn a_reused_id_does_not_count_twice() {
    check(
        order(&[0, 1]),
        &[
            (Start(10, None), Some(0)),
            (Thread(10, 11), Some(1)),
            (Thread(10, 11), Some(1)),
        ],
    );
}
