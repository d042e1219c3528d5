//! One profile on every machine that is shipped, and on odd ones.
use super::profiles::chain;
use super::*;

#[test]
fn every_shipped_machine() {
    let place = Place::with_profile(&chain(8));
    for machine in shipped() {
        let out = format!("{machine}.place.json");
        let made = ["app.hither", "--force", "--topology", &machine];
        place.map(&[&made[..], &["-o", &machine]].concat());
        let placement = place.placement(&out);
        assert_eq!(placement.machine.name, machine);
        let phase = &placement.phases[0];
        assert_eq!(phase.threads.len(), 8);
        let mut pus: Vec<u32> = phase.threads.iter().map(|t| t.os_index()).collect();
        pus.sort_unstable();
        pus.dedup();
        assert_eq!(pus.len(), 8, "{machine} has a PU for each");
        let json = place.json(&[&made[..], &["--explain"]].concat());
        let remote = json["explanation"]["after"]["remote"]
            .as_f64()
            .expect("a share");
        let before = json["explanation"]["before"]["remote"]
            .as_f64()
            .expect("a share");
        assert!(remote <= before, "{machine}: {before} -> {remote}");
        assert!(
            json["objective"].as_u64() <= json["before"].as_u64(),
            "{machine}"
        );
        if placement.machine.nodes.len() > 1 {
            assert_eq!(hither_profile::Placement::pages(phase), 8, "{machine}");
        }
        for format in listed("For other tools") {
            let text = place.map(&[&out, "--format", &format]);
            assert!(!text.is_empty(), "{machine} {format}");
        }
    }
}

#[test]
fn every_policy_with_every_data_policy() {
    let place = Place::with_profile(&chain(8));
    let machine = ["--topology", "numa:2 core:2 pu:2"];
    for data in listed("Pages") {
        let args = [&["app.hither", "--data", &data, "-o", "x"], &machine[..]].concat();
        place.map(&args);
        let placement = place.placement("x.place.json");
        let nodes = placement.phases[0].pages.iter().flat_map(|r| &r.runs);
        let placed: u64 = nodes.map(|run| run.pages()).sum();
        let left = data == "first-touch";
        assert_eq!(placed, if left { 0 } else { 8 }, "{data}");
    }
    for policy in thread_policies() {
        let args = [
            &["app.hither", "--policy", &policy, "-o", "x"],
            &machine[..],
        ]
        .concat();
        place.map(&args);
        assert_eq!(place.placement("x.place.json").phases[0].threads.len(), 8);
    }
}

#[test]
fn more_threads_than_units_and_fewer() {
    let place = Place::with_profile(&chain(6));
    let units = |machine: &str, args: &[&str]| {
        let all = [&["app.hither", "--force", "--topology", machine], args].concat();
        let mut pus = place.pus(&all);
        pus.sort_unstable();
        pus
    };
    assert_eq!(units("core:2 pu:1", &[]), [0, 0, 0, 1, 1, 1]);
    assert_eq!(
        units("core:6 pu:2", &[]),
        [0, 2, 4, 6, 8, 10],
        "cores before siblings"
    );
    let mut pairs = units("pack:2 core:4 pu:1", &["--pus", "0,1,4-7"]);
    pairs.dedup();
    assert_eq!(pairs, [0, 1, 4, 5, 6, 7]);
}
