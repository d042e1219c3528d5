//! Threads to units: for the whole run, or for each phase that is worth it.
use super::input::MapInput;
use super::machine::MapTarget;
use super::options::{MapOptions, PhaseOptions, FALLBACK_POLICY};
use anyhow::{anyhow, bail, Result};
use hither_model::map::phase_plan::{
    self, plan_threads_by_period, plan_threads_by_rule, plan_threads_together, PhaseRule,
    PlanCosts, ThreadStage,
};
use hither_model::map::{threads, CommGraph, PuAssignment, ThreadProblem};
use hither_profile::{CommMatrix, Placement, Profile, SliceIx};
use std::collections::BTreeMap;

/// Places the threads of an input on a machine.
pub struct ThreadPlacer<'a> {
    options: &'a MapOptions,
    input: &'a MapInput,
    target: &'a MapTarget,
    pub capacity: u32,
}

impl<'a> ThreadPlacer<'a> {
    /// # Errors
    /// When the threads do not fit.
    pub fn new(
        options: &'a MapOptions,
        input: &'a MapInput,
        target: &'a MapTarget,
    ) -> Result<ThreadPlacer<'a>> {
        let (threads, units) = (input.placed.len(), target.tree.units.len());
        let least = threads.div_ceil(units) as u32;
        let capacity = options.capacity.unwrap_or(least);
        if capacity < least {
            bail!("{threads} threads do not fit on {units} PUs with {capacity} each; give --capacity {least}, or more PUs");
        }
        if capacity > least && !options.siblings {
            bail!("--capacity {capacity} changes nothing without --siblings: PUs get as few threads as hold all {threads}, {least} at most; give --siblings, or leave --capacity out");
        }
        Ok(ThreadPlacer {
            options,
            input,
            target,
            capacity,
        })
    }

    pub fn policy(&self) -> &'static str {
        self.options.policy
    }

    /// A unit for every placed thread.
    fn place(
        &self,
        policy: &str,
        comm: &CommGraph,
        current: Option<&[u32]>,
    ) -> Result<PuAssignment, String> {
        let known = threads::THREAD_POLICIES.iter().find(|p| p.name() == policy);
        let known = known.ok_or_else(|| format!("there is no policy {policy}"))?;
        let problem = ThreadProblem {
            tree: &self.target.tree,
            cost: &self.target.cost,
            comm,
            load: &self.input.load,
            capacity: self.capacity,
            siblings: self.options.siblings,
            current,
            seed: self.options.seed,
        };
        known
            .place(&problem)
            .map_err(|why| format!("policy {policy}: {why}"))
    }

    /// Where the threads are before: an older placement, else as a kernel spreads them
    /// that knows nothing of what they share.
    pub fn previous_assignment(&self, old: Option<&Placement>) -> Result<PuAssignment> {
        match old {
            Some(old) => current_assignment(old, self.input, self.target),
            None => self
                .place(FALLBACK_POLICY, &self.input.comm, None)
                .map_err(|e| anyhow!(e)),
        }
    }

    /// When which threads are where, a unit for every thread of the profile.
    ///
    /// # Errors
    /// When the policy has one.
    pub fn stages(&self, current: Option<&[u32]>) -> Result<Vec<ThreadStage>> {
        let slices = self.input.profile.as_ref().map(|p| p.slices.len());
        if self.options.phases.is_some() && slices.unwrap_or(0) == 0 {
            bail!(
                "--phases needs slices of time, which {} lacks; give a profile of a run",
                self.input.source.file
            );
        }
        let plan = match (&self.input.profile, &self.options.phases) {
            (Some(profile), Some(phases)) => self.phases(profile, phases, current),
            _ => return Ok(vec![ThreadStage::whole_run(self.whole_run(current)?)]),
        };
        plan.map_err(|e| anyhow!(e))
    }

    fn phases(
        &self,
        profile: &Profile,
        options: &PhaseOptions,
        current: Option<&[u32]>,
    ) -> Result<Vec<ThreadStage>, String> {
        let found = options.phases_of(profile);
        let ranges: Vec<_> = found.iter().map(|phase| phase.slices.clone()).collect();
        let mut phases = phase_plan::phases_of_profile(profile, &ranges);
        for (phase, found) in phases.iter_mut().zip(&found) {
            phase.stable = found.stable;
        }
        let costs = PhaseCosts {
            placer: self,
            current,
        };
        match options.rule {
            PhaseRule::Together => plan_threads_together(&phases, &options.limits, &costs),
            PhaseRule::Opt => {
                let map = |matrix: &CommMatrix, now: Option<&[u32]>| costs.map(matrix, now);
                let plan = plan_threads_by_rule(&phases, &profile.slices, &options.limits, map)?;
                Ok(plan.stages)
            }
            PhaseRule::Kmaf => {
                let map = |matrix: &CommMatrix, now: Option<&[u32]>| costs.map(matrix, now);
                plan_threads_by_period(profile, options.limits.thread_interval, map)
            }
        }
    }

    /// One placement for the whole run, a unit for every thread of the profile.
    ///
    /// # Errors
    /// When the policy has one.
    pub fn whole_run(&self, current: Option<&[u32]>) -> Result<Vec<u32>> {
        let units = self.place(self.options.policy, &self.input.comm, current);
        let units = units.map_err(|e| anyhow!(e))?;
        Ok(self.input.units_of_all(&units))
    }

    fn graph_of(&self, matrix: &CommMatrix) -> CommGraph {
        let pairs = CommGraph::from_matrix(matrix);
        let pairs = pairs.pairs().map(|(i, j, w)| (i as u32, j as u32, w));
        self.input.graph(pairs)
    }

    /// Communication while each stage lasts, between the placed threads, numbered as in
    /// the profile.
    pub fn communication(&self, stages: &[ThreadStage]) -> Vec<CommGraph> {
        let whole = self.input.to_all_threads(&self.input.comm);
        let Some(profile) = self.input.profile.as_ref().filter(|_| stages.len() > 1) else {
            return vec![whole];
        };
        let of_stage = |at: usize| {
            let from = stages[at].slice;
            let to = stages.get(at + 1).map_or(SliceIx(u32::MAX), |s| s.slice);
            let during = profile
                .comm
                .iter()
                .filter(move |c| (from..to).contains(&c.slice));
            let graph = self.input.graph(during.map(|c| (c.i.0, c.j.0, c.events)));
            self.input.to_all_threads(&graph)
        };
        (0..stages.len()).map(of_stage).collect()
    }
}

/// What placements of phases cost, units being those of every thread of the profile.
struct PhaseCosts<'a> {
    placer: &'a ThreadPlacer<'a>,
    /// Where the placed threads are before, if a placement was given.
    current: Option<&'a [u32]>,
}

impl PhaseCosts<'_> {
    fn distance(&self, from: u32, to: u32) -> u128 {
        let target = self.placer.target;
        u128::from(
            target
                .cost
                .distance(&target.tree, from as usize, to as usize),
        )
    }
}

impl PlanCosts for PhaseCosts<'_> {
    fn map(&self, matrix: &CommMatrix, now: Option<&[u32]>) -> Result<PuAssignment, String> {
        let placer = self.placer;
        let now = now.map(|units| placer.input.units_of_placed(units));
        let now = now.as_deref().or(self.current);
        let units = placer.place(placer.options.policy, &placer.graph_of(matrix), now)?;
        Ok(placer.input.units_of_all(&units))
    }

    fn objective(&self, matrix: &CommMatrix, threads: &[u32]) -> u128 {
        let units = self.placer.input.units_of_placed(threads);
        let graph = self.placer.graph_of(matrix);
        let pairs = graph.pairs();
        let cost = |(i, j, events)| u128::from(events) * self.distance(units[i], units[j]);
        pairs.map(cost).sum()
    }

    fn distance_moved(&self, from: &[u32], to: &[u32]) -> u128 {
        let placed = self.placer.input.placed.iter();
        placed
            .map(|t| self.distance(from[t.at()], to[t.at()]))
            .sum()
    }
}

/// Where an older placement has the threads. Those that it does not name, or has on a unit
/// that may not be used now, count as being where there is most room.
fn current_assignment(
    old: &Placement,
    input: &MapInput,
    target: &MapTarget,
) -> Result<PuAssignment> {
    if old.machine.fingerprint != target.id.fingerprint {
        bail!(
            "the placement given with --from is for another machine ({}, {} PUs; this is {}, {} PUs); leave --from out, or give its --topology",
            old.machine.name, old.machine.units, target.id.name, target.id.units
        );
    }
    let units = (0u32..).zip(&target.tree.units);
    let unit_of: BTreeMap<u32, u32> = units.map(|(at, unit)| (unit.os, at)).collect();
    let places = old.phases.first().map_or(&[][..], |p| &p.threads);
    let known = input.placed.iter().map(|thread| {
        let same = old.threads.get(thread.at()) == input.threads.get(thread.at());
        let place = places.iter().find(|p| p.thread() == *thread);
        let place = place.filter(|_| same || input.profile.is_none());
        place.and_then(|p| unit_of.get(&p.os_index()).copied())
    });
    let known: Vec<Option<u32>> = known.collect();
    if known.iter().all(Option::is_none) {
        bail!("the placement given with --from places none of these threads; leave --from out, or give one of the same program");
    }
    let mut on_unit = vec![0u32; target.tree.units.len()];
    for unit in known.iter().flatten() {
        on_unit[*unit as usize] += 1;
    }
    let fill = |unit: Option<u32>| {
        unit.unwrap_or_else(|| {
            let least = (0..on_unit.len()).min_by_key(|&u| on_unit[u]).unwrap_or(0);
            on_unit[least] += 1;
            least as u32
        })
    };
    Ok(known.into_iter().map(fill).collect())
}
