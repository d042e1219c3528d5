//! Profiles made of random numbers, valid in every reference.
#![allow(dead_code)] // each test file uses a part
use hither_profile::*;

/// SplitMix64: small, seeded, good enough to make test data.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// Below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    fn ix(&mut self, rows: usize) -> u32 {
        self.below(rows as u64) as u32
    }
    /// Small numbers mostly, large ones now and then.
    fn count(&mut self) -> u64 {
        let bits = self.below(45);
        self.next() & ((1 << bits) - 1)
    }
    fn text(&mut self) -> String {
        [
            "",
            "main",
            "key_buff1",
            "träge 🐢",
            "/usr/lib/libc.so.6",
            "a\0b\"\n",
        ][self.below(6) as usize]
            .to_string()
    }
    fn float(&mut self) -> f64 {
        self.count() as f64 / 7.0
    }
}

/// A profile with up to `size` rows per table.
pub fn profile(seed: u64, size: usize) -> Profile {
    let r = &mut Random(seed);
    let mut rows = || 1 + r.below(size as u64) as usize;
    let (processes, threads, slices, regions, objects) = (rows(), rows(), rows(), rows(), rows());
    let (comm, pages, touches, ranges, sites) = (rows(), rows(), rows(), rows(), rows());
    let mut p = Profile {
        meta: meta(r, processes),
        threads: (0..threads)
            .map(|_| thread(r, processes, threads))
            .collect(),
        slices: (0..slices).map(|_| slice(r)).collect(),
        regions: (0..regions)
            .map(|_| region(r, processes, threads))
            .collect(),
        objects: (0..objects)
            .map(|_| object(r, processes, threads))
            .collect(),
        ..Profile::default()
    };
    for _ in 0..comm * usize::from(threads > 1) {
        let j = 1 + r.ix(threads - 1);
        let (slice, i) = (SliceIx(r.ix(slices)), ThreadIx(r.ix(j as usize)));
        p.comm.push(PairComm {
            slice,
            i,
            j: ThreadIx(j),
            events: r.count(),
            ..PairComm::default()
        });
    }
    for _ in 0..pages {
        p.pages.push(PageUse {
            slice: SliceIx(r.ix(slices)),
            region: RegionIx(r.ix(regions)),
            page: PageNo(r.next() as u32 >> 1),
            following: r.ix(16),
            thread: ThreadIx(r.ix(threads)),
            reads: r.count(),
            writes: r.count(),
            fetches: r.count(),
        });
    }
    for _ in 0..touches {
        p.first_touch.push(PageFirstTouch {
            region: RegionIx(r.ix(regions)),
            page: PageNo(r.next() as u32 >> 1),
            following: r.ix(16),
            thread: ThreadIx(r.ix(threads)),
            slice: SliceIx(r.ix(slices)),
        });
    }
    for _ in 0..ranges {
        p.object_ranges.push(ObjectRange {
            object: ObjectIx(r.ix(objects)),
            region: RegionIx(r.ix(regions)),
            offset: r.count(),
            length: r.count(),
        });
    }
    for _ in 0..ranges {
        p.members.push(ObjectMember {
            object: ObjectIx(r.ix(objects)),
            name: r.text(),
            type_name: r.text(),
            offset: r.count(),
            size: r.count(),
        });
    }
    for _ in 0..sites {
        p.sites.push(SourceSite {
            object: (r.below(3) > 0).then(|| ObjectIx(r.ix(objects))),
            file: r.text(),
            line: r.next() as u32,
            function: r.text(),
            callee: r.text(),
            reads: r.count(),
            writes: r.count(),
            fetches: r.count(),
        });
    }
    for _ in 0..sites {
        p.allocation_paths.push(AllocationPath {
            object: ObjectIx(r.ix(objects)),
            path: r.text(),
            count: r.count(),
            size: r.count(),
            allocated: r.count(),
            smallest: r.count(),
            largest: r.count(),
            reads: r.count(),
            writes: r.count(),
            fetches: r.count(),
        });
    }
    for _ in 0..sites {
        p.first_touch_lines.push(FirstTouchLine {
            object: ObjectIx(r.ix(objects)),
            thread: ThreadIx(r.ix(threads)),
            file: r.text(),
            line: r.next() as u32,
            function: r.text(),
            path: r.text(),
            in_parallel: r.below(2) > 0,
            pages: r.count(),
        });
    }
    for _ in 0..sites {
        p.object_threads.push(ObjectThread {
            object: ObjectIx(r.ix(objects)),
            thread: ThreadIx(r.ix(threads)),
        });
    }
    for line in 0..sites {
        p.source_text.push(SourceText {
            file: "a.c".to_owned(),
            line: line as u32,
            text: r.text(),
        });
    }
    for _ in 0..ranges {
        p.lines.push(LineUse {
            region: RegionIx(r.ix(regions)),
            offset: r.count(),
            thread: ThreadIx(r.ix(threads)),
            seen: r.count(),
            read_mask: r.next(),
            write_mask: r.next(),
            accesses: r.count(),
            writes: r.count(),
        });
    }
    if r.below(2) > 0 {
        p.meta.online = Some(online(r));
        for _ in 0..touches {
            p.thread_moves.push(ThreadMove {
                at: r.count(),
                thread: ThreadIx(r.ix(threads)),
                pu: r.next() as u32,
                node: r.next() as u32,
            });
            p.page_moves.push(PageMove {
                at: r.count(),
                region: RegionIx(r.ix(regions)),
                page: PageNo(r.next() as u32),
                node: r.next() as u32,
            });
        }
    }
    // The order that the writer gives them.
    p.thread_moves.sort_by_key(|m| (m.at, m.thread));
    p.page_moves.sort_by_key(|m| (m.at, m.region, m.page));
    p.comm.sort_by_key(|c| (c.slice, c.i, c.j));
    let mut uses: Vec<_> = p.pages.rows().collect();
    uses.sort_by_key(|u| (u.slice, u.region, u.page, u.thread));
    p.pages = uses.into();
    p.lines.sort_by_key(|l| (l.region, l.offset, l.thread));
    let mut touches: Vec<_> = p.first_touch.rows().collect();
    touches.sort_by_key(|t| (t.region, t.page));
    p.first_touch = touches.into();
    p.object_ranges
        .sort_by_key(|o| (o.object, o.region, o.offset));
    p.object_threads.sort();
    p
}

fn online(r: &mut Random) -> OnlineInfo {
    OnlineInfo {
        mechanism: r.text(),
        policy: r.text(),
        parameters: [(r.text(), r.count() as f64)].into(),
        samplers: vec![r.text(), r.text()],
        faults: r.count(),
        caused: r.count(),
        lost: r.count(),
        mappings: r.count(),
        memory: r.count(),
    }
}

fn meta(r: &mut Random, processes: usize) -> ProfileMeta {
    ProfileMeta {
        format: FORMAT_VERSION,
        writer: "test".to_string(),
        command: vec![r.text(), r.text()],
        duration: r.count(),
        processes: (0..processes)
            .map(|_| Process {
                pid: r.next() as i32,
                parent: (r.below(2) > 0).then(|| ProcessIx(r.ix(processes))),
                executable: r.text(),
                rank: (r.below(2) > 0).then(|| r.next() as u32),
                start: r.count(),
                end: r.count(),
            })
            .collect(),
        end: [
            RunEnd::Interrupted,
            RunEnd::Exited { status: -1 },
            RunEnd::Signaled { signal: 11 },
        ][r.below(3) as usize]
            .clone(),
        limits: vec!["a limit".to_string()],
        sampling_error: r.float(),
        ..ProfileMeta::default()
    }
}

fn thread(r: &mut Random, processes: usize, threads: usize) -> Thread {
    Thread {
        process: ProcessIx(r.ix(processes)),
        tid: r.next() as i32,
        name: r.text(),
        creator: (r.below(2) > 0).then(|| ThreadIx(r.ix(threads))),
        start: r.count(),
        end: r.count(),
        instructions: r.count(),
        reads: r.count(),
        writes: r.count(),
        role: (r.below(2) > 0).then(|| ThreadIx(r.ix(threads))),
    }
}

fn slice(r: &mut Random) -> Slice {
    Slice {
        start: r.count(),
        length: r.count(),
        accesses: r.count(),
        amount: r.float(),
        heterogeneity: r.float(),
        threads: r.next() as u32,
        sync: [r.count(), r.count(), r.count(), r.count()],
        traced: r.below(2) > 0,
        paused: r.count(),
    }
}

fn region(r: &mut Random, processes: usize, threads: usize) -> Region {
    use RegionKind::*;
    Region {
        kind: [Elf, Brk, Mmap, Stack, Shared, Other][r.below(6) as usize],
        process: ProcessIx(r.ix(processes)),
        thread: (r.below(2) > 0).then(|| ThreadIx(r.ix(threads))),
        ordinal: r.next() as u32,
        size: r.count(),
        file: r.text(),
        file_offset: r.next(),
        address: r.next(),
    }
}

fn object(r: &mut Random, processes: usize, threads: usize) -> Object {
    use ObjectKind::*;
    Object {
        name: r.text(),
        type_name: r.text(),
        kind: [Static, Heap, Mmap, Stack, Shared][r.below(5) as usize],
        size: r.count(),
        count: r.count(),
        allocated: r.count(),
        smallest: r.count(),
        largest: r.count(),
        file: r.text(),
        line: r.next() as u32,
        function: r.text(),
        process: ProcessIx(r.ix(processes)),
        owner: (r.below(2) > 0).then(|| ThreadIx(r.ix(threads))),
        reads: r.count(),
        writes: r.count(),
        fetches: r.count(),
        estimated: r.below(2) > 0,
    }
}
