//! Limits and baselines, on traces of a program and its repaired twin.
use super::Folder;

/// How many lines begin with `FAIL`.
fn failed(said: &str) -> usize {
    said.lines().filter(|l| l.starts_with("FAIL  ")).count()
}

#[test]
fn a_program_whose_first_thread_touches_all_fails_and_its_twin_passes() {
    let folder = Folder::new();
    folder.trace("bad", &[]);
    folder.trace("good", &["-p"]);
    let limits = ["--max-remote", "20%", "--min-exclusivity", "0.8"];
    let (status, said) = folder.check(&[&["bad.hither"], &limits[..]].concat());
    assert_eq!((status, failed(&said)), (1, 1), "{said}");
    assert!(said.starts_with("FAIL  remote fetches: 7"), "{said}");
    assert!(said.contains("at most 20.0 % wanted"), "{said}");
    assert!(
        said.contains("next: hither report --text bad.hither --topology"),
        "{said}"
    );
    let (status, said) = folder.check(&[&["good.hither"], &limits[..]].concat());
    assert_eq!((status, failed(&said)), (0, 0), "{said}");
    assert_eq!(
        said.lines().filter(|l| l.starts_with("ok    ")).count(),
        2,
        "{said}"
    );

    let none = ["--no", "first-touch,false-sharing", "--no", "large-pages"];
    let (status, said) = folder.check(&[&["bad.hither"], &none[..]].concat());
    assert_eq!((status, failed(&said)), (1, 1), "{said}");
    assert!(said.starts_with("FAIL  first-touch: "), "{said}");
    let (status, said) = folder.check(&[&["good.hither"], &none[..]].concat());
    let held = said.lines().filter(|l| l.starts_with("ok    "));
    assert_eq!((status, held.count()), (0, 3), "{said}");

    let than = |old| ["--baseline", old, "--fail-on-regression"];
    let (status, said) = folder.check(&[&["bad.hither"], &than("good.hither")[..]].concat());
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("FAIL  remote accesses: 7"), "{said}");
    assert!(said.contains("FAIL  new: first-touch: "), "{said}");
    assert!(said.contains("--before good.hither"), "{said}");
    let (status, said) = folder.check(&[&["good.hither"], &than("bad.hither")[..]].concat());
    assert_eq!(status, 0, "{said}");
    assert!(
        said.contains("ok    no finding about a data structure is new or worse"),
        "{said}"
    );
}

/// No two runs are the same; what differs must not look like a regression.
#[test]
fn the_same_program_passes_ten_times() {
    let folder = Folder::new();
    let names = ["even.hither", "odd.hither"];
    folder.trace(names[0], &[]);
    for round in 1..=10 {
        let [old, new] = [names[(round + 1) % 2], names[round % 2]];
        folder.trace(new, &[]);
        let (status, said) = folder.check(&[new, "--baseline", old, "--fail-on-regression"]);
        assert_eq!(status, 0, "round {round}: {said}");
    }
}

#[test]
fn json_says_the_same() {
    let folder = Folder::new();
    folder.trace("bad", &[]);
    let (status, said) = folder.check(&["bad.hither", "--max-remote", "0.2", "--json"]);
    assert_eq!(status, 1);
    let json: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(json["holds"], false);
    assert_eq!(json["conditions"][0]["option"], "--max-remote");
    let sentence = json["conditions"][0]["said"].as_str().expect("a sentence");
    let (_, said) = folder.check(&["bad.hither", "--max-remote", "0.2"]);
    assert!(said.contains(sentence), "{said}");
}
