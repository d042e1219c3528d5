use super::*;
use crate::auto::outcome::AutoOutcome;
use hither_profile::RunEnd;

const MS: Nanos = 1_000_000;

fn fault(pid: Pid, tid: Tid, address: u64) -> PageFault {
    PageFault {
        pid,
        tid,
        address,
        cpu: 0,
    }
}

/// Threads 1, 2 and 3 of process 1 and thread 9 of process 9, which runs the same program.
fn small() -> ProfileBuilder {
    let mut record = ProfileBuilder::new(1000);
    let private = |object: u32, number| ObjectPage {
        object: MemoryObject(object),
        number,
    };
    let memory = AddressSpaces::default();
    let mut touch = |at: Nanos, (pid, tid): (Pid, Tid), page: ObjectPage| {
        let fault = fault(pid, tid, page.number * PAGE_SIZE);
        record.access(
            1000 + at * MS,
            &fault,
            SharerId(tid as u16),
            page,
            NodeIx(tid as u32 % 2),
        );
        record.belongs(&fault, page, &memory);
    };
    touch(0, (1, 1), private(1, 16));
    touch(1, (1, 2), private(1, 16));
    touch(2, (9, 9), private(2, 16));
    touch(250, (1, 2), private(1, 17));
    touch(251, (1, 3), private(1, 17));
    record.shared(SharerId(1), SharerId(2));
    record.shared(SharerId(3), SharerId(2));
    record.shared(SharerId(2), SharerId(2));
    record.shared(SharerId(2), SharerId(77));
    record.moved(1000 + 260 * MS, private(1, 17), NodeIx(1), Node(4));
    record.moved(1000 + 260 * MS, private(1, 99), NodeIx(1), Node(4));
    record.thread_pinned(1000 + 255 * MS, 2, 6, Node(4));
    record.thread_pinned(1000 + 255 * MS, 55, 6, Node(4));
    record
}

#[test]
fn faults_become_a_profile() {
    let record = small();
    assert_eq!(
        record.remote_faults(),
        RemoteFaultCounts {
            known: 2,
            remote: 2
        }
    );
    let outcome = AutoOutcome {
        duration: 300 * MS,
        end: RunEnd::Exited { status: 3 },
        ..AutoOutcome::default()
    };
    let profile = record.finish(&outcome);
    let threads: Vec<_> = profile
        .threads
        .iter()
        .map(|t| (t.tid, t.process.0, t.reads))
        .collect();
    assert_eq!(threads, [(1, 0, 1), (2, 0, 2), (9, 1, 1), (3, 0, 1)]);
    let slices: Vec<_> = profile
        .slices
        .iter()
        .map(|s| (s.start / MS, s.length / MS, s.accesses))
        .collect();
    assert_eq!(slices, [(0, 100, 3), (100, 100, 0), (200, 100, 2)]);
    let comm: Vec<_> = profile
        .comm
        .iter()
        .map(|c| (c.slice.0, c.i.0, c.j.0, c.events))
        .collect();
    assert_eq!(comm, [(2, 0, 1, 1), (2, 1, 3, 1)]);
    // Nothing is known of what was mapped: what lies together is one region.
    let regions: Vec<_> = profile
        .regions
        .iter()
        .map(|r| (r.process.0, r.address, r.size))
        .collect();
    assert_eq!(
        regions,
        [
            (0, 16 * PAGE_SIZE, 2 * PAGE_SIZE),
            (1, 16 * PAGE_SIZE, PAGE_SIZE)
        ]
    );
    let pages: Vec<_> = profile
        .pages
        .iter()
        .map(|p| (p.slice.0, p.region.0, p.page.0, p.thread.0))
        .collect();
    assert_eq!(
        pages,
        [
            (0, 0, 0, 0),
            (0, 0, 0, 1),
            (0, 1, 0, 2),
            (2, 0, 1, 1),
            (2, 0, 1, 3)
        ]
    );
    let first: Vec<_> = profile
        .first_touch
        .iter()
        .map(|t| (t.region.0, t.page.0, t.thread.0, t.slice.0))
        .collect();
    assert_eq!(first, [(0, 0, 0, 0), (0, 1, 1, 2), (1, 0, 2, 0)]);
    let moves: Vec<_> = profile
        .page_moves
        .iter()
        .map(|m| (m.at / MS, m.region.0, m.page.0, m.node))
        .collect();
    assert_eq!(moves, [(260, 0, 1, 4)]);
    let moves: Vec<_> = profile
        .thread_moves
        .iter()
        .map(|m| (m.at / MS, m.thread.0, m.pu, m.node))
        .collect();
    assert_eq!(moves, [(255, 1, 6, 4)]);
    assert!(profile.meta.is_online());
    // What is written can be read, which checks every index.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.hither");
    hither_profile::write(&profile, &path).expect("written");
    assert_eq!(hither_profile::read(&path).expect("read"), profile);
}

fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

#[test]
fn lives_follow_fork_and_exec() {
    let mut record = ProfileBuilder::new(0);
    let own = nix::unistd::getpid().as_raw();
    record.execed(0, own);
    record.named(own, name("first"));
    record.started(MS, (own, -5), (own, own));
    record.started(2 * MS, (-6, -6), (own, -5));
    record.named(-6, name("child"));
    record.execed(3 * MS, -6);
    record.named(-6, name("other"));
    record.ended(4 * MS, -6);
    record.execed(5 * MS, own);
    record.named(own, name("second"));
    let profile = record.finish(&AutoOutcome {
        duration: 9 * MS,
        ..AutoOutcome::default()
    });
    let threads: Vec<_> = profile
        .threads
        .iter()
        .map(|t| {
            (
                t.name.as_str(),
                t.process.0,
                t.creator.map(|c| c.0),
                t.start / MS,
                t.end / MS,
            )
        })
        .collect();
    let expected = [
        ("first", 0, None, 0, 5),
        ("first", 0, Some(0), 1, 5),
        ("child", 1, None, 2, 3),
        ("other", 2, None, 3, 4),
        ("second", 3, None, 5, 9),
    ];
    assert_eq!(threads, expected);
    let parents: Vec<_> = profile
        .meta
        .processes
        .iter()
        .map(|p| p.parent.map(|p| p.0))
        .collect();
    assert_eq!(parents, [None, Some(0), Some(0), None]);
    assert_eq!(profile.meta.processes[2].executable, "other");
}

#[test]
fn long_runs_have_longer_slices() {
    let mut slices = SliceRecorder::default();
    let seconds = 4 * 6553;
    for second in 0..seconds {
        slices.at(second * 1000 * MS, 1);
        slices.access(ThreadIx(0), 7);
    }
    let kept = slices.finish(seconds * 1000 * MS);
    assert!(kept.slices.len() <= 1 << 16, "{}", kept.slices.len());
    assert_eq!(kept.slices[0].length, 400 * MS);
    assert_eq!(kept.slices.iter().map(|s| s.accesses).sum::<u64>(), seconds);
    assert_eq!(kept.pages.iter().map(|p| p.3).sum::<u64>(), seconds);
    assert!(kept.pages.iter().all(|p| p.0.at() < kept.slices.len()));
}

#[test]
fn threads_take_the_roles_of_those_that_ended() {
    let mut record = ProfileBuilder::new(0);
    assert_eq!(record.started(0, (1, 1), (9, 9)), None);
    let mut start = |at, tid, creator| record.started(at, (1, tid), (1, creator)).map(|t| t.0);
    assert_eq!([2, 3].map(|tid| start(1, tid, 1)), [Some(1), Some(2)]);
    // Created by another one: another family.
    assert_eq!(start(2, 4, 2), Some(3));
    [4, 3, 2].iter().for_each(|&tid| record.ended(3, tid));
    let mut start = |at, tid, creator| record.started(at, (1, tid), (1, creator)).map(|t| t.0);
    assert_eq!(
        [5, 6, 7].map(|tid| start(4, tid, 1)),
        [Some(1), Some(2), Some(6)]
    );
    // By one of the same role.
    assert_eq!(start(5, 8, 5), Some(3));
    let profile = record.finish(&AutoOutcome::default());
    let roles = profile.threads.iter().map(|t| t.role.map(|r| r.0));
    let roles: Vec<_> = roles.collect();
    let (none, first, second) = (None, Some(1), Some(2));
    assert_eq!(
        roles,
        [none, none, none, none, first, second, none, Some(3)]
    );
}
