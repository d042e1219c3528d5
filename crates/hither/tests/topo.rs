//! `hither topo`: what it draws, what programs can read of it, and what it says about bad
//! input.
use assert_cmd::Command;
use serde_json::Value;

fn topo(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("hither").unwrap();
    command.arg("topo").args(args);
    command.env("LC_ALL", "C.UTF-8").env("COLUMNS", "100");
    command
}

fn shown(args: &[&str]) -> String {
    let output = topo(args).assert().success().get_output().clone();
    assert!(output.stderr.is_empty());
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&shown(&[args, &["--json"]].concat())).unwrap()
}

fn names() -> Vec<String> {
    let list = json(&["--list"]);
    let machines = list.as_array().unwrap().iter();
    machines
        .map(|m| m["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn parts_that_look_alike_are_drawn_once() {
    let text = shown(&["--topology", "xeon-x7550x4"]);
    let tree = "\
Machine
├─ Package 0, Node 0 P#0 (32 GiB), L3 0 (18 MiB)
│  ├─ L2 0 (256 KiB), L1 0 (32 KiB), Core 0, PU 0-1 P#0,32
│  └─ 7 more alike: L2 1-7, L1 1-7, Core 1-7, PU 2-15 P#1-7,33-39
└─ 3 more alike: Package 1-3, Node 1-3 P#1-3, L3 1-3, PU 16-63 P#8-31,40-63
";
    assert!(text.contains(tree), "{text}");
    assert!(text.starts_with("4 x Intel Xeon X7550"), "{text}");
    assert!(text.ends_with("next: hither map PROFILE --topology xeon-x7550x4\n"));
}

/// The README and `hither topo --list` promise `hither topo MACHINE`.
#[test]
fn a_machine_without_an_option_is_the_one_of_topology() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("machine.xml");
    std::fs::write(&file, shown(&["xeon-x7550x4", "--xml"])).unwrap();
    let file = file.to_str().unwrap();
    for machine in ["xeon-x7550x4", "node:4 core:8 pu:2", file] {
        let option = ["--topology", machine];
        assert_eq!(shown(&[machine]), shown(&option), "{machine}");
        assert_eq!(json(&[machine]), json(&option), "{machine}");
    }
    let part = ["zen5-cxl", "--pus", "0,1,96"];
    assert_eq!(shown(&part), shown(&[&["--topology"], &part[..]].concat()));
    let drawn = shown(&["epyc-9654x2-nps4"]);
    assert!(drawn.ends_with("next: hither map PROFILE --topology epyc-9654x2-nps4\n"));
}

#[test]
fn all_shows_every_part() {
    let text = shown(&[
        "--topology",
        "pack:2 [numa(memory=1024)] core:2 pu:2",
        "--all",
    ]);
    let tree = "\
Machine
├─ Package 0, Node 0 P#0 (1 KiB)
│  ├─ Core 0, PU 0-1 P#0-1
│  └─ Core 1, PU 2-3 P#2-3
└─ Package 1, Node 1 P#1 (1 KiB)
   ├─ Core 2, PU 4-5 P#4-5
   └─ Core 3, PU 6-7 P#6-7
";
    assert!(text.contains(tree), "{text}");
    assert!(text
        .contains("next: hither map PROFILE --topology 'pack:2 [numa(memory=1024)] core:2 pu:2'"));
}

#[test]
fn a_part_of_a_machine_is_drawn_without_the_rest() {
    let text = shown(&["--topology", "zen5-cxl", "--pus", "0,1,96"]);
    let tree = "\
Machine
├─ Node 2 P#2 (256 GiB), no PUs
├─ Package 0, Node 0 P#0 (128 GiB), L3 0 (32 MiB)
│  ├─ L2 0 (1 MiB), L1 0 (48 KiB), Core 0, PU 0 P#0
│  └─ L2 1 (1 MiB), L1 1 (48 KiB), Core 1, PU 2 P#1
└─ Package 1, Node 1 P#1 (128 GiB), L3 12 (32 MiB), L2 96 (1 MiB), L1 96 (48 KiB), Core 96, PU 192
     P#96
";
    assert!(text.contains(tree), "{text}");
    assert!(
        text.contains("3 PUs (of 384), 3 cores, 3 NUMA nodes"),
        "{text}"
    );
    assert!(text.contains("  Node 2     255  255  10\n"), "{text}");
    assert!(text.contains("--topology zen5-cxl --pus 0-1,96\n") || text.contains("--pus 0,1,96\n"));
}

#[test]
fn plain_terminals_get_plain_characters() {
    let output = topo(&["--topology", "core:3 pu:1"])
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.is_ascii(), "{text}");
    assert!(
        text.contains("|- Core 0, PU 0 P#0\n`- 2 more alike: Core 1-2, PU 1-2 P#1-2\n"),
        "{text}"
    );
}

#[test]
fn hybrid_machines_show_their_kinds() {
    let text = shown(&["--topology", "core-i9-13900k"]);
    assert!(
        text.contains("kind 1: fast (IntelCore), 16 PUs\nkind 0: efficient (IntelAtom), 16 PUs\n"),
        "{text}"
    );
    let value = json(&["--topology", "core-i9-13900k", "--cpu-kind", "prefer-fast"]);
    assert_eq!(value["units"].as_array().unwrap().len(), 16);
}

#[test]
fn every_named_machine_is_listed_drawn_and_exported() {
    let list = shown(&["--list"]);
    for name in names() {
        assert!(list.contains(&name), "{name}");
        let value = json(&["--topology", &name]);
        let units = value["units"].as_array().unwrap();
        let nodes = value["nodes"].as_array().unwrap();
        assert!(!units.is_empty() && !nodes.is_empty(), "{name}");
        assert!(!value["source"].as_str().unwrap().is_empty(), "{name}");
        assert!(shown(&["--topology", &name]).contains("Machine"), "{name}");
        same_as_exported(&name, &value);
    }
}

/// What is exported as XML reads as the same machine, here and in hwloc's own tool.
fn same_as_exported(name: &str, value: &Value) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("machine.xml");
    std::fs::write(&file, shown(&["--topology", name, "--xml"])).unwrap();
    let file = file.to_str().unwrap();
    let again = json(&["--topology", file]);
    for part in ["units", "nodes", "tree", "kinds"] {
        assert_eq!(again[part], value[part], "{name} {part}");
    }
    assert_eq!(
        again["latencies"]["values"], value["latencies"]["values"],
        "{name}"
    );
    let calc = Command::new("hwloc-calc")
        .args(["-i", file, "-N", "pu", "all"])
        .output();
    if let Ok(output) = calc {
        let units = value["units"].as_array().unwrap().len();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            units.to_string(),
            "{name}"
        );
    }
}

#[test]
fn a_restricted_machine_can_be_exported() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("part.xml");
    let xml = shown(&["--topology", "xeon-e5-2650x2", "--pus", "0,1,17", "--xml"]);
    std::fs::write(&file, xml).unwrap();
    let value = json(&["--topology", file.to_str().unwrap()]);
    let os: Vec<u64> = value["units"]
        .as_array()
        .unwrap()
        .iter()
        .map(|u| u["os"].as_u64().unwrap())
        .collect();
    assert_eq!(os, [0, 1, 17]);
    assert_eq!(value["nodes"].as_array().unwrap().len(), 2);
}

#[test]
fn this_machine_is_shown_within_the_affinity_mask() {
    let here = json(&[]);
    let first = here["units"][0]["os"].as_u64().unwrap().to_string();
    let program = assert_cmd::cargo::cargo_bin("hither");
    let bound = |args: &[&str]| {
        let mut command = Command::new("taskset");
        command
            .args(["-c", &first])
            .arg(&program)
            .arg("topo")
            .args(args);
        command.output().unwrap()
    };
    let value: Value = serde_json::from_slice(&bound(&["--json"]).stdout).unwrap();
    assert_eq!(value["units"].as_array().unwrap().len(), 1);
    assert_eq!(value["units"][0]["os"].as_u64().unwrap().to_string(), first);
    if let Some(other) = here["units"][1]["os"].as_u64() {
        let refused = bound(&["--pus", &other.to_string()]);
        assert_eq!(refused.status.code(), Some(2));
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(message.contains("affinity mask"), "{message}");
    }
}

#[test]
fn bad_input_is_one_sentence_and_status_2() {
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("broken.xml");
    std::fs::write(&broken, "<topology version=\"2.0\"><object type=").unwrap();
    let check = |args: &[&str], part: &str| {
        let output = topo(args).assert().code(2).get_output().clone();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(part), "{args:?}: {message}");
        assert!(output.stdout.is_empty());
    };
    check(
        &["--topology", "no-such"],
        "neither a machine of `hither topo --list`",
    );
    check(&["no-such"], "neither a machine of `hither topo --list`");
    check(
        &["xeon-x7550x4", "--topology", "zen5-cxl"],
        "cannot be used with",
    );
    check(&["xeon-x7550x4", "--list"], "cannot be used with");
    check(
        &["--topology", "no-such.xml"],
        "cannot read topology no-such.xml",
    );
    check(
        &["--topology", broken.to_str().unwrap()],
        "is not hwloc XML",
    );
    check(
        &["--topology", "core:2 pu:1", "--pus", "2"],
        "names 2, which does not exist; this machine has 0-1",
    );
    check(&["--pus", "4294967295"], "does not exist");
    check(&["--pus", "1-"], "write the PUs as 0-3,8");
    check(
        &["--topology", "core:2 pu:1", "--cpu-kind", "3"],
        "no kind of core 3",
    );
    check(&["--cpu-kind", "slow"], "write prefer-fast");
    check(&["--list", "--pus", "0"], "cannot be used with");
    check(&["--xml", "--json"], "cannot be used with");
}
