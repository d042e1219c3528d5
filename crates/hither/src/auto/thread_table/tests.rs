use super::*;

#[test]
fn numbers_are_given_out_again_when_many_are_free() {
    let mut table = ThreadTable::default();
    for tid in 1..=40 {
        let sharer = table.find_or_add(tid, 1, Cpu(0));
        assert_eq!(sharer, Some(SharerId(tid as u16 - 1)));
    }
    for tid in 1..=20 {
        assert_eq!(table.thread_ended(tid), [SharerId(tid as u16 - 1)]);
    }
    assert_eq!(table.thread_ended(7), []);
    assert_eq!(table.release_rows(), []);
    // Not one of those yet.
    assert_eq!(table.find_or_add(50, 1, Cpu(0)), Some(SharerId(40)));
    (21..=30).for_each(|tid| {
        table.thread_ended(tid);
    });
    assert_eq!(table.release_rows().len(), 30);
    assert!(table.find_or_add(51, 1, Cpu(0)).expect("a number") < SharerId(30));
    assert_eq!(table.by_sharer(SharerId(40)).map(|t| t.0), Some(50));
}

#[test]
fn the_next_of_a_role_has_its_row_and_its_unit() {
    let mut table = ThreadTable::default();
    table.thread_started(1, 1, 0, None);
    let role = |thread| Some(ThreadIx(thread));
    for (tid, role) in [(2, role(1)), (3, role(2))] {
        assert_eq!(table.thread_started(tid, 1, 1, role), None);
    }
    let sharer = |table: &ThreadTable, tid| table.threads[&tid].sharer;
    let (first, second) = (sharer(&table, 2), sharer(&table, 3));
    table.threads.get_mut(&2).expect("lives").assigned_cpu = Some(Cpu(7));
    // No row is cleared, and the unit is kept, or another one instead of it.
    assert_eq!(table.thread_ended(2), []);
    assert_eq!(table.thread_ended(3), []);
    assert_eq!(table.cpu_of(first), Some(Cpu(7)));
    assert_eq!(table.cpu_of(second), None);
    table.reserve_cpu(second, Cpu(5));
    assert_eq!(table.thread_started(4, 1, 1, role(1)), Some(Cpu(7)));
    assert_eq!(table.thread_started(5, 1, 1, role(2)), Some(Cpu(5)));
    assert_eq!([4, 5].map(|tid| sharer(&table, tid)), [first, second]);
    // Who chose its units itself leaves none to the next.
    let thread = table.threads.get_mut(&4).expect("lives");
    (thread.assigned_cpu, thread.chose) = (Some(Cpu(7)), true);
    assert_eq!(table.thread_ended(4), []);
    assert_eq!(table.thread_started(6, 1, 1, role(1)), None);
    // The process is over, and so are its roles.
    assert_eq!(table.thread_ended(6), []);
    assert_eq!(table.thread_ended(1).len(), 1);
    let mut gone = table.thread_ended(5);
    gone.sort_unstable();
    assert_eq!(gone, [first, second]);
    assert!(table.vacant.is_empty());
}

/// Such a thread has come and gone between two looks.
#[test]
fn a_unit_is_kept_for_the_one_after_who_was_never_put_there() {
    let mut table = ThreadTable::default();
    table.thread_started(1, 1, 0, None);
    let role = Some(ThreadIx(1));
    table.thread_started(2, 1, 1, role);
    table.threads.get_mut(&2).expect("lives").assigned_cpu = Some(Cpu(7));
    table.thread_ended(2);
    for tid in [3, 4, 5] {
        assert_eq!(table.thread_started(tid, 1, 1, role), Some(Cpu(7)));
        table.thread_ended(tid);
    }
    // Unless it has gone elsewhere since.
    table.thread_started(6, 1, 1, role);
    table.threads.get_mut(&6).expect("lives").assigned_cpu = Some(Cpu(5));
    table.thread_ended(6);
    assert_eq!(table.thread_started(7, 1, 1, role), Some(Cpu(5)));
}

/// Samplers looked at all threads 100 times a second, of which there may be thousands.
#[test]
fn it_is_known_whether_threads_came_or_went() {
    let mut table = ThreadTable::default();
    let mut changed = {
        let mut last = table.changes();
        move |table: &ThreadTable| std::mem::replace(&mut last, table.changes()) != table.changes()
    };
    assert!(!changed(&table));
    table.find_or_add(2, 1, Cpu(0));
    assert!(changed(&table));
    table.find_or_add(2, 1, Cpu(1));
    table.thread_ended(3);
    assert!(!changed(&table));
    table.thread_started(3, 1, 2, None);
    assert!(changed(&table));
    table.thread_ended(3);
    assert!(changed(&table));
}

#[test]
fn a_thread_goes_where_it_is_put_and_back() {
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("sleep");
    let tid = i32::try_from(child.id()).expect("pid");
    let ours = CpuMask::of_thread(0).expect("mask");
    let cpus: Vec<u32> = ours.cpus().collect();
    let (first, last) = (Cpu(cpus[0]), Cpu(cpus[cpus.len() - 1]));
    let mut table = ThreadTable::default();
    table.read_clock();
    table.find_or_add(tid, tid, first);
    // Not pinned without the restore helper knowing it.
    let refused = table.pin_thread(tid, last, &ours, |pinned| pinned.tid != tid);
    assert!(!refused.expect("pinned"));
    assert_eq!(CpuMask::of_thread(tid).expect("mask"), ours);
    assert!(table
        .pin_thread(tid, last, &ours, |_| true)
        .expect("pinned"));
    assert_eq!(
        CpuMask::of_thread(tid).expect("mask"),
        CpuMask::single(last.0)
    );
    assert!(!table
        .pin_thread(tid, last, &ours, |_| true)
        .expect("there already"));
    assert!(table.process_execed(tid).is_empty());
    assert_eq!(CpuMask::of_thread(tid).expect("mask"), ours);
    // What it chose itself is left alone.
    assert!(table
        .pin_thread(tid, last, &ours, |_| true)
        .expect("pinned"));
    if cpus.len() > 1 {
        CpuMask::single(first.0)
            .set_affinity(tid)
            .expect("its own choice");
        assert!(!table
            .pin_thread(tid, first, &ours, |_| true)
            .expect("chose"));
        assert!(table.by_sharer(SharerId(0)).is_some_and(|(_, t)| t.chose));
    }
    child.kill().expect("kill");
    child.wait().expect("wait");
    assert!(!table.pin_thread(tid, first, &ours, |_| true).expect("gone"));
}

#[test]
fn a_stranger_with_the_id_of_a_dead_thread_is_left_alone() {
    let mut child = std::process::Command::new("sleep");
    let mut child = child.arg("60").spawn().expect("sleep");
    let tid = i32::try_from(child.id()).expect("pid");
    let ours = CpuMask::of_thread(0).expect("mask");
    let cpu = Cpu(ours.cpus().next().expect("a unit"));
    // The kernel spoke of it long before this one began.
    let mut table = ThreadTable::default();
    table.find_or_add(tid, tid, cpu);
    assert!(!table.pin_thread(tid, cpu, &ours, |_| true).expect("pinned"));
    assert_eq!(CpuMask::of_thread(tid).expect("mask"), ours);
    // Of another process.
    table.read_clock();
    table.find_or_add(tid, 1, cpu);
    assert!(!table.pin_thread(tid, cpu, &ours, |_| true).expect("pinned"));
    assert_eq!(CpuMask::of_thread(tid).expect("mask"), ours);
    child.kill().expect("kill");
    child.wait().expect("wait");
}

#[test]
fn who_is_gone_is_missed_and_who_came_since_is_no_stand_in() {
    let mut child = std::process::Command::new("sleep");
    let mut child = child.arg("60").spawn().expect("sleep");
    let pid = i32::try_from(child.id()).expect("pid");
    let mut table = ThreadTable::default();
    // The kernel spoke of one long before this one began, and of one that is gone.
    table.find_or_add(pid, pid, Cpu(0));
    table.find_or_add(i32::MAX - 1, i32::MAX - 1, Cpu(0));
    let mut missing = table.missing_threads();
    missing.sort_unstable();
    let gone = i32::MAX - 1;
    assert_eq!(missing, [(pid, pid), (gone, gone)]);
    assert!(!table.is_known(pid) && !table.is_known(gone));
    table.thread_ended(gone);
    table.read_clock();
    table.find_or_add(pid, pid, Cpu(0));
    assert_eq!(table.missing_threads(), []);
    assert!(table.is_known(pid));
    child.kill().expect("kill");
    child.wait().expect("wait");
    assert_eq!(table.missing_threads(), [(pid, pid)]);
}

#[test]
fn sizes_of_processes() {
    let mut table = ThreadTable::default();
    for tid in [10, 11, 20] {
        table.find_or_add(tid, tid / 10 * 10, Cpu(0));
    }
    assert_eq!((table.thread_count(10), table.thread_count(20)), (2, 1));
    table.thread_ended(11);
    table.find_or_add(20, 10, Cpu(0));
    assert_eq!((table.thread_count(10), table.thread_count(20)), (2, 0));
}
