//! The data structures of a run that was observed: the variables of its programs, by their
//! symbols, and each heap, stack, mapping and piece of shared memory as a whole. Which
//! call allocated which part of a heap was not seen.
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use hither_profile::{
    Object, ObjectIx, ObjectKind, ObjectMember, ObjectRange, Profile, Region, RegionIx, RegionKind,
    PAGE_SIZE,
};

use crate::trace::symbolizer::{StaticObject, Symbolizer};
use hither_model::units::show_bytes;

/// Mappings of at least this many bytes are structures of their own.
const MIN_MAPPING: u64 = 64 << 10;

/// One part in so many of all faults: what has less of them hides nothing worth naming.
const UNTOLD: u64 = 50;

/// Reads of a page, by region and page.
type PageReads = BTreeMap<(RegionIx, u32), u64>;

/// Fills in the objects of a profile, with their estimated shares of the page faults.
pub fn name(profile: &mut Profile, naming: &mut dyn Symbolizer) {
    let mut pages = PageReads::new();
    for page in profile.pages.iter() {
        *pages.entry((page.region, page.page.0)).or_default() += page.reads;
    }
    let all: u64 = pages.values().sum();
    let mut found = LocatedStructures::default();
    let mut regions = std::mem::take(&mut profile.regions);
    for region in regions.iter_mut().filter(|r| r.kind == RegionKind::Elf) {
        if naming.has_fixed_address(Path::new(&region.file)) {
            region.file_offset = region.address;
        }
    }
    for (number, region) in (0..).map(RegionIx).zip(&regions) {
        match region.kind {
            // To read its symbols takes longer than hither took for all else.
            RegionKind::Elf if reads_of(number, &pages) * UNTOLD < all => {}
            RegionKind::Elf => found.add_variables((number, region), &pages, naming),
            _ => found.add_whole_region((number, region), &pages),
        }
    }
    profile.regions = regions;
    profile.objects = found.objects;
    profile.object_ranges = found.ranges;
    profile.members = found.members;
}

fn reads_of(region: RegionIx, pages: &PageReads) -> u64 {
    let touched = pages.range((region, 0)..=(region, u32::MAX));
    touched.map(|(_, reads)| reads).sum()
}

#[derive(Default)]
struct LocatedStructures {
    objects: Vec<Object>,
    ranges: Vec<ObjectRange>,
    members: Vec<ObjectMember>,
}

impl LocatedStructures {
    fn add(&mut self, object: Object, region: RegionIx, bytes: Range<u64>) -> ObjectIx {
        let number = ObjectIx(u32::try_from(self.objects.len()).unwrap_or(u32::MAX));
        self.objects.push(object);
        self.ranges.push(ObjectRange {
            object: number,
            region,
            offset: bytes.start,
            length: bytes.end - bytes.start,
        });
        number
    }

    fn add_whole_region(&mut self, (number, region): (RegionIx, &Region), pages: &PageReads) {
        let plain = region.file.is_empty();
        let (kind, name) = match region.kind {
            RegionKind::Mmap if region.size < MIN_MAPPING => return,
            RegionKind::Mmap if plain => (
                ObjectKind::Mmap,
                format!("mapping #{} of {}", region.ordinal, show_bytes(region.size)),
            ),
            RegionKind::Mmap => (ObjectKind::Mmap, region.file.clone()),
            RegionKind::Brk => (ObjectKind::Heap, "heap (brk)".to_owned()),
            RegionKind::Stack => (ObjectKind::Stack, "stack of the first thread".to_owned()),
            RegionKind::Shared => (ObjectKind::Shared, region.shown_file().to_owned()),
            _ => return,
        };
        let object = Object {
            name,
            kind,
            size: region.size,
            count: 1,
            process: region.process,
            owner: region.thread,
            reads: reads_of(number, pages),
            ..Object::default()
        };
        self.add(object, number, 0..region.size);
    }

    /// The variables on the pages of a program or library that were touched. Those on one
    /// page share its faults by their bytes there.
    fn add_variables(
        &mut self,
        (number, region): (RegionIx, &Region),
        pages: &PageReads,
        naming: &mut dyn Symbolizer,
    ) {
        let mut all = naming.static_objects(Path::new(&region.file));
        all.retain(|v| v.size > 0);
        let mut reads = vec![0.0; all.len()];
        all.sort_by_key(|v| v.vaddr);
        let offset = |v: &StaticObject| v.vaddr.wrapping_sub(region.file_offset);
        let longest = all.iter().map(|v| v.size).max().unwrap_or(0);
        for (&(_, page), &faults) in pages.range((number, 0)..=(number, u32::MAX)) {
            let page = u64::from(page) * PAGE_SIZE;
            let end = all.partition_point(|v| offset(v) < page + PAGE_SIZE);
            let start = all.partition_point(|v| offset(v) + longest <= page);
            let bytes = |v: &StaticObject| {
                let to = (offset(v) + v.size).min(page + PAGE_SIZE);
                to.saturating_sub(offset(v).max(page))
            };
            let here = &all[start.min(end)..end];
            let sum: u64 = here.iter().map(bytes).sum();
            for (variable, reads) in here.iter().zip(&mut reads[start.min(end)..end]) {
                *reads += faults as f64 * bytes(variable) as f64 / sum.max(1) as f64;
            }
        }
        let mut added = Vec::new();
        for (variable, reads) in all.iter().zip(reads) {
            let at = offset(variable);
            let fits = at
                .checked_add(variable.size)
                .is_some_and(|end| end <= region.size);
            // Rounded: what got less than half a fault tells nothing.
            if reads.round() < 1.0 || !fits {
                continue;
            }
            let object = Object {
                reads: reads.round() as u64,
                estimated: true,
                ..variable.to_object(region.process)
            };
            let object = self.add(object, number, at..at + variable.size);
            added.push((variable.vaddr, object));
        }
        let vaddrs: Vec<u64> = added.iter().map(|(vaddr, _)| *vaddr).collect();
        let found = naming.members(Path::new(&region.file), &vaddrs);
        for (fields, (_, object)) in found.into_iter().zip(added) {
            self.members
                .extend(fields.into_iter().map(|m| ObjectMember {
                    object,
                    name: m.name,
                    type_name: m.type_name,
                    offset: m.offset,
                    size: m.size,
                }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_profile::{PageNo, PageUse, Process};

    /// A program with three variables: `a` fills most of its second page, `b` what is left of
    /// that and all of the third; no thread touches `c`.
    struct ThreeVariables;

    impl Symbolizer for ThreeVariables {
        fn static_objects(&mut self, _: &Path) -> Vec<StaticObject> {
            let variable = |name: &str, vaddr, size| StaticObject {
                name: name.to_owned(),
                vaddr,
                size,
                ..StaticObject::default()
            };
            vec![
                variable("b", 0x41c00, 1024 + 4096),
                variable("a", 0x41000, 3072),
                variable("c", 0x45000, 8),
            ]
        }
    }

    #[test]
    fn variables_on_a_page_share_its_faults_by_their_bytes() {
        let region = |kind, size, file_offset| Region {
            kind,
            size,
            file_offset,
            ..Region::default()
        };
        let touched = |region, page, reads| PageUse {
            region: RegionIx(region),
            page: PageNo(page),
            reads,
            ..PageUse::default()
        };
        let mut profile = Profile {
            regions: vec![
                region(RegionKind::Elf, 0x6000, 0x40000),
                region(RegionKind::Brk, 0x9000, 0),
                // Too small to be told of.
                region(RegionKind::Mmap, 0x2000, 0),
            ],
            pages: vec![
                touched(0, 1, 30),
                touched(0, 1, 10),
                touched(0, 2, 5),
                touched(1, 8, 7),
                touched(2, 0, 9),
            ]
            .into(),
            ..Profile::default()
        };
        profile.meta.processes.push(Process::default());
        name(&mut profile, &mut ThreeVariables);
        let found = profile.objects.iter();
        let found: Vec<_> = found
            .map(|o| (o.name.as_str(), o.reads, o.estimated))
            .collect();
        let expected = [("a", 30, true), ("b", 15, true), ("heap (brk)", 7, false)];
        assert_eq!(found, expected);
        let ranges = profile.object_ranges.iter();
        let ranges: Vec<_> = ranges.map(|r| (r.region.0, r.offset, r.length)).collect();
        assert_eq!(
            ranges,
            [(0, 0x1000, 3072), (0, 0x1c00, 5120), (1, 0, 0x9000)]
        );
    }
}
