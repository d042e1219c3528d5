//! What threads bring in from memory: fetches where the profile has enough of them, else accesses.
//!
//! A page's fetches are those of one of its lines that is followed (docs/metrics.md, "What is
//! counted"), so they say how much traffic the page has, but not which part of it is whose. That is
//! taken from the accesses. With F\[p\] and A\[p\]\[t\] the fetches of page p and thread t's accesses
//! to it:
//!
//! ```text
//!   traffic[p][t] = F[p] x A[p][t] / sum over t of A[p][t]
//! ```
use super::belonging::PageBelonging;
use super::page_access::PageAccessTable;
use super::page_id::PageSize;
use hither_profile::{Object, Profile, TrafficUnit};
use serde::Serialize;
use std::sync::Arc;

/// Fetches of a run from which shares go by them. One line in 64 is followed, so these are a hundred
/// that were seen: a relative standard error of 10 %.
pub const LEAST_FETCHES: u64 = 6400;

/// E_app and first touch weighted with the memory traffic of each page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PageTraffic {
    /// E_app with the threads where that of accesses is highest.
    pub best: f64,
    /// E_app with the threads where that of accesses is lowest.
    pub worst: f64,
    /// What `best` would be if all nodes used every page by their share of the work (`belonging.rs`).
    pub by_work: f64,
    /// `best` less what does not last: another node uses the page most at another time (`lasting_use.rs`).
    pub lasting: f64,
    /// Acc_app and local of first touch.
    pub first_touch: Option<TrafficAccuracy>,
}

impl PageTraffic {
    /// Whether pages belong to one node each.
    #[must_use]
    pub fn belongs(&self) -> bool {
        PageBelonging {
            app: self.best,
            by_work: self.by_work,
            lasting: self.lasting,
        }
        .belongs()
    }
}

/// First touch weighted with the memory traffic of each page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TrafficAccuracy {
    /// Acc_app (OPT eq. 9).
    pub app: f64,
    /// The share that first touch makes local.
    pub local: f64,
    /// The share that it leaves remote.
    pub remote: f64,
}

/// What the fetches of a profile suffice for.
#[must_use]
pub fn traffic_unit(profile: &Profile) -> TrafficUnit {
    match all_fetches(profile) {
        Some(fetches) if fetches >= LEAST_FETCHES => TrafficUnit::Fetches,
        _ => TrafficUnit::Accesses,
    }
}

/// Fetches of the run; `None` where they were not counted.
#[must_use]
pub fn all_fetches(profile: &Profile) -> Option<u64> {
    let sum = || {
        let rows = profile.pages.rows().map(|p| p.fetches);
        rows.fold(0, u64::saturating_add)
    };
    profile.meta.has_fetches().then(sum)
}

/// The larger of an object's shares, of these accesses and, where they are enough, of these fetches: a stack
/// may have most of the accesses and no traffic, an array that is swept most of the traffic and few accesses.
#[must_use]
pub fn larger_share(object: &Object, accesses: u64, fetches: Option<u64>) -> f64 {
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let of_accesses = share(object.reads.saturating_add(object.writes), accesses);
    let enough = fetches.filter(|&all| all >= LEAST_FETCHES);
    of_accesses.max(enough.map_or(0.0, |all| share(object.fetches, all)))
}

/// The traffic to each page by thread, in the positions of the table of accesses.
#[must_use]
pub fn traffic_table(
    profile: &Profile,
    accesses: &Arc<PageAccessTable>,
    size: PageSize,
) -> Arc<PageAccessTable> {
    match traffic_unit(profile) {
        TrafficUnit::Accesses => Arc::clone(accesses),
        TrafficUnit::Fetches => {
            Arc::new(accesses.scaled_to(&page_fetches(profile, accesses, size)))
        }
    }
}

/// F by position of the table.
fn page_fetches(profile: &Profile, table: &PageAccessTable, size: PageSize) -> Vec<u64> {
    let mut fetches = vec![0u64; table.len()];
    let mut at = 0;
    let parts = size.parts(&profile.pages, &profile.regions);
    for row in parts.filter(|row| row.fetches > 0) {
        let id = size.page_of(&profile.regions, row.region, row.page);
        // Rows of one page follow one another.
        if at >= table.len() || table.id(at) != id {
            at = table.page_range(id, id).start;
        }
        if at < table.len() && table.id(at) == id {
            fetches[at] = fetches[at].saturating_add(row.fetches);
        }
    }
    fetches
}
