//! Profile -> panels, on small profiles worked by hand.
use super::panel;
use super::unpack;
use crate::report::build::communication::{communication_panel, CommunicationInput};
use crate::report::build::structures::{add_assessments, ObjectAssessment};
use crate::report::page::{CommunicationFigures, ThreadOrderKind};
use hither_profile::*;

fn used(region: u32, page: u32, thread: u32, reads: u64, writes: u64) -> PageUse {
    PageUse {
        region: RegionIx(region),
        page: PageNo(page),
        thread: ThreadIx(thread),
        reads,
        writes,
        ..PageUse::default()
    }
}

fn touched(region: u32, page: u32, thread: u32) -> PageFirstTouch {
    PageFirstTouch {
        region: RegionIx(region),
        page: PageNo(page),
        thread: ThreadIx(thread),
        ..PageFirstTouch::default()
    }
}

fn range(object: u32, offset: u64, length: u64) -> ObjectRange {
    ObjectRange {
        object: ObjectIx(object),
        region: RegionIx(0),
        offset,
        length,
    }
}

fn object(name: &str, accesses: u64) -> Object {
    Object {
        name: name.to_owned(),
        reads: accesses,
        ..Object::default()
    }
}

/// Two threads; `field` has pages 0 to 3 of a region and page 3 in common with `small`.
fn profile() -> Profile {
    let thread = |reads| Thread {
        reads,
        ..Thread::default()
    };
    Profile {
        threads: vec![thread(600_000), thread(400_000)],
        regions: vec![Region::default()],
        objects: vec![
            object("small", 50),
            object("field", 900_000),
            object("none", 0),
        ],
        object_ranges: vec![
            range(0, 3 * 4096 + 100, 8),
            range(1, 0, 4096),
            range(1, 4096, 2 * 4096 + 1),
        ],
        pages: vec![
            used(0, 0, 0, 10, 0),
            used(0, 0, 1, 5, 1),
            used(0, 3, 1, 7, 0),
            used(0, 9, 0, 1, 1),
        ]
        .into(),
        first_touch: vec![touched(0, 0, 1), touched(0, 1, 0), touched(0, 3, 1)].into(),
        ..Profile::default()
    }
}

#[test]
fn structures_are_sorted_folded_and_drawn() {
    let mut made = panel(&profile());
    let names: Vec<&str> = made.rows.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["field", "small"]);
    assert_eq!((made.folded_from, made.accesses), (1, 1_000_000));
    assert_eq!(
        (made.rows[0].share, &*made.rows[0].objects),
        (0.9, &[1][..])
    );
    assert!(made.rows[1].map.is_none(), "folded");
    let map = made.rows[0].map.as_ref().expect("a map");
    assert_eq!((map.pages, map.unused), (4, 0));
    assert_eq!(unpack(&map.density), [(0, 0, 10), (0, 1, 6), (3, 1, 7)]);
    assert_eq!(unpack(&map.first_touch), [(0, 1, 1), (1, 0, 1), (3, 1, 1)]);
    assert_eq!(map.threads, [(0, 10, 0), (1, 12, 1)]);
    let assessment = ObjectAssessment {
        exclusivity: Some(0.5),
        accuracy: None,
        fetch_share: Some(0.25),
        ..ObjectAssessment::default()
    };
    add_assessments(&mut made, &[(ObjectIx(1), assessment)].into());
    assert_eq!(made.rows[0].fetch_share, Some(0.25));
    let exclusivity: Vec<_> = made.rows.iter().map(|r| r.exclusivity).collect();
    assert_eq!(exclusivity, [Some(0.5), None]);
}

/// What two processes have of a declaration, and stacks, are a row each, with the pages of all.
#[test]
fn what_is_alike_is_one_row() {
    let mut profile = profile();
    profile.objects[0].name = "field".to_owned();
    profile.objects[0].process = ProcessIx(1);
    profile.objects[0].reads = 300_000;
    let stack = |thread: u32| Object {
        kind: ObjectKind::Stack,
        size: 4096,
        ..object(&format!("stack of thread {thread}"), 1000)
    };
    profile.objects.extend([stack(0), stack(1)]);
    let line = |object, reads| SourceSite {
        object: Some(ObjectIx(object)),
        file: "/src/a.c".to_owned(),
        line: 3,
        reads,
        ..SourceSite::default()
    };
    profile.sites = vec![line(0, 10), line(1, 20)];
    let mut made = panel(&profile);
    let rows: Vec<_> = made.rows.iter().map(|r| (&*r.name, r.reads)).collect();
    assert_eq!(rows, [("field", 1_200_000), ("2 stacks", 2000)]);
    let row = &made.rows[0];
    assert_eq!((&*row.objects, &*row.processes), (&[1, 0][..], &[0, 1][..]));
    assert_eq!((row.lines.len(), row.lines[0].reads), (1, 30));
    assert_eq!(made.rows[1].size, 8192);
    let map = row.map.as_ref().expect("a map");
    assert_eq!(unpack(&map.density), [(0, 0, 10), (0, 1, 6), (3, 1, 7)]);
    let assessment = |exclusivity, accesses| ObjectAssessment {
        exclusivity: Some(exclusivity),
        accesses,
        fetch_share: Some(0.25),
        ..ObjectAssessment::default()
    };
    let of = [
        (ObjectIx(0), assessment(1.0, 300_000)),
        (ObjectIx(1), assessment(0.6, 900_000)),
    ];
    add_assessments(&mut made, &of.into());
    let row = &made.rows[0];
    assert_eq!((row.exclusivity, row.fetch_share), (Some(0.7), Some(0.5)));
}

#[test]
fn pages_that_nobody_used_are_left_out_where_they_are_many() {
    let mut profile = profile();
    profile.object_ranges[1].length = 4096 * 1000;
    profile.object_ranges[2] = range(1, 4096 * 2000, 1);
    let made = panel(&profile);
    let map = made.rows[0].map.as_ref().expect("a map");
    assert_eq!((map.pages, map.unused), (3, 998));
    assert_eq!(
        unpack(&map.density),
        [(0, 0, 10), (0, 1, 6), (1, 1, 7), (2, 0, 2)]
    );
    assert_eq!(unpack(&map.first_touch), [(0, 1, 1), (1, 1, 1)]);
}

#[test]
fn page_slices_are_added_up() {
    let mut profile = profile();
    let mut later = used(0, 0, 0, 100, 0);
    later.slice = SliceIx(1);
    profile.pages.push(later);
    let made = panel(&profile);
    let map = made.rows[0].map.as_ref().expect("a map");
    assert_eq!(unpack(&map.density)[0], (0, 0, 110));
}

/// Reads and writes are told apart whatever their number, in any order of rows.
#[test]
fn large_counts_of_threads_are_exact() {
    const MANY: u64 = u32::MAX as u64;
    let mut profile = profile();
    let mut later = [
        used(0, 3, 1, 2, MANY),
        used(0, 0, 1, 0, MANY - 1),
        used(0, 0, 1, 0, 5),
    ];
    later.iter_mut().for_each(|row| row.slice = SliceIx(1));
    profile.pages.extend(later);
    let made = panel(&profile);
    let map = made.rows[0].map.as_ref().expect("a map");
    assert_eq!(map.threads, [(0, 10, 0), (1, 14, 2 * MANY + 5)]);
    assert_eq!(
        unpack(&map.density)[1..],
        [(0, 1, MANY + 10), (3, 1, MANY + 9)]
    );
}

fn slices(count: u32) -> Vec<Slice> {
    let slice = |s: u32| Slice {
        start: u64::from(s) * 1_000_000_000,
        length: 1_000_000_000,
        amount: f64::from(s),
        heterogeneity: 100.0,
        threads: 4,
        traced: s != 1,
        ..Slice::default()
    };
    (0..count).map(slice).collect()
}

fn shared(slice: u32, i: u32, j: u32, events: u64) -> PairComm {
    PairComm {
        slice: SliceIx(slice),
        i: ThreadIx(i),
        j: ThreadIx(j),
        events,
        ..PairComm::default()
    }
}

fn given(phases: &[std::ops::Range<usize>]) -> CommunicationInput {
    let phase = |range: &std::ops::Range<usize>| (range.clone(), CommunicationFigures::default());
    CommunicationInput {
        figures: CommunicationFigures::default(),
        phases: phases.iter().map(phase).collect(),
        too_short: false,
        placed: Some(vec![3, 2, 1, 0]),
    }
}

#[test]
fn a_matrix_for_the_run_and_for_each_slice() {
    let profile = Profile {
        threads: vec![Thread::default(); 4],
        slices: slices(3),
        comm: vec![shared(0, 0, 2, 5), shared(2, 0, 2, 7), shared(2, 1, 3, 9)],
        ..Profile::default()
    };
    let made = communication_panel(&profile, given(&[0..2, 2..3]));
    assert_eq!(unpack(&made.matrix), [(0, 2, 12), (1, 3, 9)]);
    assert_eq!(
        unpack(&made.timeline.matrices),
        [(0, 2, 5), (2, 2, 7), (2, 7, 9)]
    );
    assert_eq!(made.timeline.start, [0.0, 1.0, 2.0]);
    assert_eq!(
        made.timeline.amount,
        [0.0, 0.0, 2.0],
        "slice 1 was not traced"
    );
    let phases: Vec<_> = made
        .phases
        .iter()
        .map(|p| (p.first, p.end, p.start, p.seconds))
        .collect();
    assert_eq!(phases, [(0, 2, 0.0, 2.0), (2, 3, 2.0, 1.0)]);
    let orders: Vec<_> = made
        .orders
        .iter()
        .map(|o| (o.by, o.threads.as_slice()))
        .collect();
    assert_eq!(orders[0], (ThreadOrderKind::Thread, &[0, 1, 2, 3][..]));
    assert_eq!(orders[1], (ThreadOrderKind::Placement, &[3, 2, 1, 0][..]));
    assert_eq!(orders[2], (ThreadOrderKind::Cluster, &[0, 2, 1, 3][..]));
}

#[test]
fn processes_stand_together() {
    let thread = |process| Thread {
        process: ProcessIx(process),
        ..Thread::default()
    };
    let profile = Profile {
        threads: vec![thread(0), thread(1), thread(0)],
        slices: slices(1),
        ..Profile::default()
    };
    let made = communication_panel(&profile, given(&[]));
    let order = &made.orders[1];
    assert_eq!(
        (order.by, &order.threads[..]),
        (ThreadOrderKind::Process, &[0, 2, 1][..])
    );
}

#[test]
fn long_runs_are_merged_but_not_across_phases() {
    let profile = Profile {
        threads: vec![Thread::default(); 2],
        slices: slices(10_001),
        comm: (0..10_001).map(|s| shared(s, 0, 1, 1)).collect(),
        ..Profile::default()
    };
    let made = communication_panel(&profile, given(&[0..5003, 5003..10_001]));
    let timeline = &made.timeline;
    assert!(
        timeline.start.len() <= 2100,
        "{} steps",
        timeline.start.len()
    );
    assert_eq!(timeline.slices_per_step, 5);
    let phase = &made.phases[1];
    assert_eq!(timeline.slice[phase.first], 5003);
    assert_eq!(phase.end, timeline.start.len());
    let events = |range: std::ops::Range<usize>| -> u64 {
        let cells = unpack(&timeline.matrices);
        cells
            .iter()
            .filter(|c| range.contains(&(c.0 as usize)))
            .map(|c| c.2)
            .sum()
    };
    assert_eq!(events(0..phase.first), 5003);
    assert_eq!(events(phase.first..phase.end), 4998);
    assert!(timeline
        .amount_most
        .iter()
        .zip(&timeline.amount)
        .all(|(most, mean)| most >= mean));
}

#[test]
fn clusters_stand_together() {
    let profile = |pairs: &[(u32, u32, u64)], threads| Profile {
        threads: vec![Thread::default(); threads],
        slices: slices(1),
        comm: pairs.iter().map(|&(i, j, e)| shared(0, i, j, e)).collect(),
        ..Profile::default()
    };
    let order = |pairs: &[(u32, u32, u64)], threads: usize| {
        let given = CommunicationInput {
            placed: None,
            ..given(&[])
        };
        let made = communication_panel(&profile(pairs, threads), given);
        made.orders.last().expect("orders").threads.clone()
    };
    // A chain that the numbers hide: 0-3-1-4-2.
    let chain = order(&[(0, 3, 9), (1, 3, 8), (1, 4, 7), (2, 4, 6)], 5);
    let reversed: Vec<u32> = chain.iter().rev().copied().collect();
    assert!(
        [&chain, &reversed].contains(&&vec![0, 3, 1, 4, 2]),
        "{chain:?}"
    );
    // Two groups, and a thread that shares nothing: last.
    let groups = order(&[(0, 2, 9), (2, 4, 9), (1, 3, 9), (0, 1, 1)], 6);
    let place = |t| groups.iter().position(|&x| x == t).expect("every thread");
    assert_eq!(place(5), 5);
    assert!(place(1).abs_diff(place(3)) == 1, "{groups:?}");
    let even: Vec<usize> = [0, 2, 4].map(place).to_vec();
    assert_eq!(
        even.iter().max().zip(even.iter().min()).map(|(a, b)| a - b),
        Some(2)
    );
    assert_eq!(order(&[], 3), [0, 1, 2]);
}
