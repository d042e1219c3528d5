//! Page ids whose pages have ended are handed to the target again, so that the segment grows with
//! the memory that lives and not with all that there ever was.
//!
//! Ids are reused by the group. Once enough pages have ended, the groups that have ended as a whole
//! are found. Line caches may still hold lines of them, and enter no more: a thread has emptied its
//! own when it is in a later slice, and those of other threads are looked through. Then the counts of
//! the groups are read, and kept by the name of each page. To have fewer caches to look through, it
//! waits for later slices, unless as many pages have ended meanwhile.
use super::CollectorEngine;
use crate::trace::collector::deadline::Deadline;
use crate::trace::collector::pages::{page_and_thread, page_thread_key};
use crate::trace::collector::unflushed::{arena_owners, for_each_unflushed};
use hither_sys::{wire, Segment};
use std::collections::HashSet;

/// Pages that have ended before ids are used again: below, a run is what it was.
const LEAST_ENDED: u64 = 32_768;
/// With more pages it is this share of them, so that the work grows with the number of pages.
const ENDED_SHARE: u64 = 8;
/// Traced slices until threads that run have emptied their line caches.
const GRACE: u32 = 2;

/// Groups of page ids that are about to be used again.
#[derive(Default)]
pub struct PageReuse {
    groups: Vec<u32>,
    /// The epoch in which they were found to have ended.
    epoch: u32,
    /// Pages that had ended when it was last looked.
    looked: u64,
}

impl PageReuse {
    /// Whether enough pages have ended since it was last looked.
    fn is_due(&self, segment: &Segment) -> bool {
        let share = u64::from(segment.next_page()) / ENDED_SHARE;
        let ended = segment.ended_pages().saturating_sub(self.looked);
        ended >= share.max(LEAST_ENDED)
    }

    fn find_groups(&mut self, segment: &Segment, epoch: u32) {
        self.looked = segment.ended_pages();
        self.epoch = epoch;
        let groups = 1..segment.next_page().div_ceil(wire::BLOCK_PAGES);
        self.groups = groups.filter(|&g| segment.group_has_ended(g)).collect();
    }

    /// The groups found, without those of which a line cache holds lines.
    fn take_groups(&mut self, segment: &Segment, deadline: &Deadline) -> HashSet<u32> {
        let mut groups: HashSet<u32> = self.groups.drain(..).collect();
        for (_, thread) in arena_owners(segment) {
            if thread.epoch <= self.epoch {
                for_each_unflushed(segment, &thread, deadline, |left| {
                    groups.remove(&(left.page / wire::BLOCK_PAGES));
                });
            }
        }
        groups
    }
}

impl CollectorEngine {
    /// Lets the target use ids again where it is time for it.
    pub fn reuse_pages(&mut self) {
        let epoch = self.epoch();
        let reuse = &mut self.page_reuse;
        let due = reuse.is_due(&self.segment);
        let found = !reuse.groups.is_empty();
        if found && (due || epoch.saturating_sub(reuse.epoch) >= GRACE) {
            let groups = reuse.take_groups(&self.segment, &self.deadline);
            self.reuse_groups(&groups);
        } else if due && !found {
            reuse.find_groups(&self.segment, epoch);
        }
    }

    fn reuse_groups(&mut self, groups: &HashSet<u32>) {
        // What threads wrote down before their lines of these pages were evicted.
        self.drain_samples();
        let target = &mut self.target_state;
        let rows = self.page_reader.read_groups(&self.segment, target, groups);
        self.pages
            .add_rows(self.current_slice().saturating_sub(1), rows);
        let unnamed = self.page_reader.unnamed_groups();
        let mut groups: Vec<u32> = groups.difference(&unnamed).copied().collect();
        groups.sort_unstable();
        let pages = |group: &u32| group * wire::BLOCK_PAGES..(group + 1) * wire::BLOCK_PAGES;
        let kept = self.page_reader.end_pages(groups.iter().flat_map(pages));
        self.lines.change_pages(&kept);
        self.pages.change_keys(|key| {
            let (page, thread) = page_and_thread(key);
            kept.get(&page).map(|&kept| page_thread_key(kept, thread))
        });
        for run in groups.chunk_by(|a, b| a + 1 == *b) {
            self.segment.reuse_groups(run[0], run.len() as u32);
        }
    }
}
