//! Programs that are traced: one that writes at random into the memory that it shares with hither, while
//! it runs, one that does so with what hither's agent in it works with, and one whose symbols and debug information are anything.
use super::*;
use object::{Object, ObjectSection};
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;

/// Where the program of a source file of this folder is.
fn build(name: &str) -> PathBuf {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let source = folder.join(name).with_extension("c");
    let mut compiler = Command::new("gcc");
    let line = ["-g", "-O1", "-pthread", "-D_GNU_SOURCE", "-o"];
    let done = compiler.args(line).args([&built, &source]).status();
    assert!(done.expect("gcc").success());
    built
}

/// Built once.
fn scribble() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("scribble"))
}

/// What it does to itself is its own affair: it is killed after two seconds, and hither is to end then.
#[test]
fn shared_memory() {
    let program = scribble();
    fuzz("segment", |trial| {
        let seed = trial.mutator.below(1 << 30).to_string();
        let mode = trial.mutator.below(3).to_string();
        let milliseconds = trial.mutator.pick(&["20", "100", "300"]).to_string();
        let program = program.to_str().expect("a path");
        const OPTIONS: [&[&str]; 4] = [&[], &["--sample", "0.3"], &["--bursts"], &["--oracle"]];
        let options = trial.mutator.pick(&OPTIONS);
        let mut line = vec!["trace", "-q", "-o", "p"];
        line.extend(*options);
        line.extend(["--", program]);
        line.extend([&*seed, &*milliseconds, &*mode]);
        let shown = line.join(" ");
        let told = trial.check_trace(&line);
        let told = told.and_then(|()| trial.check(&["stat", "p.hither"]));
        told.map_err(|why| format!("hither {shown}: {why}"))
    });
}

/// The program writes what it likes into the memory, reports and orders of hither's agent in it.
#[test]
fn agent() {
    let program = build("mailbox");
    fuzz("agent", |trial| {
        let seed = trial.mutator.below(1 << 30).to_string();
        let mode = trial.mutator.below(4).to_string();
        let milliseconds = trial.mutator.pick(&["50", "200", "400"]).to_string();
        let program = program.to_str().expect("a path");
        let mut line = vec![
            "auto",
            "-q",
            "-o",
            "p",
            "--budget",
            "50%",
            "--sampler",
            "move",
        ];
        line.extend(["--", program, &*seed, &*milliseconds, &*mode]);
        let shown = line.join(" ");
        let told = trial.check_trace(&line);
        let told = told.and_then(|()| trial.check(&["stat", "p.hither"]));
        told.map_err(|why| format!("hither {shown}: {why}"))
    });
}

/// Of its file only what is not loaded is changed, so that it runs as before.
#[test]
fn debug_information() {
    let program = fs::read(scribble()).expect("a program");
    let elf = object::File::parse(&*program).expect("ELF");
    let ranges: Vec<_> = elf
        .sections()
        .filter(|section| {
            let name = section.name().unwrap_or_default();
            name.starts_with(".debug_") || [".symtab", ".strtab"].contains(&name)
        })
        .filter_map(|section| section.file_range())
        .collect();
    fuzz("debug-information", |trial| {
        let mut bytes = program.clone();
        for _ in 0..1 + trial.mutator.below(3) {
            let (offset, size) = *trial.mutator.pick(&ranges);
            let part = offset as usize..(offset + size) as usize;
            let changed = trial.mutator.mutate(&bytes[part.clone()]);
            for (to, from) in bytes[part].iter_mut().zip(changed) {
                *to = from;
            }
        }
        trial.write("program", &bytes);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(trial.path("program"), mode).expect("chmod");
        let told =
            trial.check_trace(&["trace", "-q", "-o", "p", "--", "./program", "1", "20", "3"]);
        told.and_then(|()| trial.check_names())
            .and_then(|()| trial.check(&["report", "--text", "p.hither"]))
    });
}
