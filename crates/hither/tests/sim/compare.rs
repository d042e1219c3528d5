//! The comparison itself: what is compared, in which order, and that it is repeatable.
use crate::common::{status, text, Place, HITHER};
use crate::made;
use serde_json::Value;

/// Runs hither on the profile made by hand, with 6 windows.
pub fn hither(line: &str) -> (Place, String, String) {
    hither_on((6, 2000), line)
}

/// The same with so many windows, and so many accesses of each thread in one.
fn hither_on((windows, accesses): (u64, u64), line: &str) -> (Place, String, String) {
    let place = Place::new();
    made::write(&place.path("app.hither"), windows, accesses);
    let out = place.shell(&format!("{HITHER} {line}"));
    assert_eq!(status(&out), 0, "{}", text(&out.stderr));
    let (out, err) = (text(&out.stdout), text(&out.stderr));
    (place, out, err)
}

fn json(line: &str) -> Value {
    let (_place, out, _) = hither(line);
    serde_json::from_str(&out).expect("JSON")
}

fn names(comparison: &Value) -> Vec<&str> {
    let placements = comparison["placements"].as_array().expect("placements");
    let name = |p: &'_ Value| p["name"].as_str().map(str::len);
    assert!(placements.iter().all(|p| name(p).is_some()));
    placements
        .iter()
        .filter_map(|p| p["name"].as_str())
        .collect()
}

fn time(comparison: &Value, name: &str) -> f64 {
    let placements = comparison["placements"].as_array().expect("placements");
    let one = placements.iter().find(|p| p["name"] == name);
    let ratio = &one.expect(name)["relative"]["time"]["value"];
    ratio.as_f64().expect("a ratio")
}

#[test]
fn the_usual_placements_on_two_machines() {
    let found = json("sim app.hither --topology xeon-x7550x4,epyc-9654x2-nps1 --seeds 2 --json");
    let comparisons = found["comparisons"].as_array().expect("comparisons");
    assert_eq!(comparisons.len(), 2);
    for comparison in comparisons {
        let usual = [
            "os",
            "compact",
            "random",
            "scatter",
            "locality",
            "balanced-locality",
            "distance",
            "joint",
        ];
        assert_eq!(names(comparison), usual);
        let best = comparison["best"].as_u64().expect("best") as usize;
        let times: Vec<f64> = usual.iter().map(|name| time(comparison, name)).collect();
        assert!(times.iter().all(|t| *t >= times[best]), "{times:?}");
        assert_eq!(times[0], 1.0);
    }
    // Partners sit side by side, and each thread's pages, which one thread touched first, on
    // its node: both help where there are four nodes.
    let x7550 = &comparisons[0];
    assert!(time(x7550, "joint") < 0.9, "{x7550}");
    assert!(time(x7550, "joint") <= time(x7550, "locality"));
    assert!(time(x7550, "locality") < time(x7550, "distance"));
}

#[test]
fn everything_is_in_json() {
    let found = json(
        "sim app.hither --topology xeon-x7550x4 --policy os,locality+most-access --seeds 2 --warm-up 0.25 --json",
    );
    let comparison = &found["comparisons"][0];
    assert_eq!(comparison["levels"].as_array().map(Vec::len), Some(3));
    assert_eq!(comparison["links"].as_array().map(Vec::len), Some(12));
    assert_eq!(comparison["sample"]["windows"], 6);
    assert_eq!(comparison["placements"][0]["seeds"], 2);
    let placed = &comparison["placements"][1];
    assert_eq!(placed["data_policy"], "most-access");
    assert_eq!(placed["over_time"].as_array().map(Vec::len), Some(6));
    assert_eq!(placed["by_thread"].as_array().map(Vec::len), Some(8));
    // All accesses are to one structure: its misses are those of all.
    let misses = |part: &Value| part["first_level_misses"].as_f64().expect("misses");
    let threads: f64 = placed["by_thread"]
        .as_array()
        .expect("threads")
        .iter()
        .map(misses)
        .sum();
    assert_eq!(misses(&placed["by_structure"][0]), threads);
    assert!(threads > 0.0);
    // Every page lies where its only user runs.
    let nodes = placed["amounts"]["nodes"].as_array().expect("nodes");
    assert!(nodes.iter().all(|n| n["remote_reads"] == 0.0), "{nodes:?}");
    let energy = &placed["amounts"]["energy"];
    let parts = energy["parts"].as_array().expect("parts").iter();
    let sum: f64 = parts
        .map(|p| p["at_rest"].as_f64().unwrap() + p["dynamic"].as_f64().unwrap())
        .sum();
    assert!((sum / energy["total"].as_f64().unwrap() - 1.0).abs() < 1e-9);
}

#[test]
fn results_do_not_depend_on_the_jobs() {
    let of = |jobs: u32| {
        let (_place, out, _) = hither(&format!(
            "sim app.hither --topology xeon-x7550x4 --policy os,random,joint --seeds 2 --json --jobs {jobs}"
        ));
        out
    };
    let alone = of(1);
    assert!(alone.contains("\"joint\""));
    assert_eq!(of(4), alone);
}

/// Each window passes once over all data: the first one's misses are not counted.
#[test]
fn windows_that_stay_cold_are_played_after_others() {
    let of = |windows: u64, more: &str| {
        let line = format!("sim app.hither --topology xeon-x7550x4 --policy compact --json{more}");
        let (_place, out, _) = hither_on((windows, made::PASS), &line);
        let found: Value = serde_json::from_str(&out).expect("JSON");
        let comparison = &found["comparisons"][0];
        let cold = &comparison["placements"][0]["amounts"]["levels"][2]["cold"];
        (comparison["sample"].clone(), cold.as_f64().expect("misses"))
    };
    let (sample, cold) = of(6, "");
    assert_eq!(
        (&sample["windows"], &sample["warm_up"]),
        (&3.into(), &0.5.into())
    );
    assert_eq!(sample["accesses"], sample["accesses_recorded"]);
    assert!(
        sample["warm_up_change"]
            .as_f64()
            .is_some_and(|change| change < 0.01),
        "{sample}"
    );
    assert_eq!(cold, 0.0);
    assert!(of(6, " --warm-up 0.25").1 > 0.0);
    // Too few to give any away.
    assert_eq!(of(3, "").0["windows"], 3);
}

#[test]
fn pages_lie_where_the_rule_has_them() {
    let remote = |rule: &str| {
        let found = json(&format!(
            "sim app.hither --topology xeon-x7550x4 --policy scatter --json --warm-up 0 --pages {rule}"
        ));
        let nodes = found["comparisons"][0]["placements"][0]["amounts"]["nodes"].clone();
        let sum = |key: &str| -> f64 {
            let nodes = nodes.as_array().expect("nodes").iter();
            nodes.map(|n| n[key].as_f64().expect("a number")).sum()
        };
        let here: Vec<bool> = nodes
            .as_array()
            .expect("nodes")
            .iter()
            .map(|n| n["local_reads"].as_f64().unwrap() + n["remote_reads"].as_f64().unwrap() > 0.0)
            .collect();
        (
            sum("remote_reads") / (sum("remote_reads") + sum("local_reads")),
            here,
        )
    };
    // All pages on the node of thread 0, which has two of the eight threads.
    let (share, nodes) = remote("first-touch");
    assert!((share - 0.75).abs() < 0.05, "{share}");
    assert_eq!(nodes.iter().filter(|here| **here).count(), 1);
    // Each thread touches its own pages first in the simulation.
    let (share, nodes) = remote("replay");
    assert!(share < 0.05, "{share}");
    assert!(nodes.iter().all(|here| *here));
    let (share, nodes) = remote("interleave");
    assert!((share - 0.75).abs() < 0.1, "{share}");
    assert!(nodes.iter().all(|here| *here));
}

#[test]
fn a_warm_up_that_is_asked_for_is_taken() {
    let found =
        json("sim app.hither --topology xeon-x7550x4 --policy compact --json --warm-up 0.5");
    let comparison = &found["comparisons"][0];
    assert_eq!(comparison["sample"]["warm_up"], 0.5);
    // Half of 6 windows of 8 threads with 2000 accesses.
    assert_eq!(comparison["placements"][0]["amounts"]["accesses"], 48_000.0);
}

#[test]
fn the_table_fits_and_names_what_to_do_next() {
    for width in [80, 100] {
        let line = format!("sim app.hither --topology xeon-x7550x4 --policy os,balanced-locality+most-access --seeds 1 -v --by thread,structure; export COLUMNS={width}");
        let place = Place::new();
        made::write(&place.path("app.hither"), 3, 1000);
        let out = place.shell(&format!("COLUMNS={width} {HITHER} {line}"));
        let out = text(&out.stdout);
        let longest = out
            .lines()
            .filter(|l| !l.starts_with("next:"))
            .map(|l| l.chars().count())
            .max();
        assert!(longest <= Some(width), "{out}");
        // The legend tells of the columns that are there.
        for word in ["inval.", "transf."] {
            let times = out.matches(word).count();
            assert!(times == 0 || times == 2, "{word} in {out}");
        }
        assert!(out.contains("\n  *balanced-locality+most-access "), "{out}");
        assert!(
            out.contains("Verdict: balanced-locality+most-access is predicted to take"),
            "{out}"
        );
        for title in [
            "Misses by level",
            "Bytes on each link",
            "Energy",
            "Over time",
            "Threads",
            "Data structures",
        ] {
            assert!(out.contains(&format!("\n{title}")), "no {title} in {out}");
        }
        let next = "next: hither map app.hither --topology xeon-x7550x4 --policy balanced-locality --data most-access\n";
        assert!(out.ends_with(next), "{out}");
    }
}
