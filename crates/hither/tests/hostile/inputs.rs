//! Files that are named by others, or stand in the place of others: pipes, devices, secrets.
use super::*;

/// A pipe that nobody writes to in the place of each file that is read.
#[test]
fn nothing_waits_at_a_pipe() {
    let place = Place::new();
    for folder in ["p.hither", "q.hither"] {
        fs::create_dir(place.path(folder)).expect("mkdir");
    }
    let pipes =
        "mkfifo pipe pipe.place.json pipe.sim.json p.hither/profile.json page.html pipe.xml";
    let traced = format!("{HITHER} trace -q -o q -- true && rm q.hither/threads.parquet");
    let made = place.shell(&format!(
        "{pipes} && {traced} && mkfifo q.hither/threads.parquet"
    ));
    assert_eq!(status(&made), 0, "{}", text(&made.stderr));
    let lines = [
        "stat p.hither",
        "stat q.hither",
        "report --text p.hither",
        "report -o page.html q.hither",
        "topo pipe.xml",
        "stat --topology pipe.xml q.hither",
        "run -p pipe.place.json -- true",
        "map --format likwid-pin pipe.place.json",
        "report --text -p pipe.place.json q.hither",
        "report --text --prediction pipe.sim.json q.hither",
    ];
    for line in lines {
        let output = place.shell(&format!("timeout 60 {HITHER} {line}"));
        assert_eq!(status(&output), 2, "{line}: {}", text(&output.stderr));
    }
}

/// A program whose debug information says that its source is `source`.
fn program_of(place: &Place, source: &Path, name: &str) {
    // Pages that it touches for the first time while it is watched.
    let code = "#include <stdio.h>\n#include <unistd.h>\nint table[1 << 24];\nint main(void) {\n  \
        for (int n = 0; n < 4000; n++) {\n    table[n << 12] = 1;\n    usleep(2000);\n  }\n}\n";
    let code = format!("#line 1 \"{}\"\n{code}", source.display());
    fs::write(place.path("code.c"), code).expect("write");
    let built = place.shell(&format!("gcc -g -O1 -o {name} code.c"));
    assert!(built.status.success(), "{}", text(&built.stderr));
}

/// Joins a program of the stranger for two seconds; the lines of source in the profile.
fn joined(place: &Place, name: &str) -> Vec<String> {
    let line = format!(
        "setpriv --reuid {STRANGER} --regid {STRANGER} --clear-groups ./{name} & program=$!; sleep 0.3; \
         timeout --signal INT 2 {HITHER} auto -q -o joined --pid $program --yes; done=$?; \
         kill $program; wait; exit $done"
    );
    let start = Instant::now();
    let output = place.shell(&line);
    let told = text(&output.stderr);
    assert!(start.elapsed().as_secs() < 120, "{told}");
    assert!(place.path("joined.hither").exists(), "{told}");
    let profile = hither_profile::read(&place.path("joined.hither")).expect("a profile");
    let quoted = profile.source_text.into_iter().map(|line| line.text);
    quoted.collect()
}

/// Root joins the program of a user who may not read what its debug information names, even
/// where only a folder on the way is closed.
#[test]
fn root_quotes_no_source_that_the_programs_user_may_not_read() {
    let Some(place) = place_of_two() else {
        return;
    };
    let lines = "table of secrets\n".repeat(9);
    fs::write(place.path("secret/source.c"), &lines).expect("write");
    set_mode(&place.path("secret/source.c"), 0o644);
    fs::write(place.path("open.c"), &lines).expect("write");
    let aged = place.shell("touch -d '1 day ago' secret/source.c open.c");
    assert_eq!(status(&aged), 0);
    program_of(&place, &place.path("open.c"), "open");
    let quoted = joined(&place, "open");
    assert!(quoted.iter().any(|l| l == "table of secrets"), "{quoted:?}");
    program_of(&place, &place.path("secret/source.c"), "closed");
    assert_eq!(joined(&place, "closed"), Vec::<String>::new());
    // A pipe in the place of its source, or the console.
    let made = place.shell("mkfifo -m 666 pipe.c");
    assert_eq!(status(&made), 0);
    for name in ["pipe.c", "/dev/tty"] {
        program_of(&place, &place.0.path().join(name), "odd");
        assert_eq!(joined(&place, "odd"), Vec::<String>::new());
    }
}

/// Whoever sets root's environment does not run as root by that. The program gets what was meant for it.
#[test]
fn root_loads_no_plugin_that_its_environment_names() {
    let place = Place::new();
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root withholds it");
        return;
    }
    let made = place.shell(
        "mkdir plugins && printf '#include <stdio.h>\n__attribute__((constructor)) static void f(void) { fclose(fopen(\"loaded\", \"w\")); }\nint hwloc_evil_component;' > evil.c \
         && gcc -shared -fPIC -o plugins/hwloc_evil.so evil.c",
    );
    assert_eq!(status(&made), 0, "{}", text(&made.stderr));
    let with = "HWLOC_PLUGINS_PATH=$PWD/plugins";
    for line in [
        format!("{with} {HITHER} topo"),
        format!("{with} {HITHER} run --pus 0 -- true"),
        format!("{with} {HITHER} trace -q -o p -- true"),
    ] {
        let output = place.shell(&line);
        assert_eq!(status(&output), 0, "{line}: {}", text(&output.stderr));
        assert!(!place.path("loaded").exists(), "{line}");
    }
    for verb in ["run --pus 0 --", "trace -q -o q --"] {
        let output = place.shell(&format!(
            "{with} {HITHER} {verb} printenv HWLOC_PLUGINS_PATH"
        ));
        assert!(text(&output.stdout).ends_with("/plugins\n"), "{verb}");
    }
}
