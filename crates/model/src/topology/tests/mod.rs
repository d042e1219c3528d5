use super::*;

#[test]
fn synthetic_machines_have_what_they_say() {
    let check = |text: &str, nodes, units, caches| {
        let t = load(text).unwrap();
        assert_eq!(
            (t.node_count(), t.pu_count(), t.cache_bytes()),
            (nodes, units, caches),
            "{text}"
        );
    };
    check("node:4 core:8 pu:2", 4, 64, 0);
    check("pack:2 [numa(memory=1073741824)] core:2 pu:2", 2, 8, 0);
    // Two sockets with an 8 MiB L3 each, two cores with 256 KiB L2 in each: 16 MiB + 1 MiB.
    check(
        "pack:2 node:1 l3:1(size=8388608) l2:2(size=262144) pu:1",
        2,
        4,
        (16 << 20) + (1 << 20),
    );
}

#[test]
fn nonsense_is_refused_with_a_sentence() {
    let check = |text: &str, part: &str| {
        let message = load(text).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    };
    check("no-such-thing", "nor a file");
    check("node:banana", "nor a file");
    check("missing.xml", "cannot read");
    check("node:1000000 core:1000000 pu:4", "more than 65536");
    check("node:99999999999999999999", "nor a file");
    check("node:0x1000000 pu:1", "nor a file");
    check("", "nor a file");
    check("node:4\0core:2", "nor a file");
}

#[test]
fn a_file_that_is_not_a_topology_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let check = |content: &[u8], part: &str| {
        let file = dir.path().join("x.xml");
        std::fs::write(&file, content).unwrap();
        let message = load(file.to_str().unwrap()).unwrap_err().to_string();
        assert!(message.contains(part), "{message}");
    };
    let none = "is not hwloc XML";
    check(b"", none);
    check(b"hello", none);
    check(b"\xff\xfe\x00", none);
    check(b"<topology version=\"2.0\"><object type=", none);
    check(
        b"<topology><object type=\"Machine\"></topology>",
        "lstopo -i",
    );
}

#[test]
fn xml_says_the_same_as_the_machine_it_came_from() {
    let before = load("node:2 core:3 pu:2").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("machine.xml");
    std::fs::write(&file, before.export_xml().unwrap()).unwrap();
    let after = load(file.to_str().unwrap()).unwrap();
    assert_eq!((after.node_count(), after.pu_count()), (2, 12));
    let per_node: Vec<usize> = after.allowed_pus_by_node().iter().map(|n| n.1).collect();
    assert_eq!(per_node, [6, 6]);
    assert_eq!(after.nodes_with_pus(), 2);
}

/// hwloc itself falls over some of these.
/// As hwloc itself has written it at some time or on some machine.
#[test]
fn xml_of_other_versions_and_of_memory_without_units_is_read() {
    let whole = load("pack:2 node:1 core:1 pu:1")
        .unwrap()
        .export_xml()
        .unwrap();
    let mut unnumbered = whole.clone();
    while let Some(at) = unnumbered.find(" gp_index=\"") {
        let value = at + " gp_index=\"".len();
        let end = value + unnumbered[value..].find('"').unwrap() + 1;
        unnumbered.replace_range(at..end, "");
    }
    assert_ne!(unnumbered, whole);
    assert_eq!(from_xml(&unnumbered).unwrap().pu_count(), 2);

    let machine = whole.find("type=\"Machine\"").unwrap();
    let end = machine + whole[machine..].find('>').unwrap();
    let around = whole[machine..end].replace("nodeset=\"0x00000003\"", "nodeset=\"0x00000007\"");
    let last = whole.rfind("</object>").unwrap();
    let sets = "cpuset=\"0x0\" complete_cpuset=\"0x0\" nodeset=\"0x00000004\" complete_nodeset=\"0x00000004\"";
    let memory = format!("<object type=\"Group\" {sets} gp_index=\"901\" kind=\"1001\" subkind=\"0\"><object type=\"NUMANode\" os_index=\"2\" {sets} gp_index=\"902\" local_memory=\"4096\"/></object>");
    let more = [
        &whole[..machine],
        &around,
        &whole[end..last],
        &memory,
        &whole[last..],
    ]
    .concat();
    assert_eq!(from_xml(&more).unwrap().node_count(), 3);
}

#[test]
fn of_xml_that_lacks_anything_nothing_falls_over() {
    for machine in [
        "pack:2 node:2 l3:1 core:2 pu:2",
        "core-i9-13900k",
        "xeon-6972p-snc3x2",
    ] {
        let whole = load(machine).unwrap().export_xml().unwrap();
        let same = from_xml(&whole).unwrap();
        assert_eq!(
            same.pu_count(),
            load(machine).unwrap().pu_count(),
            "{machine}"
        );
        for between in ["text", "<!-- comment -->", "<?instruction?>"] {
            let changed = whole.replacen(
                "<object type=\"PU\"",
                &format!("{between}<object type=\"PU\""),
                1,
            );
            assert!(from_xml(&changed).is_none(), "{machine}: {between}");
        }
        let (mut refused, mut tried) = (0, 0);
        for (at, _) in whole.match_indices(" complete_nodeset=").step_by(7) {
            let tag = whole[..at].rfind('<').unwrap();
            let end = tag + whole[tag..].find('>').unwrap();
            // Each attribute of this tag away, or empty, or another's.
            for (start, _) in whole[tag..end].match_indices("=\"") {
                let begin = tag + start;
                let from = whole[..begin].rfind(' ').unwrap();
                let to = begin + 2 + whole[begin + 2..].find('"').unwrap();
                let [before, behind] = [&whole[..from], &whole[to + 1..]];
                let name = &whole[from..begin];
                for value in [
                    "",
                    "=\"\"",
                    "=\"0x0\"",
                    "=\"0xffffffff,0xffffffff\"",
                    "=\"-1\"",
                ] {
                    let changed = match value {
                        "" => format!("{before}{behind}"),
                        _ => format!("{before}{name}{value}{behind}"),
                    };
                    refused += usize::from(from_xml(&changed).is_none());
                    tried += 1;
                }
            }
        }
        assert!(refused > tried / 4, "{machine}: {refused} of {tried}");
    }
}

pub mod rules;
mod selecting;
pub mod trees;
