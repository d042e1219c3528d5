//! What `hither map` does where no policy is named: nothing that is likely to do harm. Where accesses
//! were recorded, the fastest in a short simulation. Where none were, what `hither stat` says: threads
//! that share enough come close together, unless that leaves caches idle which their data needs; the
//! others are spread. Where neither finds anything to gain, or a loss is as likely as chance goes, nothing is
//! bound. Where threads share much and no pair more than others, only a simulation tells whether all gain close together.
use anyhow::Result;
use hither_model::map::CommGraph;
use hither_model::metrics::communication::communication_metrics;
use hither_model::metrics::verdict::MappingVerdict;
use hither_model::metrics::{MetricsReport, PageSize};
use hither_model::topology::{TopologyLevel, TopologyTree};
use hither_model::units::percent;
use hither_profile::{CommMatrix, Profile};

use super::assessment::setup;
use super::best::{best_in_short, WORTH_BINDING};
use super::map::assigned_units;
use super::map::input::MapInput;
use super::map::machine::MapTarget;
use super::map::options::{MapOptions, SPREAD};
use super::policy_pair;
use super::study::progress::Progress;
use super::study::run_recording::RunRecording;

/// What to do, and why.
pub enum DefaultPlacement {
    Place(Box<MapOptions>, String),
    /// Everything is left to the system.
    Leave {
        why: String,
        /// A recording of accesses would tell whether there is something to gain.
        recording_would_tell: bool,
    },
}

/// Decides. `recording`: the accesses that were recorded, if any were. `force`: place in any case.
///
/// # Errors
/// One sentence when what was recorded cannot be simulated.
pub fn choose(
    options: &MapOptions,
    (input, profile): (&MapInput, &Profile),
    target: &MapTarget,
    recording: Option<&RunRecording>,
    (force, progress): (bool, &dyn Progress),
) -> Result<DefaultPlacement> {
    let seen = ProfileVerdict::of(profile, options, target)?;
    let simulated = match recording {
        Some(recording) => {
            let policies = [options.policy, SPREAD, "scatter"];
            best_in_short(options, &policies, recording, progress)?
        }
        None => None,
    };
    let says = seen.sentence();
    if let Some(best) = simulated {
        let nothing = match best.gain < WORTH_BINDING {
            true => "Nothing to gain, leave it: by a short simulation.",
            false => {
                "No sure gain, leave it: a short simulation is not sure enough to rule out a loss."
            }
        };
        return Ok(match best.gains || force {
            true => {
                DefaultPlacement::Place(Box::new(best.options), format!("{} {says}", best.verdict))
            }
            false => DefaultPlacement::Leave {
                why: format!("{nothing} {} {says}", best.verdict),
                recording_would_tell: false,
            },
        });
    }
    if !seen.verdict.may_gain() && !force {
        let close_together = match recording {
            None => seen.gain_close_together(options, input, target)?,
            Some(_) => None,
        };
        let because = match close_together {
            Some(used) => format!(
                "Whether all threads are faster close together, with {} of the caches, only a simulation of recorded \
                 accesses tells.",
                percent(used)
            ),
            None => "Nothing to gain, leave it.".to_owned(),
        };
        return Ok(DefaultPlacement::Leave {
            why: format!("{because} {says}"),
            recording_would_tell: close_together.is_some(),
        });
    }
    let (policy, because) = seen.thread_policy(options, input, target)?;
    let options = MapOptions {
        policy: policy_pair::policy(policy).map_err(anyhow::Error::msg)?,
        ..options.clone()
    };
    Ok(DefaultPlacement::Place(
        Box::new(options),
        format!("{because}{says}"),
    ))
}

/// Decides for threads of which only communication is known. That binds in any case: who has a matrix wants a
/// placement, and a matrix does not say what else there is to gain.
///
/// # Errors
/// When there is no policy that spreads.
pub fn choose_for_matrix(options: &MapOptions, comm: &CommGraph) -> Result<DefaultPlacement> {
    let threads = comm.threads();
    let mut matrix = CommMatrix::new(threads);
    comm.pairs()
        .for_each(|(i, j, weight)| matrix.add(i, j, weight));
    let metrics = communication_metrics(&matrix, 0.0, 0);
    let (policy, because) = match matrix.total() {
        0 => (
            SPREAD,
            "Threads that share nothing are spread over nodes and caches.",
        ),
        _ if threads > 2 && !metrics.tells_pairs_apart(threads) => (
            SPREAD,
            "All share alike: threads are spread over nodes and caches.",
        ),
        _ => (options.policy, ""),
    };
    let options = MapOptions {
        policy: policy_pair::policy(policy).map_err(anyhow::Error::msg)?,
        ..options.clone()
    };
    Ok(DefaultPlacement::Place(
        Box::new(options),
        because.to_owned(),
    ))
}

/// What `hither stat` says of a profile, on the machine to place on.
struct ProfileVerdict {
    verdict: MappingVerdict,
    footprint: u64,
    /// Of all caches of the machine, 0 when unknown.
    cache_bytes: u64,
}

impl ProfileVerdict {
    fn of(profile: &Profile, options: &MapOptions, target: &MapTarget) -> Result<ProfileVerdict> {
        let nodes = target.tree.nodes.iter().filter(|n| !n.units.is_empty());
        let nodes = u16::try_from(nodes.count()).ok();
        let machine = &profile.meta.machine;
        let topology = options.topology.as_deref();
        let setup = setup::setup(machine, nodes, topology, PageSize::K4)?;
        let cache_bytes = setup.cache_bytes;
        let report = MetricsReport::from_profile(profile, setup);
        Ok(ProfileVerdict {
            verdict: report.verdict,
            footprint: report.run.footprint,
            cache_bytes,
        })
    }

    fn sentence(&self) -> String {
        format!("`hither stat` says: {}.", self.verdict.sentence_with_time())
    }

    /// `locality` where threads share enough, and the caches that it uses hold what they use; else
    /// threads are spread. With the reason.
    fn thread_policy(
        &self,
        options: &MapOptions,
        input: &MapInput,
        target: &MapTarget,
    ) -> Result<(&'static str, String)> {
        if !self.verdict.thread_mapping {
            return Ok((
                SPREAD,
                "Threads are spread over nodes and caches. ".to_owned(),
            ));
        }
        if let Some(used) = self.idle_caches_needed(options, input, target)? {
            let because = format!(
                "Threads are spread: close together they would use {} of the caches, too few for what they access. ",
                percent(used)
            );
            return Ok((SPREAD, because));
        }
        Ok((options.policy, String::new()))
    }

    /// Where the policy leaves caches idle that the data needs: the share of the caches that it uses.
    fn idle_caches_needed(
        &self,
        options: &MapOptions,
        input: &MapInput,
        target: &MapTarget,
    ) -> Result<Option<f64>> {
        let used = caches_used(options, input, target)?;
        let room = self.cache_bytes as f64 * used;
        let needed = used < 1.0 && self.cache_bytes > 0 && self.footprint as f64 > room;
        Ok(needed.then_some(used))
    }

    /// Where all threads have room beside one another, and may gain there: the share of the caches that they would use.
    fn gain_close_together(
        &self,
        options: &MapOptions,
        input: &MapInput,
        target: &MapTarget,
    ) -> Result<Option<f64>> {
        if !self.verdict.closeness_undecided {
            return Ok(None);
        }
        let used = caches_used(options, input, target)?;
        Ok((used < 1.0).then_some(used))
    }
}

/// Which share of the outermost caches the policy for threads uses.
fn caches_used(options: &MapOptions, input: &MapInput, target: &MapTarget) -> Result<f64> {
    let units = input.units_of_placed(&assigned_units(options, input, target)?);
    let working = working_units(&units, &input.load);
    Ok(share_of_caches(&target.tree, &working))
}

/// The units of threads that work. A shell that starts a program does more than the thousandth of the busiest
/// thread's work below which threads are not placed; where it alone has a cache, that cache is idle: NPB MG on
/// two packages was placed on one, whose cache is too small for its data.
fn working_units(units: &[u32], load: &[u64]) -> Vec<u32> {
    const LEAST: u64 = 100;
    let busiest = load.iter().copied().max().unwrap_or(0);
    let works = |load: u64| load.saturating_mul(LEAST) >= busiest;
    let working = units.iter().zip(load).filter(|(_, load)| works(**load));
    working.map(|(unit, _)| *unit).collect()
}

/// Which share of the outermost caches has a thread; of nodes, where no caches are known.
fn share_of_caches(tree: &TopologyTree, units: &[u32]) -> f64 {
    let is_cache =
        |level: &&TopologyLevel| (TopologyLevel::L5..=TopologyLevel::L1).contains(*level);
    let levels = tree.vertices.iter().flat_map(|v| &v.levels);
    let outermost = levels.filter(is_cache).min();
    let outermost = outermost.unwrap_or(&TopologyLevel::Node);
    let caches = tree
        .vertices
        .iter()
        .filter(|v| v.levels.contains(outermost));
    let (mut used, mut all) = (0u32, 0u32);
    for cache in caches {
        all += 1;
        used += u32::from(units.iter().any(|unit| cache.units.contains(unit)));
    }
    match all {
        0 => 1.0,
        all => f64::from(used) / f64::from(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_whose_thread_hardly_works_is_idle() {
        assert_eq!(working_units(&[8, 0, 1], &[2, 1000, 900]), [0, 1]);
        assert_eq!(working_units(&[8, 0, 1], &[10, 1000, 900]), [8, 0, 1]);
        assert_eq!(working_units(&[3, 5], &[0, 0]), [3, 5]);
    }
}
