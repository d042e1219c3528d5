//! Profiles of any size with cells that are known to be hot, for tests and `bench/report`.
use hither_model::rng::Rng;
use hither_profile::*;

/// Counts of the cells that are planted, and the most of any other.
pub const HOT: u64 = 1_000_000;
pub const ELSE: u64 = 4000;

pub struct Planted {
    pub threads: u32,
    pub pages: u32,
    /// Threads that use each page: its owner and those numbered next.
    pub users: u32,
    pub slices: u32,
    /// Cells to plant.
    pub hot: u32,
}

impl Planted {
    /// The cells that are hot: (page, thread).
    pub fn cells(&self) -> Vec<(u32, u32)> {
        let mut random = Rng::new(42);
        let mut cells: Vec<(u32, u32)> = (0..self.hot)
            .map(|at| {
                // Apart from one another, so that each can be found.
                let stride = self.pages / self.hot;
                let page = at * stride + random.below((stride / 2).max(1) as usize) as u32;
                let user = random.below(self.users as usize) as u32;
                (page, (self.owner(page) + user) % self.threads)
            })
            .collect();
        cells.sort_unstable();
        cells
    }

    fn owner(&self, page: u32) -> u32 {
        (u64::from(page) * u64::from(self.threads) / u64::from(self.pages)) as u32
    }

    /// One structure, `field`, over all pages; threads in a chain.
    pub fn profile(&self) -> Profile {
        let pages = self.uses();
        let accesses: u64 = pages.iter().map(|u| u.reads + u.writes).sum();
        let each = accesses / u64::from(self.threads);
        let size = u64::from(self.pages) * PAGE_SIZE;
        let touch = |page| PageFirstTouch {
            page: PageNo(page),
            thread: ThreadIx(0),
            ..PageFirstTouch::default()
        };
        Profile {
            meta: self.meta(),
            threads: (0..self.threads).map(|n| thread(n, each)).collect(),
            slices: (0..self.slices).map(|s| self.slice(s)).collect(),
            comm: self.comm(),
            regions: vec![Region {
                size,
                ..Region::default()
            }],
            objects: vec![Object {
                name: "field".to_owned(),
                type_name: "double *".to_owned(),
                kind: ObjectKind::Heap,
                size,
                count: 1,
                file: "/src/planted.c".to_owned(),
                line: 17,
                function: "main".to_owned(),
                reads: accesses,
                ..Object::default()
            }],
            object_ranges: vec![ObjectRange {
                length: size,
                ..ObjectRange::default()
            }],
            first_touch: (0..self.pages).map(touch).collect(),
            pages: pages.into(),
            ..Profile::default()
        }
    }

    fn meta(&self) -> ProfileMeta {
        ProfileMeta {
            format: FORMAT_VERSION,
            command: vec!["planted".to_owned()],
            duration: u64::from(self.slices) * 10_000_000,
            end: RunEnd::Exited { status: 0 },
            comm_slices: 1,
            processes: vec![Process {
                pid: 1,
                executable: "/opt/planted".to_owned(),
                ..Process::default()
            }],
            ..ProfileMeta::default()
        }
    }

    fn uses(&self) -> Vec<PageUse> {
        let mut random = Rng::new(7);
        let mut rows = Vec::with_capacity((self.pages * self.users) as usize);
        let mut hot = self.cells().into_iter().peekable();
        for page in 0..self.pages {
            let owner = self.owner(page);
            let mut users: Vec<u32> = (0..self.users)
                .map(|n| (owner + n) % self.threads)
                .collect();
            users.sort_unstable();
            for thread in users {
                let planted = hot.next_if(|cell| *cell == (page, thread)).is_some();
                let most = if thread == owner { ELSE - 1000 } else { 60 };
                let reads = if planted {
                    HOT
                } else {
                    1 + most / 2 + random.below((most / 2) as usize) as u64
                };
                rows.push(PageUse {
                    page: PageNo(page),
                    thread: ThreadIx(thread),
                    reads,
                    ..PageUse::default()
                });
            }
        }
        rows
    }

    fn comm(&self) -> Vec<PairComm> {
        let mut random = Rng::new(3);
        let mut rows = Vec::new();
        for slice in 0..self.slices {
            // The second half of the run shares with the thread after next.
            let far = 1 + u32::from(slice >= self.slices / 2);
            for i in 0..self.threads.saturating_sub(far) {
                rows.push(PairComm {
                    slice: SliceIx(slice),
                    i: ThreadIx(i),
                    j: ThreadIx(i + far),
                    events: 500 + random.below(100) as u64,
                    ..PairComm::default()
                });
            }
        }
        rows
    }

    fn slice(&self, at: u32) -> Slice {
        let second = at >= self.slices / 2;
        Slice {
            start: u64::from(at) * 10_000_000,
            length: 10_000_000,
            accesses: 1_000_000,
            amount: if second { 60.0 } else { 40.0 } + f64::from(at % 7),
            heterogeneity: if second { 900.0 } else { 300.0 } + f64::from(at % 11),
            threads: self.threads,
            traced: true,
            ..Slice::default()
        }
    }
}

fn thread(n: u32, accesses: u64) -> Thread {
    Thread {
        tid: 100 + n as i32,
        name: format!("worker {n}"),
        creator: (n > 0).then_some(ThreadIx(0)),
        instructions: accesses * 2,
        reads: accesses,
        ..Thread::default()
    }
}
