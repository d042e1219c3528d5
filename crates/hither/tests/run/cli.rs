//! What is typed: bad input ends with status 2 and one sentence before anything is
//! started; what hither says never goes to stdout.
use super::*;
use serde_json::Value;

/// Communication of two threads.
const MATRIX: &str = "0,9\n9,0\n";
/// A machine that has more of everything than any that tests.
const HUGE: &str = "node:64 core:64 pu:1";

/// A folder with placements: `here.place.json` for this machine, `huge.place.json` for
/// none, `cut.place.json` of which half is missing.
fn placements() -> Place {
    let place = Place::new();
    place.write("m.csv", MATRIX);
    let map = format!("{HITHER} map --matrix m.csv");
    let line = format!(
        "{map} -o here && {map} -o huge --topology '{HUGE}' --policy scatter &&
         head -c 400 here.place.json > cut.place.json && mkdir app.hither"
    );
    let mapped = place.shell(&line);
    assert_eq!(status(&mapped), 0, "{}", text(&mapped.stderr));
    place
}

/// `hither run ARGS -- touch started` is refused in a sentence that names `what` and `fix`.
#[track_caller]
fn refused(place: &Place, args: &str, what: &str, fix: &str) {
    let output = place.shell(&format!("{HITHER} run {args} -- touch started"));
    let said = text(&output.stderr);
    assert_eq!(status(&output), 2, "{args}: {said}");
    assert!(output.stdout.is_empty(), "{args}: {}", text(&output.stdout));
    assert!(
        said.starts_with("hither: ") && said.lines().count() == 1,
        "{args}: {said}"
    );
    assert!(said.contains(what) && said.contains(fix), "{args}: {said}");
    assert!(
        !place.path("started").exists(),
        "{args} started the program"
    );
}

#[test]
fn policies_that_cannot_be() {
    let place = Place::new();
    let refused = |args, what, fix| refused(&place, args, what, fix);
    refused("", "say where", "--policy");
    refused("--policy nearest", "no policy nearest", "compact");
    refused("--policy compact,scatter", "contradict", "choose one");
    refused(
        "--policy local --policy interleave",
        "contradict",
        "choose one",
    );
    refused("--policy bind", "needs nodes", "bind:0");
    refused("--policy bind:x", "bind:x", "0-3");
    refused("--policy scatter:0", "takes no nodes", "leave out");
    refused("--policy bind:4095", "node 4095", "may name the nodes");
    refused(
        "--policy preferred:0,4095",
        "node 4095",
        "may name the nodes",
    );
    refused(
        "--policy compact --pus 999999",
        "999999",
        "this machine has",
    );
    refused("--policy local --skip 0", "--skip", "--policy");
}

#[test]
fn placements_that_do_not_fit() {
    let place = placements();
    let refused = |args, what, fix| refused(&place, args, what, fix);
    refused("-p none.place.json", "does not exist", "hither map");
    refused("-p app.hither", "a folder", "hither map app.hither");
    refused("-p m.csv", "not a placement", "hither map");
    refused("-p cut.place.json", "cut.place.json", "hither map");
    refused("-p huge.place.json", "uses PU", "hither map --matrix m.csv");
    refused(
        "-p here.place.json --policy compact",
        "places threads",
        "leave one",
    );
    // Its pages would fit, for it has none.
    let output = place.shell(&format!(
        "{HITHER} run -q -p huge.place.json --data-only -- true"
    ));
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
}

#[test]
fn a_mask_that_leaves_out_what_is_placed() {
    let place = placements();
    let allowed = "0-4095";
    let line = format!(
        "taskset -c {allowed} true && taskset -c 0 {HITHER} run --dry-run --policy compact -- true"
    );
    let output = place.shell(&line);
    assert_eq!(
        text(&output.stdout).matches("P#").count(),
        1,
        "{}",
        text(&output.stdout)
    );
    let all = place.shell("nproc --all");
    if text(&all.stdout).trim() == "1" {
        eprintln!("skipped: one processing unit");
        return;
    }
    let output = place.shell(&format!(
        "taskset -c 0 {HITHER} run -p here.place.json -- true"
    ));
    let said = text(&output.stderr);
    assert_eq!(status(&output), 2, "{said}");
    assert!(
        said.contains("not allowed here") && said.contains("taskset"),
        "{said}"
    );
}

#[test]
fn outcomes_need_a_place() {
    let place = Place::new();
    place.write("file", "");
    let refused = |args, what| refused(&place, args, what, "--export-json");
    refused(
        "--policy compact --export-json none/out",
        "there is no folder none",
    );
    refused("--policy compact --export-json .", "is a folder");
    refused(
        "--policy compact --export-json file/out",
        "there is no folder file",
    );
    assert_eq!(place.read("file"), "");
}

#[test]
fn contradicting_options_are_usage_errors() {
    let place = Place::new();
    for args in [
        "--policy compact --strict",
        "--policy compact --threads-only",
        "-p x --threads-only --data-only",
        "-p x --pus 0",
        "--policy compact --export-json out --dry-run",
        "--policy compact -q -v",
        "--pus 3-1",
        "--method strace --policy compact",
    ] {
        let output = place.shell(&format!("{HITHER} run {args} -- touch started"));
        assert_eq!(status(&output), 2, "{args}");
        assert!(
            output.stdout.is_empty() && !output.stderr.is_empty(),
            "{args}"
        );
    }
    assert!(!place.path("started").exists());
}

#[test]
fn programs_that_cannot_be() {
    let place = Place::new();
    place.write("text", "hello");
    let check = |program: &str, code| {
        let output = place.shell(&format!("{HITHER} run --policy compact -- {program}"));
        assert_eq!(status(&output), code, "{program}");
        assert!(output.stdout.is_empty(), "{program}");
        assert_eq!(
            text(&output.stderr).lines().count(),
            1,
            "{}",
            text(&output.stderr)
        );
    };
    check("./none", 127);
    check("none-of-this-name", 127);
    check("./text", 126);
    check(".", 126);
}

#[test]
fn dry_runs_start_nothing() {
    let place = placements();
    let dry = |args: &str| {
        let line = format!("{HITHER} run --dry-run {args} -- touch started");
        let output = place.shell(&line);
        assert_eq!(status(&output), 0, "{}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        assert!(!place.path("started").exists());
        text(&output.stdout)
    };
    let said = dry("-p here.place.json");
    for part in [
        "touch",
        "here.place.json",
        "L#0",
        "P#0",
        "N#0",
        "OMP_PROC_BIND=false",
        "pages are left",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = dry("-p here.place.json --data-only");
    assert!(
        said.contains("threads are left") && !said.contains("OMP_PROC"),
        "{said}"
    );
    let said = dry("--policy scatter,bind:0");
    assert!(
        said.contains("by scatter") && said.contains("bind to nodes 0"),
        "{said}"
    );
}

#[test]
fn outcomes_are_written_and_stdout_is_the_programs() {
    let place = Place::new();
    let run = |args: &str| {
        let line =
            format!("{HITHER} run --export-json out.json {args} -- sh -c 'echo out; exit 7'");
        let output = place.shell(&line);
        assert_eq!(status(&output), 7, "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "out\n");
        let outcome: Value = serde_json::from_str(&place.read("out.json")).expect("JSON");
        (outcome, text(&output.stderr))
    };
    let (outcome, said) = run("--policy compact");
    assert_eq!(outcome["end"]["status"], 7);
    assert_eq!(outcome["command"][2], "echo out; exit 7");
    assert_eq!(outcome["threads"][0]["name"], "sh");
    assert!(outcome["threads"][0]["asked"].is_u64(), "{outcome}");
    assert!(
        said.lines().all(|line| line.starts_with("hither: ")),
        "{said}"
    );
    assert!(
        said.contains("exit status 7") && said.contains("next: hither trace -- sh -c"),
        "{said}"
    );
    let (_, said) = run("--policy compact -q");
    assert_eq!(said, "");
    let (_, said) = run("--policy compact -v");
    assert!(said.contains("asked") && said.contains("mask"), "{said}");
    assert_eq!(place.shell("ls").stdout, b"out.json\n");
}

#[test]
fn an_outcome_can_go_to_a_descriptor() {
    let place = Place::new();
    let line =
        format!("{HITHER} run -q --policy compact --export-json /dev/fd/3 -- echo hi 3>&- 3>out");
    let output = place.shell(&format!("{line}; cat out >&2"));
    assert_eq!(text(&output.stdout), "hi\n");
    assert!(
        text(&output.stderr).contains("\"method\""),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn an_outcome_can_go_to_standard_output() {
    let place = Place::new();
    let line = format!("{HITHER} run -q --policy compact --export-json - -- echo hi");
    let output = place.shell(&line);
    let printed = text(&output.stdout);
    let outcome = printed.strip_prefix("hi\n").expect(&printed);
    let outcome: Value = serde_json::from_str(outcome).expect("JSON");
    assert_eq!(outcome["command"][1], "hi");
    assert_eq!(place.shell("ls").stdout, b"");
}

#[test]
fn other_pinners_are_named() {
    let place = Place::new();
    let said = |args: &str, environment: &str| {
        let line = format!("env {environment} {HITHER} run {args} -- printenv OMP_PROC_BIND");
        let output = place.shell(&line);
        (text(&output.stdout), text(&output.stderr))
    };
    let (bind, warned) = said(
        "--policy compact",
        "OMP_PROC_BIND=close KMP_AFFINITY=compact",
    );
    assert_eq!(bind, "false\n");
    for name in [
        "warning: OMP_PROC_BIND=close",
        "warning: KMP_AFFINITY=compact",
    ] {
        assert!(warned.contains(name), "{warned}");
    }
    let (bind, warned) = said("--policy local", "OMP_PROC_BIND=close");
    assert_eq!(bind, "close\n", "no thread is placed, so nothing fights");
    assert!(!warned.contains("warning: OMP"), "{warned}");
    let (_, warned) = said("-q --policy compact", "OMP_PROC_BIND=close");
    assert_eq!(warned, "");
}

#[test]
fn polling_pins_what_lives_long_enough() {
    let place = Place::new();
    let line = format!(
        "OMP_NUM_THREADS=2 {HITHER} run --method polling --policy compact --export-json out.json -- {}",
        workload("ondes")
    );
    let output = place.shell(&line);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("by polling"),
        "{}",
        text(&output.stderr)
    );
    assert!(text(&output.stderr).contains("pages were left to the system"));
    let outcome: Value = serde_json::from_str(&place.read("out.json")).expect("JSON");
    assert_eq!(outcome["method"], "polling");
    let threads = outcome["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), 2, "{outcome}");
    for thread in threads {
        assert_eq!(
            thread["allowed"].as_str(),
            thread["asked"]
                .as_u64()
                .map(|cpu| cpu.to_string())
                .as_deref()
        );
    }
    let check = |script: &str, code| {
        let line = format!("{HITHER} run -q --method polling --policy compact -- sh -c '{script}'");
        assert_eq!(status(&place.shell(&line)), code, "{script}");
    };
    check("exit 3", 3);
    check("kill -TERM $$", 143);
}

/// Looking at each of a thousand threads every 20 ms takes 40 % of a processor.
#[test]
fn polling_takes_little_of_threads_that_sleep_and_pins_those_that_come_late() {
    let place = Place::new();
    let script = "import threading, time\nstart = lambda s: threading.Thread(target=time.sleep, args=(s,)).start()\nfor _ in range(1000): start(6)\ntime.sleep(4)\nstart(2)\ntime.sleep(2)";
    place.write("sleep.py", script);
    let line = format!(
        "{HITHER} run -q --method polling --policy compact --export-json out.json -- python3 sleep.py"
    );
    let output = place.shell(&line);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let outcome: Value = serde_json::from_str(&place.read("out.json")).expect("JSON");
    let threads = outcome["threads"].as_array().expect("threads");
    assert!(threads.len() >= 1002, "{}", threads.len());
    let late = threads
        .iter()
        .max_by_key(|t| t["tid"].as_u64())
        .expect("threads");
    assert_eq!(late["allowed"], late["asked"].to_string(), "{late}");
    let [cpu, duration] =
        [&outcome["cost"]["cpu"], &outcome["duration"]].map(|n| n.as_u64().expect("ns"));
    assert!(cpu < 500_000_000 + duration / 40, "{cpu} of {duration} ns");
}

/// numactl and taskset are asked what they see.
#[test]
fn policies_reach_the_program() {
    let place = Place::new();
    let run = |policy: &str, command: &str| {
        let output = place.shell(&format!("{HITHER} run -q {policy} -- {command}"));
        assert_eq!(status(&output), 0, "{}", text(&output.stderr));
        text(&output.stdout)
    };
    for (policy, expected) in [
        ("interleave", "interleave:0"),
        ("bind:0", "bind:0"),
        ("preferred:0", "prefer:0"),
        ("local", "local"),
    ] {
        for method in ["ptrace", "polling"] {
            let said = run(
                &format!("--method {method} --policy {policy}"),
                "head -n 1 /proc/self/numa_maps",
            );
            assert!(said.contains(expected), "{policy} by {method}: {said}");
        }
    }
    // The second spelling is an older one.
    for option in ["--pus 0", "--cpus 0"] {
        let status = run(option, "cat /proc/self/status");
        assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
    }
}
