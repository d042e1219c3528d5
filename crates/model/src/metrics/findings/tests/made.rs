//! Small profiles made by hand: pages, who touches them first and who uses them, the
//! structures that lie in them, and who communicates with whom.
use crate::metrics::belonging::work_of_nodes;
use crate::metrics::exclusivity::exclusivity;
use crate::metrics::findings::{FindingContext, SuggestedCommands};
use crate::metrics::node_assignment::best_and_worst_assignment;
use crate::metrics::residence::NodeResidence;
use crate::metrics::{MetricsSetup, PageSize, ProfileAnalysis};
use hither_profile::*;

pub struct Made {
    pub profile: Profile,
    pub nodes: usize,
    /// 0: unknown, nothing fits in them.
    pub cache_bytes: u64,
    pub placement: Option<Placement>,
}

impl Made {
    /// `threads` threads of one process, on as many nodes; a run of one slice of a second.
    pub fn new(threads: u32) -> Made {
        let thread = |n: u32| Thread {
            name: format!("t{n}"),
            creator: (n > 0).then_some(ThreadIx(0)),
            ..Thread::default()
        };
        let profile = Profile {
            threads: (0..threads).map(thread).collect(),
            regions: vec![Region {
                size: 1 << 30,
                ..Region::default()
            }],
            ..Profile::default()
        };
        let made = Made {
            profile,
            nodes: threads as usize,
            cache_bytes: 0,
            placement: None,
        };
        made.slices(1, 1_000_000_000)
    }

    pub fn on(mut self, nodes: usize) -> Made {
        self.nodes = nodes;
        self
    }

    /// Pages behind those that are there: each first touched by `toucher` and read so often by
    /// each thread.
    pub fn pages(self, count: u32, toucher: u32, reads: &[u64]) -> Made {
        self.used(count, toucher, reads, &[])
    }

    /// The same with writes.
    pub fn used(mut self, count: u32, toucher: u32, reads: &[u64], writes: &[u64]) -> Made {
        let first = self.profile.first_touch.row_count() as u32;
        for page in (first..first + count).map(PageNo) {
            self.profile.first_touch.push(PageFirstTouch {
                page,
                thread: ThreadIx(toucher),
                ..PageFirstTouch::default()
            });
            for thread in 0..self.profile.threads.len() {
                let of = |list: &[u64]| list.get(thread).copied().unwrap_or(0);
                let (reads, writes) = (of(reads), of(writes));
                if reads == 0 && writes == 0 {
                    continue;
                }
                self.profile.pages.push(PageUse {
                    page,
                    thread: ThreadIx(thread as u32),
                    reads,
                    writes,
                    ..PageUse::default()
                });
                let all = &mut self.profile.threads[thread];
                all.reads = all.reads.saturating_add(reads);
                all.writes = all.writes.saturating_add(writes);
            }
        }
        self
    }

    /// The last `pages` pages are fetched so often each, whoever does.
    pub fn fetched(mut self, pages: u32, fetches: u64) -> Made {
        let end = self.profile.first_touch.row_count() as u32;
        let mut last = None;
        self.profile.pages.retain_mut(|row| {
            if row.page.0 >= end - pages && last.replace(row.page) != Some(row.page) {
                row.fetches = fetches;
            }
            true
        });
        self
    }

    /// The last `pages` pages are a structure, whose accesses are those to them.
    pub fn named(mut self, name: &str, pages: u32) -> Made {
        let end = self.profile.first_touch.row_count() as u32;
        let inside = |u: &PageUse| u.page.0 >= end - pages;
        let sum = |of: fn(&PageUse) -> u64| {
            let uses = self.profile.pages.iter().filter(inside).map(|u| of(&u));
            uses.fold(0, u64::saturating_add)
        };
        let object = Object {
            name: name.to_owned(),
            kind: ObjectKind::Heap,
            size: u64::from(pages) * PAGE_SIZE,
            count: 1,
            file: "/src/app.c".to_owned(),
            line: 12,
            function: "main".to_owned(),
            reads: sum(|u| u.reads),
            writes: sum(|u| u.writes),
            fetches: sum(|u| u.fetches),
            ..Object::default()
        };
        self.profile.object_ranges.push(ObjectRange {
            object: ObjectIx(self.profile.objects.len() as u32),
            region: RegionIx(0),
            offset: u64::from(end - pages) * PAGE_SIZE,
            length: object.size,
        });
        self.profile.objects.push(object);
        self
    }

    /// So many slices of `length` nanoseconds.
    pub fn slices(mut self, count: u32, length: u64) -> Made {
        let threads = self.profile.threads.len() as u32;
        let slice = |n: u32| Slice {
            start: u64::from(n) * length,
            length,
            threads,
            traced: true,
            ..Slice::default()
        };
        self.profile.slices = (0..count).map(slice).collect();
        self.profile.meta.duration = u64::from(count) * length;
        self
    }

    /// Communication in each of the slices: `(i, j, events)`, i < j.
    pub fn talk(mut self, slices: std::ops::Range<u32>, pairs: &[(u32, u32, u64)]) -> Made {
        for slice in slices {
            for &(i, j, events) in pairs {
                self.profile.comm.push(PairComm {
                    slice: SliceIx(slice),
                    i: ThreadIx(i),
                    j: ThreadIx(j),
                    events,
                    ..PairComm::default()
                });
            }
        }
        self
    }

    pub fn analysis(&self) -> ProfileAnalysis {
        let setup = MetricsSetup {
            nodes: self.nodes,
            nodes_from: "as made".to_owned(),
            cache_bytes: self.cache_bytes,
            page_size: PageSize::K4,
        };
        ProfileAnalysis::from_profile(&self.profile, setup)
    }

    /// E_app with pages of 2 MiB.
    fn large(&self, analysis: &ProfileAnalysis) -> f64 {
        let table = analysis
            .table
            .merge_into(&self.profile.regions, PageSize::M2);
        let (best, _) =
            best_and_worst_assignment(&table, &self.profile.working_threads(), self.nodes);
        exclusivity(&table, self.nodes, &best).map_or(1.0, |e| e.app)
    }

    /// What a finder finds.
    pub fn find(&self, finder: fn(&FindingContext) -> Vec<Finding>) -> Vec<Finding> {
        let analysis = self.analysis();
        let residence = match &self.placement {
            Some(placement) => NodeResidence::from_placement(&analysis, &self.profile, placement),
            None => NodeResidence::from_first_touch(&analysis),
        };
        let best = analysis.report.pages.as_ref().map_or(1.0, |p| p.best.app);
        let found = finder(&FindingContext {
            profile: &self.profile,
            analysis: &analysis,
            residence: &residence,
            sizes: &[
                (PAGE_SIZE, best),
                (PageSize::M2.bytes(), self.large(&analysis)),
            ],
            work: work_of_nodes(&analysis.traffic, residence.nodes, &residence.threads),
            commands: SuggestedCommands {
                profile: "app.hither".to_owned(),
                placement: "app.place.json".to_owned(),
                program: "./app 12".to_owned(),
            },
        });
        for finding in &found {
            assert!(!finding.evidence.is_empty() && !finding.title.is_empty());
            assert!((0.0..=1.0).contains(&finding.severity), "{finding:?}");
        }
        found
    }

    /// The only finding.
    #[track_caller]
    pub fn finds(&self, finder: fn(&FindingContext) -> Vec<Finding>) -> Finding {
        let mut found = self.find(finder);
        assert_eq!(found.len(), 1, "{found:#?}");
        found.remove(0)
    }

    #[track_caller]
    pub fn finds_nothing(&self, finder: fn(&FindingContext) -> Vec<Finding>) {
        let found = self.find(finder);
        assert!(found.is_empty(), "{found:#?}");
    }
}
