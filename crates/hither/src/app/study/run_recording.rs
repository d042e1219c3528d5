//! A profile with bursts, and the windows of it that are simulated.
use std::collections::HashMap;
use std::path::Path;

use anyhow::{anyhow, bail, Result};
use hither_profile::bursts::BurstTrace;
use hither_profile::{Nanos, Profile, ThreadIx};

use crate::app::map::input::{self, MapInput, Source};
use hither_model::simulate::replay_input::page_homes::{first_touches, FirstTouches};
use hither_model::simulate::replay_input::replay_space::{ReplaySpace, WindowLayout};
use hither_model::topology::PuList;
use hither_profile::shell_line;

/// Fewer windows than this leave little to judge by.
pub const FEW_WINDOWS: usize = 5;
/// Windows that count at least, if there are as many, however long they are: two say next to
/// nothing about their variance.
const LEAST_COUNTED: usize = 3;

/// How many windows more than the others the first one that counts is played after. It finds what
/// those left; each other one finds what all before it left.
fn first_more(before: usize) -> usize {
    2 + before
}

/// What was recorded of a run.
pub struct RunRecording {
    /// Threads to place, and what they share.
    pub input: MapInput,
    pub bursts: BurstTrace,
    pub touches: FirstTouches,
    /// Where all windows lie.
    pub space: ReplaySpace,
    /// Accesses by window and thread.
    recorded: Vec<Vec<u64>>,
}

/// A window that is simulated.
pub struct SimWindow {
    /// Its number in the bursts.
    pub number: usize,
    pub layout: WindowLayout,
    /// Accesses by thread of the profile.
    pub accesses: Vec<u64>,
    /// Those recorded before it that only warm the caches for it.
    pub before: Vec<SimWindow>,
}

impl SimWindow {
    pub fn own_accesses(&self) -> u64 {
        total_accesses(&self.accesses)
    }

    /// With those before it.
    pub fn accesses_with_warm_up(&self) -> u64 {
        let before = self.before.iter().map(SimWindow::accesses_with_warm_up);
        before.fold(self.own_accesses(), u64::saturating_add)
    }
}

fn total_accesses(accesses: &[u64]) -> u64 {
    accesses.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

impl RunRecording {
    /// `only`: the threads to place, if not all that work.
    ///
    /// # Errors
    /// One sentence when the profile cannot be read or has no bursts.
    pub fn open(file: &Path, only: Option<&PuList>) -> Result<RunRecording> {
        let shown = file.display().to_string();
        let input = input::read(&Source::Profile(file.to_owned()), only, false)?;
        let profile = profile(&input)?;
        let bursts = BurstTrace::open(file)?.ok_or_else(|| missing_recording(&shown, profile))?;
        let threads = profile.threads.len();
        let windows = bursts.windows().iter();
        let windows = windows.map(|window| {
            let mut accesses = vec![0u64; threads];
            for piece in &window.pieces {
                if let Some(sum) = accesses.get_mut(piece.thread.at()) {
                    *sum = sum.saturating_add(piece.accesses);
                }
            }
            accesses
        });
        let recorded: Vec<Vec<u64>> = windows.collect();
        let is_empty = recorded.iter().all(|window| total_accesses(window) == 0);
        if let Some(broken) = bursts.broken().filter(|_| is_empty) {
            bail!("{broken}; but no window lies before it, so record the program again");
        }
        if is_empty {
            bail!("the bursts of {shown} hold no access; record longer or more of them, see --bursts of `hither trace --help`");
        }
        let touches = first_touches(profile);
        let all = 0..bursts.windows().len();
        let space = ReplaySpace::new(all.flat_map(|window| bursts.named_pages(window)));
        Ok(RunRecording {
            space,
            touches,
            input,
            bursts,
            recorded,
        })
    }

    /// Windows to simulate, in order of time, each with `before` others that warm the caches;
    /// with `None` only what is left out anyway warms them.
    /// `limit`: about how many accesses that may be in all, `None` for all that are recorded.
    pub fn windows(&self, limit: Option<u64>, before: Option<usize>) -> Vec<SimWindow> {
        let recorded = self.bursts.windows().iter();
        let times: Vec<(Nanos, Nanos)> = recorded.map(|w| (w.start, w.end)).collect();
        let mut chosen = choose_windows(&self.recorded, &times, limit, before.unwrap_or(0) + 1);
        let full = (0..times.len()).filter(|at| total_accesses(&self.recorded[*at]) > 0);
        let least = before.map_or(usize::MAX, |_| FEW_WINDOWS);
        begin_earlier(
            &mut chosen,
            &full.collect::<Vec<_>>(),
            first_more(before.unwrap_or(0)),
            least,
        );
        let window = |number: &usize| SimWindow {
            number: *number,
            layout: self.space.layout(self.bursts.named_pages(*number)),
            accesses: self.recorded[*number].clone(),
            before: Vec::new(),
        };
        let together = chosen.iter().filter_map(|numbers| {
            let (last, before) = numbers.split_last()?;
            Some(SimWindow {
                before: before.iter().map(window).collect(),
                ..window(last)
            })
        });
        together.collect()
    }

    /// The same windows with fewer before each; before the first one, which may follow as many as
    /// were recorded, their number is halved `halves` times.
    pub fn warmed_by(mut windows: Vec<SimWindow>, before: usize, halves: u32) -> Vec<SimWindow> {
        for (at, window) in windows.iter_mut().enumerate() {
            let all = window.before.len();
            let kept = if at == 0 {
                all >> halves
            } else {
                before.min(all)
            };
            window.before.drain(..all - kept);
        }
        windows
    }

    /// How many windows have something to simulate.
    pub fn window_count(&self) -> usize {
        self.recorded
            .iter()
            .filter(|w| total_accesses(w) > 0)
            .count()
    }

    /// Accesses of a window, on average.
    pub fn mean_window(&self) -> u64 {
        self.bursts.accesses() / self.window_count().max(1) as u64
    }

    pub fn profile(&self) -> Result<&Profile> {
        profile(&self.input)
    }

    /// Whether all of the run was recorded: then nothing came before its first access.
    pub fn is_whole(&self) -> bool {
        let options = self.input.profile.as_ref().map(|p| &p.meta.options);
        let bursts = options.and_then(|options| options.bursts.as_ref());
        bursts.is_some_and(|bursts| bursts.length == 0)
    }

    /// How many of the threads that work do something in the windows that are simulated.
    pub fn threads_seen(&self, windows: &[SimWindow]) -> usize {
        let there = |thread: &&ThreadIx| {
            let mut windows = windows.iter();
            windows.any(|window| window.accesses[thread.at()] > 0)
        };
        self.input.placed.iter().filter(there).count()
    }

    /// Which threads do work; the others hardly count.
    pub fn busy_threads(&self) -> Vec<bool> {
        let mut works = vec![false; self.input.threads.len()];
        for thread in &self.input.placed {
            works[thread.at()] = true;
        }
        works
    }

    /// What threads are called: their names, with a number where several have the same.
    pub fn thread_names(&self) -> Vec<String> {
        let mut known: HashMap<&str, usize> = HashMap::new();
        for thread in &self.input.threads {
            *known.entry(thread.name.as_str()).or_default() += 1;
        }
        let names = (0u32..).map(ThreadIx).zip(&self.input.threads);
        let names = names.map(|(at, thread)| match known[thread.name.as_str()] {
            1 if !thread.name.is_empty() => thread.name.clone(),
            _ => format!("{} #{at}", thread.name).trim().to_owned(),
        });
        names.collect()
    }
}

fn profile(input: &MapInput) -> Result<&Profile> {
    let profile = input.profile.as_ref();
    profile.ok_or_else(|| anyhow!("{} is no profile", input.source.file))
}

fn missing_recording(shown: &str, profile: &Profile) -> anyhow::Error {
    let command = &profile.meta.command;
    if profile.meta.is_online() {
        return anyhow!("{shown} has no bursts, for it was observed by `hither auto`, which sees page faults only; record a run with: hither trace --bursts -- {}", shell_line(command.iter()));
    }
    anyhow!(
        "{shown} has no bursts, the accesses that a simulation replays; record them with: hither trace --bursts -- {}",
        shell_line(command.iter())
    )
}

/// Numbers of windows, in groups of consecutive ones, evenly over the time of the run, and as
/// many groups that they hold about `limit` accesses if they are like the others; at least
/// [`LEAST_COUNTED`] if there are. `times`: when each begins and ends.
fn choose_windows(
    recorded: &[Vec<u64>],
    times: &[(Nanos, Nanos)],
    limit: Option<u64>,
    together: usize,
) -> Vec<Vec<usize>> {
    let full: Vec<usize> = (0..recorded.len())
        .filter(|at| total_accesses(&recorded[*at]) > 0)
        .collect();
    let mut groups: Vec<&[usize]> = full.rchunks_exact(together).collect();
    groups.reverse();
    let sums = groups.iter().flat_map(|group| group.iter());
    let total = sums.fold(0u64, |total, at| {
        total.saturating_add(total_accesses(&recorded[*at]))
    });
    let there = groups.len();
    let part = u128::from(limit.unwrap_or(u64::MAX)) * there as u128 / u128::from(total.max(1));
    let count =
        usize::try_from(part).map_or(there, |part| part.clamp(there.min(LEAST_COUNTED), there));
    let (Some(first), Some(last)) = (full.first(), full.last()) else {
        return Vec::new();
    };
    let (begin, end) = (times[*first].0, times[*last].1);
    let span = u128::from(end.saturating_sub(begin));
    // The n-th is taken from the middle of the n-th part of the run, or near by.
    let mut next = 0;
    let nearest = |n: usize| {
        let middle = span * (2 * n as u128 + 1) / (2 * count as u128);
        let middle = begin.saturating_add(u64::try_from(middle).unwrap_or(u64::MAX));
        let left = next..there - (count - 1 - n);
        let start = |at: &usize| groups[*at].last().map_or(0, |window| times[*window].0);
        let found = left.min_by_key(|at| start(at).abs_diff(middle));
        next = found.map_or(there, |at| at + 1);
        found.map(|at| groups[at].to_vec())
    };
    (0..count).filter_map(nearest).collect()
}

/// Has the first group, which finds caches empty, begin with up to `more` of the windows recorded
/// before it. Where fewer were, the first groups are such windows, as long as more than `least` are
/// left.
fn begin_earlier(chosen: &mut Vec<Vec<usize>>, full: &[usize], more: usize, least: usize) {
    let before = |group: &[usize]| {
        let first = group.first().copied().unwrap_or(0);
        full.partition_point(|at| *at < first)
    };
    let given = chosen
        .iter()
        .take_while(|group| before(group) < more)
        .count();
    chosen.drain(..given.min(chosen.len().saturating_sub(least)));
    if let Some(first) = chosen.first_mut() {
        let earlier = &full[..before(first)];
        let earlier = &earlier[earlier.len().saturating_sub(more)..];
        first.splice(0..0, earlier.iter().copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_of_each(groups: &[Vec<usize>]) -> Vec<usize> {
        groups.iter().filter_map(|g| g.last().copied()).collect()
    }

    #[test]
    fn windows_are_left_out_evenly() {
        let check = |sums: &[u64], limit: Option<u64>, expected: &[usize]| {
            let recorded: Vec<Vec<u64>> = sums.iter().map(|n| vec![*n]).collect();
            let times: Vec<_> = (0..sums.len() as u64)
                .map(|n| (n * 10, n * 10 + 10))
                .collect();
            let found = last_of_each(&choose_windows(&recorded, &times, limit, 1));
            assert_eq!(found, expected, "{sums:?} {limit:?}");
        };
        check(&[], None, &[]);
        check(&[0, 0], None, &[]);
        check(&[5, 0, 5], None, &[0, 2]);
        check(&[10, 10, 10, 10, 10, 10], Some(30), &[1, 3, 5]);
        check(&[10, 10, 10, 10], Some(1), &[1, 2, 3]);
        check(&[10], Some(1), &[0]);
        check(&[u64::MAX, u64::MAX], None, &[0, 1]);
        // Large windows are not left out for being large.
        check(&[1, 100, 1, 1], Some(103), &[0, 1, 2, 3]);
    }

    #[test]
    fn windows_that_warm_up_come_right_before() {
        let recorded = [10, 10, 0, 10, 10, 10, 10, 10].map(|n| vec![n]);
        let times: Vec<_> = (0..8).map(|n| (n * 10, n * 10 + 10)).collect();
        let check = |limit, together, expected: &[&[usize]]| {
            assert_eq!(choose_windows(&recorded, &times, limit, together), expected);
        };
        check(None, 2, &[&[1, 3], &[4, 5], &[6, 7]]);
        check(Some(40), 2, &[&[1, 3], &[4, 5], &[6, 7]]);
        check(None, 3, &[&[1, 3, 4], &[5, 6, 7]]);
        check(Some(30), 1, &[&[1], &[4], &[7]]);
        check(None, 8, &[]);
    }

    #[test]
    fn the_first_window_comes_after_more() {
        let full: Vec<usize> = (0..20).filter(|at| *at != 3).collect();
        let check = |groups: &[&[usize]], more, least, expected: &[&[usize]]| {
            let mut chosen: Vec<Vec<usize>> = groups.iter().map(|g| g.to_vec()).collect();
            begin_earlier(&mut chosen, &full, more, least);
            assert_eq!(chosen, expected, "{groups:?} {more} {least}");
        };
        check(&[], 2, 0, &[]);
        check(&[&[0], &[1]], 0, 0, &[&[0], &[1]]);
        check(&[&[5], &[9]], 3, 5, &[&[1, 2, 4, 5], &[9]]);
        // There are not as many before it; the first is given away if others are left.
        check(&[&[1, 2], &[9]], 3, 2, &[&[0, 1, 2], &[9]]);
        check(&[&[1, 2], &[9]], 3, 1, &[&[6, 7, 8, 9]]);
        check(&[&[0], &[1], &[2], &[4]], 3, 2, &[&[0, 1, 2], &[4]]);
        check(&[&[0], &[1], &[2], &[4]], 3, 1, &[&[0, 1, 2, 4]]);
    }

    #[test]
    fn windows_are_warmed_by_fewer() {
        let window = |before: Vec<SimWindow>| SimWindow {
            number: 7,
            layout: WindowLayout::default(),
            accesses: vec![1],
            before,
        };
        let some = |n: usize| (0..n).map(|_| window(Vec::new())).collect();
        let check = |counts: [usize; 2], before, halves, expected: [usize; 2]| {
            let windows = counts.map(|n| window(some(n))).into_iter().collect();
            let found = RunRecording::warmed_by(windows, before, halves);
            let found: Vec<usize> = found.iter().map(|w| w.before.len()).collect();
            assert_eq!(found, expected, "{counts:?} {before}");
        };
        check([6, 2], 2, 0, [6, 2]);
        check([6, 2], 1, 1, [3, 1]);
        check([6, 2], 0, 2, [1, 0]);
        // Not as many as were wanted: half of them all the same.
        check([2, 2], 1, 1, [1, 1]);
        check([0, 2], 1, 1, [0, 1]);
    }

    #[test]
    fn windows_are_chosen_by_time_and_not_by_number() {
        let check = |starts: &[u64], count: u64, expected: &[usize]| {
            let recorded = vec![vec![1]; starts.len()];
            let times: Vec<_> = starts.iter().map(|start| (*start, start + 1)).collect();
            let found = last_of_each(&choose_windows(&recorded, &times, Some(count), 1));
            assert_eq!(found, expected, "{starts:?}");
        };
        // Most of them are of the beginning.
        check(&[0, 1, 2, 3, 4, 5, 50, 99], 3, &[5, 6, 7]);
        check(&[0, 1, 2, 3, 4, 50, 95, 99], 3, &[4, 5, 6]);
        check(&[0, 1, 2, 99], 3, &[1, 2, 3]);
        // Times that a damaged file may say.
        check(&[9, 3, 1], 3, &[0, 1, 2]);
    }
}
