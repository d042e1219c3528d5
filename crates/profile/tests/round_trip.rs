//! What is written is what is read, small, and in its place.
mod common;
use hither_profile::*;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_profile_comes_back(seed: u64, size in 1usize..60) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.hither");
        let profile = common::profile(seed, size);
        let written = write(&profile, &path).unwrap();
        prop_assert_eq!(&written.missing, &Vec::<String>::new());
        prop_assert!(read(&path).unwrap() == profile);
        let bytes: u64 = fs::read_dir(&path).unwrap().map(|f| f.unwrap().metadata().unwrap().len()).sum();
        prop_assert_eq!(written.bytes, bytes);
    }

    /// Whatever follows whatever: nothing that is counted is lost.
    #[test]
    fn any_profile_can_be_seen_by_roles(seed: u64, size in 1usize..60) {
        let profile = common::profile(seed, size);
        let sum = |p: &Profile| {
            let pages: u64 = p.pages.iter().map(|u| u.reads + u.writes).sum();
            let threads: u64 = p.threads.iter().map(|t| t.instructions + t.reads).sum();
            (pages, threads)
        };
        let before = sum(&profile);
        let merged = profile.by_roles();
        prop_assert_eq!(sum(&merged), before);
        prop_assert!(merged.comm.iter().all(|c| c.i < c.j && c.j.at() < merged.threads.len()));
        prop_assert!(merged.pages.iter().all(|u| u.thread.at() < merged.threads.len()));
        prop_assert!(merged.slices.iter().all(|s| s.amount.is_finite() && s.heterogeneity.is_finite()));
    }
}

#[test]
fn more_rows_than_a_row_group() {
    let dir = tempfile::tempdir().unwrap();
    let profile = stencil(1_500_000);
    write(&profile, dir.path()).unwrap();
    assert!(read(dir.path()).unwrap() == profile);
}

#[test]
fn a_profile_from_before_the_table_of_lines() {
    let dir = tempfile::tempdir().unwrap();
    let mut profile = common::profile(3, 20);
    write(&profile, dir.path()).unwrap();
    let json = dir.path().join("profile.json");
    let text = fs::read_to_string(&json).unwrap();
    let mut stored: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tables = stored["tables"].as_object_mut().unwrap();
    assert!(tables.remove("lines").is_some());
    fs::write(&json, stored.to_string()).unwrap();
    fs::remove_file(dir.path().join("lines.parquet")).unwrap();
    profile.lines.clear();
    assert!(read(dir.path()).unwrap() == profile);
}

#[test]
fn rows_are_sorted() {
    let dir = tempfile::tempdir().unwrap();
    let profile = common::profile(7, 50);
    let mut shuffled = profile.clone();
    let mut pages: Vec<_> = shuffled.pages.rows().collect();
    pages.reverse();
    shuffled.pages = pages.into();
    shuffled.comm.reverse();
    write(&shuffled, dir.path()).unwrap();
    let found = read(dir.path()).unwrap();
    assert_eq!(found.comm, profile.comm);
    assert_eq!(found.pages, profile.pages);
}

#[test]
fn an_empty_profile_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut profile = Profile::default();
    write(&profile, dir.path()).unwrap();
    profile.meta.format = FORMAT_VERSION;
    assert_eq!(read(dir.path()).unwrap(), profile);
}

/// Pages of a 2-D stencil on 8 threads: each page is used by its owner and, at the
/// borders, by a neighbour; counts scatter by some per cent; ten page slices.
fn stencil(rows: usize) -> Profile {
    let mut r = common::Random(1);
    let (threads, slices) = (8, 10);
    let mut p = Profile {
        meta: ProfileMeta {
            format: FORMAT_VERSION,
            processes: vec![Process::default()],
            ..ProfileMeta::default()
        },
        threads: vec![Thread::default(); threads],
        slices: vec![Slice::default(); slices],
        regions: vec![Region::default(); 4],
        ..Profile::default()
    };
    let pages = rows * 4 / 5 / slices;
    for slice in 0..slices {
        for page in 0..pages {
            let owner = page * threads / pages;
            let sharers = if page % 4 == 0 { 2 } else { 1 };
            for k in 0..sharers {
                p.pages.push(PageUse {
                    slice: SliceIx(slice as u32),
                    region: RegionIx((page * 4 / pages) as u32),
                    page: PageNo(page as u32),
                    thread: ThreadIx(((owner + k) % threads) as u32),
                    reads: 2500 + r.below(500),
                    writes: (500 + r.below(100)) * (1 - k as u64),
                    ..PageUse::default()
                });
            }
        }
    }
    let mut uses: Vec<_> = p.pages.rows().collect();
    uses.sort_by_key(|u| (u.slice, u.region, u.page, u.thread));
    p.pages = uses.into();
    p
}

#[test]
fn a_million_page_rows_take_six_bytes_each() {
    let dir = tempfile::tempdir().unwrap();
    let profile = stencil(1_000_000);
    write(&profile, dir.path()).unwrap();
    let bytes = fs::metadata(dir.path().join("pages.parquet"))
        .unwrap()
        .len() as f64;
    let each = bytes / profile.pages.row_count() as f64;
    eprintln!("{} rows, {each:.2} bytes each", profile.pages.row_count());
    assert!(each <= 6.0, "{each} bytes per row");
}

#[test]
fn a_profile_is_replaced_and_nothing_else_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.hither");
    write(&common::profile(1, 20), &path).unwrap();
    let second = common::profile(2, 20);
    write(&second, &path).unwrap();
    assert_eq!(read(&path).unwrap(), second);
    assert_eq!(read_meta(&path).unwrap(), second.meta);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_checkpoint_is_replaced_by_the_next_and_by_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.hither");
    let bursts = BurstWriter::create(&path).unwrap();
    for seed in 1..4 {
        let part = common::profile(seed, 20);
        let folder = CheckpointFolder::create(&path).unwrap();
        assert!(folder.write(&part).unwrap());
        assert_eq!(read(&path).unwrap(), part);
    }
    drop(CheckpointFolder::create(&path).unwrap());
    let mut whole = common::profile(4, 20);
    write_after_checkpoint(&mut whole, &path, Some(bursts)).unwrap();
    assert_eq!(read(&path).unwrap(), whole);
    assert!(path.join("bursts.bin").exists());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    write_after_checkpoint(&mut whole, &path, None).unwrap();
    assert!(!path.join("bursts.bin").exists());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// The program moved the folder and put another one in its place; nothing could be written then.
#[test]
fn a_checkpoint_is_replaced_in_a_folder_that_was_moved() {
    let dir = tempfile::tempdir().unwrap();
    let (first, moved) = (dir.path().join("first"), dir.path().join("moved"));
    fs::create_dir(&first).unwrap();
    let path = first.join("p.hither");
    let bursts = BurstWriter::create(&path).unwrap();
    let checkpoint = CheckpointFolder::create(&path).unwrap();
    assert!(checkpoint.write(&common::profile(1, 20)).unwrap());
    fs::rename(&first, &moved).unwrap();
    fs::create_dir(&first).unwrap();
    let mut whole = common::profile(4, 20);
    write_after_checkpoint(&mut whole, &path, Some(bursts)).unwrap();
    assert_eq!(read(&moved.join("p.hither")).unwrap(), whole);
    assert_eq!(fs::read_dir(&first).unwrap().count(), 0);
}

#[test]
fn what_somebody_put_in_the_place_of_a_checkpoint_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.hither");
    let bursts = BurstWriter::create(&path).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("mine"), "x").unwrap();
    let mut whole = common::profile(4, 20);
    let error = write_after_checkpoint(&mut whole, &path, Some(bursts)).unwrap_err();
    assert!(matches!(error, ProfileError::Refused { .. }), "{error}");
    assert!(CheckpointFolder::create(&path).is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    assert!(path.join("mine").exists());
}

#[test]
fn a_link_to_a_profile_stays_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (path, link) = (dir.path().join("p.hither"), dir.path().join("last.hither"));
    write(&common::profile(1, 5), &path).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let second = common::profile(2, 5);
    write(&second, &link).unwrap();
    assert!(link.is_symlink());
    assert_eq!(read(&path).unwrap(), second);
}

#[test]
fn files_are_never_writable_by_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.hither");
    let mut profile = common::profile(2, 5);
    profile.meta.online = Some(OnlineInfo::default());
    write(&profile, &path).unwrap();
    let mut all = vec![path.clone()];
    all.extend(fs::read_dir(&path).unwrap().map(|f| f.unwrap().path()));
    assert_eq!(all.len(), 19);
    for file in all {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o2, 0, "{file:?}: {mode:o}");
        assert_eq!(mode & 0o400, 0o400, "{file:?}: {mode:o}");
    }
}

#[test]
fn what_is_not_a_profile_is_left_alone() {
    fn check(make: impl Fn(&std::path::Path), expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.hither");
        make(&path);
        let before = fs::read_dir(dir.path()).unwrap().count();
        let error = write(&Profile::default(), &path).unwrap_err().to_string();
        let early = check_destination(&path).unwrap_err().to_string();
        assert_eq!(early, error);
        assert!(error.contains(expected), "{error:?} lacks {expected:?}");
        assert!(path.symlink_metadata().is_ok());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), before);
    }
    check(|p| fs::write(p, "text").unwrap(), "it is not a folder");
    check(
        |p| std::os::unix::fs::symlink("nowhere", p).unwrap(),
        "a broken link",
    );
    check(
        |p| {
            fs::create_dir(p).unwrap();
            fs::write(p.join("thesis.tex"), "").unwrap();
        },
        "no profile.json in it",
    );
    check(
        |p| {
            fs::create_dir(p).unwrap();
            fs::write(p.join("profile.json"), "{\"name\": 1}").unwrap();
        },
        "missing field `format`",
    );
    check(
        |p| {
            write(&Profile::default(), p).unwrap();
            fs::write(p.join("notes.txt"), "").unwrap();
        },
        "it also holds notes.txt",
    );
}

/// Profiles of before ranks were recorded.
#[test]
fn a_process_without_a_rank_is_read() {
    let old = r#"{"pid": 7, "parent": null, "executable": "app", "start": 1, "end": 2}"#;
    let process: Process = serde_json::from_str(old).expect("an old profile's process");
    assert_eq!((process.pid, process.rank), (7, None));
}

/// Beside the profile lie folders of writers: which of them the next one removes.
#[test]
fn what_a_killed_writer_left_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    let folder = |name: &str, inside: &[&str], is_old: bool| {
        let path = dir.path().join(name);
        fs::create_dir(&path).unwrap();
        let all = inside.iter().map(|inner| path.join(inner));
        let all: Vec<_> = all
            .inspect(|inner| fs::create_dir(inner).unwrap())
            .collect();
        for path in all.iter().chain([&path]).filter(|_| is_old) {
            fs::File::open(path).unwrap().set_modified(old).unwrap();
        }
    };
    folder(".hither-abcdef", &["profile"], true);
    folder(".hither-ABC123", &[], true);
    folder(".hither-atwork", &["profile"], false);
    folder(".hither-backup", &["profile", "old"], true);
    folder(".hither-others", &["mine"], true);
    folder(".hither-longer1", &[], true);
    folder("hither-abcdef", &[], true);
    write(&common::profile(3, 5), &dir.path().join("p.hither")).unwrap();
    let mut left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    left.sort();
    let expected = [
        ".hither-atwork",
        ".hither-backup",
        ".hither-longer1",
        ".hither-others",
        "hither-abcdef",
        "p.hither",
    ];
    assert_eq!(left, expected);
}
