//! Playing a plan's windows through the simulated machine, several plans at a time.
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

use anyhow::{anyhow, Result};
use hither_profile::bursts::{self, Access, Decoder, Piece};

use super::model::Model;
use super::recorded::{Recording, Window};
use hither_model::simulate::feed::cut::{made_by, Cut};
use hither_model::simulate::feed::homes::{Ground, Homes, Rule};
use hither_model::simulate::feed::plan::Plan;
use hither_model::simulate::feed::space::Layout;
use hither_model::simulate::outcome::{Counts, Share};
use hither_model::simulate::{Setup, Simulation, Source};

/// What is played on what.
#[derive(Clone, Copy)]
pub struct Stand<'a> {
    pub recording: &'a Recording,
    pub windows: &'a [Window],
    pub model: &'a Model,
    pub rule: Rule,
}

/// What came of a plan.
#[derive(Default)]
pub struct Run {
    /// By window, the parts that count.
    pub windows: Vec<Vec<Counts>>,
    /// Over all windows: by thread, and by group.
    pub threads: Vec<Share>,
    pub groups: Vec<Share>,
}

/// How each window is played: the ends of its parts as shares of it, and whether they count.
pub type Parts<'a> = &'a [(f64, bool)];

/// Which group an address of a window belongs to, as [`Setup::group`] wants to know.
pub type Group<'a> = &'a dyn Fn(&Window, u64) -> u32;

impl<'a> Stand<'a> {
    /// Plays a plan. `heard` is told of every window.
    ///
    /// # Errors
    /// When the machine cannot be simulated.
    pub fn play(
        &self,
        plan: &Plan,
        parts: Parts,
        group: Option<Group>,
        heard: &Heard,
    ) -> Result<Run> {
        let ground = Ground {
            plan,
            touches: &self.recording.touches,
            rule: self.rule,
            unit_nodes: &self.model.unit_nodes,
            nodes: &self.model.nodes,
        };
        let mut playing = Playing {
            ground,
            group,
            simulation: Simulation::new(&self.model.machine, true)?,
            goes_on: false,
            run: Run::default(),
        };
        for window in self.windows {
            for before in &window.before {
                self.window(&mut playing, before, &[(1.0, false)], heard)?;
            }
            let found = self.window(&mut playing, window, parts, heard)?;
            playing.run.windows.push(found);
        }
        Ok(playing.run)
    }

    fn window(
        &self,
        playing: &mut Playing,
        window: &Window,
        parts: Parts,
        heard: &Heard,
    ) -> Result<Vec<Counts>> {
        let source = Recorded::new(self.recording, window);
        let mut cut = Cut::new(source, window.accesses.clone());
        let recorded = &self.recording.bursts.windows()[window.number];
        let found = playing.window((window, recorded), &mut cut, parts)?;
        heard.window(cut.inner());
        Ok(found)
    }
}

/// A plan while it is played.
struct Playing<'a> {
    ground: Ground<'a>,
    group: Option<Group<'a>>,
    simulation: Simulation<'a>,
    /// A part of the window was played.
    goes_on: bool,
    run: Run,
}

impl Playing<'_> {
    /// Plays a window, cut where a part ends and where a stage of the plan begins.
    fn window(
        &mut self,
        (window, recorded): (&Window, &bursts::Window),
        cut: &mut Cut<Recorded>,
        parts: Parts,
    ) -> Result<Vec<Counts>> {
        let plan = self.ground.plan;
        let within = plan.within(recorded.start.saturating_add(1), recorded.end);
        let threads = window.accesses.len();
        self.goes_on = false;
        let made = |stage: usize| made_by(plan.stages[stage].start, &recorded.pieces, threads);
        let mut turns = within.map(|stage| (stage, made(stage))).peekable();
        let mut reached = 0;
        let mut found = Vec::new();
        for &(share, counts) in parts {
            let end = cut.share(share);
            // What counts may have a stage of its own: see plans.rs.
            let begins = recorded.start.saturating_add(u64::from(counts));
            let mut stage = plan.at(begins).max(reached);
            let mut sum = Counts::default();
            while let Some((next, made)) = turns.next_if(|(_, made)| all(made) < all(&end)) {
                let upto: Vec<u64> = made.iter().zip(&end).map(|(a, b)| *a.min(b)).collect();
                if cut.until(&upto) {
                    sum += &self.part(window, cut, stage, counts)?;
                }
                (stage, reached) = (next, next);
            }
            cut.until(&end);
            sum += &self.part(window, cut, stage, counts)?;
            if counts {
                found.push(sum);
            }
        }
        Ok(found)
    }

    fn part(
        &mut self,
        window: &Window,
        cut: &mut Cut<Recorded>,
        stage: usize,
        counts: bool,
    ) -> Result<Counts> {
        let plan = self.ground.plan;
        let homes = Homes::new(self.ground, &window.layout, stage);
        let of_group = self
            .group
            .map(|group| move |address| group(window, address));
        let setup = Setup {
            units: &plan.stages[stage].units,
            home: &|address| homes.of(address),
            group: of_group.as_ref().map(|of| of as &dyn Fn(u64) -> u32),
        };
        let outcome = match std::mem::replace(&mut self.goes_on, true) {
            false => self.simulation.window(cut, &setup, counts)?,
            true => self.simulation.part(cut, &setup, counts)?,
        };
        if counts {
            add(&mut self.run.threads, &outcome.threads);
            add(&mut self.run.groups, &outcome.groups);
        }
        Ok(outcome.counts)
    }
}

fn all(accesses: &[u64]) -> u64 {
    accesses.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

/// Adds shares to others by position.
pub fn add(sums: &mut Vec<Share>, shares: &[Share]) {
    sums.resize(sums.len().max(shares.len()), Share::default());
    for (sum, share) in sums.iter_mut().zip(shares) {
        sum.accesses += share.accesses;
        sum.instructions += share.instructions;
        sum.read_time += share.read_time;
        sum.add_events(share);
    }
}

/// What all simulations together tell while they go on.
pub struct Heard<'a> {
    done: &'a (dyn Fn() + Sync),
    damaged: AtomicBool,
}

impl<'a> Heard<'a> {
    pub fn new(done: &'a (dyn Fn() + Sync)) -> Self {
        Heard {
            done,
            damaged: AtomicBool::new(false),
        }
    }

    /// Whether some accesses could not be read.
    pub fn damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    fn window(&self, source: &Recorded) {
        if source.decoders.iter().flatten().any(Decoder::damaged) {
            self.damaged.store(true, Ordering::Relaxed);
        }
        (self.done)();
    }
}

/// A window as it was recorded, in the one address space.
struct Recorded<'a> {
    layout: &'a Layout,
    threads: Vec<u32>,
    /// By thread of the profile.
    decoders: Vec<Option<Decoder<'a>>>,
}

impl<'a> Recorded<'a> {
    fn new(recording: &'a Recording, window: &'a Window) -> Self {
        let there = recording.bursts.threads(window.number);
        let mut decoders: Vec<_> = window.accesses.iter().map(|_| None).collect();
        let mut threads = Vec::new();
        for thread in there {
            if let Some(place) = decoders.get_mut(thread.at()) {
                *place = Some(recording.bursts.decoder(window.number, thread));
                threads.push(thread.0);
            }
        }
        Recorded {
            layout: &window.layout,
            threads,
            decoders,
        }
    }
}

impl Source for Recorded<'_> {
    fn threads(&self) -> &[u32] {
        &self.threads
    }

    fn next(&mut self, thread: u32, into: &mut Vec<Access>) -> Option<Piece> {
        let decoder = self.decoders.get_mut(thread as usize)?.as_mut()?;
        let piece = decoder.next(into)?;
        if !self.layout.is_plain(piece.process) {
            for access in into {
                access.address = self.layout.address(piece.process, access.address);
            }
        }
        Some(piece)
    }
}

/// Does `count` tasks, at most `jobs` at a time; results come in the order of the tasks, whoever
/// does which.
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
    // Each cell is written once, by whoever did its task.
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
