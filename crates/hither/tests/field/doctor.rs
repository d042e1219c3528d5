//! `hither doctor` where tracing works: it finds out by tracing.
use super::*;

#[test]
fn the_trial_is_traced() {
    let place = Place::new();
    let mut doctor = place.command(&[HITHER, "doctor", "--json"]);
    doctor.env("TMPDIR", place.path(""));
    let output = run(doctor);
    assert_eq!(status(&output), 0, "{}", text(&output.stdout));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks");
    let trial = checks.iter().find(|c| c["name"] == "trial run");
    let trial = trial.expect("a trial run");
    assert_eq!(trial["state"], "ok", "{trial}");
    assert!(
        trial["found"].as_str().expect("text").contains("accesses"),
        "{trial}"
    );
    let left = fs::read_dir(place.0.path()).expect("folder").count();
    assert_eq!(left, 0, "the trial left something behind");
}
