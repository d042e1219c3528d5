//! The end of the run: what the engine gathered -> the tables of a [`Profile`].
use super::address_space::PageName;
use super::comm::pair_of;
use super::engine::CollectorEngine;
use super::first_touch_lines::{first_touch_lines, FirstTouchInput};
use super::limits::limits;
use super::objects::{self, ObjectInput, ObjectTables};
use super::pages::{page_and_thread, FirstToucher};
use super::regions::KnownRegion;
use super::roles::roles;
use super::sampling::{scaled, SamplingScale};
use super::shared_lines::{LineKey, LineRow};
use super::target_objects::{accesses_by_id, threads_by_id};
use super::thread_rows::ThreadNumbers;
use super::window_regions::{named_pages, ChunkAliasMap};
use super::CollectedRun;
use crate::trace::symbolizer::Symbolizer;
use hither_profile::binned::{BinnedCounts, CountRow};
use hither_profile::BurstWriter;
use hither_profile::{
    LineUse, ObjectRange, PageFirstTouch, PageNo, PageRows, PageUse, PairComm, Process, ProcessIx,
    Profile, ProfileMeta, Region, RegionIx, RunEnd, SliceIx, Thread, ThreadIx, TraceCost,
    FORMAT_VERSION, PAGE_SIZE,
};
use hither_sys::wire;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Builds the profile; symbols are read here, while the files are still those that ran.
pub fn build_profile(
    mut engine: CollectorEngine,
    end: RunEnd,
    naming: &mut dyn Symbolizer,
) -> CollectedRun {
    let scale = engine.sampling_scale();
    let mut meta = meta(&engine, &scale, end);
    let numbers = ThreadNumbers::new(&engine.target_state.threads, &engine.segment);
    engine.target_state.regions.number_threads(&numbers);
    engine.page_reader.number_threads(&numbers);
    let threads = threads(&engine, &numbers, &scale, meta.processes.len());
    let comm = comm(&mut engine, &scale, &numbers);
    let uses = page_uses(&mut engine, &scale, &numbers);
    let totals = page_totals(&uses);
    let pages = &engine.page_reader;
    let lines = engine
        .lines
        .rows(pages, &numbers, |key, n| scaled(n, scale.mean_factor(key)));
    let counts = scale.object_counts();
    let target = &mut engine.target_state;
    target.objects.ids.read_new(&engine.segment);
    let thread_locals = target.thread_locals_by_region(&counts, &engine.segment);
    let users = threads_by_id(&counts, &numbers);
    let region_users = region_users(&uses);
    let accesses = accesses_by_id(counts);
    let input = ObjectInput {
        segment: &engine.segment,
        ids: &target.objects.ids,
        accesses: &accesses,
        users: &users,
        region_users: &region_users,
        thread_locals: &thread_locals,
        lines: &lines,
        regions: &mut target.regions,
        heap: &mut target.heap,
        samples: &engine.samples,
        pages: &totals,
        threads: &numbers,
        scale: scale.overall_factor(),
        deadline: &engine.deadline,
    };
    let found = objects::build_objects(input, naming);
    drop(totals);
    let first_touchers = engine.page_reader.take_first_touchers();
    let first_touch_lines = first_touch_lines(
        FirstTouchInput {
            segment: &engine.segment,
            regions: &mut engine.target_state.regions,
            found: &found,
            first_touchers: &first_touchers,
            deadline: &engine.deadline,
            threads: &threads,
        },
        naming,
    );
    let last_slice = engine.slices.rows.len().saturating_sub(1) as u32;
    let touches = || first_touches(&first_touchers, threads.len(), last_slice);
    if engine.deadline.missed() {
        meta.limits.push(
            "What the program left would have taken too long to read: accesses, names and communication are missing."
                .into(),
        );
    }
    if engine.samples.dropped > 0 {
        meta.limits.push(
            "Source lines were kept for the first million distinct pairs of code and data only."
                .into(),
        );
    }
    let regions = RegionNumbers::new(&engine.target_state.regions.all, &uses, touches(), &found);
    let processes = meta.processes.len();
    engine.slices.scale_up(&scale.stage_factors());
    let bursts = finish_bursts(&mut engine, &regions, &mut meta);
    let mut profile = Profile {
        slices: std::mem::take(&mut engine.slices.rows),
        comm,
        pages: regions.page_uses(uses),
        first_touch: touches().map(|t| regions.first_touch(t)).collect(),
        regions: regions.regions(&engine.target_state.regions.all, processes, threads.len()),
        object_ranges: regions.ranges(&found),
        objects: found.objects,
        sites: found.sites,
        first_touch_lines,
        object_threads: found.threads,
        members: found.members,
        allocation_paths: found.paths,
        lines: lines.into_iter().map(|l| regions.line(l)).collect(),
        threads,
        meta,
        ..Profile::default()
    };
    let merged = profile.merge_pages(engine.page_budget());
    profile.meta.limits.extend(merged);
    CollectedRun {
        profile,
        has_checkpoint: false,
        bursts,
    }
}

/// Ends the file of recorded accesses.
fn finish_bursts(
    engine: &mut CollectorEngine,
    numbers: &RegionNumbers,
    meta: &mut ProfileMeta,
) -> Option<BurstWriter> {
    let mut recorder = engine.recorder.take()?;
    let aliases = ChunkAliasMap::read(&engine.segment);
    let regions = &engine.target_state.regions;
    let known = |region| numbers.number.get(&region).copied().map(RegionIx);
    recorder.write_page_names(|s| named_pages(s, regions, &aliases, known));
    meta.limits.extend(recorder.limits(&engine.segment));
    let (writer, info) = recorder.complete();
    meta.bursts = Some(info);
    Some(writer)
}

fn meta(engine: &CollectorEngine, scale: &SamplingScale, end: RunEnd) -> ProfileMeta {
    let threads = &engine.target_state.threads;
    let lost_samples = threads.iter().map(|t| t.lost_samples);
    let misses = threads.iter().map(|t| t.misses);
    let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0u64, u64::saturating_add);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let duration = engine.ended - engine.started;
    let cost = TraceCost {
        collector_cpu: engine.cpu,
        line_cache_misses: sum(&mut { misses }),
        lost_events: engine
            .segment
            .lost()
            .events
            .saturating_add(engine.target_state.broken_events),
        lost_samples: sum(&mut { lost_samples }).saturating_add(engine.samples.overwritten),
    };
    ProfileMeta {
        format: FORMAT_VERSION,
        writer: env!("CARGO_PKG_VERSION").into(),
        command: engine.config.command.clone(),
        working_directory: engine.config.working_directory.clone(),
        started_unix: now
            .map_or(0, |n| n.as_secs())
            .saturating_sub(duration / 1_000_000_000),
        duration,
        options: engine.config.options.clone(),
        processes: processes(engine),
        end,
        limits: limits(engine, scale, &cost),
        comm_slices: engine.comm.factor(),
        has_coherence: engine.config.options.sharers.is_none(),
        page_slices: engine.pages.factor(),
        sampling_error: (engine.config.options.sample)
            .map_or(0.0, |share| engine.slices.sampling_error(share)),
        cost,
        ..ProfileMeta::default()
    }
}

fn processes(engine: &CollectorEngine) -> Vec<Process> {
    let next = engine.segment.next_process();
    let row = |slot: u32| {
        let p = engine.segment.process(slot);
        let parent = p
            .parent
            .checked_sub(1)
            .filter(|&i| i + 1 < next)
            .map(ProcessIx);
        let left = p.state == wire::PROCESS_EXITED || p.state == wire::PROCESS_EXECED;
        let end = Some(p.end_ns).filter(|&end| left && end != 0);
        let end = end
            .or(engine.threads.process_died_at(slot))
            .unwrap_or(engine.ended);
        let executable = engine.target_state.threads.executables.get(&slot).cloned();
        Process {
            pid: p.pid,
            parent,
            executable: executable.unwrap_or_default(),
            rank: engine.target_state.ranks.get(&slot).copied(),
            start: run_time(engine, p.start_ns),
            end: run_time(engine, end),
        }
    };
    (1..next).map(row).collect()
}

/// Nanoseconds since the start of the run, within the run.
fn run_time(engine: &CollectorEngine, clock: u64) -> u64 {
    clock.min(engine.ended).saturating_sub(engine.started)
}

fn threads(
    engine: &CollectorEngine,
    numbers: &ThreadNumbers,
    scale: &SamplingScale,
    processes: usize,
) -> Vec<Thread> {
    let last_process = processes.saturating_sub(1) as u32;
    let rows = &engine.target_state.threads;
    let row = |(&key, role): (&u32, Option<ThreadIx>)| {
        let t = rows.row(key);
        let [reads, writes] = scale.thread_accesses(key);
        let name = t.name.split(|&b| b == 0).next().unwrap_or_default();
        let start = run_time(engine, t.start);
        Thread {
            process: ProcessIx(t.process.saturating_sub(1).min(last_process)),
            tid: t.tid,
            name: String::from_utf8_lossy(name).into_owned(),
            creator: numbers.of_serial(t.creator),
            start,
            end: run_time(engine, t.end).max(start),
            instructions: t.instructions,
            reads,
            writes,
            role,
        }
    };
    numbers
        .keys
        .iter()
        .zip(roles(rows, numbers))
        .map(row)
        .collect()
}

fn comm(
    engine: &mut CollectorEngine,
    scale: &SamplingScale,
    numbers: &ThreadNumbers,
) -> Vec<PairComm> {
    let taken = std::mem::replace(&mut engine.comm, BinnedCounts::new(1));
    let rows = taken.into_bins().flat_map(|(slice, rows)| {
        rows.into_iter()
            .filter_map(move |(key, [events, coherence])| {
                let (i, j) = pair_of(key);
                let (a, b) = (numbers.of_key(i)?, numbers.of_key(j)?);
                Some(PairComm {
                    slice: SliceIx(slice),
                    i: a.min(b),
                    j: a.max(b),
                    events: scale.scale_pair(i, j, slice, events),
                    coherence: scale.scale_pair(i, j, slice, coherence.min(events)),
                })
            })
    });
    let mut rows: Vec<PairComm> = rows.collect();
    rows.sort_unstable_by_key(|row| (row.slice, row.i, row.j));
    rows
}

/// Rows of the `pages` table; regions have the numbers that they have here.
fn page_uses(
    engine: &mut CollectorEngine,
    scale: &SamplingScale,
    numbers: &ThreadNumbers,
) -> PageRows<PageUse> {
    let taken = std::mem::replace(&mut engine.pages, BinnedCounts::new(1));
    let mut uses = PageRows::default();
    for (slice, rows) in taken.into_bins() {
        // There may be millions: they are not copied, but looked up in the order of their names.
        let name_of = |((key, _), at): (&CountRow<3>, u32)| {
            let (page, thread) = page_and_thread(*key);
            let name = engine.page_reader.first_toucher(page)?.name;
            Some((name, numbers.of_key(thread)?, at))
        };
        let mut order: Vec<(PageName, ThreadIx, u32)> =
            rows.iter().zip(0..).filter_map(name_of).collect();
        order.sort_unstable();
        for same in order.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let ((region, page), thread, _) = same[0];
            let mut sums = [0u64; 3];
            for &(_, _, at) in same {
                let (key, counts) = rows[at as usize];
                let scaled = counts.map(|n| scale.scale_count(page_and_thread(key).1, slice, n));
                for (sum, count) in sums.iter_mut().zip(scaled) {
                    *sum = sum.saturating_add(count);
                }
            }
            let [reads, writes, fetches] = sums;
            uses.push(PageUse {
                slice: SliceIx(slice),
                region: RegionIx(region),
                page: PageNo(page),
                following: 0,
                thread,
                reads,
                writes,
                fetches,
            });
        }
    }
    fit_to_totals(&mut uses, scale, numbers);
    uses
}

/// With page slices longer than slices, one may lie in two stages of sampling: then the sum of a
/// thread's pages is not what it accessed.
fn fit_to_totals(uses: &mut PageRows<PageUse>, scale: &SamplingScale, numbers: &ThreadNumbers) {
    if !scale.has_stages() {
        return;
    }
    let mut sums: HashMap<ThreadIx, u64> = HashMap::new();
    for row in uses.rows() {
        let sum = sums.entry(row.thread).or_default();
        *sum = sum.saturating_add(row.reads).saturating_add(row.writes);
    }
    uses.retain_mut(|row| {
        let [reads, writes] = scale.thread_accesses(numbers.keys[row.thread.at()]);
        let sum = sums.get(&row.thread).copied().unwrap_or_default().max(1);
        let factor = reads.saturating_add(writes) as f64 / sum as f64;
        for count in [&mut row.reads, &mut row.writes, &mut row.fetches] {
            *count = scaled(*count, factor);
        }
        true
    });
}

/// By region, the threads that use its pages.
fn region_users(uses: &PageRows<PageUse>) -> BTreeMap<u32, BTreeSet<ThreadIx>> {
    let mut users: BTreeMap<u32, BTreeSet<ThreadIx>> = BTreeMap::new();
    let mut last = None;
    for row in uses.rows() {
        if last.replace((row.region, row.thread)) != Some((row.region, row.thread)) {
            users.entry(row.region.0).or_default().insert(row.thread);
        }
    }
    users
}

/// Reads, writes and fetches per page over the run, sorted by page.
fn page_totals(uses: &PageRows<PageUse>) -> Vec<(PageName, [u64; 3])> {
    let mut totals: Vec<(PageName, [u64; 3])> = Vec::new();
    let add =
        |totals: &mut Vec<(PageName, [u64; 3])>, (name, counts): (PageName, [u64; 3])| match totals
            .last_mut()
        {
            Some((last, sums)) if *last == name => {
                for (sum, count) in sums.iter_mut().zip(counts) {
                    *sum = sum.saturating_add(count);
                }
            }
            _ => totals.push((name, counts)),
        };
    for row in uses.rows() {
        let name = (row.region.0, row.page.0);
        add(&mut totals, (name, [row.reads, row.writes, row.fetches]));
    }
    if !totals.is_sorted_by(|a, b| a.0 < b.0) {
        totals.sort_by_key(|total| total.0);
        let sorted = std::mem::take(&mut totals);
        sorted.into_iter().for_each(|total| add(&mut totals, total));
    }
    totals
}

/// (page, thread, slice), the earliest per page, of pages sorted by name.
fn first_touches(
    first_touchers: &[FirstToucher],
    threads: usize,
    last_slice: u32,
) -> impl Iterator<Item = (PageName, u32, u32)> + '_ {
    let of_page = move |same: &[FirstToucher]| {
        let touches = same.iter().filter_map(|touched| {
            let thread = touched.thread.checked_sub(1)?;
            let slice = touched.epoch.saturating_sub(1).min(last_slice);
            ((thread as usize) < threads).then_some((slice, thread))
        });
        let (slice, thread) = touches.min()?;
        Some((same[0].name, thread, slice))
    };
    first_touchers
        .chunk_by(|a, b| a.name == b.name)
        .filter_map(of_page)
}

/// The regions the profile needs, numbered in the order in which they appeared.
struct RegionNumbers {
    used: Vec<u32>,
    number: HashMap<u32, u32>,
}

impl RegionNumbers {
    fn new(
        all: &[KnownRegion],
        uses: &PageRows<PageUse>,
        touches: impl Iterator<Item = (PageName, u32, u32)>,
        found: &ObjectTables,
    ) -> RegionNumbers {
        let mut used: Vec<u32> = uses.rows().map(|u| u.region.0).collect();
        used.dedup();
        used.extend(touches.map(|t| t.0 .0));
        used.dedup();
        used.extend(found.ranges.iter().map(|r| r.1));
        used.retain(|&region| (region as usize) < all.len());
        used.sort_unstable();
        used.dedup();
        let number = used.iter().copied().zip(0..).collect();
        RegionNumbers { used, number }
    }

    fn region_ix(&self, region: u32) -> RegionIx {
        RegionIx(self.number.get(&region).copied().unwrap_or(0))
    }

    fn regions(&self, all: &[KnownRegion], processes: usize, threads: usize) -> Vec<Region> {
        let last = processes.saturating_sub(1) as u32;
        let row = |&n: &u32| {
            let region = all[n as usize].region.clone();
            Region {
                process: ProcessIx(region.process.0.min(last)),
                thread: region.thread.filter(|t| t.at() < threads),
                ..region
            }
        };
        self.used.iter().map(row).collect()
    }

    fn page_uses(&self, mut uses: PageRows<PageUse>) -> PageRows<PageUse> {
        uses.retain_mut(|row| {
            row.region = self.region_ix(row.region.0);
            true
        });
        uses
    }

    fn first_touch(&self, (page, thread, slice): (PageName, u32, u32)) -> PageFirstTouch {
        PageFirstTouch {
            region: self.region_ix(page.0),
            page: PageNo(page.1),
            following: 0,
            thread: ThreadIx(thread),
            slice: SliceIx(slice),
        }
    }

    fn line(&self, ((page, at, thread), row): (LineKey, LineRow)) -> LineUse {
        LineUse {
            region: self.region_ix(page.0),
            offset: u64::from(page.1) * PAGE_SIZE + u64::from(at),
            thread: ThreadIx(thread),
            seen: row.seen,
            read_mask: row.read_mask,
            write_mask: row.write_mask,
            accesses: row.accesses,
            writes: row.writes,
        }
    }

    fn ranges(&self, found: &ObjectTables) -> Vec<ObjectRange> {
        let row = |&(object, region, offset, length): &(u32, u32, u64, u64)| ObjectRange {
            object: hither_profile::ObjectIx(object),
            region: self.region_ix(region),
            offset,
            length,
        };
        found.ranges.iter().map(row).collect()
    }
}
