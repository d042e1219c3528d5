//! A full disk: keep what fits, say what does not, leave no halves.
mod common;
use hither_profile::bursts::{BurstPiece, BurstTrace};
use hither_profile::*;
use hither_profile::{BurstWriter, PieceHeader};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const DIR: &str = "HITHER_TEST_FULL_DISK";
/// Files of a profile: its tables and `profile.json`.
const FILES: u32 = 18;
/// What one takes at most, but that of `pages`.
const KIB_PER_SMALL_FILE: u32 = 8;

/// A profile whose `pages` table takes about 800 KB, everything else little.
fn profile() -> Profile {
    let mut p = common::profile(3, 20);
    let last = p.pages.rows().last().unwrap();
    let mut r = common::Random(4);
    p.pages.extend((0..40_000u32).map(|_| PageUse {
        reads: r.below(1 << 40),
        writes: r.below(1 << 40),
        ..last
    }));
    p
}

/// Runs `child` of this file in a shell after `setup`; false if the setup is impossible.
fn run(setup: &str, unshare: &[&str], child: &str, dir: &Path) -> bool {
    let script = format!("{setup} || exit 99; exec \"$0\" --exact {child} --nocapture");
    let exe = std::env::current_exe().unwrap();
    let mut command = Command::new(unshare.first().unwrap_or(&"env"));
    command
        .args(unshare.iter().skip(1))
        .args(["sh", "-c", &script])
        .arg(exe);
    let out = command.env(DIR, dir).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    match out.status.code() {
        Some(0) => {
            assert!(text.contains("1 passed"), "{text}");
            true
        }
        Some(99 | 1) if !text.contains("running 1 test") => false,
        _ => panic!(
            "{:?} {text} {}",
            out.status,
            String::from_utf8_lossy(&out.stderr)
        ),
    }
}

/// Only in a child of this test does a directory come by the environment.
fn child_dir() -> Option<PathBuf> {
    std::env::var_os(DIR).map(PathBuf::from)
}

fn on_small_disk(kib: u32, child: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size={kib}k hither \"${DIR}\"");
    let ways: [&[&str]; 2] = [&["unshare", "-m"], &["unshare", "-rm"]];
    if !ways.iter().any(|way| run(&mount, way, child, dir.path())) {
        // Not by eprintln!, which the test harness hides.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED {child}: may not mount a small disk here (neither root nor user namespaces)"
        );
    }
}

#[test]
fn a_full_disk_keeps_what_fits() {
    on_small_disk(FILES * KIB_PER_SMALL_FILE, "child_keeps_what_fits");
}

#[test]
fn a_disk_too_small_for_anything_is_left_clean() {
    on_small_disk(4, "child_leaves_nothing");
}

/// The same by a limit on the size of a file, which every user may set.
#[test]
fn a_file_size_limit_keeps_what_fits() {
    let dir = tempfile::tempdir().unwrap();
    assert!(run(
        "trap '' XFSZ && ulimit -f 64",
        &[],
        "child_keeps_what_fits",
        dir.path()
    ));
}

#[test]
fn checkpoints_on_a_full_disk() {
    on_small_disk(1200, "child_keeps_the_checkpoint_that_fits");
    on_small_disk(1200, "child_gives_up_the_checkpoint");
}

/// The next one does not fit beside it.
#[test]
fn child_keeps_the_checkpoint_that_fits() {
    let Some(dir) = child_dir() else { return };
    let path = dir.join("p.hither");
    let first = profile();
    assert!(CheckpointFolder::create(&path)
        .unwrap()
        .write(&first)
        .unwrap());
    let next = CheckpointFolder::create(&path).unwrap();
    assert!(!next.write(&profile()).unwrap());
    assert_eq!(read(&path).unwrap(), first);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}

/// The profile of the whole run fits once it is gone.
#[test]
fn child_gives_up_the_checkpoint() {
    let Some(dir) = child_dir() else { return };
    let path = dir.join("p.hither");
    let folder = CheckpointFolder::create(&path).unwrap();
    assert!(folder.write(&profile()).unwrap());
    let mut whole = profile();
    whole.meta.duration += 1;
    let written = write_after_checkpoint(&mut whole, &path, None).unwrap();
    assert_eq!(written.missing, Vec::<String>::new());
    assert_eq!(read(&path).unwrap(), whole);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}

#[test]
fn child_keeps_what_fits() {
    let Some(dir) = child_dir() else { return };
    let path = dir.join("p.hither");
    let mut p = profile();
    let written = write(&p, &path).unwrap();
    assert_eq!(written.missing.len(), 1, "{written:?}");
    assert!(written.missing[0].starts_with("pages ("), "{written:?}");
    assert!(!path.join("pages.parquet").exists());
    let found = read(&path).unwrap();
    let limit = found.meta.limits.last().unwrap();
    assert!(
        limit.starts_with("the table pages could not be written: "),
        "{limit}"
    );
    p.meta.limits.push(limit.clone());
    p.pages.clear();
    assert_eq!(found, p);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    // Replacing fails too, and keeps no less.
    assert_eq!(write(&profile(), &path).unwrap().missing, written.missing);
}

#[test]
fn bursts_on_a_full_disk() {
    on_small_disk(128, "child_gives_up_bursts");
    on_small_disk(128, "child_cuts_bursts");
}

#[test]
fn bursts_as_far_as_files_may_grow() {
    for child in ["child_keeps_some_bursts", "child_cannot_end_bursts"] {
        let dir = tempfile::tempdir().unwrap();
        let setup = "trap '' XFSZ && ulimit -f 64";
        assert!(run(setup, &[], child, dir.path()));
    }
}

/// Pieces of so many accesses and `bytes` bytes of code each, which nobody decodes, until no more
/// can be written.
fn pieces(writer: &mut BurstWriter, accesses: u64, bytes: usize) -> u64 {
    for sequence in 0.. {
        let head = PieceHeader {
            window: 1,
            sequence,
            piece: BurstPiece {
                accesses,
                ..BurstPiece::default()
            },
            ..PieceHeader::default()
        };
        writer.append_piece(&head, &vec![0; bytes]);
        if writer.failed().is_some() {
            return sequence.into();
        }
    }
    0
}

/// The tables have the room of the last pieces.
#[test]
fn child_cuts_bursts() {
    let Some(dir) = child_dir() else { return };
    let path = dir.join("p.hither");
    let mut profile = common::profile(3, 20);
    let mut writer = BurstWriter::create(&path).unwrap();
    let whole = pieces(&mut writer, 1, 1000);
    let written = write_with_bursts(&mut profile, &path, writer).unwrap();
    assert_eq!(written.missing, Vec::<String>::new());
    let meta = read(&path).unwrap().meta;
    let last = meta.limits.last().unwrap();
    assert!(last.starts_with("The last "), "{last}");
    let bursts = BurstTrace::open(&path).unwrap().expect("bursts");
    let info = meta.bursts.expect("bursts");
    assert_eq!((info.windows, info.accesses), (1, bursts.accesses()));
    assert!((1..whole).contains(&info.accesses), "{info:?}");
}

/// What would be left of them holds no access.
#[test]
fn child_gives_up_bursts() {
    let Some(dir) = child_dir() else { return };
    let path = dir.join("p.hither");
    let mut profile = common::profile(3, 20);
    let mut writer = BurstWriter::create(&path).unwrap();
    assert!(pieces(&mut writer, 0, 1000) > 50);
    let written = write_with_bursts(&mut profile, &path, writer).unwrap();
    assert_eq!(written.missing, Vec::<String>::new());
    let limits = read(&path).unwrap().meta.limits;
    assert!(limits.iter().any(|l| l.contains("given up")), "{limits:?}");
    assert!(BurstTrace::open(&path).unwrap().is_none());
}

#[test]
fn child_keeps_some_bursts() {
    let Some(dir) = child_dir() else { return };
    let path = dir.join("p.hither");
    let mut writer = BurstWriter::create(&path).unwrap();
    let whole = pieces(&mut writer, 1, 1000);
    let written = write_with_bursts(&mut Profile::default(), &path, writer).unwrap();
    assert_eq!(written.missing, Vec::<String>::new());
    let bursts = BurstTrace::open(&path).unwrap().expect("bursts");
    assert!(bursts.broken().is_some_and(|b| b.contains("ends early")));
    assert_eq!(bursts.windows()[0].pieces.len() as u64, whole);
}

/// All pieces fit, and the file's end does not: nobody else knows of that.
#[test]
fn child_cannot_end_bursts() {
    let Some(dir) = child_dir() else { return };
    let limit = {
        let mut writer = BurstWriter::create(&dir.join("other.hither")).unwrap();
        pieces(&mut writer, 0, 0);
        writer.bytes() / 1024 * 1024 + 1024
    };
    let path = dir.join("p.hither");
    let mut writer = BurstWriter::create(&path).unwrap();
    let head = PieceHeader {
        window: 1,
        ..PieceHeader::default()
    };
    let empty = {
        let before = writer.bytes();
        writer.append_piece(&head, &[]);
        writer.bytes() - before
    };
    let next = PieceHeader {
        sequence: 1,
        ..head
    };
    let room = limit - writer.bytes() - empty - 4;
    writer.append_piece(&next, &vec![0; room as usize]);
    assert_eq!(writer.failed(), None);
    write_with_bursts(&mut Profile::default(), &path, writer).unwrap();
    let limits = read(&path).unwrap().meta.limits;
    assert!(limits.iter().any(|l| l.contains("end early")), "{limits:?}");
}

#[test]
fn child_leaves_nothing() {
    let Some(dir) = child_dir() else { return };
    let error = write(&profile(), &dir.join("p.hither"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("p.hither/profile.json: No space left on device"),
        "{error}"
    );
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}
