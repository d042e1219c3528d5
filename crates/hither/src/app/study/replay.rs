//! Playing a plan's windows through the simulated machine, several plans at a time.
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

use anyhow::{anyhow, Result};
use hither_profile::bursts::{self, BurstAccess, BurstPiece, PieceDecoder};
use hither_profile::Nanos;

use super::run_recording::{RunRecording, SimWindow};
use super::shared_starts::SharedStarts;
use super::sim_machine::SimMachine;
use hither_model::simulate::counts::{ActivityCounts, SimulationCounts};
use hither_model::simulate::replay_input::cache_warming::{CacheWarming, WarmingPeriod};
use hither_model::simulate::replay_input::page_homes::{PageHomeInput, PageHomeRule, PageHomes};
use hither_model::simulate::replay_input::partitioned_source::{
    accesses_by_time, accesses_up_to, PartitionedSource,
};
use hither_model::simulate::replay_input::replay_plan::ReplayPlan;
use hither_model::simulate::replay_input::replay_space::WindowLayout;
use hither_model::simulate::simulated_machine::SimulatedMachine;
use hither_model::simulate::{AccessSource, Simulation, WindowSetup};

/// What is played on what.
#[derive(Clone, Copy)]
pub struct ReplaySetup<'a> {
    pub recording: &'a RunRecording,
    pub windows: &'a [SimWindow],
    pub model: &'a SimMachine,
    pub rule: PageHomeRule,
    /// The share of each window that is played, and where that begins if not with the window.
    pub played: f64,
    /// The share of that which is left out where it begins.
    pub left_out: f64,
    pub starts: Option<&'a SharedStarts<'a>>,
    /// What is used before the first window of each page slice.
    pub warming: Option<&'a CacheWarming>,
}

/// What moving a page takes: 1000 took move_pages(2) about 4 ms.
const PAGE_MOVE_SECONDS: f64 = 4e-6;

/// What came of a plan.
#[derive(Clone, Default)]
pub struct ReplayResult {
    /// By window, the parts that count; none of windows that were not played.
    pub windows: Vec<Vec<SimulationCounts>>,
    /// Over all windows: by thread, and by group.
    pub threads: Vec<ActivityCounts>,
    pub groups: Vec<ActivityCounts>,
}

impl ReplayResult {
    /// With what came of other windows.
    pub fn absorb(&mut self, other: ReplayResult) {
        self.windows.resize(other.windows.len(), Vec::new());
        let windows = self.windows.iter_mut().zip(other.windows);
        for (known, new) in windows.filter(|(_, new)| !new.is_empty()) {
            *known = new;
        }
        add(&mut self.threads, &other.threads);
        add(&mut self.groups, &other.groups);
    }
}

/// How what is played of each window is: the ends of its parts as shares of that, and whether they count.
pub type WindowParts<'a> = &'a [(f64, bool)];

/// Where in the n-th window the piece begins that is played of it, as a share of the window. Pieces of successive windows are from
/// all parts of them (multiples of the golden ratio, which leave no large gap, however many there are): how windows
/// begin is not how they go on. Of the first 15 % of each NPB BT gained 14 to 46 %, of whole windows 13 %.
fn piece_begin(nth: usize, played: f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    (1.0 - played).max(0.0) * (nth as f64 * GOLDEN).fract()
}

/// Which group an address of a window belongs to, as [`WindowSetup::group`] wants to know.
pub type AddressGroup<'a> = &'a dyn Fn(&SimWindow, u64) -> u32;

impl<'a> ReplaySetup<'a> {
    /// What homes of pages depend on, with a plan.
    pub fn page_homes<'p>(&'p self, plan: &'p ReplayPlan) -> PageHomeInput<'p> {
        PageHomeInput {
            plan,
            touches: &self.recording.touches,
            rule: self.rule,
            unit_nodes: &self.model.unit_nodes,
            nodes: &self.model.nodes,
        }
    }

    /// Plays a plan, in windows by position. `heard` is called for every window.
    ///
    /// # Errors
    /// When the machine cannot be simulated.
    pub fn replay_plan(
        &self,
        plan: &ReplayPlan,
        windows: &[usize],
        parts: WindowParts,
        group: Option<AddressGroup>,
        heard: &ReplayMonitor,
    ) -> Result<ReplayResult> {
        let mut playing = PlanReplay {
            page_homes: self.page_homes(plan),
            group,
            simulation: Simulation::new(&self.model.machine, true)?,
            goes_on: false,
            recorded: self.recording.bursts.windows(),
            machine: &self.model.machine,
            run: ReplayResult {
                windows: vec![Vec::new(); self.windows.len()],
                ..ReplayResult::default()
            },
        };
        let mut warmed = None;
        for &at in windows {
            let window = &self.windows[at];
            let begin = piece_begin(at, self.played);
            let first = window.before.first().unwrap_or(window);
            let start = playing.recorded[first.number].start;
            let period = self.warming.and_then(|warming| warming.at(start));
            if let Some((of, period)) = period.filter(|(of, _)| warmed != Some(*of)) {
                playing.warm(period, start)?;
                warmed = Some(of);
            }
            for before in &window.before {
                self.window(&mut playing, before, (begin, &[(1.0, false)]), heard)?;
            }
            let found = self.window(&mut playing, window, (begin, parts), heard)?;
            playing.run.windows[at] = found;
        }
        Ok(playing.run)
    }

    fn window(
        &self,
        playing: &mut PlanReplay,
        window: &SimWindow,
        (begin, parts): (f64, WindowParts),
        heard: &ReplayMonitor,
    ) -> Result<Vec<SimulationCounts>> {
        let mut source = RecordedWindow::new(self.recording, window);
        let from = begin + self.left_out * self.played;
        let before = accesses_up_to(&window.accesses, from);
        let starts = self.starts.filter(|_| from > 0.0);
        let starts = starts.map_or(Vec::new(), |starts| starts.take(window, &before));
        let mut read = Vec::new();
        for (thread, start) in starts {
            source.decoders[thread.at()] = Some(start.decoder);
            read.push((thread, start.accesses, start.waited));
        }
        let mut cut = PartitionedSource::new(source, window.accesses.clone());
        for (thread, accesses, waited) in read {
            cut.begin_behind(thread, accesses, waited);
        }
        cut.skip_to(&before);
        let recorded = &self.recording.bursts.windows()[window.number];
        let parts: Vec<_> = parts
            .iter()
            .map(|(share, counts)| (begin + share * self.played, *counts))
            .collect();
        let found = playing.window((window, recorded), &mut cut, (from, &parts))?;
        heard.window_done(cut.inner());
        Ok(found)
    }
}

/// A plan while it is played.
struct PlanReplay<'a> {
    page_homes: PageHomeInput<'a>,
    group: Option<AddressGroup<'a>>,
    simulation: Simulation<'a>,
    /// A part of the window was played.
    goes_on: bool,
    recorded: &'a [bursts::BurstWindow],
    machine: &'a SimulatedMachine,
    run: ReplayResult,
}

impl PlanReplay<'_> {
    /// Fills the caches with what threads have used by a time.
    fn warm(&mut self, period: &WarmingPeriod, time: Nanos) -> Result<()> {
        let plan = self.page_homes.plan;
        let stage = plan.stage_at(time);
        let homes = PageHomes::new(self.page_homes, &period.layout, stage);
        let setup = WindowSetup {
            units: &plan.stages[stage].units,
            home: &|address| homes.node_of(address),
            next_touch: false,
            page_move: 0.0,
            group: None,
        };
        let caches = period.caches(setup.units, self.machine);
        self.simulation.warm_caches(period.uses(caches), &setup)?;
        Ok(())
    }

    /// Plays a window from a share of it on, cut where a part ends and where a stage of the plan begins.
    fn window(
        &mut self,
        (window, recorded): (&SimWindow, &bursts::BurstWindow),
        cut: &mut PartitionedSource<RecordedWindow>,
        (begin, parts): (f64, WindowParts),
    ) -> Result<Vec<SimulationCounts>> {
        let plan = self.page_homes.plan;
        let within = plan.stages_between(recorded.start.saturating_add(1), recorded.end);
        let threads = window.accesses.len();
        self.goes_on = false;
        let made =
            |stage: usize| accesses_by_time(plan.stages[stage].start, &recorded.pieces, threads);
        let mut turns = within.map(|stage| (stage, made(stage))).peekable();
        let mut reached = 0;
        let mut found = Vec::new();
        let mut played = begin;
        for &(share, counts) in parts {
            let end = cut.accesses_up_to(share);
            let marks = marks_within(self.recorded, window.number, share - played);
            played = share;
            // The counted part may begin with another stage of the plan than the window.
            let begins = recorded.start.saturating_add(u64::from(counts));
            let mut stage = plan.stage_at(begins).max(reached);
            // Pages that move where a stage begins within the window are waited for. Between windows
            // they are not: what passes there is not counted.
            let mut moves = if plan.next_touch { marks } else { 0.0 };
            let mut sum = SimulationCounts::default();
            while let Some((next, made)) =
                turns.next_if(|(_, made)| total_accesses(made) < total_accesses(&end))
            {
                let upto: Vec<u64> = made.iter().zip(&end).map(|(a, b)| *a.min(b)).collect();
                if cut.extend_to(&upto) {
                    sum += &self.part(window, cut, (stage, moves), counts)?;
                }
                (stage, reached) = (next, next);
                moves = if plan.next_touch { marks } else { 1.0 };
            }
            cut.extend_to(&end);
            sum += &self.part(window, cut, (stage, moves), counts)?;
            if counts {
                found.push(sum);
            }
        }
        Ok(found)
    }

    /// Plays up to a cut, in a stage of the plan. `moves`: what share of the time that pages take
    /// to move threads wait for it.
    fn part(
        &mut self,
        window: &SimWindow,
        cut: &mut PartitionedSource<RecordedWindow>,
        (stage, moves): (usize, f64),
        counts: bool,
    ) -> Result<SimulationCounts> {
        let plan = self.page_homes.plan;
        let homes = PageHomes::new(self.page_homes, &window.layout, stage);
        let of_group = self
            .group
            .map(|group| move |address| group(window, address));
        let setup = WindowSetup {
            units: &plan.stages[stage].units,
            home: &|address| homes.node_of(address),
            next_touch: plan.next_touch,
            page_move: moves * PAGE_MOVE_SECONDS * self.machine.core.frequency * 1e9,
            group: of_group.as_ref().map(|of| of as &dyn Fn(u64) -> u32),
        };
        let outcome = match std::mem::replace(&mut self.goes_on, true) {
            false => self.simulation.play_window(cut, &setup, counts)?,
            true => self.simulation.play_part(cut, &setup, counts)?,
        };
        if counts {
            add(&mut self.run.threads, &outcome.threads);
            add(&mut self.run.groups, &outcome.groups);
        }
        Ok(outcome.counts)
    }
}

/// How often pages are marked, to move when they are next touched, in a share of a window: they are
/// once from each window to the next.
fn marks_within(windows: &[bursts::BurstWindow], number: usize, share: f64) -> f64 {
    let neighbours = windows.get(number.saturating_sub(1)..).unwrap_or(&[]);
    let (Some(window), [before, behind, ..]) = (windows.get(number), neighbours) else {
        return share;
    };
    let apart = behind.start.saturating_sub(before.start).max(1);
    let length = window.end.saturating_sub(window.start);
    (share * length as f64 / apart as f64).min(1.0)
}

fn total_accesses(accesses: &[u64]) -> u64 {
    accesses.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

/// Adds shares to others by position.
pub fn add(sums: &mut Vec<ActivityCounts>, shares: &[ActivityCounts]) {
    sums.resize(sums.len().max(shares.len()), ActivityCounts::default());
    for (sum, share) in sums.iter_mut().zip(shares) {
        sum.accesses += share.accesses;
        sum.instructions += share.instructions;
        sum.read_time += share.read_time;
        sum.add_events(share);
    }
}

/// What all simulations together tell while they go on.
pub struct ReplayMonitor<'a> {
    done: &'a (dyn Fn() + Sync),
    damaged: AtomicBool,
}

impl<'a> ReplayMonitor<'a> {
    pub fn new(done: &'a (dyn Fn() + Sync)) -> Self {
        ReplayMonitor {
            done,
            damaged: AtomicBool::new(false),
        }
    }

    /// Whether some accesses could not be read.
    pub fn damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    fn window_done(&self, source: &RecordedWindow) {
        if source.decoders.iter().flatten().any(PieceDecoder::damaged) {
            self.damaged.store(true, Ordering::Relaxed);
        }
        (self.done)();
    }
}

/// A window as it was recorded, in the one address space.
struct RecordedWindow<'a> {
    layout: &'a WindowLayout,
    threads: Vec<u32>,
    /// By thread of the profile.
    decoders: Vec<Option<PieceDecoder<'a>>>,
}

impl<'a> RecordedWindow<'a> {
    fn new(recording: &'a RunRecording, window: &'a SimWindow) -> Self {
        let there = recording.bursts.threads(window.number);
        let mut decoders: Vec<_> = window.accesses.iter().map(|_| None).collect();
        let mut threads = Vec::new();
        for thread in there {
            if let Some(place) = decoders.get_mut(thread.at()) {
                *place = Some(recording.bursts.decoder(window.number, thread));
                threads.push(thread.0);
            }
        }
        RecordedWindow {
            layout: &window.layout,
            threads,
            decoders,
        }
    }
}

impl AccessSource for RecordedWindow<'_> {
    fn threads(&self) -> &[u32] {
        &self.threads
    }

    fn next_piece(&mut self, thread: u32, into: &mut Vec<BurstAccess>) -> Option<BurstPiece> {
        let decoder = self.decoders.get_mut(thread as usize)?.as_mut()?;
        let piece = decoder.next(into)?;
        if !self.layout.is_plain(piece.process) {
            for access in into {
                access.address = self.layout.replay_address(piece.process, access.address);
            }
        }
        Some(piece)
    }
}

/// Does `count` tasks, at most `jobs` at a time; results come in the order of the tasks,
/// whichever worker does them.
///
/// # Errors
/// That of the first task that fails.
pub fn side_by_side<T: Send>(
    count: usize,
    jobs: Option<u32>,
    task: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let jobs = jobs.map_or(processors, |jobs| jobs as usize).min(count);
    let next = AtomicUsize::new(0);
    // Each cell is written once, by the worker that did its task.
    let results: Vec<Mutex<Option<Result<T>>>> = (0..count).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(cell) = results.get(at) else { break };
                let result = task(at);
                if let Ok(mut cell) = cell.lock() {
                    *cell = Some(result);
                }
            });
        }
    });
    let taken = results.into_iter().map(|cell| {
        let result = cell.into_inner().ok().flatten();
        result.unwrap_or_else(|| Err(anyhow!("a simulation was not done")))
    });
    taken.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_from_all_parts_of_windows() {
        let mut begins: Vec<f64> = (0..30).map(|nth| piece_begin(nth, 0.2)).collect();
        begins.sort_by(f64::total_cmp);
        assert!(
            begins[0] < 0.05 && begins[29] > 0.75 && begins[29] <= 0.8,
            "{begins:?}"
        );
        let gaps = begins.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.fold(0.0, f64::max) < 0.05, "{begins:?}");
        assert_eq!(piece_begin(5, 1.0), 0.0);
    }

    #[test]
    fn pages_are_marked_once_from_window_to_window() {
        let window = |start, end| bursts::BurstWindow {
            start,
            end,
            ..bursts::BurstWindow::default()
        };
        // The first as the second; a window that lasts until the next is marked once.
        let windows = [window(0, 10), window(100, 120), window(120, 220)];
        let check = |number, share, expected: f64| {
            let marks = marks_within(&windows, number, share);
            assert!((marks - expected).abs() < 1e-12, "{number}: {marks}");
        };
        check(0, 1.0, 0.1);
        check(1, 0.5, 0.1);
        check(2, 1.0, 1.0);
        // Of a recording of the whole run, once.
        assert!((marks_within(&windows[..1], 0, 0.75) - 0.75).abs() < 1e-12);
    }
}
