//! The machine is the one that was asked for, as seen by tools that are not ours.
use super::*;
use hither_guest::{or_skip_with, DebianKernel};

/// `hwloc-calc` counts objects of each kind in all of the machine.
fn count(kind: &str) -> String {
    format!("hwloc-calc --number-of {kind} all")
}

fn nodes(numactl: &str) -> Vec<String> {
    let keep = |l: &String| l.contains("cpus:") || l.as_bytes()[0].is_ascii_digit();
    lines(numactl).into_iter().filter(keep).collect()
}

#[test]
fn by_default_it_is_a_ring_of_four_nodes() {
    let Some(guest) = or_skip() else { return };
    let said = texts(&guest, &["numactl -H", "uname -r", &count("package")]);
    let expected = [
        "node 0 cpus: 0 1",
        "node 1 cpus: 2 3",
        "node 2 cpus: 4 5",
        "node 3 cpus: 6 7",
        "0: 10 21 21 31",
        "1: 21 10 31 21",
        "2: 21 31 10 21",
        "3: 31 21 21 10",
    ];
    assert_eq!(nodes(&said[0]), expected, "{}", said[0]);
    assert!(said[1].starts_with("6.12."), "{}", said[1]);
    assert_eq!(said[2], "4\n");
}

#[test]
fn distances_may_differ_by_direction_and_a_node_may_have_memory_alone() {
    let Some(guest) = or_skip() else { return };
    let rows = [vec![10, 20, 50], vec![25, 10, 60], vec![70, 80, 10]];
    let guest = guest.nodes(2).memory_only_node().distances(&rows);
    let said = texts(&guest.memory(256), &["numactl -H"]);
    let expected = [
        "node 0 cpus: 0 1 2 3",
        "node 1 cpus: 4 5 6 7",
        "node 2 cpus:",
        "0: 10 20 50",
        "1: 25 10 60",
        "2: 70 80 10",
    ];
    assert_eq!(nodes(&said[0]), expected, "{}", said[0]);
    let size = lines(&said[0])
        .into_iter()
        .find(|l| l.starts_with("node 2 size"));
    let mib: u32 = size.unwrap().split(' ').nth(3).unwrap().parse().unwrap();
    assert!((200..=256).contains(&mib), "{mib}");
}

#[test]
fn dies_have_caches_of_their_own_and_cores_have_threads() {
    let Some(guest) = or_skip() else { return };
    let guest = guest.nodes(2).dies(2).threads(2).cpus(16);
    let kinds = ["package", "numanode", "die", "l3", "core", "pu"].map(count);
    let commands: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let said = texts(&guest, &commands).concat();
    assert_eq!(lines(&said), ["2", "2", "4", "4", "8", "16"]);
}

#[test]
fn kernel_6_1_works_too() {
    let Some(guest) = or_skip_with(DebianKernel::V6_1) else {
        return;
    };
    let outputs = run_all(
        &guest,
        &["uname -r", "numactl -H", "echo result > /out/file; exit 3"],
    );
    assert!(outputs[0].text().starts_with("6.1."), "{outputs:?}");
    assert_eq!(nodes(&outputs[1].text())[7], "3: 31 21 21 10");
    assert_eq!(outputs[2].status, 3);
    assert_eq!(outputs[2].files["file"], b"result\n");
}

#[test]
fn a_machine_that_cannot_be_built_is_refused_before_it_boots() {
    let Some(guest) = or_skip() else { return };
    let error = guest.cpus(10).run("true").unwrap_err().to_string();
    assert!(
        error.contains("10 cpus") && !error.contains("console"),
        "{error}"
    );
}
