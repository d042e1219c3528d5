//! Known answers, worked by hand from the papers' definitions, and properties that follow
//! from them.
mod assignment;
mod communication;
mod evidence;
mod lasting;
mod page_use;
mod phases;
mod report;
mod residence;
mod thread_pairs;
mod verdict_time;

use super::page_access::PageAccessTable;
use super::page_id::PageSize;
use super::MetricsSetup;
use hither_profile::{NodeIx, PageNo, PageUse, RegionIx, SliceIx, ThreadIx};

/// Pages of one region from rows of accesses per thread: `rows[page][thread]`.
fn table(rows: &[&[u64]]) -> PageAccessTable {
    PageAccessTable::from_rows(&uses(0, rows).into(), &[], PageSize::K4)
}

fn uses(slice: u32, rows: &[&[u64]]) -> Vec<PageUse> {
    let cell = |page: usize, thread: usize, reads: u64| PageUse {
        slice: SliceIx(slice),
        region: RegionIx(0),
        page: PageNo(page as u32),
        thread: ThreadIx(thread as u32),
        reads,
        ..PageUse::default()
    };
    let rows = rows.iter().enumerate();
    rows.flat_map(|(p, row)| row.iter().enumerate().map(move |(t, &n)| cell(p, t, n)))
        .collect()
}

fn nodes(of: &[u32]) -> Vec<NodeIx> {
    of.iter().map(|&n| NodeIx(n)).collect()
}

/// With caches that are not known, and pages of 4 KiB.
fn four_nodes() -> MetricsSetup {
    MetricsSetup {
        nodes: 4,
        nodes_from: String::new(),
        cache_bytes: 0,
        page_size: PageSize::K4,
    }
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}
