//! EagerMap and distance.
use super::{machine, tree_of, Case};
use crate::map::PuAssignment;
use crate::rng::Rng;

#[test]
fn eagermap_adds_what_communicates_most_with_the_group() {
    // Cores: 0 is first, 5 has most with it (7 > 4); 1 is the first left, 4 has 6; 2 with 6
    // (5); 3 and 7 are left. Nodes, of A = 0 5, B = 1 4, C = 2 6, D = 3 7:
    //   M(A,D) = M(0,3) + M(0,7) + M(5,3) + M(5,7) = 4 + 0 + 0 + 9 = 13, others with A 0
    // so A D and B C. In order: 0 5 3 7 on units 0 to 3, 1 4 2 6 on 4 to 7.
    let pairs = [
        (0, 3, 4),
        (0, 5, 7),
        (1, 2, 1),
        (1, 4, 6),
        (2, 6, 5),
        (3, 7, 2),
        (5, 7, 9),
    ];
    let case = Case::new(machine("node:2 core:2 pu:2"), 8, &pairs);
    assert_eq!(case.place("eagermap"), [0, 4, 6, 2, 5, 1, 7, 3]);
}

#[test]
fn eagermap_counts_communication_with_all_of_the_group() {
    // A cache of three: 0, then 1 (5 against 4 and 4), then 3 with M(0,3) + M(1,3) =
    // 4 + 2 = 6 against M(0,2) + M(1,2) = 4 + 1 = 5.
    let pairs = [(0, 1, 5), (0, 2, 4), (0, 3, 4), (1, 2, 1), (1, 3, 2)];
    let case = Case::new(machine("node:2 core:3 pu:1"), 6, &pairs);
    assert_eq!(case.place("eagermap"), [0, 1, 3, 2, 4, 5]);
}

#[test]
fn eagermap_spreads_what_does_not_fill_the_machine() {
    // Three threads make three groups on cores and two on nodes, of two and one: 0 with 2.
    let case = Case::new(machine("node:2 core:2 pu:2"), 3, &[(0, 2, 1)]);
    assert_eq!(case.place("eagermap"), [0, 4, 2]);
    // Five threads on four units: the first unit has two of them, 0 and 3.
    let case = Case::new(machine("node:2 core:2 pu:1"), 5, &[(0, 3, 1)]);
    assert_eq!(case.place("eagermap"), [0, 1, 2, 0, 3]);
}

#[test]
fn eagermap_on_an_asymmetric_machine() {
    // Nodes of one and three cores. The node of three is the only group to form: 0 1 3 by
    // 0 3 (5), then 1 (2); 2 is left for the other.
    let tree = tree_of("node:2 core:3 pu:1", |pu| pu == 0 || pu > 2);
    let case = Case::new(tree, 4, &[(0, 3, 5), (1, 3, 2), (2, 3, 1)]);
    assert_eq!(case.place("eagermap"), [1, 3, 0, 2]);
}

#[test]
fn distance_turns_the_matrix_over() {
    // The greatest is 9, so the turned matrix is
    //   (0,1) 4, (0,2) 5, (0,3) 9, (1,2) 9, (1,3) 0, (2,3) 9:
    // 0 takes 3, and 1 has 2. Of 18 events none stay within a core.
    let pairs = [(0, 1, 5), (0, 2, 4), (1, 3, 9)];
    let case = Case::new(machine("core:2 pu:2"), 4, &pairs);
    assert_eq!(case.place("distance"), [0, 2, 3, 1]);
    // eagermap: 0 takes 1, and 2 has 3.
    assert_eq!(case.place("eagermap"), [0, 1, 2, 3]);
}

/// The published algorithm word for word on a whole matrix, for machines of the same arity
/// everywhere and as many threads as units: each element looks at all others and adds up its
/// cells with the group.
fn plainly(matrix: &[Vec<u128>], arities: &[usize]) -> PuAssignment {
    let threads = matrix.len();
    let mut groups: Vec<Vec<usize>> = (0..threads).map(|t| vec![t]).collect();
    for &arity in arities {
        let mut chosen = vec![false; groups.len()];
        let mut above: Vec<Vec<usize>> = Vec::new();
        for _ in 0..groups.len() / arity {
            let mut group: Vec<usize> = Vec::new();
            for _ in 0..arity {
                let cells = |a: &Vec<usize>| -> u128 {
                    let with = |t: &usize| group.iter().map(|u| matrix[*t][*u]).sum::<u128>();
                    a.iter().map(with).sum()
                };
                let mut winner = None;
                for (at, element) in groups.iter().enumerate().filter(|g| !chosen[g.0]) {
                    if winner.is_none_or(|(_, most)| cells(element) > most) {
                        winner = Some((at, cells(element)));
                    }
                }
                let (winner, _) = winner.unwrap();
                chosen[winner] = true;
                group.extend(&groups[winner]);
            }
            above.push(group);
        }
        groups = above;
    }
    let mut units = vec![0; threads];
    for (&thread, unit) in groups[0].iter().zip(0..) {
        units[thread] = unit;
    }
    units
}

#[test]
fn eagermap_and_distance_are_the_published_algorithm() {
    let mut draw = Rng::for_search(11);
    for round in 0..100 {
        let (text, arities): (&str, &[usize]) = match round % 4 {
            0 => ("node:2 core:2 pu:2", &[2, 2, 2]),
            1 => ("node:4 l3:2 core:3 pu:1", &[3, 2, 4]),
            2 => ("pack:2 node:2 core:1 pu:5", &[5, 2, 2]),
            _ => ("core:7 pu:1", &[7]),
        };
        let tree = machine(text);
        let threads = tree.units.len();
        let most = if round % 3 == 0 { 3 } else { 1 << 40 };
        let all = (0..threads as u32).flat_map(|i| (0..i).map(move |j| (j, i)));
        let pairs: Vec<_> = all.map(|(j, i)| (j, i, draw.below(most) as u64)).collect();
        let mut matrix = vec![vec![0; threads]; threads];
        for &(i, j, events) in &pairs {
            matrix[i as usize][j as usize] = u128::from(events);
            matrix[j as usize][i as usize] = u128::from(events);
        }
        let case = Case::new(tree, threads, &pairs);
        assert_eq!(case.place("eagermap"), plainly(&matrix, arities), "{text}");
        let greatest = *matrix.iter().flatten().max().unwrap();
        let turn = |row: &Vec<u128>| row.iter().map(|cell| greatest - cell).collect();
        let turned: Vec<Vec<u128>> = matrix.iter().map(turn).collect();
        assert_eq!(case.place("distance"), plainly(&turned, arities), "{text}");
    }
}
