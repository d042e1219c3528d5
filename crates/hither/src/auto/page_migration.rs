//! Moving pages to the nodes on which they belong, some at a time.
use std::io;
use std::ops::RangeInclusive;

use foldhash::{HashMap, HashMapExt};
use hither_profile::{Nanos, NodeIx};
use hither_sys::numa;

use super::analysis::{ObjectPage, SharingDetector};
use hither_sys::{Node, Pid};

/// What moving a page takes, in nanoseconds, and pages of one batch: what may be spent, but never so
/// few that it would not end, nor so many that nothing else is done.
pub const MOVE_COST: Nanos = 4000;
const BATCH: RangeInclusive<usize> = 128..=8192;
/// Pages that wait at most; those that find no room come back with their next fault.
const MAX_WAITING: usize = 1 << 16;

/// A page and one of the addresses that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTarget {
    pub pid: Pid,
    pub address: u64,
    pub node: NodeIx,
}

/// Pages that may have to move.
#[derive(Debug, Default)]
pub struct PageMigrator {
    waiting: HashMap<ObjectPage, PageTarget>,
    pub moved: u64,
    /// Pages moved since the last call that took this list, and their nodes.
    pub fresh: Vec<(ObjectPage, NodeIx)>,
    /// Pages that the kernel did not move.
    pub refused: u64,
}

impl PageMigrator {
    /// The page belongs there, or nowhere in particular any more.
    pub fn set_target(&mut self, page: ObjectPage, place: Option<PageTarget>) {
        match place {
            Some(place) if self.waiting.len() < MAX_WAITING || self.waiting.contains_key(&page) => {
                self.waiting.insert(page, place);
            }
            Some(_) => {}
            None if self.waiting.is_empty() => {}
            None => {
                self.waiting.remove(&page);
            }
        }
    }

    #[must_use]
    pub fn has_targets(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The process is gone.
    pub fn remove_process(&mut self, pid: Pid) {
        self.waiting.retain(|_, place| place.pid != pid);
    }

    /// Moves those that are not where they belong, as many as are affordable. How many.
    ///
    /// # Errors
    /// When the kernel does not let us move any.
    pub fn migrate_batch(
        &mut self,
        nodes: &[Node],
        affordable: u64,
        detector: &mut dyn SharingDetector,
    ) -> io::Result<u64> {
        let batch = (affordable as usize).clamp(*BATCH.start(), *BATCH.end());
        let mut by_process: HashMap<Pid, Vec<(ObjectPage, PageTarget)>> = HashMap::new();
        let some: Vec<ObjectPage> = self.waiting.keys().copied().take(batch).collect();
        for page in some {
            if let Some(place) = self.waiting.remove(&page) {
                by_process.entry(place.pid).or_default().push((page, place));
            }
        }
        let mut moved = 0;
        for (pid, pages) in by_process {
            moved += match self.move_of(pid, &pages, nodes, detector) {
                Err(e) if is_gone(&e) => 0,
                moved => moved?,
            };
        }
        self.moved += moved;
        Ok(moved)
    }

    fn move_of(
        &mut self,
        pid: Pid,
        pages: &[(ObjectPage, PageTarget)],
        nodes: &[Node],
        detector: &mut dyn SharingDetector,
    ) -> io::Result<u64> {
        let pid = nix::unistd::Pid::from_raw(pid);
        let addresses: Vec<u64> = pages.iter().map(|(_, place)| place.address).collect();
        let now = numa::page_nodes(pid, &addresses)?;
        let target = |place: &PageTarget| nodes.get(place.node.at()).map(|node| node.0);
        let astray: Vec<(ObjectPage, u64, u32)> = pages
            .iter()
            .zip(now)
            .filter_map(|(&(page, place), now)| {
                let target = target(&place)?;
                (now? != target).then_some((page, place.address, target))
            })
            .collect();
        if astray.is_empty() {
            return Ok(0);
        }
        let addresses: Vec<u64> = astray.iter().map(|a| a.1).collect();
        let targets: Vec<u32> = astray.iter().map(|a| a.2).collect();
        let after = numa::move_pages(pid, &addresses, &targets)?;
        let mut moved = 0;
        for ((page, _, target), after) in astray.into_iter().zip(after) {
            if after == Some(target) {
                detector.page_migrated(page);
                let index = nodes.iter().position(|node| node.0 == target);
                let index = index.and_then(|at| u32::try_from(at).ok());
                self.fresh.extend(index.map(|at| (page, NodeIx(at))));
                moved += 1;
            } else {
                self.refused += 1;
            }
        }
        Ok(moved)
    }
}

/// The kernel's words for a process that ended, or is about to and has no memory any more.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(nix::libc::ESRCH | nix::libc::EINVAL)
    )
}
