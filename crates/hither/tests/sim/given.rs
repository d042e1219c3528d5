//! Placements that are given, `map --policy best`, and where predictions are kept.
use crate::common::{status, text, Place, HITHER};
use crate::made;
use serde_json::Value;

fn place() -> Place {
    let place = Place::new();
    made::write(&place.path("app.hither"), 6, 1000);
    place
}

fn ok(place: &Place, line: &str) -> String {
    let out = place.shell(&format!("hither() {{ {HITHER} \"$@\"; }}; {line}"));
    assert_eq!(status(&out), 0, "{line}: {}", text(&out.stderr));
    text(&out.stdout)
}

#[test]
fn a_placement_does_what_its_policy_does() {
    let place = place();
    let machine = "--topology xeon-x7550x4";
    ok(
        &place,
        &format!("hither map app.hither {machine} --policy locality --data most-access -o own"),
    );
    let out = ok(&place, &format!("hither sim app.hither {machine} --policy locality+most-access -p own.place.json --json"));
    let found: Value = serde_json::from_str(&out).expect("JSON");
    let placements = &found["comparisons"][0]["placements"];
    assert_eq!(placements[1]["name"], "own.place.json");
    assert_eq!(placements[1]["thread_policy"], "locality");
    assert_eq!(placements[0]["amounts"], placements[1]["amounts"]);
    // Without policies it is compared with what the system does.
    let out = ok(
        &place,
        &format!("hither sim app.hither {machine} -p own.place.json --seeds 1"),
    );
    assert!(
        out.contains("\n   os ") && out.contains("\n  *own.place.json "),
        "{out}"
    );
    assert!(
        out.ends_with("next: hither map own.place.json --format env\n"),
        "{out}"
    );
}

#[test]
fn phases_hold_from_their_window_on() {
    let place = place();
    let machine = "--topology xeon-x7550x4";
    ok(
        &place,
        &format!("hither map app.hither {machine} --policy scatter --data most-access -o far"),
    );
    ok(
        &place,
        &format!("hither map app.hither {machine} --policy locality --data most-access -o near"),
    );
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(place.path(name)).expect(name);
        serde_json::from_str(&text).expect("JSON")
    };
    let (far, near) = (read("far.place.json"), read("near.place.json"));
    let over_time = |start: u64| -> [Value; 2] {
        let mut both = far.clone();
        let mut second = near["phases"][0].clone();
        second["start"] = start.into();
        both["phases"].as_array_mut().expect("phases").push(second);
        std::fs::write(place.path("both.place.json"), both.to_string()).expect("write");
        let out = ok(&place, &format!("hither sim app.hither {machine} --policy compact -p far.place.json -p both.place.json --warm-up 0 --json"));
        let found: Value = serde_json::from_str(&out).expect("JSON");
        [1, 2].map(|at| found["comparisons"][0]["placements"][at]["over_time"].clone())
    };
    // Windows begin every 10 ms and last 1 ms. One of them is cut.
    let [far, both] = over_time(25_000_000);
    for window in 0..6 {
        let same = far[window]["time"] == both[window]["time"];
        assert_eq!(same, window < 3, "window {window}");
    }
    let [[_, begun], [_, within]] = [over_time(20_000_000), over_time(20_500_000)];
    assert_eq!(within[1]["time"], far[1]["time"]);
    for other in [&far, &begun] {
        assert_ne!(within[2]["time"], other[2]["time"]);
    }
}

#[test]
fn best_is_the_policy_that_is_predicted_to_be_fastest() {
    let place = place();
    let out = ok(
        &place,
        "hither map app.hither --topology xeon-x7550x4 --policy best -o best",
    );
    assert!(out.contains("is predicted to take"), "{out}");
    let text = std::fs::read_to_string(place.path("best.place.json")).expect("a placement");
    let best: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(best["policy"]["data"], "most-access");
    // Nothing that is compared is faster.
    let out = ok(&place, "hither sim app.hither --topology xeon-x7550x4 -p best.place.json --policy compact,scatter,locality,locality+most-access,compact+most-access --json");
    let found: Value = serde_json::from_str(&out).expect("JSON");
    let placements = found["comparisons"][0]["placements"]
        .as_array()
        .expect("placements")
        .clone();
    let times: Vec<f64> = placements
        .iter()
        .filter_map(|p| p["amounts"]["time"].as_f64())
        .collect();
    assert!(times.iter().all(|t| *t >= times[5]), "{times:?}");
}

#[test]
fn the_report_has_what_was_predicted() {
    let place = place();
    let machine = "--topology xeon-x7550x4";
    let before = ok(&place, "hither report app.hither --text");
    assert!(!before.contains("Placements predicted"), "{before}");
    ok(
        &place,
        &format!("hither sim app.hither {machine} --policy os,joint --seeds 2"),
    );
    let report = ok(&place, "hither report app.hither --text");
    assert!(
        report.contains("Placements predicted on 4 x Intel Xeon X7550"),
        "{report}"
    );
    assert!(report.contains("joint is predicted to take"), "{report}");
    ok(&place, "hither report app.hither");
    let page = std::fs::read_to_string(place.path("app.html")).expect("a page");
    assert!(page.contains("joint is predicted to take"));
    // Predictions of other machines stay, and a profile with one can be traced anew.
    ok(
        &place,
        "hither sim app.hither --topology epyc-9654x2-nps1 --policy os,compact --seeds 1 -o other",
    );
    let report = ok(&place, "hither report app.hither --json");
    let found: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(found["predictions"].as_array().map(Vec::len), Some(2));
    let report = ok(
        &place,
        "hither report app.hither --json --prediction other.sim.json",
    );
    let found: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(found["predictions"].as_array().map(Vec::len), Some(1));
    made::write(&place.path("app.hither"), 2, 100);
    let report = ok(&place, "hither report app.hither --text");
    assert!(!report.contains("Placements predicted"), "{report}");
}

#[test]
fn names_of_files_do_not_steer_the_terminal() {
    let place = place();
    let machine = "--topology xeon-x7550x4";
    let line = format!("hither map app.hither {machine} -o own >/dev/null; name=\"$(printf 'a\\033[31m')\"; cp own.place.json \"$name\"; hither sim app.hither {machine} --policy compact -p \"$name\" -v --by thread");
    let out = ok(&place, &line);
    assert!(out.contains("a?[31m") && out.contains("Energy"), "{out}");
    assert!(!out.contains('\u{1b}'), "{out:?}");
}

/// Nothing but the first structure is ever missed.
#[test]
fn what_was_written_is_read_again() {
    let place = place();
    let machine = "--topology xeon-x7550x4";
    ok(
        &place,
        &format!("hither sim app.hither {machine} --policy os,compact --seeds 1 --by structure --no-keep -o x"),
    );
    let report = ok(
        &place,
        "hither report app.hither --json --prediction x.sim.json",
    );
    let found: Value = serde_json::from_str(&report).expect("JSON");
    let prediction = &found["predictions"][0];
    let structures = prediction["structures"].as_array().map(Vec::len);
    assert_eq!(structures, Some(2));
    let parts = prediction["placements"][1]["by_structure"].as_array();
    assert_eq!(parts.map(Vec::len), structures);
}

/// Options of `hither map` that say where threads and pages go are those of what is predicted.
#[test]
fn best_is_judged_with_the_options_given() {
    let place = place();
    let judged = |options: &str| {
        let line = format!(
            "hither map app.hither --topology xeon-x7550x4 --policy best {options} -o best"
        );
        ok(&place, &line);
        let text = std::fs::read_to_string(place.path("best.place.json")).expect("a placement");
        let best: Value = serde_json::from_str(&text).expect("JSON");
        // What is predicted; behind it is what the placement itself brings.
        let why = best["why"].as_str().expect("a sentence");
        let (predicted, _) = why.split_once(')').expect("an interval");
        assert!(predicted.contains("95 % confidence"), "{why}");
        predicted.to_owned()
    };
    // Pages by turns instead of where the first thread touched them: it is predicted otherwise.
    let plain = judged("--data first-touch");
    let spread = judged("--data first-touch --structure grid=interleave");
    assert_ne!(spread, plain);
    // There is one phase: its placement is that of the run.
    assert_eq!(judged("--data first-touch --phases"), plain);
    // In pages of 2 MiB all of the grid lies on one node.
    let small = judged("--data most-access");
    assert_ne!(judged("--data most-access --page-size 2m"), small);
}

/// What is predicted of the fastest with phases is what its placement brings.
#[test]
fn best_is_judged_with_its_phases() {
    let place = Place::new();
    made::write_changing(&place.path("app.hither"), 1000);
    let machine = "--topology 'node:4 core:2 pu:1'";
    let phases = "--phases --thread-interval 100ms --page-interval 10s";
    let placed = |options: &str| -> Value {
        let line = format!(
            "hither map app.hither {machine} --policy best --data first-touch {options} -o best"
        );
        ok(&place, &line);
        let text = std::fs::read_to_string(place.path("best.place.json")).expect("a placement");
        serde_json::from_str(&text).expect("JSON")
    };
    let time = || {
        let line =
            format!("hither sim app.hither {machine} --policy compact -p best.place.json --json");
        let found: Value = serde_json::from_str(&ok(&place, &line)).expect("JSON");
        let amounts = &found["comparisons"][0]["placements"][1]["amounts"];
        amounts["time"].as_f64().expect("a time")
    };
    let once = placed("");
    let still = time();
    let best = placed(phases);
    let count = |placement: &Value| placement["phases"].as_array().map(Vec::len);
    assert_eq!((count(&once), count(&best)), (Some(1), Some(2)));
    let moving = time();
    let predicted = |placement: &Value| {
        let why = placement["why"].as_str().expect("a sentence");
        why.split_once(')')
            .map(|(predicted, _)| predicted.to_owned())
    };
    assert_ne!(predicted(&once), predicted(&best));
    assert!(moving < still, "{moving} {still}");
}

#[test]
fn a_profile_can_be_left_alone() {
    let place = place();
    ok(
        &place,
        "hither sim app.hither --topology xeon-x7550x4 --policy compact --no-keep",
    );
    assert!(!place.path("app.hither/prediction.json").exists());
}

/// It once became a file named `-.sim.json`.
#[test]
fn a_prediction_can_go_to_standard_output() {
    let place = place();
    let sim = "hither sim app.hither --topology xeon-x7550x4 --policy os,compact --seeds 1";
    ok(&place, &format!("{sim} -o x"));
    let file = std::fs::read_to_string(place.path("x.sim.json")).expect("a file");
    assert_eq!(ok(&place, &format!("{sim} -o -")), file);
    assert!(!place.path("-.sim.json").exists());
}

/// The default was the least distance, which packs threads that sweep over memory on one node: 1.5 to
/// 1.8 times slower than left alone, as the simulator said when it was asked.
#[test]
fn the_default_is_not_predicted_to_be_slower_than_the_system() {
    let place = Place::new();
    made::write_sweeping(&place.path("app.hither"));
    let machine = "--topology xeon-x7550x4";
    ok(
        &place,
        &format!("hither map app.hither {machine} --force -o own"),
    );
    ok(
        &place,
        &format!("hither map app.hither {machine} --policy locality -o near"),
    );
    let given = "-p own.place.json -p near.place.json --seeds 2 --migrations 0 --warm-up 0.5";
    let out = ok(
        &place,
        &format!("hither sim app.hither {machine} {given} --json"),
    );
    let found: Value = serde_json::from_str(&out).expect("JSON");
    let time = |at: usize| {
        let placement = &found["comparisons"][0]["placements"][at];
        placement["amounts"]["time"].as_f64().expect("a time")
    };
    let [system, own, near] = [0, 1, 2].map(time);
    assert!(near > 1.2 * system, "{near} {system}");
    assert!(own < 1.02 * system, "{own} {system}");
}

#[test]
fn the_default_is_what_a_short_simulation_finds() {
    let place = place();
    let machine = "--topology xeon-x7550x4";
    let out = ok(&place, &format!("hither map app.hither {machine} -o own"));
    assert!(out.contains("is predicted to take"), "{out}");
    assert!(out.contains("`hither stat` says"), "{out}");
}

/// Windows alone do not fill caches, so that they do not show what it costs to leave some idle.
#[test]
fn caches_that_data_need_are_not_left_idle_for_what_pieces_of_windows_show() {
    let policy = |write: &dyn Fn(&std::path::Path)| {
        let place = Place::new();
        write(&place.path("app.hither"));
        let line = "hither map app.hither --topology xeon-x7550x4 --force -o own";
        let out = ok(&place, line);
        assert!(out.contains("is predicted to take"), "{out}");
        let text = std::fs::read_to_string(place.path("own.place.json")).expect("a placement");
        let placement: Value = serde_json::from_str(&text).expect("JSON");
        placement["policy"]["threads"]
            .as_str()
            .expect("a policy")
            .to_owned()
    };
    assert_eq!(
        policy(&|dir| made::write(dir, 6, 3 * made::PASS)),
        "locality"
    );
    assert_ne!(policy(&|dir| made::write_wide(dir, 64_000)), "locality");
}

/// What each thread swept over before its windows fits in the caches of four packages, and not in that of one.
#[test]
fn caches_hold_what_was_used_before_windows() {
    let misses = |fetches: u64, policy: &str| {
        let place = Place::new();
        made::write_wide(&place.path("app.hither"), fetches);
        let policy = format!("--policy {policy} --warm-up 0.25 --json");
        let line = format!("hither sim app.hither --topology xeon-x7550x4 {policy}");
        let found: Value = serde_json::from_str(&ok(&place, &line)).expect("JSON");
        let levels = &found["comparisons"][0]["placements"][0]["amounts"]["levels"];
        let of = |kind: &str| levels[2][kind].as_f64().expect("misses");
        of("cold") + of("capacity")
    };
    // As if nothing was used but in windows.
    let unknown = misses(0, "scatter");
    let apart = misses(64_000, "scatter");
    let together = misses(64_000, "locality");
    assert!(apart < 0.01 * unknown, "{apart} {unknown}");
    assert!(together > 0.3 * unknown, "{together} {unknown}");
}
