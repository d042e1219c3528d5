//! Slots that have one thread after another.
use super::*;
use hither_profile::Profile;

const BASE: u64 = 0x7f00_0000_0000;
/// More than are in use before any is freed.
const THREADS: u32 = 600;

/// Main in slot 1, and threads that have ended in the others.
fn many_ended() -> Fake {
    let mut f = Fake::with_thread();
    f.map(1, 1, BASE, MIB);
    f.with_serial(1, 1);
    f.page(64, BASE, 1, 2);
    f.page(65, BASE + 4096, 1, 1);
    for slot in 2..=THREADS {
        f.thread(slot, 1, 1);
        f.with_serial(slot, slot);
    }
    f
}

fn end_all(f: &mut Fake) {
    (2..=THREADS).for_each(|slot| f.end_thread(slot));
}

/// Lets the threads in these slots go on through some slices.
fn pass_slices(f: &mut Fake, slots: &[u32]) {
    for _ in 0..6 {
        f.engine.end_slice();
        slots.iter().for_each(|&slot| f.enter_slice(slot));
    }
}

fn free(f: &Fake) -> u32 {
    f.engine.segment.free_slots()
}

fn accesses(p: &Profile, thread: usize) -> [u64; 2] {
    [p.threads[thread].reads, p.threads[thread].writes]
}

fn events(p: &Profile, i: u32, j: u32) -> u64 {
    let pair = |c: &&PairComm| (c.i, c.j) == (ThreadIx(i), ThreadIx(j));
    p.comm.iter().filter(pair).map(|c| c.events).sum()
}

#[test]
fn a_slot_counts_for_its_next_thread_once_it_is_free() {
    let mut f = many_ended();
    f.object(2, wire::OBJECT_VARIABLE, 1, BASE, 64);
    f.count(1, 2, 64, 5, 6);
    f.object_count(2, 2, [5, 6]);
    f.credit(1, 2, 0, 7);
    f.credit(1, 2, 1, 70);
    f.credit(2, 1, 0, 50);
    end_all(&mut f);
    pass_slices(&mut f, &[1]);
    assert_eq!(free(&f), wire::MAX_THREADS - 2);
    f.thread(2, 1, 1);
    f.with_serial(2, THREADS + 1);
    f.map(1, 2, BASE + MIB, MIB);
    f.page(66, BASE + MIB, 1, THREADS + 1);
    // Counts begin at zero again.
    f.count(1, 2, 64, 4, 3);
    f.count(2, 2, 66, 1, 0);
    f.object_count(2, 2, [4, 3]);
    f.credit(1, 2, 0, 3);
    f.credit(2, 1, 0, 30);
    let p = f.finish(&mut NoNames);
    assert_eq!(p.threads.len() as u32, THREADS + 1);
    assert_eq!(accesses(&p, 1), [5, 6]);
    assert_eq!(accesses(&p, THREADS as usize), [5, 3]);
    assert_eq!(p.threads[THREADS as usize].creator, Some(ThreadIx(0)));
    assert_eq!([events(&p, 0, 1), events(&p, 0, THREADS)], [127, 33]);
    let touched: Vec<_> = p.first_touch.iter().map(|t| t.thread.0).collect();
    assert_eq!(touched, [1, THREADS]);
    let mapped = p.regions.iter().find(|r| r.address == BASE + MIB);
    assert_eq!(mapped.and_then(|r| r.thread), Some(ThreadIx(THREADS)));
    let counted: u64 = p.objects.iter().map(|o| o.reads).sum();
    assert_eq!(counted, 10);
    assert!(p.meta.limits.is_empty(), "{:?}", p.meta.limits);
}

/// What a thread that sleeps will count with others is theirs, not of those that come after them.
#[test]
fn slots_wait_for_a_thread_that_sleeps_in_the_slice_of_theirs() {
    let mut f = many_ended();
    f.thread(THREADS + 1, 1, 1);
    f.with_serial(THREADS + 1, THREADS + 1);
    end_all(&mut f);
    pass_slices(&mut f, &[1]);
    assert_eq!(free(&f), wire::MAX_THREADS - 2 - THREADS + 1 - 1);
    f.credit(THREADS + 1, 2, 0, 40);
    pass_slices(&mut f, &[1, THREADS + 1]);
    assert_eq!(free(&f), wire::MAX_THREADS - 3);
    assert_eq!(events(&f.finish(&mut NoNames), 1, THREADS), 40);
}

/// The caches of a process that has gone are read before others get its slots.
#[test]
fn what_a_process_left_unflushed_is_counted_when_its_slots_are_freed() {
    let mut f = many_ended();
    f.process(2, 1);
    f.thread(THREADS + 1, 2, 0);
    f.with_serial(THREADS + 1, THREADS + 1);
    f.entry(THREADS + 1, 3, 65, (10, 20), &[1]);
    end_all(&mut f);
    f.exit_process(2);
    pass_slices(&mut f, &[1]);
    assert_eq!(free(&f), wire::MAX_THREADS - 2);
    let p = f.finish(&mut NoNames);
    assert_eq!(accesses(&p, THREADS as usize), [10, 20]);
    assert_eq!(events(&p, 0, THREADS), 30);
}

/// A thread that is killed leaves what it has summed of samples; what went to its ring has no accesses any more.
#[test]
fn what_a_process_left_of_samples_has_its_lines() {
    let mut f = Fake::with_thread();
    f.module(1, 0x400000, 0x40_9000, "/bin/app");
    f.map(1, 1, BASE, MIB);
    f.page(64, BASE, 1, 1);
    f.site(1, 0x401010);
    f.entry(1, 3, 64, (300, 0), &[]);
    f.sample_sum(1, 127, BASE, 1, 256);
    f.sample_sum(1, 5, BASE, 1, 0);
    f.exit_process(1);
    let p = f.finish(&mut Names);
    let lines: Vec<_> = p.sites.iter().map(|s| (s.line, s.reads)).collect();
    assert_eq!(lines, [(0x10, 300)]);
}

/// Each executes a command: they are as many as processes.
#[test]
fn children_of_vfork_share_rows_as_processes_do() {
    let mut f = Fake::with_thread();
    f.map(1, 1, BASE, MIB);
    f.with_serial(1, 1);
    f.page(64, BASE, 1, 1);
    for batch in 0..3 {
        for slot in 2..=THREADS {
            f.thread(slot, 1, 0);
            f.with_serial(slot, batch * THREADS + slot);
            f.count(slot, slot, 64, 1, 0);
            f.end_thread(slot);
        }
        pass_slices(&mut f, &[1]);
    }
    let p = f.finish(&mut NoNames);
    assert_eq!(p.threads.len() as u32, THREADS);
    let reads = p.threads.iter().map(|t| t.reads).sum::<u64>();
    assert_eq!(reads, u64::from(3 * (THREADS - 1)));
}

/// Past some thousands, threads of the same family share rows; nothing is lost.
#[test]
fn rows_are_shared_past_the_limit() {
    let mut f = Fake::with_thread();
    f.map(1, 1, BASE, MIB);
    f.with_serial(1, 1);
    f.page(64, BASE, 1, 1);
    let (mut serial, all) = (1, 20_000);
    while serial < all {
        let slots: Vec<u32> = (2..4000).filter(|_| serial < all).collect();
        for slot in slots {
            serial += 1;
            if serial > all {
                break;
            }
            f.thread(slot, 1, 1);
            f.with_serial(slot, serial);
            f.count(slot, slot, 64, 1, 0);
            f.end_thread(slot);
        }
        pass_slices(&mut f, &[1]);
    }
    let p = f.finish(&mut NoNames);
    let rows = p.threads.len();
    assert!((8192..10_000).contains(&rows), "{rows}");
    assert_eq!(p.threads.iter().map(|t| t.reads).sum::<u64>(), 19_999);
    check_limit(&p, "are counted as one");
}
