//! Placing without a profile, and what the output is.
use super::*;

const MACHINE: &str = "pack:2 core:2 pu:1";

/// Of the matrix in `m.csv`, for [`MACHINE`].
fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["--matrix", "m.csv", "--topology", MACHINE], more].concat()
}

#[test]
fn threads_that_talk_share_a_package() {
    let place = Place::with_matrix(CROSSED);
    let json = place.json(&with(&[]));
    let pus = numbers(&json["pus"]);
    assert_eq!(
        (pus[0] / 2, pus[1] / 2),
        (pus[3] / 2, pus[2] / 2),
        "{pus:?}"
    );
    // The table is symmetric, so each pair counts once: 2 x 90 at distance 2, 4 x 1 at distance 4.
    assert_eq!(json["objective"], 2 * 90 * 2 + 4 * 4);
    assert_eq!(json["threads"], serde_json::json!([0, 1, 2, 3]));
}

#[test]
fn a_list_of_edges_is_the_same_matrix() {
    let place = Place::with_matrix(CROSSED);
    place.put(
        "e.txt",
        "# crossed\n0 3 90\n1 2 90\n0 1 1\n0 2 1\n1 3 1\n2 3 1\n",
    );
    let at = |file| place.json(&["--matrix", file, "--topology", MACHINE]);
    assert_eq!(at("m.csv")["pus"], at("e.txt")["pus"]);
    assert_eq!(at("m.csv")["objective"], at("e.txt")["objective"]);
}

/// Two files, of which the second has half of each weight of the first.
#[test]
fn objectives_of_two_files_compare() {
    let place = Place::with_matrix(CROSSED);
    place.put(
        "half.txt",
        "0 3 45\n1 2 45\n0 1 0.5\n0 2 0.5\n1 3 0.5\n2 3 0.5\n",
    );
    place.put("bom.csv", &format!("\u{feff}{CROSSED}"));
    let args = |file| ["--matrix", file, "--topology", MACHINE, "--explain"];
    let value = |file| {
        place.json(&args(file))["objective"]
            .as_f64()
            .expect("a number")
    };
    assert_eq!(value("half.txt"), value("m.csv") / 2.0);
    assert_eq!(value("bom.csv"), value("m.csv"));
    let json = place.json(&args("half.txt"));
    assert_eq!(json["explanation"]["after"]["objective"], json["objective"]);
    let whole = place.json(&args("m.csv"));
    assert!(whole["objective"].is_u64(), "{whole}");
    let said = place.map(&args("half.txt"));
    assert!(said.contains("188"), "{said}");
    place.put("cut.csv", "0,5,1\n5,0,2\n");
    place.refuses(&["--matrix", "cut.csv"], "a table that lacks a line");
}

#[test]
fn every_policy_places_every_thread() {
    let place = Place::with_matrix(CROSSED);
    for policy in thread_policies() {
        let mut pus = place.pus(&with(&["--policy", &policy]));
        pus.sort_unstable();
        assert_eq!(pus, [0, 1, 2, 3], "{policy}");
    }
}

#[test]
fn where_it_goes() {
    let place = Place::with_matrix(CROSSED);
    let map = |args: &[&str]| place.map(&with(args));
    let said = map(&[]);
    assert!(
        said.contains("next: hither map m.place.json --format env"),
        "{said}"
    );
    assert_eq!(place.files(), ["m.csv", "m.place.json"]);
    let first = std::fs::read(place.path("m.place.json")).expect("file");
    map(&[]);
    let again = std::fs::read(place.path("m.place.json")).expect("file");
    assert_eq!(text(&first), text(&again), "same input, same file");
    map(&["-o", "x"]);
    map(&["-o", "y.place.json", "--json"]);
    assert_eq!(
        place.placement("x.place.json"),
        place.placement("y.place.json")
    );
    assert_eq!(map(&["--format", "slurm", "-o", "job"]), "");
    assert!(std::fs::read_to_string(place.path("job"))
        .expect("file")
        .starts_with("srun "));
    place.refuses(
        &["--matrix", "m.csv", "--format", "slurm", "-o", "job"],
        "exists",
    );
    place.put("z.place.json", "my notes");
    place.refuses(&["--matrix", "m.csv", "-o", "z"], "not a placement");
    place.refuses(&["--matrix", "m.csv", "-o", "none/z"], "no folder none");
    let shown = place.map(&["x.place.json", "--format", "text"]);
    assert_eq!(shown.lines().count(), 5, "{shown}");
    place.refuses(&["x.place.json"], "is a placement already");
}

#[test]
fn chosen_threads_and_units() {
    let place = Place::with_matrix(CROSSED);
    let args = ["--matrix", "m.csv", "--topology", "pack:2 core:4 pu:1"];
    let json = place.json(&[&args[..], &["--threads", "0,3", "--pus", "2,5-6"]].concat());
    assert_eq!(json["threads"], serde_json::json!([0, 3]));
    let mut pus = numbers(&json["pus"]);
    pus.sort_unstable();
    assert_eq!(pus, [5, 6], "the two units of one package");
    let tight = place.pus(&[&args[..], &["--pus", "1"]].concat());
    assert_eq!(tight, [1, 1, 1, 1]);
    let all = [&args[..], &["--pus", "1", "--capacity", "3"]].concat();
    place.refuses(&all, "give --capacity 4");
    place.refuses(&[&args[..], &["--threads", "4"]].concat(), "no thread 4");
    place.refuses(&[&args[..], &["--pus", "0,77"]].concat(), "names 77");
}

#[test]
fn small_and_silent_matrices() {
    let check = |text: &str, threads: usize| {
        let place = Place::with_matrix(text);
        for policy in thread_policies() {
            let pus = place.pus(&with(&["--policy", &policy]));
            assert_eq!(pus.len(), threads, "{policy} {text}");
        }
    };
    check("0\n", 1);
    check("0,0\n0,0\n", 2);
    check("0,0,0\n0,0,5\n0,5,0\n", 3);
    check(
        "0,1,1,1,1,1\n1,0,1,1,1,1\n1,1,0,1,1,1\n1,1,1,0,1,1\n1,1,1,1,0,1\n1,1,1,1,1,0\n",
        6,
    );
}

/// They were packed on one package of four, where the others' caches are idle.
#[test]
fn threads_that_share_alike_or_nothing_are_spread() {
    let packages = |matrix: &str, more: &[&str]| {
        let place = Place::with_matrix(matrix);
        let machine = ["--matrix", "m.csv", "--topology", "pack:4 core:4 pu:1"];
        let mut used = place.pus(&[&machine[..], more].concat());
        used.iter_mut().for_each(|pu| *pu /= 4);
        used.sort_unstable();
        used.dedup();
        used.len()
    };
    let none = "0,0,0,0\n0,0,0,0\n0,0,0,0\n0,0,0,0\n";
    assert_eq!(packages(none, &[]), 4);
    let alike = "0,7,7,7\n7,0,7,7\n7,7,0,7\n7,7,7,0\n";
    assert_eq!(packages(alike, &[]), 4);
    assert_eq!(packages(alike, &["--policy", "locality"]), 1);
    assert_eq!(packages("0,5\n5,0\n", &[]), 1);
    assert_eq!(packages(CROSSED, &[]), 1);
}

#[test]
fn starting_from_an_older_placement() {
    let place = Place::with_matrix(CROSSED);
    place.map(&with(&["--seed", "3", "-o", "old"]));
    let old = place.pus(&with(&["--seed", "3"]));
    let from = |seed| with(&["--from", "old.place.json", "--seed", seed]);
    assert_eq!(place.pus(&from("8")), old, "what is best stays");
    let said = place.map(&[&from("8")[..], &["--explain"]].concat());
    assert!(said.contains("0 of 4 threads move"), "{said}");
    let elsewhere = ["--matrix", "m.csv", "--topology", "pack:2 core:4 pu:1"];
    let elsewhere = [&elsewhere[..], &["--from", "old.place.json"]].concat();
    place.refuses(&elsewhere, "is for another machine");
}

#[test]
fn costs() {
    let place = Place::with_matrix(CROSSED);
    let at = |cost, machine| {
        let json = place.json(&["--matrix", "m.csv", "--topology", machine, "--cost", cost]);
        json["objective"].as_u64().expect("a number")
    };
    // Two cores of a package share nothing but it: 100 cycles, 200 across.
    assert_eq!(at("levels", MACHINE), 180 * 100 + 4 * 200);
    // 4 threads fit on one node of 72 cores, all at the latency of the node to itself.
    assert_eq!(at("latency", "grace-superchip"), 184 * 50);
    place.refuses(&with(&["--cost", "latency"]), "no latencies");
}

/// Without it all threads counted alike.
#[test]
fn the_work_of_threads_is_given_or_the_policy_refused() {
    let place = Place::with_matrix(CROSSED);
    let args = [
        "--matrix",
        "m.csv",
        "--topology",
        "core:2 pu:1",
        "--policy",
        "load-balance",
    ];
    place.refuses(&args, "give it with --load");
    place.put("load", "10 1 # two busy ones\n10, 1\n");
    let load = |file| [&args[..], &["--load", file]].concat();
    let pus = place.pus(&load("load"));
    assert_ne!(pus[0], pus[2], "a busy one each: {pus:?}");
    place.put("load", "10 1 10\n");
    place.refuses(&load("load"), "3 numbers for 4 threads");
    place.put("load", "10 1 10 x\n");
    place.refuses(&load("load"), "\"x\" is not a whole number");
}

#[test]
fn capacity_goes_with_siblings() {
    let place = Place::with_matrix(CROSSED);
    place.refuses(&with(&["--capacity", "2"]), "give --siblings");
    let mut pus = place.pus(&with(&["--capacity", "2", "--siblings"]));
    pus.dedup();
    assert!(pus.len() < 4, "{pus:?}");
}

/// One process with all PUs was printed, which `mpirun -np 4` refuses.
#[test]
fn rows_of_a_matrix_are_ranks_to_launchers() {
    let place = Place::with_matrix(CROSSED);
    let file = place.map(&with(&["--format", "openmpi-rankfile"]));
    assert_eq!(
        file.lines().filter(|l| l.starts_with("rank ")).count(),
        4,
        "{file}"
    );
    let srun = place.map(&with(&["--format", "slurm"]));
    assert!(srun.contains("--ntasks=4"), "{srun}");
    let mpiexec = place.map(&with(&["--format", "mpich"]));
    let (ranks, pus) = mpiexec.split_once(" -bind-to user:").expect("a list");
    assert_eq!((ranks, pus.split(',').count()), ("mpiexec -n 4", 4));
}

/// `-o m.json` wrote `m.json.place.json`.
#[test]
fn the_placement_has_the_name_that_is_asked_for() {
    let place = Place::with_matrix(CROSSED);
    for (name, file) in [
        ("a", "a.place.json"),
        ("a.place.json", "a.place.json"),
        ("b.json", "b.json"),
        ("c.v2", "c.v2.place.json"),
    ] {
        let said = place.map(&with(&["-o", name]));
        assert!(said.contains(&format!("{file} written\n")), "{said}");
        assert_eq!(place.placement(file).threads.len(), 4);
    }
    assert!(!place.files().contains(&"b.json.place.json".to_owned()));
}

#[test]
fn fast_is_a_policy_of_its_own() {
    let place = Place::with_matrix(CROSSED);
    place.map(&with(&["--fast", "-o", "fast"]));
    let fast = place.placement("fast.place.json");
    assert_eq!(fast.policy.threads, "locality-fast");
    for same in [
        &["--policy", "locality-fast"][..],
        &["--policy", "locality", "--fast"],
    ] {
        place.map(&with(&[same, &["-o", "same"]].concat()));
        assert_eq!(place.placement("same.place.json"), fast, "{same:?}");
    }
    let searched = with(&["--policy", "locality", "-o", "searched"]);
    place.map(&searched);
    let searched = place.placement("searched.place.json");
    assert_eq!(searched.policy.threads, "locality");
    let scatter = with(&["--fast", "--policy", "scatter"]);
    place.refuses(&scatter, "policy scatter has no fast variant");
    let best = with(&["--fast", "--policy", "best"]);
    place.refuses(&best, "--fast goes with --policy locality");
}
