//! Programs that were really traced.
use crate::common::{status, text, workload, Place, HITHER};
use serde_json::Value;

/// Three programs on two machines in one command, all eight placements.
#[test]
fn three_programs_on_two_machines() {
    let place = Place::new();
    let trace = |name: &str, command: &str| {
        let line =
            format!("OMP_NUM_THREADS=8 {HITHER} trace -q --bursts 2ms/20ms -o {name} -- {command}");
        let out = place.shell(&line);
        assert_eq!(status(&out), 0, "{line}: {}", text(&out.stderr));
    };
    trace("stencil", &format!("{} 128 20", workload("stencil2d")));
    trace("ondes", &format!("{} 24 6", workload("ondes")));
    trace("ring", &format!("{} 8 60 64", workload("ring")));
    let line = format!("{HITHER} sim stencil.hither ondes.hither ring.hither --topology xeon-x7550x4,epyc-9654x2-nps1 --accesses 20k --seeds 2 -o all");
    let out = place.shell(&line);
    let shown = text(&out.stdout);
    assert_eq!(status(&out), 0, "{}{shown}", text(&out.stderr));
    let stored = std::fs::read_to_string(place.path("all.sim.json")).expect("a prediction");
    let found: Value = serde_json::from_str(&stored).expect("JSON");
    let comparisons = found["comparisons"].as_array().expect("comparisons");
    assert_eq!(comparisons.len(), 6);
    assert_eq!(shown.matches("Verdict: ").count(), 6, "{shown}");
    for comparison in comparisons {
        let placements = comparison["placements"].as_array().expect("placements");
        assert_eq!(placements.len(), 8);
        for placement in placements {
            let amounts = &placement["amounts"];
            let of = |key: &str| amounts[key].as_f64().expect("a number");
            assert!(
                of("time") > 0.0 && of("instructions") >= of("accesses") * 0.3,
                "{placement}"
            );
            assert!(of("ipc") > 0.0 && of("ipc") < 8.0, "{placement}");
        }
    }
}

/// Ranks are processes: what they share has one address in the simulation, so that it costs more
/// the farther they are from one another.
#[test]
fn ranks_share_their_messages() {
    let program = workload("mpi_ring");
    let place = Place::new();
    if !std::path::Path::new(&program).exists() || status(&place.shell("command -v mpirun")) != 0 {
        return println!("skipped: no mpirun here, or workloads/Makefile left mpi_ring out");
    }
    let mpirun = "mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none -np 2";
    // Of a run of less than a second there are too few windows for invalidations to be in one.
    let line =
        format!("{mpirun} {HITHER} trace -q --bursts 5ms/50ms -o ranks -- {program} 60000 512");
    let out = place.shell(&line);
    assert_eq!(status(&out), 0, "{line}: {}", text(&out.stderr));
    let line = format!("{HITHER} sim ranks.hither --topology xeon-x7550x4 --policy scatter,locality --accesses 500k --json");
    let out = place.shell(&line);
    assert_eq!(status(&out), 0, "{}", text(&out.stderr));
    let found: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let forecast = &found["comparisons"][0];
    let amounts = |at: usize| &forecast["placements"][at]["amounts"];
    let traffic = |at: usize| -> f64 {
        let links = amounts(at)["link_bytes"].as_array().expect("links");
        links.iter().filter_map(Value::as_f64).sum()
    };
    // A package each, or both in one: then the cache that they share serves them.
    let (apart, together) = (traffic(0), traffic(1));
    assert!(
        apart > 10_000.0 && together < apart / 10.0,
        "{apart} {together}"
    );
    for at in [0, 1] {
        let taken = amounts(at)["invalidations"].as_f64();
        assert!(taken > Some(100.0), "{taken:?}");
    }
}
