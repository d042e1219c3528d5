//! hither itself runs on the machine and sees it as it is.
use super::*;

#[test]
fn topo_and_doctor_see_the_nodes() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    let outputs = run_all(&guest, &["hither topo", "hither doctor"]);
    let (topo, doctor) = (outputs[0].text(), outputs[1].text());
    assert_eq!(outputs[0].status, 0, "{}", outputs[0].errors());
    assert!(topo.contains("8 PUs, 8 cores, 4 NUMA nodes"), "{topo}");
    let lines = lines(&topo);
    assert!(lines.iter().any(|l| l == "Node 3 31 21 21 10"), "{topo}");
    let all = "memory on nodes 0-3, allowed 0-3";
    assert!(doctor.contains(all), "{doctor} {}", outputs[1].errors());
}
