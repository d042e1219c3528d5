//! Trees worked by hand.
use super::super::*;

/// All units of a machine for which `usable` (by number) holds.
pub fn tree_of(machine: &str, usable: impl Fn(u32) -> bool) -> TopologyTree {
    TopologyTree::new(&load(machine).unwrap(), usable).unwrap()
}

/// A vertex as `units levels`, its children indented below it.
fn draw(tree: &TopologyTree) -> String {
    let line = |v: &crate::topology::topology_tree::TopologyVertex| {
        let indent = " ".repeat(v.depth as usize);
        let levels: Vec<String> = v.levels.iter().map(|l| format!("{l:?}")).collect();
        let units = match v.units.end - v.units.start {
            1 => v.units.start.to_string(),
            _ => format!("{}-{}", v.units.start, v.units.end - 1),
        };
        format!("{indent}{units} {}\n", levels.join(" "))
    };
    tree.vertices.iter().map(line).collect()
}

fn cores(tree: &TopologyTree) -> Vec<u32> {
    tree.units.iter().map(|u| u.core).collect()
}

fn homes(tree: &TopologyTree) -> Vec<u32> {
    tree.units.iter().map(|u| u.node.0).collect()
}

/// XML of a machine with two packages of one core each, whose nodes have this memory.
fn two_nodes(memory: [u64; 2], distances: &str) -> String {
    let package = |n: usize| {
        let set = 1 << n;
        let sets = format!(
            "cpuset=\"{set:#x}\" complete_cpuset=\"{set:#x}\" nodeset=\"{set:#x}\" complete_nodeset=\"{set:#x}\""
        );
        let memory = memory[n];
        format!(
            "<object type=\"Package\" os_index=\"{n}\" {sets} gp_index=\"{}\">
               <object type=\"NUMANode\" os_index=\"{n}\" {sets} gp_index=\"{}\" local_memory=\"{memory}\"/>
               <object type=\"Core\" os_index=\"{n}\" {sets} gp_index=\"{}\">
                 <object type=\"PU\" os_index=\"{n}\" {sets} gp_index=\"{}\"/>
               </object>
             </object>",
            10 + n,
            20 + n,
            30 + n,
            40 + n
        )
    };
    let sets = "cpuset=\"0x3\" complete_cpuset=\"0x3\" allowed_cpuset=\"0x3\" nodeset=\"0x3\" complete_nodeset=\"0x3\" allowed_nodeset=\"0x3\"";
    format!(
        "<?xml version=\"1.0\"?><topology version=\"2.0\"><object type=\"Machine\" os_index=\"0\" {sets} gp_index=\"1\">{}{}</object>{distances}</topology>",
        package(0),
        package(1)
    )
}

fn from_text(xml: &str) -> Topology {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("machine.xml");
    std::fs::write(&file, xml).unwrap();
    load(file.to_str().unwrap()).unwrap()
}

#[test]
fn levels_with_one_child_are_collapsed() {
    let check = |machine: &str, want: &str| {
        assert_eq!(draw(&tree_of(machine, |_| true)), want, "{machine}")
    };
    check("core:1 pu:1", "0 Machine Node Core Pu\n");
    check(
        "pack:2 [numa(memory=1024)] l3:1 l2:2 l1:1 core:1 pu:1",
        "0-3 Machine
 0-1 Node Package L3
  0 L2 L1 Core Pu
  1 L2 L1 Core Pu
 2-3 Node Package L3
  2 L2 L1 Core Pu
  3 L2 L1 Core Pu
",
    );
    // hwloc merges the group into the L3 and attaches the node to that.
    check(
        "group:2 [numa(memory=1024)] l3:1 core:2 pu:1",
        "0-3 Machine\n 0-1 Node L3\n  0 Core Pu\n  1 Core Pu\n 2-3 Node L3\n  2 Core Pu\n  3 Core Pu\n",
    );
    check(
        "pack:1 core:2 pu:2",
        "0-3 Machine Node Package\n 0-1 Core\n  0 Pu\n  1 Pu\n 2-3 Core\n  2 Pu\n  3 Pu\n",
    );
}

#[test]
fn a_part_of_a_machine_is_asymmetric_and_collapses_further() {
    // Units 0-7 of two packages with two cores with two units; 1, 2, 3 and 6 are left.
    let tree = tree_of("pack:2 [numa(memory=1024)] core:2 pu:2", |os| {
        [1, 2, 3, 6].contains(&os)
    });
    assert_eq!(
        draw(&tree),
        "0-3 Machine
 0-2 Node Package
  0 Core Pu
  1-2 Core
   1 Pu
   2 Pu
 3 Node Package Core Pu
"
    );
    assert_eq!(cores(&tree), [0, 1, 1, 2]);
    assert_eq!(homes(&tree), [0, 0, 0, 1]);
    assert_eq!(
        tree.units.iter().map(|u| u.os).collect::<Vec<_>>(),
        [1, 2, 3, 6]
    );
    assert!(TopologyTree::new(&load("core:2 pu:1").unwrap(), |_| false).is_none());
}

#[test]
fn siblings_are_those_with_the_same_core() {
    let check = |machine: &str, want: &[u32]| assert_eq!(cores(&tree_of(machine, |_| true)), want);
    check("core:2 pu:3", &[0, 0, 0, 1, 1, 1]);
    check("core:3 pu:1", &[0, 1, 2]);
    check("pu:3", &[0, 1, 2]);
    // The kernel numbers siblings last: unit 1 is PU 2, the sibling of PU 0.
    let tree = tree_of("core:2 pu:2(indexes=2*1:2*2)", |_| true);
    assert_eq!(cores(&tree), [0, 0, 1, 1]);
    assert_eq!(
        tree.units.iter().map(|u| u.os).collect::<Vec<_>>(),
        [0, 2, 1, 3]
    );
}

#[test]
fn memory_of_the_whole_machine_is_nobodys_home() {
    let tree = tree_of(
        "[numa(memory=4096)] pack:2 [numa(memory=1024)] core:2 pu:1",
        |_| true,
    );
    assert_eq!(tree.nodes.len(), 3);
    let remote = tree.nodes.iter().find(|n| n.bytes == 4096).unwrap();
    assert!(remote.units.is_empty());
    assert!(tree.units.iter().all(|u| u.node != remote.node));
    // The root is no node: two units of different packages share none.
    assert_eq!(tree.vertices[0].levels, [TopologyLevel::Machine]);
    assert_eq!(
        tree.vertices[1].levels,
        [TopologyLevel::Node, TopologyLevel::Package]
    );
}

#[test]
fn units_of_a_node_without_memory_live_on_the_nearest_with_some() {
    let check = |memory, distances: &str, want: [u32; 2]| {
        let topology = from_text(&two_nodes(memory, distances));
        let tree = TopologyTree::new(&topology, |_| true).unwrap();
        assert_eq!(homes(&tree), want, "{memory:?}");
    };
    check([1024, 1024], "", [0, 1]);
    check([1024, 0], "", [0, 0]);
    check([0, 1024], "", [1, 1]);
    // Nothing is known of memory: all have some.
    check([0, 0], "", [0, 1]);
    let tree = TopologyTree::new(&from_text(&two_nodes([0, 1024], "")), |_| true).unwrap();
    assert_eq!(
        draw(&tree),
        "0-1 Machine\n 0 Package Core Pu\n 1 Node Package Core Pu\n"
    );
}

#[test]
fn nearest_is_what_the_latencies_say() {
    // Three packages, the last without memory and nearer to the second than to the first.
    let mut topology = load("pack:3 [numa(memory=1024)] core:1 pu:1")
        .unwrap()
        .export_xml()
        .unwrap();
    topology = topology.replacen("local_memory=\"1024\"", "local_memory=\"1025\"", 2);
    topology = topology.replacen("local_memory=\"1024\"", "local_memory=\"0\"", 1);
    let matrix = "<distances2 type=\"NUMANode\" nbobjs=\"3\" kind=\"5\" indexing=\"os\">
        <indexes length=\"5\">0 1 2</indexes>
        <u64values length=\"26\">10 20 30 20 10 15 30 15 10</u64values></distances2></topology>";
    let topology = from_text(&topology.replace("</topology>", matrix));
    assert_eq!(
        topology.node_latencies().unwrap(),
        [10, 20, 30, 20, 10, 15, 30, 15, 10]
    );
    assert_eq!(
        homes(&TopologyTree::new(&topology, |_| true).unwrap()),
        [0, 1, 1]
    );
}

#[test]
fn latencies_are_in_the_order_of_nodes() {
    assert_eq!(load("node:2 core:1 pu:1").unwrap().node_latencies(), None);
    let matrix = |order: &str, values: &str| {
        let lengths = (order.len(), values.len());
        format!(
            "<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\" indexing=\"os\"><indexes length=\"{}\">{order}</indexes><u64values length=\"{}\">{values}</u64values></distances2>",
            lengths.0, lengths.1
        )
    };
    let check = |order: &str, values: &str, want: Option<Vec<u32>>| {
        let topology = from_text(&two_nodes([1, 1], &matrix(order, values)));
        assert_eq!(topology.node_latencies(), want, "{order} {values}");
    };
    check("0 1", "10 21 22 11", Some(vec![10, 21, 22, 11]));
    check("1 0", "10 21 22 11", Some(vec![11, 22, 21, 10]));
    check("0 1", "10 9999999999 22 11", None);
}

#[test]
fn hybrid_machines_have_kinds() {
    let topology = load("core-i9-13900k").unwrap();
    let names: Vec<String> = topology.cpu_kinds().into_iter().map(|k| k.name).collect();
    assert_eq!(names, ["IntelAtom", "IntelCore"]);
    let tree = TopologyTree::new(&topology, |_| true).unwrap();
    let kinds: Vec<u32> = tree.units.iter().map(|u| u.kind).collect();
    assert_eq!(kinds, [[1; 16], [0; 16]].concat());
    assert_eq!(load("core:2 pu:2").unwrap().cpu_kinds(), []);
}

#[test]
fn shipped_machines_are_what_they_are_called() {
    let mut checked = Vec::new();
    let mut check = |name: &'static str, units, cores, nodes, caches: u64| {
        let topology = load(name).unwrap();
        let tree = TopologyTree::new(&topology, |_| true).unwrap();
        let got = (
            tree.units.len(),
            tree.core_count(),
            tree.nodes.len(),
            topology.cache_bytes(),
        );
        assert_eq!(got, (units, cores, nodes, caches), "{name}");
        checked.push(name);
    };
    let (kib, mib) = (1 << 10, 1 << 20);
    check(
        "xeon-x7550x4",
        64,
        32,
        4,
        4 * 18 * mib + 32 * (256 + 32) * kib,
    );
    check(
        "xeon-e5-2650x2",
        32,
        16,
        2,
        2 * 20 * mib + 16 * (256 + 32) * kib,
    );
    let genoa = 24 * 32 * mib + 192 * (1024 + 32) * kib;
    check("epyc-9654x2-nps1", 384, 192, 2, genoa);
    check("epyc-9654x2-nps4", 384, 192, 8, genoa);
    check(
        "xeon-6972p-snc3x2",
        384,
        192,
        6,
        2 * 480 * mib + 192 * (2048 + 48) * kib,
    );
    check("grace", 72, 72, 1, 114 * mib + 72 * (1024 + 64) * kib);
    check(
        "grace-superchip",
        144,
        144,
        2,
        2 * 114 * mib + 144 * (1024 + 64) * kib,
    );
    check(
        "zen5-cxl",
        384,
        192,
        3,
        24 * 32 * mib + 192 * (1024 + 48) * kib,
    );
    let raptor = 36 * mib + 8 * (2048 + 48) * kib + 4 * 4 * mib + 16 * 32 * kib;
    check("core-i9-13900k", 32, 24, 1, raptor);
    let table1 = 4 * 2 * mib + 8 * 32 * kib;
    check("locality-balance-table1", 8, 8, 1, table1);
    for machine in shipped_machines() {
        assert!(
            checked.contains(&&*machine.name),
            "{} is not above",
            machine.name
        );
        let latencies = load(&machine.name).unwrap().node_latencies();
        let known = machine
            .latencies
            .map(|l| l.values.iter().map(|v| *v as u32).collect::<Vec<_>>());
        assert_eq!(latencies, known, "{}", machine.name);
    }
}
