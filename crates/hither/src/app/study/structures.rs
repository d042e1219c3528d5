//! Which data structure an address belongs to.
use std::collections::HashMap;

use hither_profile::{Profile, RegionIx, PAGE_SIZE};

use super::run_recording::SimWindow;

/// Structures that are counted separately, the most used; all others are one more.
const MOST: usize = 20;

/// Structures by region and offset.
pub struct StructureIndex {
    pub names: Vec<String>,
    /// By region: begin, end, number of the structure; in order.
    ranges: HashMap<RegionIx, Vec<(u64, u64, u32)>>,
}

impl StructureIndex {
    pub fn of(profile: &Profile) -> StructureIndex {
        let used = |at: &usize| {
            let object = &profile.objects[*at];
            std::cmp::Reverse(object.reads.saturating_add(object.writes))
        };
        let mut order: Vec<usize> = (0..profile.objects.len()).collect();
        order.sort_by_key(used);
        order.truncate(MOST);
        let number: HashMap<usize, u32> = order.iter().copied().zip(0..).collect();
        let mut ranges: HashMap<RegionIx, Vec<(u64, u64, u32)>> = HashMap::new();
        for range in &profile.object_ranges {
            if let Some(number) = number.get(&range.object.at()) {
                let end = range.offset.saturating_add(range.length);
                let of_region = ranges.entry(range.region).or_default();
                of_region.push((range.offset, end, *number));
            }
        }
        for of_region in ranges.values_mut() {
            of_region.sort_unstable();
        }
        let names = order.iter().map(|at| profile.objects[*at].name.clone());
        StructureIndex {
            names: names.chain(["(others)".to_owned()]).collect(),
            ranges,
        }
    }

    /// The structure that an address of the one space belongs to.
    pub fn structure_at(&self, window: &SimWindow, address: u64) -> u32 {
        let others = self.names.len() as u32 - 1;
        let found = || {
            let (region, page) = window.layout.region_of_page(address / PAGE_SIZE)?;
            let offset = page.checked_mul(PAGE_SIZE)? + address % PAGE_SIZE;
            let ranges = self.ranges.get(&region)?;
            let behind = ranges.partition_point(|(begin, ..)| *begin <= offset);
            let (_, end, number) = ranges[behind.checked_sub(1)?];
            (offset < end).then_some(number)
        };
        found().unwrap_or(others)
    }
}
