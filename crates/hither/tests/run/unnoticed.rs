//! Programs that look for what is different when they are followed.
use super::*;

#[test]
fn ends_by_every_signal() {
    check(&[built("notice"), "fatal"], 0);
}

#[test]
fn what_signals_say_of_themselves() {
    for program in ["notice", "notice-static"] {
        check(&[built(program), "siginfo"], 0);
        check(&[built(program), "sigwait"], 0);
    }
}

#[test]
fn stopped_and_continued_children() {
    check(&[built("notice"), "stops"], 0);
    check(&[built("abuse"), "group"], 0);
}

#[test]
fn timers_and_faults() {
    for program in ["abuse", "abuse-static"] {
        for name in ["alarm", "segv", "guard"] {
            check(&[built(program), name], 0);
        }
    }
}

#[test]
fn processing_units_seem_those_of_before() {
    check(&[built("notice"), "affinity"], 0);
    check(&["nproc"], 0);
    check(&["taskset", "-c", "1", "nproc"], 0);
    check(
        &[
            "python3",
            "-c",
            "import os; print(os.cpu_count(), os.sched_getaffinity(0))",
        ],
        0,
    );
    let place = Place::new();
    for environment in ["", "OMP_NUM_THREADS=3", "OMP_DYNAMIC=true"] {
        let line = format!("env {environment} {}", built("processors"));
        check_in(&place, &["sh", "-c", &line]);
    }
    // Also where those who may be used are fewer from the start.
    let line = ["taskset", "-c", "0"];
    let alone = run(place.command(&[&line[..], &[built("notice"), "affinity"]].concat()));
    let whole = [&line[..], &RUN, &[built("notice"), "affinity"]].concat();
    same(&whole, &alone, &run(place.marked(&whole)));
}

#[test]
fn who_pins_itself_gets_its_will() {
    check(&[built("notice"), "pins"], 0);
    let other =
        "taskset -cp 0 $$ > /dev/null; nproc; taskset -c 1 nproc; exec taskset -c 0,1 nproc";
    check(&["taskset", "-c", "1", "sh", "-c", other], 0);
    // And so do those that it makes: the kernel's own word, which nobody answers for.
    let inherited = "sh -c 'grep Cpus_allowed_list /proc/self/status; true'; true";
    check(&["taskset", "-c", "1", "sh", "-c", inherited], 0);
}

#[test]
fn threads_and_processes_in_all_ways() {
    for program in ["notice", "notice-static"] {
        check(&[built(program), "clones"], 0);
        check(&[built(program), "exec-thread"], 0);
        check(&[built(program), "headless"], 4);
    }
    for program in ["abuse", "abuse-static"] {
        check(&[built(program), "threads"], 0);
        check(&[built(program), "fork"], 0);
        check(&[built(program), "vfork"], 0);
        check(&[built(program), "exec"], 0);
        check(&[built(program), "names"], 0);
    }
}

#[test]
fn memory_in_all_ways() {
    for program in ["notice", "notice-static"] {
        check(&[built(program), "mappings"], 0);
        check(&[built(program), "registers"], 0);
        check(&[built(program), "filter"], 0);
    }
    for name in ["mmap", "mremap", "brk"] {
        check(&[built("abuse"), name], 0);
    }
}

#[test]
fn waiting_is_not_interrupted() {
    check(&[built("waits")], 0);
    check(&[built("waits"), "threads"], 0);
}

#[test]
fn a_crowd_of_threads_again_and_again() {
    check(&[built("notice"), "joins", "100"], 0);
}

#[test]
fn a_fork_bomb() {
    check(&[built("notice"), "bomb"], 0);
}

#[test]
fn ends_in_the_midst_of_everything() {
    for program in ["notice", "notice-static"] {
        check(&[built(program), "storm", "40"], 0);
    }
}

#[test]
fn ends_with_threads_running() {
    for (how, code) in [("spin", 7), ("abort", 134), ("kill", 137), ("term", 143)] {
        check(&[built("abuse"), how], code);
    }
}

/// Those that trace others themselves cannot do so when they are followed; that is
/// documented, and they are told as usual.
#[test]
fn tracing_inside_fails_as_where_it_is_forbidden() {
    let place = Place::new();
    let output = place.followed(&[built("notice"), "traces"]);
    // EPERM is 1; the program adds 10 to tell it from others.
    assert_eq!(text(&output.stdout), "0 stops, status 11\n");
    assert_eq!(status(&output), 0);
    place.nobody_left();
}
