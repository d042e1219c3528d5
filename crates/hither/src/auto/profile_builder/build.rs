//! The end of the run: what was kept -> the tables of a [`Profile`].
use std::collections::{BTreeMap, HashMap};

use hither_model::units::plural;
use hither_profile::{
    OnlineInfo, PageFirstTouch, PageMove, PageNo, PageRows, PageUse, PairComm, ProcessIx, Profile,
    ProfileMeta, Region, RegionIx, RegionKind, SliceIx, ThreadIx, ThreadMove, TraceCost,
    TraceOptions, FORMAT_VERSION, PAGE_SIZE,
};

use super::mapped_areas::MappedArea;
use super::slice_recorder::{RecordedSlices, SLICE_LENGTH};
use super::{ObjectOrigin, ProfileBuilder};
use crate::auto::outcome::AutoOutcome;

/// Least length of the main stack's region: the usual limit.
const STACK: u64 = 8 << 20;

/// Where a page is in the profile.
type ProfilePage = Option<(RegionIx, PageNo)>;

impl ProfileBuilder {
    /// The profile of a run that is over, but for the machine and where it was started.
    #[must_use]
    pub fn finish(mut self, outcome: &AutoOutcome) -> Profile {
        self.tasks.finish(outcome.duration);
        let (regions, names) = self.build_regions();
        let width = self.slices.width();
        let slices = std::mem::take(&mut self.slices).finish(outcome.duration);
        let mut meta = self.build_meta(&slices, outcome);
        if names.iter().any(Option::is_none) {
            meta.limits
                .push("Some pages lie too far into their mapping to be named.".to_owned());
        }
        let mut profile = Profile {
            comm: build_comm(&slices),
            pages: build_pages(&slices, &names),
            first_touch: self.first_touch_rows(&names, width),
            thread_moves: self.thread_moves(),
            page_moves: self.page_moves(&names),
            threads: self.tasks.threads,
            slices: slices.slices,
            regions,
            meta,
            ..Profile::default()
        };
        remove_own_threads(&mut profile, &self.tasks.ours);
        profile
    }

    fn build_meta(&self, slices: &RecordedSlices, outcome: &AutoOutcome) -> ProfileMeta {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seconds = now.map_or(0, |n| n.as_secs());
        let counted: u64 = self.tasks.threads.iter().map(|t| t.reads).sum();
        let mut limits = vec![
            "Sampled while it ran: what is counted as accesses are page faults, those that it has anyway and those that were caused.".to_owned(),
            "A fault tells of one access and hides those that follow until the page is taken again; how many is not known.".to_owned(),
            "Page faults do not tell reads from writes: all are counted as reads.".to_owned(),
            "Mappings that lie side by side are one region, and which thread made a mapping was not seen.".to_owned(),
        ];
        limits.extend(outcome.notes.iter().cloned());
        limits.extend(self.build_limits(slices));
        ProfileMeta {
            format: FORMAT_VERSION,
            writer: env!("CARGO_PKG_VERSION").into(),
            command: outcome.command.clone(),
            started_unix: seconds.saturating_sub(outcome.duration / 1_000_000_000),
            duration: outcome.duration,
            options: TraceOptions {
                slice: slices
                    .slices
                    .first()
                    .map_or(SLICE_LENGTH, |s| s.length.max(1)),
                line: PAGE_SIZE as u32,
                ..TraceOptions::default()
            },
            processes: self.tasks.processes.clone(),
            end: outcome.end.clone(),
            limits,
            comm_slices: slices.comm_slices,
            page_slices: slices.page_slices,
            // Of a count of independent events, the standard deviation is its root.
            sampling_error: 1.0 / (counted.max(1) as f64).sqrt(),
            cost: TraceCost {
                collector_cpu: outcome.cost.cpu,
                lost_events: outcome.lost,
                ..TraceCost::default()
            },
            online: Some(build_online(outcome)),
            ..ProfileMeta::default()
        }
    }

    fn build_limits(&self, slices: &RecordedSlices) -> Vec<String> {
        let mut found = Vec::new();
        let mut say = |when: bool, what: String| {
            if when {
                found.push(what);
            }
        };
        let lost = self.tasks.lost;
        say(
            lost > 0,
            plural(
                lost,
                "thread past the 16384th of the run was not kept.",
                "threads past the 16384th of the run were not kept.",
            ),
        );
        let lost = self.lost_faults;
        say(
            lost > 0,
            plural(
                lost,
                "page fault was not kept: 8 GiB of pages are.",
                "page faults were not kept: 8 GiB of pages are.",
            ),
        );
        let lost = self.lost_moves;
        say(
            lost > 0,
            match lost {
                1 => "The last move of a page was not kept.".to_owned(),
                _ => format!("The last {lost} moves of pages were not kept."),
            },
        );
        let factor = slices.page_slices;
        say(
            factor > 1,
            format!(
                "Page usage over time is kept for groups of {factor} slices; totals are exact."
            ),
        );
        let factor = slices.comm_slices;
        say(
            factor > 1,
            format!(
                "Communication over time is kept for groups of {factor} slices; totals are exact."
            ),
        );
        found
    }

    /// All regions with pages that were touched, and the name of every page.
    fn build_regions(&self) -> (Vec<Region>, Vec<ProfilePage>) {
        let mut private: BTreeMap<ProcessIx, Vec<(u64, u32)>> = BTreeMap::new();
        let mut shared: BTreeMap<(u64, u64), Vec<(u64, u32)>> = BTreeMap::new();
        for (number, touched) in (0..).zip(&self.pages) {
            let at = (touched.page.number.saturating_mul(PAGE_SIZE), number);
            match self.spaces.get(&touched.page.object) {
                Some(&ObjectOrigin::Private(process)) => {
                    private.entry(process).or_default().push(at)
                }
                Some(&ObjectOrigin::Shared(file)) => shared.entry(file).or_default().push(at),
                None => {}
            }
        }
        let mut regions = Vec::new();
        let mut names = vec![None; self.pages.len()];
        for (process, mut pages) in private {
            pages.sort_unstable();
            self.build_private_regions(process, &pages, &mut regions, &mut names);
        }
        for (file, pages) in shared {
            let known = self.areas.shared.get(&file);
            let end = pages.iter().map(|p| p.0 + PAGE_SIZE).max().unwrap_or(0);
            let region = Region {
                kind: RegionKind::Shared,
                process: known.map_or(ProcessIx(0), |k| k.process),
                size: end.max(known.map_or(0, |k| k.size)),
                file: known.map_or_else(String::new, |k| k.path.clone()),
                address: known.map_or(0, |k| k.address),
                ..Region::default()
            };
            name(&pages, 0, regions.len(), &mut names);
            regions.push(region);
        }
        (regions, names)
    }

    fn build_private_regions(
        &self,
        process: ProcessIx,
        pages: &[(u64, u32)],
        regions: &mut Vec<Region>,
        names: &mut [ProfilePage],
    ) {
        let addresses: Vec<u64> = pages.iter().map(|p| p.0).collect();
        let mut found = self.areas.areas_with_pages(process, &addresses);
        // Mappings are put below one another: the first has the highest address.
        found.reverse();
        let first = (0..)
            .zip(&self.tasks.threads)
            .find(|(_, t)| t.process == process);
        let first = first.map(|(number, _)| ThreadIx(number));
        let mut ordinals: HashMap<u64, u32> = HashMap::new();
        for (area, from, to) in found {
            let mut region = build_region(process, &area);
            if region.kind == RegionKind::Mmap {
                let ordinal = ordinals.entry(region.size).or_default();
                region.ordinal = *ordinal;
                region.thread = first;
                *ordinal += 1;
            }
            name(&pages[from..to], region.address, regions.len(), names);
            regions.push(region);
        }
    }

    fn first_touch_rows(&self, names: &[ProfilePage], width: u32) -> PageRows<PageFirstTouch> {
        let rows = names
            .iter()
            .zip(&self.pages)
            .filter_map(|(named, touched)| {
                let (region, page) = (*named)?;
                Some(PageFirstTouch {
                    region,
                    page,
                    thread: touched.first,
                    slice: SliceIx(touched.slice.0 / width),
                    ..PageFirstTouch::default()
                })
            });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|t| (t.region, t.page));
        rows.into()
    }

    fn thread_moves(&self) -> Vec<ThreadMove> {
        let rows = self.thread_moves.iter();
        let rows = rows.map(|&(at, thread, pu, node)| ThreadMove {
            at,
            thread,
            pu,
            node: node.0,
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|m| (m.at, m.thread));
        rows
    }

    fn page_moves(&self, names: &[ProfilePage]) -> Vec<PageMove> {
        let rows = self.page_moves.iter().filter_map(|&(at, number, node)| {
            let (region, page) = names[number as usize]?;
            Some(PageMove {
                at,
                region,
                page,
                node: node.0,
            })
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|m| (m.at, m.region, m.page));
        rows
    }
}

fn build_online(outcome: &AutoOutcome) -> OnlineInfo {
    OnlineInfo {
        mechanism: outcome.mechanism.clone(),
        policy: outcome.policy.clone(),
        parameters: outcome.parameters.clone(),
        samplers: outcome.samplers.clone(),
        faults: outcome.faults,
        caused: outcome.extra,
        lost: outcome.lost,
        mappings: outcome.mappings,
        memory: outcome.memory,
    }
}

/// Names pages (bytes, number) of a region that starts at `start`.
fn name(pages: &[(u64, u32)], start: u64, region: usize, names: &mut [ProfilePage]) {
    let region = RegionIx(u32::try_from(region).unwrap_or(u32::MAX));
    for &(byte, number) in pages {
        let page = u32::try_from(byte.saturating_sub(start) / PAGE_SIZE).ok();
        names[number as usize] = page.map(|page| (region, PageNo(page)));
    }
}

fn build_region(process: ProcessIx, area: &MappedArea) -> Region {
    let start = match area.kind {
        RegionKind::Stack => area.start.min(area.end.saturating_sub(STACK)),
        _ => area.start,
    };
    Region {
        kind: area.kind,
        process,
        size: area.end - start,
        file: area.file.clone(),
        address: start,
        ..Region::default()
    }
}

fn build_comm(slices: &RecordedSlices) -> Vec<PairComm> {
    let rows = slices.comm.iter().map(|&(slice, i, j, events)| PairComm {
        slice,
        i,
        j,
        events,
        ..PairComm::default()
    });
    rows.collect()
}

fn build_pages(slices: &RecordedSlices, names: &[ProfilePage]) -> PageRows<PageUse> {
    let rows = slices
        .pages
        .iter()
        .filter_map(|&(slice, number, thread, reads)| {
            let (region, page) = names[number as usize]?;
            Some(PageUse {
                slice,
                region,
                page,
                thread,
                reads,
                ..PageUse::default()
            })
        });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|u| (u.slice, u.region, u.page, u.thread));
    rows.into()
}

/// Leaves these threads out and numbers the others again. They are threads of hither's inside
/// the program (of the samplers that enter it), which are taken for the program's until hither
/// knows their ids.
fn remove_own_threads(profile: &mut Profile, ours: &[ThreadIx]) {
    if ours.is_empty() {
        return;
    }
    let is_ours = |at: usize| ours.iter().any(|thread| thread.at() == at);
    let mut next = 0..;
    let count = profile.threads.len();
    let numbers = (0..count).map(|at| if is_ours(at) { None } else { next.next() });
    let numbers: Vec<Option<u32>> = numbers.collect();
    let new = |thread: ThreadIx| numbers.get(thread.at()).copied().flatten().map(ThreadIx);
    let known = |thread: &mut ThreadIx| match new(*thread) {
        Some(number) => {
            *thread = number;
            true
        }
        None => false,
    };
    let mut at = 0..count;
    profile
        .threads
        .retain(|_| at.next().is_some_and(|at| !is_ours(at)));
    for thread in &mut profile.threads {
        thread.creator = thread.creator.and_then(new);
        thread.role = thread.role.and_then(new);
    }
    for region in &mut profile.regions {
        region.thread = region.thread.and_then(new);
    }
    profile
        .comm
        .retain_mut(|row| known(&mut row.i) && known(&mut row.j));
    profile.pages.retain_mut(|row| known(&mut row.thread));
    profile.first_touch.retain_mut(|row| known(&mut row.thread));
    profile
        .thread_moves
        .retain_mut(|row| known(&mut row.thread));
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_profile::{PageFirstTouch, PageUse, PairComm, Region, Thread, ThreadMove};

    #[test]
    fn the_others_have_the_numbers_that_they_would_have() {
        let thread = |tid, creator: Option<u32>| Thread {
            tid,
            creator: creator.map(ThreadIx),
            ..Thread::default()
        };
        let comm = |i, j| PairComm {
            i: ThreadIx(i),
            j: ThreadIx(j),
            ..PairComm::default()
        };
        let page = |thread, reads| PageUse {
            thread: ThreadIx(thread),
            reads,
            ..PageUse::default()
        };
        let first = |thread| PageFirstTouch {
            thread: ThreadIx(thread),
            ..PageFirstTouch::default()
        };
        let moved = |thread| ThreadMove {
            thread: ThreadIx(thread),
            ..ThreadMove::default()
        };
        let mut profile = Profile {
            threads: vec![
                thread(10, None),
                thread(99, Some(0)),
                thread(11, Some(0)),
                thread(12, Some(2)),
                thread(13, Some(1)),
            ],
            comm: vec![comm(0, 1), comm(0, 2), comm(2, 3)],
            pages: vec![page(0, 5), page(1, 6), page(4, 7)].into(),
            first_touch: vec![first(1), first(3)].into(),
            thread_moves: vec![moved(2)],
            regions: vec![Region {
                thread: Some(ThreadIx(1)),
                ..Region::default()
            }],
            ..Profile::default()
        };
        let whole = profile.clone();
        remove_own_threads(&mut profile, &[]);
        assert_eq!(profile, whole);
        remove_own_threads(&mut profile, &[ThreadIx(1)]);
        let expected = [
            thread(10, None),
            thread(11, Some(0)),
            thread(12, Some(1)),
            thread(13, None),
        ];
        assert_eq!(profile.threads, expected);
        assert_eq!(profile.comm, [comm(0, 1), comm(1, 2)]);
        assert_eq!(profile.pages, vec![page(0, 5), page(3, 7)].into());
        assert_eq!(profile.first_touch, vec![first(2)].into());
        assert_eq!(profile.thread_moves, [moved(1)]);
        assert_eq!(profile.regions[0].thread, None);
    }
}
