//! Counts of a run of which only some slices were traced.
use super::fake::{Fake, MIB};
use super::{check_limit, Names, NoNames};
use hither_sys::wire;

#[test]
fn sampled_counts_are_scaled_per_thread() {
    let mut f = Fake::new(|options| options.sample = Some(0.5));
    f.process(1, 0);
    f.thread(1, 1, 0);
    f.thread(2, 1, 0);
    f.executed(1, 400, 100);
    f.map(1, 1, 0x7f00_0000_0000, MIB);
    f.page(64, 0x7f00_0000_0000, 1, 1);
    f.count(1, 1, 64, 10, 5);
    f.count(2, 2, 64, 10, 5);
    f.credit(1, 2, 1, 10);
    let p = f.finish(&mut NoNames);
    assert_eq!((p.threads[0].reads, p.threads[0].writes), (40, 20));
    assert_eq!(p.threads[1].reads, 10);
    assert_eq!(p.matrix().get(0, 1), 20);
    assert_eq!(p.pages.iter().map(|u| u.reads).sum::<u64>(), 50);
}

/// The first fifty slices are all traced, after that one of two.
#[test]
fn counts_are_scaled_by_what_their_stage_left_out() {
    let mut f = Fake::new(|options| options.sample = Some(0.5));
    f.process(1, 0);
    f.thread(1, 1, 0);
    f.map(1, 1, 0x7f00_0000_0000, MIB);
    f.page(64, 0x7f00_0000_0000, 1, 1);
    f.module(1, 0x400000, 0x40_9000, "/bin/app");
    f.object(2, wire::OBJECT_VARIABLE, 1, 0x406000, 64);
    f.executed(1, 100, 100);
    f.count(1, 1, 64, 10, 5);
    f.object_count(1, 2, [10, 5]);
    (0..60).for_each(|_| f.engine.end_slice());
    // Of 300 accesses more, a third in traced slices.
    f.executed(1, 400, 200);
    f.count(1, 1, 64, 14, 5);
    f.object_count(1, 2, [14, 5]);
    let p = f.finish(&mut Names);
    assert_eq!((p.threads[0].reads, p.threads[0].writes), (22, 5));
    assert_eq!(p.pages.iter().map(|u| u.reads).sum::<u64>(), 22);
    // What slices have is what the run has.
    assert_eq!(p.slices.iter().map(|s| s.accesses).sum::<u64>(), 27);
    let left = p.objects.iter().find(|o| o.name == "left");
    assert_eq!(left.map(|o| (o.reads, o.writes)), Some((22, 5)));
    assert!(p.meta.limits.iter().all(|l| !l.contains("too low")));
}

#[test]
fn threads_that_sampling_has_missed_are_told_of() {
    let mut f = Fake::new(|options| options.sample = Some(0.5));
    f.process(1, 0);
    f.thread(1, 1, 0);
    f.thread(2, 1, 0);
    f.executed(1, 900, 450);
    f.executed(2, 100, 0);
    let p = f.finish(&mut NoNames);
    check_limit(&p, "10 % of the accesses");
}

/// Accesses that samples do not stand for, by far, have no line: one sampled read of 10,000 is nothing to go by.
#[test]
fn samples_that_are_far_too_few_do_not_speak_for_all_accesses() {
    let mut f = Fake::with_thread();
    f.module(1, 0x400000, 0x40_9000, "/bin/app");
    f.object(2, wire::OBJECT_VARIABLE, 1, 0x404000, 0x2000);
    f.page(64, 0x404000, 1, 1);
    f.count(1, 1, 64, 10_000, 0);
    f.object_count(1, 2, [10_000, 0]);
    f.site(1, 0x401010);
    f.sample(1, (0x404000, 2), 1, 1, 0);
    let sites = f.finish(&mut Names).sites;
    let reads: Vec<u64> = sites.iter().map(|s| s.reads).collect();
    assert_eq!(reads, [32]);
}
