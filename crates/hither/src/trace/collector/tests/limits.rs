//! What a profile says of limits that take a large machine, or hours, to reach: the tracer counts what exceeded them.
use super::fake::Fake;
use super::NoNames;
use hither_sys::wire::{SegmentHeader, SegmentThread};
use std::mem::offset_of;

#[track_caller]
fn check(counter: usize, lost: u32, said: &str) {
    let f = Fake::new(|_| {});
    f.put32(counter as u64, lost);
    assert_eq!(f.finish(&mut NoNames).meta.limits, [said], "{lost}");
}

#[test]
fn what_exceeded_a_limit_of_the_tracer_is_said() {
    for (counter, lost, said) in [
        (offset_of!(SegmentHeader, lost_processes), 2, "2 processes past the 65535th of the run were not traced."),
        (offset_of!(SegmentHeader, lost_pages), 7, "Accesses to some pages were not counted: 7 pages and 0 page-count blocks past the tracer's limits."),
        (offset_of!(SegmentHeader, lost_blocks), 1, "Accesses to some pages were not counted: 0 pages and 1 page-count block past the tracer's limits."),
        (offset_of!(SegmentHeader, lost_chunks), 3, "3 chunks of shared memory past the tracer's limit were treated as private."),
        (offset_of!(SegmentHeader, lost_users), 1, "Communication is too low: 1 time no more users of a line could be remembered; trace with shorter slices."),
        (offset_of!(SegmentHeader, displaced_users), 9, "Some lines had more than 516 users in a slice: accesses to such a line count as communication with the 516 that came to it last."),
        (offset_of!(SegmentHeader, lost_sites), 1, "1 place in the code past the tracer's limit has no source line."),
        (offset_of!(SegmentHeader, lost_events), 4, "4 events (mappings, allocations) were lost: some pages and data structures have no name."),
    ] {
        check(counter, lost, said);
    }
}

/// Most programs lose some on a busy machine.
#[test]
fn only_a_loss_that_could_be_noticed_is_told_of() {
    for (lost, said) in [
        (2, &[][..]),
        (
            3,
            &["3 of 203 samples were lost: source lines and estimated counts of data structures are less sure."][..],
        ),
    ] {
        let mut f = Fake::with_thread();
        f.page(64, 0x404000, 1, 1);
        f.site(1, 0x401010);
        for _ in 0..200 {
            f.sample(1, (0x404000, 0), 1, 1, 0);
        }
        f.put64(f.thread_at(1) + offset_of!(SegmentThread, lost_samples) as u64, lost);
        assert_eq!(f.finish(&mut NoNames).meta.limits, said, "{lost}");
    }
}

#[test]
fn a_run_within_the_limits_says_nothing() {
    let f = Fake::new(|_| {});
    assert_eq!(f.finish(&mut NoNames).meta.limits, [""; 0]);
}
