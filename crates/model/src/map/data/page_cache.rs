//! Pages that no placement moves: those of files, which lie in the kernel's page cache where whoever read the
//! file first has put them. A page of a private mapping that was written to is a copy of the program's own.
//!
//! Of a program or library it is not known which pages are the file's: those before the first that was
//! written, in any process, for its code and constants come first, and ld.so writes to what follows them.
use super::placeable_pages::{PlaceablePage, PlaceablePages};
use hither_profile::{Profile, RegionIx, RegionKind};
use std::collections::{BTreeSet, HashMap};

/// Which pages are the page cache's, by position.
#[must_use]
pub fn cached_pages(profile: &Profile, pages: &PlaceablePages) -> Vec<bool> {
    let written = WrittenPages::of(profile);
    let is_cached = |at: usize| {
        let parts = pages.parts(at).iter().chain([pages.page(at)]);
        { parts }.all(|part| written.is_cached(profile, part))
    };
    (0..pages.len()).map(is_cached).collect()
}

#[derive(Default)]
struct WrittenPages<'a> {
    /// Of private mappings of files.
    mapped: BTreeSet<(RegionIx, u32)>,
    /// Of each program and library, the first.
    program: HashMap<&'a str, u32>,
}

impl<'a> WrittenPages<'a> {
    fn of(profile: &'a Profile) -> WrittenPages<'a> {
        let mut written = WrittenPages::default();
        for row in profile.pages.rows().filter(|row| row.writes > 0) {
            let Some(region) = profile.regions.get(row.region.at()) else {
                continue;
            };
            let first = row.page.0;
            match region.kind {
                RegionKind::Elf => {
                    let known = written.program.entry(&region.file).or_insert(first);
                    *known = first.min(*known);
                }
                RegionKind::Mmap if region.mapped_file().is_some() => {
                    let pages = first..=first.saturating_add(row.following);
                    written.mapped.extend(pages.map(|page| (row.region, page)));
                }
                _ => {}
            }
        }
        written
    }

    fn is_cached(&self, profile: &Profile, page: &PlaceablePage) -> bool {
        let Some(region) = profile.regions.get(page.region.at()) else {
            return false;
        };
        let (first, end) = (page.first.0, page.first.0.saturating_add(page.count));
        // What `auto` has seen of a page is a sample: that no write was among it says nothing.
        let all_seen = !profile.meta.is_online();
        match region.kind {
            RegionKind::Shared => region.mapped_file().is_some(),
            RegionKind::Mmap if all_seen && region.mapped_file().is_some() => {
                let mut written = self.mapped.range((page.region, first)..(page.region, end));
                written.next().is_none()
            }
            RegionKind::Elf if all_seen && !region.file.is_empty() => {
                let written = self.program.get(region.file.as_str());
                written.is_none_or(|&written| end <= written)
            }
            _ => false,
        }
    }
}
