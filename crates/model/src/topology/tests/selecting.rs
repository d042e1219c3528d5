//! Which units of a machine may be used.
use super::super::*;

fn listed(pus: &str) -> MachineRestrictions {
    MachineRestrictions {
        pus: Some(pus.parse().unwrap()),
        ..MachineRestrictions::default()
    }
}

fn os(tree: &TopologyTree) -> Vec<u32> {
    tree.units.iter().map(|u| u.os).collect()
}

#[test]
fn lists_of_pus_are_read() {
    let check = |text: &str, want: &[u32]| {
        let list: PuList = text.parse().unwrap();
        assert_eq!(list.iter().collect::<Vec<_>>(), want, "{text}");
        assert!(want.iter().all(|os| list.contains(*os)), "{text}");
        assert!(
            (0..40).all(|os| list.contains(os) == want.contains(&os)),
            "{text}"
        );
        assert_eq!(list.to_string(), text.replace(' ', ""));
    };
    check("0", &[0]);
    check("0-3,8,10-14:2", &[0, 1, 2, 3, 8, 10, 12, 14]);
    check("3,1", &[3, 1]);
    check("0-5:4", &[0, 4]);
    check(" 1, 2-3", &[1, 2, 3]);
    assert!("4294967295".parse::<PuList>().unwrap().contains(u32::MAX));
}

#[test]
fn lists_that_are_none_are_refused() {
    let check = |text: &str| assert!(text.parse::<PuList>().is_err(), "{text}");
    for text in [
        "",
        ",",
        "1,",
        "3-1",
        "a",
        "-1",
        "1-",
        "1-2-3",
        "+1",
        "1:2",
        "0-4:0",
        "4294967296",
    ] {
        check(text);
    }
}

#[test]
fn ranges_are_made_of_numbers() {
    let check = |numbers: &[u32], want: &str| {
        assert_eq!(
            PuList::from_numbers(numbers.iter().copied()).to_string(),
            want
        );
    };
    check(&[0, 1, 2, 5, 7, 8], "0-2,5,7-8");
    check(&[], "");
    check(&[u32::MAX], "4294967295");
}

#[test]
fn only_the_listed_units_are_in_the_tree() {
    let check = |machine: &str, pus: &str, want: &[u32]| {
        let selected = select_machine(Some(machine), &listed(pus)).unwrap();
        assert_eq!(os(&selected.tree), want, "{machine} {pus}");
        assert_eq!(selected.topology.pu_count(), 8);
    };
    check("node:2 core:2 pu:2", "0-7", &[0, 1, 2, 3, 4, 5, 6, 7]);
    check("node:2 core:2 pu:2", "5", &[5]);
    check("node:2 core:2 pu:2", "7,0-2:2", &[0, 2, 7]);
    // Siblings numbered after all cores, as Linux does on Intel and AMD: in the order of the
    // tree, not of the numbers.
    check(
        "node:2 core:2 pu:2(indexes=4*1:2*4)",
        "0-4",
        &[0, 4, 1, 2, 3],
    );
}

#[test]
fn a_list_that_cannot_be_followed_is_refused() {
    let check = |pus: &str, part: &str| {
        let error = select_machine(Some("node:2 core:2 pu:2"), &listed(pus)).unwrap_err();
        assert!(error.to_string().contains(part), "{pus}: {error}");
    };
    check("8", "names 8, which does not exist; this machine has 0-7");
    check("0-4000000000", "names 8, which");
    check("4294967295", "names 4294967295, which");
}

#[test]
fn this_machine_has_units_within_the_affinity_mask() {
    let selected = select_machine(None, &MachineRestrictions::default()).unwrap();
    let mask = nix::unistd::getpid();
    let status = std::fs::read_to_string(format!("/proc/{mask}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    let allowed: PuList = line.unwrap().parse().unwrap();
    assert!(!selected.tree.units.is_empty());
    assert!(os(&selected.tree).iter().all(|os| allowed.contains(*os)));
}

#[test]
fn fast_cores_are_preferred_and_as_many_others_as_needed() {
    let check = |kinds: &str, threads: Option<usize>, pus: Option<&str>, want: &str| {
        let restrictions = MachineRestrictions {
            pus: pus.map(|p| p.parse().unwrap()),
            kinds: kinds.parse().unwrap(),
            threads,
        };
        let selected = select_machine(Some("core-i9-13900k"), &restrictions).unwrap();
        let got = PuList::from_numbers(os(&selected.tree)).to_string();
        assert_eq!(got, want, "{kinds} {threads:?} {pus:?}");
    };
    check("prefer-fast", None, None, "0-15");
    check("prefer-fast", Some(1), None, "0-15");
    check("prefer-fast", Some(8), None, "0-15");
    // Eight fast cores: the ninth thread gets a core of its own, not a sibling.
    check("prefer-fast", Some(9), None, "0-16");
    check("prefer-fast", Some(12), None, "0-19");
    check("prefer-fast", Some(24), None, "0-31");
    check("prefer-fast", Some(1000), None, "0-31");
    check("prefer-fast", Some(2), Some("20-31"), "20-31");
    check("prefer-fast", Some(3), Some("0,1,20-31"), "0-1,20-21");
    check("fast", Some(24), None, "0-15");
    check("efficient", Some(24), None, "16-31");
    check("all", Some(1), None, "0-31");
    check("0", None, None, "16-31");
    check("1", None, None, "0-15");
    check("0,1", None, Some("4,30"), "4,30");
}

#[test]
fn kinds_that_are_not_there_are_refused() {
    let check = |machine: &str, kinds: &str, pus: &str, part: &str| {
        let restrictions = MachineRestrictions {
            kinds: kinds.parse().unwrap(),
            ..listed(pus)
        };
        let error = select_machine(Some(machine), &restrictions).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    };
    check(
        "core-i9-13900k",
        "2",
        "0",
        "no kind of core 2; this machine has 2",
    );
    check(
        "core-i9-13900k",
        "fast",
        "16-31",
        "none of the processing units",
    );
    check(
        "core:2 pu:1",
        "1",
        "0",
        "no kind of core 1; this machine has 1",
    );
    for text in ["", "slow", "0,", "-1"] {
        assert!(text.parse::<CpuKindSelection>().is_err(), "{text}");
    }
    for text in ["prefer-fast", "fast", "efficient", "all", "0,2"] {
        assert_eq!(text.parse::<CpuKindSelection>().unwrap().to_string(), text);
    }
}

#[test]
fn every_kind_of_choice_is_all_there_is_on_a_machine_of_one_kind() {
    for kinds in ["prefer-fast", "fast", "efficient", "all", "0"] {
        let restrictions = MachineRestrictions {
            kinds: kinds.parse().unwrap(),
            ..MachineRestrictions::default()
        };
        let selected = select_machine(Some("core:2 pu:2"), &restrictions).unwrap();
        assert_eq!(os(&selected.tree), [0, 1, 2, 3], "{kinds}");
    }
}
