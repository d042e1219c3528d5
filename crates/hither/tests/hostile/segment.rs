//! Programs that attack the memory that they share with hither.
use super::*;

/// It cuts, grows and fills with holes whatever its parent has open.
#[test]
fn a_program_that_cuts_the_segment_harms_only_itself() {
    let place = Place::new();
    let program = "#!/bin/sh\nfor file in /proc/$PPID/fd/*; do\n  case $(readlink $file) in\n  */memfd:hither*)\n    \
        truncate -s 0 $file && echo cut\n    truncate -s 4096 $file && echo cut\n    \
        truncate -s +4096 $file && echo grown;;\n  esac\ndone 2>/dev/null\necho tried\n";
    fs::write(place.path("cut"), program).expect("write");
    set_mode(&place.path("cut"), 0o755);
    let traced = place.shell(&format!("{HITHER} trace -q -o p -- ./cut"));
    assert_eq!(text(&traced.stdout), "tried\n", "{}", text(&traced.stderr));
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    let profile = hither_profile::read(&place.path("p.hither")).expect("a profile");
    assert!(profile.threads.iter().any(|thread| thread.accesses() > 0));
}

/// It has hither work long after its own end; whoever waits can end that.
#[test]
fn a_signal_ends_hither_that_works_long_after_the_program() {
    let place = Place::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/slow.c");
    let built = place.shell(&format!("gcc -O1 -o slow {source}"));
    assert!(built.status.success(), "{}", text(&built.stderr));
    let line = [HITHER, "trace", "-q", "-o", "p", "--", "./slow", "60000"];
    let mut hither = Running::start(place.command(&line));
    let pid = hither.child.id();
    // Its only child is the program.
    let children = format!("/proc/{pid}/task/{pid}/children");
    let count = || fs::read_to_string(&children).map_or(0, |list| list.split(' ').count() - 1);
    wait_for("program", || count() > 0);
    wait_for("end of the program", || count() == 0);
    std::thread::sleep(Duration::from_millis(2500));
    if hither.child.try_wait().expect("wait").is_some() {
        println!("skipped: this machine names sixty thousand mappings in 2 s");
        return;
    }
    let asked = Instant::now();
    hither.signal(Signal::SIGINT);
    let output = hither.end();
    println!("ended {:?} after it was asked to", asked.elapsed());
    assert_eq!(status(&output), 128 + 2, "{}", text(&output.stderr));
    assert!(asked.elapsed() < Duration::from_secs(5));
    assert!(!place.path("p.hither").exists());
}

/// Nothing that is bound late can be bound to something else, and what overruns an array ends the program.
#[test]
fn what_runs_in_traced_programs_is_linked_and_compiled_with_guards() {
    let place = Place::new();
    let library = Path::new(HITHER).ancestors().nth(2).expect("target");
    let library = library.join("lib/hither/libhither_tracer.so");
    for file in [HITHER, library.to_str().expect("a path")] {
        let output = place.shell(&format!("readelf -dlW {file}"));
        let said = text(&output.stdout);
        assert!(
            said.contains("BIND_NOW") && said.contains("GNU_RELRO"),
            "{file}: {said}"
        );
        assert!(
            said.contains("GNU_STACK") && !said.contains("RWE"),
            "{file}: {said}"
        );
    }
    let code = place.shell(&format!(
        "objdump -d --no-show-raw-insn {}",
        library.display()
    ));
    let code = text(&code.stdout);
    assert!(
        code.contains("<__stack_chk_guard>"),
        "no function is guarded"
    );
    assert!(!code.contains("%fs:0x28"), "a guard that is the program's");
}
