//! Whatever a program does: the same again is recognised whole, and nothing is ever asked
//! for outside of what was mapped.
use super::ProgramEvent::*;
use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// Of a thread: map this many pages, unmap one of its mappings, or grow one.
#[derive(Clone, Debug)]
enum Act {
    Map(usize, u64),
    Unmap(usize),
    Grow(usize),
    Brk(u64),
    Thread(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0usize..4, prop_oneof![1u64..6, 14u64..40, 90u64..110]).prop_map(|(t, p)| Act::Map(t, p)),
        2 => (0usize..100).prop_map(Act::Unmap),
        1 => (0usize..100).prop_map(Act::Grow),
        1 => (0u64..60).prop_map(Act::Brk),
        1 => (0usize..4).prop_map(Act::Thread),
    ]
}

/// A mapping as it happened: (thread, pages at first, number), address, pages now.
#[derive(Clone, Debug)]
struct MadeMapping {
    key: (u32, u64, u32),
    page: u64,
    pages: u64,
    live: bool,
}

/// Carries acts out: events, all mappings, and the most pages of the heap.
fn carry_out(acts: &[Act]) -> (Vec<ProgramEvent>, Vec<MadeMapping>, u64) {
    let (mut events, mut made): (Vec<ProgramEvent>, Vec<MadeMapping>) =
        (vec![Start("/bin/app"), Brk(100, 50)], vec![]);
    let mut counts: HashMap<(u32, u64), u32> = HashMap::new();
    let (mut threads, mut next, mut heap) = (1usize, 1000u64, 0);
    let tid = |thread: usize| 100 + thread as Tid;
    for act in acts {
        match act {
            Act::Map(thread, pages) if *thread < threads => {
                let count = counts.entry((*thread as u32, *pages)).or_default();
                let key = (*thread as u32, *pages, *count);
                *count += 1;
                made.push(MadeMapping {
                    key,
                    page: next,
                    pages: *pages,
                    live: true,
                });
                events.push(Map(tid(*thread), private(next, *pages)));
                // In between, so that what is unmapped is not the last area mapped.
                events.push(Brk(tid(*thread), 50 + heap));
                next += pages + 300;
            }
            Act::Unmap(at) if !made.is_empty() => {
                let at = at % made.len();
                if std::mem::take(&mut made[at].live) {
                    events.push(Unmap(tid(0), made[at].page, made[at].pages));
                }
            }
            Act::Grow(at) if !made.is_empty() => {
                // To a size that no other mapping has, or it could be taken for that.
                let at = at % made.len();
                let to = 200 + at as u64;
                let grown = &mut made[at];
                if grown.live && grown.pages < 200 {
                    events.push(Remap(tid(0), (grown.page, grown.pages), (next, to)));
                    (grown.page, grown.pages) = (next, to);
                    next += to + 300;
                }
            }
            Act::Brk(pages) => {
                heap = heap.max(*pages);
                events.push(Brk(tid(0), 50 + heap));
            }
            Act::Thread(creator) if *creator < threads && threads < 4 => {
                events.push(Thread(100, tid(threads), 0));
                threads += 1;
            }
            _ => {}
        }
    }
    (events, made, heap)
}

/// Every page of every other mapping on some node, as a profile of these acts would name them.
fn placement(made: &[MadeMapping], heap: u64, seed: u64) -> TestPlacement {
    let mut placed = TestPlacement::app();
    for _ in 1..4 {
        placed.thread(0, Some(0));
    }
    let node = |region: u64, page: u64| ((region * 7 + page / 3 + seed) % 4) as u32;
    let runs = |region: u64, pages: u64| -> Vec<PageTriple> {
        (0..pages)
            .map(|page| (page, 1, node(region, page)))
            .collect()
    };
    placed.region(
        region(RegionKind::Brk, None, 0, heap.max(1)),
        &runs(0, heap),
    );
    for (at, one) in (1..)
        .zip(made)
        .filter(|(at, _)| !(at + seed).is_multiple_of(3))
    {
        let (thread, _, ordinal) = one.key;
        placed.region(mmap(thread, one.pages, ordinal), &runs(at, one.pages));
    }
    placed
}

/// Whether pages lie side by side, in order, on the nodes that there are.
fn are_apart(binds: &[PageTriple]) -> bool {
    binds.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0) && binds.iter().all(|b| b.1 > 0 && b.2 < 4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_same_again_is_recognised_whole(acts in proptest::collection::vec(act(), 1..60), seed in 0u64..100) {
        let (events, made, heap) = carry_out(&acts);
        let placed = placement(&made, heap, seed);
        let mut r = placed.clone().recogniser();
        events.iter().for_each(|event| drop(apply(&mut r, event)));
        let told: HashMap<u32, Vec<PageTriple>> = r.recognised_regions(FIRST).iter()
            .map(|f| { assert!(!f.nearest, "{f:?}"); (f.region.expect("a region").0, pages(&f.binds)) })
            .collect();
        let of_heap = placed.0.phases[0].pages.iter().filter(|_| heap > 0).take(1);
        let starts = of_heap.map(|p| (p.region, 50));
        let placed_live = (1u64..).zip(&made).filter(|(at, _)| !(at + seed).is_multiple_of(3));
        let starts = starts.chain((1u32..).zip(placed_live).filter(|(_, (_, m))| m.live).map(|(r, (_, m))| (r, m.page)));
        for (region, start) in starts {
            let runs = placed.0.phases[0].pages.iter().find(|p| p.region == region).expect("placed");
            let mut expected: HashMap<u64, u32> = HashMap::new();
            for run in &runs.runs { expected.insert(start + run.first(), run.node().0); }
            let mut got: HashMap<u64, u32> = HashMap::new();
            for (first, count, node) in told.get(&region).into_iter().flatten() {
                got.extend((*first..first + count).map(|page| (page, *node)));
            }
            prop_assert_eq!(got, expected, "region {}", region);
        }
        let differ = r.notes().into_iter().find(|note| note.contains("differ"));
        prop_assert_eq!(differ, None);
    }

    /// A profile of one run, matched with another run.
    #[test]
    fn nothing_is_asked_outside_of_what_is_mapped(
        profile in proptest::collection::vec(act(), 1..60),
        acts in proptest::collection::vec(act(), 1..60),
        seed in 0u64..100,
    ) {
        let (_, made, heap) = carry_out(&profile);
        let mut r = placement(&made, heap, seed).recogniser();
        for event in carry_out(&acts).0 {
            let asked = apply(&mut r, &event);
            let (first, count) = match &event {
                Map(_, m) => (m.address / PAGE, m.length / PAGE),
                Remap(_, _, new) => *new,
                Brk(_, end) => (50, end - 50),
                _ => (0, 0),
            };
            prop_assert!(are_apart(&asked), "{:?}: {:?}", event, asked);
            prop_assert!(asked.iter().all(|b| first <= b.0 && b.0 + b.1 <= first + count), "{:?}: {:?}", event, asked);
        }
        for f in r.recognised_regions(FIRST) {
            prop_assert!(are_apart(&pages(&f.binds)), "{:?}", f);
        }
    }
}
