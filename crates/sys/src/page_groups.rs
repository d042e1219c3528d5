//! The part of the segment by which page ids are used again, a group at a time.
use crate::segment::Segment;
use crate::segment_written::WrittenPage;
use crate::wire::{self, SegmentHeader};
use std::collections::BTreeSet;
use std::mem::offset_of;

impl Segment {
    /// Page ids that have ended so far.
    #[must_use]
    pub fn ended_pages(&self) -> u64 {
        self.load_u64(offset_of!(SegmentHeader, ended_pages) as u64)
    }

    /// Whether all page ids of a group have ended and have not been used again since.
    #[must_use]
    pub fn group_has_ended(&self, group: u32) -> bool {
        group < wire::PAGE_GROUPS && self.load_u64(self.ended_at(group)) == u64::MAX
    }

    fn ended_at(&self, group: u32) -> u64 {
        self.layout().ended + u64::from(group) * 8
    }

    /// The private pages of processes that are no more have ended, and with them the ids that their threads reserved
    /// and did not use: a thread that an exit of its process or an exec ends cannot say so itself.
    pub fn end_pages_of(&self, processes: &BTreeSet<u32>) {
        let mut ended = 0;
        let mut written = WrittenPage::default();
        for group in 1..self.next_page().div_ceil(wire::BLOCK_PAGES) {
            let (mut own, mut used) = (0u64, 0u64);
            for n in 0..wire::BLOCK_PAGES {
                let id = group * wire::BLOCK_PAGES + n;
                let record = size_of::<wire::SegmentPage>() as u64;
                let at = self.layout().pages + u64::from(id) * record;
                if !written.is_written(at, |at| self.written_from(at)) {
                    continue;
                }
                let page = self.page(id);
                let is_used = page.first_thread != 0;
                let is_own = page.shared == 0 && processes.contains(&page.process);
                used |= u64::from(is_used) << n;
                own |= u64::from(is_used && is_own) << n;
            }
            // A thread reserves a group for itself.
            let all = own != 0 && own == used;
            let (at, new) = (self.ended_at(group), if all { u64::MAX } else { own });
            ended += u64::from((new & !self.load_u64(at)).count_ones());
            self.set_bits(at, new);
        }
        self.add_u64(offset_of!(SegmentHeader, ended_pages) as u64, ended);
    }

    /// Lets the target use the page ids of groups again, as if they were new: `count` groups from
    /// `first` on. Nobody may count for them any more. False if their memory cannot be emptied:
    /// they stay as they are.
    pub fn reuse_groups(&self, first: u32, count: u32) -> bool {
        let l = self.layout();
        let [from, pages] = [first, count].map(|n| u64::from(n) * u64::from(wire::BLOCK_PAGES));
        let record = size_of::<wire::SegmentPage>() as u64;
        let users = size_of::<wire::PageUsers>() as u64;
        let fits = first
            .checked_add(count)
            .is_some_and(|end| end <= wire::PAGE_GROUPS);
        let emptied = fits
            && [
                (l.shadow, l.shadow_bytes),
                (l.page_users, users),
                (l.pages, record),
            ]
            .iter()
            .all(|(area, bytes)| self.make_zero(area + from * bytes, pages * bytes).is_ok());
        if !emptied {
            return false;
        }
        let tail_at = offset_of!(SegmentHeader, free_tail) as u64;
        let tail = self.load_u64(tail_at);
        for (group, n) in (first..first + count).zip(tail..) {
            self.store_u64(self.ended_at(group), 0);
            let slot = n % u64::from(wire::PAGE_GROUPS);
            self.store_u32(l.free_groups + slot * 4, group);
        }
        self.store_u64(tail_at, tail.wrapping_add(count.into()));
        true
    }
}
