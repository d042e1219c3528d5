//! From policies and files to plans: where threads and pages are when, for each seed.
use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{bail, Context, Result};
use hither_profile::{read_placement, Nanos, Placement};

use super::options::SimOptions;
use super::run_recording::{RunRecording, SimWindow};
use super::sim_machine::SimMachine;
use crate::app::map::options::{MapOptions, FIRST_TOUCH};
use crate::app::map::{assigned_units, decide_placement};
use crate::app::policy_pair::{PolicyPair, ThreadPolicyArg, JOINT_DATA, USUAL};
use hither_model::simulate::replay_input::linux_scheduler::LinuxScheduler;
use hither_model::simulate::replay_input::replay_plan::{PlanStage, PlannedPages, ReplayPlan};

/// A window of more time than this is long enough for the system to move threads within it, so
/// many times at most.
const LONG_WINDOW: Nanos = 100_000_000;
const MOST_TURNS: u64 = 16;

/// A placement to simulate.
pub struct PlacementCandidate {
    pub name: String,
    pub thread_policy: String,
    pub data_policy: Option<String>,
    pub file: Option<String>,
    /// One for each seed.
    pub plans: Vec<ReplayPlan>,
    /// It is only there for `joint` to choose from.
    pub for_joint: bool,
}

/// What is needed to make plans.
pub struct CandidatePlanner<'a> {
    pub recording: &'a RunRecording,
    pub windows: &'a [SimWindow],
    pub model: &'a SimMachine,
    pub options: &'a SimOptions,
}

enum CandidateSource<'a> {
    Policy(PolicyPair),
    File(&'a Path),
    ForJoint(PolicyPair),
}

/// What is asked for, in order.
pub fn wanted_policies(options: &SimOptions) -> Vec<PolicyPair> {
    if !options.policies.is_empty() {
        return options.policies.clone();
    }
    match options.placements.is_empty() {
        true => USUAL.map(PolicyPair::from).to_vec(),
        false => vec![ThreadPolicyArg::Os.into()],
    }
}

impl CandidatePlanner<'_> {
    /// All of them; what `joint` chooses from is behind the others.
    ///
    /// # Errors
    /// One sentence when a policy cannot place this program, or a file is for something else.
    pub fn candidates(&self) -> Result<Vec<PlacementCandidate>> {
        self.sources()
            .iter()
            .map(|asked| self.candidate_from(asked))
            .collect()
    }

    /// The first plan of the first of them.
    ///
    /// # Errors
    /// As [`CandidatePlanner::candidates`].
    pub fn first(&self) -> Result<ReplayPlan> {
        let asked = self.sources();
        let first = asked
            .first()
            .map(|first| self.candidate_from(first))
            .transpose()?;
        let plan = first.and_then(|first| first.plans.into_iter().next());
        plan.context("there is nothing to simulate")
    }

    fn sources(&self) -> Vec<CandidateSource<'_>> {
        let wanted = wanted_policies(self.options);
        let joint = wanted.iter().any(|w| w.threads == ThreadPolicyArg::Joint);
        let for_joint = if joint {
            for_joint(&wanted)
        } else {
            Vec::new()
        };
        let alone = wanted
            .into_iter()
            .filter(|w| w.threads != ThreadPolicyArg::Joint);
        let files = self
            .options
            .placements
            .iter()
            .map(|file| CandidateSource::File(file));
        let alone = alone.map(CandidateSource::Policy).chain(files);
        alone
            .chain(for_joint.into_iter().map(CandidateSource::ForJoint))
            .collect()
    }

    fn candidate_from(&self, asked: &CandidateSource) -> Result<PlacementCandidate> {
        match asked {
            CandidateSource::Policy(wanted) => self.candidate(wanted),
            CandidateSource::File(file) => self.candidate_from_file(file),
            CandidateSource::ForJoint(wanted) => Ok(PlacementCandidate {
                for_joint: true,
                ..self.candidate(wanted)?
            }),
        }
    }

    fn candidate(&self, wanted: &PolicyPair) -> Result<PlacementCandidate> {
        let is_chance = wanted.threads.is_chance() || wanted.placed_data() == Some("random");
        let seeds = if is_chance { self.options.seeds } else { 1 };
        let seeds = (0..u64::from(seeds)).map(|n| self.options.seed.wrapping_add(n));
        let mut plans = Vec::new();
        for seed in seeds {
            plans.push(self.plan(wanted, seed)?);
        }
        Ok(PlacementCandidate {
            name: wanted.name(),
            thread_policy: wanted.threads.name().to_owned(),
            data_policy: wanted
                .data
                .clone()
                .filter(|_| wanted.placed_data().is_some() || wanted.moves_pages_by_touch()),
            file: None,
            plans,
            for_joint: false,
        })
    }

    fn plan(&self, wanted: &PolicyPair, seed: u64) -> Result<ReplayPlan> {
        let (input, target) = (&self.recording.input, &self.model.target);
        let policy = match wanted.threads {
            ThreadPolicyArg::Policy(name) => name,
            // Any will do: its threads are placed by the system.
            ThreadPolicyArg::Os | ThreadPolicyArg::Joint => "compact",
        };
        let data = wanted.placed_data().unwrap_or(FIRST_TOUCH);
        let options = MapOptions {
            policy,
            data: Some(data.to_owned()),
            seed,
            phases: wanted.phases.or(self.options.map.phases),
            ..self.options.map.clone()
        };
        let mut kernel = LinuxScheduler::new(&target.tree, seed);
        let phased = options.phases.is_some() && wanted.threads != ThreadPolicyArg::Os;
        let places_pages = wanted.placed_data().is_some() || !options.structures.is_empty();
        if phased {
            return self.of_placement(&decide_placement(&options, input, target, None)?, seed);
        }
        let assigned = match wanted.threads {
            ThreadPolicyArg::Os => {
                let units: Vec<u32> = input.placed.iter().map(|_| kernel.place_thread()).collect();
                input.units_of_all(&units)
            }
            _ => assigned_units(&options, input, target)?,
        };
        let mut plan = match places_pages {
            true => self.of_placement(
                &decide_placement(&options, input, target, Some(&assigned))?,
                seed,
            )?,
            false => ReplayPlan::from_units(assigned),
        };
        plan.next_touch = wanted.moves_pages_by_touch();
        match wanted.threads {
            ThreadPolicyArg::Os => self.with_migrations(plan, &mut kernel),
            _ => Ok(plan),
        }
    }

    /// As the system moves threads between windows, before what warms the caches, and as often as it would while one lasts: at
    /// the beginning of what counts of it, and over a long one evenly, so that the cold caches
    /// cost what they cost.
    fn with_migrations(
        &self,
        mut plan: ReplayPlan,
        kernel: &mut LinuxScheduler,
    ) -> Result<ReplayPlan> {
        let recording = self.recording;
        let threads: Vec<usize> = recording.input.placed.iter().map(|t| t.at()).collect();
        let seconds = self.own_seconds()?;
        let probability =
            |traced: Nanos| 1.0 - (-self.options.migrations * seconds * traced as f64).exp();
        let mut units = plan
            .stages
            .first()
            .map_or_else(Vec::new, |s| s.units.clone());
        let mut last = 0;
        for window in self.windows {
            let time = |window: &SimWindow| &recording.bursts.windows()[window.number];
            let begins = time(window.before.first().unwrap_or(window)).start;
            let window = time(window);
            let between = window.start.saturating_sub(last);
            last = window.end;
            let within = migration_times(window.start, window.end, recording.is_whole());
            for (start, traced) in [(begins, between)].into_iter().chain(within) {
                let before = units.clone();
                kernel.migrate(&mut units, &threads, probability(traced));
                // A stage cuts the window: none without need.
                if units != before {
                    plan.stages.push(PlanStage {
                        start,
                        units: units.clone(),
                        pages: PlannedPages::default(),
                    });
                }
            }
        }
        Ok(plan)
    }

    /// Seconds of the program's own time for each nanosecond under the tracer: as if its busiest
    /// thread had executed an instruction a cycle.
    fn own_seconds(&self) -> Result<f64> {
        let profile = self.recording.profile()?;
        let busiest = profile.threads.iter().map(|t| t.instructions).max();
        let alone = busiest.unwrap_or(0) as f64 / (self.model.machine.core.frequency * 1e9);
        Ok(alone / profile.meta.duration.max(1) as f64)
    }

    /// Threads that work and are left to the system are spread as it spreads them; the others
    /// count as being where their creator is.
    fn of_placement(&self, placement: &Placement, seed: u64) -> Result<ReplayPlan> {
        let recording = self.recording;
        let (input, tree) = (&recording.input, &self.model.target.tree);
        let works = recording.busy_threads();
        let rest = |assigned: &[Option<u32>]| {
            let mut kernel = LinuxScheduler::new(tree, seed);
            for unit in assigned.iter().flatten() {
                kernel.add_running(*unit);
            }
            let mut units: Vec<Option<u32>> = assigned.to_vec();
            for (at, unit) in units.iter_mut().enumerate() {
                if unit.is_none() && works[at] {
                    *unit = Some(kernel.place_thread());
                }
            }
            let placed: Vec<u32> = input
                .placed
                .iter()
                .map(|t| units[t.at()].unwrap_or(0))
                .collect();
            let all = input.units_of_all(&placed);
            units
                .iter()
                .zip(all)
                .map(|(unit, other)| unit.unwrap_or(other))
                .collect()
        };
        Ok(ReplayPlan::from_placement(
            placement,
            recording.profile()?,
            tree,
            rest,
        ))
    }

    /// A placement that the user gives.
    fn candidate_from_file(&self, file: &Path) -> Result<PlacementCandidate> {
        let shown = file.display();
        let placement = read_placement(file)?;
        let threads = self.recording.input.threads.len();
        if placement.threads.len() != threads {
            bail!(
                "{shown} places {} threads and {} has {threads}; give the placement that `hither map` made of this profile",
                placement.threads.len(),
                self.recording.input.source.file,
            );
        }
        let target = &self.model.target.id;
        if placement.machine.fingerprint != target.fingerprint {
            bail!(
                "{shown} is for the machine \"{}\" ({} PUs), and this is {} ({} PUs); give its --topology, or make a placement for this one with `hither map`",
                placement.machine.name, placement.machine.units, target.name, target.units
            );
        }
        let plan = self.of_placement(&placement, self.options.seed)?;
        Ok(PlacementCandidate {
            name: file
                .file_name()
                .map_or_else(|| shown.to_string(), |n| n.to_string_lossy().into_owned()),
            thread_policy: placement.policy.threads.clone(),
            data_policy: placement.policy.data.clone(),
            file: Some(shown.to_string()),
            plans: vec![plan],
            for_joint: false,
        })
    }
}

/// When the system may move threads within a window, and for how long that stands.
fn migration_times(start: Nanos, end: Nanos, whole: bool) -> impl Iterator<Item = (Nanos, Nanos)> {
    let length = end.saturating_sub(start);
    let turns = match whole {
        true => MOST_TURNS,
        false => (length / LONG_WINDOW).clamp(1, MOST_TURNS),
    };
    let each = length / turns;
    // In the middle of its part: at the beginning of a run there is no cache to lose yet.
    let first = if turns > 1 { each / 2 } else { 0 };
    (0..turns).map(move |turn| {
        let behind = first.saturating_add(turn.saturating_mul(each)).max(1);
        (start.saturating_add(behind), each)
    })
}

/// The policies that `joint` chooses from: those that are compared and know something, each with
/// pages placed for its threads; if there are none, the usual ones.
fn for_joint(wanted: &[PolicyPair]) -> Vec<PolicyPair> {
    let all = wanted.iter().map(|w| w.threads);
    let mut threads: Vec<ThreadPolicyArg> = all.filter(|t| t.is_known()).collect();
    if threads.is_empty() {
        threads = USUAL.into_iter().filter(|t| t.is_known()).collect();
    }
    let mut seen = BTreeSet::new();
    threads.retain(|threads| seen.insert(threads.name()));
    let with_pages = |threads| PolicyPair::from(threads).with_data(JOINT_DATA);
    threads.into_iter().map(with_pages).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_windows_have_several_turns() {
        let check = |end: Nanos, whole: bool, count: usize, first: Nanos| {
            let all: Vec<_> = migration_times(1000, end, whole).collect();
            assert_eq!((all.len(), all[0].0), (count, first), "{end} {whole}");
            assert!(all.iter().all(|(at, _)| *at > 1000 && *at < end.max(1002)));
        };
        check(1000, false, 1, 1001);
        check(10_001_000, false, 1, 1001);
        check(400_001_000, false, 4, 50_001_000);
        check(33_000, true, 16, 2000);
        check(Nanos::MAX, false, 16, 1000 + (Nanos::MAX - 1000) / 32);
    }
}
