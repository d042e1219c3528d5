//! What caches hold as recorded windows begin. Windows are short: most of what they use again was last used before
//! them, when nothing was recorded. But the profile knows how often each thread fetched lines of each page. How long ago
//! it last used each of them is drawn from that, and these last uses are played first, the oldest first.
use std::collections::{BTreeMap, BTreeSet, HashMap};

use hither_profile::bursts::{BurstTrace, NamedPages};
use hither_profile::{Nanos, PageUse, ProcessIx, Profile, RegionIx, SliceIx, PAGE_SIZE};

use super::replay_space::{ReplaySpace, WindowLayout};
use crate::rng::Rng;
use crate::simulate::functional_warming::LineRun;
use crate::simulate::simulated_machine::SimulatedMachine;

/// Last uses that are kept of a page slice, the youngest: as many as the caches of large machines have lines.
const MOST_LINES: usize = 4_000_000;

/// The process that has a region, and the page of its address space at which that begins.
type RegionBegins = HashMap<RegionIx, (ProcessIx, u64)>;

/// What was used before the first window of each page slice, by when that begins.
pub struct CacheWarming {
    periods: BTreeMap<Nanos, WarmingPeriod>,
}

/// What is used in a page slice.
pub struct WarmingPeriod {
    /// Where its pages lie.
    pub layout: WindowLayout,
    /// Those that use something.
    threads: BTreeSet<u32>,
    /// In order of time.
    uses: Vec<PageLastUse>,
    /// Lines that a cache of the last level holds.
    held: usize,
}

/// When a thread last used lines of a page.
#[derive(Clone, Copy)]
struct PageLastUse {
    run: LineRun,
    /// How long ago, in lengths of the page slice.
    age: f32,
}

impl CacheWarming {
    /// Of what a profile knows. `space`: where its recorded windows lie.
    #[must_use]
    pub fn of(
        (profile, bursts): (&Profile, &BurstTrace),
        space: &ReplaySpace,
        machine: &SimulatedMachine,
    ) -> Self {
        let begins = region_begins(bursts);
        let mut rows: BTreeMap<SliceIx, Vec<(NamedPages, PageUse)>> = BTreeMap::new();
        for row in profile.pages.iter().filter(|row| row.fetches > 0) {
            // What no window knows none of them uses.
            if let Some(place) = place_of(&row, &begins) {
                rows.entry(row.slice).or_default().push((place, row));
            }
        }
        let period = |(slice, rows): (SliceIx, Vec<_>)| {
            let slice = profile.slices.get(slice.at());
            let places: Vec<NamedPages> = rows.iter().map(|(place, _)| *place).collect();
            let layout = space.layout(&places);
            let period = WarmingPeriod::of(&rows, layout, machine);
            (slice.map_or(0, |slice| slice.start), period)
        };
        CacheWarming {
            periods: rows.into_iter().map(period).collect(),
        }
    }

    /// When the page slice began that a time is in, and what is used in it.
    #[must_use]
    pub fn at(&self, time: Nanos) -> Option<(Nanos, &WarmingPeriod)> {
        let period = self.periods.range(..=time).next_back();
        period.map(|(start, period)| (*start, period))
    }
}

impl WarmingPeriod {
    fn of(
        rows: &[(NamedPages, PageUse)],
        layout: WindowLayout,
        machine: &SimulatedMachine,
    ) -> WarmingPeriod {
        let line = machine.line;
        let mut random = Rng::new(1);
        let mut by_thread: BTreeMap<u32, Vec<PageLastUse>> = BTreeMap::new();
        for (place, row) in rows {
            let first = layout.replay_address(place.process, place.page * PAGE_SIZE);
            let uses = last_uses(row, (first, place.pages), line, &mut random);
            by_thread.entry(row.thread.0).or_default().extend(uses);
        }
        let last = machine.levels.last();
        let held = last.map_or(0, |level| level.bytes / u64::from(line)) as usize;
        let threads = by_thread.keys().copied().collect();
        let mut uses = Vec::new();
        for mut of_thread in by_thread.into_values() {
            keep_youngest(&mut of_thread, held);
            uses.append(&mut of_thread);
        }
        keep_youngest(&mut uses, MOST_LINES);
        WarmingPeriod {
            layout,
            threads,
            uses,
            held,
        }
    }

    /// How many caches of the last level its threads have.
    #[must_use]
    pub fn caches(&self, units: &[u32], machine: &SimulatedMachine) -> usize {
        let units = self
            .threads
            .iter()
            .filter_map(|thread| units.get(*thread as usize));
        let units = units.filter_map(|unit| machine.units.get(*unit as usize));
        let caches: BTreeSet<_> = units.map(|unit| unit.caches.last()).collect();
        caches.len()
    }

    /// The youngest uses, of as many lines as so many caches of the last level hold, in order of time.
    pub fn uses(&self, caches: usize) -> impl Iterator<Item = &LineRun> + Clone + '_ {
        let uses = youngest(&self.uses, caches.saturating_mul(self.held));
        uses.iter().map(|used| &used.run)
    }
}

/// The last uses of the pages of a row, so many from `first` on. Lines that are used several times in the page slice are
/// so at even distances; of pages whose lines are used less, so many as were are.
fn last_uses<'a>(
    row: &'a PageUse,
    (first, pages): (u64, u64),
    line: u32,
    random: &'a mut Rng,
) -> impl Iterator<Item = PageLastUse> + 'a {
    const PARTS: usize = 1 << 20;
    let lines = PAGE_SIZE as f32 / line as f32;
    let times = row.fetches as f32 / (pages as f32 * lines);
    let used = (lines * times.min(1.0)).ceil();
    let written = (row.writes as f32 / row.fetches as f32).min(1.0);
    (0..pages).map(move |nth| PageLastUse {
        run: LineRun {
            thread: row.thread.0,
            address: first + nth * PAGE_SIZE,
            lines: used as u32,
            written: (used * written).round() as u32,
        },
        age: random.below(PARTS) as f32 / PARTS as f32 / times.max(1.0),
    })
}

/// Leaves those that were used last, of so many lines, in order of time.
fn keep_youngest(uses: &mut Vec<PageLastUse>, lines: usize) {
    uses.sort_by(|a, b| b.age.total_cmp(&a.age));
    uses.drain(..uses.len() - youngest(uses, lines).len());
}

/// Of uses in order of time the last ones, of so many lines.
fn youngest(uses: &[PageLastUse], lines: usize) -> &[PageLastUse] {
    let mut left = lines;
    let fits = |used: &&PageLastUse| {
        left = left.saturating_sub(used.run.lines as usize);
        left > 0
    };
    let kept = uses.iter().rev().take_while(fits).count();
    &uses[uses.len() - kept..]
}

fn region_begins(bursts: &BurstTrace) -> RegionBegins {
    let windows = 0..bursts.windows().len();
    let mut begins = RegionBegins::new();
    for place in windows.flat_map(|window| bursts.named_pages(window)) {
        let begin = place.page.wrapping_sub(u64::from(place.first.0));
        begins.entry(place.region).or_insert((place.process, begin));
    }
    begins
}

fn place_of(row: &PageUse, begins: &RegionBegins) -> Option<NamedPages> {
    let (process, begin) = begins.get(&row.region)?;
    Some(NamedPages {
        process: *process,
        page: begin.wrapping_add(u64::from(row.page.0)),
        pages: 1 + u64::from(row.following),
        region: row.region,
        first: row.page,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::simulated_machine::CoherenceProtocol;
    use crate::simulate::symmetric::{level, machine};

    /// Pages of 4 KiB from 1 MiB on, each thread's own: how often their lines were fetched, and writes.
    fn period(rows: &[(u32, u64, u64)]) -> WarmingPeriod {
        let rows: Vec<(NamedPages, PageUse)> = (0u64..)
            .zip(rows)
            .map(|(at, (thread, fetches, writes))| {
                let place = NamedPages {
                    page: 256 + at,
                    pages: 1,
                    ..NamedPages::default()
                };
                let row = PageUse {
                    thread: hither_profile::ThreadIx(*thread),
                    fetches: *fetches,
                    writes: *writes,
                    ..PageUse::default()
                };
                (place, row)
            })
            .collect();
        let levels = [level(8, 8, 1, 4, false), level(4096, 16, 2, 20, true)];
        let machine = machine(&levels, 2, 2, CoherenceProtocol::Mesi);
        WarmingPeriod::of(&rows, WindowLayout::default(), &machine)
    }

    #[test]
    fn what_is_fetched_often_was_used_last() {
        let period = period(&[(0, 64_000, 64_000), (1, 128, 64), (1, 16, 0)]);
        let of = |page: u64| {
            let mut uses = period.uses.iter();
            *uses
                .find(|used| used.run.address == page * PAGE_SIZE)
                .expect("a use")
        };
        let [often, twice, partly] = [256, 257, 258].map(of);
        assert!(often.age <= 0.001 && twice.age <= 0.5 && partly.age < 1.0);
        assert_eq!(
            [often, twice, partly].map(|used| used.run.lines),
            [64, 64, 16]
        );
        assert_eq!(
            [often, twice, partly].map(|used| used.run.written),
            [64, 32, 0]
        );
        assert!(period.uses.is_sorted_by(|a, b| a.age >= b.age));
        assert!(period.threads.iter().eq(&[0, 1]));
    }

    #[test]
    fn only_what_the_caches_of_a_plan_hold_is_played() {
        let period = period(&[(0, 64, 0); 1000]);
        let played =
            |caches: usize| -> u64 { period.uses(caches).map(|run| u64::from(run.lines)).sum() };
        let held = period.held as u64;
        // One thread uses one cache, whatever the others hold.
        assert!((held - 64..=held).contains(&played(1)), "{}", played(1));
        assert_eq!(played(0), 0);
        assert_eq!(played(2), played(1));
    }
}
