//! A profile may come from anybody: reading one gives a profile or an error that names
//! the file, never a panic.
mod common;
use common::Random;
use hither_profile::*;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    files
}

/// Reads, and uses what an honest reader would use.
fn survives(dir: &Path) {
    if let Ok(p) = read(dir) {
        let total: u64 = p.threads.iter().map(Thread::accesses).sum();
        let m = p.matrix();
        assert!(m.total() <= u64::MAX / 2 && total < u64::MAX / 2);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn flipped_bytes_never_panic(seed: u64, size in 1usize..40, flips in 1usize..6) {
        let dir = tempfile::tempdir().unwrap();
        write(&common::profile(seed % 64, size), dir.path()).unwrap();
        let r = &mut Random(seed);
        for file in files(dir.path()) {
            let good = fs::read(&file).unwrap();
            let mut bad = good.clone();
            for _ in 0..flips {
                // Every second flip hits the last part, where the metadata is.
                let len = good.len() as u64;
                let from = if r.below(2) == 0 { len - len.min(700) } else { 0 };
                let at = (from + r.below(len - from)) as usize;
                bad[at] = if r.below(2) == 0 { bad[at] ^ (1 << r.below(8)) } else { r.next() as u8 };
            }
            fs::write(&file, &bad).unwrap();
            survives(dir.path());
            fs::write(&file, &good).unwrap();
        }
    }

    #[test]
    fn cut_files_never_panic(seed: u64) {
        let dir = tempfile::tempdir().unwrap();
        write(&common::profile(seed % 64, 30), dir.path()).unwrap();
        let r = &mut Random(seed);
        for file in files(dir.path()) {
            let good = fs::read(&file).unwrap();
            fs::write(&file, &good[..r.below(good.len() as u64) as usize]).unwrap();
            survives(dir.path());
            fs::write(&file, &good).unwrap();
        }
    }
}

/// A profile of two threads, one row in every table.
fn small() -> Profile {
    Profile {
        meta: ProfileMeta {
            processes: vec![Process::default()],
            online: Some(OnlineInfo::default()),
            ..ProfileMeta::default()
        },
        threads: vec![Thread::default(); 2],
        slices: vec![Slice::default()],
        comm: vec![PairComm {
            j: ThreadIx(1),
            events: 1,
            ..PairComm::default()
        }],
        pages: vec![PageUse::default()].into(),
        first_touch: vec![PageFirstTouch::default()].into(),
        regions: vec![Region::default()],
        objects: vec![Object::default()],
        object_ranges: vec![ObjectRange::default()],
        members: vec![ObjectMember::default()],
        sites: vec![SourceSite::default()],
        first_touch_lines: vec![FirstTouchLine::default()],
        object_threads: vec![ObjectThread::default()],
        allocation_paths: vec![AllocationPath::default()],
        lines: vec![LineUse::default()],
        source_text: vec![SourceText::default()],
        thread_moves: vec![ThreadMove::default()],
        page_moves: vec![PageMove::default()],
        roles: Vec::new(),
    }
}

fn change<R: PageRow>(rows: &mut PageRows<R>, change: impl Fn(&mut R)) {
    rows.retain_mut(|row| {
        change(row);
        true
    });
}

#[test]
fn bad_values_are_named() {
    fn check(spoil: impl Fn(&mut Profile), expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let mut p = small();
        spoil(&mut p);
        write(&p, dir.path()).unwrap();
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} lacks {expected:?}");
        assert!(error.contains("make the profile again"), "{error}");
    }
    check(
        |p| p.comm[0].j = ThreadIx(2),
        "comm.parquet is damaged: row 0, column j: 2 is not one of the 2 threads",
    );
    check(
        |p| p.comm[0].j = ThreadIx(0),
        "column j: thread 0 is not above i = 0",
    );
    check(
        |p| {
            p.comm.push(PairComm {
                slice: SliceIx(1),
                ..p.comm[0]
            })
        },
        "row 1, column slice: 1 is not one of the 1 slices",
    );
    check(
        |p| {
            p.pages.push(PageUse {
                page: PageNo(7),
                following: u32::MAX - 6,
                ..PageUse::default()
            })
        },
        "pages.parquet is damaged: row 1, column following: no 4294967289 pages follow page 7",
    );
    check(
        |p| {
            p.first_touch.extend((0..17).map(|_| PageFirstTouch {
                following: u32::MAX,
                ..PageFirstTouch::default()
            }))
        },
        "row 17, column following: the rows stand for too many pages",
    );
    check(
        |p| p.threads[1].creator = Some(ThreadIx(9)),
        "threads.parquet is damaged: row 1, column creator: 9 is not one of the 2 threads",
    );
    check(
        |p| p.threads[1].process = ProcessIx(1),
        "1 is not one of the 1 processes",
    );
    check(
        |p| change(&mut p.pages, |u| u.region = RegionIx(1)),
        "1 is not one of the 1 regions",
    );
    check(
        |p| change(&mut p.pages, |u| u.thread = ThreadIx(u32::MAX)),
        "4294967295 is not one of the 2 threads",
    );
    check(
        |p| change(&mut p.first_touch, |t| t.slice = SliceIx(1)),
        "first_touch.parquet is damaged: row 0, column slice",
    );
    check(
        |p| p.object_ranges[0].object = ObjectIx(1),
        "1 is not one of the 1 objects",
    );
    check(
        |p| p.object_ranges[0].length = u64::MAX,
        "18446744073709551615 is too large",
    );
    check(
        |p| p.sites[0].object = Some(ObjectIx(1)),
        "sites.parquet is damaged: row 0, column object",
    );
    check(
        |p| p.slices[0].amount = f64::NAN,
        "column amount: NaN is not a finite number",
    );
    check(
        |p| p.threads.iter_mut().for_each(|t| t.reads = 1 << 61),
        "column reads: the sum of the column is too large",
    );
    check(
        |p| p.meta.processes[0].parent = Some(ProcessIx(1)),
        "process 0: parent 1 is not a process",
    );
    check(|p| p.meta.options.line = 0, "options.line is 0");
}

#[test]
fn bad_folders_are_named() {
    fn check(spoil: impl Fn(&Path), expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.hither");
        write(&small(), &path).unwrap();
        spoil(&path);
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} lacks {expected:?}");
    }
    fn json(dir: &Path, from: &str, to: &str) {
        let file = dir.join("profile.json");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{from} in {text}");
        fs::write(file, text.replacen(from, to, 1)).unwrap();
    }
    check(|d| fs::remove_dir_all(d).unwrap(), "it does not exist");
    check(
        |d| fs::remove_file(d.join("profile.json")).unwrap(),
        "no profile.json in it",
    );
    check(
        |d| json(d, "\"format\": 2", "\"format\": 3"),
        "was made by a newer hither (format 3); update hither",
    );
    check(
        |d| json(d, "\"format\": 2", "\"format\": 0"),
        "is not a profile",
    );
    check(
        |d| json(d, "\"format\"", "\"version\""),
        "missing field `format`",
    );
    check(
        |d| fs::remove_file(d.join("pages.parquet")).unwrap(),
        "pages.parquet is missing, which profile.json lists",
    );
    check(
        |d| fs::write(d.join("pages.parquet"), "PAR2").unwrap(),
        "pages.parquet is damaged",
    );
    check(
        |d| {
            fs::copy(d.join("comm.parquet"), d.join("pages.parquet"))
                .map(drop)
                .unwrap()
        },
        "column region is missing",
    );
    check(
        |d| json(d, "\"rows\": 1", "\"rows\": 300000000"),
        "300000000 rows are more than the 10000000 possible",
    );
    check(
        |d| json(d, "\"rows\": 1", "\"rows\": 0"),
        "it has more than 0 rows",
    );
    check(
        |d| json(d, "\"rows\": 1", "\"rows\": 2"),
        "it has 1 rows of 2",
    );
    check(
        |d| {
            fs::remove_file(d.join("pages.parquet")).unwrap();
            let made = std::process::Command::new("mkfifo")
                .arg(d.join("pages.parquet"))
                .status();
            assert!(made.unwrap().success());
        },
        "it is not a regular file",
    );
}

#[test]
fn a_table_that_is_not_listed_is_empty_and_so_is_what_needs_it() {
    let dir = tempfile::tempdir().unwrap();
    write(&small(), dir.path()).unwrap();
    let file = dir.path().join("profile.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    json["tables"]
        .as_object_mut()
        .unwrap()
        .remove("regions")
        .unwrap();
    fs::write(&file, json.to_string()).unwrap();
    let p = read(dir.path()).unwrap();
    assert_eq!(
        (p.regions.len(), p.pages.row_count(), p.object_ranges.len()),
        (0, 0, 0)
    );
    assert_eq!((p.threads.len(), p.comm.len(), p.objects.len()), (2, 1, 1));
}
