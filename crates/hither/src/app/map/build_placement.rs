//! From what the policies decided to the placement that is kept.
use super::options::MapOptions;
use super::pages::PagePlacement;
use super::threads::ThreadPlacer;
use super::{explain, MapInput, MapSolution, MapTarget};
use hither_model::map::data::placeable_pages::in_order;
use hither_model::map::data::{PlaceablePages, PlacementPageSize};
use hither_model::map::phase_plan::ThreadStage;
use hither_profile::{
    MappingObjective, Nanos, NodeIx, PhaseIntervals, PlacedPhase, Placement, PolicyChoice, Profile,
    RegionIdentity, RegionIx, RegionPlacement, SliceIx, ThreadIx, ThreadPlace, PAGE_SIZE,
    PLACEMENT_FORMAT,
};
use std::collections::{BTreeMap, BTreeSet};

pub fn build_placement(
    options: &MapOptions,
    input: &MapInput,
    target: &MapTarget,
    placer: &ThreadPlacer,
    solution: &MapSolution,
) -> Placement {
    let mut regions = PlacedRegionNumbers::default();
    let phases = phases(input, target, solution, &mut regions);
    let in_phases = input.profile.as_ref().zip(options.phases.as_ref());
    let phase_note =
        in_phases.and_then(|(p, options)| explain::phase_note(p, options, phases.len()));
    let cache_note = solution.pages.as_ref().and_then(explain::page_cache_note);
    Placement {
        format: PLACEMENT_FORMAT,
        writer: env!("CARGO_PKG_VERSION").to_owned(),
        source: input.source.clone(),
        machine: target.id.clone(),
        policy: policy(options, placer, solution),
        objective: total_objective(&solution.objectives),
        why: why(input, solution)
            + &phase_note.unwrap_or_default()
            + &cache_note.unwrap_or_default(),
        processes: input.processes.clone(),
        threads: match &input.recorded {
            Some(recorded) => recorded.threads.clone(),
            None => input.threads.clone(),
        },
        page_bytes: match options.page_size {
            PlacementPageSize::K4 => PAGE_SIZE,
            PlacementPageSize::M2 => 2 << 20,
        },
        regions: regions.described(input),
        phases,
    }
}

fn why(input: &MapInput, solution: &MapSolution) -> String {
    let reason = explain::reason_sentence(solution);
    match input.roles_sentence() {
        Some(roles) => format!("{reason} {roles}"),
        None => reason,
    }
}

fn policy(options: &MapOptions, placer: &ThreadPlacer, solution: &MapSolution) -> PolicyChoice {
    let mut policy = PolicyChoice {
        threads: placer.policy().to_owned(),
        data: solution.pages.as_ref().and_then(|p| p.policy.clone()),
        cost: options.cost.name().to_owned(),
        seed: options.seed,
        capacity: placer.capacity,
        options: options.record(),
    };
    if let Some(phases) = &options.phases {
        policy.set_phase_intervals(PhaseIntervals {
            threads: phases.limits.thread_interval,
            pages: phases.limits.page_interval,
        });
    }
    policy
}

fn total_objective(objectives: &[MappingObjective]) -> MappingObjective {
    let sum =
        |of: fn(&MappingObjective) -> u64| objectives.iter().map(of).fold(0, u64::saturating_add);
    MappingObjective {
        before: sum(|o| o.before),
        after: sum(|o| o.after),
        fraction_bits: objectives.first().map_or(0, |o| o.fraction_bits),
    }
}

/// One for each time at which threads or pages move.
fn phases(
    input: &MapInput,
    target: &MapTarget,
    solution: &MapSolution,
    regions: &mut PlacedRegionNumbers,
) -> Vec<PlacedPhase> {
    let mut times: BTreeMap<Nanos, SliceIx> = BTreeMap::new();
    times.extend(solution.stages.iter().map(|s| (s.start, s.slice)));
    let moves = page_moves(solution.pages.as_ref());
    times.extend(moves.iter().map(|(start, (slice, _))| (*start, *slice)));
    let phase = |(start, slice): (&Nanos, &SliceIx)| {
        let stage = solution.stages.partition_point(|s| s.start <= *start);
        let stage = stage.saturating_sub(1);
        let begins = solution.stages[stage].start == *start;
        let pages = solution.pages.as_ref().zip(moves.get(start));
        PlacedPhase {
            start: *start,
            sync: sync_before(input.profile.as_ref(), *slice),
            objective: match begins {
                true => solution.objectives[stage],
                false => MappingObjective::default(),
            },
            threads: thread_places(input, target, &solution.stages[stage]),
            pages: pages.map_or_else(Vec::new, |(placed, (_, moves))| {
                regions.places(&placed.pages, moves, input.profile.as_ref())
            }),
        }
    };
    times.iter().map(phase).collect()
}

/// Pages that get a node at a time, by position. First places count from the start: a
/// page that is not there yet can be bound, and is then right at once.
type PageMovesByTime = BTreeMap<Nanos, (SliceIx, Vec<(usize, NodeIx)>)>;

fn page_moves(placed: Option<&PagePlacement>) -> PageMovesByTime {
    let mut moves = PageMovesByTime::new();
    let Some(placed) = placed else {
        return moves;
    };
    for step in &placed.plan.steps {
        let start = &mut moves.entry(0).or_default().1;
        let own = step.placed.iter().filter(|(page, _)| !placed.cached[*page]);
        start.extend(own);
        if !step.moved.is_empty() {
            let then = moves.entry(step.start).or_default();
            then.0 = step.slice;
            then.1.extend(&step.moved);
        }
    }
    for (_, pages) in moves.values_mut() {
        pages.sort_unstable_by_key(|(page, _)| *page);
    }
    moves
}

/// Synchronisation points passed before a slice.
fn sync_before(profile: Option<&Profile>, slice: SliceIx) -> [u64; 4] {
    let mut sums = [0u64; 4];
    let slices = profile.map_or(&[][..], |p| &p.slices);
    for before in slices.iter().take(slice.at()) {
        for (sum, count) in sums.iter_mut().zip(before.sync) {
            *sum = sum.saturating_add(count);
        }
    }
    sums
}

fn thread_places(input: &MapInput, target: &MapTarget, stage: &ThreadStage) -> Vec<ThreadPlace> {
    let place = |thread: ThreadIx, row: ThreadIx| {
        let unit = target.tree.units[stage.threads[row.at()] as usize];
        ThreadPlace(thread, unit.pu, unit.os, unit.node)
    };
    let Some(recorded) = &input.recorded else {
        return input.placed.iter().map(|t| place(*t, *t)).collect();
    };
    let placed: BTreeSet<&ThreadIx> = input.placed.iter().collect();
    let all = (0..).map(ThreadIx).zip(&recorded.roles);
    let all = all.filter(|(_, role)| placed.contains(role));
    all.map(|(thread, role)| place(thread, *role)).collect()
}

/// The regions that pages are placed in, numbered as they come.
#[derive(Default)]
struct PlacedRegionNumbers {
    number: BTreeMap<RegionIx, u32>,
}

impl PlacedRegionNumbers {
    /// Pages that lie beyond what is known of their region are left out: in the next run
    /// they cannot be told from what follows it.
    fn places(
        &mut self,
        pages: &PlaceablePages,
        moves: &[(usize, NodeIx)],
        profile: Option<&Profile>,
    ) -> Vec<RegionPlacement> {
        let size = |region: RegionIx| {
            let region = profile.and_then(|p| p.regions.get(region.at()));
            region.map_or(0, |r| r.size.div_ceil(PAGE_SIZE))
        };
        let mut by_region: BTreeMap<u32, RegionPlacement> = BTreeMap::new();
        let with_parts = moves.iter().flat_map(|&(page, node)| {
            let parts = pages.parts(page).iter().chain([pages.page(page)]);
            parts.map(move |part| (*part, node))
        });
        for (page, node) in in_order(with_parts, |(part, _)| (part.region, part.first)) {
            let first = u64::from(page.first.0);
            let end = (first + u64::from(page.count)).min(size(page.region));
            if first >= end {
                continue;
            }
            let next = self.number.len() as u32;
            let region = *self.number.entry(page.region).or_insert(next);
            let places = by_region.entry(region).or_insert(RegionPlacement {
                region,
                runs: Vec::new(),
            });
            places.push(first, end - first, node);
        }
        by_region.into_values().collect()
    }

    fn described(&self, input: &MapInput) -> Vec<RegionIdentity> {
        let profile = input.profile.as_ref();
        let mut regions: Vec<RegionIdentity> = vec![RegionIdentity::default(); self.number.len()];
        for (region, number) in &self.number {
            let known = profile.and_then(|p| p.regions.get(region.at()));
            let Some(known) = known else { continue };
            let described = &mut regions[*number as usize];
            *described = known.into();
            if let Some(recorded) = &input.recorded {
                described.thread = recorded.of_region[region.at()];
            }
        }
        regions
    }
}
