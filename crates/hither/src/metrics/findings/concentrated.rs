//! Most accesses to a structure go to few of its pages (TABARNAC 5.2: the bucket sort's
//! `key_buff1`, a bell curve of accesses over its pages).
use super::common::{about, bytes, fits_in_caches, name, percent};
use super::Case;
use crate::metrics::structures::Structure;
use hither_profile::{Finding, FindingKind, Fix, PAGE_SIZE};

/// Least pages of a structure for its hot ones to be few.
const LEAST_PAGES: usize = 20;
/// The hottest tenth of the pages...
const HOT: f64 = 0.1;
/// ...has at least this share of the accesses.
const MOST: f64 = 0.5;
/// Structures with fewer of the run's accesses are not worth a change.
const LEAST_SHARE: f64 = 0.01;

pub fn find(case: &Case) -> Vec<Finding> {
    if fits_in_caches(case) {
        return Vec::new();
    }
    let structures = case.analysis.report.structures.iter();
    structures.filter_map(|s| judge(case, s)).collect()
}

fn judge(case: &Case, structure: &Structure) -> Option<Finding> {
    let pages = case.analysis.held.get(&structure.object.at())?;
    if pages.len() < LEAST_PAGES || structure.share < LEAST_SHARE {
        return None;
    }
    let table = &case.analysis.table;
    let of = |page: &usize| table.uses(*page).iter().map(|u| u.accesses).sum::<u64>();
    let mut accesses: Vec<u64> = pages.iter().map(of).collect();
    accesses.sort_unstable_by(|a, b| b.cmp(a));
    let hot = (pages.len() as f64 * HOT).ceil() as usize;
    let all: u64 = accesses.iter().sum();
    let share = accesses[..hot].iter().sum::<u64>() as f64 / all.max(1) as f64;
    if share < MOST {
        return None;
    }
    let mut finding = about(
        case,
        FindingKind::Concentrated,
        structure,
        share * structure.share,
    );
    finding.title = format!(
        "{} of the accesses to {} go to {} of its pages",
        percent(share),
        name(structure),
        percent(hot as f64 / pages.len() as f64)
    );
    finding.evidence = vec![format!(
        "{hot} of {} pages ({} of {}) take {} of the accesses to them; evenly spread it would be {}.",
        pages.len(),
        bytes(hot as u64 * PAGE_SIZE),
        bytes(pages.len() as u64 * PAGE_SIZE),
        percent(share),
        percent(hot as f64 / pages.len() as f64)
    )];
    finding.fixes = vec![Fix {
        what: "Deal the hot pages out to the nodes, so that no memory serves them alone."
            .to_owned(),
        copy: format!("numactl --interleave=all -- {}", case.commands.program),
    }];
    Some(finding)
}
