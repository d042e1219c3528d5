//! From what was counted to figures, ratios and a verdict.
use hither_profile::{
    EnergyAmounts, EnergyPart, LevelAmounts, NodeAmounts, PartAmounts as Portion, PredictedAmounts,
    PredictedPlacement, RatioEstimate, RelativeFigures, WindowAmounts,
};

use super::candidates::PlacementCandidate;
use super::replay::{add, ReplayResult};
use super::run_recording::{RunRecording, SimWindow};
use super::sim_machine::SimMachine;
use crate::app::policy_pair::ThreadPolicyArg;
use hither_model::simulate::counts::{ActivityCounts, LevelCounts, NodeCounts, SimulationCounts};
use hither_model::simulate::energy::{energy_breakdown, ComponentEnergy, EnergyBreakdown};
use hither_model::simulate::replay_input::ratio_estimator::{one_seed_half_width, ratio_estimate};

/// A candidate and what came of it.
pub struct CandidateResult {
    pub candidate: PlacementCandidate,
    /// By seed, then by window.
    seeds: Vec<Vec<SimulationCounts>>,
    /// Summed over seeds and windows: by thread, and by data structure.
    threads: Vec<ActivityCounts>,
    structures: Vec<ActivityCounts>,
    /// By what share of its time it may be off in addition to what its own seeds tell.
    seed_error: f64,
}

/// A figure of one window.
type WindowFigure = fn(&SimMachine, &SimulationCounts) -> f64;

fn seconds(model: &SimMachine, cycles: f64) -> f64 {
    cycles / (model.machine.core.frequency * 1e9)
}

fn misses(counts: &SimulationCounts, level: Option<usize>) -> f64 {
    let level = level.and_then(|at| counts.levels.get(at));
    level.map_or(0.0, |l| l.misses.iter().map(|n| *n as f64).sum())
}

fn run_time(model: &SimMachine, counts: &SimulationCounts) -> f64 {
    seconds(model, counts.cycles)
}

fn last_misses(_: &SimMachine, counts: &SimulationCounts) -> f64 {
    misses(counts, counts.levels.len().checked_sub(1))
}

fn transfers(_: &SimMachine, counts: &SimulationCounts) -> f64 {
    counts.transfers_inside as f64 + counts.transfers_between as f64
}

fn link_bytes(_: &SimMachine, counts: &SimulationCounts) -> f64 {
    counts.link_bytes.iter().map(|b| *b as f64).sum()
}

fn remote_dram(_: &SimMachine, counts: &SimulationCounts) -> f64 {
    let sum = |n: &NodeCounts| n.remote_reads as f64 + n.remote_writes as f64;
    counts.nodes.iter().map(sum).sum()
}

fn dram(model: &SimMachine, counts: &SimulationCounts) -> f64 {
    let sum = |n: &NodeCounts| n.local_reads as f64 + n.local_writes as f64;
    counts.nodes.iter().map(sum).sum::<f64>() + remote_dram(model, counts)
}

fn joules(model: &SimMachine, counts: &SimulationCounts) -> f64 {
    energy_breakdown(&model.machine, counts).total()
}

fn static_joules(model: &SimMachine, counts: &SimulationCounts) -> f64 {
    energy_breakdown(&model.machine, counts).sum().fixed
}

fn dynamic_joules(model: &SimMachine, counts: &SimulationCounts) -> f64 {
    energy_breakdown(&model.machine, counts).sum().dynamic
}

impl CandidateResult {
    /// Of the runs with each seed; `structures` is how many are counted separately.
    pub fn summarise_runs(
        candidate: PlacementCandidate,
        runs: impl Iterator<Item = ReplayResult>,
        structures: usize,
    ) -> CandidateResult {
        let mut played = CandidateResult {
            candidate,
            seeds: Vec::new(),
            threads: Vec::new(),
            // A structure without misses has no counts.
            structures: vec![ActivityCounts::default(); structures],
            seed_error: 0.0,
        };
        for run in runs {
            add(&mut played.threads, &run.threads);
            add(&mut played.structures, &run.groups);
            let windows = run.windows.into_iter().flatten();
            played.seeds.push(windows.collect());
        }
        played
    }

    /// `seed_error`: by what share one seed of a random placement may be off, where it is played with one.
    pub fn with_seed_error(mut self, seed_error: f64) -> CandidateResult {
        if self.candidate.thread_policy == ThreadPolicyArg::Os.name() && self.seeds.len() == 1 {
            self.seed_error = seed_error;
        }
        self
    }

    /// By what share the time with one seed may be off from that of all; `None` where it was played with one.
    pub fn seed_error(&self, model: &SimMachine) -> Option<f64> {
        one_seed_half_width(&self.samples(model, run_time))
    }

    fn samples(&self, model: &SimMachine, figure: WindowFigure) -> Vec<Vec<f64>> {
        let of_window = |counts: &SimulationCounts| figure(model, counts);
        let of_seed = |windows: &Vec<SimulationCounts>| windows.iter().map(of_window).collect();
        self.seeds.iter().map(of_seed).collect()
    }

    /// How many windows each seed has.
    #[cfg(test)]
    pub fn windows(&self) -> usize {
        self.seeds.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Seconds, mean over the seeds.
    pub fn seconds(&self, model: &SimMachine) -> f64 {
        let all = self.samples(model, run_time);
        all.iter().flatten().sum::<f64>() / all.len().max(1) as f64
    }

    /// Time as a ratio to that of another.
    pub fn time_to(&self, other: &CandidateResult, model: &SimMachine) -> Option<RatioEstimate> {
        let ratio = self.ratio(other, model, run_time)?;
        let seed_error = if std::ptr::eq(self, other) {
            0.0
        } else {
            self.seed_error.hypot(other.seed_error) * ratio.value
        };
        Some(RatioEstimate {
            half_width: ratio.half_width.map(|half| half.hypot(seed_error)),
            ..ratio
        })
    }

    fn ratio(
        &self,
        first: &CandidateResult,
        model: &SimMachine,
        figure: WindowFigure,
    ) -> Option<RatioEstimate> {
        let x = first.samples(model, figure);
        if std::ptr::eq(self, first) {
            return ratio_estimate(&x, &x);
        }
        ratio_estimate(&x, &self.samples(model, figure))
    }

    fn relative(&self, first: &CandidateResult, model: &SimMachine) -> RelativeFigures {
        let of = |figure: WindowFigure| self.ratio(first, model, figure);
        RelativeFigures {
            time: self.time_to(first, model),
            first_level_misses: of(|_, c| misses(c, Some(0))),
            last_level_misses: of(last_misses),
            invalidations: of(|_, c| c.invalidations as f64),
            transfers: of(transfers),
            link_bytes: of(link_bytes),
            dram: of(dram),
            remote_dram: of(remote_dram),
            read_time: of(|_, c| c.read_time),
            energy: of(joules),
            static_energy: of(static_joules),
            dynamic_energy: of(dynamic_joules),
        }
    }

    /// Everything there is to say of it, beside the first.
    pub fn predicted(
        &self,
        first: &CandidateResult,
        model: &SimMachine,
        (recording, windows): (&RunRecording, &[SimWindow]),
    ) -> PredictedPlacement {
        let candidate = &self.candidate;
        PredictedPlacement {
            name: candidate.name.clone(),
            thread_policy: candidate.thread_policy.clone(),
            data_policy: candidate.data_policy.clone(),
            file: candidate.file.clone(),
            seeds: candidate.plans.len() as u32,
            relative: self.relative(first, model),
            amounts: self.amounts(model),
            by_thread: self.portions(model, &self.threads),
            by_structure: self.portions(model, &self.structures),
            over_time: self.moments(model, recording, windows),
        }
    }

    fn amounts(&self, model: &SimMachine) -> PredictedAmounts {
        let mut sum = SimulationCounts::default();
        for counts in self.seeds.iter().flatten() {
            sum += counts;
        }
        let seeds = self.seeds.len().max(1) as f64;
        let instructions = sum.instructions as f64;
        let mean = |n: u64| n as f64 / seeds;
        let level = |l: &LevelCounts| {
            let [cold, capacity, invalidation, replication] = l.misses.map(mean);
            let all: f64 = l.misses.iter().map(|n| *n as f64).sum();
            LevelAmounts {
                accesses: mean(l.accesses),
                cold,
                capacity,
                invalidation,
                replication,
                mpki: part_of(all * 1000.0, instructions),
                prefetches: mean(l.prefetches),
                useful: mean(l.useful),
            }
        };
        let node = |n: &NodeCounts| NodeAmounts {
            local_reads: mean(n.local_reads),
            remote_reads: mean(n.remote_reads),
            local_writes: mean(n.local_writes),
            remote_writes: mean(n.remote_writes),
            rows: mean(n.rows),
        };
        PredictedAmounts {
            instructions: instructions / seeds,
            accesses: mean(sum.accesses),
            time: seconds(model, sum.cycles) / seeds,
            ipc: part_of(instructions, sum.busy),
            levels: sum.levels.iter().map(level).collect(),
            invalidations: mean(sum.invalidations),
            transfers_inside: mean(sum.transfers_inside),
            transfers_between: mean(sum.transfers_between),
            link_bytes: sum.link_bytes.iter().map(|b| mean(*b)).collect(),
            nodes: sum.nodes.iter().map(node).collect(),
            reads: mean(sum.reads),
            read_time: seconds(model, sum.read_time) / seeds,
            energy: energy_split(
                &energy_breakdown(&model.machine, &sum),
                model,
                seeds,
                instructions,
            ),
        }
    }

    /// Window by window, means over the seeds.
    fn moments(
        &self,
        model: &SimMachine,
        recording: &RunRecording,
        windows: &[SimWindow],
    ) -> Vec<WindowAmounts> {
        let seeds = self.seeds.len().max(1) as f64;
        let windows = windows.iter().enumerate();
        let moment = |(at, window): (usize, &SimWindow)| {
            let start = recording.bursts.windows()[window.number].start;
            let counts = self.seeds.iter().filter_map(|seed| seed.get(at));
            let mean = |figure: WindowFigure| {
                let sum: f64 = counts.clone().map(|counts| figure(model, counts)).sum();
                sum / seeds
            };
            WindowAmounts {
                start,
                time: mean(run_time),
                instructions: mean(|_, c| c.instructions as f64),
                last_level_misses: mean(last_misses),
                transfers: mean(transfers),
                link_bytes: mean(link_bytes),
                dram: mean(dram),
                remote_dram: mean(remote_dram),
                energy: mean(joules),
            }
        };
        windows.map(moment).collect()
    }

    fn portions(&self, model: &SimMachine, shares: &[ActivityCounts]) -> Vec<Portion> {
        let seeds = self.seeds.len().max(1) as f64;
        let mean = |n: u64| n as f64 / seeds;
        let portion = |share: &ActivityCounts| Portion {
            accesses: mean(share.accesses),
            instructions: mean(share.instructions),
            first_level_misses: mean(share.first_misses),
            last_level_misses: mean(share.last_misses),
            transfers: mean(share.transfers),
            local_reads: mean(share.local_reads),
            remote_reads: mean(share.remote_reads),
            read_time: seconds(model, share.read_time) / seeds,
        };
        shares.iter().map(portion).collect()
    }
}

fn part_of(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole
    } else {
        0.0
    }
}

/// Where the energy goes, for each seed.
fn energy_split(
    split: &EnergyBreakdown,
    model: &SimMachine,
    seeds: f64,
    instructions: f64,
) -> EnergyAmounts {
    let part = |name: &str, joules: &ComponentEnergy| EnergyPart {
        name: name.to_owned(),
        at_rest: joules.fixed / seeds,
        dynamic: joules.dynamic / seeds,
    };
    let levels = model.machine.levels.iter().zip(&split.caches);
    let mut parts = vec![part("cores", &split.cores)];
    parts.extend(levels.map(|(level, joules)| part(&level.name, joules)));
    parts.push(part("interconnect", &split.interconnect));
    parts.push(part("memory controllers", &split.controllers));
    parts.push(part("DRAM", &split.dram));
    EnergyAmounts {
        total: split.total() / seeds,
        per_instruction: part_of(split.total() * 1e9, instructions),
        parts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::study::sim_machine::models;

    /// By seed and window its cycles.
    fn result(policy: &str, seeds: &[[f64; 3]]) -> CandidateResult {
        let candidate = PlacementCandidate {
            name: policy.to_owned(),
            thread_policy: policy.to_owned(),
            data_policy: None,
            file: None,
            plans: Vec::new(),
            for_joint: false,
        };
        let runs = seeds.iter().map(|windows| ReplayResult {
            windows: windows
                .map(|cycles| {
                    vec![SimulationCounts {
                        cycles,
                        ..SimulationCounts::default()
                    }]
                })
                .to_vec(),
            ..ReplayResult::default()
        });
        CandidateResult::summarise_runs(candidate, runs, 0)
    }

    #[test]
    fn one_seed_of_the_system_is_off_by_what_chance_does() {
        let mut all = models(vec![Some("xeon-x7550x4".to_owned())], None).expect("a machine");
        let model = all.remove(0);
        let time = |near: &CandidateResult, system: &CandidateResult| {
            let time = near.time_to(system, &model).expect("a time");
            (time.value, time.half_width.expect("three windows"))
        };
        let one = || result("os", &[[100.0, 120.0, 110.0]]);
        let two = || result("os", &[[100.0, 120.0, 110.0], [104.0, 118.0, 112.0]]);
        let near = || result("locality", &[[90.0, 99.0, 96.0]]);
        let (value, half) = time(&near(), &one());
        let (same, wider) = time(&near(), &one().with_seed_error(0.1));
        assert_eq!(same, value);
        assert!((wider - half.hypot(0.1 * value)).abs() < 1e-12, "{wider}");
        // What leaves nothing to chance is not off, and seeds tell themselves how far they are.
        let certain = near().with_seed_error(0.1);
        assert_eq!(time(&certain, &one()), (value, half));
        let known = two().with_seed_error(0.1);
        assert_eq!(time(&near(), &known), time(&near(), &two()));
    }
}
