//! Which policy is accepted by which verb: as the table of docs/policies.md says.
use crate::common::{status, text, Place, HITHER};
use crate::made;

/// What is published, under its own name.
const PUBLISHED: [&str; 9] = [
    "opt",
    "kmaf",
    "spcd",
    "eagermap",
    "random",
    "random+random",
    "os",
    "interleave",
    "next-touch",
];

/// Names, and whether `map`, `check`, `sim` and `run` take them.
fn table() -> Vec<(String, [bool; 4])> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policies.md");
    let document = std::fs::read_to_string(file).expect("docs/policies.md");
    let rows = document.lines().skip_while(|l| !l.starts_with("| names |"));
    let rows = rows.skip(2).take_while(|l| l.starts_with('|'));
    let mut all = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [names, verbs @ ..] = cells.as_slice() else {
            continue;
        };
        let verbs: Vec<bool> = verbs.iter().map(|cell| *cell == "yes").collect();
        let verbs: [bool; 4] = verbs.try_into().expect("four verbs");
        let names = names.split(", ").map(|name| name.trim_matches('`'));
        all.extend(names.map(|name| (name.to_owned(), verbs)));
    }
    all
}

#[test]
fn every_verb_takes_the_names_that_the_documentation_says() {
    let table = table();
    let listed: Vec<&str> = table.iter().map(|(name, _)| name.as_str()).collect();
    let policies = hither_model::map::threads::THREAD_POLICIES.iter();
    for name in policies.map(|p| p.name()).chain(PUBLISHED) {
        assert!(listed.contains(&name), "{name} is not there");
    }
    let place = Place::new();
    made::write(&place.path("app.hither"), 1, 2000);
    let on = "--topology xeon-x7550x4";
    for (name, verbs) in &table {
        let lines = [
            format!("map app.hither {on} -o x --policy {name}"),
            format!("check app.hither {on} --max-remote 100% --policy {name}"),
            format!("sim app.hither {on} -q --no-keep --seeds 1 --policy os,{name}"),
            format!("run --dry-run --policy {name} -- true"),
            format!("report --text app.hither {on} --policy {name}"),
        ];
        let like_check = verbs.iter().chain([&verbs[1]]);
        for (line, takes) in lines.iter().zip(like_check) {
            let out = place.shell(&format!("{HITHER} {line}"));
            let said = text(&out.stderr);
            assert_eq!(status(&out), if *takes { 0 } else { 2 }, "{line}: {said}");
            assert!(*takes || said.contains("in `hither "), "{line}: {said}");
        }
    }
}

#[test]
fn what_moves_to_its_user_is_local() {
    let place = Place::new();
    made::write(&place.path("app.hither"), 6, 2000);
    let out = place.shell(&format!(
        "{HITHER} sim app.hither --topology xeon-x7550x4 --policy scatter,scatter+next-touch --json"
    ));
    let found: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let remote = |at: usize| {
        let placement = &found["comparisons"][0]["placements"][at];
        let nodes = placement["amounts"]["nodes"].as_array().expect("nodes");
        let reads = nodes
            .iter()
            .map(|n| n["remote_reads"].as_f64().expect("reads"));
        reads.sum::<f64>()
    };
    // Thread 0 touched all pages first; but for four of them one thread each uses them.
    assert!(remote(1) < remote(0) / 4.0, "{} {}", remote(0), remote(1));
}
