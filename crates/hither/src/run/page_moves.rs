//! Pages with memory that belong elsewhere from some moment on: they are moved from
//! outside, a few at a time, while the program runs.
use std::collections::VecDeque;
use std::io;

use hither_profile::{Nanos, PAGE_SIZE};
use hither_sys::{numa, Pid};

use super::guide::PageBind;

/// Pages that are moved at once: some 10 ms in which no stop of the program is handled.
const BATCH: usize = 2000;

/// Pages on their way, and how far they are.
#[derive(Debug)]
pub struct PageMoveQueue {
    binds: Vec<PageBind>,
    /// The first of `binds` that is not moved yet, and how many of its bytes are.
    next: usize,
    done: u64,
}

impl PageMoveQueue {
    pub fn new(binds: &[PageBind]) -> Self {
        PageMoveQueue {
            binds: binds.to_vec(),
            next: 0,
            done: 0,
        }
    }

    /// Whether there are pages that no batch has had yet.
    pub fn has_more(&self) -> bool {
        let rest = self.binds.get(self.next..).unwrap_or_default();
        rest.iter().map(|bind| bind.length).sum::<u64>() > self.done
    }

    /// The next pages and their nodes; none when all are moved.
    pub fn next_batch(&mut self) -> (Vec<u64>, Vec<u32>) {
        let (mut pages, mut nodes) = (Vec::new(), Vec::new());
        while let Some(bind) = self.binds.get(self.next).filter(|_| pages.len() < BATCH) {
            if self.done >= bind.length {
                (self.next, self.done) = (self.next + 1, 0);
                continue;
            }
            pages.push(bind.start + self.done);
            nodes.push(bind.node.0);
            self.done += PAGE_SIZE;
        }
        (pages, nodes)
    }
}

/// A page and its node.
type PageAndNode = (u64, u32);

/// What became of pages that were to move.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MovedPages {
    /// How many moved.
    pub there: u64,
    /// Those that did not: the kernel moves no page that two processes map, such as one that
    /// neither has written to since the fork.
    pub refused: Vec<PageAndNode>,
}

/// Pages that were refused: they are tried again, each time after twice as long, until the child
/// that shares them runs another program, ends or has a copy.
#[derive(Debug, Default)]
pub struct RefusedPages {
    waiting: VecDeque<RefusedBatch>,
}

/// Pages that were refused together.
#[derive(Debug, PartialEq, Eq)]
pub struct RefusedBatch {
    pub pid: Pid,
    pub pages: Vec<PageAndNode>,
    /// Times that they were tried again.
    pub tries: u32,
    due: Nanos,
}

impl RefusedPages {
    const FIRST_WAIT: Nanos = 1_000_000_000;
    /// Half a minute: who shares pages for longer is no child that is about to run something else.
    const MOST_TRIES: u32 = 5;

    /// Takes pages that have been tried again so many times.
    pub fn add(&mut self, pid: Pid, pages: Vec<PageAndNode>, tries: u32, now: Nanos) {
        if pages.is_empty() || tries >= Self::MOST_TRIES {
            return;
        }
        self.waiting.push_back(RefusedBatch {
            pid,
            pages,
            tries,
            due: now + (Self::FIRST_WAIT << tries),
        });
    }

    /// Those to try now.
    pub fn take_due(&mut self, now: Nanos) -> Option<RefusedBatch> {
        let due = self.waiting.iter().position(|batch| batch.due <= now)?;
        self.waiting.remove(due)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Those of the pages that belong there still.
pub fn still_wanted<'a>(
    mut pages: Vec<PageAndNode>,
    binds: impl Iterator<Item = &'a PageBind>,
) -> Vec<PageAndNode> {
    let mut binds: Vec<&PageBind> = binds.collect();
    binds.sort_unstable_by_key(|bind| bind.start);
    pages.retain(|(page, node)| {
        let before = binds.partition_point(|bind| bind.start <= *page);
        let bind = binds[..before].last();
        bind.is_some_and(|bind| page - bind.start < bind.length && bind.node.0 == *node)
    });
    pages
}

/// Moves those of the pages that have memory, but not on their node.
///
/// # Errors
/// When the process is gone.
pub fn move_pages(pid: Pid, pages: &[u64], nodes: &[u32]) -> io::Result<MovedPages> {
    let pid = nix::unistd::Pid::from_raw(pid);
    let now = numa::page_nodes(pid, pages)?;
    let astray = pages.iter().zip(nodes).zip(now);
    let astray = astray.filter(|((_, wanted), now)| now.is_some_and(|now| now != **wanted));
    let (pages, nodes): (Vec<u64>, Vec<u32>) = astray.map(|((p, n), _)| (*p, *n)).unzip();
    let got = numa::move_pages(pid, &pages, &nodes)?;
    let mut moved = MovedPages::default();
    for ((got, node), page) in got.iter().zip(&nodes).zip(&pages) {
        match *got == Some(*node) {
            true => moved.there += 1,
            false => moved.refused.push((*page, *node)),
        }
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_sys::Node;

    #[test]
    fn pages_come_in_batches_and_all_of_them() {
        let bind = |start, pages, node| PageBind {
            start,
            length: pages * PAGE_SIZE,
            node: Node(node),
        };
        let mut moves = PageMoveQueue::new(&[
            bind(0, 1500, 1),
            bind(1 << 30, 0, 9),
            bind(1 << 40, 1500, 2),
        ]);
        let (first, nodes) = moves.next_batch();
        assert_eq!((first.len(), nodes[1499], nodes[1500]), (BATCH, 1, 2));
        assert_eq!(first[1500], 1 << 40);
        assert!(moves.has_more());
        let (second, nodes) = moves.next_batch();
        assert_eq!((second.len(), nodes[0]), (1000, 2));
        assert_eq!(second[0], (1 << 40) + 500 * PAGE_SIZE);
        assert!(!moves.has_more());
        assert_eq!(moves.next_batch().0.len(), 0);
    }

    /// Pages that a child shared for the moment were never tried again.
    #[test]
    fn refused_pages_are_tried_again_for_half_a_minute() {
        const SECOND: Nanos = 1_000_000_000;
        let mut refused = RefusedPages::default();
        refused.add(7, Vec::new(), 0, 0);
        assert!(refused.is_empty());
        let pages = || vec![(PAGE_SIZE, 1)];
        refused.add(7, pages(), 0, 0);
        refused.add(8, pages(), 0, SECOND);
        let mut tried = Vec::new();
        for now in (0..100).map(|second| second * SECOND) {
            if let Some(batch) = refused.take_due(now).filter(|batch| batch.pid == 7) {
                tried.push(now / SECOND);
                refused.add(batch.pid, batch.pages, batch.tries + 1, now);
            }
        }
        assert_eq!(tried, [1, 3, 7, 15, 31]);
        assert!(refused.is_empty());
    }

    #[test]
    fn pages_that_belong_elsewhere_now_are_let_be() {
        let bind = |page, pages, node| PageBind {
            start: page * PAGE_SIZE,
            length: pages * PAGE_SIZE,
            node: Node(node),
        };
        let binds = [bind(20, 5, 2), bind(10, 5, 1)];
        let at = |page: u64, node| (page * PAGE_SIZE, node);
        let pages = vec![
            at(9, 1),
            at(10, 1),
            at(14, 1),
            at(15, 1),
            at(20, 1),
            at(24, 2),
        ];
        let kept = still_wanted(pages, binds.iter());
        assert_eq!(kept, [at(10, 1), at(14, 1), at(24, 2)]);
    }

    #[test]
    fn a_page_without_memory_is_neither_moved_nor_refused() {
        let own = std::process::id().cast_signed();
        let moved = move_pages(own, &[1 << 46], &[0]).expect("move_pages");
        assert_eq!(moved, MovedPages::default());
    }
}
