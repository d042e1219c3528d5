//! Job control: what an interactive shell on a terminal sees of a program that is followed.
use super::*;

/// A scenario of `jobs.py`, without and with hither in front of the programs.
#[track_caller]
fn check_scenario(name: &str) {
    let place = Place::new();
    let script = format!("{SOURCES}/jobs.py");
    let tools = std::path::PathBuf::from(built("notice"));
    let tools = tools
        .parent()
        .expect("folder")
        .to_string_lossy()
        .into_owned();
    let line = ["python3", &script, name, &tools];
    let alone = run(place.marked(&line));
    assert_eq!(status(&alone), 0, "{}", text(&alone.stderr));
    place.nobody_left();
    let followed = run(place.marked(&[&line[..], &RUN].concat()));
    same(&line, &alone, &followed);
    place.nobody_left();
}

#[test]
fn interrupt_and_quit_keys() {
    check_scenario("interrupt");
}

#[test]
fn programs_that_handle_or_ignore_keys() {
    check_scenario("caught");
}

#[test]
fn stop_foreground_background() {
    check_scenario("stop");
}

#[test]
fn stopped_again_at_once() {
    check_scenario("restop");
}

#[test]
fn reading_from_the_terminal() {
    check_scenario("input");
}

#[test]
fn jobs_that_are_killed() {
    check_scenario("kill");
}

#[test]
fn a_shell_inside() {
    check_scenario("inner");
}

#[test]
fn part_of_a_pipeline() {
    check_scenario("pipeline");
}
