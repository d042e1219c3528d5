//! Whether the node that uses a page most goes on to do so.
//!
//! E_page (OPT eq. 5) is large where a page has few uses, whoever makes them: of four by chance from two nodes,
//! one node makes 69 % in the mean. So the uses of a page in its page slices, A\[k\]\[n\] by node n in the k-th in which it
//! is used, are held against each other. The first is left out, as data are initialised in it; of the others every
//! other one, X, says who uses the page most, and the rest, Y, how much that node has, and the other way round:
//!
//! ```text
//!   X[n] = sum over odd k of A[k][n],  Y[n] = sum over even k > 0 of A[k][n]
//!   lasting = (Y[argmax X] + X[argmax Y]) / max over n of (X[n] + Y[n]), at most 1
//! ```
//! 1 where a node keeps a page, 1/N or so where nodes use it by turns. E_app less what does not last is the sum of
//! the pages' E_page, each times its lasting part (ours).
use super::exclusivity::accesses_per_node;
use super::page_access::PageAccessTable;
use super::page_id::PageSize;
use super::placement_accuracy::rows_by_page_slice;
use hither_profile::{NodeIx, Profile};

/// Page slices in which a page is used, from which it shows: two of each kind, and the first. Ours.
const LEAST_SLICES: u32 = 5;
/// Counts by page and node that are kept, half a gigabyte. With more, all uses last.
const MOST_CELLS: usize = 1 << 26;

/// Of each page of the table by position, the part of what the node has that uses it most which lasts; none where time
/// was not told apart.
pub fn lasting_use(
    profile: &Profile,
    (table, size): (&PageAccessTable, PageSize),
    nodes: usize,
    node_of: &[NodeIx],
) -> Vec<f32> {
    let by_slice = rows_by_page_slice(profile);
    if by_slice.len() < LEAST_SLICES as usize || table.len() > MOST_CELLS / nodes.max(1) {
        return Vec::new();
    }
    let mut slices = vec![0u32; table.len()];
    let mut halves = vec![[0f32; 2]; table.len() * nodes];
    let mut per_node = vec![0; nodes];
    for rows in by_slice.into_values() {
        let now = PageAccessTable::from_rows(&rows, &profile.regions, size);
        let mut at = 0;
        for page in 0..now.len() {
            // Both are in order.
            while at < table.len() && table.id(at) < now.id(page) {
                at += 1;
            }
            if at == table.len() || table.id(at) != now.id(page) {
                continue;
            }
            accesses_per_node(now.uses(page), node_of, &mut per_node);
            let k = slices[at];
            slices[at] += 1;
            let cells = halves[at * nodes..].iter_mut().zip(&per_node);
            cells
                .filter(|_| k > 0)
                .for_each(|(cell, n)| cell[(k % 2) as usize] += *n as f32);
        }
    }
    let pages = slices.iter().zip(halves.chunks(nodes));
    let lasting = pages.map(|(&slices, cells)| match slices {
        few if few < LEAST_SLICES => 1.0,
        _ => lasting_part(cells),
    });
    lasting.collect()
}

fn lasting_part(cells: &[[f32; 2]]) -> f32 {
    let most = |of: &dyn Fn(&[f32; 2]) -> f32| {
        let best = cells.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
        best.copied().unwrap_or_default()
    };
    let (by_even, by_odd) = (most(&|c| c[0]), most(&|c| c[1]));
    let both = |c: &[f32; 2]| c[0] + c[1];
    let all = both(&most(&both));
    match all {
        0.0 => 1.0,
        _ => ((by_even[1] + by_odd[0]) / all).min(1.0),
    }
}
