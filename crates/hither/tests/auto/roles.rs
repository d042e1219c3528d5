//! A program that creates its workers anew in each generation: those of one role share with the
//! same others in all of them, and run where the last one did.
use std::collections::HashMap;

use super::*;

const POOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auto/pool.c");
const WORKERS: usize = 4;
const GENERATIONS: usize = 40;

#[test]
fn the_next_of_a_role_runs_where_the_last_one_ran() {
    let place = Place::new();
    let built = place.shell(&format!("gcc -O1 -pthread -o pool {POOL}"));
    assert!(built.status.success(), "{}", text(&built.stderr));
    let line = "auto -q --json-lines lines -o p -- ./pool 4 40 150";
    let line: Vec<&str> = [HITHER].into_iter().chain(line.split(' ')).collect();
    let output = run(place.command(&line));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    if status(&output) == 2 && err.contains("cannot be observed") {
        println!("skipped: {err}");
        return;
    }
    assert_eq!(status(&output), 0, "{err}");
    assert!(out.ends_with("\n0 wrong\n"), "{out}");

    // Of each generation, the units on which its workers ran.
    let rows = out.lines().map(|row| row.split(' ').collect::<Vec<_>>());
    let rows: Vec<Vec<&str>> = rows.filter(|row| row.len() == 3).collect();
    assert_eq!(rows.len(), WORKERS * GENERATIONS);
    let seats: HashMap<(usize, usize), &str> = rows
        .iter()
        .map(|row| {
            (
                (
                    row[0].parse().expect("a number"),
                    row[1].parse().expect("a number"),
                ),
                row[2],
            )
        })
        .collect();
    let later = (GENERATIONS / 2..GENERATIONS).flat_map(|g| (0..WORKERS).map(move |w| (g, w)));
    let stayed = later.filter(|&(generation, worker)| {
        let seat = seats[&(generation, worker)];
        !seat.contains(',') && seats[&(generation - 1, worker)] == seat
    });
    let stayed = stayed.count();
    let all = WORKERS * GENERATIONS / 2;
    println!("{stayed} of {all} ran where the one before them did");
    assert!(stayed * 10 >= all * 8, "{stayed} of {all}\n{out}");

    // What is known of who shares outlives a generation.
    let near: Vec<_> = (0..WORKERS / 2).map(|i| (2 * i, 2 * i + 1)).collect();
    let (astray, between) = matrix_before(&place, u64::MAX, &near);
    println!("{between:?}, {:.1} % astray", 100.0 * astray);
    assert!(astray <= 0.2, "{astray}");
}
