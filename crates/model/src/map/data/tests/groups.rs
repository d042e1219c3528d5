use super::super::page_groups::*;
use super::*;
use hither_profile::{Object, ObjectIx, ObjectRange, PageUse, Profile, Region};

/// Region 0 has four pages: object 0 ("private") the first page, object 1 ("shared") the
/// next two, object 2 ("halves") the last half of the third and all of the fourth.
fn profile(accesses: [[u64; 2]; 4]) -> Profile {
    let range = |object: u32, offset, length| ObjectRange {
        object: ObjectIx(object),
        region: RegionIx(0),
        offset,
        length,
    };
    let row = |page: usize, thread: usize| PageUse {
        page: PageNo(page as u32),
        thread: ThreadIx(thread as u32),
        reads: accesses[page][thread],
        ..PageUse::default()
    };
    Profile {
        regions: vec![Region {
            size: 4 * 4096,
            ..Region::default()
        }],
        objects: vec![Object::default(); 3],
        object_ranges: vec![
            range(0, 0, 4096),
            range(1, 4096, 6144),
            range(2, 10240, 6144),
        ],
        pages: (0..4).flat_map(|p| [row(p, 0), row(p, 1)]).collect(),
        ..Profile::default()
    }
}

fn with<T>(profile: &Profile, capacity: &[u64], then: impl Fn(&DataProblem) -> T) -> T {
    let boxed = two();
    let pages = PlaceablePages::from_profile(profile, PlacementPageSize::K4);
    then(&DataProblem {
        tree: &boxed.tree,
        cost: &boxed.cost,
        threads: &[0, 1],
        pages: &pages,
        capacity: &room(capacity),
        current: &[],
        fixed: &[],
    })
}

#[test]
fn a_page_belongs_to_every_object_on_it() {
    let p = profile([[1, 1]; 4]);
    let pages = PlaceablePages::from_profile(&p, PlacementPageSize::K4);
    let of = |group| pages_of_group(&p, &pages, group);
    assert_eq!(of(PageGroup::Region(RegionIx(0))), [0, 1, 2, 3]);
    assert_eq!(of(PageGroup::Object(ObjectIx(1))), [1, 2]);
    assert_eq!(of(PageGroup::Object(ObjectIx(2))), [2, 3]);
    assert!(of(PageGroup::Object(ObjectIx(9))).is_empty());
}

/// Pages on nodes 0, 1, 0, 1: the region has two pages on each; "shared" 4096 bytes on node
/// 1 and 2048 on node 0; "halves" 2048 on node 0 and 4096 on node 1.
#[test]
fn shares_count_bytes_per_node() {
    let p = profile([[1, 1]; 4]);
    let pages = PlaceablePages::from_profile(&p, PlacementPageSize::K4);
    let got = group_shares(&p, &pages, &[0, 1, 0, 1].map(NodeIx), 2);
    let expected = [
        (PageGroup::Region(RegionIx(0)), [8192, 8192]),
        (PageGroup::Object(ObjectIx(0)), [4096, 0]),
        (PageGroup::Object(ObjectIx(1)), [2048, 4096]),
        (PageGroup::Object(ObjectIx(2)), [2048, 4096]),
    ];
    let got: Vec<_> = got
        .iter()
        .map(|s| (s.group, [s.bytes[0], s.bytes[1]]))
        .collect();
    assert_eq!(got, expected);
}

/// Page 0: 9 against 1, one node. Pages 1, 2 together 9 against 10, each owned by another
/// node: by page. Pages 2, 3 as a structure of their own: 5 + 5 against 5 + 4: interleaved.
#[test]
fn structures_get_what_suits_them() {
    let owned = profile([[9, 1], [9, 0], [0, 10], [0, 0]]);
    let groups = vec![vec![0], vec![1, 2], vec![3]];
    let got = with(&owned, &[9, 9], |problem| {
        suggest_decisions(problem, &groups).unwrap()
    });
    use GroupDecision::*;
    assert_eq!(got, [OneNode, PerPage, PerPage]);
    let mixed = profile([[1, 1], [1, 1], [5, 5], [5, 4]]);
    let got = with(&mixed, &[9, 9], |problem| {
        suggest_decisions(problem, &[vec![2, 3]]).unwrap()
    });
    assert_eq!(got, [Interleave]);
}

/// "private" on one node: 4 + 9 against 6 + 0 accesses, so both pages go to node 0 although
/// page 0 alone would not. Pages 2 and 3 in turn; then nothing is left to the policy.
#[test]
fn rules_decide_for_all_pages_of_a_group() {
    let p = profile([[4, 6], [9, 0], [9, 0], [9, 0]]);
    let rule = |pages: &[usize], decision| GroupRule {
        pages: pages.to_vec(),
        decision,
    };
    let force_with =
        |capacity: &[u64], rules: &[GroupRule]| with(&p, capacity, |x| apply_rules(x, rules));
    let rules = [
        rule(&[0, 1], GroupDecision::OneNode),
        // Page 1 has its rule already.
        rule(&[1, 2, 3], GroupDecision::Interleave),
    ];
    let fixed = force_with(&[9, 9], &rules).unwrap();
    assert_eq!(fixed, [0, 0, 0, 1].map(|n| Some(NodeIx(n))));
    // Node 0 has room for one page only: the pair goes to node 1, which has room for both.
    let fixed = force_with(&[1, 3], &rules[..1]).unwrap();
    assert_eq!(fixed, [Some(NodeIx(1)), Some(NodeIx(1)), None, None]);
    let message = force_with(&[2, 2], &[rule(&[0, 1, 2], GroupDecision::OneNode)]).unwrap_err();
    assert!(message.contains("12288 bytes"), "{message}");
    // A page left to the policy is not taken by a later rule.
    let by_page = [
        rule(&[0], GroupDecision::PerPage),
        rule(&[0, 1], GroupDecision::OneNode),
    ];
    let fixed = force_with(&[9, 9], &by_page).unwrap();
    assert_eq!(fixed, [None, Some(NodeIx(0)), None, None]);
}

#[test]
fn decisions_have_names() {
    for decision in [
        GroupDecision::OneNode,
        GroupDecision::Interleave,
        GroupDecision::PerPage,
    ] {
        assert_eq!(decision.to_string().parse(), Ok(decision));
    }
    assert!("spread"
        .parse::<GroupDecision>()
        .unwrap_err()
        .contains("interleave"));
}
