//! With whom each thread communicates, and how alike that is at two times. As in SPCD's filter (IPDPS 2013,
//! IV.A) it counts with whom each thread communicates. With `C_b[t]` what thread t communicates in
//! b, and `b_t[j]` the share of it that is with thread j:
//!
//! ```text
//!   overlap(a, b) = sum over t of C_b[t] * (sum over j of min(a_t[j], b_t[j])) / sum over t of C_b[t]
//!                   over the threads that communicate in both; 0: all have other partners, 1: alike
//! ```
//! How much a thread communicates and with whom are told apart by iterative proportional fitting (Deming and Stephan,
//! Annals of Mathematical Statistics 1940), which changes the sums of a table and keeps its odds ratios.
use hither_profile::PairComm;

/// With whom each thread communicates.
#[derive(Default)]
pub struct PartnerShares {
    /// `(thread, partner)` in order, with the share of what the thread communicates.
    pub shares: Vec<((u32, u32), f64)>,
    /// Events by thread.
    pub events: Vec<f64>,
}

impl PartnerShares {
    /// Of [`directed_cells`].
    #[must_use]
    pub fn of_cells(cells: Vec<((u32, u32), f64)>, threads: usize) -> PartnerShares {
        let mut events = vec![0.0; threads];
        cells.iter().for_each(|c| events[c.0 .0 as usize] += c.1);
        let share = |c: ((u32, u32), f64)| (c.0, c.1 / events[c.0 .0 as usize]);
        PartnerShares {
            shares: cells.into_iter().map(share).collect(),
            events,
        }
    }

    /// These partners, had each thread communicated as much as in `other`. Threads that do in one of them only
    /// communicate with nobody.
    #[must_use]
    pub fn with_events_of(&self, other: &PartnerShares) -> PartnerShares {
        let cell =
            |((i, j), share): &((u32, u32), f64)| ((*i, *j), share * self.events[*i as usize]);
        let mut cells: Vec<_> = self.shares.iter().map(cell).collect();
        for step in 0..FITTING_STEPS {
            let thread = |cell: (u32, u32)| [cell.0, cell.1][step % 2] as usize;
            let mut sums = vec![0.0; other.events.len()];
            cells.iter().for_each(|(cell, n)| sums[thread(*cell)] += n);
            for (cell, n) in cells.iter_mut().filter(|(_, n)| *n > 0.0) {
                *n *= other.events[thread(*cell)] / sums[thread(*cell)];
            }
        }
        cells.retain(|(_, n)| *n > 0.0);
        PartnerShares::of_cells(cells, other.events.len())
    }

    /// How alike the partners of `now` are to these, 0 to 1.
    #[must_use]
    pub fn overlap(&self, now: &PartnerShares) -> f64 {
        let (mut alike, mut i, mut j) = (0.0, 0, 0);
        let (a, b) = (&self.shares, &now.shares);
        while i < a.len() && j < b.len() {
            match a[i].0.cmp(&b[j].0) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    alike += now.events[b[j].0 .0 as usize] * a[i].1.min(b[j].1);
                    (i, j) = (i + 1, j + 1);
                }
            }
        }
        let events = now.events.iter().zip(&self.events);
        let known: f64 = events.filter(|(_, p)| **p > 0.0).map(|(n, _)| n).sum();
        // Threads that were silent so far want no other placement than they have.
        if known > 0.0 {
            alike / known
        } else {
            1.0
        }
    }
}

/// Rows and columns are fitted in turn, rows first and last.
const FITTING_STEPS: usize = 21;

/// Events of `(thread, partner)`, in both orders, sorted.
#[must_use]
pub fn directed_cells(rows: &[&PairComm]) -> Vec<((u32, u32), f64)> {
    let both = |c: &&PairComm| {
        [
            ((c.i.0, c.j.0), c.events as f64),
            ((c.j.0, c.i.0), c.events as f64),
        ]
    };
    let mut cells: Vec<_> = rows.iter().flat_map(both).collect();
    cells.sort_unstable_by_key(|c| c.0);
    cells.dedup_by(|next, first| {
        let same = next.0 == first.0;
        if same {
            first.1 += next.1;
        }
        same
    });
    cells
}
