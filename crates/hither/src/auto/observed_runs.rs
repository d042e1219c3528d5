//! Where pages belong that no fault has told of. A fault is of one page, and two of each of
//! all pages would take minutes where the budget is small and memory large. But threads use
//! memory in runs: where many pages in a row that were seen were used from one node last, those
//! between them belong there too. Where that is wrong, their own faults will tell.
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use hither_profile::NodeIx;

use super::analysis::{MemoryObject, ObjectPage, SharerId, TABLE_ENTRIES};

/// Pages in a row that must have been used from one node. Where threads of two nodes take turns
/// page by page, so many are of one node by chance in a few cases of a hundred.
const RUN: usize = 8;
/// Pages between two that were seen, at most.
const GAP: u64 = 4096;

/// A page that was seen.
#[derive(Clone, Copy, Debug)]
struct SeenPage {
    /// Who used it last.
    thread: SharerId,
    /// Where the pages from here to the next one that was seen were sent.
    sent: Option<NodeIx>,
}

/// Pages of one object, the first and the last of which were seen, that belong on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedRun {
    pub object: MemoryObject,
    pub pages: RangeInclusive<u64>,
    pub node: NodeIx,
}

#[derive(Debug, Default)]
pub struct ObservedRuns {
    seen: BTreeMap<ObjectPage, SeenPage>,
}

impl ObservedRuns {
    /// A thread used a page. What that tells of the pages around it, unless it was told before.
    pub fn observe(
        &mut self,
        page: ObjectPage,
        thread: SharerId,
        node_of: impl Fn(SharerId) -> Option<NodeIx>,
    ) -> Vec<ObservedRun> {
        let Some(node) = node_of(thread) else {
            return Vec::new();
        };
        if let Some(known) = self.seen.get_mut(&page) {
            known.thread = thread;
        } else if self.seen.len() < TABLE_ENTRIES {
            let before = self.seen.range(..page).next_back();
            let before = before.filter(|(at, _)| at.object == page.object);
            let sent = before.and_then(|(_, seen)| seen.sent);
            self.seen.insert(page, SeenPage { thread, sent });
        } else {
            return Vec::new();
        }
        let of_run = |before: &mut u64, (at, seen): (&ObjectPage, &SeenPage)| {
            let near = at.object == page.object && at.number.abs_diff(*before) <= GAP;
            *before = at.number;
            (near && node_of(seen.thread) == Some(node)).then_some(at.number)
        };
        let left = self.seen.range(..page).rev().take(RUN - 1);
        let mut run: Vec<u64> = left.scan(page.number, of_run).collect();
        run.reverse();
        let right = self.seen.range(page..).take(RUN);
        run.extend(right.scan(page.number, of_run));
        self.send(page.object, &run, node)
    }

    /// Threads were mapped anew: what belongs elsewhere now.
    pub fn threads_mapped(
        &mut self,
        node_of: impl Fn(SharerId) -> Option<NodeIx>,
    ) -> Vec<ObservedRun> {
        let seen: Vec<(ObjectPage, Option<NodeIx>)> = self
            .seen
            .iter()
            .map(|(at, seen)| (*at, node_of(seen.thread)))
            .collect();
        let continues = |a: &(ObjectPage, Option<NodeIx>), b: &(ObjectPage, Option<NodeIx>)| {
            a.0.object == b.0.object && b.0.number - a.0.number <= GAP && a.1 == b.1
        };
        let mut runs = Vec::new();
        for run in seen.chunk_by(continues) {
            if let Some(node) = run[0].1 {
                let pages: Vec<u64> = run.iter().map(|(at, _)| at.number).collect();
                runs.extend(self.send(run[0].0.object, &pages, node));
            }
        }
        runs
    }

    /// Those of the gaps in a run that were not sent there before, if it is long enough.
    fn send(&mut self, object: MemoryObject, run: &[u64], node: NodeIx) -> Vec<ObservedRun> {
        if run.len() < RUN {
            return Vec::new();
        }
        let mut sent: Vec<ObservedRun> = Vec::new();
        for gap in run.windows(2) {
            let at = ObjectPage {
                object,
                number: gap[0],
            };
            let Some(seen) = self.seen.get_mut(&at) else {
                continue;
            };
            if seen.sent.replace(node) == Some(node) {
                continue;
            }
            match sent.last_mut() {
                Some(last) if *last.pages.end() == gap[0] => {
                    last.pages = *last.pages.start()..=gap[1];
                }
                _ => sent.push(ObservedRun {
                    object,
                    pages: gap[0]..=gap[1],
                    node,
                }),
            }
        }
        sent
    }

    /// These are gone, with their pages.
    pub fn forget_objects(&mut self, gone: &[MemoryObject]) {
        if !gone.is_empty() {
            self.seen.retain(|page, _| !gone.contains(&page.object));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u64) -> ObjectPage {
        ObjectPage {
            object: MemoryObject(1),
            number,
        }
    }

    /// Threads 0 and 1 are on node 0, 2 and 3 on node 1, the others nowhere.
    fn node_of(thread: SharerId) -> Option<NodeIx> {
        (thread.0 < 4).then_some(NodeIx(u32::from(thread.0) / 2))
    }

    /// What (page, thread) told in the end: first and last page and node.
    fn told(seen: &[(u64, u16)]) -> Vec<(u64, u64, u32)> {
        let mut runs = ObservedRuns::default();
        let all = seen
            .iter()
            .flat_map(|&(number, thread)| runs.observe(page(number), SharerId(thread), node_of));
        let all = all.map(|run| (*run.pages.start(), *run.pages.end(), run.node.0));
        all.collect()
    }

    #[test]
    fn pages_between_others_of_a_node_belong_there() {
        let eight: Vec<(u64, u16)> = (0..8).map(|n| (10 * n, (n % 2) as u16)).collect();
        assert_eq!(told(&eight[..7]), []);
        assert_eq!(told(&eight), [(0, 70, 0)]);
        let backwards: Vec<(u64, u16)> = eight.iter().rev().copied().collect();
        assert_eq!(told(&backwards), [(0, 70, 0)]);
        // Told once, and of the gap that is new.
        let more = [(35, 0), (40, 1), (90, 0)];
        let more: Vec<(u64, u16)> = eight.iter().chain(&more).copied().collect();
        assert_eq!(told(&more), [(0, 70, 0), (70, 90, 0)]);
    }

    #[test]
    fn other_nodes_and_gaps_end_a_run() {
        let run = |break_at: u64, thread: u16, far: u64| {
            let at = |n: u64| if n < 4 { n } else { n + far };
            let thread = |n: u64| if n == break_at { thread } else { 0 };
            told(&(0..8).map(|n| (at(n), thread(n))).collect::<Vec<_>>())
        };
        assert_eq!(run(9, 0, 0), [(0, 7, 0)]);
        assert_eq!(run(3, 2, 0), []);
        assert_eq!(run(3, 7, 0), []);
        assert_eq!(run(9, 0, GAP - 1), [(0, 7 + GAP - 1, 0)]);
        assert_eq!(run(9, 0, GAP), []);
    }

    #[test]
    fn pages_go_where_their_threads_went() {
        let mut runs = ObservedRuns::default();
        for n in 0..8 {
            runs.observe(page(n), SharerId(0), node_of);
        }
        let gone = |_: SharerId| Some(NodeIx(3));
        let expected = ObservedRun {
            object: MemoryObject(1),
            pages: 0..=7,
            node: NodeIx(3),
        };
        assert_eq!(runs.threads_mapped(gone), [expected]);
        assert_eq!(runs.threads_mapped(gone), []);
        runs.forget_objects(&[MemoryObject(1)]);
        assert_eq!(runs.threads_mapped(node_of), []);
    }
}
