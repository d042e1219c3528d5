//! What a profile says of limits that take a large machine, or hours, to reach: the tracer counts what exceeded them.
use super::fake::Fake;
use super::NoNames;
use hither_sys::wire::SegmentHeader;
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

#[test]
fn a_run_within_the_limits_says_nothing() {
    let f = Fake::new(|_| {});
    assert_eq!(f.finish(&mut NoNames).meta.limits, [""; 0]);
}
