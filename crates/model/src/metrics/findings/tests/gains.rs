//! Fixes that would cost more than they gain are not suggested.
use super::data::by;
use super::Made;
use crate::metrics::findings::{communication_imbalance, concentrated, first_touch, read_mostly};
use hither_profile::ObjectKind;

/// What is hot of pages that belong to nodes is dealt out by a loop over one stretch of them, or not at all: to interleave
/// them would make remote what is local.
#[test]
fn pages_that_belong_to_nodes_are_not_interleaved() {
    let stretch = |of_1: u32| {
        let made = Made::new(4).pages(48, 0, &by(0, 10));
        let made = made.pages(of_1, 1, &by(1, 100));
        let made = made.pages(32 - of_1, 2, &by(2, 100));
        made.pages(48, 3, &by(3, 10)).named("grid", 128)
    };
    let found = stretch(16).finds(concentrated::find);
    assert_eq!(found.fixes.len(), 1, "{found:?}");
    assert!(found.fixes[0].what.starts_with("Give each thread two"));
    let mut blocks = stretch(16);
    blocks.profile.objects[0].count = 4;
    blocks.finds_nothing(concentrated::find);
    // Every fourth page, most of them one thread's.
    let scattered = (0..32).fold(Made::new(4), |made, n| {
        let user = if n % 2 == 0 { 1 } else { n as usize % 4 };
        let made = made.pages(3, user as u32, &by(user, 1));
        made.pages(1, user as u32, &by(user, 100))
    });
    scattered
        .named("grid", 128)
        .finds_nothing(concentrated::find);
}

/// Three copies of 64 pages take 3 * 64 * 64 fetches, of which each page's are three quarters remote.
#[test]
fn what_is_fetched_about_once_is_not_worth_copies() {
    let made = |fetches: u64| {
        let made = Made::new(4).pages(64, 0, &[1000; 4]);
        made.fetched(64, fetches).named("grid", 64)
    };
    made(4 * 64 + 4).finds(read_mostly::find);
    made(4 * 64 - 4).finds_nothing(read_mostly::find);
}

/// Nobody can initialise in parallel what the C library fills when a thread is created.
#[test]
fn thread_local_variables_are_allocated_by_their_threads() {
    let blocks = (0..4).fold(Made::new(4), |made, t| made.pages(16, 0, &by(t, 100)));
    let mut made = blocks.named("grid", 64);
    let of_kind = |made: &Made| made.finds(first_touch::find).fixes[0].clone();
    assert!(of_kind(&made).what.starts_with("Let each thread write"));
    made.profile.objects[0].kind = ObjectKind::ThreadLocal;
    let fix = of_kind(&made);
    assert!(fix.what.contains("allocate its copy") && fix.copy.is_empty());
}

/// Two threads work and communicate with one another; two of the run-time system do little of either. Of 2400
/// instructions 1600 are two thirds.
#[test]
fn threads_that_communicate_as_they_work_are_no_imbalance() {
    let with = |threads: u32, helper: u64, events: &[(u32, u32, u64)]| {
        let mut made = Made::new(threads)
            .pages(1, 0, &vec![100; threads as usize])
            .talk(0..1, events);
        for thread in &mut made.profile.threads {
            thread.instructions = helper;
        }
        made.profile.threads[0].instructions = 1000;
        made.profile.threads[3].instructions = 600;
        made
    };
    let pair = [(0, 3, 8000)];
    with(4, 399, &pair).finds_nothing(communication_imbalance::find);
    with(4, 400, &pair).finds(communication_imbalance::find);
    // Both hand out work to four: they are waited for.
    let hubs = [0, 3].map(|hub| [1, 2, 4, 5].map(|t| (hub.min(t), hub.max(t), 2000)));
    with(6, 100, hubs.as_flattened()).finds(communication_imbalance::find);
}
