//! Mappings that turned out to be segments of a module after their pages had been named.
use super::address_space::PageName;
use super::region_interval::RegionInterval;
use std::collections::HashMap;

#[derive(Default)]
pub struct LateModules {
    /// By region: the interval, the module, and where the interval starts in it, in pages.
    segments: HashMap<u32, Vec<(RegionInterval, u32, u64)>>,
    /// The regions that modules of a process took over.
    of_process: HashMap<u32, Vec<u32>>,
}

/// Pages side by side in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionSpan {
    pub region: u32,
    pub first: u64,
    pub pages: u64,
}

impl LateModules {
    /// False if it is known already, of another process of the same row.
    pub fn add(
        &mut self,
        process: u32,
        interval: RegionInterval,
        (module, start): (u32, u64),
    ) -> bool {
        let regions = self.of_process.entry(process).or_default();
        if regions.last() != Some(&interval.region) {
            regions.push(interval.region);
        }
        let segments = self.segments.entry(interval.region).or_default();
        let same = |(i, m, s): &(RegionInterval, u32, u64)| {
            (i.offset, i.pages(), *m, *s) == (interval.offset, interval.pages(), module, start)
        };
        let known = segments.iter().any(same);
        if !known {
            segments.push((interval, module, start));
        }
        !known
    }

    /// A process has ended: the regions that its modules took over.
    pub fn leave_process(&mut self, process: u32) -> Vec<u32> {
        self.of_process.remove(&process).unwrap_or_default()
    }

    /// The names of a run now that all modules are known, in order.
    pub fn resolve_span(&self, run: RegionSpan) -> Vec<RegionSpan> {
        let end = run.first.saturating_add(run.pages);
        let segments = self.segments.get(&run.region).into_iter().flatten();
        let mut segments: Vec<_> = segments.collect();
        segments.sort_unstable_by_key(|(i, _, _)| i.offset);
        let (mut found, mut next) = (Vec::new(), run.first);
        let mut add = |region: u32, first: u64, pages: u64| {
            if pages > 0 {
                found.push(RegionSpan {
                    region,
                    first,
                    pages,
                });
            }
        };
        for (i, module, start) in segments {
            let from = i.offset.clamp(next, end);
            let to = i.offset.saturating_add(i.pages()).clamp(from, end);
            add(run.region, next, from - next);
            add(
                *module,
                start.saturating_add(from - i.offset.min(from)),
                to - from,
            );
            next = to;
        }
        add(run.region, next, end - next);
        found
    }

    /// The name of a page now that all modules are known.
    pub fn resolve_page(&self, (region, page): PageName) -> PageName {
        let run = RegionSpan {
            region,
            first: page.into(),
            pages: 1,
        };
        let first = self.resolve_span(run).first().copied().unwrap_or(run);
        u32::try_from(first.first).map_or((region, page), |page| (first.region, page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_cut_where_a_module_took_over() {
        let mut absorbed = LateModules::default();
        for (offset, end) in [(8, 10), (2, 5)] {
            let interval = RegionInterval {
                start: 100 + offset,
                end: 100 + end,
                region: 7,
                offset,
                generation: 1,
            };
            absorbed.add(1, interval, (9, 40 + offset));
        }
        let run = |region, first, pages| RegionSpan {
            region,
            first,
            pages,
        };
        assert_eq!(
            absorbed.resolve_span(run(7, 0, 9)),
            [run(7, 0, 2), run(9, 42, 3), run(7, 5, 3), run(9, 48, 1)]
        );
        assert_eq!(absorbed.resolve_span(run(3, 0, 9)), [run(3, 0, 9)]);
        assert_eq!(
            [4, 5].map(|p| absorbed.resolve_page((7, p))),
            [(9, 44), (7, 5)]
        );
    }
}
