//! Bad input: one sentence, status 2, nothing written.
use super::*;
use hither_profile::{write_placement, Thread};

#[test]
fn matrices() {
    let check = |matrix: &str, part: &str| {
        Place::with_matrix(matrix).refuses(&["--matrix", "m.csv"], part);
    };
    check("", "empty");
    check("0,1\n1,x\n", "line 2, column 3: \"x\" is not a number");
    check("0,1\n-1,0\n", "line 2, column 1: -1 is negative");
    check("0,1,2,3\n1,0,2,3\n", "not square");
    let place = Place::new();
    place.refuses(&["--matrix", "none.csv"], "cannot read the matrix none.csv");
    place.refuses(&["--matrix", "/"], "is not a file");
    place.refuses(&["--matrix", "/dev/zero"], "is not a file");
    std::fs::write(place.path("m.csv"), b"\xff\xfe\0").expect("write");
    place.refuses(&["--matrix", "m.csv"], "is not text");
}

#[test]
fn machines() {
    let place = Place::with_matrix(CROSSED);
    place.put("torn.xml", "<topology version=\"2.0\"><object");
    for machine in ["nonsense", "missing.xml", "torn.xml", "core:0 pu:1", ""] {
        place.refuses(&["--matrix", "m.csv", "--topology", machine], "");
    }
    let args = [
        "--matrix",
        "m.csv",
        "--topology",
        "grace",
        "--cpu-kind",
        "7",
    ];
    place.refuses(&args, "no kind of core 7");
}

#[test]
fn profiles() {
    let place = Place::new();
    place.refuses(&["none.hither"], "none.hither is not a profile");
    std::fs::create_dir(place.path("new.hither")).expect("mkdir");
    place.put("new.hither/profile.json", "{\"format\": 999}");
    place.refuses(&["new.hither"], "newer hither (format 999)");
    let idle = Place::with_profile(&Profile::default());
    idle.refuses(&["app.hither"], "has no thread to place");
    let mut profile = Profile::default();
    profile.meta.processes = vec![Default::default()];
    profile.threads = vec![Thread {
        reads: 9,
        ..Thread::default()
    }];
    let bare = Place::with_profile(&profile);
    bare.refuses(&["app.hither", "--data", "kmaf"], "needs page accesses");
    bare.refuses(
        &["app.hither", "--policy", "compact", "--mix", "0.5"],
        "locality-balance",
    );
    let matrix = Place::with_matrix(CROSSED);
    matrix.refuses(
        &["--matrix", "m.csv", "--data", "kmaf"],
        "says nothing of pages",
    );
}

#[test]
fn placements() {
    let place = Place::with_matrix(CROSSED);
    place.put("x.place.json", "{\"format\": 77, \"phases\": []}");
    place.refuses(&["x.place.json", "--format", "env"], "placement format 77");
    place.refuses(
        &["--matrix", "m.csv", "--from", "x.place.json"],
        "placement format 77",
    );
    place.refuses(
        &["--matrix", "m.csv", "--from", "none"],
        "it does not exist",
    );
    place.map(&["--matrix", "m.csv", "-o", "good"]);
    let mut damaged = place.placement("good.place.json");
    damaged.threads.clear();
    write_placement(&damaged, &place.path("bad.place.json")).expect("write");
    place.refuses(
        &["bad.place.json", "--format", "env"],
        "is damaged: phases[0].threads[0]",
    );
}

#[test]
fn a_closed_pipe_is_success() {
    let place = Place::with_matrix(CROSSED);
    let mut command = place.command(&[HITHER, "map", "--matrix", "m.csv", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("hither");
    drop(child.stdout.take());
    assert!(child.wait().expect("wait").success());
}
