//! What an observer sees of programs that are started here.
use super::*;
use std::process::Command;

fn observer(cpus: &[u32]) -> Option<PerfFaultMonitor> {
    match PerfFaultMonitor::of_children(cpus) {
        Ok(faults) => Some(faults),
        Err(e) => {
            assert!(is_forbidden(&e), "{e}");
            println!("skipped: no perf events here: {e}");
            None
        }
    }
}

fn cpus() -> Vec<u32> {
    let mask = crate::affinity::CpuMask::of_thread(0).expect("mask");
    mask.cpus().collect()
}

#[test]
fn a_child_is_seen_from_its_exec_to_its_end() {
    let Some(mut faults) = observer(&cpus()) else {
        return;
    };
    let mut child = Command::new("sh")
        .args(["-c", "(:); :"])
        .spawn()
        .expect("sh");
    let pid = i32::try_from(child.id()).expect("pid");
    child.wait().expect("wait");
    let records = faults.drain().to_vec();
    assert!(records.is_sorted_by_key(|r| r.0), "in order");
    let of_child = |r: &&(u64, KernelEvent)| matches!(r.1, KernelEvent::Fault(f) if f.pid == pid);
    assert!(records.iter().filter(of_child).count() > 10);
    let has = |wanted: KernelEvent| records.iter().any(|r| r.1 == wanted);
    assert!(has(KernelEvent::Exec { pid }), "{records:?}");
    let mut name = [0; 16];
    name[..2].copy_from_slice(b"sh");
    assert!(has(KernelEvent::Comm { tid: pid, name }), "{records:?}");
    assert!(has(KernelEvent::Exit { pid, tid: pid }), "{records:?}");
    let made = |r: &(u64, KernelEvent)| matches!(r.1, KernelEvent::Fork { pid: new, parent, .. } if parent == pid && new != pid);
    assert!(records.iter().any(made), "{records:?}");
    assert_eq!(faults.lost(), 0);
    assert_eq!(faults.drain().len(), 0);
}

/// What an observer saw, and what it was told that it lost, of more faults than its rings
/// hold: each page of 256 MiB is touched. The kernel tells with the next record that finds
/// room.
fn overflow(faults: &mut PerfFaultMonitor) -> (u64, u64) {
    let mut seen = 0;
    for line in [
        "head -c 256M /dev/zero | tail -c 256M | wc -c",
        "for i in 1 2 3 4 5 6 7 8; do (:); done",
    ] {
        let output = Command::new("sh").args(["-c", line]).output().expect("sh");
        assert!(output.status.success());
        seen += faults.drain().len() as u64;
    }
    (seen, faults.lost())
}

/// An observer of what this thread starts on one processor, where it stays from now on.
fn observer_of_one() -> Option<PerfFaultMonitor> {
    let cpu = cpus()[0];
    crate::affinity::CpuMask::single(cpu)
        .set_affinity(0)
        .expect("pinned");
    observer(&[cpu])
}

#[test]
fn a_full_ring_counts_what_it_lost() {
    let Some(mut faults) = observer_of_one() else {
        return;
    };
    let (seen, lost) = overflow(&mut faults);
    assert!(lost > 30_000 && seen + lost > 60_000, "{seen}, {lost}");
}

/// A child on the CPU of the thread that created it may be switched in with that thread's
/// perf events (perf_event_context_sched_out).
#[test]
fn each_of_many_children_is_seen() {
    let Some(mut faults) = observer_of_one() else {
        return;
    };
    for n in 0..50 {
        let status = Command::new("true").status().expect("true");
        assert!(status.success());
        let exec = |r: &(u64, KernelEvent)| matches!(r.1, KernelEvent::Exec { .. });
        assert_eq!(
            faults.drain().iter().filter(|r| exec(r)).count(),
            1,
            "child {n}"
        );
    }
}

#[test]
fn broken_records_end_the_reading() {
    let check = |bytes: &[u8], expected: usize| {
        let mut into = Vec::new();
        parse_records(bytes, &mut into);
        assert_eq!(into.len(), expected);
    };
    let exit = |length: u16| {
        let mut bytes = PERF_RECORD_EXIT.to_ne_bytes().to_vec();
        bytes.extend([0; 2]);
        bytes.extend(length.to_ne_bytes());
        bytes.resize(32, 0);
        bytes
    };
    check(&[], 0);
    check(&[1, 2, 3], 0);
    check(&exit(0), 0);
    check(&exit(33), 0);
    check(&exit(32), 1);
    check(&[exit(32), exit(32)].concat(), 2);
}
