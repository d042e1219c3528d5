//! Pages with memory that belong elsewhere from some moment on: they are moved from
//! outside, a few at a time, while the program runs.
use std::io;

use hither_profile::PAGE_SIZE;
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

/// Moves those of the pages that have memory, but not on their node. How many are there now.
///
/// # Errors
/// When the process is gone.
pub fn move_pages(pid: Pid, pages: &[u64], nodes: &[u32]) -> io::Result<u64> {
    let pid = nix::unistd::Pid::from_raw(pid);
    let now = numa::page_nodes(pid, pages)?;
    let astray = pages.iter().zip(nodes).zip(now);
    let astray = astray.filter(|((_, wanted), now)| now.is_some_and(|now| now != **wanted));
    let (pages, nodes): (Vec<u64>, Vec<u32>) = astray.map(|((p, n), _)| (*p, *n)).unzip();
    let got = numa::move_pages(pid, &pages, &nodes)?;
    let there = got
        .iter()
        .zip(&nodes)
        .filter(|(got, node)| **got == Some(**node));
    Ok(there.count() as u64)
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
}
