//! Memory that processes share: files and System V segments by their names, the rest by its
//! order. A memory policy of it holds for all processes that map it, so the first to map it
//! for writing sets the policy.
use super::file_names::{common_numbers, file_name, in_common, skeleton, without_deleted};
use super::interval_map::{BindEffect, SpaceInterval};
use super::memory_areas::{MemoryArea, RegionMatch};
use super::page_runs::{GapRule, RegionFit, PAGE_BITS};
use super::placement_index::{pages_of, PlacementIndex};
use super::process_image::ProcessImage;
use crate::follow::proc_maps::MemoryMapping;
use crate::run::guide::PageBind;
use hither_profile::{pages_around, ProcessIx, RegionIx, RegionKind};
use std::collections::{HashMap, HashSet};

/// Leading letters that tell the file names of one program from those of others.
const TELLING: usize = 3;

/// A file, or the n-th memory without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SharedKey {
    File(u64, u64),
    Nameless(u64),
}

/// A file on a disk lies in the page cache, also where it is written to: a policy of a mapping says nothing there.
fn effect_on(mapping: &MemoryMapping) -> BindEffect {
    let in_memory = mapping.file.as_ref().is_none_or(|file| file.in_memory);
    match in_memory && mapping.prot & nix::libc::PROT_WRITE != 0 {
        true => BindEffect::Bindable,
        false => BindEffect::Cached,
    }
}

#[derive(Clone, Debug, Default)]
struct SharedObject {
    region: Option<RegionIx>,
    /// Pages bound already, from the first to the last.
    bound: Option<(u64, u64)>,
}

/// All shared memory of the run.
#[derive(Default)]
pub struct SharedObjects {
    objects: HashMap<SharedKey, SharedObject>,
    taken: HashSet<RegionIx>,
    /// What each image calls it.
    areas: HashMap<(usize, SharedKey), usize>,
    nameless: u64,
}

impl SharedObjects {
    /// Image number `no` maps shared memory.
    pub fn map(
        &mut self,
        image: &mut ProcessImage,
        no: usize,
        plan: &PlacementIndex,
        m: &MemoryMapping,
    ) -> Vec<PageBind> {
        let (start, end) = pages_around(m.address, m.length);
        let path = m.file.as_ref().map_or("", |f| without_deleted(&f.path));
        let named = m.file.as_ref().filter(|_| path != "/dev/zero");
        let key = match named {
            Some(file) => SharedKey::File(file.dev, file.ino),
            None => {
                self.nameless += 1;
                SharedKey::Nameless(self.nameless)
            }
        };
        // System V segments have names of their kernel's making, which the profile leaves out.
        let path = if path.starts_with("/SYSV") || named.is_none() {
            ""
        } else {
            path
        };
        let offset = named.map_or(0, |f| f.offset >> PAGE_BITS);
        let last = offset + (end - start);
        if !self.objects.contains_key(&key) {
            let region = self.find(plan, image.process, path, last);
            self.taken.extend(region);
            let bound = None;
            self.objects.insert(key, SharedObject { region, bound });
        }
        let area = self.area(image, no, plan, key, path);
        image.areas[area].pages = image.areas[area].pages.max(last);
        let interval = SpaceInterval {
            start,
            end,
            area,
            offset,
            memory: effect_on(m),
        };
        image.space.put(interval);
        self.bind(image, plan, key, &interval)
    }

    fn bind(
        &mut self,
        image: &mut ProcessImage,
        plan: &PlacementIndex,
        key: SharedKey,
        here: &SpaceInterval,
    ) -> Vec<PageBind> {
        let object = self.objects.entry(key).or_default();
        let (first, end) = (here.offset, here.offset + (here.end - here.start));
        let known = object.bound.is_some_and(|b| b.0 <= first && end <= b.1);
        if here.memory != BindEffect::Bindable || known {
            return Vec::new();
        }
        let bound = object.bound.unwrap_or((first, end));
        object.bound = Some((bound.0.min(first), bound.1.max(end)));
        image.areas[here.area].guest = false;
        image.binds_for(plan, here, GapRule::Fill)
    }

    fn area(
        &mut self,
        image: &mut ProcessImage,
        no: usize,
        plan: &PlacementIndex,
        key: SharedKey,
        path: &str,
    ) -> usize {
        if let Some(&known) = self.areas.get(&(no, key)) {
            return known;
        }
        let area = image.add(MemoryArea {
            kind: RegionKind::Shared,
            file: path.to_owned(),
            guest: true,
            ..MemoryArea::default()
        });
        if let Some(region) = self.objects.get(&key).and_then(|o| o.region) {
            let claim = RegionMatch {
                region,
                fit: RegionFit::SAME,
                nearest: plan.region(region).file != path,
            };
            image.set_match(area, claim);
        }
        self.areas.insert((no, key), area);
        area
    }

    fn find(
        &self,
        plan: &PlacementIndex,
        process: Option<ProcessIx>,
        path: &str,
        pages: u64,
    ) -> Option<RegionIx> {
        let free = |at: &&RegionIx| !self.taken.contains(at);
        let known = plan
            .similar_shared_regions(path)
            .iter()
            .filter(free)
            .copied();
        let own = |at: RegionIx| Some(plan.region(at).process) == process;
        let size = |at: RegionIx| pages_of(plan.region(at)).abs_diff(pages);
        if path.is_empty() {
            // In order, of those of its process and size.
            return { known }.find(|at| own(*at) && size(*at) == 0);
        }
        let numbers = |at: RegionIx| common_numbers(&plan.region(at).file, path);
        let best = known.min_by_key(|at| {
            let less = std::cmp::Reverse(numbers(*at));
            (less, !own(*at), size(*at) != 0, *at)
        });
        best.or_else(|| self.in_folder(plan, process?, path, pages))
    }

    /// With a random name: of that process and size, in such a folder, and called much alike.
    fn in_folder(
        &self,
        plan: &PlacementIndex,
        process: ProcessIx,
        path: &str,
        pages: u64,
    ) -> Option<RegionIx> {
        let folder = |path: &str| path.rfind('/').map(|at| skeleton(&path[..at]));
        let mut own = plan.regions_of(process);
        own.find(|at| {
            let region = plan.region(*at);
            region.kind == RegionKind::Shared
                && !region.file.is_empty()
                && folder(&region.file) == folder(path)
                && in_common(file_name(&region.file), file_name(path)) >= TELLING
                && pages_of(region) == pages
                && !self.taken.contains(at)
        })
    }

    /// A forked image has the memory of its parent; the parent goes on telling of it.
    pub fn forked(&mut self, parent: usize, child: usize) {
        let of_parent = self.areas.iter().filter(|((no, _), _)| *no == parent);
        let copies: Vec<_> = of_parent
            .map(|((_, key), area)| ((child, *key), *area))
            .collect();
        self.areas.extend(copies);
    }

    /// An image has ended.
    pub fn ended(&mut self, image: usize) {
        self.areas.retain(|(no, _), _| *no != image);
    }
}
