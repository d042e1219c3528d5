//! Why an access counts as remote: the page that it goes to lies on another node than the one its
//! thread runs on. Every figure of remote accesses or fetches that goes by where pages are is counted by
//! this, of a profile as of a placement, of page faults and in simulation; where threads run and pages
//! are is the caller's to say ([`crate::metrics::residence`] says it for profiles). What is remote wherever
//! a page is, the least that any placement leaves, is 1 - E_app (OPT eq. 6); findings about sharing
//! state that.
//!
//! ```text
//!   local  = sum over p of MemAcc[p][h(p)]     remote = all accesses - local
//! ```
//! with MemAcc\[p\]\[n\], the accesses to page p from node n (OPT eq. 5), and h(p), its node.
use hither_profile::NodeIx;
use std::iter::Sum;
use std::ops::AddAssign;

/// Whether an access from a node to memory on the node `home` is remote.
#[must_use]
pub fn is_remote(from: NodeIx, home: NodeIx) -> bool {
    from != home
}

/// Accesses or fetches, by whether they are remote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessLocality {
    /// To memory of the node they come from.
    pub local: u128,
    /// To another node's memory.
    pub remote: u128,
}

impl AccessLocality {
    /// Of a page on the node `home`, by the accesses from each node.
    #[must_use]
    pub fn of_page(by_node: &[u64], home: NodeIx) -> Self {
        let all = by_node.iter().map(|n| u128::from(*n)).sum();
        AccessLocality::of_all(all, by_node[home.at()].into())
    }

    /// Of all accesses to a page, of which those from its node are local.
    #[must_use]
    pub fn of_all(all: u128, local: u128) -> Self {
        let remote = all - local;
        AccessLocality { local, remote }
    }

    /// Counts accesses from a node to a page on the node `home`.
    pub fn count(&mut self, from: NodeIx, home: NodeIx, accesses: u64) {
        match is_remote(from, home) {
            true => self.remote += u128::from(accesses),
            false => self.local += u128::from(accesses),
        }
    }

    /// Local and remote.
    #[must_use]
    pub fn all(self) -> u128 {
        self.local + self.remote
    }

    /// `None` without accesses.
    #[must_use]
    pub fn local_share(self) -> Option<f64> {
        self.share(self.local)
    }

    /// `None` without accesses.
    #[must_use]
    pub fn remote_share(self) -> Option<f64> {
        self.share(self.remote)
    }

    fn share(self, part: u128) -> Option<f64> {
        (self.all() > 0).then(|| part as f64 / self.all() as f64)
    }
}

impl AddAssign for AccessLocality {
    fn add_assign(&mut self, other: Self) {
        self.local += other.local;
        self.remote += other.remote;
    }
}

impl Sum for AccessLocality {
    fn sum<I: Iterator<Item = Self>>(pages: I) -> Self {
        pages.fold(AccessLocality::default(), |mut sum, page| {
            sum += page;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_from_another_node_than_the_pages_are_remote() {
        let page = |by_node: &[u64], home| AccessLocality::of_page(by_node, NodeIx(home));
        let (local, remote) = (30, 12);
        assert_eq!(page(&[5, 30, 7], 1), AccessLocality { local, remote });
        let mut counted = AccessLocality::default();
        for (from, accesses) in [(0, 5), (1, 30), (2, 7)] {
            counted.count(NodeIx(from), NodeIx(1), accesses);
        }
        assert_eq!(counted, AccessLocality { local, remote });
        let both: AccessLocality = [page(&[5, 30, 7], 1), page(&[0, 0, 8], 0)]
            .into_iter()
            .sum();
        assert_eq!((both.local, both.remote, both.all()), (30, 20, 50));
        assert_eq!(both.remote_share(), Some(0.4));
        assert_eq!(both.local_share(), Some(0.6));
        assert_eq!(page(&[0, 0], 0).remote_share(), None);
    }
}
