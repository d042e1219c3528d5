//! What differed from the profile, for the user: a sentence each.
use super::file_names::{file_name, format_size};
use super::memory_areas::MemoryArea;
use super::page_runs::PAGE_BITS;
use super::placement_index::{pages_of, PlacementIndex};
use super::process_image::ProcessImage;
use super::processes::ProcessMatches;
use hither_profile::{ProcessIx, RegionIx, RegionKind, ThreadIx, PAGE_SIZE};
use std::collections::{BTreeSet, HashMap};

/// Counts over images that are gone and, at the end, all.
#[derive(Clone, Default)]
pub struct MatchStatistics {
    program: String,
    /// It is one of several, each of which is followed by a hither of its own.
    is_rank: bool,
    by_place: Option<ProcessIx>,
    /// Mappings of another size, and the largest difference in per cent.
    sizes: u64,
    largest: u64,
    /// Of another number or thread.
    numbers: u64,
    ambiguous: u64,
    /// Threads without a counterpart in processes that have one.
    threads: u64,
    found: BTreeSet<RegionIx>,
    came: BTreeSet<ProcessIx>,
}

impl MatchStatistics {
    pub fn root(&mut self, executable: &str, rank: Option<u32>) {
        self.program = executable.to_owned();
        self.is_rank = rank.is_some();
    }

    pub fn thread(&mut self, image: &ProcessImage, thread: Option<ThreadIx>) {
        self.threads += u64::from(image.process.is_some() && thread.is_none());
    }

    /// An image is over.
    pub fn retire(&mut self, image: &ProcessImage, plan: &PlacementIndex) {
        self.ambiguous += image.ambiguous;
        let Some(process) = image.process else { return };
        self.came.insert(process);
        if image.soft {
            self.by_place.get_or_insert(process);
        }
        let claimed = image.areas.iter().filter_map(|(_, t)| Some((t, t.claim?)));
        for (area, claim) in claimed {
            self.found.insert(claim.region);
            if claim.nearest && !area.copied && area.kind != RegionKind::Shared {
                self.differs(area, pages_of(plan.region(claim.region)));
            }
        }
    }

    fn differs(&mut self, area: &MemoryArea, then: u64) {
        let (now, then) = (area.pages, then.max(1));
        if now == then {
            self.numbers += 1;
            return;
        }
        self.sizes += 1;
        let percent = (now.abs_diff(then) * 100).div_ceil(then);
        self.largest = self.largest.max(percent);
    }

    pub fn notes<'a>(
        &self,
        plan: &PlacementIndex,
        process_matches: &ProcessMatches,
        images: impl Iterator<Item = &'a ProcessImage>,
    ) -> Vec<String> {
        let mut all = self.clone();
        images.for_each(|image| all.retire(image, plan));
        let mut notes = Vec::new();
        all.processes(plan, process_matches, &mut notes);
        all.mappings(&mut notes);
        all.missing(plan, process_matches, &mut notes);
        coarse(plan, &mut notes);
        notes
    }

    fn processes(
        &self,
        plan: &PlacementIndex,
        process_matches: &ProcessMatches,
        notes: &mut Vec<String>,
    ) {
        let here = file_name(&self.program);
        if let Some(process) = self.by_place.filter(|p| process_matches.is_soft(*p)) {
            let there = file_name(&plan.processes[process.at()].executable);
            notes.push(format!("The placement is of {there}, this is {here}: what is alike in their order of threads and mappings was placed."));
        } else if self.came.is_empty() && !self.program.is_empty() {
            let programs: Vec<&str> = plan.placed_programs().into_iter().collect();
            let there = programs.join(", ");
            notes.push(format!("Nothing was placed: the placement is of {there}, and {here} started none of these."));
        }
        if self.threads > 0 && plan.places_threads() {
            let (threads, run) = counted(self.threads, "thread is", "threads are");
            let where_to = format!("{run} wherever the system puts {}", them(self.threads));
            notes.push(format!("{threads} not in the placement and {where_to}."));
        }
    }

    fn mappings(&self, notes: &mut Vec<String>) {
        if self.sizes > 0 {
            let (differ, _) = counted(self.sizes, "mapping differs", "mappings differ");
            let largest = match self.sizes {
                1 => format!("by {} %", self.largest),
                _ => format!("the largest by {} %", self.largest),
            };
            let their = if self.sizes == 1 { "its" } else { "their" };
            notes.push(format!("{differ} from the profile in size, {largest}; {their} pages were placed in proportion."));
        }
        if self.numbers > 0 {
            let (were, _) = counted(self.numbers, "mapping was", "mappings were");
            notes.push(format!("{were} made in another order or by another thread than in the profile and placed as the nearest of that size."));
        }
        if self.ambiguous > 0 {
            let (could, _) = counted(self.ambiguous, "mapping", "mappings");
            let stay = if self.ambiguous == 1 { "its" } else { "their" };
            notes.push(format!("{could} could be one of several in the profile; {stay} pages were left to the system."));
        }
    }

    /// Of the processes that came, regions that did not.
    fn missing(
        &self,
        plan: &PlacementIndex,
        process_matches: &ProcessMatches,
        notes: &mut Vec<String>,
    ) {
        let regions = (0..).map(RegionIx).zip(&plan.regions);
        let placed = regions.filter(|(at, region)| {
            let large = pages_of(region) * PAGE_SIZE >= super::placement_index::SMALLEST_NEAREST;
            let mapping = matches!(region.kind, RegionKind::Mmap | RegionKind::Shared);
            large
                && mapping
                && plan.first_page(*at).is_some()
                && process_matches.has_come(region.process)
        });
        let (mut all, mut gone) = (0u64, 0u64);
        let mut largest = 0;
        for (at, region) in placed {
            all += 1;
            if !self.found.contains(&at) {
                gone += 1;
                largest = largest.max(pages_of(region) << PAGE_BITS);
            }
        }
        if gone > 0 {
            let largest = format_size(largest);
            notes.push(format!("{gone} of {all} mappings of the placement were not found in this run, the largest of {largest}."));
        }
        let processes = (0..).map(ProcessIx).take(plan.processes.len());
        let absent = processes.filter(|p| !process_matches.has_come(*p) && is_placed(plan, *p));
        let mut programs: HashMap<&str, u64> = HashMap::new();
        for process in absent {
            let program = file_name(&plan.processes[process.at()].executable);
            *programs.entry(program).or_default() += 1;
        }
        let mut programs: Vec<_> = programs.into_iter().collect();
        programs.sort_unstable();
        if !self.came.is_empty() && !self.is_rank {
            for (program, count) in programs {
                let (processes, _) = counted(count, "process", "processes");
                notes.push(format!(
                    "{processes} of {program} in the placement did not start in this run."
                ));
            }
        }
    }
}

/// Its threads have places of their own.
fn is_placed(plan: &PlacementIndex, process: ProcessIx) -> bool {
    let threads = (0..).map(ThreadIx).zip(&plan.threads);
    let mut own = threads.filter(|(_, t)| t.process == process);
    own.any(|(t, _)| (0..plan.phases()).any(|phase| plan.cpu(t, phase).is_some()))
}

fn coarse(plan: &PlacementIndex, notes: &mut Vec<String>) {
    let Some((runs, block)) = plan.coarse.values().max_by_key(|(_, block)| *block) else {
        return;
    };
    let count = plan.coarse.len() as u64;
    let (regions, _) = counted(count, "region has", "regions have");
    let block = format_size(block << PAGE_BITS);
    notes.push(format!("{regions} pages on different nodes in more pieces than the kernel keeps apart cheaply (up to {runs}); they were placed in blocks of up to {block}, each where most of it belongs."));
}

fn counted(count: u64, one: &str, many: &str) -> (String, &'static str) {
    match count {
        1 => (format!("1 {one}"), "runs"),
        _ => (format!("{count} {many}"), "run"),
    }
}

fn them(count: u64) -> &'static str {
    match count {
        1 => "it",
        _ => "them",
    }
}
