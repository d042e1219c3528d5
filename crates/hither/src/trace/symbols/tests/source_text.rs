//! Which lines of source a profile keeps.
use super::Workshop;
use crate::trace::symbols::{keep_source_text, ProgramSymbols};
use hither_profile::{FirstTouchLine, Object, Process, Profile, ProfileMeta, SourceSite};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A structure declared at `line` and used as often as `accesses`.
fn object(file: &Path, line: u32, accesses: u64) -> Object {
    Object {
        file: file.display().to_string(),
        line,
        reads: accesses,
        ..Object::default()
    }
}

fn kept(profile: &mut Profile) -> Vec<(u32, String)> {
    keep_source_text(profile, &mut ProgramSymbols::new());
    let rows = profile.source_text.iter();
    rows.map(|r| (r.line, r.text.clone())).collect()
}

/// Lines `1` to `n`.
fn numbered(n: u32) -> String {
    (1..=n).map(|line| format!("{line}\n")).collect()
}

fn lines(kept: &[(u32, String)]) -> Vec<u32> {
    kept.iter().map(|(line, _)| *line).collect()
}

#[test]
fn two_lines_on_either_side_of_each_place() {
    let shop = Workshop::new();
    let file = shop.write("a.c", &numbered(100));
    let name = file.display().to_string();
    let mut profile = Profile {
        objects: vec![object(&file, 1, 10), object(&file, 101, 10)],
        sites: vec![SourceSite {
            file: name.clone(),
            line: 50,
            reads: 1,
            ..SourceSite::default()
        }],
        first_touch_lines: vec![FirstTouchLine {
            file: name.clone(),
            line: 52,
            ..FirstTouchLine::default()
        }],
        ..Profile::default()
    };
    let kept = kept(&mut profile);
    let expected = [1, 2, 3, 48, 49, 50, 51, 52, 53, 54];
    assert_eq!(lines(&kept), expected, "line 101 does not exist");
    assert_eq!(kept[4].1, "49");
    assert!(profile.source_text.iter().all(|r| r.file == name));
}

#[test]
fn long_lines_are_cut_and_tabs_are_blanks() {
    let shop = Workshop::new();
    let long = "\u{fc}".repeat(1000);
    let file = shop.write("a.c", &format!("\tx;\n{long}\n"));
    let mut profile = Profile {
        objects: vec![object(&file, 1, 1)],
        ..Profile::default()
    };
    let kept = kept(&mut profile);
    assert_eq!(kept[0].1, "    x;");
    assert_eq!(kept[1].1, "\u{fc}".repeat(160));
}

#[test]
fn places_with_most_accesses_come_first() {
    let shop = Workshop::new();
    let wide = format!("{}\n", "x".repeat(150)).repeat(5000);
    let file = shop.write("a.c", &wide);
    let objects = (0..900u32).map(|n| object(&file, 5 * n + 3, u64::from(n) + 1));
    let mut profile = Profile {
        objects: objects.collect(),
        ..Profile::default()
    };
    let kept = kept(&mut profile);
    let bytes: usize = kept.iter().map(|(_, text)| text.len()).sum();
    assert!((60 << 10..=64 << 10).contains(&bytes), "{bytes}");
    assert_eq!(kept.last().map(|k| k.0), Some(5 * 899 + 5));
    assert!(kept[0].0 > 4000, "{}", kept[0].0);
}

#[test]
fn what_is_no_source_is_left_out() {
    let shop = Workshop::new();
    let pipe = shop.path("pipe.c");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let huge = shop.path("huge.c");
    let file = std::fs::File::create(&huge).expect("can create");
    file.set_len(1 << 33).expect("a sparse file");
    let binary = shop.path("binary.c");
    std::fs::write(&binary, [0xff, 0xfe, 0, b'\n', 0x1b]).expect("can write");
    let folder = shop.path("folder.c");
    std::fs::create_dir(&folder).expect("can make a folder");
    let names = ["/dev/zero", "/dev/stdin", "/nowhere/a.c", "relative.c", ""];
    let mut files: Vec<_> = names.iter().map(|n| Path::new(n).to_owned()).collect();
    files.extend([pipe, huge, folder]);
    let mut profile = Profile {
        objects: files.iter().map(|f| object(f, 1, 1)).collect(),
        ..Profile::default()
    };
    profile.objects.push(object(&binary, u32::MAX, 1));
    assert_eq!(kept(&mut profile), []);
    profile.objects.push(object(&binary, 2, 1));
    assert_eq!(lines(&kept(&mut profile)), [1, 2]);
}

#[test]
fn what_changed_since_the_build_is_left_out() {
    let shop = Workshop::new();
    let [program, same, changed] = ["app", "same.c", "changed.c"].map(|f| shop.write(f, "x\n"));
    let built = SystemTime::UNIX_EPOCH + Duration::from_secs(60);
    for file in [&program, &same] {
        let file = std::fs::File::options().append(true).open(file);
        file.expect("it exists")
            .set_modified(built)
            .expect("can set times");
    }
    let mut profile = Profile {
        meta: ProfileMeta {
            processes: vec![Process {
                executable: program.display().to_string(),
                ..Process::default()
            }],
            ..ProfileMeta::default()
        },
        objects: vec![object(&same, 1, 1), object(&changed, 1, 1)],
        ..Profile::default()
    };
    // Newer than the program as well, and not the user's: not a word of it.
    let header = Path::new("/usr/include/stdio.h");
    assert!(header.metadata().expect("a header").is_file());
    profile.objects.push(object(header, 1, 1));
    assert_eq!(kept(&mut profile).len(), 1);
    assert_eq!(profile.source_text[0].file, same.display().to_string());
    let limit = format!("{} changed after the program was built", changed.display());
    let limits = &profile.meta.limits;
    assert!(
        limits.len() == 1 && limits[0].starts_with(&limit),
        "{limits:?}"
    );
}
