//! Those who take the place in which ranks of an MPI job meet.
use super::*;
use std::hash::{DefaultHasher, Hash, Hasher};

/// As `trace` names the socket in the abstract name space.
fn socket_name(job: &str, output: &Path) -> String {
    let mut hash = DefaultHasher::new();
    (job.to_owned(), std::path::absolute(output).ok()).hash(&mut hash);
    format!("hither-0-{:016x}", hash.finish())
}

/// A user who takes the name before them does not keep root's ranks from meeting.
#[test]
fn a_squatter_does_not_stop_roots_ranks() {
    let Some(place) = place_of_two() else {
        return;
    };
    let name = socket_name("ompi-squatted", &place.path("p.hither"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/squat.c");
    let built = place.shell(&format!("gcc -O1 -o squat {source}"));
    assert!(built.status.success(), "{}", text(&built.stderr));
    let rank = format!("{HITHER} trace -q -o p -- true");
    let line = format!(
        "setpriv --reuid {STRANGER} --regid {STRANGER} --clear-groups timeout 300 ./squat {name} >there & squatter=$!; \
         timeout 60 sh -c 'until grep -q there there; do sleep 0.1; done' || exit 1; \
         export OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=squatted; \
         {rank} & one=$!; {rank}; two=$?; wait $one && [ $two = 0 ]; done=$?; kill $squatter; exit $done"
    );
    let output = place.shell(&line);
    let told = text(&output.stderr);
    assert_eq!(status(&output), 0, "{told}");
    // The collector of the ranks goes on by itself.
    let folder = place.path("p.hither");
    wait_for("profile", || folder.join("profile.json").exists());
    let profile = hither_profile::read(&folder).expect("a profile");
    assert_eq!(profile.meta.processes.len(), 2, "{:?}", profile.meta.limits);
}
