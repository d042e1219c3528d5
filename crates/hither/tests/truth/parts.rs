//! `--from`, `--until` and `--only-functions`: the parts of a run by what they do to one
//! array, which the initialising function only writes and the computing one only reads.
use crate::run::run;
use crate::view::{total, Counts};

const SIZE: u64 = 48;
const STEPS: u64 = 20;
const WRITES: Counts = (0, SIZE * SIZE * SIZE);
const READS: Counts = (STEPS * (SIZE - 2) * (SIZE - 2) * (SIZE - 2), 0);

fn check(options: &str, expected: Counts) {
    let line = format!("ondes -p {SIZE} {STEPS}");
    let p = run(&line).with(options).profile();
    assert_eq!(total(&p, "speed"), expected, "{options}");
}

#[test]
fn parts_of_a_run() {
    check("--slice 10ms", (READS.0, WRITES.1));
    check("--only-functions main._omp_fn.0", WRITES);
    check("--only-functions main._omp_fn.1", READS);
    check(
        "--only-functions main._omp_fn.0,main._omp_fn.1",
        (READS.0, WRITES.1),
    );
    check("--from main._omp_fn.1", READS);
    check("--until main._omp_fn.1", WRITES);
}
