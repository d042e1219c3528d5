//! The mapping algorithm of SPCD (Diener, Cruz, Navaux: Communication-Based Mapping Using
//! Shared Pages, IPDPS 2013, section IV.B): threads are paired by a matching of maximum
//! weight (Edmonds), pairs are paired the same way with the communication
//!
//!   H((x,y),(z,k)) = M(x,z) + M(x,k) + M(y,z) + M(y,k)                      (eq. 1)
//!
//! and so on up to the machine. A level with more than two children takes several rounds. A
//! part that has no partner of its kind waits for the next round, so a level with three
//! children holds a pair and one more.
//!
//! Weights are never negative, so a maximum matching over the pairs that communicate at all,
//! filled up with those that do not, is a perfect one of maximum weight.
use super::grouping_shape::{ElementGroups, GroupArity, GroupingShape, GroupingStage};
use super::slots::{slots, SlotDistribution};
use super::ThreadPolicy;
use crate::map::{PuAssignment, ThreadProblem};
use integer_blossom::{max_weight_matching, Weight};

pub struct MatchingPolicy;

/// Most elements matched at once: time grows with the third power of it, memory with the
/// second (3 s, 70 MB). Parts that communicate directly or through others are cut at their
/// lightest pairs to this size; up to here the matching is exact.
const MOST_ELEMENTS: usize = 1024;

type MatchingEdge = (usize, usize, u64);

impl ThreadPolicy for MatchingPolicy {
    fn name(&self) -> &'static str {
        "matching"
    }

    fn about(&self) -> &'static str {
        "pairs the threads that communicate most, then pairs of pairs, and so on (SPCD)"
    }

    fn place(&self, problem: &ThreadProblem) -> Result<PuAssignment, String> {
        let slots = slots(problem, SlotDistribution::Packed)?;
        let shape = GroupingShape::new(problem.tree, &slots, GroupArity::Two);
        Ok(shape.assign_units(problem.comm, matched_pairs))
    }
}

/// As many pairs as the stage wants. Where it wants fewer than communicate, the heaviest of
/// the matching; where more, any that fit, in order.
fn matched_pairs(stage: &GroupingStage) -> ElementGroups {
    let (first, second) = (stage.parts[0], stage.parts[1]);
    let fit = |a: usize, b: usize| {
        let classes = (stage.class[a], stage.class[b]);
        classes == (first, second) || classes == (second, first)
    };
    let mut edges: Vec<MatchingEdge> = stage.comm.pairs().filter(|e| fit(e.0, e.1)).collect();
    heaviest_first(&mut edges);
    let mut pairs = heaviest_matching(stage.class.len(), &edges);
    heaviest_first(&mut pairs);
    pairs.truncate(stage.groups);
    let mut groups: ElementGroups = pairs.iter().map(|&(a, b, _)| vec![a, b]).collect();
    let mut free = vec![true; stage.class.len()];
    for &element in groups.iter().flatten() {
        free[element] = false;
    }
    let left = |class: usize| {
        let elements = stage.class.iter().zip(&free).enumerate();
        elements.filter_map(move |(at, (&c, &free))| (free && c == class).then_some(at))
    };
    let missing = stage.groups - groups.len();
    if first == second {
        let left: Vec<usize> = left(first).collect();
        groups.extend(left.chunks_exact(2).take(missing).map(<[usize]>::to_vec));
    } else {
        let silent = left(first).zip(left(second)).take(missing);
        groups.extend(silent.map(|(a, b)| vec![a, b]));
    }
    groups.sort_unstable();
    groups
}

fn heaviest_first(pairs: &mut [MatchingEdge]) {
    pairs.sort_unstable_by_key(|&(a, b, events)| (std::cmp::Reverse(events), a, b));
}

/// A matching of maximum weight over `edges`, the heaviest of which come first.
fn heaviest_matching(elements: usize, edges: &[MatchingEdge]) -> Vec<MatchingEdge> {
    let piece = connected_pieces(elements, edges);
    let mut inside: Vec<Vec<MatchingEdge>> = vec![Vec::new(); elements];
    for &edge in edges.iter().filter(|e| piece[e.0] == piece[e.1]) {
        inside[piece[edge.0]].push(edge);
    }
    let mut matched: Vec<MatchingEdge> = inside
        .iter()
        .flat_map(|edges| exact_matching(edges))
        .collect();
    let mut free = vec![true; elements];
    for &(a, b, _) in &matched {
        (free[a], free[b]) = (false, false);
    }
    for &edge in edges {
        if free[edge.0] && free[edge.1] {
            (free[edge.0], free[edge.1]) = (false, false);
            matched.push(edge);
        }
    }
    matched
}

/// For each element the piece it is in: what is joined by edges, taken from the heaviest on
/// as long as no piece gets too large.
fn connected_pieces(elements: usize, edges: &[MatchingEdge]) -> Vec<usize> {
    let mut above: Vec<usize> = (0..elements).collect();
    let mut size = vec![1; elements];
    for &(a, b, _) in edges {
        let (a, b) = (find_root(&mut above, a), find_root(&mut above, b));
        if a != b && size[a] + size[b] <= MOST_ELEMENTS {
            let (small, large) = if size[a] < size[b] { (a, b) } else { (b, a) };
            above[small] = large;
            size[large] += size[small];
        }
    }
    (0..elements).map(|at| find_root(&mut above, at)).collect()
}

fn find_root(above: &mut [usize], mut at: usize) -> usize {
    while above[at] != at {
        above[at] = above[above[at]];
        at = above[at];
    }
    at
}

fn exact_matching(edges: &[MatchingEdge]) -> Vec<MatchingEdge> {
    let mut elements: Vec<usize> = edges.iter().flat_map(|e| [e.0, e.1]).collect();
    elements.sort_unstable();
    elements.dedup();
    let at = |element| elements.partition_point(|&e| e < element);
    let edges: Vec<MatchingEdge> = edges.iter().map(|e| (at(e.0), at(e.1), e.2)).collect();
    // The solver doubles weights and wants all differences below an eighth of the type.
    let small = edges.iter().all(|e| e.2 < 1 << 58);
    let matched = if small {
        solve_blossom(elements.len(), &edges, |events| events as i64)
    } else {
        solve_blossom(elements.len(), &edges, i128::from)
    };
    matched
        .into_iter()
        .map(|(a, b, events)| (elements[a], elements[b], events))
        .collect()
}

fn solve_blossom<W: Weight>(
    n: usize,
    edges: &[MatchingEdge],
    weight: impl Fn(u64) -> W,
) -> Vec<MatchingEdge> {
    let mut matrix = vec![W::ZERO; n * n];
    for &(a, b, events) in edges {
        matrix[a * n + b] = weight(events);
        matrix[b * n + a] = weight(events);
    }
    let mate = max_weight_matching(&matrix, n);
    let chosen = edges.iter().filter(|e| mate[e.0] == Some(e.1));
    chosen.copied().collect()
}
