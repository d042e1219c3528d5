//! Fitting a placement to the one that threads have now: subtrees of one shape below the same
//! vertex are interchangeable, so what is placed below them may be exchanged at no cost until
//! most threads are where they already were.
use super::search_space::{SearchSpace, NO_VERTEX};
use super::subtrees::shape_numbers;

/// Exchanges children of each vertex, from the root down, greedily by the threads that stay.
pub fn relabel_to_current(space: &SearchSpace, anchors: &mut [u32], current: &[u32]) {
    let kind = shape_numbers(space);
    for v in 0..space.len() {
        let vertex = &space.vertex[v];
        if vertex.children.len() > 1 && vertex.cell != NO_VERTEX {
            exchange_children(space, v, &kind, anchors, current);
        }
    }
}

fn exchange_children(
    space: &SearchSpace,
    v: usize,
    kind: &[u32],
    anchors: &mut [u32],
    current: &[u32],
) {
    let children = &space.vertex[v].children;
    let k = children.len();
    // Children are in order, so the one that covers an anchor is the last that starts before it.
    let child = |anchor: u32| {
        let inside = anchor > v as u32 && anchor < space.vertex[v].end;
        let at = children.partition_point(|&c| c <= anchor);
        (inside && at > 0).then(|| at - 1)
    };
    let mut stay = vec![0u32; k * k];
    for (&new, &old) in anchors.iter().zip(current) {
        if let (Some(a), Some(b)) = (child(new), child(old)) {
            stay[a * k + b] += 1;
        }
    }
    let mut pairs: Vec<(u32, usize, usize)> = (0..k * k).map(|i| (stay[i], i / k, i % k)).collect();
    // Most first; what stays anyway before what does not.
    pairs.sort_by_key(|&(n, a, b)| (std::cmp::Reverse(n), a != b, a, b));
    let (mut goes, mut taken) = (vec![None; k], vec![false; k]);
    for (_, a, b) in pairs {
        let same = kind[children[a] as usize] == kind[children[b] as usize];
        if same && goes[a].is_none() && !taken[b] {
            goes[a] = Some(b);
            taken[b] = true;
        }
    }
    for anchor in anchors.iter_mut() {
        if let Some(a) = child(*anchor) {
            let b = goes[a].unwrap_or(a);
            *anchor = *anchor - children[a] + children[b];
        }
    }
}
