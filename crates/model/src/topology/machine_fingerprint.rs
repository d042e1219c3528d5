//! Which machine a placement is for. Two machines of one fingerprint number the same
//! units, cores, caches and nodes in the same way, so a placement means the same on both.
use super::TopologyTree;
use hither_profile::MachineIdentity;
use std::fmt::Write;

/// The identity of a machine, from the tree of all its units; `name` is for people.
#[must_use]
pub fn fingerprint_of(whole: &TopologyTree, name: &str) -> MachineIdentity {
    let cores = whole.units.iter().map(|u| u.core + 1).max().unwrap_or(0);
    MachineIdentity {
        name: name.to_owned(),
        fingerprint: format!("{:016x}", fnv1a(canonical_description(whole).as_bytes())),
        units: whole.units.len() as u32,
        cores,
        nodes: whole.nodes.iter().map(|n| n.os).collect(),
    }
}

/// All that tells machines apart. Memory sizes do not belong to it: they differ from boot
/// to boot.
fn canonical_description(tree: &TopologyTree) -> String {
    let mut text = String::new();
    for vertex in &tree.vertices {
        // Writing to a String does not fail.
        let _ = write!(text, "{:?}{:?};", vertex.units, vertex.levels);
    }
    for unit in &tree.units {
        let _ = write!(text, "{}:{}:{};", unit.os, unit.core, unit.node);
    }
    for node in &tree.nodes {
        let _ = write!(text, "n{};", node.os);
    }
    text
}

/// FNV-1a, 64 bits: the same on every machine and in every version of Rust, which the
/// standard hasher does not promise.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hashes() {
        // From the algorithm's reference vectors.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn machines_are_told_apart() {
        let of = |description: &str| {
            let topology = crate::topology::load(description).expect("a topology");
            let tree = TopologyTree::new(&topology, |_| true).expect("units");
            fingerprint_of(&tree, description)
        };
        let names = [
            "pack:2 core:2 pu:1",
            "pack:2 core:2 pu:2",
            "pack:2 l3:1 core:2 pu:1",
            "node:2 core:2 pu:1",
            "core:4 pu:1",
            "core:2 pu:2",
        ];
        let all: std::collections::BTreeSet<String> =
            names.iter().map(|n| of(n).fingerprint).collect();
        assert_eq!(all.len(), names.len());
        assert_eq!(of(names[0]), of(names[0]));
        assert_eq!((of(names[1]).units, of(names[1]).cores), (8, 4));
    }
}
