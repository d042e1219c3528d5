//! Whose a region is: a forked process has its parent's until it uses it, and one that goes on in the row of
//! another (process_rows.rs) has that one's.
use super::region_origin::RegionOrigin;
use super::regions::RegionMap;
use hither_profile::{Region, RegionKind};

impl RegionMap {
    pub fn row_of(&self, process: u32) -> u32 {
        self.rows.get(&process).copied().unwrap_or(process)
    }

    /// The region that an earlier process of its row had for the same.
    pub fn take_left_region(&mut self, process: u32, region: &Region) -> Option<u32> {
        let row = *self.rows.get(&process).filter(|&&row| row != process)?;
        let left = (row, RegionOrigin::of(region), region.file.clone());
        self.left.get_mut(&left)?.pop()
    }

    /// The region as `process` owns it: itself, or a copy when it was inherited.
    pub(super) fn own_copy(&mut self, process: u32, region: u32) -> u32 {
        let Some(known) = self.all.get(region as usize) else {
            return region;
        };
        let row = self.row_of(process);
        if known.process == row || known.region.kind == RegionKind::Shared {
            return region;
        }
        if let Some(&own) = self.inherited.get(&(row, region)) {
            return own;
        }
        let copy = Region {
            thread: None,
            ..known.region.clone()
        };
        let anonymous = known.anonymous;
        let own = self.add(process, anonymous, copy);
        self.inherited.insert((row, region), own);
        own
    }

    /// The region as a process came to own it, if it did.
    pub fn owned_by(&self, process: u32, region: u32) -> u32 {
        let own = self.inherited.get(&(self.row_of(process), region));
        own.copied().unwrap_or(region)
    }

    /// A process has ended, and all that it did has been read: its regions are for the next one of its row.
    pub fn leave_process(&mut self, process: u32) {
        let row = self.row_of(process);
        self.ordinals.remove(&process);
        self.brk.remove(&process);
        let intervals = self.snapshot(process, usize::MAX);
        let mut own: Vec<u32> = intervals.iter().map(|i| i.region).collect();
        own.extend(self.late_modules.leave_process(process));
        own.sort_unstable();
        own.dedup();
        for region in own.into_iter().rev() {
            let Some(known) = self.all.get_mut(region as usize) else {
                continue;
            };
            let is_own = known.process == row && known.region.kind != RegionKind::Shared;
            // Mappings that ended before it are in `ended`.
            if is_own && (known.mapped > 0 || !known.is_private_memory()) {
                known.mapped = 0;
                let left = (row, known.origin, known.region.file.clone());
                let left = self.left.entry(left).or_default();
                if !left.contains(&region) {
                    left.push(region);
                }
            }
        }
        // Code that it was the first to execute may still be asked for.
        if let Some(space) = self.spaces.get_mut(&process).filter(|_| row != process) {
            let all = &self.all;
            self.budget.give_back(space.bytes());
            space.keep_only(|region| {
                all.get(region as usize)
                    .is_some_and(|known| known.region.kind == RegionKind::Elf)
            });
            self.budget.spend(space.bytes());
        }
    }
}
