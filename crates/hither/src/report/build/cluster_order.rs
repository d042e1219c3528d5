//! An order of threads in which those that communicate most stand side by side.
//!
//! Pairs are taken from the one with the most communication down; each joins the chains that
//! its two threads are in, turned so that the two come as close as they can:
//!
//! ```text
//!   a-b-c  +  d-e   joined by (a, e):   c-b-a-e-d
//! ```
//! Threads that share nothing stay in order of their numbers, behind.

/// Pairs `(i, j, events)` of `threads` threads -> every thread once.
#[must_use]
pub fn cluster_threads(threads: usize, mut pairs: Vec<(u32, u32, u64)>) -> Vec<u32> {
    pairs.sort_by_key(|&(i, j, events)| (std::cmp::Reverse(events), i, j));
    let mut chain_of: Vec<usize> = (0..threads).collect();
    let mut chains: Vec<Vec<u32>> = (0..threads as u32).map(|t| vec![t]).collect();
    for (i, j, _) in pairs {
        let (a, b) = (chain_of[i as usize], chain_of[j as usize]);
        if a == b {
            continue;
        }
        // The shorter chain moves, so that all moves together are few.
        let ((keep, near), (take, far)) = if chains[a].len() >= chains[b].len() {
            ((a, i), (b, j))
        } else {
            ((b, j), (a, i))
        };
        let mut taken = std::mem::take(&mut chains[take]);
        for &thread in &taken {
            chain_of[thread as usize] = keep;
        }
        join_chains(&mut chains[keep], near, &mut taken, far);
    }
    chains.sort_by_key(|chain| std::cmp::Reverse(chain.len().min(2)));
    chains.into_iter().flatten().collect()
}

/// Appends `taken` to `chain` on the side where `near` is, its end with `far` first.
fn join_chains(chain: &mut Vec<u32>, near: u32, taken: &mut [u32], far: u32) {
    let first_half = |chain: &[u32], thread: u32| {
        let at = chain.iter().position(|&t| t == thread).unwrap_or(0);
        at * 2 + 1 < chain.len()
    };
    if taken.len() > 1 && !first_half(taken, far) {
        taken.reverse();
    }
    if chain.len() > 1 && first_half(chain, near) {
        taken.reverse();
        chain.splice(0..0, taken.iter().copied());
    } else {
        chain.extend_from_slice(taken);
    }
}
